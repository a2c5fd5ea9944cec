"""Build the figure data of a population."""

from __future__ import annotations

import numpy as np
import polars as pl

from iosig.answers.population.query import Population
from iosig.estimates.columns import floats
from iosig.reports.population import PopulationView
from iosig.transforms.arrays import Reals

_DIRECTIONS = ("write", "read")
_MAX_GROUPS = 10
#: maximum number of bars in the panel over time: longer ranges are drawn by week, then by month
_MAX_STEPS = 62


def build_view(population: Population, title: str) -> PopulationView:
    """Build the figure data of a population; title: release and days."""
    runs = {name: population.runs.filter(direction=name) for name in _DIRECTIONS}
    groups = population.groups().filter(pl.col("bytes") > 0).sort("node_hours", descending=True, nulls_last=True)
    days, day_counts = _days(population.days())
    return PopulationView(
        title=title,
        run_count=population.run_count,
        volumes_bytes={name: floats(rows["bytes"].fill_null(0.0)) for name, rows in runs.items()},
        node_hours={name: floats(rows["node_hours"].fill_null(0.0)) for name, rows in runs.items()},
        periods_s={name: floats(population.periods(name)) for name in _DIRECTIONS},
        groups=f"{population.query.by.capitalize()}s",
        names=tuple(name or "unknown" for name in groups["name"].head(_MAX_GROUPS)),
        hours=tuple(groups["node_hours"].head(_MAX_GROUPS).fill_null(0.0)),
        repeats={
            str(user): tuple(rows["run_count"])
            for (user,), rows in population.repeats.group_by("user", maintain_order=True)
        },
        days=days,
        day_counts=day_counts,
    )


def _days(counts: pl.DataFrame) -> tuple[tuple[str, ...], dict[str, dict[str, Reals]]]:
    """Return the labels of the time steps, and run counts per step by direction and class."""
    if counts.is_empty():
        return (), {name: {} for name in _DIRECTIONS}
    first, last = counts["ended_on"].min(), counts["ended_on"].max()
    for every in ("1d", "1w", "1mo"):
        steps = pl.date_range(
            pl.lit(first).dt.truncate(every), pl.lit(last).dt.truncate(every), every, eager=True
        ).alias("step")
        if len(steps) <= _MAX_STEPS:
            break
    counts_by_step = counts.with_columns(step=pl.col("ended_on").dt.truncate(every)).join(
        steps.to_frame().with_row_index("place"), on="step"
    )
    counts_by_class: dict[str, dict[str, Reals]] = {name: {} for name in _DIRECTIONS}
    for (direction, label), rows in counts_by_step.group_by("direction", "label"):
        run_counts: Reals = np.bincount(rows["place"].to_numpy(), floats(rows["run_count"]), len(steps)).astype(float)
        counts_by_class[str(direction)][str(label)] = run_counts
    return tuple(f"{step:%Y-%m-%d}" for step in steps), counts_by_class

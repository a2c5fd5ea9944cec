"""What the picture of a population shows."""

from __future__ import annotations

import numpy as np
import polars as pl

from iosig.answers.population.query import Population
from iosig.estimates.columns import floats
from iosig.reports.population import PopulationView
from iosig.transforms.arrays import Reals

_DIRECTIONS = ("write", "read")
_MOST_GROUPS = 10
#: bars of the panel over time: longer times are drawn by weeks, then by months
_MOST_STEPS = 62


def view_of(told: Population, title: str) -> PopulationView:
    """Return what there is to see of a population; title: of which release and days."""
    runs = {name: told.runs.filter(direction=name) for name in _DIRECTIONS}
    groups = told.groups().filter(pl.col("bytes") > 0).sort("node_hours", descending=True, nulls_last=True)
    days, day_counts = _days(told.days())
    return PopulationView(
        title=title,
        run_count=told.run_count,
        volumes_bytes={name: floats(rows["bytes"].fill_null(0.0)) for name, rows in runs.items()},
        node_hours={name: floats(rows["node_hours"].fill_null(0.0)) for name, rows in runs.items()},
        periods_s={name: floats(told.periods(name)) for name in _DIRECTIONS},
        groups=f"{told.asked.by.capitalize()}s",
        names=tuple(name or "unknown" for name in groups["name"].head(_MOST_GROUPS)),
        hours=tuple(groups["node_hours"].head(_MOST_GROUPS).fill_null(0.0)),
        days=days,
        day_counts=day_counts,
    )


def _days(counts: pl.DataFrame) -> tuple[tuple[str, ...], dict[str, dict[str, Reals]]]:
    """Return the steps of time, as texts, and the runs of each direction and class in them."""
    if counts.is_empty():
        return (), {name: {} for name in _DIRECTIONS}
    first, last = counts["ended_on"].min(), counts["ended_on"].max()
    for every in ("1d", "1w", "1mo"):
        steps = pl.date_range(
            pl.lit(first).dt.truncate(every), pl.lit(last).dt.truncate(every), every, eager=True
        ).alias("step")
        if len(steps) <= _MOST_STEPS:
            break
    placed = counts.with_columns(step=pl.col("ended_on").dt.truncate(every)).join(
        steps.to_frame().with_row_index("place"), on="step"
    )
    found: dict[str, dict[str, Reals]] = {name: {} for name in _DIRECTIONS}
    for (direction, label), rows in placed.group_by("direction", "label"):
        run_counts: Reals = np.bincount(rows["place"].to_numpy(), floats(rows["run_count"]), len(steps)).astype(float)
        found[str(direction)][str(label)] = run_counts
    return tuple(f"{step:%Y-%m-%d}" for step in steps), found

"""The study's results as tables: those that a terminal shows, and those of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from studies.signatures.methods import SWEEPS
from studies.signatures.running import Results
from studies.signatures.summary import (
    Target,
    burst_cell,
    differing,
    overall,
    short,
    similarity_cell,
    summary,
    table,
    targets,
    volume_cell,
)

Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]

_VERDICTS = {True: "reached", False: "not reached", None: "not studied"}
SWEPT = tuple(sweep.name for sweep in SWEEPS)


def terminal_tables(results: Results) -> Iterator[Table]:
    """Yield titles, columns and rows of tables that are no wider than 100 characters."""
    summed = summary(results.answers)
    levels = summed.filter(pl.col("experiment") == "levels")
    applications = summed["application"].unique(maintain_order=True).to_list()
    columns = ("level", "method", *applications)
    keys = ("level", "method")
    if not levels.is_empty():
        yield "Cross-correlation/correlation with the truth, means", columns, list(table(levels, keys, similarity_cell))
        title = "Volume to the true one, and seeds with exactly the true bursts"
        yield title, columns, list(table(levels, keys, volume_cell))
        yield "Bursts missed, and false ones, means", columns, list(table(levels, keys, burst_cell))
    yield from _varied(results, summed, applications)
    if not results.times.is_empty():
        yield time_table(results.times)
    if not levels.is_empty():
        rows = [(target.text, target.wanted, target.found, verdict(target)) for target in targets(results)]
        yield "What was aimed at", ("", "wanted", "found", ""), rows


def _varied(results: Results, summed: pl.DataFrame, applications: Sequence[str]) -> Iterator[Table]:
    titles = {
        **{name: f"iosi by {name.replace('_', ' ')}, busy: cross-correlation/correlation" for name in SWEPT},
        "drift": "Runs whose computing differs, calm: cross-correlation/correlation",
        "faults": "Polls lost as usual, busy: cross-correlation/correlation",
        "edison": "Among real traffic: cross-correlation/correlation",
    }
    for experiment, title in titles.items():
        chosen = differing(results) if experiment == "drift" else summed.filter(pl.col("experiment") == experiment)
        if chosen.is_empty():
            continue
        keys = ("value", "method") if experiment not in ("faults", "edison") else ("method",)
        rows = [
            (f"{float(row[0]):g}", *row[1:]) if len(keys) == 2 else row for row in table(chosen, keys, similarity_cell)
        ]
        yield title, (*keys, *applications), rows


def time_table(times: pl.DataFrame) -> Table:
    """Return the times by samples and by points: a row for each, a column for each method."""
    methods = times["method"].unique(maintain_order=True).to_list()
    rows = []
    for by, value in times.select("by", "value").unique(maintain_order=True).rows():
        found = times.filter(by=by, value=value)
        cells = dict(found.select("method", "seconds").rows())
        rows.append((f"{value} {by}", *(f"{1000 * cells[name]:.3g}" for name in methods)))
    return "Time for one set [ms]", ("", *methods), rows


def verdict(target: Target) -> str:
    """Return whether a target is reached, in words."""
    return _VERDICTS[target.is_reached]


def overall_rows(summed: pl.DataFrame) -> Iterator[Sequence[str]]:
    """Yield a row for each method of `levels`: means over applications, a cell for each level."""
    found = overall(summed)
    levels = found["level"].unique(maintain_order=True).to_list()
    for method in found["method"].unique(maintain_order=True).to_list():
        rows = {row["level"]: row for row in found.filter(method=method).iter_rows(named=True)}
        yield (
            method,
            *(
                f"{similarity_cell(rows[level])}, {short(rows[level]['mean_volume_ratio'])}, "
                f"{100 * rows[level]['clean_ratio']:.0f} %"
                for level in levels
            ),
        )

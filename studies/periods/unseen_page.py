"""Build the tables of the results on signals that no method was tuned on."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from iosig.studies.pages import Table, format_percent
from iosig.studies.periods import oracles
from iosig.studies.periods.unseen import BOUNDS

_RHYTHM_GROUPS = ("claim", "power", "plain")
_ERROR_GROUPS = ("errors",)
_TRAP_GROUPS = ("holes", "ticks")
_NULL_GROUPS = ("bursts", "white", "red", "states")
#: results of the default detector before it was tuned on these signals: fraction in which it found a period, and the
#: fraction of these within 3 %, as far as recorded (200 draws each, seed 0).
_FORMER: dict[str, tuple[float | None, float | None]] = {
    "clean": (None, 1.0),
    "noise of 5 bursts": (None, 1.0),
    "duty 40 %": (None, 1.0),
    "duty 60 %": (None, 1.0),
    "8 samples a cycle": (None, 0.96),
    "drift of 10 %": (None, 0.89),
    "6 cycles in little noise": (0.27, None),
    "4 cycles in noise": (0.01, None),
    "6 cycles in noise": (0.02, None),
    "8 cycles in noise": (0.19, None),
    "uneven sizes": (0.94, None),
    "45 % missing": (0.76, None),
    "a stray burst a cycle": (None, 0.87),
    "jitter of 15 %": (None, 0.84),
    "jitter of 15 % in noise": (0.18, None),
}
#: number of generators shown, those with the most false alarms
_MAX_GENERATORS = 8


def build_tables(rows: pl.DataFrame) -> Iterator[tuple[str, Table]]:
    """Yield titles and tables; rows as returned by `unseen.add_rates`."""
    if rows.is_empty():
        return
    rhythms = _select_groups(rows, _RHYTHM_GROUPS)
    if not rhythms.is_empty():
        yield "Periods found [%], and of these within 3 % of the true one", _rhythm_table(rhythms)
        yield "Upper bounds: periods found [%], and of these within 3 % of the true period", _bound_table(rows)
    unsure = _select_groups(rows, _ERROR_GROUPS)
    if not unsure.is_empty():
        yield "Right periods [%] within one reported error of the true one, and within two", _error_table(unsure)
    nulls = _select_groups(rows, _NULL_GROUPS)
    if not nulls.is_empty():
        yield "False alarms [%] of memoryless signals: mean, highest, and lower confidence bound", _null_table(nulls)
        yield "The generators with most false alarms", _worst_table(nulls)
    traps = _select_groups(rows, _TRAP_GROUPS)
    if not traps.is_empty():
        yield "Reported periods [%] of holes and ticks", _trap_table(traps)


def _select_groups(rows: pl.DataFrame, groups: tuple[str, ...]) -> pl.DataFrame:
    return rows.filter(pl.col("group").is_in(groups))


#: cell with the fraction of signals with a claim, and the fraction of good claims
_CLAIMS = "{claim_ratio:%}, {good_ratio:%}"


def _rhythm_table(rows: pl.DataFrame) -> Table:
    """Tabulate claims by kind of signal and method."""
    return Table.pivot(rows, {"signals": "name"}, "method", _CLAIMS)


def _bound_table(rows: pl.DataFrame) -> Table:
    """Tabulate claims by kind of signal, of the default method and the oracles."""
    default, bounds = rows["method"][0], _select_groups(rows, (BOUNDS,))
    ours = _select_groups(rows, _RHYTHM_GROUPS).filter(pl.col("name").is_in(bounds["name"].implode()), method=default)
    columns = (default, *oracles.NULLS, oracles.BURSTS)
    return Table.pivot(pl.concat([ours, bounds]), {"signals": "name"}, "method", _CLAIMS, columns)


def _error_table(rows: pl.DataFrame) -> Table:
    """Tabulate the coverage of reported errors by kind of signal and number of cycles."""
    labeled = rows.with_columns(
        kind=pl.col("name").str.replace(", [^,]*$", ""), cycles=pl.col("name").str.extract(", ([^,]*)$")
    )
    return Table.pivot(labeled, {"signals": "kind"}, "cycles", _error_cell)


def _error_cell(row: dict[str, float]) -> str:
    """Format the fractions of right periods within one and two reported errors of the truth."""
    return (
        f"{format_percent(row['one_error_ratio'])}, {format_percent(row['two_errors_ratio'])}"
        if row["right_count"]
        else "-"
    )


def compare_with_former(rows: pl.DataFrame) -> Table | None:
    """Tabulate the default method's results before and after it was tuned."""
    if rows.is_empty() or (rows := _select_groups(rows, _RHYTHM_GROUPS)).is_empty():
        return None
    default = rows["method"][0]
    by_name = {row["name"]: row for row in rows.filter(method=default).iter_rows(named=True)}
    cells = [
        (name, *map(format_percent, (found, by_name[name]["claim_ratio"], good, by_name[name]["good_ratio"])))
        for name, (found, good) in _FORMER.items()
        if name in by_name
    ]
    return Table(("signals", "found before", "found now", "within 3 % before", "within 3 % now"), cells)


def _null_table(rows: pl.DataFrame) -> Table:
    by_kind = rows.group_by("group", "sample_count", maintain_order=True).agg(
        pl.len().alias("generator_count"),
        pl.col("claim_ratio").mean().alias("mean"),
        pl.col("claim_ratio", "least_ratio").max(),
    )
    return Table.from_pattern(
        "| kind | samples | generators | mean | highest | lower bound |\n"
        "| {group} | {sample_count} | {generator_count} | {mean:%} | {claim_ratio:%} | {least_ratio:%} |",
        by_kind,
    )


def _worst_table(rows: pl.DataFrame) -> Table:
    worst = rows.sort("claim_ratio", descending=True, maintain_order=True).head(_MAX_GENERATORS)
    return Table.from_pattern(
        "| generator | samples | reported | lower bound |\n"
        "| {name} | {sample_count} | {claim_ratio:%} | {least_ratio:%} |",
        worst,
    )


def _trap_table(rows: pl.DataFrame) -> Table:
    return Table.from_pattern("| signals | reported |\n| {name} | {claim_ratio:%} |", rows)

"""What the page and the terminal show of signals on which nothing was set."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from iosig.studies.pages import Block, Table, percent
from iosig.studies.periods import oracles
from iosig.studies.periods.unseen import BOUNDS

_RHYTHM_GROUPS = ("claim", "power", "plain")
_ERROR_GROUPS = ("errors",)
_TRAP_GROUPS = ("holes", "ticks")
_NULL_GROUPS = ("bursts", "white", "red", "states")
#: What the default search said of these signals when they were committed, before it was changed: the shares in which it
#: found a period, and of these within 3 %, as far as they were told (200 draws each, seed 0).
_BEFORE: dict[str, tuple[float | None, float | None]] = {
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
#: generators that are shown: those that are called periodic most often
_SHOWN = 8


def unseen_tables(rows: pl.DataFrame) -> Iterator[tuple[str, Table]]:
    """Yield titles and tables for a terminal; rows: as of `unseen.with_rates`."""
    rhythms = _of(rows, _RHYTHM_GROUPS)
    if not rhythms.is_empty():
        yield "Periods found [%], and of these within 3 % of the true one", _rhythm_table(rhythms)
        yield "What who knows more finds [%], and of these within 3 % of the true period", _bound_table(rows)
    unsure = _of(rows, _ERROR_GROUPS)
    if not unsure.is_empty():
        yield "Right periods [%] that lie within one told error of the true one, and within two", _error_table(unsure)
    nulls = _of(rows, _NULL_GROUPS)
    if not nulls.is_empty():
        yield "False alarms [%] of memoryless signals: mean, highest, and surely so many at least", _null_table(nulls)
        yield "The generators that are called periodic most often", _worst_table(nulls)
    traps = _of(rows, _TRAP_GROUPS)
    if not traps.is_empty():
        yield "Claims [%] of periods that are holes or ticks", _trap_table(traps)


def unseen_blocks(rows: pl.DataFrame) -> Iterator[Block]:
    """Yield what the page shows of them, nothing without any rows."""
    if rows.is_empty():
        return
    yield "## Signals on which nothing was set"
    yield (
        "Generators that were committed before any method was changed for them (`studies/periods/rhythms.py`, "
        "`studies/periods/memoryless.py`). The hypothesis that a false alarm is measured against is that nothing "
        "remembers: idle times are exponential, or a sample depends on the last one only. What keeps a least distance, "
        "ticks in blocks or oscillates by itself is regular in that sense, and may be claimed."
    )
    for title, table in unseen_tables(rows):
        yield f"### {title}"
        yield table
    rhythms = _of(rows, _RHYTHM_GROUPS)
    if not rhythms.is_empty():
        yield (
            "Who knows more: the shape and length of a burst as a share of its cycle, but neither period nor phase, is "
            "a matched filter whose level, one in a hundred, is set by simulation against one sort of signals alone: "
            "the same noise without any burst, or with as many bursts at random times. Who knows all bursts' times and "
            "numbers takes the straight line through them. Ours has to hold its level against all memoryless signals, "
            "without knowing any of this."
        )
        yield (
            "Told errors are those of the default method: within one of them should be 68 %, within two 95 %. Right is "
            "what is within 20 % of the truth. Of four cycles with a jitter of 5 % and more few are claimed, those "
            "that chance made look regular: they are further off than they can know. Where distances wander there is "
            "no one period, and the error is too small."
        )
        yield "### The default search before it was changed, and now"
        yield _before_table(rhythms)
        yield (
            "Before: false alarms were 0.13 % in the mean of all memoryless generators, and 1.25 % at most; of regular "
            "holes up to 100 % were claimed, of ticks of a millionth of a burst and less 99 %."
        )


def _of(rows: pl.DataFrame, groups: tuple[str, ...]) -> pl.DataFrame:
    return rows.filter(pl.col("group").is_in(groups))


def _rhythm_table(rows: pl.DataFrame) -> Table:
    """Return a row for each kind of signal, a cell for each method."""
    methods = rows["method"].unique(maintain_order=True).to_list()
    cells = {(row["name"], row["method"]): _claims(row) for row in rows.iter_rows(named=True)}
    names = rows["name"].unique(maintain_order=True).to_list()
    return Table(("signals", *methods), [(name, *(cells[name, method] for method in methods)) for name in names])


def _bound_table(rows: pl.DataFrame) -> Table:
    """Return a row for each kind of signal, with what the default method says of it first."""
    default = rows["method"][0]
    ours = {row["name"]: row for row in _of(rows, _RHYTHM_GROUPS).filter(method=default).iter_rows(named=True)}
    bounds = _of(rows, (BOUNDS,))
    found = {(row["name"], row["method"]): row for row in bounds.iter_rows(named=True)}
    methods = (*oracles.NULLS, oracles.BURSTS)
    cells = [
        (name, *(_claims(row) for row in (ours.get(name), *(found.get((name, method)) for method in methods))))
        for name in bounds["name"].unique(maintain_order=True)
    ]
    return Table(("signals", default, *methods), cells)


def _error_table(rows: pl.DataFrame) -> Table:
    """Return a row for each kind of signal, a cell for each number of cycles."""
    cells: dict[str, dict[str, str]] = {}
    for row in rows.iter_rows(named=True):
        kind, _, cycles = row["name"].rpartition(", ")
        shares = percent(row["one_error_ratio"]), percent(row["two_errors_ratio"])
        cells.setdefault(kind, {})[cycles] = ", ".join(shares) if row["right_count"] else "-"
    numbers = list(next(iter(cells.values())))
    return Table(("signals", *numbers), [(kind, *(own[each] for each in numbers)) for kind, own in cells.items()])


def _claims(row: dict[str, float | None] | None) -> str:
    """Return the share of signals of which a period is told, and of these of good ones."""
    return "-" if row is None else f"{percent(row['claim_ratio'])}, {percent(row['good_ratio'])}"


def _before_table(rows: pl.DataFrame) -> Table:
    """Return a row for each kind of signal of which is known what the default method said at first."""
    default = rows["method"][0]
    told = {row["name"]: row for row in rows.filter(method=default).iter_rows(named=True)}
    cells = [
        (name, *map(percent, (found, told[name]["claim_ratio"], good, told[name]["good_ratio"])))
        for name, (found, good) in _BEFORE.items()
        if name in told
    ]
    return Table(("signals", "found before", "found now", "within 3 % before", "within 3 % now"), cells)


def _null_table(rows: pl.DataFrame) -> Table:
    by_kind = rows.group_by("group", "sample_count", maintain_order=True).agg(
        pl.len().alias("generator_count"),
        pl.col("claim_ratio").mean().alias("mean"),
        pl.col("claim_ratio", "least_ratio").max(),
    )
    return Table.of(
        by_kind,
        ("kind", "{group}"),
        ("samples", "{sample_count}"),
        ("generators", "{generator_count}"),
        ("mean", "{mean:%}"),
        ("highest", "{claim_ratio:%}"),
        ("at least", "{least_ratio:%}"),
    )


def _worst_table(rows: pl.DataFrame) -> Table:
    worst = rows.sort("claim_ratio", descending=True, maintain_order=True).head(_SHOWN)
    return Table.of(
        worst,
        ("generator", "{name}"),
        ("samples", "{sample_count}"),
        ("claimed", "{claim_ratio:%}"),
        ("at least", "{least_ratio:%}"),
    )


def _trap_table(rows: pl.DataFrame) -> Table:
    return Table.of(rows, ("signals", "{name}"), ("claimed", "{claim_ratio:%}"))

"""What the page and the terminal show of signals on which nothing was set."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from studies.pages import Block, Table, percent

_RHYTHM_GROUPS = ("claim", "power", "plain")
_TRAP_GROUPS = ("holes", "ticks")
_NULL_GROUPS = ("bursts", "white", "red", "states")
#: generators that are shown: those that are called periodic most often
_SHOWN = 8


def unseen_tables(rows: pl.DataFrame) -> Iterator[tuple[str, Table]]:
    """Yield titles and tables for a terminal; rows: as of `unseen.with_rates`."""
    rhythms = _of(rows, _RHYTHM_GROUPS)
    if not rhythms.is_empty():
        yield "Periods found [%], and of these within 3 % of the true one", _rhythm_table(rhythms)
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


def _of(rows: pl.DataFrame, groups: tuple[str, ...]) -> pl.DataFrame:
    return rows.filter(pl.col("group").is_in(groups))


def _rhythm_table(rows: pl.DataFrame) -> Table:
    """Return a row for each kind of signal, a cell for each method."""
    methods = rows["method"].unique(maintain_order=True).to_list()
    cells = {
        (row["name"], row["method"]): f"{percent(row['claim_ratio'])}, {percent(row['good_ratio'])}"
        for row in rows.iter_rows(named=True)
    }
    names = rows["name"].unique(maintain_order=True).to_list()
    return Table(("signals", *methods), [(name, *(cells[name, method] for method in methods)) for name in names])


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

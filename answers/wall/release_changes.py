"""What is not the same in two releases' signatures: bytes, bursts and period, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from iosig.reports.wall.release_changes import ChangesView, DrawnChange, Pair

if TYPE_CHECKING:
    import duckdb

#: the tables that are asked
TABLES = "signatures periods"
_SUBJECT = ("application_id", "filesystem", "direction")
_QUANTITIES = ("volume_bytes", "burst_count", "period_s")


def pairs(before: duckdb.DuckDBPyConnection, after: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """Return a row for each application, file system and direction with a signature or a period in either release.

    Columns: volume_bytes, burst_count and period_s as the later one has them, and with `_before`; NULL where it has
    none.
    """
    old, new = (connection.sql(_SIGNATURES).pl() for connection in (before, after))
    names = {name: f"{name}_before" for name in _QUANTITIES}
    both: pl.DataFrame = old.rename(names).join(new, on=_SUBJECT, how="full", coalesce=True)
    return both.sort(_SUBJECT)


def view_of(
    before: duckdb.DuckDBPyConnection, after: duckdb.DuckDBPyConnection, titles: tuple[str, str]
) -> ChangesView:
    """Return what there is to see of two releases; titles: of the earlier and the later one."""
    has_signature = pl.any_horizontal(pl.col("volume_bytes", "volume_bytes_before").is_not_null())
    both = pairs(before, after).filter(has_signature)
    has_one = both["filesystem"].n_unique() < 2
    return ChangesView(*titles, [_drawn(row, has_one=has_one) for row in both.iter_rows(named=True)], both.height)


def _drawn(row: dict[str, Any], *, has_one: bool) -> DrawnChange:
    """Return a row of both releases; its file system is told only where there are several."""
    name = f"{row['application_id']} {row['direction']}{'' if has_one else ' ' + row['filesystem']}"
    quantities = (Pair(_number(row[f"{each}_before"]), _number(row[each])) for each in _QUANTITIES)
    return DrawnChange(name, *quantities)


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


#: signatures as they are, with the period of each; an application may have a period and no signature
_SIGNATURES = """
    with rhythms as (
        select subject_id as application_id, filesystem, direction, period_s
        from periods
        where subject_kind = 'application' and is_default and outcome = 'periodic'
    ),

    extracted as (
        select application_id, filesystem, direction, volume_bytes, burst_count
        from signatures
        where is_default and outcome = 'extracted'
    )

    select application_id, filesystem, direction, volume_bytes, burst_count, period_s
    from extracted
    full join rhythms using (application_id, filesystem, direction)
"""

"""Compare volume, burst count and period of signatures in two releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from iosig.reports.wall.release_changes import ChangesView, DrawnChange, Pair

if TYPE_CHECKING:
    import duckdb

#: tables that are queried
TABLES = "signatures periods"
_SUBJECT = ("application_id", "filesystem", "direction")
_QUANTITIES = ("volume_bytes", "burst_count", "period_s")


def pairs(before: duckdb.DuckDBPyConnection, after: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """Join two releases on application, file system and direction with a signature or a period in either.

    Columns: volume_bytes, burst_count and period_s of the later release, and of the earlier one with suffix `_before`;
    NULL if missing.
    """
    old, new = (connection.sql(_SIGNATURES).pl() for connection in (before, after))
    names = {name: f"{name}_before" for name in _QUANTITIES}
    joined: pl.DataFrame = old.rename(names).join(new, on=_SUBJECT, how="full", coalesce=True)
    return joined.sort(_SUBJECT)


def build_view(
    before: duckdb.DuckDBPyConnection, after: duckdb.DuckDBPyConnection, titles: tuple[str, str]
) -> ChangesView:
    """Build the figure data of two releases; titles: names of the earlier and the later one."""
    has_signature = pl.any_horizontal(pl.col("volume_bytes", "volume_bytes_before").is_not_null())
    joined = pairs(before, after).filter(has_signature)
    has_one = joined["filesystem"].n_unique() < 2
    return ChangesView(*titles, [_drawn(row, has_one=has_one) for row in joined.iter_rows(named=True)], joined.height)


def _drawn(row: dict[str, Any], *, has_one: bool) -> DrawnChange:
    """Convert a row; the name includes the file system only if there are several."""
    name = f"{row['application_id']} {row['direction']}{'' if has_one else ' ' + row['filesystem']}"
    quantities = (Pair(_number(row[f"{quantity}_before"]), _number(row[quantity])) for quantity in _QUANTITIES)
    return DrawnChange(name, *quantities)


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


#: signatures with their periods; an application may have a period but no signature
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

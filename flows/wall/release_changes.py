"""What is not the same in two releases' signatures: bytes, bursts and period, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reports.wall.release_changes import ChangesView, DrawnChange, Pair

if TYPE_CHECKING:
    import duckdb

#: the tables that are asked
TABLES = "signatures periods"
_SUBJECT = ("application_id", "filesystem", "direction")
_QUANTITIES = ("volume_bytes", "burst_count", "period_s")


def view_of(
    before: duckdb.DuckDBPyConnection, after: duckdb.DuckDBPyConnection, titles: tuple[str, str]
) -> ChangesView:
    """Return what there is to see of two releases; titles: of the earlier and the later one."""
    old, new = (connection.sql(_SIGNATURES).pl() for connection in (before, after))
    both = old.join(new, on=_SUBJECT, how="full", coalesce=True, suffix="_after").sort(_SUBJECT)
    has_one = both["filesystem"].n_unique() < 2
    return ChangesView(*titles, [_drawn(row, has_one=has_one) for row in both.iter_rows(named=True)], both.height)


def _drawn(row: dict[str, Any], *, has_one: bool) -> DrawnChange:
    """Return a row of both releases; its file system is told only where there are several."""
    name = f"{row['application_id']} {row['direction']}{'' if has_one else ' ' + row['filesystem']}"
    pairs = (Pair(_number(row[each]), _number(row[f"{each}_after"])) for each in _QUANTITIES)
    return DrawnChange(name, *pairs)


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


#: signatures as they are, with the period of each
_SIGNATURES = """
    with rhythms as (
        select subject_id as application_id, filesystem, direction, period_s
        from periods
        where subject_kind = 'application' and is_default and outcome = 'periodic'
    )

    select application_id, filesystem, direction, volume_bytes, burst_count, period_s
    from signatures
    left join rhythms using (application_id, filesystem, direction)
    where is_default and outcome = 'extracted'
"""

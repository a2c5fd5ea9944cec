"""Query the rates of a file system per minute and day, from its poll rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.estimates.columns import floats
from iosig.reports.wall.storage_calendar import MINUTES, CalendarView, DayRates
from iosig.transforms.arrays import Reals
from iosig.warehouse.errors import NothingToDo, UsageError

if TYPE_CHECKING:
    import duckdb

#: days up to the last poll that are shown by default
DEFAULT_DAYS = 31
#: minimum number of polled minutes of the first and the last day; a day with fewer, e.g. one poll that just crosses
#: midnight, is dropped
_MIN_MINUTES = 60
#: tables that are queried
TABLES = "filesystem_rates"
_EPOCH = date(1970, 1, 1)
_COLUMNS = {"write": "written", "read": "read"}


def build_view(
    connection: duckdb.DuckDBPyConnection,
    filesystem: str | None = None,
    since: date | None = None,
    until: date | None = None,
    directions: Sequence[str] = ("write", "read"),
) -> CalendarView:
    """Build the figure data of a file system; default: the one with the largest volume.

    since, until: first and last UTC day; default: the last month of polls.

    Raises UsageError if the file system has no polls, NothingToDo if it has none on those days.
    """
    name, last = _choose_filesystem(connection, filesystem)
    final = until or last
    first = since or final - timedelta(days=DEFAULT_DAYS - 1)
    rows = connection.sql(_MINUTES, params={"filesystem": name, "since": first, "until": final}).pl()
    if rows.is_empty():
        raise NothingToDo(f"No polls of {name} from {first} to {final}; its last day of polls is {last}.")
    first_day, last_day = _find_first_and_last_day(rows["minute"])
    first_day, last_day = since or first_day, until or last_day
    days = [first_day + timedelta(days=number) for number in range((last_day - first_day).days + 1)]
    return CalendarView(name, days, [_day_rates(rows, direction, days) for direction in directions])


def _choose_filesystem(connection: duckdb.DuckDBPyConnection, filesystem: str | None) -> tuple[str, date]:
    """Resolve the file system, and return it with its last day of polls."""
    rows = connection.sql(_FILESYSTEMS).fetchall()
    last_days = {name: last for name, last, _ in rows}
    if filesystem is None and last_days:
        filesystem = rows[0][0]
    if filesystem is None or filesystem not in last_days:
        names = ", ".join(sorted(last_days)) or "none"
        raise UsageError(f"The release has no polls of file system {filesystem!r}, only of: {names}.")
    return filesystem, last_days[filesystem]


def _find_first_and_last_day(minutes: pl.Series) -> tuple[date, date]:
    """Return the first and the last day with `_MIN_MINUTES` or more polled minutes."""
    counts = (minutes // MINUTES).value_counts()
    days = counts.filter(pl.col("count") >= min(_MIN_MINUTES, int(counts["count"].max())))["minute"]  # type: ignore[arg-type]
    first, last = (_EPOCH + timedelta(days=int(number)) for number in (days.min(), days.max()))  # type: ignore[arg-type]
    return first, last


def _day_rates(rows: pl.DataFrame, direction: str, days: Sequence[date]) -> DayRates:
    name = _COLUMNS[direction]
    moved = np.nansum(_minutes(rows, f"{name}_bytes", days), axis=1)
    return DayRates(direction, _minutes(rows, f"{name}_bytes_per_s", days), moved)


def _minutes(rows: pl.DataFrame, column: str, days: Sequence[date]) -> Reals:
    """Arrange a column by day and minute (days, 1440); NaN for unpolled minutes."""
    rates = np.full(len(days) * MINUTES, np.nan)
    place = rows["minute"].to_numpy() - (days[0] - _EPOCH).days * MINUTES
    is_shown = (place >= 0) & (place < len(rates))
    rates[place[is_shown]] = floats(rows[column])[is_shown]
    return rates.reshape(len(days), MINUTES)


_FILESYSTEMS = """
    select filesystem, max(polled_on) as last_on,
        coalesce(sum(read_bytes), 0) + coalesce(sum(written_bytes), 0) as moved_bytes
    from filesystem_rates
    group by filesystem
    order by moved_bytes desc, filesystem
"""

#: mean rate of each minute since 1970 over its polled time; polled_at is a right edge, and an interval longer than a
#: minute counts in all minutes that it covers
_MINUTES = """
    with chosen as (
        select polled_at, interval_s, read_bytes, written_bytes, least(interval_s, 60) as covered_s,
            ceil(epoch(polled_at) / 60)::bigint - 1 as last_minute,
            greatest(1, round(interval_s / 60))::bigint as minute_count
        from filesystem_rates
        where filesystem = $filesystem and polled_on between $since::date and $until::date + 1
    ),

    spread as (
        select *, last_minute - unnest(range(minute_count)) as minute
        from chosen
    )

    select minute,
        sum(read_bytes / interval_s * covered_s) as read_bytes,
        sum(read_bytes / interval_s * covered_s) / sum(covered_s) filter (read_bytes is not null) as read_bytes_per_s,
        sum(written_bytes / interval_s * covered_s) as written_bytes,
        sum(written_bytes / interval_s * covered_s) / sum(covered_s) filter (written_bytes is not null)
            as written_bytes_per_s
    from spread
    where minute // 1440 between $since::date - date '1970-01-01' and $until::date - date '1970-01-01'
    group by minute
    order by minute
"""

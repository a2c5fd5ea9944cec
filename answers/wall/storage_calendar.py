"""What a file system moved, minute by minute of each day, out of its ticks."""

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

#: days up to the last poll, where nobody says since when
USUAL_DAYS = 31
#: a day of which fewer minutes were polled is not begun or ended with: a poll at midnight is of the day before
_ODD_MINUTES = 60
#: the tables that are asked
TABLES = "filesystem_rates"
_EPOCH = date(1970, 1, 1)
_COLUMNS = {"write": "written", "read": "read"}


def view_of(
    connection: duckdb.DuckDBPyConnection,
    filesystem: str | None = None,
    since: date | None = None,
    until: date | None = None,
    directions: Sequence[str] = ("write", "read"),
) -> CalendarView:
    """Return what there is to see of a file system; else of the one that moved most.

    since, until: the first and the last UTC day; else the last month of polls.

    Raises UsageError if it was not polled, NothingToDo if it was not polled on those days.
    """
    name, last = _polled(connection, filesystem)
    final = until or last
    first = since or final - timedelta(days=USUAL_DAYS - 1)
    rows = connection.sql(_MINUTES, params={"filesystem": name, "since": first, "until": final}).pl()
    if rows.is_empty():
        raise NothingToDo(f"No polls of {name} from {first} to {final}; its last day of polls is {last}.")
    begun, ended = _told_days(rows["minute"])
    begun, ended = since or begun, until or ended
    days = [begun + timedelta(days=number) for number in range((ended - begun).days + 1)]
    return CalendarView(name, days, [_day_rates(rows, each, days) for each in directions])


def _polled(connection: duckdb.DuckDBPyConnection, filesystem: str | None) -> tuple[str, date]:
    """Return the file system that is meant, and its last day of polls."""
    found = connection.sql(_FILESYSTEMS).fetchall()
    known = {name: last for name, last, _ in found}
    if filesystem is None and known:
        filesystem = found[0][0]
    if filesystem is None or filesystem not in known:
        names = ", ".join(sorted(known)) or "none"
        raise UsageError(f"No file system {filesystem!r} was polled; the release has polls of: {names}.")
    return filesystem, known[filesystem]


def _told_days(minutes: pl.Series) -> tuple[date, date]:
    """Return the first and the last day of which more than odd minutes were polled: nobody asked for those without."""
    counts = (minutes // MINUTES).value_counts()
    days = counts.filter(pl.col("count") >= min(_ODD_MINUTES, int(counts["count"].max())))["minute"]  # type: ignore[arg-type]
    first, last = (_EPOCH + timedelta(days=int(number)) for number in (days.min(), days.max()))  # type: ignore[arg-type]
    return first, last


def _day_rates(rows: pl.DataFrame, direction: str, days: Sequence[date]) -> DayRates:
    name = _COLUMNS[direction]
    moved = np.nansum(_minutes(rows, f"{name}_bytes", days), axis=1)
    return DayRates(direction, _minutes(rows, f"{name}_bytes_per_s", days), moved)


def _minutes(rows: pl.DataFrame, column: str, days: Sequence[date]) -> Reals:
    """Return a column's values of minutes (days, 1440); NaN where nothing is known."""
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

#: the mean rate of each minute, numbered from 1970, over the time in it that polls tell of; a poll is known by its
#: right edge, and what is longer than a minute is in all of those that it covers
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

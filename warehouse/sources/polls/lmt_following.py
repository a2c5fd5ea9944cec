"""LMT databases that are being written: the readings since the last ones seen, by index, and what they say was moved.

Every poll of the database is a few short reads of its own connection: nothing is locked between them. Where it was
read to, and each target's last reading, are a `Cursor`; the counters go on from there as if they were read whole.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl
import sqlalchemy as sa

from iosig.warehouse.engine_paths import is_url, sqlite_uri
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.external.deadlines import DEFAULT_TIMEOUTS, Timeouts
from iosig.warehouse.sources.polls import lmt_connections, lmt_queries
from iosig.warehouse.sources.polls.lmt_cursors import DIRECTIONS, Counted, Cursor, as_readings, counted_of
from iosig.warehouse.sources.polls.lmt_queries import Target, table_of
from iosig.warehouse.sources.protocol import DEFAULT_FILESYSTEM, Reading
from iosig.warehouse.sources.rows.delimited import LINE, RAW
from iosig.warehouse.sources.rows.faults import sift

#: readings at a time: bounds what waits to be handed over, which every position holds
MOST_READINGS = 4096
#: instants for which is waited for a target that is late; what it counted in between is in its next rise
OVERLAP_INSTANTS = 60
#: how long an SQLite file may be locked by its writer
_BUSY_S = 2.0
#: instants that are looked at where some have no readable time
_TRIED = 16
_SHOWN_REFUSALS = 20
#: SQLite takes some thousand values in a query at the most
_TARGETS_AT_ONCE = 500
_ROWS = {
    "controller": pl.String(),
    "polled_us": pl.Int64(),
    "interval_us": pl.Int64(),
    "read_bytes_per_s": pl.Float64(),
    "write_bytes_per_s": pl.Float64(),
}


@dataclass(frozen=True, slots=True)
class NewPolls:
    """What a database told since a cursor.

    rows: controller, polled_us, interval_us, both rates [B/s]; NULL where a counter fell. refused: readings that
    cannot be used, as (TS_ID, reason). cursor: to go on from. is_behind: there is more already. is_replaced: the
    database is another one than that of the cursor.
    """

    rows: pl.DataFrame
    refused: tuple[tuple[int, str], ...]
    cursor: Cursor
    is_behind: bool = False
    is_replaced: bool = False


def engine_of(url: str, timeouts: Timeouts = DEFAULT_TIMEOUTS) -> sa.Engine:
    """Return what connects to a database that is being written: an SQLAlchemy URL, or the path of an SQLite file.

    SQLite files are opened to be read only, and as they change. Raises UsageError for a URL that no driver
    understands.
    """
    if not is_url(url):
        return _file_engine(Path(url))
    engine = lmt_connections.engine_of(url, timeouts)
    if engine.dialect.name != "sqlite":
        return engine
    name = engine.url.database
    if not name or name == ":memory:":
        raise UsageError("The database URL names no file; write sqlite:////folder/name.sqlite3.")
    return _file_engine(Path(name.removeprefix("file:").split("?")[0]))


def _file_engine(path: Path) -> sa.Engine:
    # A pipe would block for ever, a device have no end.
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is no file.")
    address = sqlite_uri(path, mode="ro")

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(address, uri=True, timeout=_BUSY_S)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        return connection

    return sa.create_engine("sqlite://", creator=connect, poolclass=sa.NullPool)


def begin(engine: sa.Engine, since: datetime, reading: Reading) -> Cursor:
    """Return a cursor from which all polls that end after `since` are read, found by halving."""
    with lmt_queries.connected(engine) as connection:
        lmt_queries.check_tables(connection)
        zone = lmt_queries.zone_in(connection, reading)
        low, high = _ends(connection)
        # The earliest poll after `since` lies in (low, high].
        low -= 1
        while high - low > 1:
            middle = (low + high) // 2
            if _is_after(connection, middle, high, since, zone):
                high = middle
            else:
                low = middle
        return Cursor(low - OVERLAP_INSTANTS)


def _ends(connection: sa.Connection) -> tuple[int, int]:
    ts_id = table_of("TIMESTAMP_INFO").c["TS_ID"]
    low, high = connection.execute(sa.select(sa.func.min(ts_id), sa.func.max(ts_id))).one()
    if low is None:
        return 0, 0
    if not (isinstance(low, int) and isinstance(high, int)):
        raise InputRefused("A TS_ID in TIMESTAMP_INFO is no whole number.", lmt_queries.REMEDY)
    return low, high


def _is_after(connection: sa.Connection, ts_id: int, last: int, since: datetime, zone: str | None) -> bool:
    """Return whether the first poll from `ts_id` on that has a time is after `since`; so is what has none."""
    column = table_of("TIMESTAMP_INFO").c["TS_ID"]
    query = lmt_queries.times_query().where(column >= ts_id, column <= last).limit(_TRIED)
    known = lmt_queries.instants_of(connection, zone, query)["instant"].drop_nulls()
    return known.is_empty() or bool(known[0] > since)


def read_on(engine: sa.Engine, filesystem: str, reading: Reading, cursor: Cursor, until: int | None = None) -> NewPolls:
    """Read what a file system's targets counted since a cursor, up to the TS_ID `until` if it is given.

    Of a database that was replaced nothing is read: it needs a cursor of its own.

    Raises InputRefused, from the database's own error, where it cannot be read just now; InputRefused without one
    where it is no LMT database; UsageError where it has no target of that file system.
    """
    with lmt_queries.connected(engine) as connection:
        lmt_queries.check_tables(connection)
        zone = lmt_queries.zone_in(connection, reading)
        _, newest = _ends(connection)
        nothing = NewPolls(pl.DataFrame(schema=_ROWS), (), cursor)
        if cursor.instant_us is not None and newest < cursor.ts_id:
            return replace(nothing, is_replaced=True)
        if newest <= cursor.ts_id and all(it.ts_id >= newest for it in cursor.counted.values()):
            return nothing
        targets = _targets(connection, filesystem, reading)
        low = _low(cursor)
        times = table_of("TIMESTAMP_INFO").c["TS_ID"]
        # The last instant that was read is looked at again: it tells whether this is still the same database.
        query = lmt_queries.times_query().where(times > min(low, cursor.ts_id - 1), times <= newest)
        instants = lmt_queries.instants_of(
            connection, zone, query.limit(max(MOST_READINGS // len(targets), 2 * OVERLAP_INSTANTS))
        ).drop_nulls("TS_ID")
        if _is_another(instants, cursor):
            return replace(nothing, is_replaced=True)
        if instants.is_empty():
            return nothing
        last = int(instants["TS_ID"].max())  # type: ignore[arg-type]
        readings = _readings(connection, targets, low, last)
    usable, refused = _usable(readings, instants, targets, cursor)
    stamped = instants.filter(pl.col("TS_ID") == last)["instant"].dt.epoch("us")
    moved = replace(cursor, ts_id=max(last, cursor.ts_id))
    if last >= cursor.ts_id:
        moved = replace(moved, instant_us=stamped[0])
    rows, counted = _differenced(usable, targets, cursor)
    return NewPolls(rows, refused, replace(moved, counted=counted), is_behind=last < newest)


def _is_another(instants: pl.DataFrame, cursor: Cursor) -> bool:
    """Return whether the last instant that was read is another one now; one that was purged says nothing."""
    there = instants.filter(pl.col("TS_ID") == cursor.ts_id)["instant"].dt.epoch("us").drop_nulls()
    return cursor.instant_us is not None and bool((there != cursor.instant_us).any())


def _targets(connection: sa.Connection, filesystem: str, reading: Reading) -> list[Target]:
    named = [target for target in lmt_queries.named_targets(connection).values() if target.controller is not None]
    known = {id(it): reading.filesystem or it.filesystem or DEFAULT_FILESYSTEM for it in named}
    ids = Counter(str(target.ost_id) for target in named)
    found = [
        target
        for target in named
        # A number and its digits as text are told apart by SQLite alone.
        if known[id(target)] == filesystem and isinstance(target.ost_id, int | str) and ids[str(target.ost_id)] == 1
    ]
    if not found:
        there = ", ".join(sorted(set(known.values()))[:_SHOWN_REFUSALS]) or "none"
        raise UsageError(f"The database has no target of the file system {filesystem}; it has those of: {there}.")
    return found


def _low(cursor: Cursor) -> int:
    """Return the TS_ID after which some target may have told nothing yet."""
    latest = [it.ts_id for it in cursor.counted.values()]
    return max(min([cursor.ts_id, *latest]), cursor.ts_id - OVERLAP_INSTANTS) if latest else cursor.ts_id


def _readings(connection: sa.Connection, targets: Sequence[Target], low: int, last: int) -> pl.DataFrame:
    """Read what targets counted after one instant and up to another: their place in `targets`, TS_ID, counters."""
    data = table_of("OST_DATA")
    names = ("TS_ID", *DIRECTIONS.values())
    schema = {"OST_ID": pl.String(), **{name: pl.Int64() for name in names}}
    found = []
    for first in range(0, len(targets), _TARGETS_AT_ONCE):
        some = targets[first : first + _TARGETS_AT_ONCE]
        query = sa.select(data.c["OST_ID"], *(data.c[name] for name in names)).where(
            data.c["OST_ID"].in_([target.ost_id for target in some]), data.c["TS_ID"] > low, data.c["TS_ID"] <= last
        )
        places = {str(target.ost_id): place for place, target in enumerate(some, first)}
        place = pl.col("OST_ID").replace_strict(places, return_dtype=pl.Int64).alias("target")
        found.append(lmt_queries.fetched(connection, query, schema).select(place, *names))
    return pl.concat(found)


def _usable(
    readings: pl.DataFrame, instants: pl.DataFrame, targets: Sequence[Target], cursor: Cursor
) -> tuple[pl.DataFrame, tuple[tuple[int, str], ...]]:
    """Return the readings after each target's last one, in the order of time, and why others cannot be used."""
    known = [cursor.counted.get(target.ost_id) for target in targets]
    last_ts = pl.Series("last_ts", [it.ts_id if it else None for it in known], pl.Int64)
    last_us = pl.Series("last_us", [it.instant_us if it else None for it in known], pl.Int64)
    names = pl.Series("name", [target.controller for target in targets], pl.String)
    at = readings["target"].to_numpy()
    new = readings.with_columns(last_ts[at], last_us[at], names[at].alias(RAW), pl.col("TS_ID").alias(LINE)).filter(
        pl.col("TS_ID") > pl.coalesce("last_ts", pl.lit(cursor.ts_id - OVERLAP_INSTANTS))
    )
    found = sift(lmt_queries.stamped(new, instants), lmt_queries.faults_of(has_name=True))
    rows, contradicting = lmt_queries.without_repeats(found.rows, "target")
    ahead_us = rows["instant"].dt.epoch("us") - rows["last_us"]
    back = rows.filter(ahead_us < 0).select(LINE, RAW, reason=pl.lit("The clock went back behind the reading before."))
    refused = pl.concat([it.select(LINE, RAW, "reason") for it in (found.refused, contradicting, back)])
    return rows.filter((ahead_us > 0).fill_null(True)), _said(refused.filter(pl.col(LINE) > cursor.ts_id))


def _said(refused: pl.DataFrame) -> tuple[tuple[int, str], ...]:
    """Return why readings cannot be used, those of later instants that were told of before left out."""
    said = refused.sort(LINE, RAW).select(LINE, pl.format("{}: {}", RAW, "reason")).rows()
    if len(said) <= _SHOWN_REFUSALS:
        return tuple(said)
    return (*said[:_SHOWN_REFUSALS], (0, f"{len(said) - _SHOWN_REFUSALS} more readings cannot be used."))


def _differenced(
    rows: pl.DataFrame, targets: Sequence[Target], cursor: Cursor
) -> tuple[pl.DataFrame, dict[int | str, Counted]]:
    """Difference every target's readings from its last one on; return the polls, and what each counted since."""
    counted = dict(cursor.counted)
    if rows.is_empty():
        return pl.DataFrame(schema=_ROWS), counted
    told = [place for place in rows["target"].unique().sort() if targets[place].ost_id in counted]
    earlier = as_readings(told, [counted[targets[place].ost_id] for place in told])
    later = rows.select(*earlier.columns[:-1], is_new=pl.lit(True))
    whole = pl.concat([earlier, later]).sort("target", "is_new", "instant", "TS_ID", maintain_order=True)
    place = whole["target"].to_numpy()
    is_first = np.concatenate([[True], place[1:] != place[:-1]])
    names = pl.Series("controller", [target.controller for target in targets], pl.String)
    rates = lmt_queries.polls_of(whole, is_first).with_columns(
        names[place[~is_first]], whole.filter(pl.Series(~is_first))["is_new"]
    )
    polls = rates.filter("is_new").select(
        "controller",
        pl.col("instant").dt.epoch("us").alias("polled_us"),
        (pl.col("interval_s") * 1e6).round().cast(pl.Int64).alias("interval_us"),
        *DIRECTIONS,
    )
    return polls, counted | counted_of(whole, is_first, [target.ost_id for target in targets])

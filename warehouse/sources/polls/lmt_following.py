"""Follow LMT databases that are being written: read new readings by index, and compute their polls.

Each call makes a few short reads on its own connection, without locks in between. A `Cursor` holds the read position
and each target's last reading, so the result is the same as if the database had been read at once.
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
from iosig.warehouse.sources.polls.lmt_cursors import (
    DIRECTIONS,
    CounterState,
    Cursor,
    convert_to_readings,
    summarize_readings,
)
from iosig.warehouse.sources.polls.lmt_queries import Target, get_table
from iosig.warehouse.sources.protocol import DEFAULT_FILESYSTEM, Reading
from iosig.warehouse.sources.rows.delimited import LINE, RAW
from iosig.warehouse.sources.rows.faults import sift

#: maximum number of readings per call, to limit the pending data, which every position contains
MAX_READINGS = 4096
#: number of instants to wait for a late target; the target's next delta includes the traffic since its last reading
OVERLAP_INSTANTS = 60
#: timeout for an SQLite file that its writer locks
_BUSY_S = 2.0
#: maximum number of instants to search for a readable time
_MAX_TRIED_INSTANTS = 16
_MAX_SHOWN_REFUSALS = 20
#: maximum number of parameters of an SQLite query
_BATCH_TARGETS = 500
_ROWS = {
    "controller": pl.String(),
    "polled_us": pl.Int64(),
    "interval_us": pl.Int64(),
    "read_bytes_per_s": pl.Float64(),
    "write_bytes_per_s": pl.Float64(),
}


@dataclass(frozen=True, slots=True)
class NewPolls:
    """New polls in a database since a cursor.

    rows: controller, polled_us, interval_us, both rates [B/s]; NULL if a counter decreased. refused: unusable readings,
    as (TS_ID, reason). cursor: the next position. is_behind: more data is already available. is_replaced: the database
    is not the one to which the cursor belongs.
    """

    rows: pl.DataFrame
    refused: tuple[tuple[int, str], ...]
    cursor: Cursor
    is_behind: bool = False
    is_replaced: bool = False


def create_engine(url: str, timeouts: Timeouts = DEFAULT_TIMEOUTS) -> sa.Engine:
    """Create an engine for a database that is being written: an SQLAlchemy URL, or the path of an SQLite file.

    SQLite files are opened read-only, while they may change. Raises UsageError for a URL that no driver supports.
    """
    if not is_url(url):
        return _file_engine(Path(url))
    engine = lmt_connections.create_engine_for_url(url, timeouts)
    if engine.dialect.name != "sqlite":
        return engine
    name = engine.url.database
    if not name or name == ":memory:":
        raise UsageError("The database URL has no file name; write sqlite:////folder/name.sqlite3.")
    return _file_engine(Path(name.removeprefix("file:").split("?")[0]))


def _file_engine(path: Path) -> sa.Engine:
    # Reading a pipe could block forever, and a device has no end.
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not a file.")
    address = sqlite_uri(path, mode="ro")

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(address, uri=True, timeout=_BUSY_S)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        return connection

    return sa.create_engine("sqlite://", creator=connect, poolclass=sa.NullPool)


def begin(engine: sa.Engine, since: datetime, reading: Reading) -> Cursor:
    """Return a cursor before the first poll that ends after `since`, found by bisection."""
    with lmt_queries.connect(engine) as connection:
        lmt_queries.check_tables(connection)
        zone = lmt_queries.find_zone(connection, reading)
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
    ts_id = get_table("TIMESTAMP_INFO").c["TS_ID"]
    low, high = connection.execute(sa.select(sa.func.min(ts_id), sa.func.max(ts_id))).one()
    if low is None:
        return 0, 0
    if not (isinstance(low, int) and isinstance(high, int)):
        raise InputRefused("A TS_ID in TIMESTAMP_INFO is not an integer.", lmt_queries.REMEDY)
    return low, high


def _is_after(connection: sa.Connection, ts_id: int, last: int, since: datetime, zone: str | None) -> bool:
    """Test whether the first timestamped poll at or after `ts_id` is later than `since`; True if no poll has a time.

    last: TS_ID at which the search ends.
    """
    column = get_table("TIMESTAMP_INFO").c["TS_ID"]
    query = lmt_queries.times_query().where(column >= ts_id, column <= last).limit(_MAX_TRIED_INSTANTS)
    instants = lmt_queries.read_instants(connection, zone, query)["instant"].drop_nulls()
    return instants.is_empty() or bool(instants[0] > since)


def read_on(engine: sa.Engine, filesystem: str, reading: Reading, cursor: Cursor, until: int | None = None) -> NewPolls:
    """Read the polls of a file system's targets since a cursor, up to the TS_ID `until` if given.

    Nothing is read from a replaced database, because it needs a new cursor. Raises InputRefused, caused by the
    database's error, if the database is temporarily unreadable; InputRefused without a cause if it is not an LMT
    database; UsageError if it has no target of that file system.
    """
    with lmt_queries.connect(engine) as connection:
        lmt_queries.check_tables(connection)
        zone = lmt_queries.find_zone(connection, reading)
        _, newest = _ends(connection)
        no_polls = NewPolls(pl.DataFrame(schema=_ROWS), (), cursor)
        if cursor.instant_us is not None and newest < cursor.ts_id:
            return replace(no_polls, is_replaced=True)
        if newest <= cursor.ts_id and all(state.ts_id >= newest for state in cursor.counted.values()):
            return no_polls
        targets = _targets(connection, filesystem, reading)
        low = _find_low(cursor)
        times = get_table("TIMESTAMP_INFO").c["TS_ID"]
        # Read the last instant again, to detect a replaced database.
        query = lmt_queries.times_query().where(times > min(low, cursor.ts_id - 1), times <= newest)
        instants = lmt_queries.read_instants(
            connection, zone, query.limit(max(MAX_READINGS // len(targets), 2 * OVERLAP_INSTANTS))
        ).drop_nulls("TS_ID")
        if _is_replaced(instants, cursor):
            return replace(no_polls, is_replaced=True)
        if instants.is_empty():
            return no_polls
        last = int(instants["TS_ID"].max())  # type: ignore[arg-type]
        readings = _readings(connection, targets, low, last)
    usable, refused = _select_usable(readings, instants, targets, cursor)
    stamped = instants.filter(pl.col("TS_ID") == last)["instant"].dt.epoch("us")
    next_cursor = replace(cursor, ts_id=max(last, cursor.ts_id))
    if last >= cursor.ts_id:
        next_cursor = replace(next_cursor, instant_us=stamped[0])
    rows, counted = _compute_polls(usable, targets, cursor)
    return NewPolls(rows, refused, replace(next_cursor, counted=counted), is_behind=last < newest)


def _is_replaced(instants: pl.DataFrame, cursor: Cursor) -> bool:
    """Test whether the cursor's last instant has changed in the database; if it was purged, it has not."""
    times_us = instants.filter(pl.col("TS_ID") == cursor.ts_id)["instant"].dt.epoch("us").drop_nulls()
    return cursor.instant_us is not None and bool((times_us != cursor.instant_us).any())


def _targets(connection: sa.Connection, filesystem: str, reading: Reading) -> list[Target]:
    named_targets = [
        target for target in lmt_queries.read_targets(connection).values() if target.controller is not None
    ]
    filesystems = {
        id(target): reading.filesystem or target.filesystem or DEFAULT_FILESYSTEM for target in named_targets
    }
    ids = Counter(str(target.ost_id) for target in named_targets)
    selected = [
        target
        for target in named_targets
        # Only SQLite distinguishes a number from a string of its digits.
        if filesystems[id(target)] == filesystem
        and isinstance(target.ost_id, int | str)
        and ids[str(target.ost_id)] == 1
    ]
    if not selected:
        available = ", ".join(sorted(set(filesystems.values()))[:_MAX_SHOWN_REFUSALS]) or "none"
        raise UsageError(f"The database has no target of the file system {filesystem}. Available: {available}.")
    return selected


def _find_low(cursor: Cursor) -> int:
    """Return the TS_ID from which some target may still lack readings."""
    latest = [state.ts_id for state in cursor.counted.values()]
    return max(min([cursor.ts_id, *latest]), cursor.ts_id - OVERLAP_INSTANTS) if latest else cursor.ts_id


def _readings(connection: sa.Connection, targets: Sequence[Target], low: int, last: int) -> pl.DataFrame:
    """Read the counters of targets in a range of instants, as index in `targets`, TS_ID and counters."""
    data = get_table("OST_DATA")
    names = ("TS_ID", *DIRECTIONS.values())
    schema = {"OST_ID": pl.String(), **{name: pl.Int64() for name in names}}
    parts = []
    for first in range(0, len(targets), _BATCH_TARGETS):
        batch = targets[first : first + _BATCH_TARGETS]
        query = sa.select(data.c["OST_ID"], *(data.c[name] for name in names)).where(
            data.c["OST_ID"].in_([target.ost_id for target in batch]), data.c["TS_ID"] > low, data.c["TS_ID"] <= last
        )
        places = {str(target.ost_id): place for place, target in enumerate(batch, first)}
        place = pl.col("OST_ID").replace_strict(places, return_dtype=pl.Int64).alias("target")
        parts.append(lmt_queries.fetch(connection, query, schema).select(place, *names))
    return pl.concat(parts)


def _select_usable(
    readings: pl.DataFrame, instants: pl.DataFrame, targets: Sequence[Target], cursor: Cursor
) -> tuple[pl.DataFrame, tuple[tuple[int, str], ...]]:
    """Return the readings after each target's last one, in time order, and the reasons why others are unusable."""
    states = [cursor.counted.get(target.ost_id) for target in targets]
    last_ts = pl.Series("last_ts", [it.ts_id if it else None for it in states], pl.Int64)
    last_us = pl.Series("last_us", [it.instant_us if it else None for it in states], pl.Int64)
    names = pl.Series("name", [target.controller for target in targets], pl.String)
    targets_of_readings = readings["target"].to_numpy()
    new = readings.with_columns(
        last_ts[targets_of_readings],
        last_us[targets_of_readings],
        names[targets_of_readings].alias(RAW),
        pl.col("TS_ID").alias(LINE),
    ).filter(pl.col("TS_ID") > pl.coalesce("last_ts", pl.lit(cursor.ts_id - OVERLAP_INSTANTS)))
    checked = sift(lmt_queries.add_instants(new, instants), lmt_queries.build_faults(has_name=True))
    rows, contradicting = lmt_queries.drop_repeats(checked.rows, "target")
    ahead_us = rows["instant"].dt.epoch("us") - rows["last_us"]
    back = rows.filter(ahead_us < 0).select(
        LINE, RAW, reason=pl.lit("The clock went back before the previous reading.")
    )
    refused = pl.concat([it.select(LINE, RAW, "reason") for it in (checked.refused, contradicting, back)])
    return rows.filter((ahead_us > 0).fill_null(True)), _select_new_reasons(refused.filter(pl.col(LINE) > cursor.ts_id))


def _select_new_reasons(refused: pl.DataFrame) -> tuple[tuple[int, str], ...]:
    """Return the reasons why readings are unusable, without those that were reported before."""
    reasons = refused.sort(LINE, RAW).select(LINE, pl.format("{}: {}", RAW, "reason")).rows()
    if len(reasons) <= _MAX_SHOWN_REFUSALS:
        return tuple(reasons)
    return (*reasons[:_MAX_SHOWN_REFUSALS], (0, f"{len(reasons) - _MAX_SHOWN_REFUSALS} more readings cannot be used."))


def _compute_polls(
    rows: pl.DataFrame, targets: Sequence[Target], cursor: Cursor
) -> tuple[pl.DataFrame, dict[int | str, CounterState]]:
    """Compute the polls of every target since its last reading; return the polls and the new states."""
    counted = dict(cursor.counted)
    if rows.is_empty():
        return pl.DataFrame(schema=_ROWS), counted
    counted_places = [place for place in rows["target"].unique().sort() if targets[place].ost_id in counted]
    earlier = convert_to_readings(counted_places, [counted[targets[place].ost_id] for place in counted_places])
    later = rows.select(*earlier.columns[:-1], is_new=pl.lit(True))
    readings = pl.concat([earlier, later]).sort("target", "is_new", "instant", "TS_ID", maintain_order=True)
    place = readings["target"].to_numpy()
    is_first = np.concatenate([[True], place[1:] != place[:-1]])
    names = pl.Series("controller", [target.controller for target in targets], pl.String)
    rates = lmt_queries.compute_polls(readings, is_first).with_columns(
        names[place[~is_first]], readings.filter(pl.Series(~is_first))["is_new"]
    )
    polls = rates.filter("is_new").select(
        "controller",
        pl.col("instant").dt.epoch("us").alias("polled_us"),
        (pl.col("interval_s") * 1e6).round().cast(pl.Int64).alias("interval_us"),
        *DIRECTIONS,
    )
    return polls, counted | summarize_readings(readings, is_first, [target.ost_id for target in targets])

"""Query LMT databases, in SQLite or behind a MariaDB/MySQL URL, and convert byte counters of targets to polls.

A poll's rate is the counter's increase since the target's previous reading, divided by the elapsed time. A decrease
becomes a flagged gap, see `counters.flag_server_counters`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa
from sqlalchemy import exc

from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.engine_paths import sqlite_uri
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.external.deadlines import DEFAULT_TIMEOUTS, Timeouts
from iosig.warehouse.sources.files.limits import current_limits
from iosig.warehouse.sources.files.opening import plain_file
from iosig.warehouse.sources.polls.lmt_connections import create_engine_for_url
from iosig.warehouse.sources.polls.lmt_cursors import (
    DIRECTIONS,
    CounterState,
    Cursor,
    convert_to_readings,
    summarize_readings,
)
from iosig.warehouse.sources.protocol import DEFAULT_FILESYSTEM, Batch, Reading
from iosig.warehouse.sources.rows import counters, times as job_times
from iosig.warehouse.sources.rows.delimited import LINE, RAW
from iosig.warehouse.sources.rows.faults import NOTED, Fault, sift, validate_rows
from iosig.warehouse.sources.rows.rejects import reject_batches

#: approximate number of rows per batch; a batch contains whole targets
BATCH_ROWS = 2_000_000
_FETCHED_ROWS = 100_000
#: number of instants to wait for a late target, more than a day at one per second
LATEST_INSTANTS = 100_000
#: value below any TS_ID
_BEFORE_ALL = -(1 << 63)
#: size of the header of an SQLite file [B]; size of a page [B] that the header states as 1
_HEADER_BYTES, _MAX_PAGE_BYTES = 100, 65536
REMEDY = "Check that the LMT database is complete and readable."
_NEEDED = {
    "OST_DATA": ("OST_ID", "TS_ID", "READ_BYTES", "WRITE_BYTES"),
    "TIMESTAMP_INFO": ("TS_ID", "TIMESTAMP"),
    "OST_INFO": ("OST_ID", "OSS_ID", "OST_NAME"),
    "OSS_INFO": ("OSS_ID", "FILESYSTEM_ID"),
    "FILESYSTEM_INFO": ("FILESYSTEM_ID", "FILESYSTEM_NAME"),
}


@dataclass(frozen=True, slots=True)
class Target:
    """A target's id in the database, its name and its file system (None if missing)."""

    ost_id: Any
    controller: str | None
    filesystem: str | None


@cache
def get_table(name: str) -> sa.TableClause:
    """Return one of LMT's tables, with the columns that are read."""
    return sa.table(name, *(sa.column(column) for column in _NEEDED[name]))


def check_tables(connection: sa.Connection) -> None:
    """Raise InputRefused if one of the tables or columns that are read is missing."""
    inspector = sa.inspect(connection)
    # LMT has tables; views are not accepted, because their queries could take forever.
    table_names = set(inspector.get_table_names())
    for name, columns in _NEEDED.items():
        if name not in table_names:
            raise InputRefused(f"The database has no table {name}.", REMEDY)
        absent = sorted(set(columns) - {column["name"] for column in inspector.get_columns(name)})
        if absent:
            raise InputRefused(f"The table {name} has no column {', '.join(absent)}.", REMEDY)


def fetch(connection: sa.Connection, query: sa.Select[Any], schema: dict[str, pl.DataType]) -> pl.DataFrame:
    """Fetch a query into typed columns; a value that does not fit its type becomes NULL."""
    pieces = [pl.DataFrame(schema=schema)]
    result = connection.execution_options(stream_results=True, max_row_buffer=_FETCHED_ROWS).execute(query)
    for rows in result.partitions(_FETCHED_ROWS):
        columns = zip(schema.items(), zip(*rows, strict=True), strict=True)
        pieces.append(pl.DataFrame([_column(name, dtype, values) for (name, dtype), values in columns]))
    return pl.concat(pieces)


def _column(name: str, dtype: pl.DataType, values: tuple[Any, ...]) -> pl.Series:
    if dtype == pl.String:
        return pl.Series(name, [None if value is None else str(value) for value in values], dtype=pl.String)
    try:
        return pl.Series(name, values, dtype=dtype)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        # Polars would truncate fractions.
        integers = [value if _is_whole(value) else None for value in values]
        return pl.Series(name, integers, dtype=dtype, strict=False)


def _is_whole(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().removeprefix("-").isdecimal()
    return isinstance(value, int | float | Decimal) and value % 1 == 0


def times_query() -> sa.Select[Any]:
    """Build the query for the polls' times: TS_ID and TIMESTAMP, ordered by TS_ID."""
    table = get_table("TIMESTAMP_INFO")
    return sa.select(table.c["TS_ID"], table.c["TIMESTAMP"]).order_by(table.c["TS_ID"])


def read_instants(connection: sa.Connection, zone: str | None, query: sa.Select[Any] | None = None) -> pl.DataFrame:
    """Read the polls' times: TS_ID, instant, reason and remedy; an ambiguous time is NULL.

    query: a restricted `times_query`; by default, all times are read.
    """
    query = times_query() if query is None else query
    times = fetch(connection, query, {"TS_ID": pl.Int64(), "TIMESTAMP": pl.String()})
    instants = job_times.parse(times["TIMESTAMP"], zone, "poll")
    parsed = times.select("TS_ID").with_columns(instants).unique(maintain_order=True)
    unambiguous = pl.when(~pl.col("TS_ID").is_duplicated()).then(pl.col("instant", "reason", "remedy"))
    return parsed.with_columns(unambiguous).unique("TS_ID", maintain_order=True)


def _names(connection: sa.Connection, name: str) -> dict[Any, Any]:
    """Read a table with two columns as a mapping, without keys that have two different values."""
    table = get_table(name)
    key, value = (table.c[column] for column in (_NEEDED[name][0], _NEEDED[name][1]))
    mapping: dict[Any, Any] = {}
    for its_key, its_value in connection.execute(sa.select(key, value)):
        mapping[its_key] = its_value if mapping.get(its_key, its_value) == its_value else None
    return mapping


def find_zone(connection: sa.Connection, reading: Reading) -> str | None:
    """Determine the zone of a database's local times; refuse a database if its file systems have different zones."""
    names = {_text(name) for name in _names(connection, "FILESYSTEM_INFO").values()} or {None}
    zones = {reading.zone_of(name) for name in names}
    if len(zones) > 1:
        raise InputRefused(
            f"The file systems of the database have different time zones: {', '.join(sorted(map(str, zones)))}.",
            "Pass the database's time zone with --time-zone.",
        )
    return job_times.require_zone(zones.pop())


def read_targets(connection: sa.Connection) -> dict[Any, Target]:
    """Read the targets of OST_INFO by OST_ID; an ambiguous name or file system is NULL."""
    info = get_table("OST_INFO")
    filesystem_of, name_of = _names(connection, "OSS_INFO"), _names(connection, "FILESYSTEM_INFO")
    rows = connection.execute(sa.select(info.c["OST_ID"], info.c["OST_NAME"], info.c["OSS_ID"]))
    names_by_id: dict[Any, tuple[Any, Any]] = {}
    for ost_id, name, oss_id in rows:
        names = (name, name_of.get(filesystem_of.get(oss_id)))
        before = names_by_id.get(ost_id, names)
        names_by_id[ost_id] = (names[0] if before[0] == names[0] else None, names[1] if before[1] == names[1] else None)
    return {
        ost_id: Target(ost_id, _text(name), _text(filesystem)) for ost_id, (name, filesystem) in names_by_id.items()
    }


def _targets(connection: sa.Connection) -> list[Target]:
    by_id = read_targets(connection)
    data = get_table("OST_DATA")
    ids = connection.execute(sa.select(data.c["OST_ID"]).distinct().order_by(data.c["OST_ID"])).scalars()
    return [by_id.get(ost_id, Target(ost_id, None, None)) for ost_id in ids]


def _text(value: Any) -> str | None:
    return str(value).strip() or None if value is not None else None


def _readings(connection: sa.Connection, target: Target, instants: pl.DataFrame, since: int) -> pl.DataFrame:
    """Read one target's counters after a TS_ID in time order, with the reasons why readings are unusable."""
    data = get_table("OST_DATA")
    names = ("TS_ID", *DIRECTIONS.values())
    query = sa.select(*(data.c[name] for name in names)).where(data.c["OST_ID"] == target.ost_id)
    if since > _BEFORE_ALL:
        query = query.where(data.c["TS_ID"] > since)
    rows = fetch(connection, query, {name: pl.Int64() for name in names})
    raw = pl.format("OST_ID {}, TS_ID {}: read {}, write {}", pl.lit(str(target.ost_id)), *names)
    return add_instants(rows.with_columns(raw.alias(RAW), pl.lit(None, pl.Int64).alias(LINE)), instants)


def add_instants(rows: pl.DataFrame, instants: pl.DataFrame) -> pl.DataFrame:
    """Add to each reading its instant, or the reason why it has no instant; sort by time."""
    return rows.join(instants, on="TS_ID", how="left", maintain_order="left").sort(
        "instant", "TS_ID", maintain_order=True
    )


def build_faults(*, has_name: bool) -> list[Fault]:
    """Build the checks of readings with instants, for targets with or without names."""
    no_counter = pl.any_horizontal(pl.col(name).is_null() | (pl.col(name) < 0) for name in DIRECTIONS.values())
    checks = [
        (
            pl.lit(not has_name),
            "The target has no unique name in OST_INFO.",
            "Export OST_INFO as well.",
        ),
        (
            pl.col("instant").is_null(),
            "The poll has no unique time in TIMESTAMP_INFO.",
            "Export TIMESTAMP_INFO as well.",
        ),
        (no_counter, "A byte counter is not a non-negative number.", "Correct the reading, or remove it."),
    ]
    return [NOTED, *(Fault(broken, reason, remedy) for broken, reason, remedy in checks)]


def drop_repeats(rows: pl.DataFrame, *of: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep the first reading at each instant; refuse a later one that differs.

    of: columns that identify the target, if the rows have several targets.
    """
    repeats = ~pl.struct("instant", *of).is_first_distinct()
    first = [pl.col(name).first().over("instant", *of) for name in DIRECTIONS.values()]
    differs = pl.any_horizontal(
        pl.col(name) != first_value for name, first_value in zip(DIRECTIONS.values(), first, strict=True)
    )
    fault = Fault(
        repeats & differs,
        "The target has another reading with other counters at the same time.",
        "Export the database in UTC, or remove the wrong reading.",
    )
    checked = sift(rows, [fault])
    return checked.rows.filter(~repeats), checked.refused


def compute_polls(readings: pl.DataFrame, is_first: counters.Marks | None = None) -> pl.DataFrame:
    """Convert readings in time order into rates (READ_BYTES, WRITE_BYTES, instant).

    is_first (n): marks the first reading of each target, which has no interval and yields no row. Returns instant,
    interval_s, the two rates and flag.
    """
    is_first = np.arange(readings.height) == 0 if is_first is None else is_first
    values = {name: readings[column].to_numpy() for name, column in DIRECTIONS.items()}
    codes = [counters.flag_server_counters(value, is_first) for value in values.values()]
    # A restart resets both counters, so the other one's delta is untrustworthy.
    either = np.where(np.any([code == counters.RESET for code in codes], axis=0), counters.RESET, np.max(codes, axis=0))
    interval = pl.col("instant").diff().dt.total_microseconds() / 1e6
    frame = readings.select("instant", interval.alias("interval_s")).with_columns(
        *(pl.Series(name, counters.compute_deltas(value)) for name, value in values.items()),
        counters.decode_flags(either),
    )
    rates = [pl.when(pl.col("flag").is_null()).then(pl.col(name) / pl.col("interval_s")).alias(name) for name in values]
    return frame.filter(~is_first).select("instant", "interval_s", *rates, "flag")


def _make_rows(target: Target, rates: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    filesystem = reading.filesystem or target.filesystem or DEFAULT_FILESYSTEM
    return rates.select(
        pl.col("instant").alias("polled_at"),
        pl.lit(filesystem).alias("filesystem"),
        pl.lit(target.controller, pl.String).alias("controller"),
        "interval_s",
        *DIRECTIONS,
        "flag",
        pl.lit(None, pl.Int64).alias(LINE),
    )


def _batches(
    connection: sa.Connection,
    reading: Reading,
    instants: pl.DataFrame,
    counted: dict[int | str, CounterState],
    low: int,
) -> Iterator[Batch]:
    """Yield the polls of all targets at instants after the TS_ID `low`.

    counted: the state of each target; it is updated.
    """
    waiting: list[pl.DataFrame] = []
    for target in _targets(connection):
        before = counted.get(target.ost_id)
        rows = _readings(connection, target, instants, max(low, before.ts_id) if before else low)
        usable = sift(rows, build_faults(has_name=target.controller is not None))
        readings, contradicting = drop_repeats(usable.rows)
        rates = _rates(readings, target, counted)
        validated = validate_rows(POLLS, _make_rows(target, rates, reading))
        yield from reject_batches(pl.concat([usable.refused, contradicting, validated.refused]))
        waiting.append(validated.rows.select(POLLS.column_names))
        if sum(rows.height for rows in waiting) >= BATCH_ROWS:
            yield Batch(POLLS, pl.concat(waiting))
            waiting = []
    if any(rows.height for rows in waiting):
        yield Batch(POLLS, pl.concat(waiting))


def _rates(readings: pl.DataFrame, target: Target, counted: dict[int | str, CounterState]) -> pl.DataFrame:
    """Compute a target's rates since its state, and update the state."""
    if readings.is_empty():
        return compute_polls(readings)
    before = counted.get(target.ost_id)
    earlier = convert_to_readings([0] if before else [], [before] if before else [])
    new = readings.select(pl.lit(0, pl.Int64).alias("target"), *earlier.columns[1:-1], is_new=pl.lit(True))
    all_readings = pl.concat([earlier, new])
    is_first = np.arange(all_readings.height) == 0
    counted.update(summarize_readings(all_readings, is_first, [target.ost_id]))
    return compute_polls(all_readings, is_first).filter(all_readings["is_new"][1:])


@contextmanager
def connect(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a connection for a `with` block; errors of the database become InputRefused."""
    try:
        with engine.connect() as connection:
            yield connection
    except (exc.SQLAlchemyError, sqlite3.Error) as error:
        lines = str(error.orig if isinstance(error, exc.DBAPIError) else error).splitlines()
        raise InputRefused(f"The database cannot be read: {lines[0] if lines else error}.", REMEDY) from error
    finally:
        engine.dispose()


def read_file(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read an LMT database in an SQLite file; its times are local in the reading's time zone."""
    with plain_file(path) as plain:
        _refuse_truncated(plain)
        # With `immutable`, SQLite writes no files next to the input, whether it is locked or not.
        address = sqlite_uri(plain, mode="ro", immutable=1)
        engine = sa.create_engine("sqlite://", creator=lambda: _open_sqlite(address))
        with connect(engine) as connection:
            connection.exec_driver_sql("PRAGMA trusted_schema = OFF")
            check_tables(connection)
            instants = read_instants(connection, find_zone(connection, reading))
            yield from _batches(connection, reading, instants, {}, _BEFORE_ALL)


def _refuse_truncated(path: Path) -> None:
    """Raise InputRefused for a database with fewer bytes than its header states; SQLite ignores an incomplete page."""
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    page_bytes = int.from_bytes(header[16:18], "big")
    page_count, changed, counted = (int.from_bytes(header[start : start + 4], "big") for start in (28, 24, 92))
    expected = page_count * (_MAX_PAGE_BYTES if page_bytes == 1 else page_bytes)
    # old versions of SQLite do not update the number of pages
    if changed == counted and path.stat().st_size < expected:
        raise InputRefused(
            f"The database is truncated: it has {path.stat().st_size:,} of {expected:,} bytes.", "Fetch it again."
        )


def _open_sqlite(address: str) -> sqlite3.Connection:
    """Open an SQLite file with the line limit as its maximum cell size."""
    connection = sqlite3.connect(address, uri=True)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, current_limits().max_line_bytes)
    return connection


def read_url(
    url: str, reading: Reading, cursor: Cursor | None = None, timeouts: Timeouts = DEFAULT_TIMEOUTS
) -> tuple[list[Batch], Cursor]:
    """Read an LMT database behind an SQLAlchemy URL (`mysql://`, `mariadb://` or `sqlite://`) from a cursor on.

    Returns the new data and the next cursor; all data if the cursor belongs to another database. Raises UsageError for
    a URL that no driver supports, InputRefused for a database that cannot be read or exceeds a time limit.
    """
    with connect(create_engine_for_url(url, timeouts)) as connection:
        check_tables(connection)
        zone = find_zone(connection, reading)
        low = cursor.ts_id - LATEST_INSTANTS if cursor else _BEFORE_ALL
        instants = read_instants(connection, zone, times_query().where(get_table("TIMESTAMP_INFO").c["TS_ID"] > low))
        stamps = _stamps(instants)
        if cursor and stamps.get(cursor.ts_id) != cursor.instant_us:
            cursor, low = None, _BEFORE_ALL
            instants = read_instants(connection, zone)
            stamps = _stamps(instants)
        counted = dict(cursor.counted) if cursor else {}
        batches = list(_batches(connection, reading, instants, counted, low))
    last = max((state.ts_id for state in counted.values()), default=0)
    return batches, Cursor(last, stamps.get(last), counted)


def _stamps(instants: pl.DataFrame) -> dict[int, int]:
    return dict(instants.select("TS_ID", pl.col("instant").dt.epoch("us")).drop_nulls().iter_rows())

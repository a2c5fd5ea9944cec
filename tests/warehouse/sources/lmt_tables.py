"""Write small LMT databases as SQLite files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

TABLES = """
create table OST_DATA (OST_ID, TS_ID, READ_BYTES, WRITE_BYTES, PCT_CPU);
create table TIMESTAMP_INFO (TS_ID, TIMESTAMP, primary key (TS_ID));
create table OST_INFO (OST_ID, OSS_ID, OST_NAME, HOSTNAME);
create table OSS_INFO (OSS_ID, FILESYSTEM_ID, HOSTNAME);
create table FILESYSTEM_INFO (FILESYSTEM_ID, FILESYSTEM_NAME);
"""

#: as LMT creates them (lmt-utils, scripts/create_lmt.sql), reduced to the columns that are read
MARIADB_TABLES = (
    "create table FILESYSTEM_INFO (FILESYSTEM_ID int auto_increment primary key, FILESYSTEM_NAME varchar(128))",
    "create table OSS_INFO (OSS_ID int auto_increment primary key, FILESYSTEM_ID int, HOSTNAME varchar(128))",
    "create table OST_INFO (OST_ID int auto_increment primary key, OSS_ID int, OST_NAME varchar(128))",
    "create table TIMESTAMP_INFO (TS_ID int unsigned auto_increment primary key, TIMESTAMP datetime not null, "
    "key (TIMESTAMP))",
    "create table OST_DATA (OST_ID int, TS_ID int unsigned, READ_BYTES bigint, WRITE_BYTES bigint, PCT_CPU float, "
    "primary key (TS_ID, OST_ID))",
    "insert into FILESYSTEM_INFO values (1, 'scratch')",
    "insert into OSS_INFO values (7, 1, 'oss1')",
    "insert into OST_INFO values (1, 7, 'scratch-OST0001'), (2, 7, 'scratch-OST0002')",
)

Rows = list[tuple[Any, ...]]


def database(
    folder: Path,
    readings: Rows,
    *,
    times: dict[int, Any] | None = None,
    infos: dict[str, Rows] | None = None,
) -> Path:
    """Write an LMT database of readings (OST_ID, TS_ID, READ_BYTES, WRITE_BYTES); TS_ID is the second."""
    given: dict[str, Rows] = {
        "OST_INFO": [(1, 7, "fs-OST0001", "h"), (2, 7, "fs-OST0002", "h")],
        "OSS_INFO": [(7, 1, "h"), (7, 1, "failover")],
        "FILESYSTEM_INFO": [(1, "scratch")],
    }
    given |= infos or {}
    path = folder / "lmt.sqlite3"
    path.unlink(missing_ok=True)
    stamps = (
        {ts: f"2026-01-01 00:00:{ts:02}" for _, ts, *_ in readings if isinstance(ts, int)} if times is None else times
    )
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(TABLES)
        connection.executemany("insert into OST_DATA values (?, ?, ?, ?, 0)", readings)
        connection.executemany("insert into TIMESTAMP_INFO values (?, ?)", stamps.items())
        for name, rows in given.items():
            for row in rows:
                connection.execute(f"insert into {name} values ({', '.join('?' * len(row))})", row)
        connection.commit()
    return path

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.polls.lmt_database import SOURCE, SQLITE_MAGIC, read_url, sniff
from iosig.warehouse.sources.protocol import Head, Reading, recognize
from tests.warehouse.sources.batch_reading import gathered, read_input
from tests.warehouse.sources.lmt_tables import database


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (SQLITE_MAGIC + b"... CREATE TABLE OST_DATA", True),
        (SQLITE_MAGIC + b"... CREATE TABLE jobs", False),
        (b"OST_DATA", False),
        (b"", False),
    ],
)
def test_only_sqlite_with_lmt_tables_is_recognized(content: bytes, expected: bool) -> None:
    assert sniff(Head("x", content)) is expected


def test_database_is_read_from_file_and_url(tmp_path: Path) -> None:
    path = database(tmp_path, [(1, 0, 1, 1), (1, 5, 2, 2)])
    assert recognize(read_head(path)) is SOURCE
    rows, refused = read_input(SOURCE, path)
    assert (rows.height, refused.height) == (1, 0)
    assert gathered(read_url(f"sqlite:///{path}", Reading(time_zone="UTC"), None)[0])[0].equals(rows)


def test_reading_of_url_resumes_at_cursor(tmp_path: Path) -> None:
    chance = random.Random(4)
    rows = [(ost, ts, chance.randrange(1 << 40), ts << 20) for ts in range(60) for ost in (1, 2)]
    whole = gathered(read_url(f"sqlite:///{database(tmp_path, rows)}", Reading(time_zone="UTC"), None)[0])[0]
    found, cursor = [], None
    for count in (1, 30, 31, 61, 61, len(rows)):
        url = f"sqlite:///{database(tmp_path, rows[:count])}"
        batches, cursor = read_url(url, Reading(time_zone="UTC"), json.loads(json.dumps(cursor)))
        found += batches
    order = ("controller", "polled_at")
    assert gathered(found)[0].sort(order).equals(whole.sort(order))
    assert whole["flag"].n_unique() == 3
    assert read_url(url, Reading(time_zone="UTC"), cursor) == ([], cursor)


def test_replaced_database_is_read_from_the_start(tmp_path: Path) -> None:
    _, cursor = read_url(
        f"sqlite:///{database(tmp_path, [(1, 0, 1, 1), (1, 5, 2, 2)])}", Reading(time_zone="UTC"), None
    )
    other = [(1, 7, 1, 1), (1, 9, 2, 2), (1, 12, 4, 4)]
    batches, _ = read_url(f"sqlite:///{database(tmp_path, other)}", Reading(time_zone="UTC"), cursor)
    assert gathered(batches)[0].height == 2


def test_reading_writes_no_files(tmp_path: Path) -> None:
    path = database(tmp_path, [(1, 0, 1, 1), (1, 5, 2, 2)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = wal")
    before = sorted(tmp_path.iterdir()), path.read_bytes()
    assert read_input(SOURCE, path)[0].height == 1
    assert (sorted(tmp_path.iterdir()), path.read_bytes()) == before


def test_real_counter_reset_is_a_flagged_gap(shared_data: Path) -> None:
    path = shared_data / "lmt" / "lmtdb-reset.sqlite3"
    rows, refused = read_input(SOURCE, path, Reading(time_zone="America/Los_Angeles"))
    assert refused.is_empty()
    assert rows.height == 25
    gap = rows.filter(pl.col("flag").is_not_null())
    assert gap.select("polled_at", "interval_s", "read_bytes_per_s", "write_bytes_per_s", "flag").rows() == [
        (datetime(2018, 4, 18, 14, 39, 5, tzinfo=UTC), 200.0, None, None, "reset")
    ]
    for direction in ("read_bytes_per_s", "write_bytes_per_s"):
        assert rows[direction].drop_nulls().is_between(0, 1e9).all()
    assert 62_537_728 / 5 in rows["read_bytes_per_s"].to_list()

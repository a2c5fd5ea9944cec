"""Test positions: input is landed once, even if a call is killed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.store import landing
from iosig.warehouse.store.positions import Position, position
from iosig.warehouse.store.store import Store


def batch(number: int) -> list[Batch]:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    row = {"polled_at": at, "controller": f"c{number}", "filesystem": "fs", "interval_s": 1.0}
    return [Batch(POLLS, pl.DataFrame([dict.fromkeys(POLLS.column_names) | row], schema=frames.schema(POLLS)))]


def land(begun: Position, number: int) -> None:
    begun.land(f"read to {number}", "csv", batch(number), {"to": number}, None)


def stored(store: Store) -> list[str]:
    return [one.source_file for one in landing.ledger(store)]


def test_landing_advances_the_position(tmp_path: Path) -> None:
    store = Store(tmp_path)
    begun = position(store, "a")
    assert (begun.cursor, begun.last()) == (None, None)
    land(begun, 1)
    again = position(store, "a")
    assert again.cursor == {"to": 1}
    last = again.last()
    assert last is not None
    assert (last.landing.source_file, last.is_new) == ("read to 1", False)
    assert position(store, "b").cursor is None
    again.move({"to": 2})
    assert position(store, "a").cursor == {"to": 2}
    assert position(store, "a").last() == last


def test_repeated_read_lands_only_if_content_differs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number, is_new in ((1, True), (1, False), (2, True)):
        begun = position(store, "a")
        begun.move(None)
        begun = position(store, "a")
        assert begun.land("read", "csv", batch(number), {"to": 1}, None).is_new == is_new
        assert position(store, "a").cursor == {"to": 1}


def test_position_has_format_of_older_warehouses(tmp_path: Path) -> None:
    store = Store(tmp_path)
    land(position(store, "a"), 1)
    (path,) = (tmp_path / "positions").iterdir()
    told = json.loads(path.read_text())
    assert told == {"cursor": None, "next": {"to": 1}, "landing_id": landing.ledger(store)[0].landing_id}

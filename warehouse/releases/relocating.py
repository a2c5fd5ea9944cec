"""Relocating: metadata name the folder in which a warehouse lies now, after it was moved or copied."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

from warehouse.releases import seals
from warehouse.releases.catalogue import leave_hints
from warehouse.releases.locations import location_of, root_before
from warehouse.store.store import Store

_METADATA = ("*-m[0-9]*.avro", "snap-*.avro", "*.metadata.json")
_COLUMNS = ("metadata_location", "previous_metadata_location")


def relocate(store: Store) -> int:
    """Have all metadata name the warehouse's own folder; return how many files were changed.

    No data file is touched. The catalogue is changed last: a run that was killed at it is done again.
    """
    before, now = root_before(store), location_of(store.root)
    if before is None or before == now:
        return 0
    # Lists say how long manifests are, and metadata which lists there are.
    manifests, lists, documents = (store.files.matching(f"tables/*/metadata/{pattern}") for pattern in _METADATA)
    for name in (*manifests, *lists):
        _rewrite_avro(store, name, before, now)
    for name in documents:
        with store.files.opened(name) as file:
            moved = _moved(json.load(file), before, now)
        store.files.put(name, json.dumps(moved).encode())
    seals.renew(store)
    _rewrite_catalogue(store, before, now)
    leave_hints(store)
    return len(manifests) + len(lists) + len(documents)


def _rewrite_avro(store: Store, name: str, before: str, now: str) -> None:
    import fastavro

    with store.files.opened(name) as file:
        reader = fastavro.reader(file)
        header: dict[str, str] = dict(reader.metadata)
        records = [_located(record, before, now) for record in reader]
    schema, codec = json.loads(header.pop("avro.schema")), header.pop("avro.codec", "null")
    content = BytesIO()
    fastavro.writer(content, schema, records, codec=codec, metadata=header)
    store.files.put(name, content.getvalue())


def _located(record: Any, before: str, now: str) -> Any:
    moved = _moved(record, before, now)
    if "manifest_length" in moved:
        moved["manifest_length"] = Path(moved["manifest_path"].removeprefix("file://")).stat().st_size
    return moved


def _moved(value: Any, before: str, now: str) -> Any:
    """Return what metadata say, with every location below the folder of before in that of now."""
    if isinstance(value, dict):
        return {name: _moved(item, before, now) for name, item in value.items()}
    if isinstance(value, list):
        return [_moved(item, before, now) for item in value]
    if isinstance(value, str) and value.startswith(f"{before}/"):
        return now + value.removeprefix(before)
    return value


def _rewrite_catalogue(store: Store, before: str, now: str) -> None:
    with closing(sqlite3.connect(store.catalogue)) as connection, connection:
        for column in _COLUMNS:
            connection.execute(
                f"update iceberg_tables set {column} = ? || substr({column}, ?) where substr({column}, 1, ?) = ?",
                (now, len(before) + 1, len(before) + 1, f"{before}/"),
            )

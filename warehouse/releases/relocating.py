"""Relocating: metadata name the folder in which a warehouse lies now, after it was moved or copied."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

from iosig.warehouse.engine_paths import path_of_location
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases import seals
from iosig.warehouse.releases.catalogue import leave_hints, make_catalogue
from iosig.warehouse.releases.locations import location_of, metadata_locations, root_before
from iosig.warehouse.releases.servers import EMBEDDED, Server, note, register, require_free, server_of, written
from iosig.warehouse.store.store import Store

_METADATA = ("*-m[0-9]*.avro", "snap-*.avro", "*.metadata.json")
_COLUMNS = ("metadata_location", "previous_metadata_location")


def relocate(store: Store, *, is_asked: bool = False) -> int:
    """Have all metadata name the warehouse's own folder; return how many files were changed.

    No data file is touched. The catalogue is changed last: a run that was killed at it is done again. A copy has its
    own SQLite file, but not its own server: there, UsageError is raised unless it was asked for.
    """
    if server_of(store).kind == "rest":
        # its namespace says whose tables are in it
        return 0
    before, now = root_before(store), location_of(store)
    if before is None or before == now:
        return 0
    server = server_of(store)
    if server != EMBEDDED and not is_asked:
        raise UsageError(
            f"The catalogue {server} names {before}. Where the warehouse was moved from there, say `iosig relocate`; "
            "where this is a copy, give it a catalogue of its own, and `iosig relocate`."
        )
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


def take_over(store: Store, wanted: Server) -> bool:
    """Have another catalogue name the tables of a warehouse; return whether it did not before.

    What it names is written before the warehouse's note of it, which decides; the one before forgets the tables last.
    A copy of a warehouse leaves the other's catalogue alone, and makes its own of what lies in it.
    """
    known = server_of(store)
    if wanted == known:
        return False
    if "rest" in (known.kind, wanted.kind):
        raise UsageError(
            f"The catalogue of {store.name} is {known}. A REST server's tables lie where it takes them: a warehouse "
            "begins with one, or without."
        )
    require_free(store, wanted)
    if known == EMBEDDED:
        relocate(store)
    is_own = root_before(store) in (None, location_of(store))
    make_catalogue(store, wanted)
    register(store, wanted, metadata_locations(store) if is_own else {})
    note(store, wanted)
    if not is_own:
        from iosig.warehouse.releases.repairing import repair

        repair(store)
    elif known == EMBEDDED:
        store.files.remove(store.catalogue.name)
    else:
        register(store, known, {})
    return True


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
        manifest = path_of_location(moved["manifest_path"])
        assert manifest is not None
        moved["manifest_length"] = Path(manifest).stat().st_size
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
    from sqlalchemy import text

    told = {"now": now, "begin": len(before) + 1, "before": f"{before}/"}
    server = server_of(store)
    with written(store, server) as connection:
        for column in _COLUMNS:
            query = f"""
                update iceberg_tables set {column} = cast(:now as varchar) || substr({column}, :begin)
                where catalog_name = :name and substr({column}, 1, :begin) = :before
            """
            connection.execute(text(query), told | {"name": server.name})

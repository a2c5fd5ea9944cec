"""Rewrite the paths in Iceberg metadata after a warehouse was moved or copied.

Data files are not touched. The checksums of the rewritten files are recorded first, and the catalogue is updated last.
If a relocation is killed, the next one starts over; until then, `verify` accepts both states.
"""

from __future__ import annotations

import hashlib
import json
from io import BytesIO
from typing import Any

from iosig.warehouse.engine_paths import is_url
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases import checksums, seals
from iosig.warehouse.releases.catalogue import leave_hints
from iosig.warehouse.releases.locations import (
    get_location,
    get_relative_name,
    is_moved,
    metadata_locations,
    root_before,
)
from iosig.warehouse.releases.servers import EMBEDDED, get_server, register
from iosig.warehouse.store.files import FileChecksum
from iosig.warehouse.store.store import Store

#: in this order, because manifest lists contain the lengths of manifests
_METADATA = ("*-m[0-9]*.avro", "snap-*.avro", "*.metadata.json")
_SYNC_BYTES = 16


def relocate(store: Store, *, is_asked: bool = False) -> int:
    """Rewrite all metadata that names a folder other than the current one; return the number of rewritten files.

    A damaged file and its checksum are left unchanged. Raises UsageError for a catalogue on a server unless `is_asked`:
    a copy must not take over the catalogue of the original.
    """
    server = get_server(store)
    # on a REST server, the namespace records the warehouse that owns its tables
    if server.kind == "rest" or not is_moved(store):
        return 0
    if server != EMBEDDED and not is_asked:
        raise UsageError(
            f"The catalogue {server} names {root_before(store)}. If the warehouse was moved from there, run `iosig "
            "repair`. If this is a copy, set another catalogue in the settings, then run `iosig repair`."
        )
    rewritten = _plan(store)
    checksums.write(store, checksums.RELOCATION, rewritten)
    for name in rewritten:
        store.files.put(name, _relocate_metadata(store, name, rewritten))
    seals.replace_checksums(store, rewritten)
    root = get_location(store)
    locations = {
        table: f"{root}/{get_relative_name(table, place)}" for table, place in metadata_locations(store).items()
    }
    register(store, server, locations)
    leave_hints(store)
    store.files.remove(checksums.RELOCATION)
    return len(rewritten)


def _plan(store: Store) -> dict[str, FileChecksum]:
    """Return the metadata files to rewrite, each with its future checksum."""
    recorded = seals.all_checksums(store)
    relocated = checksums.read(store, checksums.RELOCATION) or {}
    planned: dict[str, FileChecksum] = {}
    for name in (name for pattern in _METADATA for name in store.files.matching(f"tables/*/metadata/{pattern}")):
        expected = [document[name] for document in (recorded, relocated) if name in document]
        if expected and all(checksums.find_problem(store, name, sealed) for sealed in expected):
            continue
        try:
            content = _relocate_metadata(store, name, planned)
        except (ValueError, KeyError, TypeError, EOFError, IndexError):
            # the file is unreadable, but no release references it
            continue
        planned[name] = FileChecksum(len(content), hashlib.sha256(content).hexdigest())
    return planned


def _relocate_metadata(store: Store, name: str, rewritten: dict[str, FileChecksum]) -> bytes:
    """Return a metadata file's content with the current folder in all locations."""
    root, table = get_location(store), name.split("/")[1]
    if name.endswith(".json"):
        with store.files.open(name) as file:
            return json.dumps(_relocate_value(json.load(file), root, table)).encode()
    import fastavro

    with store.files.open(name) as file:
        reader = fastavro.reader(file)
        header: dict[str, str] = dict(reader.metadata)
        records = [_relocate_value(record, root, table) for record in reader]
    for record in records:
        if "manifest_length" in record:
            manifest = get_relative_name(table, record["manifest_path"])
            if manifest in rewritten:
                record["manifest_length"] = rewritten[manifest].byte_count
    schema, codec = json.loads(header.pop("avro.schema")), header.pop("avro.codec", "null")
    content = BytesIO()
    # deterministic content, so its checksum is known before the file is written
    marker = hashlib.sha256(name.encode()).digest()[:_SYNC_BYTES]
    fastavro.writer(content, schema, records, codec=codec, metadata=header, sync_marker=marker)
    return content.getvalue()


def _relocate_value(value: Any, root: str, table: str) -> Any:
    """Replace the folder by `root` in every location in a table's metadata."""
    if isinstance(value, dict):
        return {name: _relocate_value(item, root, table) for name, item in value.items()}
    if isinstance(value, list):
        return [_relocate_value(item, root, table) for item in value]
    if not isinstance(value, str) or not is_url(value):
        return value
    folder = f"/tables/{table}"
    if value.endswith(folder):
        return f"{root}{folder}"
    return f"{root}/{get_relative_name(table, value)}" if f"{folder}/" in value else value

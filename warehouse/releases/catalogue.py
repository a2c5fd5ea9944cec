"""The Iceberg catalogue: versions of published tables, in an SQLite file beside them.

Every location in it starts with `warehouse://`, which is resolved against the folder in which the
catalogue lies now, so a warehouse can be moved or copied as a whole.
"""

from __future__ import annotations

import os
import warnings
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, In, IsNull, Or
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import IdentityTransform

from warehouse.contracts import Table, arrow, frames
from warehouse.placing import moved_into_place
from warehouse.store.store import Store, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.typedef import Properties

SCHEME = "warehouse://"
NAMESPACE = "published"
_ROOT = "iosig.root"
_FINGERPRINT = "iosig.fingerprint"


class MovableFileIO(PyArrowFileIO):
    """Local files whose locations are relative to the warehouse's folder."""

    @staticmethod
    def parse_location(location: str, properties: Properties = {}) -> tuple[str, str, str]:  # noqa: B006
        """Return (scheme, netloc, path) of a location, `warehouse://` resolved."""
        if location.startswith(SCHEME):
            return "file", "", os.path.join(properties[_ROOT], location.removeprefix(SCHEME))
        return PyArrowFileIO.parse_location(location, properties)


def open_catalogue(store: Store) -> SqlCatalog:
    """Open the warehouse's catalogue; it comes into being on first use."""
    store.root.mkdir(parents=True, exist_ok=True)
    catalogue = SqlCatalog(
        "iosig",
        **{
            "uri": f"sqlite:///{store.catalogue.resolve()}",
            "warehouse": SCHEME,
            "py-io-impl": f"{MovableFileIO.__module__}.{MovableFileIO.__qualname__}",
            _ROOT: str(store.root.resolve()),
        },
    )
    catalogue.create_namespace_if_not_exists(NAMESPACE)
    return catalogue


def ensure(catalogue: SqlCatalog, table: Table) -> IcebergTable:
    """Return the Iceberg table of a contract, made or widened to the contract's columns if need be."""
    identifier = (NAMESPACE, table.name)
    schema = arrow.schema(table)
    try:
        found = catalogue.load_table(identifier)
    except NoSuchTableError:
        with catalogue.create_table_transaction(
            identifier, schema, f"{SCHEME}tables/{table.name}", PartitionSpec(), properties={"comment": table.grain}
        ) as transaction:
            if table.partition:
                with transaction.update_spec() as spec:
                    spec.add_field(table.partition, IdentityTransform(), table.partition)
        return catalogue.load_table(identifier)
    known = {field.name for field in found.schema().fields}
    # Rows that are there already have no value in a new column, whatever the contract asks of new ones.
    new = [field.with_nullable(True) for field in schema if field.name not in known]
    if new:
        with found.update_schema() as update:
            update.union_by_name(pa.schema(new))
    return found


def replace(
    catalogue: SqlCatalog,
    store: Store,
    table: Table,
    built: Mapping[date | None, Path],
    *,
    base_snapshot: int | None,
    fingerprint: str,
) -> int | None:
    """Replace a table's days (the whole table, if it has no partition) by built files, on top of a snapshot.

    `built` maps a day to its Parquet file (no file where the day has no rows). The files become the
    table's own. What a crashed run left above `base_snapshot` is dropped. Returns the new snapshot's id, None
    where the table has never had a row.
    """
    if base_snapshot is None and not any(_has_rows(path) for path in built.values()):
        return None
    iceberg = ensure(catalogue, table)
    head = iceberg.current_snapshot()
    if base_snapshot is not None and head is not None and head.snapshot_id != base_snapshot:
        iceberg.manage_snapshots().set_current_snapshot(base_snapshot).commit()
        iceberg = catalogue.load_table((NAMESPACE, table.name))
    locations = [_adopt(store, table, day, path, fingerprint) for day, path in built.items() if _has_rows(path)]
    properties = {_FINGERPRINT: fingerprint}
    with warnings.catch_warnings(), iceberg.transaction() as transaction:
        # A day that is new has nothing to be deleted.
        warnings.filterwarnings("ignore", "Delete operation did not match any records")
        if iceberg.current_snapshot() is not None:
            whole = table.partition is None or base_snapshot is None
            scope = AlwaysTrue() if whole else _days(table, list(built))
            transaction.delete(scope, snapshot_properties=properties)
        if locations:
            transaction.add_files(locations, snapshot_properties=properties)
    snapshot = iceberg.current_snapshot()
    return snapshot.snapshot_id if snapshot else None


def _has_rows(path: Path) -> bool:
    return path.is_file() and pq.read_metadata(path).num_rows > 0


def _days(table: Table, days: list[date | None]) -> BooleanExpression:
    dated = [day for day in days if day is not None]
    column = table.partition or ""
    among: BooleanExpression = In(column, dated) if dated else AlwaysFalse()  # type: ignore
    return Or(among, IsNull(column)) if None in days else among  # type: ignore


def _adopt(store: Store, table: Table, day: date | None, path: Path, fingerprint: str) -> str:
    """Bring a built file into the table's own folder and return its location.

    Whoever wrote the file, and whenever: it is held to the contract once more, so that nothing else is published.
    """
    frames.require_file(path, table)
    place = f"tables/{table.name}/data/{day.isoformat() if day else 'undated'}-{fingerprint}.parquet"
    target = store.root / place
    with moved_into_place(target) as temporary:
        os.link(path, temporary)
    return SCHEME + place


def snapshot_files(catalogue: SqlCatalog, table_name: str, snapshot_id: int) -> list[str]:
    """Return the data files of a snapshot, relative to the warehouse's folder, sorted.

    Raises AssertionError if the snapshot has delete files, which plain Parquet readers would ignore.
    """
    table = catalogue.load_table((NAMESPACE, table_name))
    tasks = list(table.scan(snapshot_id=snapshot_id).plan_files())
    assert not any(task.delete_files for task in tasks)
    return sorted(task.file.file_path.removeprefix(SCHEME) for task in tasks)


def reset(catalogue: SqlCatalog, table_name: str, snapshot_id: int) -> None:
    """Make an earlier snapshot of a table its current one."""
    table = catalogue.load_table((NAMESPACE, table_name))
    head = table.current_snapshot()
    if head is None or head.snapshot_id != snapshot_id:
        table.manage_snapshots().set_current_snapshot(snapshot_id).commit()


def remember_files(store: Store, table_name: str, snapshot_id: int, files: list[str]) -> None:
    """Write a snapshot's file list beside the catalogue, so that readers need no Iceberg library."""
    write_json(files, store.root / "snapshot_files" / f"{table_name}-{snapshot_id}.json")

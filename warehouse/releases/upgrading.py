"""Upgrade a warehouse of commit 18b5d00 to the current format; releases, ids and check results are preserved.

An upgrade is atomic: the old files are kept until the new ones are verified. After an error, they are restored at once;
after a kill, the next upgrade restores them. All files with renamed columns are rewritten.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from iosig.warehouse import renames
from iosig.warehouse.contracts import TABLES, Table, table as contract
from iosig.warehouse.contracts.attribution import ATTRIBUTED_IO
from iosig.warehouse.contracts.job_io import JOB_IO, JOB_IO_SOURCES
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.errors import MachineFault, UsageError
from iosig.warehouse.placing import move
from iosig.warehouse.releases import checksums, conversion, releases, seals
from iosig.warehouse.releases.catalogue import (
    leave_hints,
    open_catalogue,
    open_transaction,
    replace,
    snapshot_files,
    tag,
)
from iosig.warehouse.releases.links import LATEST, link_latest
from iosig.warehouse.releases.locations import CACHES, Part, data_place, get_location
from iosig.warehouse.releases.publishing import append_row
from iosig.warehouse.releases.releases import AS_JSON, EXPIRED, Release
from iosig.warehouse.releases.servers import EMBEDDED, NAMESPACE, get_server
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store import state
from iosig.warehouse.store.buckets import BUCKET_COUNT, split_parquet
from iosig.warehouse.store.form import FILE, FORM, FORMER, UNFINISHED, mark_form, read_form, upgrading
from iosig.warehouse.store.manifests import manifest_in
from iosig.warehouse.store.store import Store, document, put_document

#: called after each file and release with the number done and the total
Progress = Callable[[int, int], None]
#: backup folder for the old files during an upgrade
_BACKUP_FOLDER = "before-upgrade"
_NOTE = UNFINISHED
#: files and folders that are moved to the backup
_MOVED = ("catalogue.sqlite", "tables", checksums.SEALS, LATEST, f".{LATEST}-*", "builds", "sound.json", *CACHES)
#: file that marks that all files in `_MOVED` were moved
_ALL_MOVED = f"{_BACKUP_FOLDER}/moved.json"
#: files that an upgrade creates
_CREATED = (*_MOVED, state.FOLDER)
#: a table that exists only in development versions after commit 18b5d00
_BETWEEN = JOB_IO_SOURCES.name


@dataclass(frozen=True, slots=True)
class Needs:
    """Number and size of the files that an upgrade rewrites."""

    form: int
    file_count: int
    written_bytes: int

    @property
    def duration_s(self) -> float:
        """Estimated duration, at 50 MB/s and 100 files per second."""
        return self.written_bytes / 5e7 + self.file_count / 100


def needs(store: Store) -> Needs | None:
    """Estimate the work of an upgrade; None if the warehouse is empty or already has the current format.

    Raises UsageError for a warehouse of a version other than commit 18b5d00.
    """
    form = read_form(store)
    if form is None or form >= FORM:
        return None
    source = Store(store.root / _BACKUP_FOLDER) if (store.root / _BACKUP_FOLDER / "tables").is_dir() else store
    if form != FORMER or (source.tables / _BETWEEN).exists():
        raise UsageError(
            f"{store.name} was made by a version other than commit 18b5d00: land its inputs in a new warehouse."
        )
    if store.url is not None or get_server(source) != EMBEDDED:
        raise UsageError(
            f"The catalogue of {store.name} is on a server: only warehouses with a catalogue file can be upgraded. "
            "Move the catalogue into the warehouse with commit 18b5d00 (`iosig relocate`), or land the inputs again."
        )
    files = [*source.tables.glob("*/data/*.parquet"), *(store.root / part["path"] for part in _find_affected(store))]
    return Needs(form, len(files), sum(path.stat().st_size for path in files if path.is_file()))


def upgrade(store: Store, progress: Progress = lambda *_: None) -> None:
    """Convert a warehouse to the current format and verify it; does nothing if it is up to date.

    After an error, and if a file is damaged (MachineFault), the warehouse is restored.
    """
    undo(store)
    if needs(store) is None:
        return
    _keep(store)
    try:
        with upgrading(store):
            _convert(store, progress)
            damages = verify(store, is_all=True)
        if damages:
            more = f", and {len(damages) - 1:,} more files" if len(damages) > 1 else ""
            raise MachineFault(
                f"{store.root / damages[0].path} {damages[0].problem}{more}. Restore it, then upgrade again."
            )
    except BaseException:
        undo(store)
        raise
    # from here on, readers see the new format
    store.files.remove(_NOTE)
    store.files.remove(_BACKUP_FOLDER)


def _find_affected(store: Store) -> list[dict[str, Any]]:
    """Return the manifest entries of landed files that have renamed columns or values."""
    tables = {table.name for table in TABLES if table.layer == "landed" and conversion.is_affected(table)}
    manifests = (document(store, name) for name in store.files.matching(manifest_in("*")))
    return [part for manifest in manifests for part in manifest["parts"] if part["table"] in tables]


def _keep(store: Store) -> None:
    """Move the old releases to the backup, and link the landed files that will be replaced."""
    landed = [FILE, *store.files.matching(manifest_in("*")), *(part["path"] for part in _find_affected(store))]
    for name in landed:
        store.files.take(store.root / name, f"{_BACKUP_FOLDER}/{name}")
    put_document(store, _NOTE, landed)
    for path in (path for pattern in _MOVED for path in store.root.glob(pattern)):
        move(path, store.root / _BACKUP_FOLDER / path.name)
    put_document(store, _ALL_MOVED, True)


def undo(store: Store) -> None:
    """Undo an incomplete upgrade: remove the files that it created, and restore the old ones."""
    landed: list[str] | None = document(store, _NOTE)
    if landed is not None:
        backups = [path for pattern in _MOVED for path in (store.root / _BACKUP_FOLDER).glob(pattern)]
        if store.files.mark(_ALL_MOVED):
            # the upgrade created these files
            store.files.remove(*_CREATED)
            store.files.remove(_ALL_MOVED)
        for path in backups:
            move(path, store.root / path.name)
        for name in landed:
            store.files.take(store.root / _BACKUP_FOLDER / name, name)
    store.files.remove(_BACKUP_FOLDER)


# ---- conversion


def _convert(store: Store, progress: Progress) -> None:
    old = Store(store.root / _BACKUP_FOLDER)
    _convert_landings(store)
    mark_form(store)
    _convert_releases(store, old, progress)
    store.files.protect("tables/*/data/*.parquet", "landed/*/*.parquet")
    for release in releases.list_readable(store):
        seals.seal(store, release)
    if current := releases.current(store):
        link_latest(store, current)
    leave_hints(store)
    checksums.seal_catalogue(store)
    state.copy_all(store)


def _convert_landings(store: Store) -> None:
    affected = {part["path"] for part in _find_affected(store)}
    for name in store.files.matching(manifest_in("*")):
        manifest = document(store, name)
        parts = [_convert_part(store, part) if part["path"] in affected else part for part in manifest["parts"]]
        put_document(store, name, manifest | {"parts": parts})


def _convert_part(store: Store, part: dict[str, Any]) -> dict[str, Any]:
    place = part["path"]
    if (
        checksums.find_problem(store, place, store.files.compute_checksum(place))
        or store.files.compute_checksum(place).sha256 != part["sha256"]
    ):
        raise MachineFault(f"{store.root / place} is damaged. Restore it, then upgrade again.")
    conversion.convert_landed(contract(part["table"]), store.root / _BACKUP_FOLDER / place, store.root / place)
    return part | asdict(store.files.compute_checksum(place))


def _convert_releases(store: Store, old: Store, progress: Progress) -> None:
    """Rewrite the tables of every release into a new catalogue; release ids stay the same."""
    with open_catalogue(old) as catalogue:
        if not catalogue.table_exists((NAMESPACE, RELEASES.name)):
            return
        rows = catalogue.load_table((NAMESPACE, RELEASES.name)).scan().to_arrow().to_pylist()
        rows.sort(key=lambda row: row["sequence"])
        expired_ids = state.read_state(store, EXPIRED) or {}
        snapshots = [{} if row["release_id"] in expired_ids else json.loads(row["snapshots"]) for row in rows]
        snapshot_keys = {(name, number) for ids in snapshots for name, number in ids.items()}
        files = {(name, number): snapshot_files(catalogue, name, number) for name, number in sorted(snapshot_keys)}
    jobs = {name for (table_name, _), names in files.items() if table_name == JOBS.name for name in names}
    ids = conversion.map_application_ids([old.root / name for name in sorted(jobs)])
    files_of = _Files(store, old, files, ids)
    new_ids: dict[tuple[str, tuple[str, ...]], int] = {}
    with open_transaction(store) as catalogue:
        for count, (row, old_ids) in enumerate(zip(rows, snapshots, strict=True), 1):
            release_id, current_ids = row["release_id"], {}
            for table in releases.list_published_tables() if old_ids else ():
                places = files_of.convert_table(table, old_ids)
                key = table.name, places
                if key in new_ids:
                    tag(catalogue, table.name, new_ids[key], release_id)
                else:
                    locations = [f"{get_location(store)}/{place}" for place in places]
                    new_ids[key] = replace(catalogue, table, locations, days=None, tag=release_id).snapshot_id
                current_ids[table.name] = new_ids[key]
            append_row(
                catalogue,
                store,
                _release(row, current_ids),
                json.loads(row["inputs"]),
                json.loads(row["removed_inputs"]),
            )
            progress(count, len(rows))


@dataclass
class _Files:
    """The files of old snapshots, by table and snapshot, and the locations of their converted files.

    application_ids: id by former id.
    """

    store: Store
    old: Store
    files: Mapping[tuple[str, int], list[str]]
    application_ids: Mapping[str, str]
    _places: dict[tuple[str, str], str | None] = field(default_factory=dict)
    _job_io: dict[tuple[tuple[str, ...], ...], tuple[str, ...]] = field(default_factory=dict)
    _buckets: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)

    def convert_table(self, table: Table, snapshots: Mapping[str, int]) -> tuple[str, ...]:
        """Return the locations of a table's converted files in a release; each file is converted once."""
        if table == JOB_IO:
            return self._job_io_of(snapshots)
        name = conversion.SOURCES.get(table) or _FORMER_TABLES.get(table.name, table.name)
        names = self.files.get((name, snapshots.get(name, 0)), [])
        if table.bucketed_by and self.application_ids:
            return self._split(table, names)
        places = (self._convert(table, old) for old in names)
        return tuple(place for place in places if place is not None)

    def _convert(self, table: Table, name: str) -> str | None:
        if (table.name, name) not in self._places:
            place = f"tables/{table.name}/data/{Path(name).name}"
            source, target = self.old.root / name, self.store.root / place
            is_filled = conversion.convert_file(table, source, target, self.application_ids)
            self._places[table.name, name] = place if is_filled else None
        return self._places[table.name, name]

    def _split(self, table: Table, names: Sequence[str]) -> tuple[str, ...]:
        """Convert a bucketed table: an application with another id belongs to another bucket."""
        if (key := tuple(names)) not in self._buckets:
            folder = self.old.root / "buckets" / str(len(self._buckets))
            targets = {folder / Path(name).name: self.old.root / name for name in names}
            converted = [
                target
                for target, source in targets.items()
                if conversion.convert_file(table, source, target, self.application_ids)
            ]
            buckets = {bucket: folder / f"{bucket}.parquet" for bucket in range(BUCKET_COUNT)}
            split_parquet(converted, table, buckets)
            filled = {bucket: path for bucket, path in buckets.items() if path.exists()}
            self._buckets[key] = tuple(self._adopt(table, bucket, path) for bucket, path in filled.items())
        return self._buckets[key]

    def _job_io_of(self, snapshots: Mapping[str, int]) -> tuple[str, ...]:
        inputs = tuple(self.convert_table(table, snapshots) for table in (JOB_IO_SOURCES, ATTRIBUTED_IO))
        if inputs not in self._job_io:
            paths = [[self.store.root / place for place in places] for places in inputs]
            paths_by_day = conversion.convert_job_io(self.old.root / "job_io", *paths)
            days = {day: date.fromisoformat(day) if day else None for day in paths_by_day}
            self._job_io[inputs] = tuple(self._adopt(JOB_IO, days[day], path) for day, path in paths_by_day.items())
        return self._job_io[inputs]

    def _adopt(self, table: Table, part: Part, path: Path) -> str:
        """Move a file to its table's folder, under a name derived from its content."""
        sealed = self.old.files.compute_checksum(path.relative_to(self.old.root).as_posix())
        place = data_place(table, part, sealed.sha256[:16])
        self.store.files.take(path, place)
        return place


_FORMER_TABLES = {new: old for old, new in renames.TABLES.items()}


def _release(row: Mapping[str, Any], snapshots: dict[str, int]) -> Release:
    """Return a release with current names; its parameters record the conversion."""
    lists = {name: json.loads(row[name]) for name in AS_JSON}
    return Release(
        release_id=row["release_id"],
        sequence=row["sequence"],
        created_at=row["created_at"].isoformat(),
        kind=row["kind"],
        parent_release_id=row["parent_release_id"],
        code_version=row["code_version"],
        dates=tuple(lists["dates"]),
        newest_data_on=releases.newest_day(lists["dates"]),
        input_count=len(lists["inputs"]),
        removed_input_count=len(lists["removed_inputs"]),
        parameters=json.dumps(_parameters(json.loads(row["parameters"])), sort_keys=True),
        snapshots=snapshots,
        verdict=renames.get_renamed_values(RELEASES.name)["verdict"].get(row["verdict"], row["verdict"]),
    )


def _parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the settings that affect results, and record the version that the release comes from."""
    renamed = renames.rename_settings(parameters)
    if "methods" in renamed.get("signatures", {}):
        values = renames.REDEFINED_VALUES["method"]
        renamed["signatures"]["methods"] = [values.get(name, name) for name in renamed["signatures"]["methods"]]
    return renamed | {releases.CONVERTED: renames.COMMIT}

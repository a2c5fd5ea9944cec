"""Read releases, which are named, immutable sets of snapshots, and their history.

A release is one row of the Iceberg table `releases` and a tag on every table. Both are committed together, so readers
see a release completely or not at all. Its position in the history is a sequence number rather than a time, since
clocks can be set back. Readers need no Iceberg library: the rows and each snapshot's file list are also cached as JSON,
named after the immutable object they describe, and rebuilt when missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from iosig.warehouse.contracts import TABLES, Table
from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.engine_paths import scan_parquet
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases.locations import INDEX, LISTS, releases_location
from iosig.warehouse.releases.servers import NAMESPACE
from iosig.warehouse.store.form import require_form
from iosig.warehouse.store.state import read_state
from iosig.warehouse.store.store import Store, put_document, read_cache

if TYPE_CHECKING:
    import polars as pl

#: file with the expiry times of releases (their rows stay); lock shared by readers of release files
EXPIRED, READING = "expired.json", "reading.lock"
#: file with the successor of each superseded release, and the time and reason
REDIRECTS = "redirects.json"
#: cached file lists from object stores, by address
_FILE_LISTS: dict[tuple[str, str], list[str]] = {}
_MAX_FILE_LISTS = 10_000
#: pattern of a release id, which begins with the time of publication; two ids never contain the same second
_STAMPED = re.compile(r"([0-9]{8}T[0-9]{6}Z)-.+")
_STAMP = "%Y%m%dT%H%M%SZ"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
#: parameter of a converted release that names the version that created the release
CONVERTED = "converted_from"
#: columns that contain JSON
AS_JSON = ("dates", "inputs", "removed_inputs", "snapshots")


@dataclass(frozen=True, slots=True)
class Release:
    """One release, with the number of its inputs, the snapshot of each table, and the result of the checks.

    The inputs may be millions of landings, so `inputs` reads their ids on demand.
    """

    release_id: str
    sequence: int
    created_at: str
    kind: str
    parent_release_id: str | None
    code_version: str
    dates: tuple[str | None, ...]
    newest_data_on: str | None
    input_count: int
    removed_input_count: int
    parameters: str
    snapshots: dict[str, int]
    verdict: str


def is_converted(release: Release) -> bool:
    """Return whether an upgrade converted the release, so its classes and periods come from an older version."""
    return CONVERTED in json.loads(release.parameters)


def list_published_tables() -> list[Table]:
    """Return the contracts of the tables that a release contains."""
    return [table for table in TABLES if table.is_published and table != RELEASES]


@dataclass(frozen=True, slots=True)
class _Index:
    """The release history, and the files that contain its rows, relative to the warehouse's root."""

    releases: list[Release]
    files: list[str]


def history(store: Store) -> list[Release]:
    """Read all releases in order; an empty list before the first."""
    return _index(store).releases


def read_history(store: Store) -> list[Release]:
    """Read all releases from the Iceberg table, bypassing the index."""
    require_form(store)
    return [] if releases_location(store) is None else _read_rows(store).releases


def wrong_index(store: Store, expected: Sequence[Release]) -> str | None:
    """Return the index's name if it differs from these releases; None if it matches or does not exist."""
    location = releases_location(store)
    if location is None or not store.files.mark(name := _index_name(location)):
        return None
    index = read_cache(store, name, _from_document)
    return None if index is not None and index.releases == list(expected) else name


def _index_name(location: str) -> str:
    return f"{INDEX}/{PurePosixPath(location).stem}.json"


def _index(store: Store) -> _Index:
    require_form(store)
    location = releases_location(store)
    if location is None:
        return _Index([], [])
    name = _index_name(location)
    index = read_cache(store, name, _from_document)
    if index is None:
        index = _read_rows(store)
        # each index contains the whole history, so older ones are useless
        with suppress(OSError):
            store.files.remove(f"{INDEX}/*")
        _leave(store, name, _document(index))
    return index


def _leave(store: Store, name: str, document: Any) -> None:
    """Write an optional cache file; without write permission, readers still work."""
    with suppress(OSError):
        put_document(store, name, document)


def _document(index: _Index) -> dict[str, Any]:
    """Format the index as JSON; settings are long and rarely change, so each version is stored once."""
    parameters = list(dict.fromkeys(release.parameters for release in index.releases))
    rows = [asdict(release) | {"parameters": parameters.index(release.parameters)} for release in index.releases]
    return {"files": index.files, "parameters": parameters, "releases": rows}


def _from_document(document: dict[str, Any]) -> _Index:
    parameters: dict[int, str] = dict(enumerate(document["parameters"]))
    rows = (
        row | {"dates": tuple(row["dates"]), "parameters": parameters[row["parameters"]]}
        for row in document["releases"]
    )
    return _Index([Release(**row) for row in rows], [str(name) for name in document["files"]])


def _read_rows(store: Store) -> _Index:
    from iosig.warehouse.releases.catalogue import open_catalogue, snapshot_files

    with open_catalogue(store) as catalogue:
        head = catalogue.load_table((NAMESPACE, RELEASES.name)).current_snapshot()
        files = [] if head is None else snapshot_files(catalogue, RELEASES.name, head.snapshot_id)
    releases = [_make_release(row) for row in _rows(store, files).collect().iter_rows(named=True)]
    return _Index(_with_newest_days(sorted(releases, key=lambda release: release.sequence)), files)


def _make_release(row: dict[str, Any]) -> Release:
    decoded = {name: json.loads(row[name]) for name in AS_JSON}
    values = {field.name: row[field.name] for field in fields(Release) if field.name in row}
    return Release(
        **values
        | {
            "created_at": row["created_at"].isoformat(),
            "dates": tuple(decoded["dates"]),
            "newest_data_on": row["newest_data_on"] and row["newest_data_on"].isoformat(),
            "snapshots": decoded["snapshots"],
            "input_count": len(decoded["inputs"]),
            "removed_input_count": len(decoded["removed_inputs"]),
        }
    )


def _with_newest_days(history: Sequence[Release]) -> list[Release]:
    """Fill in the newest day of data for releases that older versions published."""
    newest: dict[str | None, str | None] = {}
    completed = []
    for release in history:
        days = [release.newest_data_on, newest.get(release.parent_release_id), *release.dates]
        newest[release.release_id] = newest_day(days)
        completed.append(replace(release, newest_data_on=newest[release.release_id]))
    return completed


def newest_day(days: Iterable[str | None]) -> str | None:
    """Return the latest of the given days in ISO format; None without days."""
    return max((day for day in days if day), default=None)


def _rows(store: Store, files: Sequence[str]) -> pl.LazyFrame:
    """Scan files with rows of the table `releases`."""
    import polars as pl

    from iosig.warehouse.contracts import frames

    schema = frames.schema(RELEASES)
    if not files:
        return pl.LazyFrame(schema=schema)
    return scan_parquet(store.locals(files), schema=schema)


def rows(store: Store) -> pl.DataFrame:
    """Read the rows of the table `releases`, in order."""
    return _rows(store, _index(store).files).select(RELEASES.column_names).sort("sequence").collect()


def inputs(store: Store, release_ids: Collection[str]) -> pl.DataFrame:
    """Return the landings that the given releases added, and the earlier ones that they replaced.

    Columns: release_id, landing_id, is_removed; ordered by release, then by landing.
    """
    import polars as pl

    chosen = _rows(store, _index(store).files).filter(pl.col("release_id").is_in(list(release_ids))).sort("sequence")
    rows = chosen.select("release_id", "removed_inputs", "inputs").collect()
    names = (
        rows.select(
            "release_id",
            landing_id=pl.col(column).str.json_decode(pl.List(pl.String)),
            is_removed=pl.lit(column == "removed_inputs"),
        ).explode("landing_id", empty_as_null=False)
        for column in ("removed_inputs", "inputs")
    )
    return pl.concat(names)


@contextmanager
def being_read(store: Store) -> Iterator[None]:
    """Hold the reader lock, which prevents the removal of release files.

    Readers without write permission cannot take it; they rely on the one-day grace period after a release expires.
    """
    with ExitStack() as marks:
        with suppress(OSError):
            marks.enter_context(store.files.lock(READING, is_shared=True))
        yield


def read_expired(store: Store) -> dict[str, str]:
    """Map each expired release to its expiry time; files of expired releases are deleted or queued for deletion."""
    expiry_times: dict[str, str] = read_state(store, EXPIRED) or {}
    return expiry_times


def list_readable(store: Store) -> list[Release]:
    """Return all releases that have not expired, in order."""
    expired_ids = read_expired(store)
    return [release for release in history(store) if release.release_id not in expired_ids]


def current(store: Store) -> Release | None:
    """Return the release that readers get by default; None before the first."""
    all_releases = history(store)
    return all_releases[-1] if all_releases else None


def find(store: Store, release_id: str | None) -> Release:
    """Find a release by its id or an unambiguous prefix; None selects the current one.

    A day such as 2018-02-09 selects the newest release that computed this day and was not rolled back. Raises
    UsageError if no release, or more than one, matches.
    """
    all_releases = history(store)
    if not all_releases:
        raise UsageError(f"No release exists in {store.name} yet. Land inputs, then `iosig run`.")
    if release_id is None:
        return all_releases[-1]
    by_id = {release.release_id: release for release in all_releases}
    by_id |= {old: by_id[new] for old in redirects(store) if (new := _successor(store, old)) in by_id}
    if release_id not in by_id and _DAY.fullmatch(release_id):
        of_day = next(
            (release for release in lineage(all_releases, all_releases[-1]) if release_id in release.dates), None
        )
        if of_day:
            return _still_there(store, of_day)
    matching = {name: release for name, release in by_id.items() if name.startswith(release_id)}
    if release_id in matching or len({release.sequence for release in matching.values()}) == 1:
        return _still_there(store, matching.get(release_id) or next(iter(matching.values())))
    problem = "is not a release" if not matching else f"is ambiguous: {', '.join(matching)}"
    raise UsageError(f"{release_id!r} {problem}. `iosig releases` lists them.")


def lineage(all_releases: Sequence[Release], release: Release | None) -> Iterator[Release]:
    """Yield a release and its ancestors, newest first, without releases that were rolled back."""
    by_id = {entry.release_id: entry for entry in all_releases}
    while release is not None:
        yield release
        release = by_id.get(release.parent_release_id or "")


def new_id(store: Store, kind: str) -> str:
    """Create the id of a release published now: the UTC time in seconds, and the kind.

    Ids sort in order of publication: if the previous id has the same second or, after the clock was set back, a later
    one, the new id is one second later.
    """
    stamps = [match[1] for release in history(store) if (match := _STAMPED.fullmatch(release.release_id))]
    created_at = datetime.now(UTC)
    if stamps:
        created_at = max(created_at, datetime.strptime(max(stamps), _STAMP).replace(tzinfo=UTC) + timedelta(seconds=1))
    return f"{created_at.strftime(_STAMP)}-{kind}"


def redirects(store: Store) -> dict[str, dict[str, str]]:
    """Return the superseded releases by id, each with `to`, `at` and `reason`."""
    entries: dict[str, dict[str, str]] = read_state(store, REDIRECTS) or {}
    return entries


def find_redirects_to(store: Store, release_id: str) -> dict[str, tuple[str, str]]:
    """Return the ids that redirect to a release, each with time and reason."""
    return {
        old: (redirect["at"], redirect["reason"])
        for old, redirect in redirects(store).items()
        if old != release_id and _successor(store, old) == release_id
    }


def _successor(store: Store, release_id: str) -> str:
    """Follow the redirects of an id to the final release."""
    entries, release_ids = redirects(store), {release.release_id for release in history(store)}
    while release_id in entries and release_id not in release_ids:
        release_id = entries[release_id]["to"]
    return release_id


def _still_there(store: Store, release: Release) -> Release:
    if since := read_expired(store).get(release.release_id):
        raise UsageError(
            f"{release.release_id} expired on {since[:10]}: its files were deleted. `iosig releases` lists readable "
            "releases, and `iosig releases pin ID` keeps one."
        )
    return release


def to_records(store: Store, chosen: Sequence[Release]) -> list[dict[str, Any]]:
    """Convert releases to JSON-serializable records, with the landings that each added and replaced."""
    landings = inputs(store, [release.release_id for release in chosen])
    groups = landings.partition_by("release_id", "is_removed", as_dict=True)
    lists = {key: frame["landing_id"].to_list() for key, frame in groups.items()}
    return [
        {name: value for name, value in asdict(release).items() if not name.endswith("_count")}
        | {
            "inputs": lists.get((release.release_id, False), []),
            "removed_inputs": lists.get((release.release_id, True), []),
        }
        for release in chosen
    ]


def landings_in(store: Store, release: Release | None) -> pl.Series:
    """Return the landings that a release and its ancestors are based on."""
    import polars as pl

    names = [ancestor.release_id for ancestor in lineage(history(store), release)]
    changes = inputs(store, names)
    if changes["is_removed"].any():
        # the last entry of a landing decides; within one release, additions follow removals
        place = pl.col("release_id").replace_strict(names[::-1], list(range(len(names))), return_dtype=pl.Int64)
        last = changes.sort(place, ~pl.col("is_removed"), maintain_order=True).unique("landing_id", keep="last")
        changes = last.filter(~pl.col("is_removed"))
    return changes["landing_id"]


def files_of(store: Store, release: Release) -> dict[str, list[Path]]:
    """Map each table of a release to its Parquet files, relative to the warehouse's root."""
    lists = {name: make_list_name(name, snapshot) for name, snapshot in release.snapshots.items()}
    places_by_table = dict(
        zip(lists, store.files.each(lambda path: _read_file_list(store, path), lists.values()), strict=True)
    )
    if missing := [name for name, places in places_by_table.items() if places is None]:
        from iosig.warehouse.releases.catalogue import open_catalogue, snapshot_files

        with open_catalogue(store) as catalogue:
            for name in missing:
                places_by_table[name] = snapshot_files(catalogue, name, release.snapshots[name])
                _leave(store, lists[name], places_by_table[name])
    return {name: [store.root / place for place in places or ()] for name, places in places_by_table.items()}


def _read_file_list(store: Store, name: str) -> list[str] | None:
    """Read a cached file list; None if it is missing. Lists from an object store are also cached in memory.

    Caching is safe, because a list is named after its immutable snapshot.
    """
    if store.url is None:
        return read_cache(store, name, _places)
    files = _FILE_LISTS.get((store.url, name)) or read_cache(store, name, _places)
    if files is not None:
        if len(_FILE_LISTS) >= _MAX_FILE_LISTS:
            _FILE_LISTS.clear()
        _FILE_LISTS[store.url, name] = files
    return files


def make_list_name(table_name: str, snapshot_id: int) -> str:
    """Return the file name of a snapshot's cached file list."""
    return f"{LISTS}/{table_name}-{snapshot_id}.json"


def _places(document: Any) -> list[str]:
    return [PurePosixPath(place).as_posix() for place in document]

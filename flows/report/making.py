"""A release as static pages: read, made into files, and written where they changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from flows.report import (
    applications as application_rows,
    changes as change_rows,
    night as night_rows,
    quality as quality_rows,
    runs as run_rows,
    writing,
)
from flows.report.hiding import Hider, hider_of
from flows.report.writing import Written
from flows.settings import Settings
from reports.site import applications, changes, filesystems, library, night, population, quality, runs, tables
from reports.site.packing import Content
from reports.site.pages import (
    APPLICATION,
    APPLICATIONS,
    CHANGES,
    FILESYSTEM,
    NIGHT,
    POPULATION,
    QUALITY,
    RUN,
    TABLES,
)
from reports.site.shells import About, root_page, shell
from warehouse.releases import releases
from warehouse.releases.reading import opened
from warehouse.releases.releases import Release, published
from warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True)
class Reported:
    """A release that is told, the releases that are kept, and what hides users, if they are to be hidden."""

    store: Store
    release: Release
    kept: tuple[Release, ...]
    hider: Hider | None = None

    @property
    def about(self) -> About:
        """What every page says of it."""
        release = self.release
        return About(
            release.release_id, release.created_at, release.verdict, release.code_version, self.hider is not None
        )


def report(store: Store, release: Release, folder: Path, hider: Hider | None = None) -> Written:
    """Write the report of a release, have `latest/` be the newest there is, and remove what may not stay.

    Pages of expired releases go, and, where users are hidden from now on, all that name them.

    Raises UsageError where the folder holds something else.
    """
    writing.require_own(folder)
    kept = tuple(releases.kept(store))
    told = Reported(store, release, kept, hider)
    named = writing.begin(folder, is_hiding=hider is not None)
    with opened(store, release) as connection:
        count, size, new = writing.write(folder, release.release_id, _contents(told, connection))
    ids = [one.release_id for one in kept]
    gone = (*(one for one in named if one != release.release_id), *writing.remove_all_but(folder, ids))
    there = {path.name for path in writing.folders(folder)}
    shown = [one for one in kept if one.release_id in there]
    writing.show(folder, shown[-1].release_id)
    writing.put(folder, _listed(shown))
    writing.put(folder, root_page([(one.release_id, one.created_at, one.verdict) for one in reversed(shown)]))
    return Written(folder / writing.LATEST / NIGHT.file_name, count, size, new, gone)


def after_release(store: Store, settings: Settings, release: Release) -> tuple[str, int] | None:
    """Write the report where the settings want one; return what is to be told of it, and how many files are new.

    Never raises: the release stands, whatever befalls its pages.
    """
    if settings.report.into is None:
        return None
    try:
        hider = hider_of(store, settings) if settings.report.hide_users else None
        written = report(store, release, settings.report.into, hider)
    except Exception as error:
        return f"report: not written, the release stands: {type(error).__name__}: {error}", 0
    return f"report {written.page}", written.new_count


def _listed(shown: list[Release]) -> Content:
    """Return the releases that there are pages of, the newest first, as a script beside their folders."""
    told = [[one.release_id, one.created_at, one.verdict] for one in reversed(shown)]
    return Content("releases.js", f"iosigReleases({json.dumps(told)});\n".encode())


def _contents(told: Reported, connection: duckdb.DuckDBPyConnection) -> Iterator[Content]:
    """Yield every file of a release's folder."""
    yield from library.assets()
    yield _night(told, connection)
    yield _quality(told, connection)
    yield _changes(told)
    yield _tables(told, connection)
    yield from _population(told, connection)
    yield from _applications(told, connection)
    yield from _runs(told, connection)
    yield from _filesystems(told, connection)


_Frames = TypeVar("_Frames", bound="DataclassInstance")


def _shown(told: Reported, frames: _Frames) -> _Frames:
    """Return frames as they may be shown: with pseudonyms where users are hidden."""
    hider = told.hider
    if hider is None:
        return frames
    held = {field.name: getattr(frames, field.name) for field in fields(frames)}
    return replace(frames, **{name: hider.hide(one) for name, one in held.items() if isinstance(one, pl.DataFrame)})


def _night(told: Reported, connection: duckdb.DuckDBPyConnection) -> Content:
    frames = _shown(told, night_rows.read(connection))
    shown = str if told.hider is None else told.hider.application_id
    return shell(NIGHT, told.about, night.told(frames, told.release.verdict, night_rows.drawn(connection, shown)))


def _quality(told: Reported, connection: duckdb.DuckDBPyConnection) -> Content:
    return shell(QUALITY, told.about, quality.told(_shown(told, quality_rows.read(connection))))


def _changes(told: Reported) -> Content:
    before = next((one for one in told.kept if one.release_id == told.release.parent_release_id), None)
    frames = _shown(told, change_rows.read(told.store, told.release, before))
    return shell(CHANGES, told.about, changes.told(frames))


def _tables(told: Reported, connection: duckdb.DuckDBPyConnection) -> Content:
    counts = {
        table.name: int(connection.sql(f'select count(*) from "{table.name}"').fetchall()[0][0])
        for table in published()
    }
    return shell(TABLES, told.about, tables.told(published(), counts))


def _population(told: Reported, connection: duckdb.DuckDBPyConnection) -> Iterator[Content]:
    yield shell(POPULATION, told.about)
    yield population.contents(_shown(told, run_rows.read_population(connection)))


def _applications(told: Reported, connection: duckdb.DuckDBPyConnection) -> Iterator[Content]:
    earlier = [one for one in told.kept if one.sequence <= told.release.sequence]
    known = application_rows.history_of(told.store, earlier)
    frames = _shown(told, application_rows.read(connection, known))
    yield shell(APPLICATIONS, told.about)
    yield shell(APPLICATION, told.about)
    yield from applications.contents(frames)


def _runs(told: Reported, connection: duckdb.DuckDBPyConnection) -> Iterator[Content]:
    frames = _shown(told, run_rows.read_runs(connection))
    yield shell(RUN, told.about)
    yield from runs.contents(frames)


def _filesystems(told: Reported, connection: duckdb.DuckDBPyConnection) -> Iterator[Content]:
    frames = _shown(told, run_rows.read_filesystems(connection))
    yield shell(FILESYSTEM, told.about)
    yield from filesystems.contents(frames)

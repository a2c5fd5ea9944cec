"""The pages of a release: each made, or taken as it lies where what it is made of is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from iosig.answers.report import (
    advice as advice_rows,
    applications as application_rows,
    night as night_rows,
    quality as quality_rows,
    runs as run_rows,
)
from iosig.answers.report.applications import MadeOf
from iosig.answers.report.existing import Known, Page
from iosig.answers.report.fingerprints import Inputs, of_program
from iosig.answers.report.pseudonyms import Hider
from iosig.answers.signatures.changes import signature_changes
from iosig.answers.wall.release_changes import TABLES as CHANGE_TABLES, pairs
from iosig.reports.site import (
    advice,
    applications,
    changes,
    filesystems,
    library,
    lineage,
    night,
    population,
    quality,
    runs,
    tables,
)
from iosig.reports.site.advice import AdviceFrames
from iosig.reports.site.changes import ChangeFrames
from iosig.reports.site.figures import Page as SitePage
from iosig.reports.site.packing import Content
from iosig.reports.site.pages import (
    APPLICATION,
    APPLICATIONS,
    CHANGES,
    FILESYSTEM,
    LINEAGE,
    NIGHT,
    POPULATION,
    QUALITY,
    RUN,
    TABLES,
)
from iosig.reports.site.shells import About, shell
from iosig.settings.model import Settings
from iosig.warehouse.releases.reading import opened
from iosig.warehouse.releases.releases import Release, published
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb
    from _typeshed import DataclassInstance

#: what a run's page is made of, by the day on which it ended; and what a day of a file system is made of, too
_OF_RUNS = ("jobs", "samples", "exact_samples", "job_io", "attributed_io", "classes", "periods", "slowdowns")
_OF_TRACES = ("trace_jobs", "trace_counters", "trace_heatmaps")
_OF_DAYS = ("jobs", "job_io", "attributed_io", "slowdowns")
_OF_APPLICATIONS = ("samples", "exact_samples")


#: returns how each table is computed; steps know it, and answers know no steps
Lineage = Callable[[], Sequence[lineage.TableRow]]


@dataclass(frozen=True, slots=True)
class Reported:
    """A release, the releases that are kept, the lineage of its tables, and what hides users if they are hidden."""

    store: Store
    release: Release
    kept: tuple[Release, ...]
    lineage: Lineage
    hider: Hider | None = None
    settings: Settings = field(default_factory=Settings)

    @property
    def about(self) -> About:
        """What every page says of it."""
        release = self.release
        return About(
            release.release_id, release.created_at, release.verdict, release.code_version, self.hider is not None
        )

    @property
    def before(self) -> Release | None:
        """The release that it is compared with, as long as that is kept."""
        return next((one for one in self.kept if one.release_id == self.release.parent_release_id), None)

    def shown_id(self, application_id: str) -> str:
        """Return an application's id as it may be shown."""
        return application_id if self.hider is None else self.hider.application_id(application_id)


@dataclass(frozen=True, slots=True)
class Making:
    """A release's pages that are being made, those that are there, and what each is made of."""

    told: Reported
    known: Known
    inputs: Inputs = field(init=False)

    def __post_init__(self) -> None:
        """Look at what there is."""
        told = self.told
        hidden = told.hider.mark if told.hider else ""
        object.__setattr__(self, "inputs", Inputs(told.store, told.release, hidden))

    def whole(self, path: str, make: Callable[[], Content], *more: object) -> Page:
        """Return a page that all of the release goes into, and whatever else."""
        made_of = self.inputs.of(path, *more)
        return self.known.page(path, made_of) or Page.of(make(), made_of)


def of(made: Making, connection: duckdb.DuckDBPyConnection) -> Iterator[Page]:
    """Yield every file of a release's folder."""
    about, told = made.told.about, made.told
    advised = _advice(told, connection)
    yield from map(Page.of, library.assets())
    yield from (Page.of(shell(one, about)) for one in (POPULATION, APPLICATIONS, APPLICATION, RUN, FILESYSTEM, LINEAGE))
    beside = advice_rows.list_inputs(told.store, told.settings)
    yield made.whole("data/advice.js", lambda: advice.contents(advised()), beside)
    yield made.whole(NIGHT.file_name, lambda: _night(told, connection, advised()), about, beside)
    for one in _TELLING:
        yield made.whole(one.file_name, partial(_telling, one, told, connection), about, told.before)
    yield made.whole("data/population.js", lambda: _population(made.told, connection))
    yield _lineage(made)
    yield from _applications(made, connection)
    yield from _runs(made, connection)
    yield from _filesystems(made, connection)


_Frames = TypeVar("_Frames", bound="DataclassInstance")


def _shown(told: Reported, frames: _Frames) -> _Frames:
    """Return frames as they may be shown: with pseudonyms where users are hidden."""
    hider = told.hider
    if hider is None:
        return frames
    held = {field.name: getattr(frames, field.name) for field in fields(frames)}
    return replace(frames, **{name: hider.hide(one) for name, one in held.items() if isinstance(one, pl.DataFrame)})


def _shown_rows(told: Reported, rows: pl.DataFrame) -> pl.DataFrame:
    return rows if told.hider is None else told.hider.hide(rows)


# ---- pages that all of a release goes into


def _telling(page: SitePage, told: Reported, connection: duckdb.DuckDBPyConnection) -> Content:
    return shell(page, told.about, _TELLING[page](told, connection))


def _advice(told: Reported, connection: duckdb.DuckDBPyConnection) -> Callable[[], AdviceFrames]:
    """Return what gives the advice, which is made once, and only if it is asked for."""

    @cache
    def made() -> AdviceFrames:
        most = application_rows.located(connection).sort("month_bytes", "application_id", descending=[True, False])
        names = most["application_id"].head(advice_rows.MAX_APPLICATIONS).to_list()
        return _shown(told, advice_rows.read(told.store, told.release, told.settings, connection, names))

    return made


def _night(told: Reported, connection: duckdb.DuckDBPyConnection, advised: AdviceFrames) -> Content:
    frames = _shown(told, night_rows.read(connection))
    drawn = night_rows.drawn(connection, told.shown_id)
    page = night.told(frames, told.release.verdict, drawn) | {"advice": advice.told(advised)}
    return shell(NIGHT, told.about, page)


def _quality(told: Reported, connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    return quality.told(_shown(told, quality_rows.read(connection)))


def _changes(told: Reported, connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    before, store, release = told.before, told.store, told.release
    changed = signature_changes(store, before or release, release)
    with opened(store, before or release, CHANGE_TABLES) as old:
        frames = ChangeFrames(before.release_id if before else None, changed, pairs(old, connection))
    return changes.told(_shown(told, frames))


def _tables(told: Reported, connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    counts = {
        table.name: int(connection.sql(f'select count(*) from "{table.name}"').fetchall()[0][0])
        for table in published()
    }
    return tables.told(published(), counts)


#: what the templates of pages are given
_TELLING = {QUALITY: _quality, CHANGES: _changes, TABLES: _tables}


def _population(told: Reported, connection: duckdb.DuckDBPyConnection) -> Content:
    return population.contents(_shown(told, run_rows.read_population(connection)))


def _lineage(made: Making) -> Page:
    """Return the lineage, whatever the release: to find out where columns come from takes seconds."""
    path, made_of = f"data/{lineage.LINEAGE}.js", of_program()
    return made.known.page(path, made_of) or Page.of(lineage.contents(made.told.lineage()), made_of)


# ---- applications


def _applications(made: Making, connection: duckdb.DuckDBPyConnection) -> Iterator[Page]:
    told = made.told
    earlier = [one for one in told.kept if one.sequence <= told.release.sequence]
    history = _shown_rows(told, application_rows.history_of(told.store, earlier))
    yield from map(Page.of, applications.histories(history))
    signatures = application_rows.signatures(connection)
    shown = _shown_rows(told, signatures)
    yield made.whole("data/search.js", lambda: applications.names(shown))
    yield made.whole("data/map.js", partial(_map, told, connection))
    there, chosen, sparks = _known_applications(made, application_rows.made_of(connection))
    yield from there
    frames = _shown(told, application_rows.read(connection, signatures, list(chosen)))
    made_of = {applications.application_path(told.shown_id(name)): one for name, one in chosen.items()}
    for content in applications.each(frames):
        yield Page.of(content, made_of[content.path])
    curves = pl.concat([*sparks, frames.curves.select(applications.SPARK)])
    yield Page.of(applications.listed(shown, curves), made.inputs.of(applications.LIST))


def _map(told: Reported, connection: duckdb.DuckDBPyConnection) -> Content:
    return applications.located(_shown_rows(told, application_rows.located(connection)))


def _known_applications(
    made: Making, found: Mapping[str, MadeOf]
) -> tuple[list[Page], dict[str, str], list[pl.DataFrame]]:
    """Return pages that lie there, what all other applications are made of, and the small curves of the former.

    The list of applications has these curves: an application of whom the list that lies beside its page has none is
    made anew.
    """
    by_path: dict[str, list[str]] = {}
    for name in found:
        by_path.setdefault(applications.application_path(made.told.shown_id(name)), []).append(name)
    pages, chosen, lists = list[Page](), dict[str, str](), dict[int, tuple[dict[str, Any], list[str]]]()
    for path, names in by_path.items():
        days = {day for name in names for day in found[name].days}
        rows = [(name, found[name].rows) for name in sorted(names)]
        made_of = made.inputs.of(rows, tables=_OF_APPLICATIONS, days=days)
        lying = made.known.page_beside(path, made_of, applications.LIST)
        if lying is None:
            chosen |= dict.fromkeys(names, made_of)
            continue
        pages.append(lying[0])
        lists.setdefault(id(lying[1]), (lying[1], []))[1].extend(map(made.told.shown_id, names))
    sparks = [
        applications.sparks_of(document).filter(pl.col("application_id").is_in(names))
        for document, names in lists.values()
    ]
    return pages, chosen, sparks


# ---- runs


def _runs(made: Making, connection: duckdb.DuckDBPyConnection) -> Iterator[Page]:
    yield made.whole("data/jobs.js", lambda: runs.jobs(run_rows.read_jobs(connection)))
    chosen, made_of, traced = {}, {}, run_rows.traced_days(connection)
    for hour, days in run_rows.hours(connection).items():
        path = runs.hour_path(hour)
        # traces need not end on the days of their runs
        of_traces = made.inputs.of(path, tables=_OF_TRACES, days=traced.get(hour, frozenset()))
        made_of[path] = made.inputs.of(of_traces, tables=_OF_RUNS, days=days)
        if (page := made.known.page(path, made_of[path])) is not None:
            yield page
        else:
            chosen[hour] = days
    if chosen:
        for content in runs.hours(_shown(made.told, run_rows.read_runs(connection, chosen))):
            yield Page.of(content, made_of[content.path])


# ---- file systems


def _filesystems(made: Making, connection: duckdb.DuckDBPyConnection) -> Iterator[Page]:
    calendars, touched = run_rows.calendars(connection), run_rows.days_touched(connection)
    chosen, made_of = set[tuple[str, date]](), dict[str, str]()
    for name, day in ((one.filesystem, day) for one in calendars for day in filesystems.polled_days(one)):
        path = filesystems.day_path(name, day)
        # a poll at midnight, the last one of a day, is dated by the next
        polled = made.inputs.of(path, tables=("filesystem_rates",), days={day, day + timedelta(days=1)})
        made_of[path] = made.inputs.of(polled, tables=_OF_DAYS, days=touched.get(day, frozenset()))
        if (page := made.known.page(path, made_of[path])) is not None:
            yield page
        else:
            chosen.add((name, day))
    frames = _shown(made.told, run_rows.read_filesystems(connection, calendars, chosen))
    yield from map(Page.of, filesystems.calendars(frames))
    for content in filesystems.days(frames, chosen):
        yield Page.of(content, made_of[content.path])

"""Build the pages of a release, or reuse them if their inputs are unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from iosig.answers.population.query import Query
from iosig.answers.report import (
    advice as advice_rows,
    applications as application_rows,
    night as night_rows,
    quality as quality_rows,
    runs as run_rows,
)
from iosig.answers.report.applications import PageInputs
from iosig.answers.report.existing import Page, PageCache
from iosig.answers.report.fingerprints import Inputs, fingerprint_program
from iosig.answers.report.pseudonyms import Pseudonymizer
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
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release, list_published_tables
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb
    from _typeshed import DataclassInstance

#: tables on which the pages of runs depend, by end day of the run
_OF_RUNS = ("jobs", "samples", "exact_samples", "job_io", "attributed_io", "classes", "periods", "slowdowns")
#: tables on which the traces in these pages depend
_OF_TRACES = ("trace_jobs", "trace_counters", "trace_heatmaps")
#: tables on which the days of file systems depend
_OF_DAYS = ("jobs", "job_io", "attributed_io", "slowdowns")
#: tables on which the pages of applications depend
_OF_APPLICATIONS = ("samples", "exact_samples", "trace_samples")


#: callback that returns the lineage of tables, which the steps declare: answers cannot import steps
Lineage = Callable[[], Sequence[lineage.TableRow]]


@dataclass(frozen=True, slots=True)
class ReportInput:
    """The release to report, all retained releases, the lineage, and the pseudonymizer if users are hidden."""

    store: Store
    release: Release
    kept: tuple[Release, ...]
    lineage: Lineage
    hider: Pseudonymizer | None = None
    settings: Settings = field(default_factory=Settings)

    @property
    def about(self) -> About:
        """Facts about the release in the header of every page."""
        release = self.release
        return About(
            release.release_id, release.created_at, release.verdict, release.code_version, self.hider is not None
        )

    @property
    def before(self) -> Release | None:
        """The parent release, or None if it has expired."""
        return next((release for release in self.kept if release.release_id == self.release.parent_release_id), None)

    def shown_id(self, application_id: str) -> str:
        """Return the displayed form of an application id, with a pseudonym if users are hidden."""
        return application_id if self.hider is None else self.hider.application_id(application_id)


@dataclass(frozen=True, slots=True)
class PageBuilder:
    """State of a page build: report input, page cache, and fingerprints of inputs."""

    report: ReportInput
    known: PageCache
    inputs: Inputs = field(init=False)

    def __post_init__(self) -> None:
        """Hash the files of the release."""
        report = self.report
        hidden = report.hider.mark if report.hider else ""
        object.__setattr__(self, "inputs", Inputs(report.store, report.release, hidden))

    def whole(self, path: str, make: Callable[[], Content], *more: object) -> Page:
        """Build or reuse a page that depends on the whole release and on further values."""
        fingerprint = self.inputs.fingerprint(path, *more)
        return self.known.page(path, fingerprint) or Page.from_content(make(), fingerprint)


def build_pages(builder: PageBuilder, connection: duckdb.DuckDBPyConnection) -> Iterator[Page]:
    """Yield all files of a release folder, built or reused."""
    about, report = builder.report.about, builder.report
    advice_frames = _advice(report, connection)
    yield from map(Page.from_content, library.assets())
    yield from (
        Page.from_content(shell(page, about))
        for page in (POPULATION, APPLICATIONS, APPLICATION, RUN, FILESYSTEM, LINEAGE)
    )
    advice_inputs = advice_rows.list_inputs(report.store, report.settings)
    yield builder.whole("data/advice.js", lambda: advice.contents(advice_frames()), advice_inputs)
    yield builder.whole(NIGHT.file_name, lambda: _night(report, connection, advice_frames()), about, advice_inputs)
    for page in _TEMPLATE_VALUES:
        yield builder.whole(page.file_name, partial(_render_page, page, report, connection), about, report.before)
    excludes_shared = report.settings.jobs.excludes_shared_nodes
    yield builder.whole("data/population.js", lambda: _population(report, connection), excludes_shared)
    yield _lineage(builder)
    yield from _applications(builder, connection)
    yield from _runs(builder, connection)
    yield from _filesystems(builder, connection)


_Frames = TypeVar("_Frames", bound="DataclassInstance")


def _pseudonymize(report: ReportInput, frames: _Frames) -> _Frames:
    """Replace user names in frames with pseudonyms if users are hidden."""
    hider = report.hider
    if hider is None:
        return frames
    values = {field.name: getattr(frames, field.name) for field in fields(frames)}
    return replace(
        frames, **{name: hider.hide(value) for name, value in values.items() if isinstance(value, pl.DataFrame)}
    )


def _pseudonymize_rows(report: ReportInput, rows: pl.DataFrame) -> pl.DataFrame:
    return rows if report.hider is None else report.hider.hide(rows)


# ---- pages that depend on the whole release


def _render_page(page: SitePage, report: ReportInput, connection: duckdb.DuckDBPyConnection) -> Content:
    return shell(page, report.about, _TEMPLATE_VALUES[page](report, connection))


def _advice(report: ReportInput, connection: duckdb.DuckDBPyConnection) -> Callable[[], AdviceFrames]:
    """Return a lazy, cached computation of the advice."""

    @cache
    def compute() -> AdviceFrames:
        largest = application_rows.locate_on_map(connection).sort(
            "month_bytes", "application_id", descending=[True, False]
        )
        names = largest["application_id"].head(advice_rows.MAX_APPLICATIONS).to_list()
        return _pseudonymize(report, advice_rows.read(report.store, report.release, report.settings, connection, names))

    return compute


def _night(report: ReportInput, connection: duckdb.DuckDBPyConnection, advice_frames: AdviceFrames) -> Content:
    frames = _pseudonymize(report, night_rows.read(connection))
    figures = night_rows.draw_figures(connection, report.shown_id)
    page = night.make_variables(frames, report.release.verdict, figures) | {
        "advice": advice.make_variables(advice_frames)
    }
    return shell(NIGHT, report.about, page)


def _quality(report: ReportInput, connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    return quality.make_variables(_pseudonymize(report, quality_rows.read(connection)))


def _changes(report: ReportInput, connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    before, store, release = report.before, report.store, report.release
    changed = signature_changes(store, before or release, release)
    with open_release(store, before or release, CHANGE_TABLES) as old:
        frames = ChangeFrames(before.release_id if before else None, changed, pairs(old, connection))
    return changes.make_variables(_pseudonymize(report, frames))


def _tables(report: ReportInput, connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    counts = {
        table.name: int(connection.sql(f'select count(*) from "{table.name}"').fetchall()[0][0])
        for table in list_published_tables()
    }
    return tables.make_variables(list_published_tables(), counts)


#: functions that return the template values of pages
_TEMPLATE_VALUES = {QUALITY: _quality, CHANGES: _changes, TABLES: _tables}


def _population(report: ReportInput, connection: duckdb.DuckDBPyConnection) -> Content:
    query = Query(excludes_shared_nodes=report.settings.jobs.excludes_shared_nodes)
    return population.contents(_pseudonymize(report, run_rows.read_population(connection, query)))


def _lineage(builder: PageBuilder) -> Page:
    """Build or reuse the lineage, which is independent of the release and takes seconds to compute."""
    path, fingerprint = f"data/{lineage.LINEAGE}.js", fingerprint_program()
    return builder.known.page(path, fingerprint) or Page.from_content(
        lineage.contents(builder.report.lineage()), fingerprint
    )


# ---- applications


def _applications(builder: PageBuilder, connection: duckdb.DuckDBPyConnection) -> Iterator[Page]:
    report = builder.report
    earlier = [release for release in report.kept if release.sequence <= report.release.sequence]
    history = _pseudonymize_rows(report, application_rows.read_history(report.store, earlier))
    yield from map(Page.from_content, applications.histories(history))
    signatures = application_rows.read_signatures(connection)
    shown_signatures = _pseudonymize_rows(report, signatures)
    yield builder.whole("data/search.js", lambda: applications.names(shown_signatures))
    yield builder.whole("data/map.js", partial(_map, report, connection))
    with open_release(report.store, report.release, application_rows.OPERATION_TABLES, "operations") as counted:
        page_inputs = application_rows.fingerprint_applications(connection)
        of_operations = application_rows.fingerprint_operations(counted)
        reused, chosen, sparks = _reuse_applications(builder, page_inputs, of_operations)
        operations = application_rows.read_operations(counted, list(chosen))
    yield from reused
    frames = _pseudonymize(report, application_rows.read(connection, signatures, operations, list(chosen)))
    fingerprints = {
        applications.application_path(report.shown_id(name)): fingerprint for name, fingerprint in chosen.items()
    }
    for content in applications.each(frames):
        yield Page.from_content(content, fingerprints[content.path])
    curves = pl.concat([*sparks, frames.curves.select(applications.SPARK)])
    yield Page.from_content(
        applications.encode_list(shown_signatures, curves), builder.inputs.fingerprint(applications.LIST)
    )


def _map(report: ReportInput, connection: duckdb.DuckDBPyConnection) -> Content:
    return applications.encode_map(_pseudonymize_rows(report, application_rows.locate_on_map(connection)))


def _reuse_applications(
    builder: PageBuilder, page_inputs: Mapping[str, PageInputs], of_operations: Mapping[str, str]
) -> tuple[list[Page], dict[str, str], list[pl.DataFrame]]:
    """Return reusable pages, the fingerprints of all other applications, and the small curves of the reused pages.

    The small curves are read from the list of applications in the same folder as the page. Without that list the page
    is built again.
    """
    by_path: dict[str, list[str]] = {}
    for name in page_inputs:
        by_path.setdefault(applications.application_path(builder.report.shown_id(name)), []).append(name)
    pages, chosen, lists = list[Page](), dict[str, str](), dict[int, tuple[dict[str, Any], list[str]]]()
    for path, names in by_path.items():
        days = {day for name in names for day in page_inputs[name].days}
        rows = [(name, page_inputs[name].rows, of_operations.get(name)) for name in sorted(names)]
        fingerprint = builder.inputs.fingerprint(rows, tables=_OF_APPLICATIONS, days=days)
        reused = builder.known.page_with_document(path, fingerprint, applications.LIST)
        if reused is None:
            chosen |= dict.fromkeys(names, fingerprint)
            continue
        pages.append(reused[0])
        lists.setdefault(id(reused[1]), (reused[1], []))[1].extend(map(builder.report.shown_id, names))
    sparks = [
        applications.get_sparklines(document).filter(pl.col("application_id").is_in(names))
        for document, names in lists.values()
    ]
    return pages, chosen, sparks


# ---- runs


def _runs(builder: PageBuilder, connection: duckdb.DuckDBPyConnection) -> Iterator[Page]:
    yield builder.whole("data/jobs.js", lambda: runs.jobs(run_rows.read_jobs(connection)))
    chosen, fingerprints, traced = {}, {}, run_rows.read_traced_days(connection)
    for hour, days in run_rows.read_hours(connection).items():
        path = runs.hour_path(hour)
        # traces may end on other days than their runs
        of_traces = builder.inputs.fingerprint(path, tables=_OF_TRACES, days=traced.get(hour, frozenset()))
        fingerprints[path] = builder.inputs.fingerprint(of_traces, tables=_OF_RUNS, days=days)
        if (page := builder.known.page(path, fingerprints[path])) is not None:
            yield page
        else:
            chosen[hour] = days
    if chosen:
        for content in runs.hours(_pseudonymize(builder.report, run_rows.read_runs(connection, chosen))):
            yield Page.from_content(content, fingerprints[content.path])


# ---- file systems


def _filesystems(builder: PageBuilder, connection: duckdb.DuckDBPyConnection) -> Iterator[Page]:
    calendars, touched = run_rows.read_calendars(connection), run_rows.read_active_days(connection)
    chosen, fingerprints = set[tuple[str, date]](), dict[str, str]()
    for name, day in (
        (calendar.filesystem, day) for calendar in calendars for day in filesystems.list_polled_days(calendar)
    ):
        path = filesystems.day_path(name, day)
        # polled_on of the last poll of a day, at midnight, is the next day
        polled = builder.inputs.fingerprint(path, tables=("filesystem_rates",), days={day, day + timedelta(days=1)})
        fingerprints[path] = builder.inputs.fingerprint(polled, tables=_OF_DAYS, days=touched.get(day, frozenset()))
        if (page := builder.known.page(path, fingerprints[path])) is not None:
            yield page
        else:
            chosen.add((name, day))
    frames = _pseudonymize(builder.report, run_rows.read_filesystems(connection, calendars, chosen))
    yield from map(Page.from_content, filesystems.calendars(frames))
    for content in filesystems.days(frames, chosen):
        yield Page.from_content(content, fingerprints[content.path])

"""Plan a run: find the days that new or replaced landings make stale."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from importlib.metadata import version
from typing import Any

import duckdb
import polars as pl

from iosig.settings.model import Settings
from iosig.transforms.counters import TARGET
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.counters import COUNTER_SAMPLES, COUNTERS_DAILY, SCRAPES
from iosig.warehouse.contracts.jobs import JOB_RECORDS, QUEUE_RECORDS
from iosig.warehouse.contracts.polls import POLLS, POLLS_DAILY
from iosig.warehouse.contracts.predictions import PREDICTION_RECORDS
from iosig.warehouse.contracts.releases import SELECT, STALE_DAYS
from iosig.warehouse.contracts.series import SERIES
from iosig.warehouse.contracts.traces import TRACES
from iosig.warehouse.engine_paths import read_parquet, scan_parquet
from iosig.warehouse.errors import NothingToDo, UsageError
from iosig.warehouse.releases import holds, locations, releases, retention
from iosig.warehouse.releases.losses import Losses, losses
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import ledger, models
from iosig.warehouse.store.ledger import Ledger
from iosig.warehouse.store.store import Store

_DAY_S = 86_400.0
_COUNTERS = (COUNTER_SAMPLES, SCRAPES)
#: key, in a release's settings, of the settings that differ for selected steps
_SELECTED = "selected_steps"
#: stale days of polls, of ends of runs and series, of predictions, of counters that may belong to jobs, and of queues
_Stale = tuple[list[date], list[date | None], list[date], list[date], list[date]]


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected steps, which a run executes instead of all steps, and the tables that they write."""

    steps: tuple[str, ...]
    tables: frozenset[str]


@dataclass(frozen=True)
class Plan:
    """Base release and landings of a run, and the days that it recomputes.

    `poll_days` are days of polls, except `late_days`, on which polls arrived after earlier polls were cleared.
    `job_days` are days on which runs or series ended, None for those without an end. `prediction_days` are days on
    which predictions were made. `counter_days` are days of polls with scraped counters; `told_days` also include the
    counter days of jobs with new data. `queue_days` are days with snapshots of the scheduler's queue. `losses` are
    files that a repair could not restore, so the plan recomputes them. A plan that is made again after a crash has the
    same fingerprint.
    """

    base: Release | None
    landed: Ledger = field(compare=False)
    inputs: tuple[str, ...]
    removed_inputs: tuple[str, ...]
    poll_days: tuple[date, ...]
    job_days: tuple[date | None, ...]
    parameters: str
    prediction_days: tuple[date, ...] = ()
    counter_days: tuple[date, ...] = ()
    told_days: tuple[date, ...] = ()
    late_days: tuple[date, ...] = ()
    queue_days: tuple[date, ...] = ()
    kind: str = field(default="run", compare=False)
    settles_rollback: bool = field(default=False, compare=False)
    mixed_settings: str | None = field(default=None, compare=False)
    reasons: tuple[str, ...] = field(default=(), compare=False)
    losses: Losses = field(default=Losses(), compare=False)
    selection: Selection | None = None

    @cached_property
    def days(self) -> tuple[date | None, ...]:
        """All recomputed days in order, None last."""
        days = {*self.poll_days, *self.job_days, *self.prediction_days, *self.told_days, *self.queue_days}
        return (*sorted(day for day in days if day is not None), *([None] if None in days else []))

    @cached_property
    def poll_span(self) -> tuple[date | None, date | None]:
        """The first and last day of landed polls and counters."""
        return poll_span(self.landed, self.landed.in_force)

    @cached_property
    def beginnings(self) -> dict[date, tuple[str, ...]]:
        """The file systems with their first landed polls on a day, by day."""
        by_day: dict[date, tuple[str, ...]] = {}
        for name, day in sorted(first_poll_days(self.landed, self.landed.in_force).items()):
            by_day[day] = (*by_day.get(day, ()), name)
        return by_day

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the operator before the run."""
        late = (
            f"polls of {day} are too late and ignored: the earlier polls of this day were deleted"
            for day in self.late_days
        )
        return (*late, *([self.mixed_settings] if self.mixed_settings else ()))

    @property
    def analysis_days(self) -> tuple[date | None, ...]:
        """Days with recomputed classes and periods; None for those of signatures, which have no day."""
        return self.job_days if None in self.job_days else (*self.job_days, None)

    @property
    def released_parameters(self) -> str:
        """The settings of the release, as JSON.

        If steps are selected, these are the base release's settings, plus those that differ for the selected steps.
        Such settings equal no others, so the next run recomputes everything.
        """
        if self.selection is None or self.base is None or self.base.parameters == self.parameters:
            return self.parameters
        document = json.loads(self.base.parameters)
        before, now = _flat(get_settings(self.base)), _flat(json.loads(self.parameters))
        changed = {name: value for name, value in now.items() if name not in before or before[name] != value}
        document[_SELECTED] = document.get(_SELECTED, {}) | dict.fromkeys(self.selection.steps, changed)
        return json.dumps(document, sort_keys=True)

    @property
    def released_code_version(self) -> str:
        """The code version of the release; if steps are selected, that of the base release."""
        return self.base.code_version if self.selection and self.base else code_version()

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hex digits that identify the plan's inputs."""
        content = [
            self.base.release_id if self.base else None,
            self.inputs,
            self.removed_inputs,
            [day and day.isoformat() for day in (*self.poll_days, *self.job_days)],
            [day.isoformat() for day in self.prediction_days],
            *([[day.isoformat() for day in self.queue_days]] if self.queue_days else ()),
            self.parameters,
            code_version(),
            *([self.selection.steps] if self.selection else ()),
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]


def poll_span(landed: Ledger, landings: pl.DataFrame) -> tuple[date | None, date | None]:
    """Return the first and last day of polls and counters in some landings."""
    files = landed.files.join(landings, on="folder", how="semi")
    days = files.filter(pl.col("table").is_in([table.name for table in (POLLS, *_COUNTERS)]))["day"]
    first, last = days.min(), days.max()
    assert first is None or isinstance(first, date)
    assert last is None or isinstance(last, date)
    return first, last


def first_poll_days(landed: Ledger, landings: pl.DataFrame) -> dict[str, date]:
    """Return the first day of polls of each file system in some landings.

    Older landings do not record their file systems, so their first day limits the days on which one is known to begin.
    """
    polls = landed.files.join(landings, on="folder", how="semi").filter(pl.col("table") == POLLS.name)
    unknown = polls.filter(pl.col("filesystems").is_null())["day"].min()
    recorded = polls.explode("filesystems").drop_nulls("filesystems").group_by("filesystems").agg(pl.col("day").min())
    return {name: day for name, day in recorded.iter_rows() if unknown is None or day <= unknown}


def code_version() -> str:
    """Return the version of the running iosig."""
    return version("iosig")


def get_settings(release: Release) -> dict[str, Any]:
    """Return the settings of a release, without those that differ for selected steps."""
    document: dict[str, Any] = json.loads(release.parameters)
    document.pop(_SELECTED, None)
    return document


def require_order(since: date | None, until: date | None) -> None:
    """Raise UsageError if a range of days ends before it begins."""
    if since and until and since > until:
        raise UsageError(f"since ({since}) comes after until ({until}): the range has no days.")


@dataclass(frozen=True, slots=True)
class Start:
    """Start of a plan: a base release, the ids of the landings that it has read, and the landings in force.

    missed: known landings that some tables lack, because a rollback restored these tables.
    """

    base: Release | None
    known: pl.Series
    landed: Ledger
    missed: tuple[str, ...] = ()


def start_now(store: Store, settings: Settings) -> Start:
    """Return the start of an ordinary plan: the current release, and all landings that no rollback excludes.

    Raises UsageError if the rollback in force does not allow these settings.
    """
    base, landed, hold = releases.current(store), ledger.read(store), holds.read(store)
    known_ids = releases.landings_in(store, base)
    if hold is None:
        return Start(base, known_ids, landed)
    if hold.ended_at:
        before = releases.landings_in(store, releases.find(store, hold.target_id))
        return Start(base, known_ids, landed, tuple(sorted({*known_ids} ^ {*before})))
    if hold.parameters not in (None, settings.parameters()):
        raise UsageError(
            f"The rollback to {hold.target_id} is in force, and the settings differ from those of that release: a "
            "run would recompute what was rolled back. Restore the settings, or choose what to exclude: `iosig "
            f"rollback {hold.target_id} --exclude-landing ID` or `--exclude-table NAME`. `iosig rollback --end` "
            "ends the rollback."
        )
    return Start(base, known_ids, landed.where(~pl.col("landing_id").is_in(hold.landing_ids)))


def _start_at_base(start: Start) -> Start:
    """Return the start of a run of selected steps, with only those landings that the base release has read."""
    if start.base is None:
        raise UsageError("No release exists yet to read other tables from. Run once without --select.")
    return Start(start.base, start.known, start.landed.where(pl.col("landing_id").is_in(start.known.implode())))


def make_plan(
    store: Store,
    settings: Settings,
    since: date | None = None,
    until: date | None = None,
    start: Start | None = None,
    kind: str = "run",
    selection: Selection | None = None,
) -> Plan:
    """Plan the days that are stale since the current release or another start, or all days of a range.

    kind: kind of the planned release. selection: steps to execute even if their tables are up to date, for all days of
    the current release or of the range.

    Raises NothingToDo if all tables are up to date, UsageError without any landing.
    """
    require_order(since, until)
    start = start or start_now(store, settings)
    if selection:
        start, kind = _start_at_base(start), SELECT
    base, known_ids, landed = start.base, start.known, start.landed
    if landed.in_force.is_empty():
        raise UsageError(f"No inputs have landed in {store.name} yet. Start with `iosig land PATH…`.")
    parameters = settings.parameters()
    is_converted = base is not None and releases.is_converted(base)
    if base and is_converted and (since or until or selection):
        raise UsageError(
            f"Release {base.release_id} was made by an older iosig: the first run after an upgrade computes every day. "
            f"Run once without {'--select' if selection else '--since and --until'}."
        )
    has_range = since is not None or until is not None
    is_whole = base is None or is_converted or base.parameters != parameters or has_range or selection is not None
    added, removed = _changes(landed, known_ids)
    missed = landed.select_landings(start.missed)
    replaced = missed.join(landed.in_force, on="landing_id", how="anti")
    replaced_or_removed = pl.concat([removed, replaced]).unique("landing_id", maintain_order=True)
    news = _News(
        store, settings, landed, pl.concat([landed.in_force, replaced_or_removed]), retention.read_closed_days(store)
    )
    # days without landings in force may still have rows in the base release
    touched = pl.concat([landed.in_force, replaced_or_removed] if is_whole else [added, removed, missed])
    touched = touched.unique("landing_id", maintain_order=True)
    unprocessed_losses = Losses() if selection else losses(store)
    if touched.is_empty() and not unprocessed_losses.days:
        hold = holds.in_force(store)
        raise NothingToDo(
            f"Nothing new since release {base.release_id if base else ''}.{f' {hold.sentence}' if hold else ''}"
        )
    poll_days, job_days, prediction_days, told_days, queue_days = _with_lost(
        news, touched, replaced_or_removed, unprocessed_losses.days
    )
    poll_days = sorted(
        {*poll_days, *_find_changed_coverage_days(store, base, landed, landed.select_landings(known_ids))} - news.closed
    )
    late_days = news.closed.intersection(_list_days(POLLS, landed.files.join(added, on="folder", how="semi")))
    set_aside = unprocessed_losses.landing_ids.intersection(known_ids) - {*landed.in_force["landing_id"]}
    mixed_settings = None
    if selection and base and base.parameters != parameters:
        mixed_settings = (
            f"the settings changed since {base.release_id}: tables of other steps keep its results until the next "
            "`iosig run`, which computes everything"
        )
    elif base and base.parameters != parameters and has_range and kind == "run":
        first = min((day for day in (*poll_days, *job_days) if day), default=since or until)
        mixed_settings = (
            f"the settings changed since {base.release_id}: days outside of the range keep its results until "
            f"`iosig run --since {first}` computes them again"
        )
    if since or until:
        # landings that concern days outside the range remain new for the next run
        added, removed = (
            lots[[place for place in range(lots.height) if _is_within(news.stale(lots[place]), since, until)]]
            for lots in (added, removed)
        )
    return Plan(
        base=base,
        landed=landed,
        inputs=tuple(added["landing_id"]),
        removed_inputs=(*removed["landing_id"], *sorted(set_aside)),
        poll_days=tuple(day for day in poll_days if _within(day, since, until)),
        job_days=tuple(day for day in job_days if _within(day, since, until)),
        parameters=parameters,
        prediction_days=tuple(day for day in prediction_days if _within(day, since, until)),
        counter_days=tuple(day for day in poll_days if day in news.counter_days and _within(day, since, until)),
        told_days=tuple(day for day in told_days if _within(day, since, until)),
        late_days=tuple(sorted(late_days)),
        queue_days=tuple(day for day in queue_days if _within(day, since, until)),
        kind=kind,
        mixed_settings=mixed_settings,
        reasons=(
            *([f"selected steps: {', '.join(selection.steps)}"] if selection else ()),
            *_reasons(
                start, settings, is_converted, (since, until), (added.height, removed.height), unprocessed_losses
            ),
        ),
        settles_rollback=bool(start.missed) and since is None and until is None,
        losses=Losses(
            frozenset(day for day in unprocessed_losses.days if _within(day, since, until)),
            unprocessed_losses.landing_ids,
        ),
        selection=selection,
    )


def _reasons(
    start: Start,
    settings: Settings,
    is_converted: bool,
    requested: tuple[date | None, date | None],
    input_counts: tuple[int, int],
    lost: Losses,
) -> Iterator[str]:
    """Yield the reasons for a plan, each as a phrase."""
    base, (since, until), (new_count, gone_count) = start.base, requested, input_counts
    if base is None:
        yield "no release exists yet"
    elif is_converted:
        yield f"{base.release_id} was computed by an older iosig"
    else:
        yield from _changes_of_settings(base, settings)
    if since or until:
        yield f"requested days: {since or 'the first'} to {until or 'the last'}"
    if base is not None and new_count:
        yield f"{new_count:,} new {'input' if new_count == 1 else 'inputs'}"
    if gone_count:
        yield f"{gone_count:,} {'input was' if gone_count == 1 else 'inputs were'} replaced or removed"
    if start.missed:
        yield "a rollback was ended"
    if lost.days:
        yield f"released files of {len(lost.days):,} {'day' if len(lost.days) == 1 else 'days'} are damaged"


def _changes_of_settings(base: Release, settings: Settings) -> Iterator[str]:
    """Yield the differences between the settings and those of a release."""
    old, new = _flat(get_settings(base)), _flat(json.loads(settings.parameters()))
    if changed := sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name)):
        yield f"settings changed: {', '.join(changed)}"
    if selected_steps := json.loads(base.parameters).get(_SELECTED):
        yield f"a selected run computed steps with other settings: {', '.join(selected_steps)}"


def _flat(parameters: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in parameters.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def _with_lost(
    news: _News, touched: pl.DataFrame, replaced_or_removed: pl.DataFrame, lost_days: Collection[date | None]
) -> _Stale:
    """Return the days of the given landings, and all days with damaged released files."""
    stale = news.stale(touched)
    if not lost_days:
        return stale
    everything = news.stale(
        pl.concat([news.landed.in_force, replaced_or_removed]).unique("landing_id", maintain_order=True)
    )

    def add_lost_days(place: int) -> list[Any]:
        return [day for day in everything[place] if day in stale[place] or day in lost_days]

    return add_lost_days(0), add_lost_days(1), add_lost_days(2), add_lost_days(3), add_lost_days(4)


def _find_changed_coverage_days(store: Store, base: Release | None, landed: Ledger, before: pl.DataFrame) -> set[date]:
    """Return the days of the release that became or ceased to be the first or last day of coverage.

    Coverage begins separately for each file system. On a partial day, polls outside its covered time do not count as
    missing. The expected polls of these days must therefore be recomputed if any were missing.
    """
    spans = [*zip(poll_span(landed, before), poll_span(landed, landed.in_force), strict=True)]
    first_before, first_now = (first_poll_days(landed, landings) for landings in (before, landed.in_force))
    spans += [(day, first_now.get(name)) for name, day in first_before.items()]
    edges = {day for old, new in spans if old != new for day in (old, new)}
    if base is None or not edges - {None}:
        return set()
    polls, counters = (_read_day_rows(store, base, table, edges) for table in (POLLS_DAILY, COUNTERS_DAILY))
    whole_day = (_DAY_S / pl.col("interval_s")).round().cast(pl.Int64) * pl.col("target_count")
    partial = (
        polls.filter(pl.col("is_partial_day") | (pl.col("missing_ratio") > 0))["polled_on"],
        counters.filter((pl.col("expected_scrape_count") < whole_day) | (pl.col("missing_ratio") > 0))["scraped_on"],
    )
    return {day for days in partial for day in days}


def _read_day_rows(store: Store, release: Release, table: Table, days: set[date | None]) -> pl.DataFrame:
    """Return a released table's rows on some days; columns that an older release lacks are NULL."""
    paths = releases.files_of(store, release).get(table.name, [])
    day_paths = [store.here(path) for path in paths if locations.parse_day(path) in days]
    return pl.concat([frames.empty(table), *map(read_parquet, day_paths)], how="diagonal")


def _changes(landed: Ledger, known_ids: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return landings in force that are not in `known_ids`, and those of `known_ids` that are no longer in force."""
    ids = known_ids.to_frame("landing_id")
    added = landed.in_force.join(ids, on="landing_id", how="anti", maintain_order="left")
    if landed.in_force.height - added.height == ids.height:
        return added, landed.landings.clear()
    return added, landed.select_landings(ids.join(landed.in_force, on="landing_id", how="anti")["landing_id"])


def _within(day: date | None, since: date | None, until: date | None) -> bool:
    return day is None or ((since is None or day >= since) and (until is None or day <= until))


def _is_within(stale: _Stale, since: date | None, until: date | None) -> bool:
    return all(_within(day, since, until) for days in stale for day in days)


@dataclass(frozen=True)
class _News:
    """All landings, including those replaced since the release, to find the days that new landings affect."""

    store: Store
    settings: Settings
    landed: Ledger
    landings: pl.DataFrame
    closed: set[date]

    def stale(self, touched: pl.DataFrame) -> _Stale:
        """Return the days of the release's tables that landings affect."""
        files = self.landed.files.join(touched, on="folder", how="semi")
        counter_days = self._counter_days(files)
        poll_days = sorted({*_list_days(POLLS, files), *counter_days} - self.closed)
        new = touched["landing_id"]
        with models.engine(self.store.builds / "spill", self.settings.engine.memory_limit) as connection:
            for table in (JOB_RECORDS, SERIES):
                models.expose_files(self.store, connection, table, self.landed.parts(table, self.landings))
            traces = self._traces(touched, _earliest_start(connection, new))
            models.expose_files(self.store, connection, TRACES, traces)
            parameters = {
                "landings": new.to_list(),
                "poll_days": poll_days,
                "clock_tolerance_s": self.settings.traces.clock_tolerance_s,
                "longest_interval_s": files["longest_interval_s"].max() or 0.0,
                "counter_days": counter_days,
                "counter_reaches_s": [self._reach_s(day) for day in counter_days],
            }
            stale = models.select(connection, STALE_DAYS, parameters)["ended_on"]
            told_days = {*counter_days, *(_days_with_jobs(connection, new) if self.counter_days else ())}
        job_days = [*stale.drop_nulls().sort(), *([None] if stale.null_count() else [])]
        counted_days = sorted(told_days & self.counter_days)
        return (
            poll_days,
            job_days,
            self._prediction_days(touched, files),
            counted_days,
            _list_days(QUEUE_RECORDS, files),
        )

    @cached_property
    def counter_days(self) -> set[date]:
        """The days on which counters were read, including those in landings that have been replaced."""
        files = self.landed.files.join(self.landings, on="folder", how="semi")
        return {day for table in _COUNTERS for day in _list_days(table, files)}

    def _counter_days(self, files: pl.DataFrame) -> list[date]:
        """Return the counter days of files, and later days that continue from their last values."""
        days = {day for table in _COUNTERS for day in _list_days(table, files)}
        after = {day + timedelta(days=1) for day in days}
        return sorted(days | (after & self.counter_days))

    def _reach_s(self, day: date) -> float:
        """Return how long before a day a job may have ended if the day's counters include its bytes [s].

        The counters cover the time since the last scrape of the same targets on the day before, plus the allowed delay.
        """
        before, current = (self._scan_last_scrapes(on) for on in (day - timedelta(days=1), day))
        last = before.join(current, on=TARGET, how="semi").select(pl.col("last_at").min()).collect().item()
        midnight = datetime.combine(day, time(), UTC)
        return self.settings.counters.grace_s + (0.0 if last is None else (midnight - last).total_seconds())

    def _scan_last_scrapes(self, day: date) -> pl.LazyFrame:
        """Return the targets that were scraped on a day, each with the time of its last scrape."""
        parts = self.landed.parts(SCRAPES, self.landings, pl.col("day") == day)
        paths = self.store.locals(parts["path"])
        rows = scan_parquet(paths) if paths else frames.empty(SCRAPES).lazy()
        return rows.group_by(TARGET).agg(last_at=pl.col("scraped_at").max())

    def _traces(self, touched: pl.DataFrame, earliest: datetime | None) -> pl.DataFrame:
        """Return the files of new traces, and of traces that may belong to jobs that started since a time."""
        is_meant = pl.col("folder").is_in(touched["folder"].unique().implode())
        if earliest is not None:
            since = earliest - timedelta(seconds=self.settings.traces.clock_tolerance_s)
            is_meant |= pl.col("is_untimed") | (pl.col("last_on") >= since.date())
        return self.landed.parts(TRACES, self.landings, is_meant)

    def _prediction_days(self, touched: pl.DataFrame, files: pl.DataFrame) -> list[date]:
        """Return the days of new predictions; all days if landed records were replaced.

        After a replacement, a record of another day may have become the first record of an evaluation.
        """
        table = PREDICTION_RECORDS
        repeated = touched.filter(pl.col("generation") > 0)
        is_anew = bool(_list_days(table, files.join(repeated, on="folder", how="semi")))
        return _list_days(table, self.landed.files.join(self.landings, on="folder", how="semi") if is_anew else files)


def _earliest_start(connection: duckdb.DuckDBPyConnection, landing_ids: pl.Series) -> datetime | None:
    """Return the start of the first job of some landings; None without jobs."""
    first: datetime | None = connection.sql(
        """
        select min(started_at at time zone 'UTC') from landed.job_records
        where landing_id in (select unnest($landings::varchar[]))
        """,
        params={"landings": landing_ids.to_list()},
    ).fetchall()[0][0]
    return first


def _days_with_jobs(connection: duckdb.DuckDBPyConnection, landing_ids: pl.Series) -> list[date]:
    """Return the days on which jobs of some landings were active."""
    rows = connection.sql(
        """
        select distinct unnest(
            range(
                date_trunc('day', started_at at time zone 'UTC'),
                date_trunc('day', coalesce(ended_at, started_at) at time zone 'UTC') + interval 1 day,
                interval 1 day
            )
        )::date as there_on
        from landed.job_records
        where landing_id in (select unnest($landings::varchar[]))
        """,
        params={"landings": landing_ids.to_list()},
    ).pl()
    days: list[date] = rows["there_on"].to_list()
    return days


def _list_days(table: Table, files: pl.DataFrame) -> list[date]:
    """Return the days of a table's files."""
    return files.filter(pl.col("table") == table.name)["day"].drop_nulls().unique().sort().to_list()

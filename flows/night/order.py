"""The night's order: which step follows which, inline or under Prefect alike."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from flows.landing import Arrival, Told, land_paths
from flows.settings import Settings
from flows.steps import (
    checks,
    classes,
    extrapolations,
    networks,
    periods,
    plan as planning,
    predictions,
    release,
    samples,
    signature_checks,
    signatures,
    stage,
    traces,
)
from flows.steps.checker import Checker, InProcess
from flows.steps.run import Run, judged_days
from warehouse.contracts import Table
from warehouse.contracts.classes import CLASSES
from warehouse.contracts.extrapolations import EXTRAPOLATIONS
from warehouse.contracts.job_io import JOB_IO
from warehouse.contracts.jobs import JOBS
from warehouse.contracts.networks import NETWORK_BOTTLENECKS, NETWORK_EDGES, NETWORK_PATTERNS, NETWORK_RUNS
from warehouse.contracts.periods import PERIODS
from warehouse.contracts.polls import POLL_DAYS, TICKS
from warehouse.contracts.predictions import PREDICTIONS
from warehouse.contracts.samples import APPLICATIONS, SAMPLE_SETS, SAMPLES
from warehouse.contracts.series import SERIES_INTERVALS
from warehouse.contracts.signatures import SIGNATURE_BURSTS, SIGNATURE_CHECKS, SIGNATURE_POINTS, SIGNATURES
from warehouse.contracts.traces import TRACE_COUNTERS, TRACE_HEATMAPS, TRACE_JOBS, TRACE_SIGNALS
from warehouse.releases.releases import Release
from warehouse.store import landing
from warehouse.store.store import Store, locked, write_json

#: told as work goes on: what was done, how many rows came of it, how many seconds it took
Report = Callable[[str, int, float], None]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the night: its name, what it does piece by piece, and the tables that are complete after it."""

    name: str
    work: Callable[[Run], Iterator[tuple[str, int]]]
    completes: tuple[Table, ...] = ()

    def do(self, run: Run) -> Iterator[tuple[str, int]]:
        """Do the step, and yield each piece with the rows that came of it; then its tables begin to be checked."""
        yield from self.work(run)
        checks.begin(run, self.completes)


def _jobs(run: Run) -> Iterator[tuple[str, int]]:
    yield from _once(run, "stage jobs", lambda: stage.stage_jobs(run))


def _polls(run: Run) -> Iterator[tuple[str, int]]:
    for day in run.plan.poll_days:
        yield from _once(run, f"stage polls {day}", lambda day=day: stage.stage_polls(run, day))  # type: ignore[misc]


def _traces(run: Run) -> Iterator[tuple[str, int]]:
    yield from _once(run, "stage traces", lambda: traces.stage_traces(run))
    for day in run.plan.job_days:
        if run.path(TRACE_JOBS, day).is_file():
            yield from _once(run, f"traces {day or 'undated'}", lambda day=day: traces.trace_signals(run, day))  # type: ignore[misc]


def _networks(run: Run) -> Iterator[tuple[str, int]]:
    for day in run.plan.job_days if run.settings.networks.is_nightly else ():
        if run.path(TRACE_JOBS, day).is_file():
            yield from _once(run, f"networks {day or 'undated'}", lambda day=day: networks.make_networks(run, day))  # type: ignore[misc]


def _extrapolations(run: Run) -> Iterator[tuple[str, int]]:
    yield from _once(run, "extrapolations", lambda: extrapolations.gather_extrapolations(run))


def _predictions(run: Run) -> Iterator[tuple[str, int]]:
    for day in run.plan.prediction_days:
        yield from _once(run, f"predictions {day}", lambda day=day: predictions.stage_predictions(run, day))  # type: ignore[misc]


def _samples(run: Run) -> Iterator[tuple[str, int]]:
    for day in run.plan.job_days:
        # a day on which only series or traces ended has no runs to cut samples for
        if day is not None and run.path(JOBS, day).is_file():
            yield from _once(run, f"samples {day}", lambda day=day: samples.cut_samples(run, day))  # type: ignore[misc]
    for day in run.plan.job_days:
        yield from _once(run, f"job i/o {day or 'undated'}", lambda day=day: samples.join_io(run, day))  # type: ignore[misc]
    yield from _once(run, "applications", lambda: samples.count_applications(run))


def _signatures(run: Run) -> Iterator[tuple[str, int]]:
    yield from _once(run, "sample sets", lambda: signatures.gather_sets(run))
    yield from _once(run, "signatures", lambda: signatures.make_signatures(run))
    yield from _once(run, "signature checks", lambda: signature_checks.check_signatures(run))


def _classes(run: Run) -> Iterator[tuple[str, int]]:
    for day in judged_days(run):
        yield from _once(run, f"classes {day or 'undated'}", lambda day=day: classes.classify(run, day))  # type: ignore[misc]


def _periods(run: Run) -> Iterator[tuple[str, int]]:
    for day in judged_days(run):
        yield from _once(run, f"periods {day or 'undated'}", lambda day=day: periods.find(run, day))  # type: ignore[misc]


def _checks(run: Run) -> Iterator[tuple[str, int]]:
    yield from _once(run, "quarantine", lambda: checks.gather_quarantine(run))
    yield from _once(run, "rejects", lambda: checks.gather_rejects(run))
    yield from _once(run, "checks", lambda: checks.check(run))


STEPS = (
    Step("stage polls", _polls, (POLL_DAYS, TICKS)),
    Step("stage jobs", _jobs, (SERIES_INTERVALS,)),
    Step(
        "traces",
        _traces,
        (TRACE_JOBS, TRACE_COUNTERS, TRACE_HEATMAPS, TRACE_SIGNALS),
    ),
    Step(
        "networks",
        _networks,
        (NETWORK_RUNS, NETWORK_EDGES, NETWORK_PATTERNS, NETWORK_BOTTLENECKS),
    ),
    Step("extrapolations", _extrapolations, (EXTRAPOLATIONS,)),
    Step("predictions", _predictions, (PREDICTIONS,)),
    Step("samples", _samples, (SAMPLES, JOB_IO, APPLICATIONS)),
    Step(
        "signatures",
        _signatures,
        (
            SAMPLE_SETS,
            SIGNATURES,
            SIGNATURE_POINTS,
            SIGNATURE_BURSTS,
            SIGNATURE_CHECKS,
        ),
    ),
    Step("classes", _classes, (CLASSES,)),
    Step("periods", _periods, (PERIODS,)),
    Step("checks", _checks),
)


def _once(run: Run, name: str, work: Callable[[], int]) -> Iterator[tuple[str, int]]:
    """Do a piece of work unless its mark says that it is done; leave the mark last."""
    mark = run.folder / "done" / f"{name.replace(' ', '-').replace('/', '')}.json"
    if mark.is_file():
        return
    count = work()
    write_json({"rows": count}, mark)
    yield name, count


def open_run(store: Store, settings: Settings, plan: planning.Plan, checker: Checker | None = None) -> Run:
    """Make ready to work on a plan: what other plans have left unfinished is removed."""
    run = Run(store, settings, plan, checker or InProcess())
    if store.builds.is_dir():
        for left in store.builds.iterdir():
            if left != run.folder:
                shutil.rmtree(left, ignore_errors=True)
    landing.sweep(store)
    run.folder.mkdir(parents=True, exist_ok=True)
    return run


def land_inbox(store: Store, settings: Settings) -> Iterator[Arrival]:
    """Land what is new in the settings' inbox, if there is one; what was landed before costs its hash."""
    if settings.schedule.inbox:
        yield from land_paths(store, settings, [str(settings.schedule.inbox)], Told())


def land_new(store: Store, settings: Settings) -> Iterator[Arrival]:
    """Land what is new in the inbox, and the predictions that were made since the night before."""
    yield from land_inbox(store, settings)
    yield from predictions.land_journal(store, settings)


def run_inline(
    store: Store,
    settings: Settings,
    report: Report,
    *,
    since: date | None = None,
    until: date | None = None,
    checker: Checker | None = None,
) -> Release:
    """Land the inbox and the predictions, do all steps of the plan without Prefect, and publish the release.

    Raises NothingToDo if nothing is stale, and GateFailed where a critical expectation does not hold: then
    nothing is released.
    """
    clock = _Clock(report)
    for arrival in land_new(store, settings):
        clock.tell(arrival.line() if arrival.refusal else f"land {Path(arrival.name).name}", arrival.row_count)
    with locked(store):
        run = open_run(store, settings, planning.make_plan(store, settings, since, until), checker)
        for step in STEPS:
            for name, count in step.do(run):
                clock.tell(name, count)
        published = release.release(run)
        clock.tell("release", len(published.snapshots))
        return published


class _Clock:
    """Reports what was done with the time since the last report."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._told_at = time.perf_counter()

    def tell(self, name: str, count: int) -> None:
        now = time.perf_counter()
        self._report(name, count, now - self._told_at)
        self._told_at = now

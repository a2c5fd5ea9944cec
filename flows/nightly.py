"""Execute the steps of the nightly flow, with or without Prefect."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

from iosig.flows.executors import Engine
from iosig.flows.report import after_release
from iosig.flows.schedule import Durations, ReadyItem, Schedule, execute
from iosig.flows.steps import plan as planning, predictions, release as releasing
from iosig.flows.steps.items import Day, ItemResult
from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Step
from iosig.settings.model import Settings
from iosig.streams.landing import Arrival, ReadOptions, land_paths
from iosig.warehouse import processes
from iosig.warehouse.releases.catalogue_choice import agree
from iosig.warehouse.releases.publishing import Adopted
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import landing
from iosig.warehouse.store.store import Store, lock_warehouse

#: called with the name of a completed action, its number of rows, and its duration [s]
Report = Callable[[str, int, float], None]
#: called when a step begins, with its name and the approximate remaining time [s], None if unknown
Begin = Callable[[str, float | None], None]
#: starts a work item that no earlier run has completed
Start = Callable[[ReadyItem], Future[ItemResult]]


def list_steps(plan: planning.Plan) -> tuple[Step, ...]:
    """Return the steps that a plan executes, with the checks of their tables."""
    # imports every method, which a run with nothing to do does not need
    from iosig.flows.steps.order import STEPS, WORK_STEPS, with_checks

    if plan.selection is None:
        return STEPS
    return with_checks([step for step in WORK_STEPS if step.name in plan.selection.steps])


# ---- a run


def begin_run(store: Store, settings: Settings, plan: planning.Plan) -> Run:
    """Return a run that executes a plan, after removing unfinished files of other plans."""
    run = Run(store, settings, plan)
    own_folder = run.place(run.folder)
    store.files.remove(
        *(f"builds/{folder}" for folder in store.files.folders("builds") if f"builds/{folder}" != own_folder)
    )
    if store.builds.is_dir():
        for copied in store.builds.iterdir():
            if copied != run.folder:
                shutil.rmtree(copied, ignore_errors=True)
    landing.sweep(store)
    run.folder.mkdir(parents=True, exist_ok=True)
    run.list_files()
    return run


class Uploads:
    """Copies files of complete tables to an object store while other tables are being built."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._executor = ThreadPoolExecutor(1, "uploads")
        self._begun: dict[str, Future[Adopted]] = {}

    def begin(self, schedule: Schedule) -> None:
        """Start copying the tables of completed steps; a local warehouse copies them at publication instead."""
        # a run of selected steps publishes nothing if its tables have not changed
        if self._run.store.url is None or self._run.plan.selection:
            return
        for step in schedule.completed_steps():
            if step.name not in self._begun:
                self._begun[step.name] = self._executor.submit(releasing.adopt, self._run, [step])

    def end(self) -> Adopted:
        """Wait for the copies, and return their locations; publication retries failed copies."""
        self._executor.shutdown()
        results = [future.result() for future in self._begun.values() if not future.exception()]
        return {name: places for copied in results for name, places in copied.items()}


def build(
    run: Run,
    engine: Engine,
    start: Start | None = None,
    begin: Begin = lambda *_: None,
    steps: Sequence[Step] | None = None,
) -> Iterator[ItemResult]:
    """Execute the work items of a run, and yield the results of those that no earlier run had completed.

    This includes checks; the last step decides on the release by all their verdicts.

    start: starts an item; by default on the engine. steps: steps to execute; None for those of the plan.
    """
    steps = list_steps(run.plan) if steps is None else steps
    checks_only = {step.name for step in steps if step.is_repeated}
    schedule, uploads = Schedule(run, steps), Uploads(run)
    durations = Durations(run.store)
    started_steps: set[str] = set()

    def start_item(ready: ReadyItem) -> Future[ItemResult]:
        if ready.is_cached and start is None:
            return _make_cached_future(ready)
        is_shown = not ready.item.is_check and ready.item.step not in checks_only
        if is_shown and not ready.is_cached and ready.item.step not in started_steps:
            started_steps.add(ready.item.step)
            begin(ready.item.step, durations.left_s(schedule.open_counts(), engine.worker_count))
        return (start or (lambda due_item: engine.submit(due_item.item, run.store.root)))(ready)

    # the release needs Iceberg, which takes a second to import
    on_idle = partial(processes.import_slow_module, "iosig.warehouse.releases.catalogue")
    for result in execute(run, schedule, start_item, engine.worker_count, on_idle):
        uploads.begin(schedule)
        if not result.is_cached:
            durations.add(result)
            if result.step not in checks_only:
                yield result
    durations.keep()
    run.uploaded.update(uploads.end())


def _make_cached_future(ready: ReadyItem) -> Future[ItemResult]:
    future: Future[ItemResult] = Future()
    future.set_result(ready.make_cached_result())
    return future


def publish(run: Run) -> Release:
    """Publish the tables that a run has built. Raises NothingToDo if selected steps have changed no table."""
    return releasing.release(run, list_steps(run.plan))


# ---- a run that is only planned


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step that a run would execute.

    days, item_count: days and number of work items; None if they depend on tables that the run builds.
    complete_item_count: number of items that an interrupted run of the same plan has completed. expected_s: duration
    estimated from the last run [s], None if unknown.
    """

    name: str
    days: tuple[Day, ...] | None
    item_count: int | None
    complete_item_count: int
    expected_s: float | None


def plan_steps(store: Store, settings: Settings, plan: planning.Plan) -> list[PlannedStep]:
    """Return the steps that a plan would execute, without checks and steps that have no work items."""
    run, durations = Run(store, settings, plan), Durations(store)
    planned = []
    for step in list_steps(plan):
        if step.is_repeated:
            continue
        if step.days_after:
            planned.append(PlannedStep(step.name, None, None, 0, None))
            continue
        days = tuple(step.days(run))
        item_days = days if step.is_daily else (None,)
        complete_count = sum(store.has(run.marker(step.item_name(day))) for day in item_days)
        open_count = len(item_days) - complete_count
        if item_days:
            expected_s = durations.left_s({step.name: open_count})
            planned.append(PlannedStep(step.name, days, len(item_days), complete_count, expected_s))
    return planned


# ---- landing


def land_inbox(store: Store, settings: Settings, executor: Executor | None = None) -> Iterator[Arrival]:
    """Land new content of the inbox, databases, Prometheus servers and Slurm, as the settings select.

    A file that has landed before is only hashed. executor: workers on other machines that land files.
    """
    schedule = settings.schedule
    inbox = [str(schedule.inbox)] if schedule.inbox else []
    yield from land_paths(store, settings, [*inbox, *schedule.databases], ReadOptions(), executor=executor)
    # clients of servers are imported only if the settings name servers
    if schedule.prometheus:
        from iosig.streams.prometheus import land_prometheus

        for url in schedule.prometheus:
            yield from land_prometheus(store, settings, url, ReadOptions())
    if schedule.slurm:
        from iosig.streams.slurm import land_slurm

        yield from land_slurm(store, settings)


def land_new(store: Store, settings: Settings, executor: Executor | None = None) -> Iterator[Arrival]:
    """Land new content of the inputs, and the predictions that were made since the last nightly run."""
    yield from land_inbox(store, settings, executor)
    yield from predictions.land_journal(store, settings)


# ---- without Prefect


def run_inline(
    store: Store,
    settings: Settings,
    report: Report,
    *,
    since: date | None = None,
    until: date | None = None,
    engine: Engine | None = None,
    lock_timeout_s: float = 0.0,
    begin: Begin = lambda *_: None,
    kind: str = "run",
    selection: planning.Selection | None = None,
) -> Release:
    """Land new inputs, execute a plan without Prefect, and publish the release.

    report: called with each completed step. begin: called with each starting step and the remaining time. kind: kind of
    the release. selection: steps to execute; they read the inputs of the current release, and no new inputs land.
    Raises NothingToDo if all tables are up to date. Raises GateFailed if a critical expectation fails; then no release
    is published.
    """
    clock, engine = _Clock(report), engine or Engine()
    if selection is None:
        begin("land", None)
        for arrival in land_new(store, settings, engine.remote):
            name = arrival.line() if arrival.refusal else f"land {Path(arrival.shown_name).name}"
            clock.tell(name, arrival.row_count)
    with lock_warehouse(store, lock_timeout_s):
        agree(store, settings.catalogue.server())
        releasing.complete(store)
        plan = planning.make_plan(store, settings, since, until, kind=kind, selection=selection)
        run = begin_run(store, settings, plan)
        for warning in run.plan.warnings:
            report(warning, 0, 0.0)
        for result in build(run, engine, begin=begin):
            report(result.name, result.row_count, result.duration_s)
        begin("release", None)
        clock.restart()
        published = publish(run)
        clock.tell("release", len(published.snapshots))
        for name, count in releasing.maintain(store, settings).lines():
            clock.tell(name, count)
    if report_line := after_release(store, settings, published):
        clock.tell(*report_line)
    return published


class _Clock:
    """Reports completed actions, each with the time since the last report."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self.restart()

    def restart(self) -> None:
        self._told_at = time.perf_counter()

    def tell(self, name: str, count: int) -> None:
        self._report(name, count, time.perf_counter() - self._told_at)
        self.restart()

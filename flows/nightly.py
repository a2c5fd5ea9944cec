"""The night's order: which step follows which, inline or under Prefect alike."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from iosig.flows.executors import Executor, Inline
from iosig.flows.pace import Begin, Pace
from iosig.flows.report import after_release
from iosig.flows.steps import (
    attribution,
    checks,
    classes,
    counters,
    exact_checks,
    exact_samples,
    inference,
    joint,
    metadata_periods,
    metadata_rates,
    networks,
    periods,
    plan as planning,
    predictions,
    release as releasing,
    samples,
    signature_checks,
    signatures,
    stage,
    traces,
    unnamed_patterns,
)
from iosig.flows.steps.pieces import Done
from iosig.flows.steps.run import Run, Work
from iosig.settings.model import Settings
from iosig.streams.landing import Arrival, Told, land_paths
from iosig.warehouse import processes
from iosig.warehouse.releases.catalogue_choice import agree
from iosig.warehouse.releases.publishing import Adopted
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store import landing
from iosig.warehouse.store.store import Store, locked

#: told as work goes on: what was done, how many rows came of it, how many seconds it took
Report = Callable[[str, int, float], None]


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the night: its name, and its work in order."""

    name: str
    works: tuple[Work, ...]


#: the order: each kind of work comes after all whose tables it reads
STEPS = (
    Step("stage counters", (counters.ENDS, counters.RISES)),
    Step("stage polls", (stage.POLLS_WORK,)),
    Step("stage jobs", (stage.JOBS_WORK, stage.QUEUE_WORK)),
    Step("traces", (traces.STAGE, traces.SIGNALS)),
    Step("networks", (networks.WORK,)),
    Step("extrapolations", (stage.EXTRAPOLATIONS_WORK,)),
    Step("predictions", (predictions.WORK,)),
    Step("samples", (samples.CUT, exact_samples.WORK, samples.IO, samples.COUNT, counters.UNASSIGNED)),
    Step("signatures", (signatures.GATHER, joint.WORK, signature_checks.WORK, exact_checks.WORK)),
    Step("attribution", (attribution.WORK, attribution.LIMITS, attribution.DAYS, attribution.ESTIMATES)),
    Step("unnamed patterns", (unnamed_patterns.WORK,)),
    Step("classes", (classes.WORK,)),
    Step("periods", (periods.WORK, metadata_periods.WORK)),
    Step("inference", (inference.WORK,)),
    Step("metadata rates", (metadata_rates.WORK,)),
    Step("checks", (checks.QUARANTINED, checks.REJECTED, checks.DECIDED)),
)


@dataclass(frozen=True)
class Night:
    """A run, who does its pieces, the checks that are under way, and what comes to its place in a release."""

    run: Run
    executor: Executor = field(default_factory=Inline)
    begun: list[Future[Done]] = field(default_factory=list)
    adopted: list[Future[Adopted]] = field(default_factory=list)
    beside: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "adopting"))

    def do(self, step: Step, begin: Callable[[str], None] = lambda _: None) -> Iterator[Done]:
        """Do what is to be done of a step, and yield each piece as it ends; `begin` is told if there is anything.

        Tables that are complete begin to be held to their suites meanwhile.
        """
        root, is_begun = self.run.store.root, False
        for work in step.works:
            if work.is_last and not is_begun:
                begin(step.name)
                is_begun = True
            if work.is_last:
                self._end_checks()
            left = [piece for piece in work.pieces(self.run) if not self.run.has(piece.mark)]
            if left and not is_begun:
                begin(step.name)
                is_begun = True
            yield from self.executor.each(root, left)
            if left:
                self.run.look()
            self.begun.extend(self.executor.begin(root, piece) for piece in checks.check_pieces(self.run, work))

    def _end_checks(self) -> None:
        # The release needs Iceberg, whose import takes a second: where a child checks, it goes on meanwhile.
        processes.imported("iosig.warehouse.releases.catalogue")
        for check in self.begun:
            check.result()

    def adopt(self, step: Step) -> None:
        """Begin to bring what a step built to where a release keeps it, where others work meanwhile.

        In a folder that is done at once when the time has come.
        """
        if self.run.store.url is not None and not any(work.is_last for work in step.works):
            self.adopted.append(self.beside.submit(releasing.adopt, self.run, step.works))

    def release(self) -> Release:
        """Publish what was built."""
        self.executor.end()
        self.beside.shutdown()
        # what could not be brought is tried again, and told then
        adopted = {name: own for one in self.adopted if not one.exception() for name, own in one.result().items()}
        return releasing.release(self.run, (work for step in STEPS for work in step.works), adopted)

    def maintain(self) -> releasing.Freed:
        """Let go what the settings do not keep."""
        return releasing.maintain(self.run.store, self.run.settings)


def open_night(store: Store, settings: Settings, plan: planning.Plan, executor: Executor | None = None) -> Night:
    """Make ready to work on a plan: what other plans have left unfinished is removed."""
    run = Run(store, settings, plan)
    own = run.place(run.folder)
    store.files.remove(*(f"builds/{left}" for left in store.files.folders("builds") if f"builds/{left}" != own))
    if store.builds.is_dir():
        for copied in store.builds.iterdir():
            if copied != run.folder:
                shutil.rmtree(copied, ignore_errors=True)
    landing.sweep(store)
    run.folder.mkdir(parents=True, exist_ok=True)
    run.look()
    return Night(run, executor or Inline())


def land_inbox(store: Store, settings: Settings) -> Iterator[Arrival]:
    """Land what is new in the settings' inbox, databases and Prometheus servers, and what Slurm is asked for.

    A file that was landed before costs its hash.
    """
    schedule = settings.schedule
    inbox = [str(schedule.inbox)] if schedule.inbox else []
    yield from land_paths(store, settings, [*inbox, *schedule.databases], Told())
    # what asks servers is imported where there are some
    if schedule.prometheus:
        from iosig.streams.prometheus import land_prometheus

        for url in schedule.prometheus:
            yield from land_prometheus(store, settings, url, Told())
    if schedule.slurm:
        from iosig.streams.slurm import land_slurm

        yield from land_slurm(store, settings)


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
    executor: Executor | None = None,
    wait_s: float = 0.0,
    begin: Begin = lambda *_: None,
    kind: str = "run",
) -> Release:
    """Land the inbox and the predictions, do all steps of the plan without Prefect, and publish the release.

    report is called with what was done, begin with what is done next and the time left. kind: of the release.
    Raises NothingToDo if nothing is stale, and GateFailed where a critical expectation does not hold: then
    nothing is released.
    """
    clock = _Clock(report)
    begin("land", None)
    for arrival in land_new(store, settings):
        clock.tell(arrival.line() if arrival.refusal else f"land {Path(arrival.shown_name).name}", arrival.row_count)
    with locked(store, wait_s):
        agree(store, settings.catalogue.server())
        releasing.complete(store)
        night = open_night(store, settings, planning.make_plan(store, settings, since, until, kind=kind), executor)
        for warning in night.run.plan.warnings:
            report(warning, 0, 0.0)
        names = [*(step.name for step in STEPS), "release"]
        pace = Pace(store, names, len(night.run.plan.days), begin)
        for step in STEPS:
            for piece in night.do(step, pace.begin):
                report(piece.name, piece.row_count, piece.duration_s)
            night.adopt(step)
        pace.begin("release")
        clock.restart()
        published = night.release()
        clock.tell("release", len(published.snapshots))
        for name, count in night.maintain().lines():
            clock.tell(name, count)
        pace.keep()
    if told := after_release(store, settings, published):
        clock.tell(*told)
    return published


class _Clock:
    """Reports what was done with the time since the last report."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self.restart()

    def restart(self) -> None:
        self._told_at = time.perf_counter()

    def tell(self, name: str, count: int) -> None:
        self._report(name, count, time.perf_counter() - self._told_at)
        self.restart()

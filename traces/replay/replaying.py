"""Replay a trace: survey, check and prepare it, execute it by processes or by MPI, and report the results."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from iosig.traces.replay import mpi, planning, processes, reports, traces
from iosig.traces.replay.execution import Done
from iosig.traces.replay.ordering import Order, choose_order
from iosig.traces.replay.planning import Survey
from iosig.traces.replay.processes import Job
from iosig.traces.replay.reports import Report
from iosig.traces.replay.scripts import ReplayMode
from iosig.warehouse.errors import InputRefused, UsageError

#: default number of processes per core of the machine; minimum number of processes
_PROCESSES_PER_CORE, _MIN_PROCESSES = 2, 8

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Replay options, as given on the command line."""

    ranks: str | None = None
    process_count: int | None = None
    is_timed: bool = False
    output: Path | None = None
    is_dry_run: bool = False
    mode: ReplayMode = "posix"
    trace_output: Path | None = None
    seed: int = 0


def replay(path: Path, options: ReplayOptions, tell: Tell) -> Report:
    """Replay a trace or only plan it; `tell` receives progress messages.

    Raises InputRefused if the trace cannot be replayed, and UsageError if the requested mode does not apply.
    """
    if options.mode == "mpi":
        mpi.require()
        if options.trace_output is not None:
            raise UsageError("--trace-output records POSIX calls only. Trace an MPI replay with an MPI tracer.")
    trace, traced_s = traces.open_trace(path, nested=options.mode == "nested")
    ranks = traces.parse_ranks(options.ranks, trace.process_count)
    shares = processes.distribute_ranks(ranks, _process_count(options, len(ranks)))
    with _raise_on_sigterm(), _folders(options) as (folder, scratch):
        job = Job(trace, options.mode, options.is_timed, options.seed, scratch)
        if options.is_dry_run or options.mode == "mpi":
            survey = planning.merge_surveys(processes.build_scripts(job, share, scratch)[1] for share in shares)
            order, plan = _make_plan(survey, folder, options, len(shares), traced_s)
            if options.is_dry_run:
                return plan
            faults = planning.prepare(survey.uses, folder, tell)
            results, start_s = mpi.replay(job, ranks, order, folder, scratch, tell)
        else:
            with processes.start_processes(job, shares) as running:
                survey = planning.merge_surveys(running.surveys(lambda _: None))
                order, plan = _make_plan(survey, folder, options, len(shares), traced_s)
                faults = planning.prepare(survey.uses, folder, tell)
                results, start_s = _execute(running, (folder, scratch), order, options, trace.process_count, tell)
        sizes = planning.sizes_under(folder, survey.uses.files)
        return reports.report_result(plan, results, start_s, sizes, faults)


def _execute(
    running: processes.Processes,
    folders: tuple[Path, Path],
    order: Order,
    options: ReplayOptions,
    count: int,
    tell: Tell,
) -> tuple[list[Done], float]:
    folder, scratch = folders
    go = processes.make_start_message(folder, scratch / "board", order, running.shares, (options.trace_output, count))
    return running.replay(go, _Progress(tell))


def _make_plan(
    survey: Survey, folder: Path, options: ReplayOptions, process_count: int, traced_s: float | None
) -> tuple[Order, Report]:
    """Return the order among the ranks, and the plan.

    Raises InputRefused if the trace has no replayable calls, or disk space is insufficient.
    """
    if not survey.counts:
        raise InputRefused("The trace has no replayable calls.", "`--dry-run --json` lists its calls.")
    order = choose_order(survey.visits, len(survey.ranks))
    if order.ignored:
        survey.uses.drop_order()
    planning.check(survey, folder)
    folder_text = str(options.output) if options.output is not None else "a temporary folder"
    plan = reports.report_plan(
        survey, order, folder_text, is_timed=options.is_timed, process_count=process_count, traced_s=traced_s
    )
    return order, plan


def _process_count(options: ReplayOptions, rank_count: int) -> int:
    if options.mode == "mpi":
        return rank_count
    if options.process_count is not None:
        return min(options.process_count, rank_count)
    return min(rank_count, max(_MIN_PROCESSES, _PROCESSES_PER_CORE * (os.cpu_count() or 1)))


class _Progress:
    """Reports the number of executed steps at intervals."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._next_s = time.monotonic() + 2.0

    def __call__(self, step_count: float) -> None:
        if time.monotonic() >= self._next_s:
            self._tell(f"{step_count:,.0f} steps done")
            self._next_s = time.monotonic() + 2.0


# ---- folders


@contextmanager
def _folders(options: ReplayOptions) -> Iterator[tuple[Path, Path]]:
    """Yield the folder of the replay's files and a scratch folder; temporary ones are removed with the context."""
    with tempfile.TemporaryDirectory(prefix="iosig-replay-own-") as scratch:
        if options.trace_output is not None and not options.is_dry_run:
            _require_empty(options.trace_output, "--trace-output")
            if options.output is not None and options.trace_output.resolve().is_relative_to(options.output.resolve()):
                raise UsageError("--trace-output must be outside the replay's folder (--output).")
        if options.output is None:
            with tempfile.TemporaryDirectory(prefix="iosig-replay-") as folder:
                yield Path(folder), Path(scratch)
        elif options.is_dry_run:
            yield _existing(options.output.absolute()), Path(scratch)
        else:
            _require_empty(options.output, "--output")
            yield options.output.resolve(), Path(scratch)


def _existing(folder: Path) -> Path:
    """Return the folder, or its nearest existing parent, which is on the same disk."""
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def _require_empty(folder: Path, option: str) -> None:
    """Create the folder; raise UsageError if it is not empty or cannot be created."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"{option} {folder}: the folder is not empty. Choose a new or empty one.")
    except OSError as error:
        raise UsageError(f"{option} {folder}: {error.strerror}.") from error


@contextmanager
def _raise_on_sigterm() -> Iterator[None]:
    """Convert SIGTERM to an exception, so that processes are ended and temporary folders removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

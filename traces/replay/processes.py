"""Run the processes of a replay: start them together, monitor them, and always terminate them.

Each process expands and surveys its ranks, and reports their planned work. When all are ready, they start at the same
instant. If one dies, the replay is aborted for all, so that no process waits forever.
"""

from __future__ import annotations

import gc
import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any, NoReturn

from iosig.traces.replay.barriers import BrokenBarrierError, Gates, OpenBoard, SharedCounters
from iosig.traces.replay.execution import Done, Executor, run
from iosig.traces.replay.files import uses
from iosig.traces.replay.functions import VERBS, Verb
from iosig.traces.replay.libc import Calls, NotedCalls, content
from iosig.traces.replay.ordering import Order, visits
from iosig.traces.replay.pacing import Pacing
from iosig.traces.replay.planning import Survey, raise_limit
from iosig.traces.replay.sandbox import Sandbox
from iosig.traces.replay.scripts import ReplayMode, Script, compile_script
from iosig.traces.replay.traces import list_calls
from iosig.traces.replay.turns import advance, sleep_until
from iosig.transforms.traces.trace import CompressedTrace
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.processes import ending_with_parent

#: maximum number of steps per process in memory; more are stored in files
_MAX_STEPS_IN_MEMORY = 1 << 20
#: delay between the start message and the start, sufficient for every process to receive it
_LEAD_S = 0.1
#: time without progress and without an intended wait after which a replay counts as stalled
STALLED_S = 600.0
_POLL_INTERVAL_S = 0.25
_GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class Job:
    """A replay job with the trace, its mode, the random seed of delta times, and a folder for data beyond memory."""

    trace: CompressedTrace
    mode: ReplayMode
    is_timed: bool
    seed: int
    scratch: Path


@dataclass(frozen=True, slots=True)
class Go:
    """Start parameters that each process receives."""

    folder: Path
    board: SharedCounters
    order: Order
    #: names of the communicators that ranks wait on, by number
    communicators: tuple[str, ...]
    members: tuple[int, ...]
    #: by communicator: the processes that run any of its ranks
    processes: tuple[tuple[int, ...], ...]
    trace_output: Path | None
    rank_digits: int


# ---- within a process


def build_scripts(job: Job, ranks: Sequence[int], scratch: Path) -> tuple[list[Script], Survey]:
    """Return the scripts of ranks; steps beyond the memory limit are stored in files under `scratch`."""
    pacing = Pacing(job.trace, job.seed)
    survey, scripts = Survey(), []
    for rank in ranks:
        calls = list_calls(job.trace, rank)
        compiled = compile_script(rank, calls, pacing.spent(rank, calls), job.mode)
        survey.add(Survey.from_script(compiled.script, uses(compiled)))
        scripts.append(compiled.script.spill(scratch) if survey.step_count > _MAX_STEPS_IN_MEMORY else compiled.script)
    survey.visits = visits(scripts)
    return scripts, survey


def _work(
    job: Job, ranks: tuple[int, ...], index: int, connection: Connection, lock: Any, semaphores: list[Any]
) -> None:
    """Run one process of the replay: survey, wait for the start message, replay, report."""
    ending_with_parent()
    try:
        scripts, survey = build_scripts(job, ranks, job.scratch)
        connection.send(("surveyed", survey))
        go = connection.recv()
        connection.send(("done", _perform(job, go, scripts, survey, connection, (index, lock, semaphores))))
    except InputRefused as error:
        connection.send(("refused", (error.reason, error.remedy)))
    except (BrokenBarrierError, EOFError, BrokenPipeError):
        return
    except BaseException:
        connection.send(("failed", traceback.format_exc()))


def _perform(
    job: Job, go: Go, scripts: list[Script], survey: Survey, connection: Connection, shared: tuple[int, Any, list[Any]]
) -> tuple[list[Done], float]:
    """Execute the ranks; return their results, and the start time (monotonic clock [s])."""
    index, lock, semaphores = shared
    raise_limit()
    board = go.board.open()
    gates = Gates(board, lock, semaphores, index, go.members, go.processes)
    memory = content(survey.request_bytes)
    with ExitStack() as stack:
        sandbox = Sandbox(go.folder)
        stack.callback(sandbox.close)
        calls = [_calls(go, script, sandbox, memory, stack) for script in scripts]
        executors = [
            Executor(script, call, leads(go.order, script)) for script, call in zip(scripts, calls, strict=True)
        ]
        # garbage collections during the replay would delay all ranks and free little
        gc.collect()
        gc.disable()
        connection.send(("ready", None))
        start_s = connection.recv()
        for call in calls:
            if isinstance(call, NotedCalls):
                call.start_s = start_s
        results = [Done(script.rank) for script in scripts]
        steps = [
            run(
                executor,
                is_timed=job.is_timed,
                synced=_number_communicators(go, executor.script),
                result=result,
                start_s=start_s,
            )
            for executor, result in zip(executors, results, strict=True)
        ]
        sleep_until(start_s)
        advance(steps, gates, _teller(board, index))
    return results, start_s


def _calls(go: Go, script: Script, sandbox: Sandbox, memory: Any, stack: ExitStack) -> Calls | NotedCalls:
    calls = Calls(sandbox, memory)
    if go.trace_output is None:
        return calls
    path = go.trace_output / f"{script.rank:0{go.rank_digits}}.txt"
    lines: IO[str] = stack.enter_context(path.open("x", encoding="utf-8", errors="surrogateescape", buffering=1 << 20))
    return NotedCalls(calls, lines, _own_name)


def _own_name(function: str) -> str | None:
    """Return the logged name of a call: its own, or for MPI-IO calls the name of the POSIX call made instead."""
    return function if VERBS.get(function, Verb.MPI_OPEN) < Verb.MPI_OPEN else None


def leads(order: Order, script: Script) -> dict[int, bool]:
    """Return, by communicator, whether this rank performs the operations that a single rank performs for all.

    Without an order among ranks, all ranks perform them.
    """
    return {
        number: order.leaders.get(name, script.rank) == script.rank for number, name in enumerate(script.communicators)
    }


def _number_communicators(go: Go, script: Script) -> dict[int, int]:
    numbers = {name: number for number, name in enumerate(go.communicators)}
    return {number: numbers[name] for number, name in enumerate(script.communicators) if name in numbers}


def _teller(board: OpenBoard, index: int) -> Callable[[int, float], None]:
    def tell(step_count: int, until: float) -> None:
        board.calls[index] = step_count
        board.until_ns[index] = int(until * 1e9)

    return tell


# ---- all processes


class Processes:
    """The processes of a replay; made by `start_processes`, which ends them."""

    def __init__(self, job: Job, shares: Sequence[tuple[int, ...]]) -> None:
        context = multiprocessing.get_context("spawn")
        self.shares = shares
        self._lock = context.Lock()
        self._semaphores = [context.Semaphore(0) for _ in shares]
        self._ends: list[Connection] = []
        self._processes: list[BaseProcess] = []
        self._board: OpenBoard | None = None
        self._context = context
        self._job = job

    def start(self) -> None:
        """Start all processes, each with a pipe to this one."""
        for index, ranks in enumerate(self.shares):
            parent_end, child_end = self._context.Pipe()
            process = self._context.Process(
                target=_work, args=(self._job, ranks, index, child_end, self._lock, self._semaphores), daemon=True
            )
            process.start()
            child_end.close()
            self._ends.append(parent_end)
            self._processes.append(process)

    @property
    def ids(self) -> list[int]:
        """Return the operating system's process ids."""
        return [process.pid or 0 for process in self._processes]

    def surveys(self, tell: Callable[[float], None]) -> list[Survey]:
        """Wait for the surveys of all processes."""
        return self._gather("surveyed", tell)

    def replay(self, go: Go, tell: Callable[[float], None]) -> tuple[list[Done], float]:
        """Start the replay in all processes at once; return the ranks' results, and the start time (monotonic [s])."""
        self._board = go.board.open()
        self._send(go)
        self._gather("ready", tell)
        self._send(time.monotonic() + _LEAD_S)
        outcomes = self._gather("done", tell)
        return [result for results, _ in outcomes for result in results], outcomes[0][1]

    def _send(self, message: object) -> None:
        for index, end in enumerate(self._ends):
            try:
                end.send(message)
            except (BrokenPipeError, ConnectionResetError):
                self._lost(index)

    def _gather(self, expected: str, tell: Callable[[float], None]) -> list[Any]:
        """Return the answer of each process, in order; raise if one ends without an answer, or the replay stalls."""
        answers: dict[int, Any] = {}
        watched = _Stall()
        while len(answers) < len(self._ends):
            open_ = {id(self._ends[index]): index for index in range(len(self._ends)) if index not in answers}
            for end in wait([self._ends[index] for index in open_.values()], timeout=_POLL_INTERVAL_S):
                answers[open_[id(end)]] = self._answer(open_[id(end)], expected)
            if self._board is not None:
                tell(float(self._board.calls.sum()))
                watched.check(self._board, len(answers))
        return [answers[index] for index in range(len(self._ends))]

    def _answer(self, index: int, expected: str) -> Any:
        try:
            kind, payload = self._ends[index].recv()
        except (EOFError, ConnectionResetError):
            self._lost(index)
        if kind == "refused":
            raise InputRefused(*payload)
        if kind != expected:
            raise RuntimeError(f"A process of the replay failed:\n{payload}")
        return payload

    def _lost(self, index: int) -> NoReturn:
        self._processes[index].join(_GRACE_S)
        code = self._processes[index].exitcode
        cause = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        ranks = self.shares[index]
        raise InputRefused(
            f"The process of ranks {ranks[0]} to {ranks[-1]} ended early {cause}; the replay was aborted.",
            "Find the cause (out of memory?), and replay again, possibly with fewer ranks.",
        )

    def end(self) -> None:
        """Terminate all processes that are still alive."""
        if self._board is not None:
            self._board.broken[0] = 1
        for process in self._processes:
            if process.is_alive():
                process.terminate()
        for process in self._processes:
            process.join(_GRACE_S)
            if process.is_alive():
                process.kill()
                process.join()
        for end in self._ends:
            end.close()


class _Stall:
    """Detection of a replay without progress."""

    def __init__(self) -> None:
        self._last = (-1, -1)
        self._changed_s = time.monotonic()

    def check(self, board: OpenBoard, answer_count: int) -> None:
        """Raise InputRefused after a long time without progress and without an intended wait."""
        now = time.monotonic()
        progress = int(board.calls.sum()), answer_count
        if progress != self._last:
            self._last, self._changed_s = progress, now
        idle_s = now - max(self._changed_s, float(board.until_ns.max(initial=0)) / 1e9)
        if idle_s > STALLED_S:
            raise InputRefused(
                f"No rank made progress for {STALLED_S:.0f} s; the replay was aborted.",
                "Check that the file system responds, and replay again.",
            )


@contextmanager
def start_processes(job: Job, shares: Sequence[tuple[int, ...]]) -> Iterator[Processes]:
    """Start one process for each group of ranks; all are terminated when the context ends."""
    processes = Processes(job, shares)
    try:
        processes.start()
        yield processes
    finally:
        processes.end()


def distribute_ranks(ranks: Sequence[int], process_count: int) -> list[tuple[int, ...]]:
    """Distribute the ranks over processes: contiguous blocks of nearly equal size."""
    count = max(1, min(process_count, len(ranks)))
    cuts = [len(ranks) * at // count for at in range(count + 1)]
    return [tuple(ranks[first:last]) for first, last in pairwise(cuts)]


def make_start_message(
    folder: Path, board: Path, order: Order, shares: Sequence[tuple[int, ...]], trace: tuple[Path | None, int]
) -> Go:
    """Return the start message for the processes."""
    names = tuple(order.members)
    carried: Mapping[int, int] = {rank: index for index, ranks in enumerate(shares) for rank in ranks}
    processes = tuple(tuple(sorted({carried[rank] for rank in order.ranks[name]})) for name in names)
    counters = SharedCounters(board, len(shares), len(names)).make()
    members = tuple(order.members[name] for name in names)
    return Go(folder, counters, order, names, members, processes, trace[0], len(str(max(0, trace[1] - 1))))

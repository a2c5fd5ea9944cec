"""Processes that work side by side: started fresh, of one thread each where libraries would start some of their own."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from multiprocessing import get_context, parent_process, resource_tracker
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from iosig.warehouse.errors import MachineFault
from iosig.warehouse.interrupts import left_at_once

_Params = ParamSpec("_Params")
_Answer = TypeVar("_Answer")
_Key = TypeVar("_Key")

#: calls under way for each process: the one that it is at, and the next
AHEAD = 2

#: workers are the threads; libraries that start some of their own only get into their way
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
#: how many threads Polars has, and with it DuckDB: each process its share of the cores
_THREADS = "POLARS_MAX_THREADS"
#: Polars gives back what it frees after half a second, and the next piece of a large file asks for as much: to have it
#: zeroed again was an eighth of what landing took. What it says of that itself it says in the environment, too.
_MEMORY, _OF_POLARS = "_RJEM_MALLOC_CONF", "dirty_decay_ms:500,muzzy_decay_ms:1000"
_KEPT_MEMORY = "dirty_decay_ms:10000,muzzy_decay_ms:10000"

#: What is freed is kept for the next array, up to so much, and arrays up to 32 MB have a place in it. Either number by
#: itself would have the C library (glibc) ask the system for each array of 128 KB anew, which is worse than neither.
ALLOCATION = {"MALLOC_TRIM_THRESHOLD_": str(256 << 20), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}


class WorkerLost(MachineFault):
    """A process ended before it answered."""


class Workers(Protocol):
    """Who calls functions side by side: processes of this machine, or those of several."""

    @property
    def worker_count(self) -> int:
        """How many calls are done at a time."""

    def begin(self, function: Callable[..., _Answer], *args: Any) -> Future[_Answer]:
        """Have a function called by one of them."""


class Pool:
    """So many processes, of which each is started when it is needed first; none outlives this one, however it ends."""

    def __init__(self, worker_count: int) -> None:
        self.worker_count = worker_count
        # a fork of a process that has threads may hang
        context = get_context("spawn")
        self._processes = ProcessPoolExecutor(worker_count, mp_context=context, initializer=_working)
        share = max(1, (os.cpu_count() or 1) // worker_count)
        self._variables = _ONE_THREAD | ALLOCATION | {_THREADS: str(share)}

    def begin(self, function: Callable[..., _Answer], *args: Any) -> Future[_Answer]:
        """Have a function called in one of the processes."""
        with _environment(self._variables), uninterrupted():
            return self._processes.submit(function, *args)

    def end(self) -> None:
        """Let the processes end; what has not begun is not begun any more.

        What has begun is waited for, but where whoever asked for it is interrupted.
        """
        if isinstance(sys.exc_info()[1], KeyboardInterrupt):
            self.kill()
        self._processes.shutdown(cancel_futures=True)

    def kill(self) -> None:
        """End the processes, whatever they are at; Python 3.11's executor has no word for that."""
        executor = cast("Any", self._processes)
        with suppress(AttributeError):
            for process in list(executor._processes.values()):
                process.kill()
            # an answer of which half has come ends when nobody is left who might send the rest; the executor holds that
            # end, too, and would wait for ever
            executor._result_queue._writer.close()


#: who else calls functions for the piece of work that is done just now: workers of other machines
_elsewhere: ContextVar[Workers | None] = ContextVar("elsewhere", default=None)


@contextmanager
def done_by(others: Workers) -> Iterator[None]:
    """Have the calls of this block, where they are many, be done by others than processes of this one."""
    token = _elsewhere.set(others)
    try:
        yield
    finally:
        _elsewhere.reset(token)


@contextmanager
def offered(kept: Pool) -> Iterator[None]:
    """Have all pools of this block be one that stays, unless others work for the block already."""
    with done_by(_elsewhere.get() or kept):
        yield


@contextmanager
def pool(worker_count: int | None) -> Iterator[Workers]:
    """Open a pool of so many processes, as many as there are cores if None; they end with the block.

    Raises WorkerLost in the block where a process dies.
    """
    others = _elsewhere.get()
    opened = Pool(workers(worker_count)) if others is None else None
    try:
        yield others or opened  # type: ignore[misc]
    except BrokenProcessPool as error:
        raise WorkerLost(
            "A process ended before it answered; the system may have run out of memory. "
            "Run again, with fewer processes (engine.worker_count in the settings)."
        ) from error
    finally:
        if opened is not None:
            opened.end()


def are_elsewhere() -> bool:
    """Return whether workers of other machines do the calls of this block."""
    others = _elsewhere.get()
    return others is not None and not isinstance(others, Pool)


def make_ready(*modules: str) -> None:
    """Have the processes that a block shares import modules meanwhile, if there are any; nobody waits for that."""
    if (others := _elsewhere.get()) is not None:
        for _ in range(others.worker_count):
            others.begin(_import_all, modules)


def ending_with_parent() -> None:
    """Have this process, one of our own, end as soon as who started it has ended, however that came."""

    def watch() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _working() -> None:
    # as soon as there is nothing left to do
    left_at_once(lambda: 0)
    ending_with_parent()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Have processes that are started meanwhile get no interrupt from the terminal: it is for who started them."""
    # what is blocked stays so from its first instruction on, where to ignore it would come after its imports; who
    # starts the tracker of what Python shares has it unblocked
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _import_all(modules: Iterable[str]) -> None:
    with kept():
        for module in modules:
            import_module(module)


@contextmanager
def kept() -> Iterator[None]:
    """Have nothing that this block makes looked through for garbage: a tenth or more of what imports take.

    For a process of our own, which keeps what it imported until it ends.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        # some libraries tell on stderr of what is left at the end, which is what nobody looks through
        atexit.register(gc.unfreeze)


@cache
def imported(name: str) -> None:
    """Import a module that takes long, and have nothing that is there by then looked through for garbage any more.

    Of a night with all its libraries that took a third of a second, again and again.
    """
    with kept():
        import_module(name)


def in_order(
    pool: Workers, function: Callable[..., _Answer], tasks: Iterable[tuple[_Key, tuple[Any, ...]]]
) -> Iterator[tuple[_Key, _Answer]]:
    """Yield what a function answers, in order; a bounded number is under way, and no more arguments are held.

    tasks: of each call a key, by which its answer is known, and the arguments.
    """
    waiting: deque[tuple[_Key, Future[_Answer]]] = deque()
    for key, arguments in tasks:
        waiting.append((key, pool.begin(function, *arguments)))
        del arguments
        if len(waiting) >= pool.worker_count * AHEAD:
            known, future = waiting.popleft()
            yield known, future.result()
    while waiting:
        known, future = waiting.popleft()
        yield known, future.result()


def workers(worker_count: int | None) -> int:
    """Return how many processes work: so many, or as many as there are cores; in one of them, it alone."""
    if (others := _elsewhere.get()) is not None:
        return others.worker_count
    return 1 if parent_process() is not None else worker_count or os.cpu_count() or 1


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Give processes that are started meanwhile variables of their environment; what is set already stays."""
    before = os.environ.get(_MEMORY)
    # the last word counts
    said = [_KEPT_MEMORY, *filter(None, (before or "").replace(_OF_POLARS, "").split(","))]
    added = [name for name in values if name not in os.environ]
    os.environ.update({name: values[name] for name in added} | {_MEMORY: ",".join(said)})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
        os.environ.pop(_MEMORY)
        if before is not None:
            os.environ[_MEMORY] = before

"""Worker processes of this machine: an executor that starts them when they are needed, and what they import."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from multiprocessing import get_context, parent_process, resource_tracker
from typing import Any, ParamSpec, TypeVar, cast

from iosig.warehouse.errors import MachineFault
from iosig.warehouse.interrupts import left_at_once

_Params = ParamSpec("_Params")
_Answer = TypeVar("_Answer")
_Key = TypeVar("_Key")

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
#: parameters of `mallopt` (malloc.h): glibc reads the variables only when a process starts
_MALLOPT = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_MMAP_THRESHOLD_": -3}


class WorkerLost(MachineFault):
    """A process ended before it answered."""


class ProcessExecutor(Executor):
    """Calls functions in processes of this machine, each started when it is needed first; lost ones are replaced.

    Processes are started fresh, with one thread where libraries would start several; they end with this process,
    however it ends.
    """

    def __init__(self, worker_count: int) -> None:
        self.worker_count = worker_count
        share = max(1, (os.cpu_count() or 1) // worker_count)
        self._variables = _ONE_THREAD | {_THREADS: str(share)}
        self._lock = threading.Lock()
        self._pool = self._new_pool()

    def submit(
        self, fn: Callable[_Params, _Answer], /, *args: _Params.args, **kwargs: _Params.kwargs
    ) -> Future[_Answer]:
        """Have a function called in one of the processes."""
        with self._lock, uninterrupted():
            try:
                return self._pool.submit(fn, *args, **kwargs)
            except BrokenProcessPool:
                # a process of the pool has died: nothing starts in it any more
                self._pool = self._new_pool()
                return self._pool.submit(fn, *args, **kwargs)

    def preload(self, *modules: str) -> None:
        """Have each process import modules, without waiting for it."""
        for _ in range(self.worker_count):
            self.submit(_import_all, modules)

    def kill(self) -> None:
        """End the processes whatever they are doing; calls under way fail, and the next one starts new processes."""
        with self._lock:
            pool, self._pool = self._pool, self._new_pool()
        _kill(pool)
        pool.shutdown(cancel_futures=True)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes after the calls under way, or at once if this thread is interrupted.

        Calls that have not begun are cancelled.
        """
        pool = self._pool
        # its semaphores are freed with it
        del self._pool
        if isinstance(sys.exc_info()[1], KeyboardInterrupt):
            _kill(pool)
        pool.shutdown(wait, cancel_futures=True)

    def _new_pool(self) -> ProcessPoolExecutor:
        # a fork of a process that has threads may hang
        context = get_context("spawn")
        return ProcessPoolExecutor(self.worker_count, context, initializer=_begin_worker, initargs=(self._variables,))


def _kill(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool; the executor of Python 3.11 has no method for that."""
    executor = cast("Any", pool)
    with suppress(AttributeError):
        for process in list(executor._processes.values()):
            process.kill()
        # half an answer ends when no process is left that might send the rest; the executor holds that end, too, and
        # would wait for ever
        executor._result_queue._writer.close()


@contextmanager
def pool(worker_count: int | None) -> Iterator[ProcessExecutor]:
    """Open an executor with a number of processes, that of the cores if None; they end with the block.

    Raises WorkerLost in the block if a process dies.
    """
    try:
        with ProcessExecutor(workers(worker_count)) as executor:
            yield executor
    except BrokenProcessPool as error:
        raise WorkerLost(
            "A process ended before it answered; the system may have run out of memory. "
            "Run again, with fewer processes (engine.worker_count in the settings)."
        ) from error


def ending_with_parent() -> None:
    """Have this process, one of our own, end as soon as who started it has ended, however that came."""

    def watch() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _begin_worker(variables: dict[str, str]) -> None:
    # here and not before the process starts: in a process that has threads, one that changes the environment while
    # another one reads it ends the process (glibc)
    set_environment(variables)
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
    executor: Executor,
    function: Callable[..., _Answer],
    tasks: Iterable[tuple[_Key, tuple[Any, ...]]],
    limit: int,
) -> Iterator[tuple[_Key, _Answer]]:
    """Yield the results of calls in the order of the tasks, of which at most `limit` are under way.

    tasks: for each call a key, which is returned with the result, and the arguments.
    """
    waiting: deque[tuple[_Key, Future[_Answer]]] = deque()
    for key, arguments in tasks:
        waiting.append((key, executor.submit(function, *arguments)))
        del arguments
        if len(waiting) >= limit:
            known, future = waiting.popleft()
            yield known, future.result()
    while waiting:
        known, future = waiting.popleft()
        yield known, future.result()


def workers(worker_count: int | None) -> int:
    """Return the number of processes to use, that of the cores if None; 1 within a worker process."""
    return 1 if parent_process() is not None else worker_count or os.cpu_count() or 1


def set_environment(values: dict[str, str]) -> None:
    """Set variables that libraries read when they are imported, and how memory is kept; what is set already stays."""
    said = os.environ.get(_MEMORY, "").replace(_OF_POLARS, "").split(",")
    # the last word counts
    os.environ[_MEMORY] = ",".join([_KEPT_MEMORY, *filter(None, said)])
    for name, value in values.items():
        os.environ.setdefault(name, value)
    # other C libraries have no such function
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for name, size in ALLOCATION.items():
            if name not in os.environ:
                mallopt(_MALLOPT[name], int(size))

"""Start worker processes on this machine on demand, and control their imports, threads and memory."""

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
from iosig.warehouse.interrupts import exit_immediately

_Params = ParamSpec("_Params")
_Answer = TypeVar("_Answer")
_Key = TypeVar("_Key")

#: workers run in parallel already, so additional threads in libraries only compete for cores
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
#: environment variable for the number of Polars threads, and thus of DuckDB's; the processes divide the cores evenly
_THREADS = "POLARS_MAX_THREADS"
#: environment variable of Polars' allocator; default that Polars sets in it: freed memory returns to the system after
#: half a second, although the next chunk of a large file needs the same amount again, and zeroing new memory took an
#: eighth of the landing time
_MEMORY, _OF_POLARS = "_RJEM_MALLOC_CONF", "dirty_decay_ms:500,muzzy_decay_ms:1000"
_KEPT_MEMORY = "dirty_decay_ms:10000,muzzy_decay_ms:10000"

#: keep this amount of freed memory [B] for the next array, and allocate arrays of up to 32 MB on the heap; with only
#: one of the two settings, glibc requests each array of 128 KB from the system again, which is slower than its defaults
ALLOCATION = {"MALLOC_TRIM_THRESHOLD_": str(256 << 20), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}
#: parameters of `mallopt` (malloc.h): glibc reads the variables only when a process starts
_MALLOPT = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_MMAP_THRESHOLD_": -3}


class WorkerLost(MachineFault):
    """Raised when a worker process ended before it returned a result."""


class ProcessExecutor(Executor):
    """Runs functions in worker processes of this machine, which start on demand and are replaced after a crash.

    Workers are spawned, not forked, and use a single thread in numeric libraries. They end with this process, even if
    it is killed.
    """

    def __init__(self, worker_count: int) -> None:
        self.worker_count = worker_count
        share = max(1, (os.cpu_count() or 1) // worker_count)
        self._variables = _ONE_THREAD | {_THREADS: str(share)}
        self._lock = threading.Lock()
        self._pool = self._new_pool()
        #: number of running calls, and its maximum so far, which equals the number of started processes
        self._call_count = self._process_count = 0
        #: protects the counts; the pool runs callbacks under its own locks, for which `submit` may wait
        self._count_lock = threading.Lock()

    @property
    def has_idle_process(self) -> bool:
        """Return whether a started process is waiting for a call."""
        return self._call_count < self._process_count

    def submit(
        self, fn: Callable[_Params, _Answer], /, *args: _Params.args, **kwargs: _Params.kwargs
    ) -> Future[_Answer]:
        """Submit a function call to a worker process."""
        with self._lock, block_interrupts():
            try:
                future = self._pool.submit(fn, *args, **kwargs)
            except BrokenProcessPool:
                # a process of the pool has died, so the pool accepts no further calls
                self._pool, self._process_count = self._new_pool(), 0
                future = self._pool.submit(fn, *args, **kwargs)
        with self._count_lock:
            self._call_count += 1
            self._process_count = min(max(self._process_count, self._call_count), self.worker_count)
        future.add_done_callback(self._count_done)
        return future

    def _count_done(self, _: Future[Any]) -> None:
        with self._count_lock:
            self._call_count -= 1

    def preload(self, *modules: str) -> None:
        """Import modules in each worker, without waiting for the imports."""
        for _ in range(self.worker_count):
            self.submit(_import_all, modules)

    def kill(self) -> None:
        """Kill the workers; running calls fail, and the next call starts new workers."""
        with self._lock:
            pool, self._pool = self._pool, self._new_pool()
            self._process_count = 0
        _kill(pool)
        pool.shutdown(cancel_futures=True)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop the workers after their running calls, or immediately if this thread is interrupted.

        Calls that have not started are cancelled.
        """
        pool = self._pool
        # also frees the pool's semaphores
        del self._pool
        if isinstance(sys.exc_info()[1], KeyboardInterrupt):
            _kill(pool)
        pool.shutdown(wait, cancel_futures=True)

    def _new_pool(self) -> ProcessPoolExecutor:
        # a fork of a multithreaded process may hang
        context = get_context("spawn")
        return ProcessPoolExecutor(self.worker_count, context, initializer=_begin_worker, initargs=(self._variables,))


def _kill(pool: ProcessPoolExecutor) -> None:
    """Kill the processes of a pool; the executor of Python 3.11 has no method for this."""
    executor = cast("Any", pool)
    with suppress(AttributeError):
        for process in list(executor._processes.values()):
            process.kill()
        # Reading a partial result ends only when no process can send the rest. The executor itself has the sending end
        # of the pipe open, and would wait forever.
        executor._result_queue._writer.close()


@contextmanager
def pool(worker_count: int | None) -> Iterator[ProcessExecutor]:
    """Open an executor with `worker_count` processes, by default one per core; they end with the block.

    Raises WorkerLost in the block if a process dies.
    """
    try:
        with ProcessExecutor(workers(worker_count)) as executor:
            yield executor
    except BrokenProcessPool as error:
        raise WorkerLost(
            "A worker process ended unexpectedly, possibly for lack of memory. Run again with fewer processes "
            "(engine.worker_count in the settings)."
        ) from error


def ending_with_parent() -> None:
    """Make this worker process exit as soon as its parent has ended for any reason."""

    def watch() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _begin_worker(variables: dict[str, str]) -> None:
    # Set here rather than before the start: in a multithreaded parent, changing the environment while another thread
    # reads it can crash the process (glibc).
    set_environment(variables)
    # exit as soon as no work remains
    exit_immediately(lambda: 0)
    ending_with_parent()


@contextmanager
def block_interrupts() -> Iterator[None]:
    """Start child processes in this block with Ctrl-C blocked; only the parent handles it."""
    # A blocked signal stays blocked from the child's first instruction on, whereas ignoring it would only take effect
    # after the imports. Starting the resource tracker of `multiprocessing` unblocks the signal, so it starts first.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _import_all(modules: Iterable[str]) -> None:
    with freeze_gc():
        for module in modules:
            import_module(module)


@contextmanager
def freeze_gc() -> Iterator[None]:
    """Exclude objects created in this block from garbage collection, which saves a tenth or more of the import time.

    Use it in processes that keep their imports until they exit.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        # some libraries report leaked objects on stderr at exit if the objects are still frozen
        atexit.register(gc.unfreeze)


@cache
def import_slow_module(name: str) -> None:
    """Import a slow module, and exclude all existing objects from garbage collection.

    In a nightly run with all libraries, each collection took a third of a second.
    """
    with freeze_gc():
        import_module(name)


def in_order(
    executor: Executor,
    function: Callable[..., _Answer],
    tasks: Iterable[tuple[_Key, tuple[Any, ...]]],
    limit: int,
) -> Iterator[tuple[_Key, _Answer]]:
    """Yield the results of calls in the order of the tasks, with at most `limit` calls in progress.

    tasks: a key, which is returned with the result, and the arguments of each call.
    """
    pending: deque[tuple[_Key, Future[_Answer]]] = deque()
    for key, arguments in tasks:
        pending.append((key, executor.submit(function, *arguments)))
        del arguments
        if len(pending) >= limit:
            first_key, future = pending.popleft()
            yield first_key, future.result()
    while pending:
        first_key, future = pending.popleft()
        yield first_key, future.result()


def workers(worker_count: int | None) -> int:
    """Return the number of processes to use: `worker_count`, or by default one per core; 1 within a worker process."""
    return 1 if parent_process() is not None else worker_count or os.cpu_count() or 1


def set_environment(values: dict[str, str]) -> None:
    """Set environment variables that libraries read on import, and malloc options, unless already set."""
    options = os.environ.get(_MEMORY, "").replace(_OF_POLARS, "").split(",")
    # the last value takes precedence
    os.environ[_MEMORY] = ",".join([_KEPT_MEMORY, *filter(None, options)])
    for name, value in values.items():
        os.environ.setdefault(name, value)
    # C libraries other than glibc lack this function
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for name, size in ALLOCATION.items():
            if name not in os.environ:
                mallopt(_MALLOPT[name], int(size))

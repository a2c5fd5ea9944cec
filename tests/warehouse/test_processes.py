"""Test worker processes: environment, shutdown, lost workers, ordered results and frozen imports."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest

from iosig.warehouse import processes
from tests.servers import is_over, wait_until


def what_is_there(_: int) -> tuple[dict[str, str], list[str]]:
    """Return a worker's environment, and the libraries imported before it was set."""
    return dict(os.environ), [name for name in ("numpy", "polars", "duckdb") if name in sys.modules]


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (None, "dirty_decay_ms:10000,muzzy_decay_ms:10000"),
        # the value that Polars sets on import
        ("dirty_decay_ms:500,muzzy_decay_ms:1000", "dirty_decay_ms:10000,muzzy_decay_ms:10000"),
        (
            "dirty_decay_ms:500,muzzy_decay_ms:1000,dirty_decay_ms:7",
            "dirty_decay_ms:10000,muzzy_decay_ms:10000,dirty_decay_ms:7",
        ),
    ],
)
def test_worker_environment_has_thread_count_and_memory_settings(
    monkeypatch: pytest.MonkeyPatch, said: str | None, heard: str
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    monkeypatch.delenv("POLARS_MAX_THREADS", raising=False)
    monkeypatch.delenv("_RJEM_MALLOC_CONF", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    if said is not None:
        monkeypatch.setenv("_RJEM_MALLOC_CONF", said)
    before = dict(os.environ)
    with processes.ProcessExecutor(3) as executor:
        future = executor.submit(what_is_there, 0)
        assert dict(os.environ) == before, "another thread may read it"
        seen, imported = future.result()
    assert [seen[name] for name in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "_RJEM_MALLOC_CONF")] == ["2", "5", heard]
    assert imported == [], "they would not have read it"


@pytest.fixture
def thawed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record calls of gc.freeze instead of freezing the objects of the test session."""
    noted: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: noted.append("frozen"))
    return noted


def test_imports_are_frozen_and_garbage_collection_is_restored(thawed: list[str]) -> None:
    with processes.freeze_gc():
        assert not gc.isenabled()
    assert (gc.isenabled(), thawed) == (True, ["frozen"])
    with pytest.raises(ImportError), processes.freeze_gc():
        raise ImportError
    assert gc.isenabled()


@pytest.mark.slow
def test_process_with_frozen_imports_exits_silently() -> None:
    """DuckDB's bindings print leaked objects to stderr if they are not collected at exit."""
    script = "\n".join(
        [
            "from iosig.warehouse import processes",
            "with processes.freeze_gc():",
            "    import duckdb",
            "duckdb.sql('select 1').fetchall()",
        ]
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("", "")


#: starts a pool, prints the process id of a worker, and is then killed or interrupted
_AT_WORK = """
import os, time
from iosig.warehouse import processes
with processes.pool(2) as pool:
    print(pool.submit(os.getpid).result(), flush=True)
    sleeping = pool.submit(time.sleep, 600)
    {then}
"""


def at_work(then: str) -> tuple[subprocess.Popen[str], int]:
    """Start a process with a pool; return the process and the id of a worker."""
    command, pipe = [sys.executable, "-c", _AT_WORK.format(then=then)], subprocess.PIPE
    started = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
    assert started.stdout is not None
    return started, int(started.stdout.readline())


def test_workers_exit_when_their_parent_is_killed() -> None:
    started, worker = at_work("sleeping.result()")
    with started:
        started.kill()
    wait_until(lambda: is_over(worker), "its end")


def test_interrupted_process_does_not_wait_for_workers() -> None:
    started, worker = at_work("raise KeyboardInterrupt")
    with started:
        assert started.wait(timeout=60) != 0
    wait_until(lambda: is_over(worker), "its end")


def test_workers_ignore_sigint() -> None:
    """Every process of the terminal receives the signal."""
    started, worker = at_work("input(); print(pool.submit(os.getpid).result()); raise KeyboardInterrupt")
    os.kill(worker, signal.SIGINT)
    told, _ = started.communicate("now\n")
    assert int(told) > 0


# ---- calls


def test_results_are_in_task_order_with_limited_concurrency() -> None:
    started: list[int] = []

    class Counting(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            started.append(args[0])
            future: Future[Any] = Future()
            future.set_result(fn(*args, **kwargs))
            return future

    results = processes.in_order(Counting(), abs, ((number, (-number,)) for number in range(9)), limit=3)
    assert next(results) == (0, 0)
    assert started == [0, -1, -2]
    assert list(results) == [(number, number) for number in range(1, 9)]


@pytest.mark.slow
def test_crashed_worker_is_reported_and_replaced() -> None:
    with processes.pool(2) as executor:
        with pytest.raises(BrokenProcessPool):
            executor.submit(os._exit, 9).result()
        assert executor.submit(abs, -7).result() == 7, "a new process"
    with pytest.raises(processes.WorkerLost, match="ended unexpectedly"), processes.pool(2) as executor:
        executor.submit(os._exit, 9).result()
    assert not multiprocessing.active_children()

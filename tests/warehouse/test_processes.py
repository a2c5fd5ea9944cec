"""Worker processes: their environment, their end, lost ones, results in order, and frozen imports."""

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
    """Return a worker's environment, and the libraries that were imported before it was set."""
    return dict(os.environ), [name for name in ("numpy", "polars", "duckdb") if name in sys.modules]


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (None, "dirty_decay_ms:10000,muzzy_decay_ms:10000"),
        # what Polars says when it is imported
        ("dirty_decay_ms:500,muzzy_decay_ms:1000", "dirty_decay_ms:10000,muzzy_decay_ms:10000"),
        (
            "dirty_decay_ms:500,muzzy_decay_ms:1000,dirty_decay_ms:7",
            "dirty_decay_ms:10000,muzzy_decay_ms:10000,dirty_decay_ms:7",
        ),
    ],
)
def test_a_process_has_its_share_of_the_cores_and_keeps_memory_unless_the_user_says_otherwise(
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
    """Note that what there is would be frozen: all of the tests' own things would be."""
    noted: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: noted.append("frozen"))
    return noted


def test_what_is_kept_is_not_looked_through_and_the_rest_is_again(thawed: list[str]) -> None:
    with processes.kept():
        assert not gc.isenabled()
    assert (gc.isenabled(), thawed) == (True, ["frozen"])
    with pytest.raises(ImportError), processes.kept():
        raise ImportError
    assert gc.isenabled()


@pytest.mark.slow
def test_a_process_that_keeps_what_it_imported_ends_in_silence() -> None:
    """DuckDB's bindings tell on stderr of each of their things that nobody looked through at the end."""
    script = "\n".join(
        [
            "from iosig.warehouse import processes",
            "with processes.kept():",
            "    import duckdb",
            "duckdb.sql('select 1').fetchall()",
        ]
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("", "")


#: works, tells which process does, and is then either killed or interrupted
_AT_WORK = """
import os, time
from iosig.warehouse import processes
with processes.pool(2) as pool:
    print(pool.submit(os.getpid).result(), flush=True)
    sleeping = pool.submit(time.sleep, 600)
    {then}
"""


def at_work(then: str) -> tuple[subprocess.Popen[str], int]:
    """Return a process that works with others, and one of those."""
    command, pipe = [sys.executable, "-c", _AT_WORK.format(then=then)], subprocess.PIPE
    started = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
    assert started.stdout is not None
    return started, int(started.stdout.readline())


def test_none_is_left_of_a_killed_process() -> None:
    started, worker = at_work("sleeping.result()")
    with started:
        started.kill()
    wait_until(lambda: is_over(worker), "its end")


def test_an_interrupted_process_waits_for_none() -> None:
    started, worker = at_work("raise KeyboardInterrupt")
    with started:
        assert started.wait(timeout=60) != 0
    wait_until(lambda: is_over(worker), "its end")


def test_an_interrupt_at_the_terminal_is_for_who_started_them() -> None:
    """Every process of the terminal gets it."""
    started, worker = at_work("input(); print(pool.submit(os.getpid).result()); raise KeyboardInterrupt")
    os.kill(worker, signal.SIGINT)
    told, _ = started.communicate("now\n")
    assert int(told) > 0


# ---- calls


def test_results_come_in_the_order_of_the_tasks_of_which_few_are_under_way() -> None:
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
def test_a_process_that_dies_is_reported_and_replaced() -> None:
    with processes.pool(2) as executor:
        with pytest.raises(BrokenProcessPool):
            executor.submit(os._exit, 9).result()
        assert executor.submit(abs, -7).result() == 7, "a new process"
    with pytest.raises(processes.WorkerLost, match="ended before it answered"), processes.pool(2) as executor:
        executor.submit(os._exit, 9).result()
    assert not multiprocessing.active_children()

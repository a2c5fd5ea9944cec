"""Processes that a block shares: that they are there, what they are asked to import, and what is not looked through."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from typing import Any

import pytest

from iosig.warehouse import processes
from tests.servers import is_over, wait_until


class Told:
    """Workers that note what they are asked."""

    worker_count = 3

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def begin(self, function: Any, *args: Any) -> Future[Any]:
        self.asked.append((function, args))
        return Future()


def test_each_process_that_is_shared_is_asked_to_import_and_none_where_there_is_none() -> None:
    told = Told()
    processes.make_ready("iosig.flows.nightly")
    with processes.done_by(told):
        processes.make_ready("zlib", "json")
    assert [args for _, args in told.asked] == [(("zlib", "json"),)] * 3


class Noting:
    """An executor that notes the environment in which a process would be started."""

    seen: dict[str, str]

    def __init__(self, *_: object, **__: object) -> None: ...

    def submit(self, *_: object) -> Future[Any]:
        Noting.seen = dict(os.environ)
        return Future()


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
    monkeypatch.setattr(processes, "ProcessPoolExecutor", Noting)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    monkeypatch.delenv("POLARS_MAX_THREADS", raising=False)
    monkeypatch.delenv("_RJEM_MALLOC_CONF", raising=False)
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    if said is not None:
        monkeypatch.setenv("_RJEM_MALLOC_CONF", said)
    before = dict(os.environ)
    processes.Pool(3).begin(print)
    assert dict(os.environ) == before
    names = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "MALLOC_MMAP_THRESHOLD_", "_RJEM_MALLOC_CONF")
    assert [Noting.seen[name] for name in names] == ["2", "5", "33554432", heard]


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
    print(pool.begin(os.getpid).result(), flush=True)
    sleeping = pool.begin(time.sleep, 600)
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
    started, worker = at_work("input(); print(pool.begin(os.getpid).result()); raise KeyboardInterrupt")
    os.kill(worker, signal.SIGINT)
    told, _ = started.communicate("now\n")
    assert int(told) > 0

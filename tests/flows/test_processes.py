"""Processes that a block shares: that they are there, what they are asked to import, and what is not looked through."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from concurrent.futures import Future
from typing import Any

import pytest

from flows import processes


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
    assert not processes.are_shared()
    processes.make_ready("flows.night.order")
    with processes.done_by(told):
        assert processes.are_shared()
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
    script = "from flows import processes\nwith processes.kept():\n    import duckdb\nduckdb.sql('select 1').fetchall()"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("", "")

"""Processes that a block shares: that they are there, what they are asked to import, and what is not looked through."""

from __future__ import annotations

import gc
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

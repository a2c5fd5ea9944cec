"""Executors return equal results and errors inline and in processes, and no process outlives its block."""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path

import polars as pl
import pytest

from iosig.flows import executors
from iosig.flows.executors import Engine, WorkTimeoutError, with_processes
from iosig.flows.steps.checks import hold, verdicts_on
from iosig.flows.steps.items import StepContext, TableFile, WorkItem
from iosig.settings.model import Settings
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.store.store import Store, write_parquet
from tests.nights import Night, hash_files, run_night


def check_of(root: Path, row_count: int, into: str) -> WorkItem:
    """Return a check item on `row_count` rejected rows, which are written first."""
    texts = ("landing_id", "source_file", "reason", "remedy")
    rows = frames.empty(REJECTS).clear(n=row_count).with_columns(pl.lit("x").alias(name) for name in texts)
    rows = rows.with_columns(line=pl.int_range(1, row_count + 1, dtype=pl.Int64))
    write_parquet(rows, REJECTS, root / "rejects.parquet")
    writes = (TableFile(verdicts_on(REJECTS).name, into),)
    reads = (TableFile(REJECTS.name, "rejects.parquet"),)
    function = f"{hold.__module__}:hold"
    return WorkItem(
        "check rejects", "check rejects", function, reads, writes, (), Settings(), "built", "", is_check=True
    )


@pytest.mark.slow
def test_check_in_a_process_equals_inline_and_lost_process_is_replaced(tmp_path: Path) -> None:
    here, there = (check_of(tmp_path, 3, f"{place}.parquet") for place in ("here", "there"))
    expected = Engine().run(here, tmp_path)
    with with_processes() as engine:
        first, second = (engine.submit(there, tmp_path) for _ in range(2))
        assert (first.result().name, first.result().row_count) == (expected.name, expected.row_count)
        assert second.result().row_count == expected.row_count
        found, wanted = (pl.read_parquet(tmp_path / f"{place}.parquet") for place in ("there", "here"))
        assert found.equals(wanted)
        assert not found.is_empty()
        with pytest.raises(AttributeError, match="nothing"):
            engine.run(replace(there, function=f"{hold.__module__}:nothing"), tmp_path)
        (child,) = multiprocessing.active_children()
        child.kill()
        child.join()
        # whether the loss is noticed before this call is a race
        with suppress(BrokenExecutor):
            engine.run(there, tmp_path)
        assert engine.run(there, tmp_path).row_count == expected.row_count, "a new process has taken its place"
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_block_that_ends_early_does_not_wait_for_the_check_process() -> None:
    with with_processes():
        assert len(multiprocessing.active_children()) == 1
    assert multiprocessing.active_children() == []


# ---- several processes


def written(context: StepContext) -> int:
    """Write a file, as the function of a step does."""
    if context.item.name == "faulty":
        raise ValueError("no such thing")
    if context.item.name == "deadly":
        os._exit(9)
    if context.item.name == "slow":
        time.sleep(60)
    return (context.root / context.item.name).write_text(f"{os.getpid()} {os.environ.get('POLARS_MAX_THREADS')}")


def items(root: Path, *names: str) -> list[WorkItem]:
    """Return items that read a large file."""
    function = f"{written.__module__}:{written.__name__}"
    large = root / "large"
    if not large.exists():
        with large.open("wb") as file:
            file.truncate(executors.SMALL_BYTES)
    reads = (TableFile("jobs", "large"),)
    return [WorkItem(name, "step", function, reads, (), (), Settings(), "built", "") for name in names]


@pytest.mark.long
def test_large_items_run_in_persistent_processes_and_small_items_inline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POLARS_MAX_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    names = [f"item{number}" for number in range(9)]
    small = replace(items(tmp_path, "small")[0], reads=())
    with with_processes(2) as engine:
        engine.run(small, tmp_path)
        for future in [engine.submit(item, tmp_path) for item in items(tmp_path, *names)]:
            future.result()
        with pytest.raises(ValueError, match="no such thing"):
            engine.run(items(tmp_path, "faulty")[0], tmp_path)
        with pytest.raises(BrokenExecutor):
            engine.run(items(tmp_path, "deadly")[0], tmp_path)
        engine.run(items(tmp_path, "later")[0], tmp_path)
    assert (tmp_path / "small").read_text() == f"{os.getpid()} None"
    workers = {tuple((tmp_path / name).read_text().split()) for name in names}
    # each process uses its share of seven cores
    assert {threads for _, threads in workers} == {"3"}
    assert str(os.getpid()) not in {process for process, _ in workers}
    assert len(workers) <= 2
    assert (tmp_path / "later").read_text().split()[0] not in {process for process, _ in workers}
    assert multiprocessing.active_children() == []


def time_out(_: StepContext) -> int:
    raise TimeoutError("the server did not answer")


@pytest.mark.parametrize("timeout_s", [None, 60.0])
def test_timeout_error_of_an_item_is_not_the_time_limit(timeout_s: float | None, tmp_path: Path) -> None:
    item = replace(items(tmp_path, "late")[0], function=f"{time_out.__module__}:{time_out.__name__}")
    with pytest.raises(TimeoutError, match="the server did not answer"):
        Engine(timeout_s=timeout_s).run(item, tmp_path)


@pytest.mark.slow
def test_item_over_the_time_limit_is_killed_and_the_next_item_runs(tmp_path: Path) -> None:
    with with_processes(1, timeout_s=4.0) as engine:
        start_s = time.monotonic()
        with pytest.raises(WorkTimeoutError, match="slow took longer than 4 s"):
            engine.run(items(tmp_path, "slow")[0], tmp_path)
        assert time.monotonic() - start_s < 30
        engine.run(replace(items(tmp_path, "next")[0], reads=()), tmp_path)
    assert (tmp_path / "next").read_text().split()[0] != str(os.getpid()), "a small one, too, in a process"


class _Killed(BaseException):
    """An exception that no step may catch."""


@pytest.mark.long
@pytest.mark.parametrize(("worker_count", "done_count"), list(product((1, 4), range(1, 24, 4))))
def test_run_killed_after_any_item_publishes_the_same_release(
    worker_count: int,
    done_count: int,
    site: Store,
    checked_night: Night,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executors, "SMALL_BYTES", 1)
    left = done_count

    def killed(*_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise _Killed

    with pytest.raises(_Killed), with_processes(worker_count) as engine:
        run_night(site, report=killed, engine=engine)
    with with_processes(5 - worker_count) as engine:
        release = run_night(site, engine=engine)
    assert hash_files(site, release) == hash_files(checked_night.store, checked_night.release)

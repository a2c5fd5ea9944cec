"""Who does pieces: the same answers and faults here and in a child, which never outlives its block."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import polars as pl
import pytest

from iosig.flows import executors, nightly
from iosig.flows.executors import Inline, with_child
from iosig.flows.steps.checks import hold, verdicts_on
from iosig.flows.steps.pieces import File, Given, Piece
from iosig.settings.model import Settings
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.processes import WorkerLost
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store, write_parquet
from tests.nights import Night


def children() -> list[multiprocessing.process.BaseProcess]:
    return [child for child in multiprocessing.active_children() if child.name == "iosig-checks"]


def check_of(root: Path, row_count: int, into: str) -> Piece:
    """Return the check of so many refused rows, which are written for it."""
    texts = ("landing_id", "source_file", "reason", "remedy")
    rows = frames.empty(REJECTS).clear(n=row_count).with_columns(pl.lit("x").alias(name) for name in texts)
    rows = rows.with_columns(line=pl.int_range(1, row_count + 1, dtype=pl.Int64))
    write_parquet(rows, REJECTS, root / "rejects.parquet")
    writes = (File(verdicts_on(REJECTS).name, into),)
    reads = (File(REJECTS.name, "rejects.parquet"),)
    return Piece("check rejects", f"{hold.__module__}:hold", reads, writes, (), Settings(), "built", "", is_check=True)


# One child for all of it: it imports Great Expectations before it answers, which takes seconds.
@pytest.mark.slow
def test_a_child_answers_as_this_process_does(tmp_path: Path) -> None:
    here, there = (check_of(tmp_path, 3, f"{place}.parquet") for place in ("here", "there"))
    (told,) = Inline().each(tmp_path, [here])
    with with_child() as executor:
        first, second = (executor.begin(tmp_path, there) for _ in range(2))
        assert (first.result().name, first.result().row_count) == (told.name, told.row_count)
        assert second.result().row_count == told.row_count
        found, wanted = (pl.read_parquet(tmp_path / f"{place}.parquet") for place in ("there", "here"))
        assert found.equals(wanted)
        assert not found.is_empty()
        with pytest.raises(AttributeError, match="nothing"):
            executor.begin(tmp_path, replace(there, function=f"{hold.__module__}:nothing")).result()
        (child,) = children()
        child.kill()
        child.join()
        with pytest.raises(MachineFault, match="ended before it answered"):
            executor.begin(tmp_path, there).result()
    assert children() == []


@pytest.mark.slow
def test_a_block_that_ends_early_does_not_wait_for_the_child() -> None:
    with with_child():
        assert len(children()) == 1
    assert children() == []


# ---- several processes


def written(given: Given) -> int:
    """Write a file, as a piece does."""
    if given.piece.name == "faulty":
        raise ValueError("no such thing")
    if given.piece.name == "deadly":
        os._exit(9)
    return (given.root / given.piece.name).write_text(f"{os.getpid()} {os.environ.get('POLARS_MAX_THREADS')}")


def pieces(*names: str) -> list[Piece]:
    function = f"{written.__module__}:{written.__name__}"
    return [Piece(name, function, (), (), (), Settings(), "built", "") for name in names]


@pytest.mark.slow
@pytest.mark.long
def test_many_pieces_are_done_in_several_processes_that_stay_and_few_in_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POLARS_MAX_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    names = [f"piece{number}" for number in range(9)]
    with with_child(2) as executor:
        assert [done.name for done in executor.each(tmp_path, pieces("one", "two"))] == ["one", "two"]
        assert sorted(done.name for done in executor.each(tmp_path, pieces(*names))) == names
        assert sorted(done.name for done in executor.each(tmp_path, pieces("later", "last"))) == ["last", "later"]
        with pytest.raises(ValueError, match="no such thing"):
            list(executor.each(tmp_path, pieces("a", "b", "faulty", "c")))
        with pytest.raises(WorkerLost, match="ended before it answered"):
            list(executor.each(tmp_path, pieces("a", "b", "deadly", "c")))
    assert {(tmp_path / name).read_text() for name in ("one", "two")} == {f"{os.getpid()} None"}
    workers = {tuple((tmp_path / name).read_text().split()) for name in (*names, "later", "last")}
    # each has its share of seven cores
    assert {threads for _, threads in workers} == {"3"}
    assert str(os.getpid()) not in {process for process, _ in workers}
    assert len(workers) <= 2
    assert multiprocessing.active_children() == []


class _Killed(BaseException):
    """What no step may survive."""


def _digests(store: Store, release: Release) -> dict[str, list[str]]:
    return {
        name: [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(paths)]
        for name, paths in releases.files_of(store, release).items()
    }


@pytest.mark.long
@pytest.mark.parametrize(("worker_count", "done_count"), list(product((1, 4), range(1, 24, 4))))
def test_killed_after_any_piece_the_next_run_makes_the_same_release(
    worker_count: int,
    done_count: int,
    landed_site: Store,
    checked_night: Night,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Store(tmp_path / "warehouse")
    shutil.copytree(landed_site.root, store.root)
    monkeypatch.setattr(executors, "_MANY", 2)
    left = done_count

    def killed(*_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise _Killed

    with pytest.raises(_Killed), with_child(worker_count) as executor:
        nightly.run_inline(store, Settings(), killed, executor=executor)
    with with_child(5 - worker_count) as executor:
        release = nightly.run_inline(store, Settings(), lambda *_: None, executor=executor)
    assert _digests(store, release) == _digests(checked_night.store, checked_night.release)

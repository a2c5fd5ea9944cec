"""Who does pieces: the same answers and faults here and in a child, which never outlives its block."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flows.night.executors import Inline, done, with_child
from flows.settings import Settings
from flows.steps.checks import hold, verdicts_on
from flows.steps.pieces import File, Piece
from warehouse.contracts import frames
from warehouse.contracts.quality import REJECTS
from warehouse.errors import MachineFault
from warehouse.store.store import write_parquet


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
    (told,) = done(Inline(), tmp_path, [here])
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

"""The child that checks: the same answers, the same faults, and it never outlives its block."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import polars as pl
import pytest

from flows.steps.checker import InProcess, in_child
from warehouse.contracts import frames
from warehouse.contracts.quality import REJECTS


def children() -> list[multiprocessing.process.BaseProcess]:
    return [child for child in multiprocessing.active_children() if child.name == "iosig-checks"]


# One child for both: it imports Great Expectations before it answers, which takes seconds.
@pytest.mark.slow
def test_a_child_answers_as_this_process_does_whatever_the_size(tmp_path: Path) -> None:
    frame = frames.empty(REJECTS)
    here = InProcess().check(REJECTS, frame, {}).result()
    rows = (
        frames.empty(REJECTS)
        .clear(n=20_000)
        .with_columns(pl.lit("x").alias(name) for name in ("landing_id", "source_file", "reason", "remedy"))
    )
    rows = rows.with_columns(line=pl.int_range(1, 20_001, dtype=pl.Int64), raw=pl.lit("y" * 100))
    with in_child() as checker:
        first, second = (checker.check(REJECTS, frame, {}) for _ in range(2))
        assert first.result().verdicts.equals(here.verdicts)
        assert second.result().verdicts.equals(here.verdicts)
        assert checker.build_docs([here.validation], tmp_path / "docs").read_text().startswith("<!DOCTYPE html>")
        with pytest.raises(AttributeError):
            checker.check("no table", frame, {}).result()  # type: ignore[arg-type]
        assert checker.check(REJECTS, rows, {}).result().good.height == 20_000
        (child,) = children()
        child.kill()
        child.join()
        with pytest.raises(RuntimeError, match="ended before it answered"):
            checker.check(REJECTS, frame, {}).result()
    assert children() == []


def test_a_block_that_ends_early_does_not_wait_for_the_child() -> None:
    with in_child():
        assert len(children()) == 1
    assert children() == []

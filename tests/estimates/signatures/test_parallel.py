"""Signatures over processes: the same answers for any number of them and any chunks, in order, and no silent loss."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.estimates.signatures import parallel
from iosig.estimates.signatures.parallel import chunks_of, extract_each, extract_in_chunks, part_of
from iosig.transforms.arrays import Ragged
from iosig.transforms.signatures.methods import METHODS, MethodSignatures, SignatureParams, extract
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.warehouse import processes
from iosig.warehouse.processes import WorkerLost

PARAMS = SignatureParams()
#: cheap ones, and both of those that are published
FEW = ("robust", "iosi", "quantile")


def drawn(set_count: int, seed: int = 0, run_count: int = 6) -> SampleSets:
    """Return sets of runs with two bursts each, of several lengths; some runs are others'."""
    rng = np.random.default_rng(seed)
    sets = []
    for place in range(set_count):
        steps = rng.integers(60, 140) + rng.integers(0, 4, run_count)
        rates = [1e8 * rng.random(count) for count in steps]
        for one in rates:
            one[20:26] += 4e9
            one[45:50] += 2e9
        offsets = np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)
        samples = Ragged(np.concatenate(rates), offsets)
        sets.append(SampleSet(samples, 1.0 + place % 2, rng.uniform(-1, 0, run_count), steps * (1.0 + place % 2)))
    return SampleSets.of(sets)


def assert_same(found: list[MethodSignatures], wanted: list[MethodSignatures]) -> None:
    assert [one.method for one in found] == [one.method for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.is_outlier, other.is_outlier)
        assert [answer.outcome for answer in one.signatures] == [answer.outcome for answer in other.signatures]
        for mine, theirs in zip(one.signatures, other.signatures, strict=True):
            for name in ("bytes_per_s", "low_bytes_per_s", "high_bytes_per_s", "background_bytes_per_s"):
                np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
            for name in ("started_s", "peaked_s", "ended_s", "volume_bytes", "support_ratio"):
                np.testing.assert_array_equal(getattr(mine.bursts, name), getattr(theirs.bursts, name))


# ---- chunks


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 60), st.one_of(st.none(), st.integers(1, 5)))
def test_chunks_are_all_sets_in_order_and_none_too_large(counts: list[int], most: int, most_sets: int | None) -> None:
    steps = np.array(counts, dtype=np.int64)
    chunks = chunks_of(steps, most, most_sets)
    assert [place for chunk in chunks for place in range(chunk.start, chunk.stop)] == list(range(len(counts)))
    for chunk in chunks:
        assert steps[chunk].sum() <= most or chunk.stop - chunk.start == 1
        assert chunk.stop - chunk.start <= (most_sets or len(counts))
    # greedy: what begins a chunk had no room in the one before
    for chunk, after in pairwise(chunks):
        is_full = chunk.stop - chunk.start == most_sets
        assert is_full or steps[chunk].sum() + steps[after.start] > most


def test_chunks_of_narrow_integers_do_not_overflow() -> None:
    assert chunks_of(np.full(4, 4_000_000_000, dtype=np.uint32), 8_000_000_000) == [slice(0, 2), slice(2, 4)]


def test_a_part_is_its_sets_and_copies_no_samples() -> None:
    sets = drawn(5)
    part = part_of(sets, slice(1, 4))
    assert np.shares_memory(part.samples.values, sets.samples.values)
    assert part.set_count == 3
    for place in range(3):
        mine, theirs = part.one(place), sets.one(place + 1)
        assert mine.interval_s == theirs.interval_s
        for name in ("started_s", "duration_s"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
        np.testing.assert_array_equal(mine.samples.values, theirs.samples.values)
        np.testing.assert_array_equal(mine.samples.offsets, theirs.samples.offsets)


# ---- answers


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = drawn(7)
    wanted = extract(sets, PARAMS, METHODS)
    for most_steps, most_sets in ((1, 1), (1500, 100), (10**9, 3)):
        monkeypatch.setattr(parallel, "CHUNK_STEPS", most_steps)
        monkeypatch.setattr(parallel, "CHUNK_SETS", most_sets)
        assert_same(extract_in_chunks(sets, PARAMS, METHODS, worker_count=1), wanted)


@pytest.mark.slow
def test_processes_change_nothing_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "CHUNK_SETS", 2)
    sets = drawn(9)
    before = dict(os.environ)
    told: list[int] = []
    assert_same(extract_in_chunks(sets, PARAMS, FEW, 2, told.append), extract(sets, PARAMS, FEW))
    assert told == [2, 2, 2, 2, 1]
    assert dict(os.environ) == before
    assert active_workers() == 0


def test_parts_are_read_as_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "CHUNK_SETS", 1)
    read: list[int] = []

    def parts() -> Iterator[SampleSets]:
        for seed in range(12):
            read.append(seed)
            yield drawn(1, seed)

    answers = extract_each(parts(), PARAMS, FEW, 2)
    first = next(answers)
    assert_same(first, extract(drawn(1, 0), PARAMS, FEW))
    assert len(read) <= 5
    assert_same(next(answers), extract(drawn(1, 1), PARAMS, FEW))
    # whoever has enough leaves: nothing goes on behind
    cast(Any, answers).close()
    assert len(read) < 12
    assert active_workers() == 0


def test_each_part_has_its_own_answers() -> None:
    parts = [drawn(2, 1), drawn(0), drawn(3, 2)]
    found = list(extract_each(parts, PARAMS, FEW, 1))
    assert len(found) == 3
    for answer, part in zip(found, parts, strict=True):
        assert_same(answer, extract(part, PARAMS, FEW))
    assert list(extract_each([], PARAMS, FEW, 1)) == []


def test_no_sets_have_no_signatures() -> None:
    (found,) = extract_in_chunks(drawn(0), PARAMS, ("robust",))
    assert (found.method, found.signatures, len(found.is_outlier)) == ("robust", [], 0)


def test_a_single_chunk_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "ProcessPoolExecutor", None)
    sets = drawn(3)
    assert_same(extract_in_chunks(sets, PARAMS, FEW, 8), extract(sets, PARAMS, FEW))


# ---- faults


@dataclass(frozen=True)
class Deadly:
    """Whoever unpickles it ends."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (9,)


def test_a_worker_that_dies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "CHUNK_SETS", 1)
    with pytest.raises(WorkerLost, match="ended before it answered"):
        extract_in_chunks(drawn(3), cast(Any, Deadly()), FEW, 2)
    assert active_workers() == 0


@pytest.mark.parametrize("worker_count", [1, 2])
def test_a_fault_of_a_worker_is_raised_here(monkeypatch: pytest.MonkeyPatch, worker_count: int) -> None:
    monkeypatch.setattr(parallel, "CHUNK_SETS", 1)
    with pytest.raises(KeyError, match="astrology"):
        extract_in_chunks(drawn(3), PARAMS, ("astrology",), worker_count)


def active_workers() -> int:
    return sum("Spawn" in type(child).__name__ for child in multiprocessing.active_children())

"""Signatures of many sample sets do not depend on the batch size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from iosig.estimates.signatures import parallel
from iosig.estimates.signatures.parallel import extract_in_batches, select_chunk
from iosig.transforms.arrays import Ragged
from iosig.transforms.signatures.methods import METHODS, MethodSignatures, SignatureParams, extract_signatures
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets

PARAMS = SignatureParams()


def drawn(set_count: int, seed: int = 0, run_count: int = 6) -> SampleSets:
    """Return sets of runs with two bursts each, of different lengths."""
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
    return SampleSets.concatenate(sets)


def assert_same(found: list[MethodSignatures], wanted: list[MethodSignatures]) -> None:
    assert [one.method for one in found] == [one.method for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.is_outlier, other.is_outlier)
        assert [answer.outcome for answer in one.signatures] == [answer.outcome for answer in other.signatures]
        for mine, theirs in zip(one.signatures, other.signatures, strict=True):
            for name in ("bytes_per_s", "low_bytes_per_s", "high_bytes_per_s", "background_bytes_per_s"):
                np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
            for name in ("start_s", "peak_s", "end_s", "volume_bytes", "support_ratio"):
                np.testing.assert_array_equal(getattr(mine.bursts, name), getattr(theirs.bursts, name))


def test_part_shares_the_samples_of_its_sets() -> None:
    sets = drawn(5)
    sets = replace(sets, is_truncated=np.arange(len(sets.duration_s)) % 3 == 0)
    part = select_chunk(sets, slice(1, 4))
    assert np.shares_memory(part.samples.values, sets.samples.values)
    assert part.set_count == 3
    for place in range(3):
        mine, theirs = part.get_set(place), sets.get_set(place + 1)
        assert mine.interval_s == theirs.interval_s
        for name in ("start_s", "duration_s", "is_truncated"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
        np.testing.assert_array_equal(mine.samples.values, theirs.samples.values)
        np.testing.assert_array_equal(mine.samples.offsets, theirs.samples.offsets)


def test_batch_size_does_not_change_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = drawn(7)
    wanted = extract_signatures(sets, PARAMS, METHODS)
    for max_steps, max_sets in ((1, 1), (1500, 100), (10**9, 3)):
        monkeypatch.setattr(parallel, "BATCH_STEPS", max_steps)
        monkeypatch.setattr(parallel, "BATCH_SETS", max_sets)
        assert_same(extract_in_batches(sets, PARAMS, METHODS), wanted)


def test_empty_sets_have_no_signatures() -> None:
    (found,) = extract_in_batches(drawn(0), PARAMS, ("robust",))
    assert (found.method, found.signatures, len(found.is_outlier)) == ("robust", [], 0)

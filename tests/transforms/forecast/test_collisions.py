"""Expected overlap of bursts: pairs of jobs, minimum overlap, and empty input."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from iosig.transforms.forecast.collisions import find_collisions


def test_overlap_matches_sum_over_pairs_of_jobs() -> None:
    generator = np.random.default_rng(3)
    active, rates = generator.random((5, 8)), generator.random((5, 8))
    application = np.array([0, 1, 0, 2, 1])
    result = find_collisions(active, rates, application, 10.0, 4, 0.0)
    expected: dict[tuple[int, int, int], list[float]] = {}
    for job, other in combinations(range(5), 2):
        for step in range(8):
            low, high = sorted((application[job], application[other]))
            sums = expected.setdefault((step // 4, low, high), [0.0, 0.0])
            sums[0] += active[job, step] * active[other, step] * 10.0
            sums[1] += (rates[job, step] * active[other, step] + rates[other, step] * active[job, step]) * 10.0
    # application 2 has one job, which does not overlap with itself
    pairs = {
        (interval, first, second): [seconds, volume]
        for interval, first, second, seconds, volume in zip(
            result.interval, result.first, result.second, result.overlap_s, result.overlap_bytes, strict=True
        )
        if first != second or first != 2
    }
    assert set(pairs) == set(expected)
    for key, values in expected.items():
        assert pairs[key] == pytest.approx(values)
    assert (np.diff(result.overlap_bytes) <= 0).all()


def test_short_overlap_is_omitted() -> None:
    active = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    for min_overlap_s, count in ((2.0, 1), (3.0, 0)):
        assert len(find_collisions(active, active, np.array([0, 1]), 10.0, 3, min_overlap_s).interval) == count


def test_empty_input_has_no_collisions() -> None:
    assert len(find_collisions(np.zeros((0, 4)), np.zeros((0, 4)), np.zeros(0, np.int64), 1.0, 2, 0.0).first) == 0

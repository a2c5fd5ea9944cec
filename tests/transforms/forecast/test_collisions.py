"""Which bursts meet: as likely as both are there, and no job meets itself."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from iosig.transforms.forecast.collisions import collisions


def test_bursts_meet_as_often_as_reckoned_pair_by_pair() -> None:
    generator = np.random.default_rng(3)
    active, rates = generator.random((5, 8)), generator.random((5, 8))
    application = np.array([0, 1, 0, 2, 1])
    found = collisions(active, rates, application, 10.0, 4, 0.0)
    expected: dict[tuple[int, int, int], list[float]] = {}
    for one, other in combinations(range(5), 2):
        for step in range(8):
            low, high = sorted((application[one], application[other]))
            sums = expected.setdefault((step // 4, low, high), [0.0, 0.0])
            sums[0] += active[one, step] * active[other, step] * 10.0
            sums[1] += (rates[one, step] * active[other, step] + rates[other, step] * active[one, step]) * 10.0
    # an application of one job does not meet itself
    told = {
        (stretch, first, second): [seconds, volume]
        for stretch, first, second, seconds, volume in zip(
            found.stretch, found.first, found.second, found.meeting_s, found.meeting_bytes, strict=True
        )
        if first != second or first != 2
    }
    assert set(told) == set(expected)
    for key, values in expected.items():
        assert told[key] == pytest.approx(values)
    assert (np.diff(found.meeting_bytes) <= 0).all()


def test_bursts_that_hardly_meet_are_not_told() -> None:
    active = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    for least_s, count in ((2.0, 1), (3.0, 0)):
        assert len(collisions(active, active, np.array([0, 1]), 10.0, 3, least_s).stretch) == count


def test_where_nobody_is_nobody_meets() -> None:
    assert len(collisions(np.zeros((0, 4)), np.zeros((0, 4)), np.zeros(0, np.int64), 1.0, 2, 0.0).first) == 0

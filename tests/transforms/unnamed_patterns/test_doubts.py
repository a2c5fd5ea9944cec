"""What may be no application of its own."""

from __future__ import annotations

import numpy as np
import pytest

from transforms.arrays import Reals
from transforms.unnamed_patterns.doubts import doubtful

TRAIN: Reals = np.full(200, 27e9)


@pytest.mark.parametrize(
    ("volumes", "burst_count", "is_it"),
    [
        (np.full(12, 27.5e9), 1, True),
        # too many to be strays
        (np.full(21, 27.5e9), 1, False),
        (np.full(12, 30e9), 1, False),
        # of two makers that are near each other
        (np.repeat([100e9, 106e9], 5), 1, True),
        (np.repeat([100e9, 102e9], 5), 1, False),
        # others' bursts fall between two of one
        (np.repeat([100e9, 150e9], 5), 2, False),
    ],
)
def test_strays_and_mixtures_are_doubtful(volumes: Reals, burst_count: int, is_it: bool) -> None:
    found = doubtful([TRAIN, volumes], np.array([1, burst_count]), np.array([True, False]))
    assert found.tolist() == [False, is_it]


def test_trains_are_sure_and_nothing_is_fine() -> None:
    assert doubtful([np.geomspace(1e9, 2e9, 30), TRAIN[:10]], np.ones(2, int), np.ones(2, bool)).tolist() == [
        False,
        False,
    ]
    assert not len(doubtful([], np.zeros(0, int), np.zeros(0, bool)))

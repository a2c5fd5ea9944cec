"""What may be no application of its own."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Bools, Reals
from iosig.transforms.unnamed_patterns.doubts import are_of_logged, doubtful

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
    found = doubtful([TRAIN, volumes], np.zeros(2), np.array([1, burst_count]), np.array([True, False]))
    assert found.tolist() == [False, is_it]


def test_trains_are_sure_and_nothing_is_fine() -> None:
    volumes = [np.geomspace(1e9, 2e9, 30), TRAIN[:10]]
    assert not doubtful(volumes, np.array([0.0, 0.3]), np.ones(2, int), np.ones(2, bool)).any()
    assert not len(doubtful([], np.zeros(0), np.zeros(0, int), np.zeros(0, bool)))


@pytest.mark.parametrize(
    ("inexact_ratio", "burst_count", "is_it"), [(0.06, 1, True), (0.04, 1, False), (0.06, 2, False)]
)
def test_what_is_alike_within_what_nobody_can_tell_is_doubtful(
    inexact_ratio: float, burst_count: int, is_it: bool
) -> None:
    found = doubtful([np.full(9, 3e9)], np.array([inexact_ratio]), np.array([burst_count]), np.zeros(1, bool))
    assert found.tolist() == [is_it]


@pytest.mark.parametrize(
    ("volume_bytes", "count", "were_there", "is_it"),
    [
        # four of ten lie in runs of what moves as much, and did so more often
        (20.1e9, 200, np.arange(10) < 4, True),
        (20.1e9, 200, np.arange(10) < 3, False),
        (20.1e9, 9, np.arange(10) < 4, False),
        (22e9, 200, np.arange(10) < 4, False),
    ],
)
def test_strays_of_what_a_logged_application_does_are_doubtful(
    volume_bytes: float, count: int, were_there: Bools, is_it: bool
) -> None:
    volumes, named = np.full(10, 20e9), np.full(count, volume_bytes)
    assert are_of_logged(volumes, [named], were_there[None]) is is_it
    # two applications' strays together are as doubtful
    others = were_there & (np.arange(10) > 1), were_there & (np.arange(10) < 2)
    assert are_of_logged(volumes, [named, named], np.stack(others)) is is_it
    assert not are_of_logged(volumes, [], np.zeros((0, 10), bool))

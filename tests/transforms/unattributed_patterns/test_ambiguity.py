"""Ambiguous patterns: strays of trains and logged applications, and mixtures of applications."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Bools, Reals
from iosig.transforms.unattributed_patterns.ambiguity import find_ambiguous, may_be_strays

TRAIN: Reals = np.full(200, 27e9)


@pytest.mark.parametrize(
    ("volumes", "burst_count", "expected"),
    [
        (np.full(12, 27.5e9), 1, True),
        # too many appearances for strays
        (np.full(21, 27.5e9), 1, False),
        (np.full(12, 30e9), 1, False),
        # two applications with similar volumes
        (np.repeat([100e9, 106e9], 5), 1, True),
        (np.repeat([100e9, 102e9], 5), 1, False),
        # with several bursts per appearance, volumes carry no information
        (np.repeat([100e9, 150e9], 5), 2, False),
    ],
)
def test_strays_and_mixtures_are_ambiguous(volumes: Reals, burst_count: int, expected: bool) -> None:
    result = find_ambiguous([TRAIN, volumes], np.zeros(2), np.array([1, burst_count]), np.array([True, False]))
    assert result.tolist() == [False, expected]


def test_trains_and_empty_input_are_not_ambiguous() -> None:
    volumes = [np.geomspace(1e9, 2e9, 30), TRAIN[:10]]
    assert not find_ambiguous(volumes, np.array([0.0, 0.3]), np.ones(2, int), np.ones(2, bool)).any()
    assert not len(find_ambiguous([], np.zeros(0), np.zeros(0, int), np.zeros(0, bool)))


@pytest.mark.parametrize(
    ("error_ratio", "burst_count", "expected"), [(0.06, 1, True), (0.04, 1, False), (0.06, 2, False)]
)
def test_spread_below_measurement_error_is_ambiguous(error_ratio: float, burst_count: int, expected: bool) -> None:
    result = find_ambiguous([np.full(9, 3e9)], np.array([error_ratio]), np.array([burst_count]), np.zeros(1, bool))
    assert result.tolist() == [expected]


@pytest.mark.parametrize(
    ("volume_bytes", "count", "is_covered", "expected"),
    [
        # four of ten appearances lie in runs of an application with that volume and more appearances
        (20.1e9, 200, np.arange(10) < 4, True),
        (20.1e9, 200, np.arange(10) < 3, False),
        (20.1e9, 9, np.arange(10) < 4, False),
        (22e9, 200, np.arange(10) < 4, False),
    ],
)
def test_strays_of_logged_applications_are_ambiguous(
    volume_bytes: float, count: int, is_covered: Bools, expected: bool
) -> None:
    volumes, named = np.full(10, 20e9), np.full(count, volume_bytes)
    assert may_be_strays(volumes, [named], is_covered[None]) is expected
    # the same if two applications cover them together
    others = is_covered & (np.arange(10) > 1), is_covered & (np.arange(10) < 2)
    assert may_be_strays(volumes, [named, named], np.stack(others)) is expected
    assert not may_be_strays(volumes, [], np.zeros((0, 10), bool))

"""Distribution of intervals over grids: whole bytes, and equality with a loop over intervals."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.exact_series import Grids, Intervals, distribute_to_grids
from tests.budget import examples


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def test_interval_of_one_step_fills_the_step() -> None:
    grids = Grids(ints(10), ints(3), ints(1), ints(3))
    result = distribute_to_grids(Intervals(ints(3, 23), ints(13, 33), ints(0, 0)), ints(7, 9), grids)
    assert result.values.tolist() == [7, 0, 9]


def test_bytes_outside_are_dropped_and_others_preserved() -> None:
    grids = Grids(ints(10, 10), ints(0, 0), ints(1, 2), ints(2, 2))
    result = distribute_to_grids(Intervals(ints(-5, 5, 15), ints(5, 20, 15), ints(0, 0, 1)), ints(10, 7, 4), grids)
    # Half of the first interval lies before the run; the second covers 5 us of one step and 10 us of the next.
    assert result.values.tolist() == [5 + 2, 5, 4]
    assert result.offsets.tolist() == [0, 2, 3]


@pytest.mark.parametrize("seed", range(examples(20)))
def test_distribution_matches_sum_over_intervals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = 4
    first = rng.integers(0, 5, count)
    grids = Grids(rng.integers(1, 30, count), rng.integers(0, 10, count), first, first + rng.integers(-1, 20, count))
    begin, run = rng.integers(0, 200, 50), rng.integers(0, count, 50)
    until = begin + rng.integers(0, 80, 50)
    volume = rng.integers(0, 1000, 50)
    expected = np.zeros(grids.counts.sum())
    starts = np.cumsum(grids.counts) - grids.counts
    for a, b, moved, owner in zip(begin, until, volume, run, strict=True):
        a = min(a, b - 1)
        for place in range(grids.counts[owner]):
            right = grids.phase_us[owner] + (first[owner] + place) * grids.step_us[owner]
            shares = [np.clip(edge - a, 0, b - a) / (b - a) for edge in (right - grids.step_us[owner], right)]
            expected[starts[owner] + place] += np.round(moved * shares[1]) - np.round(moved * shares[0])
    assert distribute_to_grids(Intervals(begin, until, run), volume, grids).values.tolist() == expected.tolist()

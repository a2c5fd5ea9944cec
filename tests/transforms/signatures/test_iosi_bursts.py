"""Bursts are cut out of samples, and correlated with the average burst of their set."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.iosi_bursts import BurstTable, CutBursts, SegmentedSamples
from iosig.transforms.signatures.iosi_crests import RowBursts


def cut(rows: Reals, bursts: RowBursts) -> CutBursts:
    return CutBursts.from_samples(SegmentedSamples(rows, rows, bursts, 1.0, float("nan")))


def correlations_with_average(rows: Reals, bursts: RowBursts) -> Reals:
    return BurstTable.concatenate([cut(rows, bursts)]).correlate_with_average()


def test_points_of_bursts_are_cut_out_of_their_rows() -> None:
    bursts = RowBursts(np.array([0, 1, 1]), np.array([1, 0, 3]), np.array([2, 0, 4]), np.array([3, 1, 4]))
    result = cut(np.arange(10.0).reshape(2, 5), bursts)
    assert result.value.tolist() == [1, 2, 3, 5, 6, 8, 9]
    assert (result.run_count, result.point_count) == (2, 5)
    table = BurstTable.concatenate([result, result])
    assert table.offsets.tolist() == [0, 3, 6]
    assert table.owner.tolist() == [0, 0, 0, 1, 1, 1]
    assert table.sum_points(table.value).tolist() == [6, 11, 17] * 2


def test_widths_range_from_the_mean_duration_to_the_mean_distance() -> None:
    bursts = RowBursts(np.array([0, 0, 1]), np.array([0, 40, 5]), np.array([2, 45, 8]), np.array([10, 50, 15]))
    table = BurstTable.concatenate([cut(np.zeros((2, 60)), bursts)])
    assert table.unit_widths(3).tolist() == [[10.0, 20.0, 30.0]]


def test_constant_bursts_have_zero_correlation() -> None:
    flat = RowBursts(np.array([0, 0]), np.array([0, 5]), np.array([2, 7]), np.array([4, 9]))
    assert correlations_with_average(np.full((1, 10), 0.3), flat).tolist() == [0, 0]


def test_negative_correlation_becomes_zero() -> None:
    peak, valley = np.array([0, 1.0, 2, 1, 0]), np.array([2.0, 1, 0, 1, 2])
    rows = np.concatenate([peak, peak, peak, valley])[None, :]
    first = np.array([0, 5, 10, 15])
    result = RowBursts(np.zeros(4, dtype=np.int64), first, first + 2, first + 4)
    assert correlations_with_average(rows, result) == pytest.approx([1, 1, 1, 0])

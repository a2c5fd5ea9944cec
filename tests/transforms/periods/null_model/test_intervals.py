"""Intervals: spans of activity, windows, and their samples."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.null_model.intervals import Intervals, ScaledSignals

NAN = float("nan")


def signals(*rows: list[float]) -> ScaledSignals:
    return ScaledSignals.from_signals(EvenSignals(np.array(rows), np.ones(len(rows)), np.zeros(len(rows))))


def single(first: int, last: int, row: int = 0) -> Intervals:
    return Intervals(np.array([row]), np.array([first]), np.array([last]))


def test_span_reaches_from_first_to_last_activity() -> None:
    result = signals([0, 0, 3, 0, 6, 0], [NAN, 1, NAN, -2, 4, NAN], [0, 0, 0, 0, 0, 0], [np.inf] * 6)
    assert result.spans.first.tolist() == [2, 1, 0, 0]
    assert result.spans.last.tolist() == [5, 5, 0, 0]
    np.testing.assert_array_equal(result.rates[:2], [[0, 0, 0.5, 0, 1, 0], [0, 0.25, 0, 0, 1, 0]])
    assert result.count_measurements(result.spans).tolist() == [3, 2, 0, 0]
    np.testing.assert_allclose(result.sum_volumes(result.spans), [1.5, 1.25, 0, 0])
    assert result.select(np.array([1])).spans.first.tolist() == [1]


@pytest.mark.parametrize("unit", [5e-324, 1e-300, 1e300])
def test_scaled_rates_are_independent_of_the_unit(unit: float) -> None:
    result = signals([0, unit, unit, 0])
    assert result.rates.tolist() == [[0, 1, 1, 0]]


def test_windows_overlap_by_half_and_cover_the_interval() -> None:
    windows, owner = single(10, 90).split_windows(2, np.array([0]))
    assert windows.first.tolist() == [10, 20, 30, 40, 50, 60, 70]
    assert windows.lengths.tolist() == [20] * 7
    assert owner.tolist() == [0] * 7


def test_windows_are_trimmed_to_their_activity() -> None:
    result = signals([0, 1, 0, 0, 1, 0, 0, 0]).trim_idle(
        Intervals(np.zeros(3, dtype=int), np.array([0, 2, 5]), np.array([4, 8, 8]))
    )
    assert result.first.tolist()[:2] == [1, 4]
    assert result.last.tolist()[:2] == [2, 5]
    assert result.lengths.tolist() == [1, 1, 0]


def test_samples_after_an_interval_are_zero_and_unknown() -> None:
    result = signals([1, 1, NAN, 1, 1, 1, 1, 1])
    rates, known = result.extract(single(1, 5), 16)
    assert rates.tolist() == [[1, 0, 1, 1] + [0] * 12]
    assert known is not None
    assert known.tolist() == [[True, False, True, True] + [False] * 12]
    rates, known = signals([1] * 16).extract(single(0, 16), 16)
    assert known is None


def test_intervals_are_grouped_by_fft_size() -> None:
    pieces = Intervals(np.zeros(3, dtype=int), np.array([0, 0, 3]), np.array([16, 1000, 18]))
    groups = [(places.tolist(), size) for places, size in pieces.group_by_fft_size()]
    assert groups == [([0, 2], 16), ([1], 1024)]


def test_intervals_fit_the_width_of_their_group() -> None:
    lengths = np.concatenate([np.arange(1, 200), [1000, 1024, 1025, 1536, 1537]])
    pieces = Intervals(np.zeros_like(lengths), np.zeros_like(lengths), lengths)
    groups = [(places, width) for places, width in pieces.group_by_width()]
    assert sorted(np.concatenate([places for places, _ in groups]).tolist()) == list(range(len(lengths)))
    for places, width in groups:
        assert lengths[places].max() <= width
        assert width == 16 or lengths[places].min() > width / 1.51


def test_idle_windows_become_empty() -> None:
    result = signals([0, 0, 0, 0], [5, 0, 0, 5], [0, 0, 0, 0])
    trim_idle = result.trim_idle(Intervals(np.array([0, 1, 1, 2]), np.array([0, 1, 0, 0]), np.array([4, 3, 4, 4])))
    assert trim_idle.lengths.tolist() == [0, 0, 4, 0]
    assert (trim_idle.first[2], trim_idle.last[2]) == (0, 4)


def test_volumes_between_edges_are_sums_of_samples() -> None:
    result = signals([4, 2, 1, 4], [0, 1, 1, 2])
    edges = result.flat_positions(np.array([0, 0, 1, 1]), np.array([1, 3, 0, 4]))
    assert result.sum_between_edges(edges).tolist() == [0.75, 2.0]
    assert result.sum_between_edges(edges[:0]).tolist() == []

"""Extents: the run of onset intervals or cycles with the maximum sum of scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.periods.null_model.extent import find_max_sum_runs, locate_by_cycles, locate_by_phases
from iosig.transforms.periods.null_model.intervals import Intervals
from iosig.transforms.periods.null_model.phases import find_phases
from tests.budget import examples


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(st.lists(st.integers(-3, 3), min_size=6, max_size=6), min_size=1, max_size=5))
def test_best_run_has_the_maximum_sum(rows: list[list[int]]) -> None:
    first, last = find_max_sum_runs(np.array(rows, dtype=float))
    for row, begin, end in zip(rows, first, last, strict=True):
        highest = max(sum(row[low:high]) for low in range(7) for high in range(low, 7))
        assert sum(row[begin:end]) == highest
        assert 0 <= begin <= end <= 6


def pulses(starts: list[int], sample_count: int = 1000) -> np.ndarray:
    rates = np.zeros((1, sample_count))
    for start in starts:
        rates[0, start : start + 3] = 1.0
    return rates


def test_extent_covers_conforming_intervals() -> None:
    even = [*range(200, 420, 20), 450, *range(470, 600, 20)]
    rates = pulses([3, 90, 111, *even, 700, 800])
    result = locate_by_phases(find_phases(rates, np.array([0.5])), np.array([0]), np.array([20.0]), np.array([0.02]))
    assert (result.first[0], result.last[0]) == (200, 593)
    assert result.period[0] == 20
    assert result.regularity[0] == 1
    assert result.cycles[0] == len(even) - 2


def test_missing_phase_does_not_end_an_extent_but_a_long_gap_does() -> None:
    single = find_phases(pulses([0, 20, 40, 80, 100, 120, 400, 420]), np.array([0.5]))
    result = locate_by_phases(single, np.array([0]), np.array([20.0]), np.array([0.0]))
    assert (result.first[0], result.last[0]) == (0, 123)
    assert result.period[0] == 20


def test_split_and_missed_phases_do_not_bias_the_period() -> None:
    even = [*range(0, 200, 20), *range(220, 400, 20), 407]
    result = locate_by_phases(
        find_phases(pulses(even), np.array([0.5])), np.array([0]), np.array([21.5]), np.array([0.3])
    )
    assert result.period[0] == 20
    uneven = locate_by_phases(
        find_phases(pulses([0, 14, 40, 70, 84]), np.array([0.5])), np.array([0]), np.array([21.0]), np.array([0.3])
    )
    assert uneven.period[0] == 21


def test_signal_without_phases_has_no_extent() -> None:
    none = find_phases(np.zeros((2, 10)), np.full(2, 0.5))
    result = locate_by_phases(none, np.zeros(2, dtype=int), np.full(2, 20.0), np.zeros(2))
    assert np.isnan(result.first).all()


def piece(first: int, last: int) -> Intervals:
    return Intervals(np.array([0]), np.array([first]), np.array([last]))


def test_extent_covers_cycles_similar_to_the_mean_cycle() -> None:
    rng = np.random.default_rng(2)
    rates = 0.5 + 0.05 * rng.standard_normal((1, 2000))
    place = np.arange(600, 1400)
    rates[0, place] += 0.3 * np.sin(2 * np.pi * place / 40)
    result = locate_by_cycles(rates, None, np.array([1 / 40]), piece(0, 2000), piece(800, 1200))
    assert result.first[0] == pytest.approx(600, abs=40)
    assert result.last[0] == pytest.approx(1400, abs=40)
    assert result.regularity[0] > 0.9
    assert result.cycles[0] == pytest.approx(20, abs=2)


def test_unmeasured_cycles_do_not_count_as_idle() -> None:
    place = np.arange(800)
    rates = (0.5 + 0.3 * np.sin(2 * np.pi * place / 40))[None]
    known = np.random.default_rng(1).random((1, 800)) > 0.3
    result = locate_by_cycles(np.where(known, rates, 0.0), known, np.array([1 / 40]), piece(0, 800), piece(0, 800))
    assert (result.first[0], result.last[0]) == (0, 800)
    assert result.regularity[0] > 0.98


def test_extent_stays_within_the_span() -> None:
    rates = np.zeros((1, 400))
    rates[0, 35:365:10] = 1.0
    result = locate_by_cycles(rates, None, np.array([0.1]), piece(35, 356), piece(35, 356))
    assert (result.first[0], result.last[0]) == (35, 356)

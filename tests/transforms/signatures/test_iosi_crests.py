"""Segmentation at troughs: ends, plateaus, mean crest height, a naive implementation, and simulated bursts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from iosig.transforms.signatures.iosi import low_frequency_component
from iosig.transforms.signatures.iosi_crests import (
    ALL_WAVES,
    HIGH_WAVES,
    RowBursts,
    WaveRules,
    mean_crest_heights,
    segment_bursts,
)
from tests.budget import examples
from tests.naive.signatures import iosi_crests as naive

NAN = float("nan")


def to_triples(result: RowBursts) -> list[tuple[int, int, int]]:
    return list(zip(result.first.tolist(), result.peak.tolist(), result.last.tolist(), strict=True))


def find_row_bursts(*row: float, rules: WaveRules = HIGH_WAVES) -> list[tuple[int, int, int]]:
    """Segment one row."""
    result = segment_bursts([row], rules)
    assert not result.run.any()
    return to_triples(result)


# ---- one row


def test_burst_lies_between_troughs_and_peaks_at_its_crest() -> None:
    assert find_row_bursts(1, 0, 3, 0, 3, 5, 1, 2) == [(1, 2, 3), (3, 5, 6)]


def test_only_troughs_below_the_mean_crest_height_separate() -> None:
    # crests 9, 8 and 1: mean 6
    assert find_row_bursts(0, 9, 7, 8, 0, 1, 0) == [(0, 1, 4)]
    assert find_row_bursts(0, 9, 6, 8, 0, 1, 0) == [(0, 1, 4)], "at the mean it does not separate"
    assert find_row_bursts(0, 9, 5.9, 8, 0, 1, 0) == [(0, 1, 2), (2, 3, 4)]


def test_mean_crest_height_is_that_of_each_row() -> None:
    rows = np.array([[0.0, 9, 7, 8, 0, 1, 0], [4, 1, 2, 1, 1, 3, 3], [5, 5, 5, 5, 5, 5, 5]])
    assert mean_crest_heights(rows).tolist() == [6.0, 3.0, 0.0]


def test_wave_is_a_burst_if_its_highest_crest_reaches_the_mean() -> None:
    # crests 9 and 1: mean 5
    assert find_row_bursts(0, 9, 0, 1, 0) == [(0, 1, 2)]


def test_every_wave_is_a_burst_as_published() -> None:
    assert find_row_bursts(0, 9, 0, 1, 0, rules=ALL_WAVES) == [(0, 1, 2), (2, 3, 4)]
    assert find_row_bursts(0, 9, 7, 8, 0, 1, 0, rules=ALL_WAVES) == [(0, 1, 4), (4, 5, 6)], "7 is above the mean of 6"
    assert find_row_bursts(0, 9, 8.95, 9, 0, rules=ALL_WAVES) == [(0, 1, 2), (2, 3, 4)], "a ripple is not ignored"
    assert len(find_row_bursts(-9, -1, -9, -2, -9, rules=ALL_WAVES)) == 2


def test_published_boundaries_are_centers_of_troughs_and_ends_of_the_row() -> None:
    assert find_row_bursts(0, 0, 4, 0, 0, 0, 4, 0, 0, rules=ALL_WAVES) == [(0, 2, 4), (4, 6, 8)]
    assert find_row_bursts(5, 1, 5, rules=ALL_WAVES) == [(0, 0, 1), (1, 2, 2)]


def test_equal_crests_tolerate_rounding_of_their_mean() -> None:
    assert len(find_row_bursts(0, 0.1, 0, 0.1, 0, 0.1, 0)) == 3
    assert find_row_bursts(0, 7, 0) == [(0, 1, 2)]


def test_first_of_equal_crests_is_the_peak() -> None:
    assert find_row_bursts(0, 9, 8, 9, 0, 1, 0) == [(0, 1, 4)]


def test_flat_crests_and_troughs_are_segmented() -> None:
    assert find_row_bursts(0, 0, 0, 1, 4, 4, 4, 4, 1, 0, 0, 0) == [(2, 5, 9)]
    assert find_row_bursts(0, 4, 0, 0, 0, 4, 0) == [(0, 1, 2), (4, 5, 6)]
    assert find_row_bursts(0, 1, 1, 4, 2, 2, 0) == [(0, 3, 6)], "a halt on the way is neither"


def test_row_may_start_or_end_within_a_burst() -> None:
    assert find_row_bursts(9, 9, 3, 0, 0) == [(0, 0, 3)]
    assert find_row_bursts(0, 0, 3, 9) == [(1, 3, 3)]
    assert find_row_bursts(0, 0, 3, 9, 9, 9) == [(1, 4, 5)]
    assert find_row_bursts(5, 1, 5) == [(0, 0, 1), (1, 2, 2)]
    assert find_row_bursts(5, 1) == [(0, 0, 1)]
    assert find_row_bursts(1, 5) == [(0, 1, 1)]


def test_constant_row_has_no_burst() -> None:
    assert find_row_bursts(0, 0, 0) == []
    assert find_row_bursts(5, 5, 5) == []
    assert find_row_bursts(5) == []
    assert find_row_bursts(NAN, NAN) == []
    for rules in (ALL_WAVES, HIGH_WAVES):
        assert find_row_bursts(5, 5, 5, rules=rules) == []
        assert len(segment_bursts(np.empty((0, 5)), rules)) == len(segment_bursts(np.empty((3, 0)), rules)) == 0


def test_negative_values_are_no_burst() -> None:
    assert find_row_bursts(-9, -1, -9, -2, -9) == []
    assert find_row_bursts(-5, 2, -5, -4, -5) == [(0, 1, 2)], "the mean crest height may be below zero"


def test_nan_separates_bursts() -> None:
    assert find_row_bursts(0, 9, 8, NAN, 8, 9, 0) == [(0, 1, 3), (3, 5, 6)]
    assert find_row_bursts(NAN, 9, 0) == [(0, 1, 2)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e308, 5e-324, np.inf, 1e-300])
def test_segmentation_accepts_extreme_heights(scale: float) -> None:
    assert find_row_bursts(0, scale, 0, scale, 0) == [(0, 1, 2), (2, 3, 4)]


def test_wrong_shape_raises() -> None:
    with pytest.raises(ValueError, match="shape"):
        segment_bursts(np.ones(5))


# ---- many rows

heights = st.one_of(st.integers(-2, 4).map(float), st.floats(-1e6, 1e6))


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_rows_match_naive_implementation(data: st.DataObject) -> None:
    points = data.draw(st.integers(1, 12))
    rows = data.draw(st.lists(st.lists(heights, min_size=points, max_size=points), min_size=1, max_size=4))
    for requires_high_crest in (False, True):
        # drawn rows have no ripple
        result = segment_bursts(rows, WaveRules(requires_high_crest))
        bursts = [naive.waves(row, 0.0, requires_high_crest) for row in rows]
        assert to_triples(result) == [burst for each in bursts for burst in each]
        assert result.run.tolist() == np.repeat(np.arange(len(rows)), [len(each) for each in bursts]).tolist()


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(-5, 100).map(float), min_size=1, max_size=30))
def test_rules_of_variants_match_naive_implementation(row: list[float]) -> None:
    assert find_row_bursts(*row, rules=HIGH_WAVES) == naive.waves(row, 0.01, True)
    assert find_row_bursts(*row, rules=ALL_WAVES) == naive.waves(row)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(heights, min_size=1, max_size=40))
@example([1.0, 1.0, 2.0, 2.0, 0.0, 0.0, 3.0])
def test_time_reversal_is_symmetric(row: list[float]) -> None:
    forward, backward = segment_bursts([row], HIGH_WAVES), segment_bursts([row[::-1]], HIGH_WAVES)
    last = len(row) - 1
    assert forward.first.tolist() == (last - backward.last[::-1]).tolist()
    assert forward.last.tolist() == (last - backward.first[::-1]).tolist()


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=40), st.integers(-30, 30))
def test_segmentation_is_scale_invariant(row: list[int], exponent: int) -> None:
    assert find_row_bursts(*row) == find_row_bursts(*(value * 2.0**exponent for value in row))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(heights, min_size=1, max_size=40))
def test_bursts_are_ordered_and_share_at_most_troughs(row: list[float]) -> None:
    for rules in (ALL_WAVES, HIGH_WAVES):
        result = segment_bursts([row], rules)
        assert (result.first <= result.peak).all()
        assert (result.peak <= result.last).all()
        assert (result.last[:-1] <= result.first[1:]).all()


# ---- smoothed samples


def test_bursts_of_a_noisy_sample_are_found_without_ripples() -> None:
    rng = np.random.default_rng(5)
    rows = np.maximum(rng.normal(0.0, 2e7, (8, 1500)), 0.0)
    starts = np.arange(150, 1500, 300)
    for start in starts:
        rows[:, start : start + 50] += rng.normal(2.5e9, 2e8, (8, 50))
    result = segment_bursts(low_frequency_component(rows), HIGH_WAVES)
    assert np.bincount(result.run).tolist() == [5] * 8
    middles = np.tile(starts + 25, 8)
    assert (np.abs(result.peak - middles) < 30).all()
    # the smoothed row is negative next to a burst
    assert np.abs(result.last - result.first - 54).max() <= 8


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_steady_writer_has_one_burst(level: int) -> None:
    result = segment_bursts(low_frequency_component(np.full((2, 1500), 2e9), level), HIGH_WAVES)
    assert result.run.tolist() == [0, 1]
    assert (result.last - result.first > 1490).all()

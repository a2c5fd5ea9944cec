"""Common bursts: binomial tails and intervals match naive implementations; edges, order and scale."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.signatures.robust_template import (
    PARAMS,
    Reals,
    Template,
    detect_common_times,
    drop_small_bursts,
    extend_to_edges,
    false_alarm_level,
    find_long_intervals,
    interval_heights,
)
from tests.budget import examples
from tests.naive.signatures import robust_template as naive

pytestmark = pytest.mark.filterwarnings("error")

BOUNDED = settings(max_examples=examples(80), deadline=None)


def find_bursts(curve: list[float], marks: list[bool], step_s: float = 1.0) -> list[tuple[int, int]]:
    rates, stretches = np.array(curve, dtype=float), find_long_intervals(np.array(marks, dtype=bool), step_s)
    first, last = drop_small_bursts(rates, *extend_to_edges(rates, *stretches), step_s)
    return list(zip(first.tolist(), last.tolist(), strict=True))


# ---- common times


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.floats(0.01, 0.5), st.booleans())
def test_common_times_match_binomial_tails(seed: int, runs: int, level: float, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    rates = rng.exponential(1.0, (runs, 60))
    if ties:
        rates = np.round(rates)
    rates[:, 20:25] += 2.0
    is_interference = np.ones(60, dtype=bool)
    is_interference[18:27] = rng.random() < 0.5
    result = detect_common_times(rates, is_interference, level)
    foreign = rates[:, is_interference].ravel().tolist()
    tails = np.array([naive.smallest_tail(rates.tolist(), foreign, time) for time in range(60)])
    # Rounding decides ties.
    is_plain = np.abs(tails - level) > 1e-9
    np.testing.assert_array_equal(result[is_plain], (tails < level)[is_plain])


def test_only_bursts_of_all_runs_are_common() -> None:
    rates = np.zeros((10, 300))
    rates[:, 100:110] = 5.0
    rates[3, :50] = rates[4, 150:200] = rates[7, 20:60] = 9.0
    result = detect_common_times(rates, np.ones(300, dtype=bool), 0.004)
    assert np.flatnonzero(result).tolist() == list(range(100, 110))


def test_common_times_need_more_than_half_of_the_runs() -> None:
    rates = np.zeros((10, 1000))
    rates[:5, 100:110] = rates[:9, 500:510] = 5.0
    result = detect_common_times(rates, np.ones(1000, dtype=bool), 0.004)
    assert np.flatnonzero(result).tolist() == list(range(500, 510))


def test_short_interference_time_falls_back_to_all_times() -> None:
    rates = np.zeros((6, 400))
    rates[:, :396] = 3.0
    is_interference = np.arange(400) >= 396
    # 1 % of the time is too short a sample of the interference, so all times are used.
    assert not detect_common_times(rates, is_interference, 0.004).any()


def test_constant_or_few_rates_have_no_common_times() -> None:
    assert not detect_common_times(np.ones((5, 50)), np.ones(50, dtype=bool), 0.01).any()
    assert not detect_common_times(np.array([[0.0, 9.0]]), np.ones(2, dtype=bool), 0.01).any()
    assert not detect_common_times(np.zeros((5, 50)), np.zeros(50, dtype=bool), 0.01).any()


def test_probabilities_below_the_resolution_are_not_used() -> None:
    rates = np.zeros((1, 60))
    rates[0, 20:30] = 1.0
    is_interference = rates[0] == 0
    # 50 interfering rates resolve no smaller probability.
    assert not detect_common_times(rates, is_interference, 0.019).any()
    assert np.flatnonzero(detect_common_times(rates, is_interference, 0.021)).tolist() == list(range(20, 30))


def test_level_falls_with_the_length_and_is_bounded() -> None:
    assert false_alarm_level(500, 2.0) == pytest.approx(0.004)
    assert false_alarm_level(2000, 2.0) == pytest.approx(0.004 / 8)
    assert false_alarm_level(1000, 2.0) == false_alarm_level(2000, 1.0)
    assert false_alarm_level(10, 1.0) == pytest.approx(0.016)


@BOUNDED
@given(st.integers(0, 10_000), st.integers(-900, 900))
def test_common_times_depend_on_ranks_only(seed: int, exponent: int) -> None:
    rng = np.random.default_rng(seed)
    rates = rng.exponential(1.0, (7, 40))
    rates[:, 5:9] += 3.0
    is_interference = rng.random(40) < 0.8
    result = detect_common_times(rates, is_interference, 0.05)
    np.testing.assert_array_equal(
        detect_common_times(np.ldexp(rates[rng.permutation(7)], exponent), is_interference, 0.05), result
    )


# ---- intervals


@st.composite
def curves(draw: st.DrawFn) -> tuple[list[float], list[bool]]:
    curve = draw(st.lists(st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0, 2.0, 8.0]), min_size=1, max_size=60))
    marks = draw(st.lists(st.booleans(), min_size=len(curve), max_size=len(curve)))
    return curve, marks


@settings(max_examples=examples(300), deadline=None)
@given(curves(), st.sampled_from([0.5, 1.0, 2.0, 5.0, 60.0]))
def test_bursts_match_naive_implementation(drawn: tuple[list[float], list[bool]], step_s: float) -> None:
    curve, marks = drawn
    expected = naive.common_bursts(
        curve,
        marks,
        step_s,
        edge_ratio=PARAMS.edge_ratio,
        max_dip_s=PARAMS.max_dip_s,
        min_duration_s=PARAMS.min_duration_s,
        min_volume_ratio=PARAMS.min_volume_ratio,
    )
    assert find_bursts(curve, marks, step_s) == expected


@BOUNDED
@given(curves(), st.sampled_from([1.0, 2.0, 60.0]))
def test_bursts_are_ordered_separate_and_not_empty(drawn: tuple[list[float], list[bool]], step_s: float) -> None:
    curve, marks = drawn
    result = find_bursts(curve, marks, step_s)
    assert all(0 <= begin < end <= len(curve) and sum(curve[begin:end]) > 0 for begin, end in result)
    assert all(after[0] - before[1] > PARAMS.max_dip_s / step_s for before, after in pairwise(result))


def test_burst_extends_to_the_edges_of_the_curve() -> None:
    curve = [0, 0, 1, 3, 4, 4, 4, 3, 2, 1, 0, 0]
    marks = [False] * 4 + [True] * 3 + [False] * 5
    assert find_bursts(curve, marks) == [(3, 9)]
    assert find_bursts([4.0] * 12, marks) == [(0, 12)]
    assert find_bursts([4.0] * 5 + [0.0] * 7, marks) == [(0, 5)]


def test_short_dips_are_included_and_long_dips_split() -> None:
    for pause, expected in ((4, [(10, 24)]), (5, [(10, 15), (20, 25)])):
        marks = [False] * 10 + [True] * 5 + [False] * pause + [True] * 5 + [False] * 10
        assert find_bursts([float(mark) for mark in marks], marks) == expected


def test_low_burst_may_extend_past_a_tall_burst() -> None:
    curve = [0.0] * 5 + [1.0] * 10 + [9.0] * 3 + [1.0] * 10 + [0.0] * 5
    marks = [False] * 15 + [True] * 3 + [False] * 5 + [True] * 5 + [False] * 5
    # The second interval has a separate threshold and extends from 5 to 28: the merged interval starts there.
    assert find_bursts(curve, marks) == [(5, 28)]


def test_long_plateaus_are_included() -> None:
    for length in (63, 64, 65, 575, 576, 577, 5000):
        curve = [0.0] * 7 + [1.0] * (2 * length) + [0.0] * 7
        marks = [False] * (length + 5) + [True] * 4 + [False] * (length + 5)
        assert find_bursts(curve, marks) == [(7, 7 + 2 * length)]


def test_small_and_short_bursts_are_dropped() -> None:
    tall = [0.0] * 10 + [10.0] * 10
    curve = tall * 3 + [0.0] * 10 + [0.2] * 10 + [0.0] * 10 + [10.0] + [0.0] * 10
    assert find_bursts(curve, [value > 0 for value in curve]) == [(10, 20), (30, 40), (50, 60)]
    assert find_bursts([0.0] * 20, [True] * 20) == []
    assert find_bursts([1.0] * 20, [False] * 20) == []


# ---- heights


@BOUNDED
@given(curves(), st.integers(0, 10_000))
def test_heights_match_naive_implementation(drawn: tuple[list[float], list[bool]], seed: int) -> None:
    curve, _ = drawn
    edges = np.unique(np.random.default_rng(seed).integers(0, len(curve) + 1, 6))
    pairs = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    result: Reals = interval_heights(np.array(curve), edges[:-1], edges[1:])
    np.testing.assert_allclose(result, [naive.height(curve, begin, end) for begin, end in pairs], rtol=1e-12)


def test_chain_of_short_peaks_has_a_height() -> None:
    curve = np.array([5.0, 0, 0, 0, 0] * 6)
    assert interval_heights(curve, np.array([0]), np.array([30])) == pytest.approx(1.0)


# ---- templates


def test_template_has_the_volume_of_its_curve() -> None:
    curve = np.array([0.0, 0, 2, 4, 4, 4, 4, 2, 0, 0, 1, 0])
    first, last = np.array([2, 10]), np.array([8, 11])
    result = Template.from_curve(curve, first, last, interval_heights(curve, first, last))
    np.testing.assert_array_equal(result.height, [4, 1])
    np.testing.assert_array_equal(result.length, [5, 1])


def test_template_is_no_longer_than_its_burst() -> None:
    # A tall peak over a low plateau: a box with the height of the plateau would be too long.
    curve = np.concatenate([np.full(18, 1e-12), [1.0, 1.0]])
    first, last = np.array([0]), np.array([20])
    result = Template.from_curve(curve, first, last, interval_heights(curve, first, last))
    assert result.length[0] <= 20
    assert result.length[0] * result.height[0] == pytest.approx(curve.sum())

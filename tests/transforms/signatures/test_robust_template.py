"""Common bursts: binomial tails, stretches that join and grow, against naive twins; edges, order, scale."""

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


def bursts_of(curve: list[float], marks: list[bool], step_s: float = 1.0) -> list[tuple[int, int]]:
    rates, stretches = np.array(curve, dtype=float), find_long_intervals(np.array(marks, dtype=bool), step_s)
    first, last = drop_small_bursts(rates, *extend_to_edges(rates, *stretches), step_s)
    return list(zip(first.tolist(), last.tolist(), strict=True))


# ---- by chance


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.floats(0.01, 0.5), st.booleans())
def test_common_is_what_the_binomial_tails_tell(seed: int, runs: int, level: float, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    rates = rng.exponential(1.0, (runs, 60))
    if ties:
        rates = np.round(rates)
    rates[:, 20:25] += 2.0
    is_foreign = np.ones(60, dtype=bool)
    is_foreign[18:27] = rng.random() < 0.5
    found = detect_common_times(rates, is_foreign, level)
    foreign = rates[:, is_foreign].ravel().tolist()
    tails = np.array([naive.least_tail(rates.tolist(), foreign, time) for time in range(60)])
    # equal to the last bit is a matter of rounding
    is_plain = np.abs(tails - level) > 1e-9
    np.testing.assert_array_equal(found[is_plain], (tails < level)[is_plain])


def test_what_all_runs_do_is_common_and_what_some_do_is_not() -> None:
    rates = np.zeros((10, 300))
    rates[:, 100:110] = 5.0
    rates[3, :50] = rates[4, 150:200] = rates[7, 20:60] = 9.0
    found = detect_common_times(rates, np.ones(300, dtype=bool), 0.004)
    assert np.flatnonzero(found).tolist() == list(range(100, 110))


def test_half_of_the_runs_are_not_enough_but_a_run_without_it_is_no_matter() -> None:
    rates = np.zeros((10, 1000))
    rates[:5, 100:110] = rates[:9, 500:510] = 5.0
    found = detect_common_times(rates, np.ones(1000, dtype=bool), 0.004)
    assert np.flatnonzero(found).tolist() == list(range(500, 510))


def test_where_bursts_are_known_hardly_any_time_is_foreign() -> None:
    rates = np.zeros((6, 400))
    rates[:, :396] = 3.0
    is_foreign = np.arange(400) >= 396
    # a hundredth of the time tells nothing of what others do: then all of it has to
    assert not detect_common_times(rates, is_foreign, 0.004).any()


def test_nothing_is_common_where_all_is_alike_or_little_is_known() -> None:
    assert not detect_common_times(np.ones((5, 50)), np.ones(50, dtype=bool), 0.01).any()
    assert not detect_common_times(np.array([[0.0, 9.0]]), np.ones(2, dtype=bool), 0.01).any()
    assert not detect_common_times(np.zeros((5, 50)), np.zeros(50, dtype=bool), 0.01).any()


def test_a_rate_that_no_other_reaches_is_as_probable_as_one_of_all() -> None:
    rates = np.zeros((1, 60))
    rates[0, 20:30] = 1.0
    is_foreign = rates[0] == 0
    # one of 50 foreign rates: known no finer
    assert not detect_common_times(rates, is_foreign, 0.019).any()
    assert np.flatnonzero(detect_common_times(rates, is_foreign, 0.021)).tolist() == list(range(20, 30))


def test_the_level_falls_with_the_length_and_has_a_bound() -> None:
    assert false_alarm_level(500, 2.0) == pytest.approx(0.004)
    assert false_alarm_level(2000, 2.0) == pytest.approx(0.004 / 8)
    assert false_alarm_level(1000, 2.0) == false_alarm_level(2000, 1.0)
    assert false_alarm_level(10, 1.0) == pytest.approx(0.016)


@BOUNDED
@given(st.integers(0, 10_000), st.integers(-900, 900))
def test_only_the_order_of_rates_counts_and_not_that_of_runs(seed: int, exponent: int) -> None:
    rng = np.random.default_rng(seed)
    rates = rng.exponential(1.0, (7, 40))
    rates[:, 5:9] += 3.0
    is_foreign = rng.random(40) < 0.8
    found = detect_common_times(rates, is_foreign, 0.05)
    np.testing.assert_array_equal(
        detect_common_times(np.ldexp(rates[rng.permutation(7)], exponent), is_foreign, 0.05), found
    )


# ---- stretches


@st.composite
def curves(draw: st.DrawFn) -> tuple[list[float], list[bool]]:
    curve = draw(st.lists(st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0, 2.0, 8.0]), min_size=1, max_size=60))
    marks = draw(st.lists(st.booleans(), min_size=len(curve), max_size=len(curve)))
    return curve, marks


@settings(max_examples=examples(300), deadline=None)
@given(curves(), st.sampled_from([0.5, 1.0, 2.0, 5.0, 60.0]))
def test_bursts_equal_the_naive_twins(drawn: tuple[list[float], list[bool]], step_s: float) -> None:
    curve, marks = drawn
    expected = naive.common_bursts(
        curve,
        marks,
        step_s,
        edge_ratio=PARAMS.edge_ratio,
        dip_s=PARAMS.max_dip_s,
        least_s=PARAMS.min_duration_s,
        least_volume_ratio=PARAMS.min_volume_ratio,
    )
    assert bursts_of(curve, marks, step_s) == expected


@BOUNDED
@given(curves(), st.sampled_from([1.0, 2.0, 60.0]))
def test_bursts_lie_in_order_apart_and_inside_and_move_something(
    drawn: tuple[list[float], list[bool]], step_s: float
) -> None:
    curve, marks = drawn
    found = bursts_of(curve, marks, step_s)
    assert all(0 <= begin < end <= len(curve) and sum(curve[begin:end]) > 0 for begin, end in found)
    assert all(after[0] - before[1] > PARAMS.max_dip_s / step_s for before, after in pairwise(found))


def test_a_burst_grows_to_where_the_curve_falls_and_to_its_ends() -> None:
    curve = [0, 0, 1, 3, 4, 4, 4, 3, 2, 1, 0, 0]
    marks = [False] * 4 + [True] * 3 + [False] * 5
    assert bursts_of(curve, marks) == [(3, 9)]
    assert bursts_of([4.0] * 12, marks) == [(0, 12)]
    assert bursts_of([4.0] * 5 + [0.0] * 7, marks) == [(0, 5)]


def test_short_dips_are_inside_and_long_ones_are_not() -> None:
    for pause, expected in ((4, [(10, 24)]), (5, [(10, 15), (20, 25)])):
        marks = [False] * 10 + [True] * 5 + [False] * pause + [True] * 5 + [False] * 10
        assert bursts_of([float(mark) for mark in marks], marks) == expected


def test_a_low_burst_may_grow_past_the_tall_one_before_it() -> None:
    curve = [0.0] * 5 + [1.0] * 10 + [9.0] * 3 + [1.0] * 10 + [0.0] * 5
    marks = [False] * 15 + [True] * 3 + [False] * 5 + [True] * 5 + [False] * 5
    # the second stretch, at a threshold of its own, reaches from 5 to 28: the joined one begins where that does
    assert bursts_of(curve, marks) == [(5, 28)]


def test_long_plateaus_are_walked_to_their_ends() -> None:
    for length in (63, 64, 65, 575, 576, 577, 5000):
        curve = [0.0] * 7 + [1.0] * (2 * length) + [0.0] * 7
        marks = [False] * (length + 5) + [True] * 4 + [False] * (length + 5)
        assert bursts_of(curve, marks) == [(7, 7 + 2 * length)]


def test_small_bursts_and_short_ones_are_dropped() -> None:
    tall = [0.0] * 10 + [10.0] * 10
    curve = tall * 3 + [0.0] * 10 + [0.2] * 10 + [0.0] * 10 + [10.0] + [0.0] * 10
    assert bursts_of(curve, [value > 0 for value in curve]) == [(10, 20), (30, 40), (50, 60)]
    assert bursts_of([0.0] * 20, [True] * 20) == []
    assert bursts_of([1.0] * 20, [False] * 20) == []


# ---- heights


@BOUNDED
@given(curves(), st.integers(0, 10_000))
def test_heights_equal_the_naive_twins(drawn: tuple[list[float], list[bool]], seed: int) -> None:
    curve, _ = drawn
    edges = np.unique(np.random.default_rng(seed).integers(0, len(curve) + 1, 6))
    pairs = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    found: Reals = interval_heights(np.array(curve), edges[:-1], edges[1:])
    np.testing.assert_allclose(found, [naive.height(curve, begin, end) for begin, end in pairs], rtol=1e-12)


def test_a_chain_of_short_peaks_has_a_height() -> None:
    curve = np.array([5.0, 0, 0, 0, 0] * 6)
    assert interval_heights(curve, np.array([0]), np.array([30])) == pytest.approx(1.0)


# ---- templates


def test_a_template_has_the_volume_of_its_curve() -> None:
    curve = np.array([0.0, 0, 2, 4, 4, 4, 4, 2, 0, 0, 1, 0])
    first, last = np.array([2, 10]), np.array([8, 11])
    found = Template.from_curve(curve, first, last, interval_heights(curve, first, last))
    np.testing.assert_array_equal(found.height, [4, 1])
    np.testing.assert_array_equal(found.length, [5, 1])


def test_a_template_is_no_longer_than_its_burst() -> None:
    # a tall peak over a low plateau: at the plateau's height its volume would last for ever
    curve = np.concatenate([np.full(18, 1e-12), [1.0, 1.0]])
    first, last = np.array([0]), np.array([20])
    found = Template.from_curve(curve, first, last, interval_heights(curve, first, last))
    assert found.length[0] <= 20
    assert found.length[0] * found.height[0] == pytest.approx(curve.sum())

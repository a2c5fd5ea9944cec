"""The gap test: p-values of exponential gaps, merging, and regular phases."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.studies.periods import noise
from iosig.studies.periods.noise import BurstParams
from iosig.transforms.periods.null_model.gaps import (
    GAP_TEST,
    GapRegularity,
    assess_regularity,
    compute_gap_log_p,
    count_merge_trials,
)
from iosig.transforms.periods.null_model.phases import Phases, find_phases
from tests.budget import examples, one_in
from tests.naive.periods.null_model import gaps as naive
from tests.transforms.periods.null_model.test_phases import pulses


def assess(rates: np.ndarray) -> GapRegularity:
    return assess_regularity(find_phases(rates, rates.mean(axis=1)))


# ---- probabilities


@pytest.mark.parametrize(("count", "c"), [(2, 0.01), (3, 0.2), (5, 0.2), (9, 0.1), (20, 0.04)])
def test_p_value_is_exact_while_the_ball_is_inside_the_simplex(count: int, c: float) -> None:
    assert np.exp(compute_gap_log_p(count, c)) == pytest.approx(naive.compute_ball_share(count, c), rel=1e-9)


@pytest.mark.parametrize(("count", "c"), [(3, 0.3), (6, 0.25), (12, 0.4), (19, 0.35), (40, 0.5), (90, 0.6)])
def test_p_values_are_slightly_conservative_on_simulated_gaps(count: int, c: float) -> None:
    gaps = np.random.default_rng(count).standard_exponential((40_000, count))
    simulated = (gaps.var(axis=1) / gaps.mean(axis=1) ** 2 <= c).mean()
    assert 0.9 * simulated <= np.exp(compute_gap_log_p(count, c)) <= 2.5 * simulated


def test_p_values_do_not_decrease_with_variation() -> None:
    c = np.geomspace(1e-6, 1.0, 300)
    for count in (2, 3, 10, 100, 10_000):
        assert (np.diff(compute_gap_log_p(np.full(300, count), c)) >= -1e-6).all()
    assert compute_gap_log_p(5, 1.0) == 0


@pytest.mark.parametrize("count", [3, 5, 10, 30, 100])
def test_merge_trial_count_bounds_simulated_gaps(count: int) -> None:
    rng, draws = np.random.default_rng(count), 6000
    # Gaps are long enough that sampling has no effect.
    gaps = np.sort(1 + np.floor(1e6 * rng.standard_exponential((draws, count))), axis=1)
    best = np.zeros(draws)
    for k in range(1, count - 1):
        left = gaps[:, k:] - gaps[:, k - 1 : k]
        best = np.minimum(best, compute_gap_log_p(np.full(draws, count - k), left.var(axis=1) / left.mean(axis=1) ** 2))
    level = 0.003
    assert (best < np.log(level)).mean() <= level * count_merge_trials(count) + 3 * np.sqrt(
        level * count_merge_trials(count) / draws
    )


# ---- the test


def test_regular_phases_are_significant_and_have_their_period() -> None:
    result = assess(pulses(list(range(5, 400, 20)), 3, 420))
    assert result.log_p[0] < np.log(1e-12)
    assert (result.period[0], result.cv[0], result.max_merged_gap[0]) == (20.0, 0.0, 0)
    assert (result.first[0], result.last[0]) == (5, 388)


def test_three_phases_are_rarely_significant_and_two_never() -> None:
    assert assess(pulses([0, 30, 60], 3, 70)).log_p[0] > np.log(0.01)
    assert assess(pulses([0, 30], 3, 70)).log_p[0] == 0
    assert np.isnan(assess(pulses([0], 3, 70)).period[0])


def test_computation_of_varying_length_is_significant() -> None:
    rng = np.random.default_rng(4)
    starts = np.cumsum(30 + rng.normal(100, 30, 40)).astype(int)
    result = assess(pulses(starts.tolist(), 30, int(starts[-1]) + 40))
    assert result.log_p[0] < np.log(1e-6)
    assert result.period[0] == pytest.approx(np.diff(starts).mean(), rel=1e-9)


def test_split_phases_are_merged() -> None:
    rng = np.random.default_rng(4)
    starts = [at + step for at in range(0, 2000, 100) for step in sorted(rng.choice(20, 5, replace=False) * 1)]
    result = assess(pulses(starts, 1, 2100))
    assert result.log_p[0] < np.log(1e-10)
    assert result.period[0] == pytest.approx(100, rel=0.01)
    assert 0 < result.max_merged_gap[0] < 50


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.integers(1, 30), min_size=4, max_size=12))
def test_best_merge_matches_naive_implementation(gaps: list[int]) -> None:
    starts = np.cumsum([0, *(gap + 2 for gap in gaps)]).tolist()
    rates = pulses(starts, 2, starts[-1] + 3)
    result = assess(rates)
    trials = max(float(count_merge_trials(len(gaps))) / (1 - GAP_TEST.unmerged_weight), 1.0)
    scores = {}
    for merged in naive.list_merges(gaps):
        left = sum(gap > merged for gap in gaps)
        c = naive.compute_squared_cv(gaps, merged)
        score = float(compute_gap_log_p(left, c)) if c < 1 else 0.0
        scores[merged] = score + np.log(trials if merged else 1 / GAP_TEST.unmerged_weight)
    merged = int(result.max_merged_gap[0])
    distances = naive.measure_intervals(naive.find_runs(rates[0].tolist(), float(rates.mean())), merged)
    assert result.period[0] == pytest.approx(np.mean(distances))
    spread = np.std(distances) / np.mean(distances)
    if spread <= GAP_TEST.max_cv and len(distances) >= 2:
        assert result.log_p[0] == pytest.approx(min(*scores.values(), 0.0), abs=1e-9)
    else:
        assert result.log_p[0] == 0


@pytest.mark.parametrize(("may_overlap", "count"), one_in(5, product((True, False), (5, 12, 40)), slow=2))
def test_p_values_of_random_phases_are_conservative(count: int, may_overlap: bool) -> None:
    params = BurstParams(count, 0.1, 0.5, 0.5, may_overlap=may_overlap)
    result = assess(noise.draw_bursts(np.random.default_rng(count), 2000, 2000, params))
    for level in (0.01, 0.05):
        assert (result.log_p < np.log(level)).mean() <= level + 3 * np.sqrt(level / 2000)


def test_empty_input_has_no_result() -> None:
    result = assess(np.zeros((3, 10)))
    assert not result.log_p.any()
    assert np.isnan(result.period).all()
    assert len(assess_regularity(find_phases(np.zeros((0, 10)), np.zeros(0))).period) == 0


@pytest.mark.parametrize("max_log_p", [-1.5, -5.3, -20.0])
def test_log_p_limit_does_not_change_reported_results(max_log_p: float) -> None:
    rng = np.random.default_rng(7)
    rates = np.vstack(
        [noise.draw_bursts(rng, 300, 1000, BurstParams(count, 0.1, 0.5, 0.5)) for count in (5, 20, 60)]
        + [pulses(np.cumsum(rng.integers(20 - most, 21 + most, 40)).tolist(), 2, 1000) for most in range(18)]
    )
    result = find_phases(rates, rates.mean(axis=1))
    whole, part = assess_regularity(result), assess_regularity(result, max_log_p)
    is_told = whole.log_p <= max_log_p
    assert is_told.any()
    for name in ("log_p", "max_merged_gap", "period", "cv", "first", "last"):
        np.testing.assert_array_equal(getattr(part, name)[is_told], getattr(whole, name)[is_told])
    assert (part.log_p[~is_told] >= whole.log_p[~is_told]).all()


def test_selected_signals_keep_their_phases() -> None:
    result = Phases(np.array([0, 5, 2]), np.array([1, 9, 3]), np.array([1.0, 3.0, 2.0]), np.array([0, 2, 2, 3]))
    some = result.select_signals(np.array([2, 0]))
    assert (some.first.tolist(), some.last.tolist(), some.volume.tolist()) == ([2, 0, 5], [3, 1, 9], [2, 1, 3])
    assert some.offsets.tolist() == [0, 1, 3]

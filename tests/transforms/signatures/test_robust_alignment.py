"""Alignment: scores and paths match naive implementations; known starts, delays and interference are handled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.signatures.robust_alignment import (
    PARAMS,
    Reals,
    _estimate_mode,
    _find_best_path,
    _refine_within_step,
    _score_offsets,
    _shift_to_rise,
    cumulative_sums,
    find_burst_starts,
    interpolate_sums,
)
from iosig.transforms.signatures.robust_template import Template
from tests.budget import examples
from tests.naive.signatures import robust_alignment as naive
from tests.transforms.run_sets import Burst, simulate_polls

pytestmark = pytest.mark.filterwarnings("error")

BOUNDED = settings(max_examples=examples(40), deadline=None)


def template(*bursts: tuple[int, int, float]) -> Template:
    """Make a template of boxes (first step, end, height)."""
    first, last = (np.array([burst[place] for burst in bursts], dtype=np.int64) for place in (0, 1))
    return Template(first, last, np.array([burst[2] for burst in bursts]), last - first)


# ---- cumulative sums


@BOUNDED
@given(st.integers(0, 10_000), st.integers(1, 9))
def test_interpolated_cumulative_sums_match_naive_implementation(seed: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    rates = rng.exponential(1.0, (3, steps))
    places = rng.uniform(-3, steps + 3, (2, 3, 5))
    places[0, 0, :3] = [0, steps, steps // 2]
    result = interpolate_sums(cumulative_sums(rates), places)
    for part, run, column in np.ndindex(2, 3, 5):
        expected = naive.total_until(rates[run].tolist(), places[part, run, column])
        assert result[part, run, column] == pytest.approx(expected, abs=1e-12)


# ---- scores


@BOUNDED
@given(st.integers(0, 10_000), st.sampled_from([1.0, 2.0, 10.0]))
def test_scores_match_naive_implementation(seed: int, step_s: float) -> None:
    rng = np.random.default_rng(seed)
    rates = rng.exponential(1.0, (2, 30)) * (rng.random((2, 30)) < 0.5)
    # A burst near the start and a burst at the end: zero outside of the run.
    bursts = template((1, 5, 1.0), (13, 14, 2.0), (24, 30, 0.5))
    offsets = np.arange(-6, 8)
    reaches = np.array([2, 2, 3])
    fits, rises = _score_offsets(rates, bursts, reaches, offsets, step_s)
    margin = max(1, round(PARAMS.margin_s / step_s))
    for run, burst, place in np.ndindex(fits.shape):
        begin, row = int(bursts.first[burst] + offsets[place]), rates[run].tolist()
        length, height = int(bursts.length[burst]), float(bursts.height[burst])
        fit = naive.fit(row, begin, length, height, margin, PARAMS.excess_weight)
        assert fits[run, burst, place] == pytest.approx(fit, abs=1e-9)
        assert rises[run, burst, place] == pytest.approx(naive.rise(row, begin, height, int(reaches[burst])), abs=1e-9)


@BOUNDED
@given(st.integers(0, 10_000), st.integers(1, 4), st.floats(0.01, 3.0))
def test_path_matches_exhaustive_search(seed: int, burst_count: int, step_s: float) -> None:
    rng = np.random.default_rng(seed)
    offsets = np.arange(-2, 4)
    first = np.cumsum(rng.integers(2, 40, burst_count))
    bursts = template(*((int(begin), int(begin) + 1 + int(rng.integers(20)), 1.0) for begin in first))
    scores = rng.uniform(0, 1, (3, burst_count, len(offsets)))
    result = _find_best_path(scores, offsets, bursts, step_s)
    gap_s = np.diff(first, prepend=0) * step_s
    before_s = np.concatenate([[0.0], (bursts.last - bursts.first)[:-1] * step_s])
    typical_interval_s = PARAMS.min_deviation_s + PARAMS.drift_ratio * gap_s
    later = (PARAMS.later_cost * step_s / (typical_interval_s + PARAMS.stretch_ratio * before_s)).tolist()
    earlier = (PARAMS.earlier_cost * step_s / typical_interval_s).tolist()
    for run in range(3):
        arguments = scores[run].tolist(), offsets.tolist()
        score = naive.path_score(*arguments, result[run].tolist(), later, earlier)
        assert score == pytest.approx(naive.best_score(*arguments, later, earlier), abs=1e-9)


def test_mode_estimate_is_the_densest_cluster() -> None:
    values = np.array([[0, 5], [1, 5], [9, -5], [10, -5], [11, 100]])
    counts = np.ones((5, 2), dtype=bool)
    # Three of five are near 10; two equally dense pairs give their median in any order.
    np.testing.assert_array_equal(_estimate_mode(values, counts, 2.0), [10, 0])
    np.testing.assert_array_equal(_estimate_mode(values[::-1], counts, 2.0), [10, 0])
    counts[2:, 0] = False
    counts[:, 1] = False
    np.testing.assert_array_equal(_estimate_mode(values, counts, 2.0), [0.5, 0])


def test_starts_shift_to_the_rise_of_most_runs() -> None:
    bursts = template((20, 40, 1.0), (60, 80, 1.0))
    rises = np.zeros((4, 2, 30))
    # First burst: all runs except one rise three steps later; second burst: only one run rises.
    rises[0, 0, 13] = rises[1, 0, 13] = rises[2, 0, 14] = rises[3, 0, 6] = 1.0
    rises[2, 1, 12] = 1.0
    moved = _shift_to_rise(rises, np.full((4, 2), 10), bursts, 2.0)
    np.testing.assert_array_equal(moved, [[3, 0], [3, 0], [4, 0], [3, 0]])
    # Never beyond the range of offsets.
    at_end = _shift_to_rise(rises, np.full((4, 2), 28), bursts, 2.0)
    assert ((at_end + 28 >= 0) & (at_end + 28 < 30)).all()


def test_edge_position_preserves_volume() -> None:
    rates = np.zeros((3, 40))
    rates[0, 20:] = 1.0
    rates[1, 20:], rates[1, 19] = 1.0, 0.25
    rates[2, 20:], rates[2, 20] = 1.0, 0.5
    total = cumulative_sums(rates)
    result = 20 + _refine_within_step(total, np.full((3, 1), 20.0), np.array([1.0]), np.array([4.0]))
    np.testing.assert_allclose(result[:, 0], [20, 19.75, 20.5], atol=1e-9)
    # Also with a constant rate of interference.
    raised = cumulative_sums(rates + 0.5)
    on_floor = 20 + _refine_within_step(raised, np.full((3, 1), 20.0), np.array([1.0]), np.array([4.0]))
    np.testing.assert_allclose(on_floor, result, atol=1e-9)


# ---- starts

BURSTS: list[Burst] = [(20.0 + 60 * place, 40.0 + 60 * place, 1e9) for place in range(8)]
BOXES = template(*((round(begin / 2), round(end / 2), 1e9) for begin, end, _ in BURSTS))


def simulate_delayed_run(delays_s: list[float], extra: tuple[Burst, ...] = ()) -> tuple[Reals, Reals]:
    """Simulate a run with increasing delays of its bursts; return their starts, too."""
    late = np.cumsum(delays_s)
    moved = [(begin + by, end + by, rate) for (begin, end, rate), by in zip(BURSTS, late, strict=True)]
    return simulate_polls([*moved, *extra], 540.0), np.array([begin for begin, _, _ in moved])


def test_starts_of_clean_runs_are_exact() -> None:
    rates, begun_s = simulate_delayed_run([0.0] * 8)
    result = find_burst_starts(np.tile(rates, (4, 1)), BOXES, 10, 2.0)
    np.testing.assert_allclose(result * 2.0, np.tile(begun_s, (4, 1)), atol=1e-6)


def test_delays_are_found_within_a_fraction_of_a_step() -> None:
    runs = [
        simulate_delayed_run([0.0] * 8),
        simulate_delayed_run([0.0, 0, 0, 11.0, 0, 0, 0, 0]),
        simulate_delayed_run([3.3, 1.7, 0, 0, 7.0, 0.5, 0.5, 0]),
    ]
    result = find_burst_starts(np.stack([rates for rates, _ in runs]), BOXES, 20, 2.0) * 2.0
    np.testing.assert_allclose(result, np.stack([begun for _, begun in runs]), atol=0.2)


def test_interfering_bursts_do_not_attract_starts() -> None:
    others = ((100.0, 112.0, 2e9), (290.0, 300.0, 8e8), (330.0, 350.0, 1e9))
    runs = [
        simulate_delayed_run([0.0] * 8),
        simulate_delayed_run([0.0] * 8, others),
        simulate_delayed_run([1.0] * 8, others[:1]),
    ]
    result = find_burst_starts(np.stack([rates for rates, _ in runs]), BOXES, 20, 2.0) * 2.0
    np.testing.assert_allclose(result, np.stack([begun for _, begun in runs]), atol=1.0)


def test_run_without_a_burst_follows_the_others() -> None:
    rates, begun_s = simulate_delayed_run([0.0] * 8)
    lacking = rates.copy()
    lacking[60:90] = 0.0
    result = find_burst_starts(np.stack([rates, rates, lacking]), BOXES, 10, 2.0) * 2.0
    np.testing.assert_allclose(result[2], begun_s, atol=4.0)
    nothing = find_burst_starts(np.zeros((3, 270)), BOXES, 10, 2.0) * 2.0
    np.testing.assert_allclose(nothing, np.tile(begun_s, (3, 1)), atol=1e-9)


@BOUNDED
@given(st.integers(0, 10_000), st.integers(-60, 60))
def test_starts_are_ordered_and_invariant(seed: int, exponent: int) -> None:
    rng = np.random.default_rng(seed)
    rates = rng.exponential(1e9, (5, 120)) * (rng.random((5, 120)) < 0.4)
    bursts = template((5, 15, 1e9), (15, 18, 2e9), (60, 61, 5e8), (110, 120, 1e9))
    result = find_burst_starts(rates, bursts, 7, 2.0)
    assert np.isfinite(result).all()
    assert (np.diff(result, axis=1) >= 0).all()
    order = rng.permutation(5)
    np.testing.assert_array_equal(find_burst_starts(rates[order], bursts, 7, 2.0), result[order])
    higher = Template(bursts.first, bursts.last, np.ldexp(bursts.height, exponent), bursts.length)
    np.testing.assert_array_equal(find_burst_starts(np.ldexp(rates, exponent), higher, 7, 2.0), result)


def test_long_steps_and_runs_of_two_steps_have_starts() -> None:
    rates = np.zeros((3, 30))
    rates[:, 10:14] = 1.0
    np.testing.assert_allclose(find_burst_starts(rates, template((10, 14, 1.0)), 1, 60.0), 10.0, atol=0.1)
    assert np.isfinite(find_burst_starts(np.array([[0.0, 1.0]] * 3), template((1, 2, 1.0)), 0, 60.0)).all()

"""Quantile regression over spans is close to a linear program, and exact in simple cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.robust_timeline import SPAN_LENGTHS, Spans, estimate_timeline
from tests.budget import examples
from tests.naive.signatures import robust_timeline as naive

BOUNDED = settings(max_examples=examples(25), deadline=None)


def even_levels(points: int, level: float) -> list[Reals]:
    return [np.full(max(0, points + 1 - span), level) for span in SPAN_LENGTHS]


def estimate_times(
    reached_s: Reals, weights: Reals, levels: list[Reals], spans: tuple[int, ...] = SPAN_LENGTHS
) -> Reals:
    return estimate_timeline(Spans.from_runs(reached_s, weights, np.concatenate(levels), spans))


@BOUNDED
@given(st.integers(0, 10_000), st.integers(3, 9), st.integers(1, 7), st.floats(0.05, 0.6))
def test_cost_is_close_to_the_linear_program(seed: int, runs: int, points: int, level: float) -> None:
    rng = np.random.default_rng(seed)
    spans_s = rng.uniform(20, 200, points) + rng.exponential(5.0, (runs, points)) + rng.normal(0, 1.0, (runs, points))
    reached_s = np.cumsum(spans_s, axis=1)
    weights = rng.uniform(0.05, 1.0, runs)
    levels = [np.clip(part + rng.uniform(-0.04, 0.04, len(part)), 0.02, 0.98) for part in even_levels(points, level)]
    estimate = estimate_times(reached_s, weights, levels)
    used = [span for span in SPAN_LENGTHS if span <= points]
    arguments = (reached_s.tolist(), weights.tolist(), [part.tolist() for part in levels[: len(used)]], used)
    minimum = naive.minimum_cost(*arguments)
    # Residuals below 0.2 s have a quadratic loss, so each error is at most half of this; iterations are few.
    smoothed = 0.5 * 0.2 * weights.sum() * sum(points + 1 - span for span in used)
    assert naive.cost(estimate.tolist(), *arguments) <= minimum * 1.02 + smoothed


def test_single_span_is_a_quantile() -> None:
    reached_s = np.arange(1.0, 102.0)[:, None] * 10
    for level in (0.1, 0.35, 0.5, 0.9):
        estimate = estimate_times(reached_s, np.ones(101), [np.array([level])], (1,))
        # With few iterations the result is close in rank.
        assert (reached_s < estimate[0]).mean() == pytest.approx(level, abs=0.04)


def test_large_weight_determines_the_timeline() -> None:
    reached_s = np.array([[100.0, 200.0], [120.0, 260.0], [130.0, 280.0]])
    estimate = estimate_times(reached_s, np.array([100.0, 1.0, 1.0]), even_levels(2, 0.35))
    np.testing.assert_allclose(estimate, [100, 200], atol=0.5)
    ignored = estimate_times(reached_s, np.array([0.0, 1.0, 1.0]), even_levels(2, 0.35))
    assert (ignored > [115, 250]).all()


def test_identical_runs_are_reproduced() -> None:
    reached_s = np.tile([0.0, 30.0, 30.5, 400.0, 401.0], (4, 1))
    np.testing.assert_allclose(estimate_times(reached_s, np.ones(4), even_levels(5, 0.2)), reached_s[0], atol=1e-6)


def test_delay_of_one_run_has_no_effect() -> None:
    alone_s = np.arange(1, 21) * 60.0
    reached_s = np.tile(alone_s, (6, 1))
    reached_s[2, 8:] += 25.0
    np.testing.assert_allclose(estimate_times(reached_s, np.ones(6), even_levels(20, 0.35)), alone_s, atol=0.3)


def test_long_spans_limit_accumulated_errors() -> None:
    rng = np.random.default_rng(4)
    alone_s = np.arange(1, 101) * 30.0
    reached_s = alone_s + rng.normal(0.0, 1.0, (10, 100))
    levels = even_levels(100, 0.3)
    short = estimate_times(reached_s, np.ones(10), levels[:1], SPAN_LENGTHS[:1])
    together = estimate_times(reached_s, np.ones(10), levels)
    assert abs(together[-1] - alone_s[-1]) < 0.5 * abs(short[-1] - alone_s[-1])


def test_times_are_ordered_and_not_negative() -> None:
    reached_s = np.array([[5.0, 5.0, 5.0], [0.0, 0.0, 9.0], [0.0, 0.0, 0.0]])
    estimate = estimate_times(reached_s, np.ones(3), even_levels(3, 0.05))
    assert (estimate >= 0).all()
    assert (np.diff(estimate) >= 0).all()
    assert np.isfinite(estimate_times(reached_s * 1e9, np.ones(3), even_levels(3, 0.05))).all()

"""Weighted processor sharing: analytic cases, conservation, and the naive implementation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.synthetic.contention import Chains, SharedBandwidth, fair_rates, simulate_sharing
from tests.budget import examples
from tests.naive.synthetic import contention as naive

Step = tuple[float, float, float, float, int]


def make_chains(*runs: tuple[float, list[Step]]) -> Chains:
    """Chains from (start, [(wait, volume, peak, weight, channel), ...])."""
    steps = np.array([step for _, chain in runs for step in chain], dtype=float).reshape(-1, 5)
    return Chains(
        start_s=np.array([start for start, _ in runs], dtype=float),
        offsets=np.cumsum([0, *(len(chain) for _, chain in runs)]),
        wait_s=steps[:, 0],
        volume_bytes=steps[:, 1],
        peak_bytes_per_s=steps[:, 2],
        weight=steps[:, 3],
        channel=steps[:, 4].astype(np.int64),
    )


def test_single_chain_runs_as_planned() -> None:
    found = simulate_sharing(
        make_chains((5, [(10, 100, 20, 1, 0), (3, 0, 1, 1, 0), (2, 40, 10, 1, 1)])), SharedBandwidth(1000), 100
    )
    np.testing.assert_allclose(found.start_s, [15, 23, 25])
    np.testing.assert_allclose(found.end_s, [20, 23, 29])
    np.testing.assert_allclose(found.volumes(np.array([0, 15, 17, 27, 100])), [[0, 0], [40, 0], [60, 20], [0, 20]])


def test_equal_transfers_halve_the_bandwidth_and_delay_later_steps() -> None:
    both = make_chains((0, [(0, 100, 10, 1, 0), (5, 10, 10, 1, 0)]), (0, [(0, 100, 10, 1, 0)]))
    found = simulate_sharing(both, SharedBandwidth(10), 1000)
    np.testing.assert_allclose(found.end_s, [20, 26, 20])
    assert simulate_sharing(both, SharedBandwidth(20), 1000).end_s.tolist() == [10, 16, 10], (
        "a fast pipe delays no transfer"
    )


def test_shares_follow_weights_up_to_the_peak() -> None:
    assert fair_rates([100, 100], [3, 1], SharedBandwidth(40)) == [30, 10]
    assert fair_rates([5, 100, 100], [1, 1, 1], SharedBandwidth(45)) == [5, 20, 20]
    assert fair_rates([], [], SharedBandwidth(45)) == []


def test_seek_loss_applies_without_shortage() -> None:
    assert fair_rates([12, 30], [1, 2], SharedBandwidth(1000, seek_loss_ratio=0.5)) == [6, 20]


def test_horizon_truncates_transfers() -> None:
    found = simulate_sharing(
        make_chains((0, [(0, 100, 10, 1, 0), (5, 10, 10, 1, 0)]), (50, [(0, 1, 1, 1, 0)])), SharedBandwidth(100), 4
    )
    np.testing.assert_array_equal(found.end_s, [np.nan] * 3)
    np.testing.assert_array_equal(found.start_s, [0, np.nan, np.nan])
    np.testing.assert_allclose(found.moved_bytes, [40, 0, 0])
    np.testing.assert_allclose(found.volumes(np.array([0.0, 4.0])), [[40]])


def test_served_bytes_are_recorded_by_event_and_step() -> None:
    found = simulate_sharing(
        make_chains((0, [(0, 100, 10, 1, 0), (5, 10, 10, 1, 0)]), (0, [(0, 100, 10, 1, 1)])), SharedBandwidth(10), 22
    )
    own = np.bincount(found.served_step, found.served_bytes, 3)
    np.testing.assert_allclose(own, found.moved_bytes)
    np.testing.assert_allclose(own, [100, 0, 100])
    assert found.at_s[found.served_event].max() == 20


def test_chains_without_steps_are_skipped() -> None:
    assert simulate_sharing(make_chains(), SharedBandwidth(1), 10).moved_bytes.size == 0
    assert simulate_sharing(
        make_chains((0, []), (1, [(0, 5, 5, 1, 0)]), (2, [])), SharedBandwidth(9), 10
    ).end_s.tolist() == [2]


def test_late_times_and_high_bandwidths_terminate() -> None:
    # After 90 days, the duration of the last byte of a transfer is below the resolution of floating-point time.
    run = make_chains((7.7e6, [(0.1, 1e13 / 3, 1.1e10, 1, 0)]), (7.7e6, [(0.2, 1e13 / 7, 1.3e10, 1, 0)]))
    found = simulate_sharing(run, SharedBandwidth(2e10), 7.8e6)
    np.testing.assert_allclose(found.moved_bytes, run.volume_bytes, rtol=1e-12)


steps = st.tuples(
    st.floats(0, 10), st.floats(1, 100), st.floats(1, 30), st.sampled_from([0.5, 1.0, 4.0]), st.integers(0, 1)
)
several = st.lists(st.tuples(st.floats(0, 20), st.lists(steps, max_size=4)), min_size=1, max_size=5)


@settings(max_examples=examples(50), deadline=None)
@given(several, st.floats(5, 60), st.floats(0, 0.3), st.floats(1, 200))
def test_sharing_conserves_bytes_and_respects_limits(
    runs: list[tuple[float, list[Step]]], capacity: float, loss: float, until: float
) -> None:
    plan = make_chains(*runs)
    found = simulate_sharing(plan, SharedBandwidth(capacity, loss), until)
    edges = np.linspace(0, until, 37)
    volumes = found.volumes(edges)
    np.testing.assert_allclose(volumes.sum(), found.moved_bytes.sum(), atol=1e-6)
    assert (volumes.sum(axis=1) <= capacity * np.diff(edges) * (1 + 1e-9) + 1e-3).all()
    is_over = np.isfinite(found.end_s)
    np.testing.assert_array_equal(found.moved_bytes[is_over], plan.volume_bytes[is_over])
    took = (found.end_s - found.start_s)[is_over]
    assert (took >= (plan.volume_bytes / plan.peak_bytes_per_s)[is_over] - 2e-6).all()


@settings(max_examples=examples(50), deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.1, 50), st.sampled_from([0.5, 1.0, 4.0])), max_size=6),
    st.floats(1, 60),
    st.floats(0, 0.5),
)
def test_rates_match_naive_implementation(flows: list[tuple[float, float]], capacity: float, loss: float) -> None:
    peaks, weights = [peak for peak, _ in flows], [weight for _, weight in flows]
    pipe = SharedBandwidth(capacity, loss)
    np.testing.assert_allclose(fair_rates(peaks, weights, pipe), naive.fair_rates(peaks, weights, pipe), rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_ends_match_naive_implementation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    runs = [
        (rng.uniform(0, 5), [(rng.uniform(0, 3), rng.uniform(5, 50), rng.uniform(4, 20), rng.uniform(0.5, 4), 0)] * 2)
        for _ in range(4)
    ]
    plan, pipe = make_chains(*runs), SharedBandwidth(18, 0.1)
    found = simulate_sharing(plan, pipe, 40)
    expected = [end for chain in naive.end_s(plan, pipe, 40, 0.02) for end in chain]
    np.testing.assert_allclose(found.end_s, np.array(expected, dtype=float), atol=0.2)

"""The contention cost is estimated from durations, and its removal preserves volumes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of
from iosig.transforms.joint.contention import (
    RunSteps,
    estimate_contention_cost,
    relative_speed,
    remove_contention,
    sum_pieces,
)
from iosig.transforms.joint.shared_traffic import SharedTraffic
from iosig.transforms.signatures.sample_sets import SampleSets

STEP_S = 2.0


def test_speed_is_full_without_io_or_contention() -> None:
    others, work_ratio = np.array([0.0, 3.0, 3.0, 1.0]), np.array([1.0, 0.0, 1.0, 0.5])
    assert relative_speed(others, work_ratio, 0.0).tolist() == [1.0] * 4
    assert relative_speed(others, work_ratio, 0.25) == pytest.approx([1.0, 1.0, 1 / 1.75, 0.5 + 0.5 / 1.25])


def make_shared_traffic(started: list[float], ended: list[float], count: int = 12) -> SharedTraffic:
    runs = len(started)
    times = np.array(started), np.array(ended)
    return SharedTraffic(np.zeros(count), STEP_S, np.zeros(runs, np.int64), 1, *times, np.ones(runs, np.bool_))


def test_run_steps_cover_the_run() -> None:
    steps = RunSteps.from_traffic(make_shared_traffic([1.3, -1.7, 5.0], [4.3, 1.6, 5.0]))
    # Thirds of steps are not whole seconds: no truncation.
    assert steps.run.tolist() == [0, 0, 0, 0, 1, 1]
    assert steps.step.tolist() == [1, 2, 3, 4, 0, 1]
    assert steps.begin == pytest.approx([0.0, 0.7, 1.7, 2.7, 1.7, 2.7])
    assert steps.end == pytest.approx([0.7, 1.7, 2.7, 3.0, 2.7, 3.3])
    assert steps.duration == pytest.approx([3.0, 3.3, 0.0])


def test_scaled_steps_stay_contiguous() -> None:
    steps = RunSteps.from_traffic(make_shared_traffic([1.3, -1.7], [4.3, 1.6]))
    slowed = steps.scale_time(np.array([1.0, 0.5, 0.5, 1.0, 0.25, 1.0]))
    assert slowed.begin == pytest.approx([0.0, 0.7, 1.2, 1.7, 1.7, 1.95])
    assert slowed.end == pytest.approx([0.7, 1.2, 1.7, 2.0, 1.95, 2.55])
    assert slowed.duration == pytest.approx([2.0, 2.55])


@pytest.mark.parametrize("cost", [0.0, 0.1, 0.4])
def test_cost_is_estimated_from_durations(cost: float) -> None:
    rng = np.random.default_rng(3)
    run_count, step_count = 400, 50
    application = np.repeat(np.arange(20), 20)
    offsets = np.arange(run_count + 1) * step_count
    others = rng.poisson(rng.uniform(0.2, 3.0, run_count).repeat(step_count)).astype(np.float64)
    work_s = np.full(len(others), STEP_S)
    lost_s = sum_pieces(work_s * (1.0 - relative_speed(others, np.ones(len(others)), cost)), offsets)
    duration_s = rng.uniform(600, 3000, 20)[application] + lost_s + rng.normal(0, 3, run_count)
    duration_s[::17] += 400.0  # other inputs of the run
    result = estimate_contention_cost(duration_s, application, offsets, others, work_s)
    assert result == pytest.approx(cost, abs=0.05)
    nobody = np.full(run_count, -1)
    assert estimate_contention_cost(duration_s, nobody, offsets, others, work_s) == pytest.approx(0.05)


def make_sample_sets(counts: Ints, values: Reals) -> SampleSets:
    runs = len(counts)
    return SampleSets(
        Ragged(values, offsets_of(counts)), np.zeros(runs), counts * STEP_S, np.array([STEP_S]), np.array([0, runs]),
        interference=2.0 * values,
    )  # fmt: skip


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 2.0))
def test_contention_removal_preserves_volume(seed: int, cost: float) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 30, 4)
    total = int(counts.sum())
    sets = make_sample_sets(counts, rng.exponential(1.0, total))
    at_work, work_ratio = rng.exponential(1.0, total), rng.random(total)
    result = remove_contention(sets, at_work, work_ratio, cost)
    runs = sum_pieces(sets.samples.values, sets.samples.offsets)
    assert sum_pieces(result.samples.values, result.samples.offsets) == pytest.approx(runs)
    assert result.interference is not None
    assert sum_pieces(result.interference, result.samples.offsets) == pytest.approx(2.0 * runs)
    left = sum_pieces(relative_speed(at_work, work_ratio, cost), sets.samples.offsets)
    assert result.duration_s == pytest.approx(left * STEP_S)
    assert (result.samples.counts >= left - 1e-5).all()
    assert (result.samples.counts < left + 1).all()


def test_contention_removal_reverses_half_speed() -> None:
    counts = np.array([8, 4])
    # The second run equals the first run with its burst at half the speed.
    own = np.array([0.0, 0.0, 3.0, 3.0, 3.0, 3.0, 0.0, 0.0, 0.0, 6.0, 6.0, 0.0])
    slow = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    result = remove_contention(make_sample_sets(counts, own), slow, np.ones(12), 1.0)
    assert result.samples.counts.tolist() == [6, 4]
    assert result.samples.values == pytest.approx([0, 0, 6, 6, 0, 0, 0, 6, 6, 0])
    assert result.duration_s.tolist() == [12.0, 8.0]


def test_contention_removal_keeps_gaps_and_is_identity_at_zero_cost() -> None:
    sets = make_sample_sets(np.array([6]), np.array([1.0, np.nan, np.nan, 1.0, 1.0, 1.0]))
    assert remove_contention(sets, np.ones(6), np.ones(6), 0.0) is sets
    result = remove_contention(replace(sets, interference=None), np.ones(6), np.ones(6), 1.0)
    assert result.interference is None
    assert np.isnan(result.samples.values).tolist() == [True, True, False]

"""Likely bytes: repeated coincidence, phases of applications, explained bytes, and limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.attribution.likely_bytes import LikelyBytesParams, estimate_likely_bytes, spread_evenly
from iosig.transforms.attribution.runs import RunBytes


def shares(count: int, run: Ints, volume: Reals) -> list[float]:
    return (np.bincount(run, volume, count) / volume.sum()).tolist()


def test_coinciding_runs_get_more_than_permanent_run() -> None:
    residual = np.zeros(1000)
    started = np.arange(50.0, 950.0, 100.0)
    for start in started.astype(int):
        residual[start : start + 10] = 5.0
    every = np.append(started, 0.0)
    ends = np.append(started + 10, 1000.0)
    result = estimate_likely_bytes(residual, every, ends, np.array([0] * 9 + [1]))
    moved = np.bincount(result.run, result.volume_bytes, 10)
    assert moved[:9].sum() > 0.95 * residual.sum()
    assert moved[9] < 0.05 * residual.sum()


def test_only_the_coinciding_run_gets_the_bytes() -> None:
    residual = np.zeros(400)
    residual[100:160] = 3.0
    result = estimate_likely_bytes(
        residual,
        np.array([100.0, 300.0]),
        np.array([160.0, 360.0]),
        np.array([0, 0]),
        LikelyBytesParams(shrinkage_steps=10.0),
    )
    assert shares(2, result.run, result.volume_bytes) == pytest.approx([1.0, 0.0], abs=1e-6)


def test_likely_bytes_skip_gaps_and_weigh_partial_steps() -> None:
    residual = np.array([4.0, np.nan, 4.0, 4.0])
    result = estimate_likely_bytes(
        residual, np.array([0.5]), np.array([2.25]), np.array([0]), LikelyBytesParams(round_count=1)
    )
    assert result.step.tolist() == [0, 1, 2]
    assert result.volume_bytes[1] == 0
    assert result.volume_bytes[0] == pytest.approx(4 * 0.5 / 1.5, rel=0.2)
    none = estimate_likely_bytes(residual, np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
    assert not len(none.run)


@given(st.integers(0, 10_000))
def test_likely_bytes_do_not_exceed_residual(seed: int) -> None:
    rng = np.random.default_rng(seed)
    residual = rng.exponential(1.0, 60) * (rng.random(60) < 0.5)
    started = rng.uniform(-5, 60, 8)
    result = estimate_likely_bytes(residual, started, started + rng.uniform(0, 30, 8), rng.integers(0, 3, 8))
    assert (result.volume_bytes >= 0).all()
    assert (np.bincount(result.step, result.volume_bytes, 60) <= residual * (1 + 1e-9)).all()


def test_phases_separate_concurrent_applications() -> None:
    """Runs of two applications are nearly always active, and each moves its bytes in one phase."""
    starts = np.append(np.arange(0.0, 2200.0, 110.0), np.arange(0.0, 2340.0, 130.0))
    application = np.repeat([0, 1], [20, 18])
    bursts = [(starts[application == of].astype(int) + at)[:, None] + np.arange(5) for of, at in ((0, 30), (1, 70))]
    residual = np.zeros(2500)
    for steps in bursts:
        np.add.at(residual, steps, 10.0)

    def shares_of_bursts(params: LikelyBytesParams) -> list[float]:
        """Share of the steps of its bursts in which each application gets twice the bytes of the other."""
        result = estimate_likely_bytes(residual, starts, starts + 100, application, params)
        moved = np.zeros((2, 2500))
        np.add.at(moved, (application[result.run], result.step), result.volume_bytes)
        return [float((moved[of, steps] > 2 * moved[1 - of, steps]).mean()) for of, steps in enumerate(bursts)]

    assert min(shares_of_bursts(LikelyBytesParams())) > 0.9
    # The rates of runs alone do not separate the applications.
    assert max(shares_of_bursts(LikelyBytesParams(first_phase_round=99))) < 0.5


def test_single_run_has_no_phases() -> None:
    residual = np.zeros(300)
    residual[40:50] = 8.0
    one = np.array([0.0]), np.array([300.0]), np.array([0])
    with_phases, without = (
        estimate_likely_bytes(residual, *one, LikelyBytesParams(first_phase_round=number)) for number in (5, 99)
    )
    np.testing.assert_allclose(with_phases.volume_bytes, without.volume_bytes)


def test_explained_bytes_of_other_runs_contribute_to_phases() -> None:
    """The burst of the last run is unexplained; the other runs of its application show its phase."""
    starts = np.append(np.arange(0.0, 1000.0, 100.0), 900.0)
    ends = starts + 90
    application = np.repeat([0, 1], [10, 1])
    residual = np.zeros(1000)
    residual[930:940] = 10.0
    runs, begins = np.arange(9), starts[:9].astype(int) + 30
    of_step = np.arange(1000) // 10
    explained = spread_evenly(runs, of_step[begins], np.full(9, 100.0), of_step)
    assert explained.step.tolist() == (begins[:, None] + np.arange(10)).ravel().tolist()

    def share_of_last_run(explained: RunBytes | None) -> float:
        result = estimate_likely_bytes(residual, starts, ends, application, explained=explained)
        return shares(11, result.run, result.volume_bytes)[9]

    # a concurrent run has no other runs
    assert share_of_last_run(None) < 0.1
    assert share_of_last_run(explained) > 0.9


def test_even_spread_drops_blocks_without_steps() -> None:
    moved = spread_evenly(
        np.array([1, 0, 2]), np.array([0, 1, 7]), np.array([6.0, 4.0, 5.0]), np.repeat([0, 1], [3, 2])
    )
    assert moved.run.tolist() == [1, 1, 1, 0, 0]
    assert moved.step.tolist() == [0, 1, 2, 3, 4]
    assert moved.volume_bytes.tolist() == [2, 2, 2, 2, 2]

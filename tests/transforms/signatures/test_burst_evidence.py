"""Bursts that runs bear out: likelihoods against a naive twin; what all have stays, what some share by chance goes."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Reals
from iosig.transforms.signatures import burst_evidence as ours
from iosig.transforms.signatures.averages import nan_quantile
from iosig.transforms.signatures.burst_evidence import burst_log_likelihood_ratio, find_supported_bursts, rate_histogram
from tests.naive.signatures import burst_evidence as naive


def others(seed: int, runs: int, steps: int, share: float) -> Reals:
    """What others do: stretches of 15 steps of any rate, for a share of the time."""
    rng = np.random.default_rng(seed)
    rates = np.repeat(rng.exponential(1.0, (runs, steps // 15)) * (rng.random((runs, steps // 15)) < share), 15, axis=1)
    found: Reals = np.array([np.roll(row, by) for row, by in zip(rates, rng.integers(0, 15, runs), strict=True)])
    return found


@pytest.mark.parametrize("seed", range(3))
def test_likelier_is_what_the_shares_of_each_run_tell(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, 12, (3, 20)) * rng.integers(0, 2, (3, 20))
    bins[0, 4] = bins[2, 7] = ours.RUN_BINS
    apart = bins[:, 5:]
    found = burst_log_likelihood_ratio(bins, rate_histogram(apart))
    alone = [
        naive.shares(apart.tolist(), run, 20, ours.RUN_BINS, ours.PARAMS.prior_weight, ours.PARAMS.probability_floor)
        for run in range(3)
    ]
    rule = (ours.PARAMS.max_slowdown_ratio, ours.PARAMS.slowdown_decay)
    for time, own in ((0, 0), (4, 3), (7, 9), (12, 14)):
        expected = naive.likelier(alone, bins[:, time].tolist(), own, ours.PARAMS.miss_probability, rule)
        assert found[time, own] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_what_all_runs_have_is_borne_out_and_what_meets_by_chance_is_not(seed: int) -> None:
    rates = others(seed, 10, 1500, 0.65)
    true = np.zeros(1500)
    for begin in (200, 600, 1000, 1300):
        true[begin : begin + 25] = 1.5
    curve = nan_quantile(rates + true, 0.05)
    assert (curve[true == 0] > 0.05).sum() > 40, "others meet by chance"
    found = find_supported_bursts(rates + true, curve, 1.0)
    assert found[true > 0].mean() > 0.85
    assert found[(true == 0) & (curve > 0.05)].mean() < 0.35


def test_bursts_may_take_most_of_the_time() -> None:
    true = np.tile(np.repeat([0.0, 1.0], [20, 80]), 5)
    found = find_supported_bursts(np.tile(true, (5, 1)), true, 2.0)
    assert found[true > 0].all()


def test_neither_unit_nor_order_of_runs_changes_anything() -> None:
    rates = others(1, 8, 900, 0.5)
    rates[:, 300:330] += 2.0
    rates[2, 100:120] = np.nan
    curve = nan_quantile(rates, 0.1)
    found = find_supported_bursts(rates, curve, 1.0)
    assert found[300:330].all()
    assert (find_supported_bursts(rates[::-1] * 1024, curve * 1024, 1.0) == found).all()


def test_a_run_that_lacks_a_burst_does_not_take_it_away() -> None:
    rates = np.zeros((8, 600))
    rates[:, 100:120] = rates[:7, 400:420] = 1.0
    found = find_supported_bursts(rates, nan_quantile(rates, 0.25), 1.0)
    assert found[100:120].all()
    assert found[400:420].all()
    assert not found[200:350].any()


def test_the_longer_a_run_the_more_a_burst_has_to_be_likelier() -> None:
    told = np.zeros((40, ours.BURST_BINS))
    told[10:20, 8] = 2.0
    assert ours._detect_bursts(told, 1.0).any()
    long = np.concatenate([told, np.zeros((4000, ours.BURST_BINS))])
    assert not ours._detect_bursts(long, 1.0).any()

"""Log-likelihood ratios match a naive implementation; common bursts are supported, coincidences are not."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Reals
from iosig.transforms.signatures import burst_evidence as module
from iosig.transforms.signatures.averages import nan_quantile
from iosig.transforms.signatures.burst_evidence import burst_log_likelihood_ratio, find_supported_bursts, rate_histogram
from tests.naive.signatures import burst_evidence as naive


def simulate_background(seed: int, runs: int, steps: int, share: float) -> Reals:
    """Draw background traffic: intervals of 15 steps of random rates, for a share of the time."""
    rng = np.random.default_rng(seed)
    rates = np.repeat(rng.exponential(1.0, (runs, steps // 15)) * (rng.random((runs, steps // 15)) < share), 15, axis=1)
    result: Reals = np.array([np.roll(row, by) for row, by in zip(rates, rng.integers(0, 15, runs), strict=True)])
    return result


@pytest.mark.parametrize("seed", range(3))
def test_log_likelihood_ratio_matches_naive_implementation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, 12, (3, 20)) * rng.integers(0, 2, (3, 20))
    bins[0, 4] = bins[2, 7] = module.RUN_BINS
    apart = bins[:, 5:]
    result = burst_log_likelihood_ratio(bins, rate_histogram(apart))
    alone = [
        naive.background_distribution(
            apart.tolist(), run, 20, module.RUN_BINS, module.PARAMS.prior_weight, module.PARAMS.probability_floor
        )
        for run in range(3)
    ]
    rule = (module.PARAMS.max_slowdown_ratio, module.PARAMS.slowdown_decay)
    for time, own in ((0, 0), (4, 3), (7, 9), (12, 14)):
        expected = naive.log_likelihood_ratio(alone, bins[:, time].tolist(), own, module.PARAMS.miss_probability, rule)
        assert result[time, own] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_common_bursts_are_supported_and_coincidences_are_not(seed: int) -> None:
    rates = simulate_background(seed, 10, 1500, 0.65)
    true = np.zeros(1500)
    for begin in (200, 600, 1000, 1300):
        true[begin : begin + 25] = 1.5
    curve = nan_quantile(rates + true, 0.05)
    assert (curve[true == 0] > 0.05).sum() > 40, "the quantile contains coincidences"
    result = find_supported_bursts(rates + true, curve, 1.0)
    assert result[true > 0].mean() > 0.85
    assert result[(true == 0) & (curve > 0.05)].mean() < 0.35


def test_bursts_may_fill_most_of_the_time() -> None:
    true = np.tile(np.repeat([0.0, 1.0], [20, 80]), 5)
    result = find_supported_bursts(np.tile(true, (5, 1)), true, 2.0)
    assert result[true > 0].all()


def test_unit_and_order_of_runs_do_not_matter() -> None:
    rates = simulate_background(1, 8, 900, 0.5)
    rates[:, 300:330] += 2.0
    rates[2, 100:120] = np.nan
    curve = nan_quantile(rates, 0.1)
    result = find_supported_bursts(rates, curve, 1.0)
    assert result[300:330].all()
    assert (find_supported_bursts(rates[::-1] * 1024, curve * 1024, 1.0) == result).all()


def test_burst_missing_in_one_run_is_supported() -> None:
    rates = np.zeros((8, 600))
    rates[:, 100:120] = rates[:7, 400:420] = 1.0
    result = find_supported_bursts(rates, nan_quantile(rates, 0.25), 1.0)
    assert result[100:120].all()
    assert result[400:420].all()
    assert not result[200:350].any()


def test_longer_runs_require_more_evidence() -> None:
    log_ratio = np.zeros((40, module.BURST_BINS))
    log_ratio[10:20, 8] = 2.0
    assert module._detect_bursts(log_ratio, 1.0).any()
    long = np.concatenate([log_ratio, np.zeros((4000, module.BURST_BINS))])
    assert not module._detect_bursts(long, 1.0).any()

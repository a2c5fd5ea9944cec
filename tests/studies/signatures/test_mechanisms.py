"""Caches, limits and arrays of the families against analytic cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import uniform_filter1d

from iosig.studies.signatures.families import FAMILIES, Family
from iosig.studies.signatures.injected import FamilySetting, sample_polls
from iosig.studies.signatures.mechanisms import add_siblings, drain_cache, stop_at_limit
from iosig.transforms.signatures.time_normalized import resample
from tests.studies.signatures.test_injected import ONE, STILL


def test_cache_delays_bytes_by_its_time_constant() -> None:
    burst = np.zeros(400)
    burst[10:20] = 1.0
    drained = drain_cache(burst, 5.0)
    assert drained.sum() == pytest.approx(burst.sum())
    delay_s = (np.arange(400) @ (drained - burst)) / burst.sum()
    assert delay_s == pytest.approx(5.0, abs=0.6)
    assert drain_cache(burst, 0.0) is burst


def test_runs_move_nothing_after_their_limit() -> None:
    end_s, own = stop_at_limit(np.array([50.0, 90.0, np.inf]), 80.5, np.ones((3, 100)))
    assert end_s.tolist() == [50.0, 80.5, 80.5]
    assert own.sum(axis=1).tolist() == [80.5] * 3
    assert stop_at_limit(end_s, np.inf, own)[1] is own


def test_limits_stop_delayed_runs() -> None:
    family = replace(STILL, contention="seeks", contention_size=1.0, limit_ratio=1.125)
    duration_s = FamilySetting(family, "stormy", (replace(ONE, run_count=20),)).draw(1).sets.duration_s
    assert duration_s.max() == 450.0
    assert 0 < (duration_s == 450.0).sum() < 20


def test_siblings_add_their_traffic_to_each_other() -> None:
    own = np.zeros((5, 300))
    own[:, 100] = 1.0 + np.arange(5)
    total = add_siblings(own, 2, 50, np.random.default_rng(1))
    assert (total >= own).all()
    assert total.sum(axis=1).tolist() == [3.0, 3.0, 7.0, 7.0, 5.0]
    later = [int(np.flatnonzero(total[run] == 2.0 - run)[0]) - 100 for run in (0, 1)]
    assert later[0] == -later[1]
    assert add_siblings(own, 1, 50, np.random.default_rng(1)) is own


def test_clock_errors_shift_the_sample_and_keep_the_duration() -> None:
    burst = np.zeros((3, 500))
    burst[:, 100:105] = 1.0
    error_s = np.array([-5.0, 0.0, 5.0])
    drawn = sample_polls(burst, np.full(3, 200.0), 1.0, 0.0, np.random.default_rng(1), error_s)
    assert drawn.duration_s.tolist() == [170.0] * 3
    middles = [
        start + (np.arange(len(rates)) + 0.5) @ rates / rates.sum()
        for start, rates in zip(drawn.start_s, drawn.rates, strict=True)
    ]
    assert middles == pytest.approx(72.5 - error_s, abs=0.1)


def test_stalls_are_skewed_and_rare() -> None:
    family = replace(STILL, drift="stall", drift_ratio=0.05)
    duration_s = FamilySetting(family, "calm", (replace(ONE, run_count=200),)).draw(1).sets.duration_s
    assert duration_s.min() < 403.0
    assert duration_s.mean() == pytest.approx(400.0 + 0.05 * 300.0, abs=5.0)
    assert duration_s.mean() > np.median(duration_s)


@pytest.mark.parametrize(
    "family", [family for family in FAMILIES if family.drain_s or family.clock_s], ids=lambda family: family.name
)
def test_truth_is_what_servers_see_of_an_undisturbed_run(family: Family) -> None:
    """The mean of undisturbed runs without background is the truth at the resolution of polls."""
    still = replace(family, drift_ratio=0.0, contention="fair", contention_size=1e9, clock_s=0.0, jitter_ratio=0.0)
    setting = FamilySetting(still, "calm", (replace(ONE, run_count=40),), is_alone_seen=True)
    drawn = setting.draw(3)
    truth = drawn.truths[0].bytes_per_s
    mean = resample(drawn.sets.get_set(0), len(truth), 0).mean(axis=0)
    assert mean.sum() == pytest.approx(truth.sum(), rel=0.01)
    assert np.corrcoef(mean, uniform_filter1d(truth, round(family.interval_s)))[0, 1] > 0.995

"""Explanation: concurrent runs, missing measurements, rejected signatures, and ambiguous bursts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Reals, offsets_of
from iosig.transforms.attribution.explanation import (
    ExplainParams,
    Explanation,
    explain_traffic,
    explain_traffics,
    range_factors,
)
from iosig.transforms.attribution.runs import Runs
from tests.budget import examples

NO_BACKGROUND = ExplainParams(background_quantile=0.0)


def runs_of(*runs: tuple[float, float, list[tuple[float, float]]]) -> Runs:
    """Runs by start, end and bursts; a burst has a start and a peak, and lasts five steps."""
    bursts = [burst for _, _, own in runs for burst in own]
    started, ended = (np.array([run[place] for run in runs]) for place in (0, 1))
    offsets = offsets_of([len(own) for *_, own in runs])
    start, peak = (np.array([burst[place] for burst in bursts]) for place in (0, 1))
    duration = np.full(len(bursts), 5.0)
    signatures = np.ones(len(runs)), np.arange(len(runs))
    return Runs(started, ended, ended - started, *signatures, offsets, start, duration, duration * peak, peak)


def traffic_of(count: int, *bursts: tuple[int, float]) -> Reals:
    traffic = np.zeros(count)
    for first, volume in bursts:
        traffic[first : first + 5] += volume
    return traffic


def volumes(result: Explanation, count: int) -> list[float]:
    totals: list[float] = np.bincount(result.run, result.volume_bytes, count).tolist()
    return totals


def test_each_run_gets_the_bytes_of_its_bursts() -> None:
    runs = runs_of((10, 200, [(20, 8), (100, 8)]), (0, 150, [(60, 3)]))
    traffic = traffic_of(300, (30, 8), (110, 8), (60, 3), (250, 9))
    result = explain_traffic(traffic, runs, 2.0, NO_BACKGROUND)
    assert volumes(result, 2) == pytest.approx([80, 15])
    assert result.step[result.run == 1].tolist() == [60, 61, 62, 63, 64]
    assert (result.confidence > 0.9).all()


def test_concurrent_runs_share_the_traffic() -> None:
    runs = runs_of((0, 100, [(20, 8)]), (0, 100, [(20, 2)]))
    result = explain_traffic(traffic_of(120, (20, 10)), runs, 2.0, NO_BACKGROUND)
    assert volumes(result, 2) == pytest.approx([40, 10], rel=0.25)
    assert result.volume_bytes.sum() <= 50


def test_background_is_not_attributed() -> None:
    traffic = traffic_of(300, (30, 8)) + 5.0
    result = explain_traffic(traffic, runs_of((10, 200, [(20, 8), (100, 8)])), 2.0)
    assert result.foreground_bytes.sum() == pytest.approx(40)
    assert volumes(result, 1) == pytest.approx([40])


def test_signature_with_missing_bursts_is_rejected() -> None:
    """8 of the 20 bursts of an application are present, but they are the bursts of another application."""
    wrong = [(20.0, 8.0), (60.0, 8.0), (100.0, 8.0), (140.0, 8.0)]
    starts = range(0, 1000, 200)
    there = [*(start + at for start in starts[:4] for at in (20, 100)), *range(1000, 2500, 50)]
    own = [(float(at), 8.0) for at in there]
    runs = runs_of(*((start, start + 200, wrong) for start in starts), (0, 2600, own))
    runs = replace(runs, application=np.array([0] * 5 + [1]))
    traffic = traffic_of(2600, *((at, 8.0) for at in there))
    result = explain_traffic(traffic, runs, 2.0, NO_BACKGROUND)
    assert volumes(result, 6) == pytest.approx([0, 0, 0, 0, 0, 38 * 40])
    assert not result.confidence[:5].any()
    assert not result.placements.filled_ratio[result.placements.run < 5].any()
    accepted = explain_traffic(traffic, runs, 2.0, replace(NO_BACKGROUND, min_found_ratio=0.0, max_ambiguity=np.inf))
    assert sum(volumes(accepted, 6)[:5]) > 200


def test_unmeasured_bursts_do_not_count_against_a_signature() -> None:
    runs = runs_of(*((start, start + 100, [(20, 8)]) for start in range(0, 2000, 100)))
    runs = replace(runs, application=np.zeros(20, np.int64))
    traffic = traffic_of(2000, *((start + 20, 8) for start in range(0, 2000, 100)))
    traffic[500:] = np.nan
    assert volumes(explain_traffic(traffic, runs, 2.0, NO_BACKGROUND), 20) == pytest.approx([40] * 5 + [0] * 15)
    # measured, and absent
    assert not len(explain_traffic(np.nan_to_num(traffic), runs, 2.0, NO_BACKGROUND).run)


def test_ambiguous_burst_is_attributed_to_no_run() -> None:
    """Traffic of equal rate surrounds the last burst of one application; its bytes stay unattributed."""
    starts = range(0, 4000, 200)
    runs = runs_of(*((start, start + 200, [(20, 8), (100, 8)]) for start in starts), (3800, 4000, [(100, 7)]))
    runs = replace(runs, application=np.array([0] * 20 + [1]))
    traffic = traffic_of(4000, *((start + at + 12, 8) for start in starts for at in (20, 100)))
    traffic[3900:3950] = 8
    result = explain_traffic(traffic, runs, 2.0, replace(NO_BACKGROUND, max_ambiguity=0.5))
    is_rejected = ~result.placements.is_attributed
    assert result.placements.run[is_rejected].tolist() == [19]
    assert (result.placements.filled_ratio[is_rejected] > 0.9).all()
    assert volumes(result, 21) == pytest.approx([80] * 19 + [40, 35])
    accepted = explain_traffic(traffic, runs, 2.0, replace(NO_BACKGROUND, max_ambiguity=np.inf))
    assert volumes(accepted, 21) == pytest.approx([80] * 20 + [35])


def test_few_bursts_with_high_cost_are_not_ambiguous() -> None:
    runs = runs_of(*((start, start + 200, [(20, 8)]) for start in range(0, 4000, 200)))
    traffic = traffic_of(4000, *((start + 32, 8) for start in range(0, 4000, 200)))
    application = np.zeros(20, np.int64)
    params = replace(NO_BACKGROUND, max_ambiguity=0.05)
    assert not len(explain_traffic(traffic, replace(runs, application=application), 2.0, params).run)
    few = explain_traffic(traffic, replace(runs, application=np.arange(20)), 2.0, params)
    assert volumes(few, 20) == pytest.approx([40] * 20)


def test_unmeasured_traffic_is_not_attributed() -> None:
    traffic = traffic_of(300, (30, 8))
    traffic[:200] = np.nan
    result = explain_traffic(traffic, runs_of((10, 200, [(20, 8)])), 2.0)
    assert not len(result.run)
    assert explain_traffic(np.zeros(0), runs_of((10, 200, [(20, 8)])), 2.0).foreground_bytes.size == 0
    assert not len(explain_traffic(np.ones(9), runs_of(), 2.0).run)


def test_runs_may_extend_beyond_the_traffic() -> None:
    traffic = traffic_of(100, (10, 8), (90, 8))
    result = explain_traffic(traffic, runs_of((-50, 60, [(60, 8)]), (80, 160, [(10, 8), (70, 8)])), 2.0, NO_BACKGROUND)
    assert volumes(result, 2) == pytest.approx([40, 40])


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_attributed_bytes_do_not_exceed_traffic_or_signature(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    traffic = rng.exponential(5.0, 200) * (rng.random(200) < 0.4)
    starts = rng.uniform(-20, 150, count)
    bursts = [[(float(at), float(rng.uniform(1, 20))) for at in np.sort(rng.uniform(0, 80, 3))] for _ in range(count)]
    runs = runs_of(*((float(at), float(at) + 90, own) for at, own in zip(starts, bursts, strict=True)))
    result = explain_traffic(traffic, runs, 2.0)
    together = np.bincount(result.step, result.volume_bytes, 200)
    assert (together <= result.foreground_bytes * (1 + 1e-9) + 1e-9).all()
    assert (np.array(volumes(result, count)) <= [sum(5 * peak for _, peak in own) + 1e-6 for own in bursts]).all()
    first, after = runs.windows(200)
    assert ((result.step >= first[result.run]) & (result.step < after[result.run])).all()


def test_range_contains_estimate_and_widens_with_uncertainty() -> None:
    low, high = range_factors(np.linspace(0.0, 1.0, 11))
    assert (low < 1).all()
    assert (np.diff(low) > 0).all()
    assert (np.diff(high) < 0).all()
    assert high[-1] == 1


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 4))
def test_batched_explanations_equal_single_explanations(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    traffics = []
    for _ in range(count):
        runs = runs_of(
            *(
                (start, start + rng.uniform(30, 200), [(rng.uniform(0, 150), rng.uniform(1, 9)) for _ in range(bursts)])
                for start, bursts in zip(rng.uniform(0, 200, 6), rng.integers(0, 4, 6), strict=True)
            )
        )
        traffics.append((rng.exponential(4.0, 300) * (rng.random(300) < 0.5), runs))
    for result, own in zip(explain_traffics(traffics, 2.0), traffics, strict=True):
        alone = explain_traffic(*own, 2.0)
        for name in ("run", "step", "volume_bytes", "confidence", "foreground_bytes"):
            assert getattr(result, name).tolist() == getattr(alone, name).tolist()

"""Normalized durations: a low quantile minus its baseline, and the duration without interference."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from iosig.transforms.arrays import Ragged, offsets_of
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.similarity import correlation
from iosig.transforms.signatures.time_normalized import (
    PARAMS,
    TimeNormalizedRuns,
    _fit_delay,
    estimate_duration_alone_s,
    extract_time_normalized,
    interference_ratio,
    resample,
    resample_to_seconds,
    subtract_baseline,
)
from tests.naive.signatures import time_normalized as naive
from tests.transforms.run_sets import Burst, make_sample_set, simulate_polls, true_rates

BURSTS: list[Burst] = [(40.0 + 200 * place, 80.0 + 200 * place, 1e9) for place in range(5)]
TRUTH = true_rates(BURSTS, 1000)


def simulate_paces(paces: list[float], extra: float = 0.0) -> SampleSet:
    """Simulate runs at different paces: durations and bursts scale."""
    rows = [simulate_polls([(a * p, b * p, rate / p) for a, b, rate in BURSTS], 1000 * p, 2.0) + extra for p in paces]
    return make_sample_set(rows, 2.0, [0.0] * len(paces), [1000.0 * p for p in paces])


def test_runs_of_different_pace_yield_one_signature() -> None:
    result = extract_time_normalized(simulate_paces([0.97, 1.0, 1.0, 1.03, 1.05]))
    assert result.outcome == "extracted"
    assert result.duration_s == pytest.approx(1000, abs=2)
    assert correlation(result.bytes_per_s, TRUTH) > 0.97
    assert result.volume_bytes == pytest.approx(TRUTH.sum(), rel=0.03)
    assert len(result.bursts) == 5
    assert result.bursts.support_ratio.tolist() == [1.0] * 5


def test_constant_baseline_is_subtracted() -> None:
    result = extract_time_normalized(simulate_paces([1.0] * 6, extra=3e8))
    assert result.background_bytes_per_s == pytest.approx(3e8, rel=0.01)
    assert result.volume_bytes == pytest.approx(TRUTH.sum(), rel=0.03)


def test_bursts_may_fill_most_of_the_time() -> None:
    rows = [simulate_polls([(50.0, 450.0, 1e9), (550.0, 950.0, 1e9)], 1000.0, 2.0)] * 5
    result = extract_time_normalized(make_sample_set(rows, 2.0, [0.0] * 5, [1000.0] * 5))
    assert result.volume_bytes == pytest.approx(8e11, rel=0.02)
    assert len(result.bursts) == 2


def test_steady_silent_and_few_runs_have_an_outcome() -> None:
    steady, nothing = (make_sample_set([np.full(200, rate)] * 5, 2.0, [0.0] * 5, [400.0] * 5) for rate in (1e9, 0.0))
    assert extract_time_normalized(steady).outcome == "no_common_bursts"
    assert extract_time_normalized(nothing).outcome == "no_io"
    assert extract_time_normalized(simulate_paces([1.0, 1.0])).outcome == "too_few_samples"


def test_baseline_is_the_median_of_low_rates() -> None:
    curve, floor = subtract_baseline(np.array([1.0, 1.0, 3.0, 9.0, 9.0, 9.0, np.nan]))
    assert floor == 1.0
    assert curve.tolist() == [0.0, 0.0, 2.0, 8.0, 8.0, 8.0, 0.0]
    assert subtract_baseline(np.array([np.nan]))[1] == 0.0


def test_interference_ratio_excludes_bursts() -> None:
    curve = np.repeat([1.0, 0.0], [20, 80])
    rates = np.tile(curve, (4, 1))
    assert interference_ratio(rates, curve, np.zeros(4)) == 0.0
    rates[:2, 40:80] = 1.0
    assert interference_ratio(rates, curve, np.zeros(4)) == pytest.approx(0.25)
    assert interference_ratio(rates, np.zeros(100), np.zeros(4)) == 1.0


@pytest.mark.parametrize("true", [0.0, 0.07, 0.2])
def test_delay_is_estimated_from_durations(true: float) -> None:
    rng = np.random.default_rng(1)
    met_s = rng.uniform(0, 150, 12)
    duration_s = 1200.0 + true * met_s + rng.normal(0, 1.0, 12)
    assert _fit_delay(duration_s, met_s)[0] == pytest.approx(true, abs=0.03)
    assert estimate_duration_alone_s(duration_s, met_s) == pytest.approx(1200.0, abs=3.0)
    duration_s[3] -= 100.0
    assert _fit_delay(duration_s, met_s)[0] == pytest.approx(true, abs=0.04), "a run with another input counts less"


def test_delay_defaults_to_the_prior() -> None:
    assert _fit_delay(np.full(8, 1000.0), np.full(8, 30.0))[0] == pytest.approx(PARAMS.prior_delay)


def test_duration_without_interference_is_the_median() -> None:
    duration_s = np.array([980.0, 990.0, 1000.0, 1010.0, 1020.0])
    assert estimate_duration_alone_s(duration_s, np.zeros(5)) == pytest.approx(1000, abs=1)
    assert extract_time_normalized(simulate_paces([0.98, 0.99, 1.0, 1.01, 1.02])).duration_s == pytest.approx(
        1000, abs=1
    )


def test_delayed_runs_are_longer_than_the_estimate() -> None:
    rng = np.random.default_rng(3)
    rows, durations = [], []
    for _ in range(12):
        late, made = 0.0, []
        for begin, end, rate in BURSTS:
            share = rng.random()
            lasted = (end - begin) * (1 + 0.3 * share)
            made += [(begin + late, begin + late + lasted, rate * (end - begin) / lasted)]
            made += [(begin + late, begin + late + lasted * share, 1e9)] if share > 0.1 else []
            late += lasted - (end - begin)
        durations.append(1000.0 + late)
        rows.append(simulate_polls(made, durations[-1], 2.0))
    result = extract_time_normalized(make_sample_set(rows, 2.0, [0.0] * 12, durations)).duration_s
    assert result < np.quantile(durations, 0.3)
    assert result > 990


def test_band_widens_with_interference() -> None:
    rng = np.random.default_rng(2)
    calm = simulate_paces([0.99, 1.0, 1.0, 1.0, 1.01, 1.0])
    noise = np.repeat(rng.random(len(calm.samples.values) // 10 + 1) < 0.3, 10)[: len(calm.samples.values)] * 8e8
    noisy = replace(calm, samples=type(calm.samples)(calm.samples.values + noise, calm.samples.offsets))
    widths = []
    for result in (extract_time_normalized(calm), extract_time_normalized(noisy)):
        assert (result.low_bytes_per_s <= result.bytes_per_s).all()
        assert (result.high_bytes_per_s >= result.bytes_per_s).all()
        widths.append(float((result.high_bytes_per_s - result.low_bytes_per_s).sum() / result.volume_bytes))
    assert widths[0] < 0.15
    assert widths[1] > 2 * widths[0]


# ---- naive implementations


def test_steps_are_mean_rates_of_measured_values() -> None:
    rng = np.random.default_rng(4)
    rates = [rng.random(40), rng.random(43)]
    rates[0][5:9] = np.nan
    one = make_sample_set(rates, 2.0, [-0.7, -1.9], [78.5, 83.0])
    result = resample(one, 31, 0)
    for run, (row, started, duration) in enumerate(zip(rates, (-0.7, -1.9), (78.5, 83.0), strict=True)):
        edges = np.linspace(0.0, duration, 32)
        expected = [naive.mean_rate(row.tolist(), 2.0, started, a, b) for a, b in pairwise(edges.tolist())]
        assert result[run] == pytest.approx(expected, nan_ok=True)


def test_curve_is_a_quantile_minus_its_baseline() -> None:
    rng = np.random.default_rng(5)
    rates = rng.random((7, 30)) + np.repeat([0.0, 3.0, 0.0], 10)
    rates[2, 4] = np.nan
    runs = TimeNormalizedRuns(rates, 0, np.full(7, 30.0), 1.0, 0.3, np.zeros(rates.shape))
    curve, floor = runs.curve
    expected = [naive.quantile(rates[:, step].tolist(), runs.level) for step in range(30)]
    assert curve == pytest.approx(np.maximum(np.array(expected) - floor, 0.0))


@pytest.mark.parametrize("step_s", [1.0, 0.977, 2.31])
def test_seconds_match_naive_implementation(step_s: float) -> None:
    curve = np.random.default_rng(6).random(40)
    assert resample_to_seconds(curve[None], step_s)[0] == pytest.approx(naive.second_rates(curve.tolist(), step_s))


def test_seconds_preserve_volume() -> None:
    curve = np.random.default_rng(1).random(300)
    for step_s in (1.0, 0.977, 2.31):
        assert resample_to_seconds(curve[None], step_s).sum() == pytest.approx(curve.sum() * step_s)


def test_gaps_do_not_count_as_missing_bytes() -> None:
    one = simulate_paces([1.0] * 5)
    values = one.samples.values.copy()
    values[100:120] = np.nan
    result = extract_time_normalized(
        SampleSet(type(one.samples)(values, one.samples.offsets), 2.0, one.start_s, one.duration_s)
    )
    assert correlation(result.bytes_per_s, TRUTH) > 0.98


def test_known_interference_improves_the_duration() -> None:
    """The duration of runs depends on interference that their traffic does not show."""
    delays = np.array([0.0, 4.0, 8.0, 12.0, 16.0, 20.0])
    own, interference, counts = [], [], []
    for later in delays:
        rates, foreign = np.zeros(200 + int(later)), np.zeros(200 + int(later))
        rates[50 : 90 + int(later)] = 40.0 / (40.0 + later)
        foreign[50 : 90 + int(later)] = 4.0 * later / (40.0 + later)
        own.append(rates)
        interference.append(foreign)
        counts.append(len(rates))
    duration = np.array(counts, dtype=np.float64)
    one = SampleSet(Ragged(np.concatenate(own), offsets_of(counts)), 1.0, np.zeros(6), duration)
    unknown, known = (
        extract_time_normalized(one),
        extract_time_normalized(replace(one, interference=np.concatenate(interference))),
    )
    assert unknown.duration_s > 205
    assert abs(known.duration_s - 200) < abs(unknown.duration_s - 200) - 3
    # Entirely unknown interference has no effect.
    no_interference = extract_time_normalized(replace(one, interference=np.full(int(duration.sum()), np.nan)))
    assert no_interference.bytes_per_s.tolist() == unknown.bytes_per_s.tolist()

"""The robust estimator: hand-computed cases, alignment of whole intervals, and degenerate sets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.signatures import robust as module
from iosig.transforms.signatures.robust import (
    Reals,
    _compute_weights,
    _make_bursts,
    _make_spans,
    _mark_outside,
    _prepare_runs,
    _Runs,
    _shift_to_timeline,
    extract_robust,
)
from iosig.transforms.signatures.robust_alignment import PARAMS as ALIGNMENT_PARAMS, find_burst_starts
from iosig.transforms.signatures.robust_template import Template
from iosig.transforms.signatures.robust_timeline import estimate_timeline
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature
from tests.budget import examples
from tests.naive.signatures import robust as naive
from tests.transforms.run_sets import Burst, find_faults, make_sample_set, reorder_runs, simulate_polls, true_rates

pytestmark = pytest.mark.filterwarnings("error")

BOUNDED = settings(max_examples=examples(25), deadline=None)
NAN, INF = float("nan"), float("inf")
BURSTS: list[Burst] = [(20.0 + 100 * place, 40.0 + 100 * place, 1e9) for place in range(5)]
TRUTH = true_rates(BURSTS, 500)


def simulate_clean_runs(runs: int = 8, interval_s: float = 2.0, phase_s: float = 0.0) -> SampleSet:
    """Make identical runs without noise."""
    rows = [simulate_polls(BURSTS, 500.0, interval_s, phase_s)] * runs
    return make_sample_set(rows, interval_s, [-phase_s] * runs, [500.0] * runs)


def simulate_noisy_runs(seed: int, runs: int = 10, interval_s: float = 2.0) -> SampleSet:
    """Simulate runs with random poll phases, a constant rate, and interfering bursts."""
    rng = np.random.default_rng(seed)
    phases = rng.uniform(0, interval_s, runs)
    rows = []
    for phase_s in phases:
        places = rng.uniform(0, 480, 3)
        others = [(place, place + rng.uniform(3, 20), rng.uniform(2e8, 2e9)) for place in places]
        rows.append(simulate_polls([*BURSTS, *others], 500.0, interval_s, phase_s) + 1e6)
    return make_sample_set(rows, interval_s, (-phases).tolist(), [500.0] * runs)


def extract(one: SampleSet) -> Signature:
    result = extract_robust(one)
    assert find_faults(result) == []
    return result


def set_thresholds_to_zero(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(module, "PARAMS", replace(module.PARAMS, **dict.fromkeys(names, 0.0)))


def compute_correlation(result: Reals, expected: Reals) -> float:
    length = max(len(result), len(expected))
    pair = [np.pad(curve, (0, length - len(curve))) for curve in (result, expected)]
    return float(np.corrcoef(*pair)[0, 1])


# ---- accuracy


@pytest.mark.parametrize("runs", [3, 4, 10, 100])
def test_clean_runs_yield_the_truth(runs: int) -> None:
    result = extract(simulate_clean_runs(runs))
    assert result.outcome == "extracted"
    np.testing.assert_allclose(result.bytes_per_s, TRUTH, atol=1.0)
    np.testing.assert_allclose(result.low_bytes_per_s, TRUTH, atol=1.0)
    np.testing.assert_allclose(result.high_bytes_per_s, TRUTH, atol=1.0)
    np.testing.assert_array_equal(result.bursts.start_s, [burst[0] for burst in BURSTS])
    np.testing.assert_array_equal(result.bursts.end_s, [burst[1] for burst in BURSTS])
    # The middle of the highest second, as for other methods.
    assert (result.bursts.peak_s % 1.0 == 0.5).all()
    np.testing.assert_allclose(result.bursts.volume_bytes, 2e10, rtol=1e-9)
    np.testing.assert_array_equal(result.bursts.support_ratio, 1.0)
    assert result.background_bytes_per_s == 0.0


@pytest.mark.parametrize("interval_s", [0.5, 1.0, 2.0, 5.0, 10.0])
@pytest.mark.parametrize("phase_ratio", [0.0, 0.37])
def test_volume_is_exact_at_any_interval_and_phase(interval_s: float, phase_ratio: float) -> None:
    result = extract(simulate_clean_runs(10, interval_s, phase_ratio * interval_s))
    assert result.volume_bytes == pytest.approx(TRUTH.sum(), rel=1e-6)
    assert len(result.bursts) == 5
    np.testing.assert_allclose(result.bursts.start_s, [burst[0] for burst in BURSTS], atol=interval_s + 1)
    assert (result.bursts.peak_s > result.bursts.start_s).all()
    assert compute_correlation(result.bytes_per_s, TRUTH) > (0.98 if interval_s <= 2 else 0.85)


def test_steps_of_a_minute_yield_the_truth() -> None:
    hours: list[Burst] = [(600.0 + 3600 * place, 1800.0 + 3600 * place, 1e9) for place in range(12)]
    result = extract(make_sample_set([simulate_polls(hours, 43200.0, 60.0)] * 5, 60.0))
    np.testing.assert_allclose(result.bytes_per_s, true_rates(hours, 43200), atol=1.0)
    np.testing.assert_array_equal(result.bursts.start_s, [burst[0] for burst in hours])


def test_bursts_at_start_and_end_are_exact() -> None:
    bursts: list[Burst] = [(0.0, 20.0, 1e9), (100.0, 120.0, 1e9), (280.0, 300.0, 1e9)]
    result = extract(make_sample_set([simulate_polls(bursts, 300.0)] * 6))
    np.testing.assert_allclose(result.bytes_per_s, true_rates(bursts, 300), atol=1.0)
    np.testing.assert_array_equal(result.bursts.end_s, [20, 120, 300])


def test_constant_rate_is_background() -> None:
    one = simulate_clean_runs()
    result = extract(make_sample_set([rates + 3e8 for rates in one.rates]))
    np.testing.assert_allclose(result.bytes_per_s, TRUTH, atol=100.0)
    assert result.background_bytes_per_s == pytest.approx(3e8)


@pytest.mark.parametrize("seed", range(4))
def test_interfering_bursts_are_excluded(seed: int) -> None:
    result = extract(simulate_noisy_runs(seed))
    assert len(result.bursts) == 5
    assert result.volume_bytes == pytest.approx(TRUTH.sum(), rel=0.05)
    assert compute_correlation(result.bytes_per_s, TRUTH) > 0.95
    assert result.background_bytes_per_s == pytest.approx(1e6, rel=0.01)


def test_delay_of_one_run_has_no_effect() -> None:
    late = [*BURSTS[:3], *((begin + 17.0, end + 17.0, rate) for begin, end, rate in BURSTS[3:])]
    rows = [*simulate_clean_runs(7).rates, simulate_polls(late, 517.0)]
    result = extract(make_sample_set(rows, duration_s=[500.0] * 7 + [517.0]))
    # The curve ends at its duration; interfering bursts keep their positions.
    np.testing.assert_allclose(result.bytes_per_s[:500], TRUTH, atol=3e7)
    np.testing.assert_array_equal(result.bursts.support_ratio, 1.0)


def test_delays_of_all_runs_are_removed() -> None:
    rows, durations = [], []
    for place in range(5):
        late = [*BURSTS[:place], *((begin + 15.0, end + 15.0, rate) for begin, end, rate in BURSTS[place:])]
        rows.append(simulate_polls(late, 515.0))
        durations.append(515.0)
    result = extract(make_sample_set([*rows, *rows], duration_s=durations * 2))
    np.testing.assert_allclose(result.bursts.start_s, [burst[0] for burst in BURSTS], atol=3)
    assert result.volume_bytes == pytest.approx(TRUTH.sum(), rel=0.02)


def test_support_falls_with_runs_that_miss_the_burst(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, lacking = simulate_polls(BURSTS, 500.0), simulate_polls(BURSTS[:2] + BURSTS[3:], 500.0)
    result = extract(make_sample_set([whole] * 9 + [lacking]))
    np.testing.assert_allclose(result.bursts.support_ratio, [1, 1, 0.9, 1, 1])
    others = extract(make_sample_set([whole] * 8 + [lacking] * 2))
    np.testing.assert_allclose(others.bursts.start_s, [BURSTS[place][0] for place in (0, 1, 3, 4)])
    assert others.bytes_per_s[200:260].max() == 0.0, "it is not in the curve either"
    set_thresholds_to_zero(monkeypatch, "min_burst_low_ratio", "plain_burst_low_ratio")
    every = extract(make_sample_set([whole] * 8 + [lacking] * 2))
    np.testing.assert_allclose(every.bursts.support_ratio, [1, 1, 0.8, 1, 1])


# ---- gaps


def test_gaps_have_no_weight() -> None:
    gap = simulate_polls(BURSTS, 500.0)
    gap[8:22] = NAN
    result = extract(make_sample_set([*simulate_clean_runs(6).rates, gap]))
    np.testing.assert_allclose(result.bytes_per_s, TRUTH, atol=1.0)
    np.testing.assert_array_equal(result.bursts.support_ratio, 1.0)
    # With gaps in four runs of ten, zeros would change the quantile.
    np.testing.assert_allclose(
        extract(make_sample_set([*simulate_clean_runs(6).rates, *[gap] * 4])).bytes_per_s, TRUTH, atol=1.0
    )
    # A burst that no run has measured is unknown.
    assert len(extract(make_sample_set([gap] * 7)).bursts) == 4


@pytest.mark.parametrize("bad", [NAN, INF, -INF, -1.0])
def test_invalid_rates_are_missing(bad: float) -> None:
    row = simulate_polls(BURSTS, 500.0)
    row[13] = bad
    result = extract(make_sample_set([row] * 6))
    np.testing.assert_allclose(result.bytes_per_s, TRUTH, atol=1.0)


def test_gaps_do_not_make_a_run_clean() -> None:
    fifth = simulate_polls(BURSTS, 500.0)
    fifth[:50] = NAN
    np.testing.assert_allclose(prepare_runs(make_sample_set([*simulate_clean_runs(4).rates, fifth])).weights, 1.0)


def test_runs_with_few_measurements_are_dropped() -> None:
    hardly = simulate_polls(BURSTS, 500.0)
    hardly[:80] = NAN
    assert extract(make_sample_set([*simulate_clean_runs(2).rates, hardly, hardly])).outcome == "too_few_samples"
    assert extract(make_sample_set([*simulate_clean_runs(3).rates, hardly, hardly])).outcome == "extracted"


def test_silent_run_is_not_the_cleanest() -> None:
    nothing = np.zeros(250)
    result = extract(make_sample_set([*simulate_clean_runs(7).rates, nothing]))
    np.testing.assert_allclose(result.bytes_per_s, TRUTH, atol=1.0)
    # If most runs are silent, bursts of the others are interference.
    assert extract(make_sample_set([*simulate_clean_runs(2).rates, *[nothing] * 6])).outcome == "no_common_bursts"


@pytest.mark.parametrize("exponent", [-40, 0, 40])
def test_weights_decrease_with_volume(exponent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PARAMS", replace(module.PARAMS, min_clean_count=2))
    volume = np.ldexp(np.array([10.0, 11.0, 15.0, 30.0, 0.5, 1e300 if exponent < 0 else 1e9]), exponent)
    weights, is_clean = _compute_weights(volume)
    np.testing.assert_allclose(weights[:4], [1, 0.5 / 0.6, 0.5, 0.2])
    assert weights[4] == 0.0
    assert 0 < weights[5] < 1e-5
    assert is_clean.tolist() == [True, True, True, False, False, False]
    tied, all_clean = _compute_weights(np.ones(9))
    assert tied.tolist() == [1.0] * 9
    assert all_clean.all()
    assert np.isfinite(_compute_weights(np.array([0.0, 0.0, 0.0, 1e308]))[0]).all()


# ---- no signature


def test_sets_without_common_bursts_have_an_outcome() -> None:
    steady = [np.full(250, 0.7e9)] * 6
    assert extract(make_sample_set(steady)).outcome == "no_common_bursts"
    assert extract(make_sample_set(steady)).background_bytes_per_s == pytest.approx(0.7e9)
    assert extract(make_sample_set([np.zeros(250)] * 6)).outcome == "no_io"
    assert extract(make_sample_set([np.full(250, NAN)] * 6)).outcome == "too_few_samples"
    assert extract(make_sample_set([np.full(250, INF)] * 6)).outcome == "too_few_samples"
    assert extract(make_sample_set([])).outcome == "too_few_samples"
    assert extract(make_sample_set([[]] * 6, duration_s=[100.0] * 6)).outcome == "too_few_samples"
    assert [extract(simulate_clean_runs(runs)).outcome for runs in (1, 2, 3)] == ["too_few_samples"] * 2 + ["extracted"]


def test_noise_has_no_bursts() -> None:
    rng = np.random.default_rng(3)
    steady = [1e9 + 1e7 * rng.standard_normal(250) for _ in range(8)]
    assert extract(make_sample_set(steady)).outcome == "no_common_bursts"
    lonely = [simulate_polls([(begin, begin + 8.0, 1e9)], 500.0) for begin in (30.0, 110.0, 190.0, 270.0, 350.0, 430.0)]
    assert extract(make_sample_set(lonely)).outcome == "no_common_bursts"


def test_unrelated_runs_rarely_have_a_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = []
        for _ in range(10):
            places = rng.uniform(0, 1000, rng.poisson(20))
            others = [(place, place + rng.uniform(5, 40), rng.uniform(3e8, 2e9)) for place in places]
            rows.append(simulate_polls(others, 1000.0) + 1e6 * rng.exponential(1.0, 500))
        answers.append((make_sample_set(rows), extract(make_sample_set(rows)).outcome))
    assert sum(outcome == "extracted" for _, outcome in answers) <= 5
    # Without the thresholds of support, most of these sets have a signature.
    set_thresholds_to_zero(
        monkeypatch, "min_support_ratio", "min_low_ratio", "min_burst_low_ratio", "plain_burst_low_ratio"
    )
    assert sum(extract(one).outcome == "extracted" for one, _ in answers) >= 12


@pytest.mark.parametrize("duration_s", [NAN, INF, 0.0, -5.0, 1e300])
def test_runs_with_invalid_duration_are_dropped(duration_s: float) -> None:
    rows = [simulate_polls(BURSTS, 500.0)] * 6
    assert extract(make_sample_set(rows, duration_s=[duration_s] * 6)).outcome == "too_few_samples"
    result = extract(make_sample_set(rows, duration_s=[500.0] * 5 + [duration_s]))
    np.testing.assert_allclose(result.bytes_per_s, TRUTH, atol=1.0)


@pytest.mark.parametrize("start_s", [-1e4, 1e4, NAN, -INF])
def test_samples_outside_of_their_run_are_dropped(start_s: float) -> None:
    assert (
        extract(make_sample_set([simulate_polls(BURSTS, 500.0)] * 6, start_s=[start_s] * 6)).outcome
        == "too_few_samples"
    )


@pytest.mark.parametrize("rates", [[1e9], [1e9, 0.0], [0.0, 1e9, 0.0], [0.0, 1e9], [1e9] * 3])
def test_runs_of_few_steps_have_a_valid_result(rates: list[float]) -> None:
    extract(make_sample_set([rates] * 6))
    extract(make_sample_set([rates] * 6, 60.0))


@pytest.mark.parametrize("pause_s", [2, 4, 5, 6, 7, 8])
def test_bursts_with_short_pauses_have_a_valid_result(pause_s: int) -> None:
    step_s = 2.0 + pause_s
    dense = [(place * step_s, place * step_s + 2.0, 1e9) for place in range(60)]
    result = extract(make_sample_set([simulate_polls(dense, 60 * step_s, 1.0)] * 6, 1.0))
    assert result.outcome in ("extracted", "no_common_bursts")


# ---- scale, order, size


@pytest.mark.parametrize("exponent", [-1090, -1040, -300, -1, 1, 300, 980])
def test_robust_signature_is_scale_invariant(exponent: int) -> None:
    for one in (simulate_clean_runs(5), simulate_noisy_runs(2)):
        result = extract(one)
        rows = [np.ldexp(rates, exponent) for rates in one.rates]
        higher = extract(make_sample_set(rows, 2.0, one.start_s.tolist(), one.duration_s.tolist()))
        if exponent < -1000:
            # Denormal numbers lose precision.
            np.testing.assert_allclose(np.ldexp(higher.bytes_per_s, -exponent), result.bytes_per_s, rtol=0.05, atol=2e7)
            continue
        np.testing.assert_array_equal(higher.bytes_per_s, np.ldexp(result.bytes_per_s, exponent))
        np.testing.assert_array_equal(higher.high_bytes_per_s, np.ldexp(result.high_bytes_per_s, exponent))
        np.testing.assert_array_equal(higher.bursts.volume_bytes, np.ldexp(result.bursts.volume_bytes, exponent))
        np.testing.assert_array_equal(higher.bursts.start_s, result.bursts.start_s)
        assert higher.background_bytes_per_s == np.ldexp(result.background_bytes_per_s, exponent)


def test_largest_finite_rates_keep_a_finite_curve() -> None:
    most = np.finfo(np.float64).max
    result = extract(make_sample_set([simulate_polls(BURSTS, 500.0) / 1e9 * most] * 6))
    assert result.bytes_per_s.max() == pytest.approx(most)
    assert result.volume_bytes == INF


@BOUNDED
@given(st.integers(0, 10_000))
def test_order_of_runs_does_not_matter(seed: int) -> None:
    one = simulate_noisy_runs(seed, runs=6)
    result, other = extract(one), extract(reorder_runs(one, np.random.default_rng(seed).permutation(6).tolist()))
    assert result.outcome == other.outcome
    np.testing.assert_array_equal(other.bytes_per_s, result.bytes_per_s)
    np.testing.assert_array_equal(other.low_bytes_per_s, result.low_bytes_per_s)
    np.testing.assert_array_equal(other.bursts.support_ratio, result.bursts.support_ratio)


def test_order_of_equal_volumes_does_not_matter() -> None:
    rng = np.random.default_rng(11)
    for _ in range(8):
        places = 2.0 * rng.integers(0, 240, 7)
        one = make_sample_set([simulate_polls([*BURSTS, (place, place + 20.0, 7e8)], 500.0) for place in places])
        result = extract(one)
        for _ in range(3):
            other = extract(reorder_runs(one, rng.permutation(7).tolist()))
            np.testing.assert_array_equal(other.bytes_per_s, result.bytes_per_s)


def test_cleanest_run_is_last() -> None:
    runs = prepare_runs(simulate_noisy_runs(5))
    assert (np.diff(runs.weights) >= 0).all()
    assert (np.diff(runs.total_bytes[:, -1]) <= 0).all()


def test_bursts_that_share_a_second_do_not_overlap() -> None:
    template = Template(np.array([1, 3]), np.array([3, 5]), np.ones(2), np.array([2, 2]))
    result = _make_bursts(template, np.ones(8), 1.5, np.array([0.5, 1.0]))
    assert result.start_s.tolist() == [1.0, 5.0]
    assert result.end_s.tolist() == [5.0, 8.0]
    assert result.volume_bytes.tolist() == [4.0, 3.0]


@pytest.mark.parametrize("seed", range(4))
def test_first_reach_does_not_change_results(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    result = []
    for reach in (1, 16, 10_000):
        monkeypatch.setattr(module, "_FIRST_REACH", reach)
        result.append(extract_robust(simulate_noisy_runs(seed)).bytes_per_s.tolist())
    assert result[0] == result[1] == result[2] != []


def test_two_hundred_bursts_are_exact() -> None:
    many: list[Burst] = [(10.0 + 60 * place, 30.0 + 60 * place, 1e9) for place in range(200)]
    result = extract(make_sample_set([simulate_polls(many, 12000.0)] * 4))
    np.testing.assert_allclose(result.bytes_per_s, true_rates(many, 12000), atol=1e4)


def test_week_in_steps_of_a_minute_keeps_all_bursts() -> None:
    rng = np.random.default_rng(5)
    hours: list[Burst] = [(300.0 + 7200 * place, 1500.0 + 7200 * place, 1e9) for place in range(84)]
    rows = [simulate_polls(hours, 604800.0, 60.0) + 1e6 * rng.exponential(1.0, 10080) for _ in range(4)]
    result = extract(make_sample_set(rows, 60.0))
    assert len(result.bursts) == 84
    assert result.volume_bytes == pytest.approx(84 * 1.2e12, rel=0.01)


# ---- alignment


def prepare_runs(one: SampleSet) -> _Runs:
    runs = _prepare_runs(one)
    assert runs is not None
    return runs


def test_alignment_preserves_volume() -> None:
    rng = np.random.default_rng(8)
    rows, durations = [], []
    for _ in range(5):
        late = np.cumsum(rng.uniform(0, 9, 5))
        moved = [(begin + by, end + by, rate) for (begin, end, rate), by in zip(BURSTS, late, strict=True)]
        rows.append(simulate_polls(moved, 560.0))
        durations.append(560.0)
    runs = prepare_runs(make_sample_set(rows, duration_s=durations))
    boxes = np.array([[round(begin / 2), round(end / 2)] for begin, end, _ in BURSTS], dtype=np.int64)
    height = np.full(5, 1e9 * 2.0**-runs.exponent)
    template = Template(boxes[:, 0], boxes[:, 1], height, boxes[:, 1] - boxes[:, 0])
    begun_s = find_burst_starts(runs.rates, template, 30, 2.0) * 2.0
    alone_s = estimate_timeline(_make_spans(runs, begun_s, template, 0.1))
    aligned = _shift_to_timeline(runs, begun_s, alone_s, template)
    # Every burst keeps its full volume.
    volume = aligned.rates.sum(axis=1) * 2.0
    np.testing.assert_allclose(volume, runs.total_bytes[:, -1], rtol=1e-9)
    # Bursts are at the same place in all runs, within a fraction of a step.
    middle = np.quantile(aligned.rates, 0.5, axis=0)
    assert np.abs(aligned.rates - middle).sum(axis=1).max() < 0.12 * middle.sum()


@pytest.mark.parametrize("seed", range(3))
def test_alignment_matches_naive_implementation(seed: int) -> None:
    runs = prepare_runs(simulate_noisy_runs(seed, runs=4))
    boxes = np.array([[round(begin / 2), round(end / 2)] for begin, end, _ in BURSTS], dtype=np.int64)
    template = Template(boxes[:, 0], boxes[:, 1], np.full(5, 0.5), boxes[:, 1] - boxes[:, 0])
    begun_s = np.cumsum(np.random.default_rng(seed).uniform(60, 110, (4, 5)), axis=1)
    alone_s = estimate_timeline(_make_spans(runs, begun_s, template, 0.1))
    aligned = _shift_to_timeline(runs, begun_s, alone_s, template)
    arguments = alone_s[:-1].tolist(), 2.0, aligned.rates.shape[1], ALIGNMENT_PARAMS.margin_s
    for rates, begun, result in zip(runs.rates, begun_s, aligned.rates, strict=True):
        np.testing.assert_allclose(result, naive.warped(rates.tolist(), begun.tolist(), *arguments), atol=1e-12)


def test_times_outside_of_intervals_are_marked() -> None:
    at = np.arange(10.0)
    result = _mark_outside(at, np.array([2.0, 3.0]), np.array([6.0, 4.0]))
    assert np.flatnonzero(~result).tolist() == [2, 3, 4, 5]
    assert _mark_outside(at, np.array([20.0]), np.array([30.0])).all()

"""AUTOPERIOD: reference series in several units of time, the naive implementation, noise, and degenerate input."""

from __future__ import annotations

import csv
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.signal import lombscargle

from iosig.transforms.arrays import Ragged, Reals
from iosig.transforms.periods.autoperiod import detect, detect_even, find_periods, trace_search
from iosig.transforms.periods.autoperiod_analysis import AutoperiodParams, analyze, analyze_even
from iosig.transforms.periods.autoperiod_periodogram import UnevenSignals
from iosig.transforms.periods.interface.detections import OUTCOMES, Detections
from iosig.transforms.periods.interface.even_signals import EvenSignals
from tests.budget import examples
from tests.naive.periods import autoperiod as naive

NAN = float("nan")


def make_even(values: Reals, sampling_hz: float = 1.0) -> EvenSignals:
    rows = np.atleast_2d(np.asarray(values, dtype=np.float64))
    return EvenSignals(rows, np.full(len(rows), sampling_hz), np.zeros(len(rows)))


def at_instants(times: Reals, values: Reals) -> UnevenSignals:
    return UnevenSignals.from_intervals(
        times, np.zeros(len(times)), Ragged(np.asarray(values, np.float64), np.array([0, len(times)]))
    )


def candidate_periods(result: Detections, row: int = 0) -> list[float]:
    selected = slice(*result.candidates.offsets[row : row + 2].tolist())
    return (1.0 / result.candidates.frequency_hz[selected]).tolist()


def pulses(count: int, period: float, length: float = 1.0) -> Reals:
    return np.where(np.arange(count) % period < length, 1e9, 0.0)


# ---- the series of the reference


def read_series(path: Path) -> tuple[Reals, Reals, Reals]:
    """Times and lengths of intervals, and rates; a weekly level has no length."""
    if path.name.startswith("trends"):
        rows = [line.split(",") for line in path.read_text().split()]
        days = np.array([date.fromisoformat(day).toordinal() for day, _ in rows], dtype=np.float64)
        return days - days[0], np.zeros(len(days)), np.array([float(level) for _, level in rows])
    times, counter = np.loadtxt(path, unpack=True)
    return times[1:], np.diff(times), np.diff(counter) / np.diff(times)


@pytest.fixture(scope="module")
def golden(shared_data: Path) -> dict[str, dict[str, str]]:
    with (shared_data / "ccr-gpfs" / "golden.tsv").open() as file:
        return {row["file"]: row for row in csv.DictReader(file, delimiter="\t")}


@pytest.fixture(scope="module")
def series(shared_data: Path, golden: dict[str, dict[str, str]]) -> dict[str, tuple[Reals, Reals, Reals]]:
    return {name: read_series(shared_data / "ccr-gpfs" / name) for name in golden}


def combine(series: dict[str, tuple[Reals, Reals, Reals]], unit: float = 1.0) -> UnevenSignals:
    times, lengths, values = (np.concatenate([part[place] for part in series.values()]) for place in range(3))
    offsets = np.concatenate([[0], np.cumsum([len(part[0]) for part in series.values()])])
    return UnevenSignals.from_intervals(times / unit, lengths / unit, Ragged(values, offsets))


def assert_equals_golden(result: Detections, golden: dict[str, dict[str, str]], unit: float = 1.0) -> None:
    expected = [float(row["stat_period"] or NAN) for row in golden.values()]
    assert result.is_periodic.tolist() == np.isfinite(expected).tolist()
    assert set(result.outcome[~result.is_periodic]) <= {"aperiodic"}
    np.testing.assert_allclose(result.period_s * unit, expected, rtol=0.01)


@pytest.mark.parametrize("unit", [1.0, 60.0, 3600.0])
def test_reference_series_have_equal_results_in_any_time_unit(
    golden: dict[str, dict[str, str]], series: dict[str, tuple[Reals, Reals, Reals]], unit: float
) -> None:
    assert_equals_golden(detect(combine(series, unit)), golden, unit)


@pytest.mark.parametrize(
    "params",
    [
        AutoperiodParams(confidence=0.99),
        AutoperiodParams(significance="monte_carlo"),
        AutoperiodParams(significance="monte_carlo", confidence=0.99),
        AutoperiodParams(significance="permutation_test"),
        AutoperiodParams(hill_standard_errors=1.6),
        AutoperiodParams(min_window=8),
        AutoperiodParams(samples_per_peak=3),
        AutoperiodParams(refined_shoulder=2),
    ],
)
def test_parameter_variations_keep_the_reference_results(
    golden: dict[str, dict[str, str]], series: dict[str, tuple[Reals, Reals, Reals]], params: AutoperiodParams
) -> None:
    assert_equals_golden(detect(combine(series), params), golden)


def test_thresholds_equal_the_reference_on_even_samples(
    golden: dict[str, dict[str, str]], series: dict[str, tuple[Reals, Reals, Reals]]
) -> None:
    for name, row in golden.items():
        times, lengths, values = series[name]
        left = times - lengths
        even = np.interp(np.linspace(left[0], left[-1], len(left)), left, values)
        signal = make_even(even, (len(left) - 1) / (left[-1] - left[0]))
        assert_equals_golden(detect_even(signal), {name: row})
        result = analyze_even(signal)
        # Where the Nyquist frequency lies between two grid points, the reference includes the point beyond it.
        assert result.thresholds[0] == pytest.approx(float(row["stat_thresh"]), abs=2e-3)
        if row["stat_top_hint"]:
            inner = np.where(np.arange(result.powers.shape[1]) > 5, result.powers[0], 0)
            period = 5 * result.step_counts[0] * result.step_s[0] / (5 + inner.argmax())
            assert period == pytest.approx(float(row["stat_top_hint"]), rel=1e-9)


def test_top_of_a_narrow_hill_is_not_refined(series: dict[str, tuple[Reals, Reals, Reals]]) -> None:
    # Bursts every 6 or 7 samples of 30 s: both lags are equally high, and the reference reports 180 s.
    name = "industry-2895978-gpfs-reads.csv"
    samples = combine({name: series[name]})
    assert detect(samples).period_s[0] == pytest.approx(180, rel=1e-3)
    assert detect(samples, AutoperiodParams(refined_shoulder=0)).period_s[0] == pytest.approx(194, rel=1e-2)
    result = analyze(samples)
    assert result.correlation[0, 7] == pytest.approx(result.correlation[0, 6], rel=0.05)
    assert result.correlation[0, 13] > result.correlation[0, 6]


# ---- clear periods


def test_clean_sine_has_its_period_amplitude_and_phase() -> None:
    times = np.arange(0, 10, 0.01)
    result = detect_even(make_even(3 * np.sin(2 * np.pi * times) + 5, 100))
    assert result.outcome.tolist() == ["periodic"]
    assert result.period_s[0] == pytest.approx(1, rel=1e-3)
    assert result.candidates.amplitude_bytes_per_s[0] == pytest.approx(3, rel=1e-3)
    assert result.candidates.phase_rad[0] == pytest.approx(-np.pi / 2, abs=1e-2)
    assert result.false_alarm_probability[0] < 1e-100
    assert np.isnan(result.confidence).all()
    assert np.isnan(result.candidates.confidence).all()
    assert (result.window_start_s[0], result.window_end_s[0]) == (0, 10)


@pytest.mark.parametrize("span", [20, 40])
@pytest.mark.parametrize("scale", [2, 4])
@pytest.mark.parametrize("significance", ["exponential", "monte_carlo"])
def test_narrow_sines_have_their_period(span: int, scale: int, significance: str) -> None:
    values = np.sin(scale * np.pi * np.arange(0, span, 0.01))
    params = AutoperiodParams(significance=significance, permutation_count=9)  # type: ignore[arg-type]
    assert detect_even(make_even(values, 100), params).period_s[0] == pytest.approx(2 / scale, abs=1e-3)


def test_steps_of_a_search_explain_its_period() -> None:
    signals = make_even(pulses(400, 25, 5.0) + 0.1 * np.random.default_rng(5).standard_normal(400), 0.5)
    analysis = analyze_even(signals)
    steps = trace_search(analysis)
    (period,) = find_periods(analysis).period_s[:1]
    assert period == pytest.approx(50.0, rel=0.01)
    strongest = 1.0 / steps.frequency_hz[steps.power.argmax()]
    assert min(abs(strongest * number / period - 1.0) for number in (1, 2, 3)) < 0.05
    assert steps.power.max() > steps.threshold
    # the two lines rise to the period, fall after it, and are the best lines through their points
    (rise, fall), (rising, falling) = steps.hill_lag_s, steps.hill_correlation
    assert rise[1] == fall[0] == pytest.approx(period, abs=4.0)
    assert rising[0] < rising[1]
    assert falling[0] > falling[1]
    for (first, last), values in ((rise, rising), (fall, falling)):
        is_inside = (steps.lag_s >= first - 1e-9) & (steps.lag_s <= last + 1e-9)
        line = np.polyfit(steps.lag_s[is_inside], steps.correlation[is_inside], 1)
        assert np.polyval(line, [first, last]) == pytest.approx(values)


def test_steps_of_a_search_without_a_period_have_no_hill() -> None:
    analysis = analyze_even(make_even(np.random.default_rng(3).random(300)))
    steps = trace_search(analysis)
    assert steps.hill_lag_s.shape == (0, 2)
    assert len(steps.lag_s) == len(steps.correlation) == 150
    assert steps.frequency_hz[0] == pytest.approx(1 / 299)


def test_square_wave_has_its_exact_period() -> None:
    assert detect_even(make_even(np.tile([0, 0, 1, 1], 10))).period_s.tolist() == [4]


def test_two_periods_of_a_day_are_candidates() -> None:
    # Like the job of PEARC'18's Figure 6: about 13 and 60 minutes for 24 hours, sampled every 30 s.
    times = np.arange(0, 86400, 30.0)
    values = (times % 780 < 60) * 1e9 + (times % 3600 < 90) * 1.2e9
    result = detect_even(make_even(values, 1 / 30))
    assert candidate_periods(result) == pytest.approx([780, 3600], rel=1e-3)
    assert result.period_s[0] == pytest.approx(780, rel=1e-3)


@pytest.mark.parametrize("period", [5, 8, 20, 31, 60])
def test_pulse_train_has_no_multiples_or_fractions_of_its_period(period: int) -> None:
    assert candidate_periods(detect_even(make_even(pulses(1000, period, period / 5)))) == [period]


def test_leakage_of_a_strong_peak_is_no_additional_period() -> None:
    times = np.arange(0, 300, 0.1)
    values = np.sin(2 * np.pi * times / 7) + 0.8 * np.sin(2 * np.pi * times / 31.3)
    assert candidate_periods(detect_even(make_even(values, 10))) == pytest.approx([7], rel=0.03)


def test_tops_are_interpolated_between_samples() -> None:
    random = np.random.default_rng(0)
    for period in random.uniform(20, 60, 10):
        values = np.maximum(np.sin(2 * np.pi * np.arange(1200) / period), 0) ** 2
        assert detect_even(make_even(values)).period_s[0] == pytest.approx(period, rel=2e-3)


def test_period_is_found_in_samples_at_random_times() -> None:
    random = np.random.default_rng(1)
    times = np.sort(random.uniform(0, 2000, 900))
    result = detect(at_instants(times, np.sin(2 * np.pi * times / 37.7) + random.normal(size=900) / 2))
    assert result.period_s[0] == pytest.approx(37.7, rel=0.01)


def test_lost_polls_do_not_count_as_zeros() -> None:
    random = np.random.default_rng(2)
    values = np.sin(2 * np.pi * np.arange(600) / 24) + 50
    values[random.random(600) < 0.4] = NAN
    values[200:260] = NAN
    even = make_even(values, 0.1)
    for result in (detect_even(even), detect(UnevenSignals.from_signals(even))):
        assert result.period_s[0] == pytest.approx(240, rel=0.005)
        assert result.candidates.amplitude_bytes_per_s[0] == pytest.approx(1, rel=0.05)


def test_fewer_than_two_cycles_are_no_period() -> None:
    values = np.sin(2 * np.pi * np.arange(400) / 215)
    assert detect_even(make_even(values)).outcome.tolist() == ["aperiodic"]
    values = np.sin(2 * np.pi * np.arange(400) / 150)
    assert detect_even(make_even(values)).period_s[0] == pytest.approx(150, rel=0.02)


def test_single_burst_is_no_period() -> None:
    values = np.zeros((3, 1000))
    values[0, 100:130] = values[1, :250] = 1e9
    values[2] = np.arange(1000)
    assert detect_even(make_even(values)).outcome.tolist() == ["aperiodic"] * 3


# ---- the naive implementation


def draw_mixed_signals(random: np.random.Generator, count: int) -> Reals:
    values = random.normal(size=count) + 3 * pulses(count, random.uniform(4, 25), 2) / 1e9
    values += random.uniform(0, 2) * np.sin(2 * np.pi * np.arange(count) / random.uniform(6, 50))
    return values


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_periods_match_naive_implementation(missing: float) -> None:
    random = np.random.default_rng(4)
    values = np.stack([draw_mixed_signals(random, 110) for _ in range(12)])
    values[random.random(values.shape) < missing] = NAN
    result = detect_even(make_even(values))
    expected = [naive.find_periods(row.tolist()) for row in values]
    assert sum(map(bool, expected)) > 6
    assert max(map(len, expected)) > 1
    for row, wanted in enumerate(expected):
        assert candidate_periods(result, row) == pytest.approx(wanted, rel=1e-9)


def test_even_and_uneven_search_agree_on_even_samples() -> None:
    random = np.random.default_rng(5)
    values = np.stack([draw_mixed_signals(random, 150) for _ in range(20)])
    signals = make_even(values, 1 / 30)
    single, other = detect_even(signals), detect(UnevenSignals.from_signals(signals))
    assert single.outcome.tolist() == other.outcome.tolist()
    np.testing.assert_allclose(single.candidates.frequency_hz, other.candidates.frequency_hz, rtol=1e-6)
    np.testing.assert_allclose(
        single.candidates.amplitude_bytes_per_s, other.candidates.amplitude_bytes_per_s, rtol=1e-6
    )
    np.testing.assert_allclose(single.false_alarm_probability, other.false_alarm_probability, rtol=1e-5)


@pytest.mark.parametrize("significance", ["exponential", "monte_carlo"])
def test_results_are_independent_of_the_batch(significance: str) -> None:
    random = np.random.default_rng(6)
    pairs = [(np.sort(random.uniform(0, n, n)), draw_mixed_signals(random, n)) for n in (40, 300, 90, 91, 1000, 90)]
    params = AutoperiodParams(significance=significance, permutation_count=19)  # type: ignore[arg-type]
    times, values = (np.concatenate([pair[place] for pair in pairs]) for place in (0, 1))
    offsets = np.concatenate([[0], np.cumsum([len(pair[0]) for pair in pairs])])
    result = detect(UnevenSignals.from_intervals(times, np.zeros(len(times)), Ragged(values, offsets)), params)
    for row, (time, value) in enumerate(pairs):
        alone = detect(at_instants(time, value), params)
        assert result.outcome[row] == alone.outcome[0]
        assert candidate_periods(result, row) == pytest.approx(candidate_periods(alone), rel=1e-9)
        np.testing.assert_allclose(result.false_alarm_probability[row], alone.false_alarm_probability[0], rtol=1e-6)


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 1000), st.integers(-200, 200), st.floats(-3, 3), st.sampled_from([1 / 60, 1 / 3600, 86400.0]))
def test_results_are_independent_of_units(seed: int, exponent: int, level: float, unit: float) -> None:
    values = draw_mixed_signals(np.random.default_rng(seed), 80)
    single = detect_even(make_even(values))
    other = detect_even(make_even((values + level) * 10.0**exponent, 1 / unit))
    assert other.outcome.tolist() == single.outcome.tolist()
    assert [period / unit for period in candidate_periods(other)] == pytest.approx(candidate_periods(single), rel=1e-6)


# ---- noise


def test_white_noise_is_rarely_periodic() -> None:
    values = np.random.default_rng(7).normal(size=(400, 300))
    assert detect_even(make_even(values)).is_periodic.mean() <= 0.02


def test_monte_carlo_threshold_has_the_factor_missing_in_the_reference() -> None:
    # For such noise the threshold of the reference is 5.56, half of the unit of its powers.
    values = np.random.default_rng(8).normal(size=(20, 600))
    result = analyze_even(make_even(values), AutoperiodParams(significance="monte_carlo"))
    assert result.thresholds.mean() == pytest.approx(9.1, abs=0.4)
    assert (result.powers.max(axis=1) > result.thresholds).mean() <= 0.2
    assert analyze_even(make_even(values)).thresholds[0] == pytest.approx(9.56, abs=0.01)


def test_monte_carlo_threshold_depends_on_the_distribution_of_values() -> None:
    # A few large bursts have larger powers by chance than normal noise, as PEARC'18's Figure 7 shows.
    random = np.random.default_rng(9)
    values = np.where(random.random((10, 400)) < 0.01, 1e9, 0.0)
    values[:, 0] = 1e9
    by_chance = analyze_even(make_even(values), AutoperiodParams(significance="monte_carlo"))
    uneven = analyze(UnevenSignals.from_signals(make_even(values)), AutoperiodParams(significance="monte_carlo"))
    np.testing.assert_allclose(by_chance.thresholds, uneven.thresholds, rtol=1e-6)
    assert (by_chance.thresholds != analyze_even(make_even(values)).thresholds).all()


def test_monte_carlo_probability_is_a_rank() -> None:
    params = AutoperiodParams(significance="monte_carlo", permutation_count=19)
    result = detect_even(make_even(pulses(400, 20, 4)), params)
    assert result.false_alarm_probability.tolist() == [1 / 20]


@pytest.mark.parametrize(
    ("significance", "confidence", "rank"),
    [("monte_carlo", 0.99, 99), ("monte_carlo", 0.9, 90), ("permutation_test", 0.99, 100)],
)
def test_threshold_has_its_rank_among_the_maxima_of_permutations(
    significance: str, confidence: float, rank: int
) -> None:
    """SDM'05, section 3.1: with a confidence of 99 %, the 99th of 100 maxima."""
    values = np.random.default_rng(11).exponential(size=(3, 60))
    params = AutoperiodParams(significance=significance, confidence=confidence)  # type: ignore[arg-type]
    result = analyze_even(make_even(values), params)
    frequency = (5 + np.arange(result.powers.shape[1])) / (5 * 59)
    for row, signal in enumerate(values):
        random, standard = np.random.default_rng(0), (signal - signal.mean()) / signal.std()
        shuffled = random.permuted(np.tile(standard, (100, 1)), axis=1)
        powers = [lombscargle(np.arange(60.0), each, 2 * np.pi * frequency) for each in shuffled]
        assert result.thresholds[row] == pytest.approx(np.sort(np.max(powers, axis=1))[rank - 1], rel=1e-9)


def test_permutation_test_has_its_significance_level() -> None:
    values = np.random.default_rng(12).exponential(size=(2000, 40))
    share = {}
    for significance in ("monte_carlo", "permutation_test"):
        params = AutoperiodParams(significance=significance, confidence=0.95, permutation_count=20)  # type: ignore[arg-type]
        result = analyze_even(make_even(values), params)
        share[significance] = (result.powers.max(axis=1) > result.thresholds).mean()
    assert share["monte_carlo"] == pytest.approx(2 / 21, abs=0.02)
    assert share["permutation_test"] == pytest.approx(1 / 21, abs=0.015)


def test_permutations_are_determined_by_the_seed() -> None:
    values = make_even(np.random.default_rng(10).normal(size=(1, 100)))
    params = AutoperiodParams(significance="monte_carlo")
    first, again, other = (analyze_even(values, replace(params, seed=seed)).maxima.tolist() for seed in (0, 0, 1))
    assert first == again != other


# ---- degenerate input


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([], "no_data"),
        ([NAN] * 50, "no_data"),
        ([1.0], "too_short"),
        ([1.0, 2.0] * 9, "too_short"),
        ([0.0] * 50, "no_io"),
        ([0.1] * 50, "aperiodic"),
        ([5e-324, 0.0] * 50, "aperiodic"),
        ([1.7e308, -1.7e308, 3.0] * 50, "aperiodic"),
        ([1.0, 2.0] * 15 + [NAN] * 70, "too_many_gaps"),
    ],
)
def test_signals_without_a_period_have_an_outcome(values: list[float], outcome: str) -> None:
    row = np.array([values], dtype=np.float64)
    result = detect_even(make_even(row))
    assert result.outcome.tolist() == [outcome]
    assert outcome in OUTCOMES
    assert np.isnan([result.frequency_hz[0], result.period_s[0], result.false_alarm_probability[0]]).all()
    uneven = detect(UnevenSignals.from_signals(make_even(row)))
    # In uneven samples, missing samples at the ends are unknown.
    assert uneven.outcome.tolist() == [outcome if outcome != "too_many_gaps" else "aperiodic"]


def test_empty_input_returns_no_signals() -> None:
    none = UnevenSignals.from_intervals(np.zeros(0), np.zeros(0), Ragged(np.zeros(0), np.zeros(1, dtype=np.int64)))
    assert detect(none).signal_count == detect_even(make_even(np.zeros((0, 40)))).signal_count == 0


@pytest.mark.parametrize("times", [np.zeros(50), np.full(50, 1e308), np.linspace(-1, 1, 50) * 1.7e308])
def test_degenerate_times_have_an_outcome(times: Reals) -> None:
    assert detect(at_instants(times, np.arange(50.0))).outcome.tolist() == ["too_short"]


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.floats(), st.integers(0, 60).map(float)),
            st.one_of(st.floats(), st.sampled_from([0.0, 1.0, NAN, 1e9])),
        ),
        max_size=80,
    ),
    st.sampled_from(["exponential", "monte_carlo", "permutation_test"]),
)
def test_any_samples_have_an_outcome(pairs: list[tuple[float, float]], significance: str) -> None:
    times, values = (np.array([pair[place] for pair in pairs], dtype=np.float64) for place in (0, 1))
    params = AutoperiodParams(significance=significance, permutation_count=9)  # type: ignore[arg-type]
    for result in (detect(at_instants(times, values), params), detect_even(make_even(values[None]), params)):
        assert result.outcome[0] in OUTCOMES
        assert np.isfinite(result.frequency_hz[0]) == result.is_periodic[0]
        assert not result.is_periodic[0] or result.period_s[0] > 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"confidence": 1.0},
        {"significance": "permutation_test", "permutation_count": 8},
        {"significance": "other"},
        {"samples_per_peak": 0},
        {"min_window": 4},
        {"min_cycle_count": 0.5},
    ],
)
def test_invalid_parameters_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        AutoperiodParams(**wrong)  # type: ignore[arg-type]

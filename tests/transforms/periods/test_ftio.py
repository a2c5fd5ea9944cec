"""Periods by the discrete Fourier transform: square waves, the rules of section II-B2, and the example of the paper."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Reals
from iosig.transforms.periods.ftio import DftParams, detect
from iosig.transforms.periods.ftio_outliers import Merge, Method, OutlierParams, find_outliers
from iosig.transforms.periods.interface.detections import OUTCOMES, Detections
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.throughput.even_values import Instants, sample_at
from iosig.transforms.throughput.requests import Requests, step_function
from tests.budget import examples
from tests.naive.periods import ftio as naive, ftio_spectra as naive_spectra

METHODS: tuple[Method, ...] = get_args(Method)


def cosines(powers: dict[int, float], count: int = 400, seed: int | None = None) -> EvenSignals:
    """A signal with the given powers at bins k, and random phases."""
    random = np.random.default_rng(seed or 0)
    at = np.arange(count)
    result: Reals = np.full(count, 50.0)
    for k, power in powers.items():
        result += np.sqrt(power) * np.cos(2 * np.pi * k * at / count + random.uniform(0, 6))
    return EvenSignals.from_samples(result, 1.0)


def waves(burst_s: float, hz: float, duration_s: float = 1000.0) -> EvenSignals:
    """Bursts every 20 s, over a whole number of periods."""
    onsets = np.arange(0.0, duration_s, 20.0)
    steps = step_function(Requests.from_arrays(onsets, onsets + burst_s, np.full(len(onsets), 1e9 * burst_s)))
    sampling = Instants(np.zeros(1), np.array([hz]), np.array([int(duration_s * hz)]))
    return EvenSignals.from_samples(sample_at(steps, sampling).values, hz)


def listed(result: Detections, signal: int = 0) -> list[float]:
    first, last = result.candidates.offsets[signal : signal + 2]
    return result.candidates.frequency_hz[first:last].tolist()


# ---- periods


@pytest.mark.parametrize("hz", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("burst_s", [0.3, 0.9, 1.5])
@pytest.mark.parametrize("method", ["z_score", "dbscan", "find_peaks"])
def test_square_waves_have_their_period_of_20_s(burst_s: float, hz: float, method: Method) -> None:
    result = detect(waves(burst_s, hz), DftParams(method=method))
    assert result.outcome.tolist() == ["periodic"]
    assert result.period_s[0] == pytest.approx(20.0, rel=1e-12)
    assert 0.53 < result.confidence[0] <= 1.0 + 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_a_plain_period(method: Method) -> None:
    result = detect(cosines({10: 9.0, 33: 1.0, 71: 0.5}), DftParams(method, OutlierParams(forest_tree_count=20)))
    assert result.period_s.tolist() == [40.0]
    assert 0.5 < result.confidence[0] <= 1.0
    assert result.candidates.amplitude_bytes_per_s[0] == pytest.approx(3.0)


def test_outcome_depends_on_the_number_of_candidates() -> None:
    single, two, three = (cosines(powers) for powers in ({7: 9.0}, {7: 9.0, 10: 8.5}, {7: 9.0, 10: 8.5, 13: 8.8}))
    result = detect(single)
    assert (result.outcome[0], result.frequency_hz[0], result.confidence[0]) == (
        "periodic",
        7 / 400,
        pytest.approx(1.0),
    )
    result = detect(two)
    assert (result.outcome[0], result.frequency_hz[0], listed(result)) == ("periodic", 7 / 400, [7 / 400, 10 / 400])
    assert result.candidates.confidence.sum() == pytest.approx(1.0)
    assert result.confidence[0] == result.candidates.confidence[0] > 0.5
    result = detect(three)
    assert (result.outcome[0], listed(result)) == ("aperiodic", [7 / 400, 13 / 400, 10 / 400])
    assert np.isnan([result.frequency_hz[0], result.confidence[0], *result.candidates.confidence]).all()
    result = detect(three, DftParams(max_candidates=3))
    assert result.frequency_hz[0] == 7 / 400


def test_all_integer_multiples_are_harmonics() -> None:
    result = detect(cosines({7: 9.0, 14: 8.9, 21: 8.8, 35: 9.5, 70: 8.7}))
    assert (result.outcome[0], listed(result)) == ("periodic", [7 / 400])
    assert result.confidence[0] == pytest.approx(1.0)
    # A multiple of a harmonic, and a multiple of a second fundamental.
    assert listed(detect(cosines({6: 9.0, 12: 9.0, 36: 9.0, 25: 8.5, 75: 8.4}))) == [6 / 400, 25 / 400]


def test_frequencies_in_the_upper_half_have_no_harmonics() -> None:
    assert listed(detect(cosines({150: 9.0, 170: 8.5}))) == [150 / 400, 170 / 400]


def test_harmonics_do_not_depend_on_float_division() -> None:
    assert 0.3 % 0.1 > 1e-5
    result = detect(replace(cosines({3: 9.0, 9: 8.0, 15: 8.0}, 90), sampling_hz=np.array([3.0])))
    assert result.frequency_hz[0] == pytest.approx(0.1)


def test_window_length_is_no_period() -> None:
    result = detect(cosines({1: 9.0}))
    assert (result.outcome[0], listed(result)) == ("aperiodic", [])
    # A drift counts as a candidate, has no harmonics, and wins if it is stronger than the period.
    result = detect(cosines({1: 8.5, 20: 9.0}))
    assert (result.outcome[0], result.period_s[0]) == ("periodic", 20.0)
    assert result.confidence[0] == pytest.approx(9.0 / 17.5, abs=0.01)
    result = detect(cosines({1: 9.0, 20: 8.5}))
    assert (result.outcome[0], listed(result)) == ("aperiodic", [20 / 400])
    assert detect(cosines({1: 8.5, 20: 9.0, 33: 8.7})).outcome[0] == "aperiodic"
    assert detect(cosines({1: 9.0}), DftParams(min_cycle_count=1)).period_s[0] == 400.0
    assert detect(cosines({3: 9.0}), DftParams(min_cycle_count=4)).outcome[0] == "aperiodic"


def test_confidence_matches_the_example_of_the_paper_at_two_tolerances() -> None:
    """Section II-C: 7,817 samples; 60.5 %, and 62.5 % once the harmonic is a candidate and excluded from the sums."""
    others = dict.fromkeys([11, 13, 17, 19, 23, 29, 31, 37, 41, 43], 0.3)
    signal = cosines({7: 1.0, 14: 0.762, **others}, 7817)
    plain = detect(signal)
    assert plain.frequency_hz[0] == 7 / 7817
    assert plain.confidence[0] == pytest.approx(0.605, abs=0.001)
    lower = detect(signal, DftParams(outliers=OutlierParams(tolerance=0.45)))
    assert (lower.frequency_hz[0], listed(lower)) == (7 / 7817, [7 / 7817])
    assert lower.confidence[0] == pytest.approx(0.625, abs=0.001)


SIGNALS = st.integers(20, 60).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(st.tuples(st.integers(1, count // 2), st.floats(0.1, 4.0)), min_size=1, max_size=4),
        st.floats(0.0, 0.5),
        st.integers(0, 1000),
    )
)


@settings(max_examples=examples(80), deadline=None)
@given(SIGNALS)
def test_results_match_naive_implementation(drawn: tuple[int, list[tuple[int, float]], float, int]) -> None:
    count, lines, noise, seed = drawn
    random = np.random.default_rng(seed)
    samples = sum(height * np.cos(2 * np.pi * k * np.arange(count) / count) for k, height in lines)
    samples = samples + noise * random.standard_normal(count) + 0.01 * random.standard_normal(count)
    result = detect(EvenSignals.from_samples(samples, 2.0))
    expected = naive.find_dominant(naive_spectra.compute_z_scores(naive_spectra.compute_power(samples.tolist())))
    if expected is None:
        assert result.outcome[0] == "aperiodic"
    else:
        assert result.frequency_hz[0] == pytest.approx(expected[0] * 2.0 / count, rel=1e-12)
        assert result.confidence[0] == pytest.approx(expected[1], rel=1e-9)


# ---- outliers of two methods


@pytest.mark.parametrize("merge", ["agreement", "union"])
@pytest.mark.parametrize("method", METHODS[1:])
def test_merged_methods_find_a_plain_period_with_their_mean_confidence(method: Method, merge: Merge) -> None:
    signal = cosines({10: 9.0, 33: 1.0, 71: 0.5})
    own, z_score, merged = (
        detect(signal, DftParams(name, OutlierParams(forest_tree_count=20), merging))
        for name, merging in ((method, "none"), ("z_score", merge), (method, merge))
    )
    assert merged.period_s.tolist() == [40.0]
    assert merged.confidence[0] == pytest.approx((own.confidence[0] + z_score.confidence[0]) / 2)


def test_agreement_keeps_common_candidates_and_union_all() -> None:
    # Two adjacent bins are one cluster of DBSCAN; among 9 bins, no Z-score reaches 3.
    adjacent, short = cosines({20: 9.0, 21: 8.9}), cosines({5: 9.0}, 18)
    assert listed(detect(adjacent)) == [20 / 400, 21 / 400]
    for method, merge, adjacent_hz, short_outcome in (
        ("dbscan", "none", [], "periodic"),
        ("dbscan", "agreement", [], "too_short"),
        ("dbscan", "union", [20 / 400, 21 / 400], "periodic"),
        ("find_peaks", "agreement", [20 / 400], "too_short"),
    ):
        params = DftParams(method, merge=merge)  # type: ignore[arg-type]
        assert listed(detect(adjacent, params)) == adjacent_hz
        assert detect(short, params).outcome[0] == short_outcome
    # a method without an outlier at the frequency has no confidence in it
    assert detect(adjacent, DftParams("dbscan", merge="union")).confidence[0] == pytest.approx(
        detect(adjacent).confidence[0] / 2
    )


def test_merged_results_are_independent_of_the_batch() -> None:
    rows = np.concatenate([cosines({10 + place: 9.0}, seed=place).bytes_per_s for place in range(4)])
    rows[1], rows[2, :300] = 0.0, np.nan
    params = DftParams("find_peaks", merge="agreement")
    together = detect(EvenSignals(rows, np.ones(4), np.zeros(4)), params)
    alone = [detect(EvenSignals.from_samples(row, 1.0), params) for row in rows]
    assert together.outcome.tolist() == [result.outcome[0] for result in alone]
    assert together.outcome.tolist() == ["periodic", "no_io", "too_many_gaps", "periodic"]
    np.testing.assert_allclose(together.confidence, [result.confidence[0] for result in alone])


@settings(max_examples=examples(80), deadline=None)
@given(SIGNALS, st.sampled_from(["dbscan", "find_peaks"]), st.sampled_from(["agreement", "union"]))
def test_merged_results_match_naive_implementation(
    drawn: tuple[int, list[tuple[int, float]], float, int], method: Method, merge: Merge
) -> None:
    count, lines, noise, seed = drawn
    random = np.random.default_rng(seed)
    samples = sum(height * np.cos(2 * np.pi * k * np.arange(count) / count) for k, height in lines)
    samples = samples + noise * random.standard_normal(count) + 0.01 * random.standard_normal(count)
    result = detect(EvenSignals.from_samples(samples, 2.0), DftParams(method, merge=merge))
    power = naive_spectra.compute_power(samples.tolist())
    own = find_outliers(np.array([power]), method)
    expected = naive.find_merged(
        naive_spectra.compute_z_scores(power),
        dict(zip(own.bin.tolist(), own.score.tolist(), strict=True)),
        set(own.bin[own.is_candidate].tolist()),
        merge,
    )
    if expected is None:
        assert result.outcome[0] == "aperiodic"
    else:
        assert result.frequency_hz[0] == pytest.approx(expected[0] * 2.0 / count, rel=1e-12)
        assert result.confidence[0] == pytest.approx(expected[1], rel=1e-9)


# ---- outcomes


@pytest.mark.filterwarnings("error")
def test_signals_without_a_period_have_an_outcome() -> None:
    nan = np.nan
    for samples, outcome in (
        ([], "no_data"),
        ([nan] * 50, "no_data"),
        ([1.0], "too_short"),
        ([0.0, 5.0] * 9 + [0.0], "too_short"),
        ([0.0] * 50, "no_io"),
        ([0.0] * 10 + [nan] * 90, "too_many_gaps"),
        ([0.1] * 99, "aperiodic"),
        ([1e300] * 99, "aperiodic"),
        ([0.0] * 40 + [5.0] + [0.0] * 40, "aperiodic"),
        ([np.inf, -np.inf] * 30, "no_data"),
    ):
        for method in METHODS:
            result = detect(
                EvenSignals.from_samples(samples, 1.0), DftParams(method, OutlierParams(forest_tree_count=20))
            )
            is_too_short_for_scores = outcome == "too_short" and len(samples) > 1 and method != "z_score"
            assert is_too_short_for_scores or result.outcome.tolist() == [outcome]
            if result.outcome[0] != "periodic":
                assert np.isnan([result.frequency_hz[0], result.confidence[0], result.period_s[0]]).all()
    assert set(OUTCOMES) >= {"no_data", "too_short", "no_io", "too_many_gaps", "aperiodic", "periodic"}


def test_constants_are_not_periodic() -> None:
    """FTIO 0.0.9 finds 0.0909 Hz with a confidence of 1 in 99 equal samples."""
    values = np.random.default_rng(5).uniform(0, 1e9, 300)
    assert set(detect(EvenSignals(np.repeat(values[:, None], 99, 1), np.ones(300), np.zeros(300))).outcome) == {
        "aperiodic"
    }


def test_gaps_do_not_count_as_zeros() -> None:
    samples = waves(5.0, 1.0).bytes_per_s[0].copy()
    samples[np.random.default_rng(2).random(len(samples)) < 0.3] = np.nan
    result = detect(EvenSignals.from_samples(samples, 1.0))
    assert result.period_s[0] == pytest.approx(20.0)
    # Polls that are missing every 50 s do not make a constant periodic.
    constant = np.full(1000, 3e9)
    constant[::50] = np.nan
    assert detect(EvenSignals.from_samples(constant, 1.0)).outcome[0] == "aperiodic"


@pytest.mark.parametrize("scale", [5e-320, 1e-200, 1e-3, 1e6, 1e250])
def test_results_are_independent_of_the_unit_of_bytes(scale: float) -> None:
    signal = cosines({7: 9.0, 10: 8.5, 31: 3.0})
    plain, scaled = detect(signal), detect(replace(signal, bytes_per_s=signal.bytes_per_s * scale))
    assert scaled.frequency_hz.tolist() == plain.frequency_hz.tolist()
    assert scaled.confidence[0] == pytest.approx(plain.confidence[0], rel=1e-3 if scale < 1e-300 else 1e-9)


def test_results_are_independent_of_the_unit_of_time() -> None:
    signal = cosines({7: 9.0, 14: 8.5, 31: 3.0})
    minutes, hours = (detect(replace(signal, sampling_hz=np.array([hz]))) for hz in (1 / 60, 1e-7))
    assert minutes.period_s[0] == pytest.approx(60 * 400 / 7)
    # Below 1e-5 Hz FTIO 0.0.9 treats all frequencies as harmonics.
    assert hours.period_s[0] == pytest.approx(1e7 * 400 / 7)


def test_results_are_independent_of_the_batch() -> None:
    random = np.random.default_rng(8)
    rows = np.stack(
        [cosines({5 + place % 40: 9.0, 77: 4.0 * (place % 3)}, 1000).bytes_per_s[0] for place in range(500)]
    )
    rows += random.standard_normal(rows.shape) * random.uniform(0, 5, 500)[:, None]
    rows[3], rows[77, 5:], rows[200] = 0.0, np.nan, 7.0
    hz, started = random.uniform(0.1, 10, 500), random.uniform(-9, 9, 500)
    together = detect(EvenSignals(rows, hz, started))
    assert {"periodic", "aperiodic", "no_io", "too_many_gaps"} == set(together.outcome)
    for place in (0, 3, 77, 131, 132, 200, 377, 499):
        alone = detect(EvenSignals(rows[place : place + 1], hz[place : place + 1], started[place : place + 1]))
        assert together.outcome[place] == alone.outcome[0]
        np.testing.assert_allclose(together.frequency_hz[place], alone.frequency_hz[0], rtol=1e-12)
        np.testing.assert_allclose(together.confidence[place], alone.confidence[0], rtol=1e-9)
        np.testing.assert_allclose(listed(together, place), listed(alone), rtol=1e-12)
    np.testing.assert_array_equal(together.window_start_s, started)
    np.testing.assert_allclose(together.window_end_s, started + 1000 / hz)
    assert np.isnan(together.false_alarm_probability).all()
    assert detect(EvenSignals(rows[:0], hz[:0], started[:0])).signal_count == 0

"""Autocorrelation: the functions by definition, peaks as in SciPy, and periods."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.signal import find_peaks

from iosig.studies.periods import noise
from iosig.transforms.periods.autocorrelation import (
    AutocorrelationParams,
    Peaks,
    Reals,
    correlate_circular,
    correlate_linear,
    correlate_with_gaps,
    detect,
    find_row_peaks,
    measure_distances,
)
from iosig.transforms.periods.interface.detections import OUTCOMES
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.throughput.even_values import Grid, bin_requests
from iosig.transforms.throughput.requests import Requests
from tests.budget import examples, one_in
from tests.naive.periods import autocorrelation as naive

NAN = float("nan")
BOUNDED = settings(max_examples=examples(60), deadline=None)

#: Signals vary clearly or not at all; otherwise rounding would decide whether the last digit varies.
rates = st.one_of(st.integers(0, 5).map(float), st.floats(0, 1e12).map(lambda value: round(value, 3)))
signals = st.lists(rates, min_size=2, max_size=40).filter(lambda row: np.ptp(row) > 1e-6 * np.max(row))


def square(period: int, burst: int, count: int) -> Reals:
    return (np.arange(count) % period < burst).astype(float)


# ---- the functions


@BOUNDED
@given(signals)
def test_linear_and_circular_correlation_match_naive_implementation(row: list[float]) -> None:
    values = np.array([row])
    np.testing.assert_allclose(correlate_linear(values)[0], naive.correlate(row), atol=1e-9)
    np.testing.assert_allclose(correlate_circular(values)[0], naive.correlate(row, is_circular=True), atol=1e-9)


@BOUNDED
@given(signals)
def test_masked_correlation_without_gaps_equals_unmasked_correlation(row: list[float]) -> None:
    values = np.array([row])
    np.testing.assert_allclose(correlate_with_gaps(values), correlate_linear(values), atol=1e-9)
    np.testing.assert_allclose(correlate_with_gaps(values, is_circular=True), correlate_circular(values), atol=1e-9)


@pytest.mark.parametrize("is_circular", [False, True])
@BOUNDED
@given(data=st.data())
def test_masked_correlation_with_gaps_matches_naive_implementation(is_circular: bool, data: st.DataObject) -> None:
    row = np.array(data.draw(signals))
    gaps = data.draw(st.lists(st.booleans(), min_size=len(row), max_size=len(row)))
    gappy = np.where(gaps, NAN, row)
    known = row[~np.array(gaps)]
    if not len(known) or np.ptp(known) <= 1e-6 * known.max():
        assert np.isnan(correlate_with_gaps(gappy[None])).all()
        return
    result = correlate_with_gaps(gappy[None], is_circular=is_circular, min_pair_ratio=0.0)[0]
    expected = np.array(naive.correlate(gappy.tolist(), is_circular=is_circular))
    is_known = np.isfinite(expected)
    scale = np.abs(expected[is_known]).max()
    np.testing.assert_allclose(result[is_known], expected[is_known], atol=1e-9 * scale)
    places = np.arange(len(row))
    bridged = np.interp(places, places[is_known], expected[is_known], right=NAN)
    np.testing.assert_allclose(result, bridged, atol=1e-9 * scale)


def test_linear_correlation_equals_ftio() -> None:
    values = np.random.default_rng(1).exponential(1e9, (3, 501))
    for row, result in zip(values, correlate_linear(values), strict=True):
        centerd = row - row.mean()
        expected = np.correlate(centerd, centerd, "full")[500:] / row.var() / 501
        np.testing.assert_allclose(result, expected, atol=1e-14)


def test_chunking_does_not_change_results() -> None:
    values = np.random.default_rng(2).random((300, 1000))
    values[::7, 10] = NAN
    for function in (correlate_linear, correlate_circular, correlate_with_gaps):
        alone = np.concatenate([function(values[place : place + 1]) for place in (0, 1, 150, 299)])
        np.testing.assert_array_equal(function(values)[[0, 1, 150, 299]], alone)
    assert np.isnan(correlate_linear(values)[::7]).all()
    assert np.isfinite(correlate_linear(values)[1]).all()


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1.0, 1e200, 1e307])
def test_correlation_is_independent_of_the_unit(scale: float) -> None:
    values = np.random.default_rng(3).integers(0, 9, (2, 64)).astype(float)
    np.testing.assert_allclose(correlate_linear(values * scale), correlate_linear(values), atol=1e-12)
    values[:, 5] = NAN
    np.testing.assert_allclose(correlate_with_gaps(values * scale), correlate_with_gaps(values), atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e300, -3.0])
def test_constant_signals_have_no_correlation(value: float) -> None:
    values = np.full((2, 99), value)
    values[1, 3] = NAN
    for function in (correlate_linear, correlate_circular, correlate_with_gaps):
        assert np.isnan(function(values)).all()


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (3, 0), (3, 1)])
def test_empty_input_has_no_correlation(shape: tuple[int, int]) -> None:
    for function in (correlate_linear, correlate_circular, correlate_with_gaps):
        assert function(np.zeros(shape)).shape == shape
        assert np.isnan(function(np.zeros(shape))).all()


# ---- peaks


@settings(max_examples=examples(200), deadline=None)
@given(st.data(), st.integers(0, 12), st.integers(1, 5))
def test_peaks_equal_scipy(data: st.DataObject, count: int, rows: int) -> None:
    levels = st.sampled_from([0.0, 0.1, 0.15, 0.15, 0.5, 1.0, NAN])
    table = np.array([data.draw(st.lists(levels, min_size=count, max_size=count)) for _ in range(rows)])
    result = find_row_peaks(table, 0.15)
    for number, row in enumerate(table):
        expected, properties = find_peaks(row, height=0.15)
        assert result.place[result.row == number].tolist() == expected.tolist()
        assert result.height[result.row == number].tolist() == properties["peak_heights"].tolist()
    assert (np.diff(result.row) >= 0).all()


# ---- distances


@BOUNDED
@given(st.lists(st.tuples(st.integers(2, 40), st.floats(0.15, 1.0)), min_size=2, max_size=12), st.floats(0.5, 3.0))
def test_distances_without_outliers_match_naive_implementation(steps: list[tuple[int, float]], max_z: float) -> None:
    place = np.cumsum([width for width, _ in steps])
    height = np.array([height for _, height in steps])
    result = measure_distances(Peaks(np.zeros(len(place), dtype=np.int64), place, height), 1, max_z).drop_outliers()
    assert result.samples.tolist() == naive.select_distances(place.tolist(), height.tolist(), max_z)


def test_two_distances_of_equal_weight_are_no_outliers() -> None:
    """Both have a Z-score of 1, except for rounding."""
    result = measure_distances(Peaks(np.zeros(3, dtype=np.int64), np.array([3, 10, 30]), np.full(3, 0.3)), 1)
    assert result.is_kept.all()


def test_outlying_distances_are_dropped() -> None:
    place = np.array([10, 20, 30, 33, 40, 50, 60])
    height = np.array([0.9, 0.8, 0.7, 0.2, 0.6, 0.5, 0.4])
    result = measure_distances(Peaks(np.zeros(7, dtype=np.int64), place, height), 1)
    assert result.samples[~result.is_kept].tolist() == [3.0, 7.0]


# ---- detection


@pytest.mark.parametrize(("period", "burst"), [(20, 3), (20, 9), (50, 1), (7, 2)])
@pytest.mark.parametrize("hz", [0.1, 1.0, 10.0])
def test_square_wave_has_its_period(period: int, burst: int, hz: float) -> None:
    result = detect(EvenSignals.from_samples(1e9 * square(period, burst, 20 * period), hz, 5.0))
    assert result.outcome.tolist() == ["periodic"]
    assert result.period_s[0] == pytest.approx(period / hz)
    assert result.confidence[0] == pytest.approx(1.0)
    assert (result.window_start_s[0], result.window_end_s[0]) == (5.0, 5.0 + 20 * period / hz)
    assert np.isnan(result.false_alarm_probability[0])


def test_few_gaps_do_not_change_the_period() -> None:
    signal = square(20, 5, 600)
    signal[np.random.default_rng(4).random(600) < 0.2] = NAN
    assert detect(EvenSignals.from_samples(signal, 1.0)).period_s[0] == pytest.approx(20.0, rel=0.01)


def test_period_is_found_if_every_second_sample_is_missing() -> None:
    signal = square(40, 10, 800)
    signal[1::2] = NAN
    result = detect(EvenSignals.from_samples(signal, 1.0))
    assert result.period_s[0] == pytest.approx(40.0, rel=0.01)


def test_signals_without_a_period_have_an_outcome() -> None:
    count = 40
    rows = {
        "no_data": np.full(count, NAN),
        "too_many_gaps": np.where(np.arange(count) < 21, NAN, square(4, 1, count)),
        "no_io": np.zeros(count),
        "aperiodic": np.full(count, 7.0),
        "periodic": square(4, 1, count),
    }
    ramp, infinite, gappy = np.arange(float(count)), np.full(count, np.inf), np.zeros(count)
    gappy[3] = NAN
    result = detect(EvenSignals(np.stack([*rows.values(), ramp, infinite, gappy]), np.ones(8), np.zeros(8)))
    assert result.outcome.tolist() == [*rows, "aperiodic", "no_data", "no_io"]
    assert np.isfinite(result.frequency_hz).tolist() == result.is_periodic.tolist()
    assert np.isfinite(result.confidence).tolist() == result.is_periodic.tolist()
    assert np.diff(result.candidates.offsets)[~result.is_periodic].sum() == 0


@pytest.mark.parametrize(("count", "expected"), [(0, "no_data"), (1, "too_short"), (4, "too_short"), (5, "aperiodic")])
def test_signals_too_short_for_two_peaks_have_an_outcome(count: int, expected: str) -> None:
    assert detect(
        EvenSignals.from_samples(square(2, 1, count), 1.0), AutocorrelationParams(min_height=-1.0)
    ).outcome == [expected]
    assert detect(EvenSignals(np.zeros((0, count)), np.zeros(0), np.zeros(0))).signal_count == 0


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 1e307])
def test_extreme_rates_have_the_same_period(scale: float) -> None:
    signal = EvenSignals.from_samples(scale * square(20, 5, 400), 1.0)
    assert detect(signal).period_s[0] == pytest.approx(20.0)


def test_candidates_are_distances_by_descending_weight() -> None:
    signal = EvenSignals.from_samples(square(20, 5, 200), 2.0)
    result = detect(signal)
    assert (1.0 / result.candidates.frequency_hz).tolist() == pytest.approx([10.0] * 7)
    assert np.isnan(result.candidates.confidence).all()


def test_distances_with_a_cv_of_one_are_no_period() -> None:
    signal = np.zeros(200)
    signal[[0, 3, 6, 60, 63, 66, 69, 190]] = 1.0
    assert detect(EvenSignals.from_samples(signal, 1.0)).period_s[0] == pytest.approx(3.0)
    result = detect(EvenSignals.from_samples(signal, 1.0), AutocorrelationParams(max_z=9.0))
    assert result.outcome.tolist() == ["aperiodic"]
    assert np.isnan([result.frequency_hz[0], result.confidence[0]]).all()


@pytest.mark.parametrize("name", ["ior_mpiio_shared_n8_i8_d3.write", "ior_posix_fpp_n8_i12_d3.write"])
def test_period_of_real_bursts_is_their_mean_distance(shared_data: Path, name: str) -> None:
    path = shared_data / "dxt" / f"{name}_bursts.csv"
    onset, ended, volume, _ = np.genfromtxt(path, delimiter=",", skip_header=1, unpack=True)
    hz, count = 20.0, int(20 * (ended[-1] + 1))
    grid = Grid(np.zeros(1), np.full(1, 1 / hz), np.array([count]))
    bins = bin_requests(Requests.from_arrays(onset, ended, volume), grid)
    result = detect(EvenSignals.from_samples(bins.bytes_per_s, hz))
    assert result.period_s[0] == pytest.approx(np.diff(onset).mean(), rel=0.02)


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(
        st.sampled_from([0.0, 1.0, 2.0, NAN, np.inf, -np.inf, 5e-324, 1e-310, 1e-200, 1e200, 1.7e308, -1.7e308]),
        max_size=12,
    ),
)
def test_any_input_has_an_outcome(row: list[float]) -> None:
    result = detect(EvenSignals.from_samples(row, 1.0))
    assert result.outcome[0] in OUTCOMES
    assert np.isfinite([result.frequency_hz[0], result.confidence[0]]).tolist() == [result.is_periodic[0]] * 2


def many_kinds(count: int) -> Reals:
    """Signals of many kinds, some of them near a threshold (signals, samples)."""
    rng = np.random.default_rng(count)
    at, period = np.arange(count), rng.integers(2, max(3, count // 3), (6, 1))
    square_waves = (at % period < rng.uniform(0.1, 0.9, (6, 1)) * period).astype(float)
    gappy, infinite = square_waves.copy(), square_waves.copy()
    gappy[rng.random(gappy.shape) < 0.1] = NAN
    infinite[:, 5] = np.inf
    return np.concatenate(
        [
            noise.draw_white(rng, 6, count),
            noise.draw_ar1(rng, 6, count, 0.95),
            noise.draw_bursts(rng, 6, count),
            1e9 * square_waves,
            square_waves + 0.1 * rng.random((6, count)),
            square_waves + 10.0 ** rng.integers(0, 9, (6, 1)),
            1 + np.sin(2 * np.pi * at / period),
            2 + np.sin(2 * np.pi * at / count * rng.uniform(1, 9, (6, 1))),
            np.abs(at % period - period / 2),
            rng.integers(0, 3, (6, count)).astype(float),
            np.repeat(rng.integers(0, 3, (6, count // 4 + 1)), 4, axis=1)[:, :count].astype(float),
            rng.lognormal(0, 2, (6, count)),
            square_waves * np.array([[1e-310], [1e-200], [1e-30], [1e25], [1e200], [1e307]]),
            gappy,
            infinite,
            np.zeros((1, count)),
            np.full((1, count), 7.0),
            rng.standard_normal((6, count)),
        ]
    )


_PARAMS = (AutocorrelationParams(), AutocorrelationParams(0.05, 0.8, True), AutocorrelationParams(max_z=2.5))


@pytest.mark.parametrize(("count", "params"), one_in(5, product((7, 16, 63, 97, 256, 400, 499, 1000), _PARAMS), slow=4))
def test_results_are_independent_of_the_batch(count: int, params: AutocorrelationParams) -> None:
    table = many_kinds(count)
    signals = EvenSignals(table, np.linspace(0.1, 10, len(table)), np.zeros(len(table)))
    result = detect(signals, params)
    for place in range(len(table)):
        alone = detect(signals.select(slice(place, place + 1)), params)
        selected = slice(*result.candidates.offsets[place : place + 2])
        assert alone.outcome[0] == result.outcome[place]
        np.testing.assert_array_equal(alone.candidates.frequency_hz, result.candidates.frequency_hz[selected])
        np.testing.assert_allclose(result.frequency_hz[place], alone.frequency_hz[0], rtol=1e-12)
        np.testing.assert_allclose(result.confidence[place], alone.confidence[0], rtol=0, atol=1e-12)

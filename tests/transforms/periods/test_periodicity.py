"""FTIO's other metrics: published values, simple cases, ranges, and the naive implementation."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import assume, given, strategies as st

from iosig.transforms.arrays import Ragged, offsets_of
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.periodicity import Periodicity, characterize_samples, characterize_steps
from iosig.transforms.throughput.requests import Requests, Steps, step_function
from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.sources.tmio import source
from tests.naive.periods import periodicity as naive
from tests.naive.throughput.requests import Request
from tests.transforms.request_lists import BOUNDED, DYADIC, of, together

NAN = float("nan")
NEEDS_A_PERIOD = ("sigma_vol", "sigma_time", "periodicity_score", "bytes_per_period")


def bursts(*volumes: float, period: float = 10.0, lasting: float = 4.0) -> Steps:
    """Steps with a burst at the start of each period."""
    return step_function(of([(period * place, period * place + lasting, v) for place, v in enumerate(volumes)]))


# ---- published values


def _read_golden(shared_data: Path) -> list[dict[str, str]]:
    with (shared_data / "tmio" / "golden.tsv").open() as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if row["r_io"]]


def _read_write_steps(path: Path) -> Steps:
    """Write rate of a trace's ranks, as a step function."""
    parts = [batch.rows for batch in source.read(path, Reading()) if batch.table.name == "trace_requests"]
    rows = pl.concat(parts).filter(direction="write")
    began, ceased = rows["start_s"].to_numpy(), rows["end_s"].to_numpy()
    return step_function(Requests.from_arrays(began, ceased, rows["request_bytes"].to_numpy()))


def test_real_traces_have_the_published_digits(shared_data: Path) -> None:
    golden = _read_golden(shared_data)
    assert len(golden) == 3
    for row in golden:
        steps = _read_write_steps(shared_data / "tmio" / row["trace"])
        result = characterize_steps(steps, *steps.edges_s[[0, -1]], float(row["frequency_hz"]))
        for name in ("r_io", "sigma_vol", "sigma_time"):
            digits = len(row[name].split(".")[1])
            assert f"{getattr(result, name)[0]:.{digits}f}" == row[name], (row["trace"], name)
        assert result.period_count[0] == int(row["bin"])


# ---- simple cases


def test_periodic_signal_has_a_score_of_one() -> None:
    result = characterize_steps(bursts(8, 8, 8, 8), 0.0, 40.0, 0.1)
    assert (result.known_s[0], result.volume_bytes[0], result.threshold_bytes_per_s[0]) == (40, 32, 0.8)
    assert (result.r_io[0], result.b_io_bytes_per_s[0], result.bytes_per_period[0]) == pytest.approx((0.4, 2.0, 8.0))
    assert (result.period_count[0], result.sigma_vol[0]) == (4, 0)
    assert (result.sigma_time[0], result.periodicity_score[0]) == pytest.approx((0.0, 1.0))


def test_sigma_vol_is_relative_to_the_largest_volume() -> None:
    result = characterize_steps(bursts(8, 4, 8, 4), 0.0, 40.0, 0.1)
    assert result.sigma_vol[0] == pytest.approx(0.25)
    # The smaller bursts of 1 byte per second also exceed the mean rate of 0.6.
    assert result.r_io[0] == pytest.approx(0.4)


def test_incomplete_last_period_is_excluded() -> None:
    whole = characterize_steps(bursts(8, 8, 8), 0.0, 30.0, 0.1)
    longer = characterize_steps(bursts(8, 8, 8, 1), 0.0, 39.0, 0.1)
    assert (whole.period_count[0], longer.period_count[0]) == (3, 3)
    assert longer.sigma_vol[0] == 0
    # Of the whole trace: 3 x 4 s of 39 s; the fourth burst is below the mean rate.
    assert longer.r_io[0] == pytest.approx(12 / 39)
    assert longer.sigma_time[0] == pytest.approx(0.4 - 12 / 39)
    assert longer.bytes_per_period[0] == pytest.approx(24 / 3.9)


def test_low_background_is_not_substantial() -> None:
    steps = step_function(of([(0, 40, 4), *((10 * n, 10 * n + 2, 20) for n in range(4))]))
    assert characterize_steps(steps, 0.0, 40.0, 0.1).r_io[0] == pytest.approx(0.2)
    alone = characterize_steps(step_function(of([(0, 20, 4)])), 0.0, 40.0, 0.1)
    assert (alone.r_io[0], alone.b_io_bytes_per_s[0]) == pytest.approx((0.5, 0.2))


def test_constant_rate_is_not_substantial() -> None:
    for width in (0.1, 1 / 3, 7.0):
        steps = step_function(of([(place * width, (place + 1) * width, 0.3) for place in range(30)]))
        result = characterize_steps(steps, *steps.edges_s[[0, -1]], 0.2)
        assert result.r_io[0] == 0
        assert np.isnan(result.b_io_bytes_per_s[0])


def test_impulse_has_volume_but_no_time() -> None:
    steps = step_function(of([(0, 0, 3), (10, 10, 3), (20, 20, 1), (30, 30, 2), (1, 2, 4)]))
    result = characterize_steps(steps, 0.0, 30.0, 0.1)
    # 3 + 4, 3, and 1 with the 2 at the end of the window.
    assert result.volume_bytes[0] == result.substantial_bytes[0] == 13
    assert result.substantial_s[0] == 1
    assert result.sigma_vol[0] == pytest.approx(np.std([1, 3 / 7, 3 / 7]))
    only = characterize_steps(step_function(of([(0, 0, 3), (10, 10, 3)])), 0.0, 20.0, 0.1)
    assert (only.r_io[0], only.sigma_vol[0], only.sigma_time[0]) == (0, 0, 0)
    assert np.isnan(only.b_io_bytes_per_s[0])


def test_deviations_are_nan_without_a_period() -> None:
    steps = step_function(together([[(0, 4, 8), (20, 24, 8)]] * 7))
    frequency = [NAN, 0.0, -1.0, np.inf, 1e12, 0.02, 0.03]
    result = characterize_steps(steps, 0.0, 50.0, frequency)
    for name in NEEDS_A_PERIOD:
        assert np.isnan(getattr(result, name)).all(), name
    np.testing.assert_allclose(result.r_io, 8 / 50)
    assert result.period_count.tolist() == [0, 0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("window", [(5.0, 5.0), (9.0, 3.0), (NAN, 4.0), (0.0, np.inf)])
def test_metrics_are_nan_without_a_window(window: tuple[float, float]) -> None:
    result = characterize_steps(bursts(8, 8), *window, 0.1)
    assert result.known_s.tolist() == [0]
    for name in ("r_io", "b_io_bytes_per_s", *NEEDS_A_PERIOD):
        assert np.isnan(getattr(result, name)).all(), name


def test_signal_without_volume_has_no_io_metrics() -> None:
    result = characterize_steps(step_function(of([])), 0.0, 100.0, 0.1)
    assert (result.volume_bytes[0], result.r_io[0], result.known_s[0]) == (0, 0, 100)
    for name in ("b_io_bytes_per_s", *NEEDS_A_PERIOD):
        assert np.isnan(getattr(result, name)).all(), name
    none = characterize_steps(step_function(Requests(*np.zeros((3, 0)), np.zeros(0, dtype=np.int64), 0)), 0.0, 1.0, 1.0)
    assert len(none.r_io) == 0


def test_window_of_whole_periods_contains_all_periods() -> None:
    for count in range(2, 60):
        for length in (0.1, 28.9, 1e-3, 3e5):
            steps = step_function(of([(7.0, 7.0 + length / 3, 1.0)]))
            assert characterize_steps(steps, 7.0, 7.0 + length, count / length).period_count[0] == count


# ---- samples


def characterize_signals(signals: EvenSignals, frequency_hz: npt.ArrayLike) -> Periodicity:
    frequency = np.broadcast_to(np.asarray(frequency_hz, dtype=np.float64), (signals.signal_count,))
    offsets = np.arange(signals.signal_count + 1) * signals.sample_count
    return characterize_samples(Ragged(signals.bytes_per_s.ravel(), offsets), signals.sampling_hz, frequency)


def test_metrics_of_samples_equal_metrics_of_steps() -> None:
    table = np.random.default_rng(1).exponential(1e9, (3, 400))
    signals = EvenSignals(table, np.array([1.0, 10.0, 0.1]), np.array([0.0, 1.5e9, 7.0]))
    frequency = signals.sampling_hz * np.array([0.05, 0.0333, 0.41])
    result = characterize_signals(signals, frequency)
    for row in range(3):
        edges = np.arange(401) / signals.sampling_hz[row]
        steps = step_function(Requests.from_arrays(edges[:-1], edges[1:], table[row] * np.diff(edges)))
        expected = characterize_steps(steps, 0.0, edges[-1], frequency[row])
        for name in Periodicity.__dataclass_fields__:
            np.testing.assert_allclose(getattr(result, name)[row], getattr(expected, name)[0], rtol=1e-9, err_msg=name)


def test_missing_samples_have_no_length_and_no_volume() -> None:
    signal = np.tile([4.0, 4, 0, 0, 0, 0, 0, 0, 0, 0], 6)
    whole = characterize_signals(EvenSignals.from_samples(signal, 1.0), 0.1)
    signal[28:30] = NAN
    # Most of the fifth period and all of the sixth are unknown.
    signal[41:48] = NAN
    signal[50:60] = NAN
    result = characterize_signals(EvenSignals.from_samples(signal, 1.0), 0.1)
    assert (result.known_s[0], result.volume_bytes[0], result.period_count[0]) == (41, 36, 4)
    assert result.r_io[0] == pytest.approx(9 / 41)
    assert result.sigma_vol[0] == pytest.approx(np.std([0.8, 0.8, 1.0, 0.8]))
    assert whole.sigma_vol[0] == 0


def test_missing_samples_have_no_metrics() -> None:
    for signals in (
        EvenSignals.from_samples([], 1.0),
        EvenSignals.from_samples([NAN, NAN], 1.0),
        EvenSignals.from_samples([np.inf], 1.0),
    ):
        result = characterize_signals(signals, 0.1)
        assert result.known_s.tolist() == [0]
        assert np.isnan(result.r_io[0])
    assert len(characterize_signals(EvenSignals(np.zeros((0, 4)), np.zeros(0), np.zeros(0)), 0.1).r_io) == 0


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200])
def test_metrics_are_independent_of_the_unit(scale: float) -> None:
    table = np.random.default_rng(2).integers(0, 9, (2, 64)).astype(float)
    plain, scaled = (
        characterize_signals(EvenSignals(values, np.ones(2), np.zeros(2)), 0.11) for values in (table, table * scale)
    )
    for name in ("r_io", "sigma_vol", "sigma_time"):
        np.testing.assert_allclose(getattr(scaled, name), getattr(plain, name), rtol=1e-9)
    characterize_signals(EvenSignals.from_samples(np.full(99, 1.7e308), 1.0), 0.1)


# ---- ranges and the naive implementation


@BOUNDED
@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=40), st.floats(0.01, 0.5))
def test_metrics_stay_in_their_ranges(rates: list[float], hz: float) -> None:
    """The paper states [0, 0.5] for both deviations; an incomplete last period takes sigma_time beyond."""
    result = characterize_signals(EvenSignals.from_samples(rates, 1.0), hz)
    assume(result.period_count[0] >= 2)
    assume(np.isfinite(result.sigma_vol[0]))
    assert 0 <= result.r_io[0] <= 1
    assert 0 <= result.sigma_vol[0] <= 0.5 + 1e-12
    assert 0 <= result.sigma_time[0] <= np.sqrt(5 / 18) + 1e-12
    assert 0 <= result.periodicity_score[0] <= 1
    assert np.isnan(result.b_io_bytes_per_s[0]) or result.b_io_bytes_per_s[0] >= result.threshold_bytes_per_s[0]


def test_sigma_time_may_exceed_the_papers_bound() -> None:
    """One full period, one empty period, and a nearly complete empty remainder."""
    result = characterize_steps(step_function(of([(0, 1, 1)])), 0.0, 3.0 - 1e-6, 1.0)
    assert result.sigma_time[0] == pytest.approx(np.sqrt(5 / 18), abs=1e-6)
    assert result.sigma_vol[0] == 0.5
    assert result.periodicity_score[0] == 0


def _assert_equals_naive_twin(result: Periodicity, row: int, expected: dict[str, float]) -> None:
    for name, value in expected.items():
        got = float(getattr(result, name)[row])
        assert got == pytest.approx(value, rel=1e-7, abs=1e-7, nan_ok=True), name


def _near_the_threshold(pieces: list[naive.Piece], mean: float) -> bool:
    return any(abs(rate - mean) < 1e-6 * mean for _, _, rate in pieces)


@BOUNDED
@given(
    st.lists(
        st.tuples(st.lists(DYADIC, max_size=8), st.integers(-64, 200), st.integers(1, 900)), min_size=1, max_size=4
    ),
    st.floats(0.05, 5.0),
)
def test_metrics_of_steps_match_naive_implementation(drawn: list[tuple[list[Request], int, int]], hz: float) -> None:
    steps = step_function(together([requests for requests, _, _ in drawn]))
    started = np.array([start / 64 for _, start, _ in drawn])
    ended = started + np.array([length / 64 for _, _, length in drawn])
    result = characterize_steps(steps, started, ended, hz)
    for number in range(len(drawn)):
        selected, struck = (slice(*item[number : number + 2]) for item in (steps.offsets, steps.impulse_offsets))
        edges, rates = steps.edges_s[selected].tolist(), steps.bytes_per_s[selected].tolist()
        pieces = [(left, right, rate) for (left, right), rate in zip(pairwise(edges), rates[:-1], strict=True)]
        cuts = [float(started[number]), *edges, float(ended[number])]
        pieces = [(-1e9, edges[0], 0.0), *pieces, (edges[-1], 1e9, 0.0)] if edges else [(-1e9, 1e9, 0.0)]
        impulses = dict(zip(steps.impulses_s[struck].tolist(), steps.impulse_bytes[struck].tolist(), strict=True))
        expected = naive.compute_metrics(pieces, impulses, cuts[0], cuts[-1], hz)
        if not _near_the_threshold(pieces, expected["volume_bytes"] / expected["known_s"]):
            _assert_equals_naive_twin(result, number, expected)


@BOUNDED
@given(
    st.lists(st.lists(st.one_of(st.just(NAN), st.integers(0, 9).map(float)), min_size=12, max_size=12), min_size=1),
    st.floats(0.02, 0.9),
)
def test_metrics_of_samples_match_naive_implementation(rows: list[list[float]], hz: float) -> None:
    signals = EvenSignals(np.array(rows), np.full(len(rows), 2.0), np.zeros(len(rows)))
    result = characterize_signals(signals, hz)
    for number, row in enumerate(rows):
        pieces = [(place / 2, place / 2 + 0.5, rate) for place, rate in enumerate(row)]
        if np.isnan(row).all():
            assert np.isnan(result.r_io[number])
            continue
        expected = naive.compute_metrics(pieces, {}, 0.0, 6.0, hz)
        if not _near_the_threshold(pieces, expected["volume_bytes"] / expected["known_s"]):
            _assert_equals_naive_twin(result, number, expected)


def test_results_are_independent_of_the_batch() -> None:
    rng = np.random.default_rng(3)
    table = rng.exponential(1.0, (400, 1000))
    table[rng.random(table.shape) < 0.1] = NAN
    signals = EvenSignals(table, rng.uniform(0.1, 10, 400), rng.uniform(0, 1e9, 400))
    frequency = signals.sampling_hz * rng.uniform(0.001, 0.5, 400)
    result = characterize_signals(signals, frequency)
    for place in range(0, 400, 37):
        alone = characterize_signals(signals.select(slice(place, place + 1)), frequency[place])
        assert alone.sigma_vol[0] == result.sigma_vol[place]
        assert alone.sigma_time[0] == pytest.approx(result.sigma_time[place], rel=1e-12)


def test_signals_of_several_lengths_are_independent() -> None:
    rng = np.random.default_rng(4)
    counts = np.array([0, 1, 700, 33, 40_000, 0, 512])
    pieces = Ragged(rng.exponential(1.0, counts.sum()), offsets_of(counts))
    hz, frequency = rng.uniform(0.1, 10, len(counts)), rng.uniform(0.001, 0.05, len(counts))
    result = characterize_samples(pieces, hz, frequency)
    for place in range(len(counts)):
        row = pieces.values[pieces.offsets[place] : pieces.offsets[place + 1]]
        alone = characterize_signals(EvenSignals(row[None], hz[place : place + 1], np.zeros(1)), frequency[place])
        for name in ("volume_bytes", "r_io", "sigma_vol", "sigma_time"):
            np.testing.assert_array_equal(getattr(result, name)[place], getattr(alone, name)[0], name)
    assert (
        len(characterize_samples(Ragged(np.zeros(0), np.zeros(1, dtype=np.int64)), np.zeros(0), np.zeros(0)).r_io) == 0
    )

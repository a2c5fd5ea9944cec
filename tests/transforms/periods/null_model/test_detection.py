"""The null-model method finds periods at any sampling frequency, and rarely reports noise as periodic."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.studies.periods import noise
from iosig.studies.periods.noise import BurstParams, LevelParams
from iosig.transforms.periods.interface.detections import OUTCOMES, Detections
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.null_model.detection import detect
from iosig.transforms.periods.null_model.params import SEARCH, NullModelParams
from iosig.transforms.throughput.requests import Requests
from iosig.warehouse.sources.darshan import source as darshan
from iosig.warehouse.sources.polls import h5lmt
from iosig.warehouse.sources.protocol import Reading
from tests.budget import examples
from tests.transforms.white_signals import generator

NAN = float("nan")
WHOLE = NullModelParams(window_levels=0)


def make_signals(rates: np.ndarray, sampling_hz: float = 1.0) -> EvenSignals:
    return EvenSignals(rates, np.full(len(rates), sampling_hz), np.zeros(len(rates)))


def sample_bursts(
    starts: np.ndarray, length_s: float, duration_s: float, sampling_hz: float, *, binned: bool = True
) -> np.ndarray:
    requests = Requests.from_arrays(starts, starts + length_s, np.full(len(starts), 1e9))
    return noise.sample_rates(requests, round(duration_s * sampling_hz), sampling_hz, is_binned=binned)


def pulses(sample_count: int) -> np.ndarray:
    """Return a burst of 3 samples every 50."""
    return (np.arange(sample_count) % 50 < 3)[None].astype(float) * 1e9


def assert_same_detections(first: Detections, second: Detections) -> None:
    assert first.outcome.tolist() == second.outcome.tolist()
    np.testing.assert_allclose(first.period_s, second.period_s, rtol=1e-5)
    np.testing.assert_allclose(first.false_alarm_probability, second.false_alarm_probability, rtol=1e-3)
    np.testing.assert_allclose(first.window_start_s, second.window_start_s, atol=1e-6)
    np.testing.assert_allclose(first.window_end_s, second.window_end_s, atol=1e-6)


# ---- exact periods


@pytest.mark.parametrize("sampling_hz", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("length_s", [0.3, 0.9, 1.5])
@pytest.mark.parametrize("count", [10, 50])
def test_square_waves_have_their_period_at_any_sampling(count: int, length_s: float, sampling_hz: float) -> None:
    for binned in (True, False):
        rates = sample_bursts(20.0 * np.arange(count), length_s, 20.0 * count, sampling_hz, binned=binned)
        result = detect(make_signals(rates, sampling_hz))
        assert result.is_periodic.all()
        np.testing.assert_allclose(result.period_s, 20, rtol=1e-3)
        assert result.false_alarm_probability[0] < 1e-6
        assert result.confidence[0] > 0.95
        assert result.window_start_s[0] == pytest.approx(0, abs=0.01)
        assert result.window_end_s[0] == pytest.approx(20 * (count - 1) + length_s, abs=1 / sampling_hz)


@pytest.mark.parametrize("sampling_hz", [1.0, 10.0])
def test_period_may_be_a_fractional_number_of_samples(sampling_hz: float) -> None:
    rates = np.vstack([sample_bursts(s + 20.37 * np.arange(12), 0.9, 250.0, sampling_hz) for s in (0.0, 0.21, 3.4)])
    result = detect(make_signals(rates, sampling_hz))
    np.testing.assert_allclose(result.period_s, 20.37, rtol=0.005 / sampling_hz)


def test_silence_before_and_after_has_no_effect() -> None:
    rates = np.vstack(
        [
            sample_bursts(20.0 * np.arange(12), 1.5, 240.0, 10.0),
            noise.draw_bursts(generator(), 3, 2400, BurstParams(20)),
        ]
    )
    plain = detect(make_signals(rates, 10.0))
    padded = detect(EvenSignals(np.pad(rates, ((0, 0), (3000, 1234))), np.full(4, 10.0), np.full(4, -300.0)))
    assert_same_detections(plain, padded)


@settings(max_examples=examples(8), deadline=None)
@given(st.sampled_from([1e-9, 1e-3, 1.0, 3.7, 1e12, 1e280]), st.sampled_from([1 / 3600, 1.0, 3600.0]))
def test_results_are_independent_of_units(unit: float, per_s: float) -> None:
    rng = generator(5)
    rates = np.vstack(
        [
            sample_bursts(20.0 * np.arange(12), 1.5, 240.0, 10.0),
            noise.draw_white(rng, 1, 2400) * (1 + 0.2 * np.sin(np.arange(2400) / 7)),
            noise.draw_bursts(rng, 1, 2400, BurstParams(20)),
        ]
    )
    first = detect(make_signals(rates))
    second = detect(make_signals(rates * unit, per_s))
    assert first.outcome.tolist() == second.outcome.tolist() == ["periodic", "periodic", "aperiodic"]
    np.testing.assert_allclose(second.period_s * per_s, first.period_s, rtol=1e-4)
    np.testing.assert_allclose(second.confidence, first.confidence, atol=1e-3)


def test_results_are_independent_of_the_batch() -> None:
    rng = generator(5)
    rates = np.vstack(
        [noise.draw_bursts(rng, 20, 700, BurstParams(15)), sample_bursts(30.0 * np.arange(23), 3.0, 700.0, 1.0)]
    )
    together = detect(make_signals(rates))
    alone = [detect(make_signals(rates[row : row + 1])) for row in range(len(rates))]
    assert together.outcome.tolist() == [single.outcome[0] for single in alone]
    told = [single.false_alarm_probability[0] for single in alone]
    np.testing.assert_allclose(together.false_alarm_probability, told, rtol=1e-3)
    assert together.candidates.offsets[-1] == together.is_periodic.sum()


def test_candidate_cosine_fits_the_signal() -> None:
    place = np.arange(1000)
    rates = 5e9 + 2e9 * np.cos(2 * np.pi * (place + 0.5) / 40 + 0.7)
    result = detect(make_signals(rates[None])).candidates
    assert result.frequency_hz[0] == pytest.approx(1 / 40, rel=1e-3)
    assert result.amplitude_bytes_per_s[0] == pytest.approx(2e9, rel=0.03)
    assert result.phase_rad[0] == pytest.approx(0.7, abs=0.15)


# ---- among noise and gaps


@pytest.mark.parametrize("missing", [0.05, 0.2])
@pytest.mark.parametrize("sampling_hz", [1.0, 10.0])
def test_missing_samples_are_not_zeros(missing: float, sampling_hz: float) -> None:
    rates = np.repeat(sample_bursts(20.0 * np.arange(25), 1.5, 500.0, sampling_hz), 20, axis=0)
    rates[generator().random(rates.shape) < missing] = NAN
    result = detect(make_signals(rates, sampling_hz))
    assert result.is_periodic.all()
    assert (np.abs(result.period_s / 20 - 1) < 0.01).mean() >= 0.9


def test_sine_in_noise_is_found() -> None:
    place = np.arange(2000)
    rates = 5 + 0.4 * np.sin(2 * np.pi * place / 37.3) + 0.7 * generator().standard_normal((20, 2000))
    result = detect(make_signals(rates))
    assert result.is_periodic.all()
    np.testing.assert_allclose(result.period_s, 37.3, rtol=5e-3)
    assert (result.confidence < 0.6).all()


def test_bursts_among_red_noise_are_found() -> None:
    rates = sample_bursts(20.0 * np.arange(20), 1.5, 400.0, 10.0)
    rates = rates / rates.max() + noise.draw_ar1(generator(), 20, 4000, 0.95, LevelParams(0.3, 0.5))
    result = detect(make_signals(rates, 10.0))
    assert result.is_periodic.all()
    np.testing.assert_allclose(result.period_s, 20, rtol=5e-3)


@pytest.mark.parametrize(("share", "extra"), [(0.8, 0), (1.0, 40)])
def test_missing_and_additional_bursts_do_not_change_the_period(share: float, extra: int) -> None:
    rng = generator(3)
    rows = []
    for _ in range(20):
        starts = 20.0 * np.arange(50)[rng.random(50) < share]
        rows.append(sample_bursts(np.concatenate([starts, rng.uniform(0, 1000, extra)]), 1.5, 1000.0, 10.0))
    result = detect(make_signals(np.vstack(rows), 10.0))
    assert result.is_periodic.mean() >= 0.9
    assert (np.abs(result.period_s / 20 - 1) < 0.01).mean() >= 0.85


def test_temporary_period_has_its_window() -> None:
    rng = generator(2)
    rows = []
    for _ in range(12):
        starts = np.concatenate([rng.uniform(0, 1000, 10), 1000 + 20.0 * np.arange(20), rng.uniform(1400, 2800, 14)])
        rows.append(sample_bursts(starts, 1.5, 2800.0, 10.0))
    result = detect(make_signals(np.vstack(rows), 10.0))
    assert result.is_periodic.all()
    np.testing.assert_allclose(result.period_s, 20, rtol=0.02)
    assert (np.abs(result.window_start_s - 1000) < 45).mean() > 0.7
    assert (np.abs(result.window_end_s - 1390) < 45).mean() > 0.7


def test_window_search_is_optional_and_costs_significance() -> None:
    rates = noise.draw_white(generator(2), 6, 8000)
    rates[:, 7000:] += 1e8 * np.sin(2 * np.pi * np.arange(1000) / 25)
    result = detect(make_signals(rates))
    assert result.is_periodic.all()
    np.testing.assert_allclose(result.period_s, 25, rtol=0.01)
    assert (np.abs(result.window_start_s - 7000) < 300).all()
    whole = detect(make_signals(rates), WHOLE)
    assert not whole.is_periodic.any()
    assert (whole.window_end_s - whole.window_start_s == 8000).all()
    even = make_signals(pulses(3000))
    paid = detect(even).false_alarm_probability / detect(even, WHOLE).false_alarm_probability
    np.testing.assert_allclose(paid, 1 / SEARCH.whole_weight)


@pytest.mark.parametrize("deviation", [0.0, 0.25])
def test_computation_of_varying_length_has_its_mean_period(deviation: float) -> None:
    rng = generator(1)
    rows, means = [], []
    for _ in range(30):
        starts = np.cumsum(10.4 + np.abs(11 * (1 + deviation * rng.standard_normal(20))))
        means.append(np.diff(starts).mean())
        rows.append(sample_bursts(starts, 10.4, 600.0, 1.0))
    result = detect(make_signals(np.vstack(rows)))
    errors = np.abs(result.period_s - means) / means
    assert result.is_periodic.mean() >= 0.95
    assert np.nanmedian(errors) < 0.005
    assert np.nanmean(errors) < 0.01


def test_skipping_hopeless_windows_does_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = generator(9)
    rates = np.vstack(
        [
            noise.draw_white(rng, 30, 1500) / 1e9,
            noise.draw_ar1(rng, 20, 1500, 0.8) / 1e9,
            noise.draw_bursts(rng, 40, 1500, BurstParams(40, 0.2, 0.5, 0.5)) / 1e9,
        ]
    )
    place = np.arange(1500)
    rates[15:30, 900:1200] += np.geomspace(0.02, 0.5, 15)[:, None] * np.sin(2 * np.pi * place[:300] / 11)
    rates[70:, 300:700] += np.where(place[:400] % 20 < 3, np.geomspace(0.5, 50, 20)[:, None], 0)
    rates[5:8][rng.random((3, 1500)) < 0.1] = NAN
    first = detect(make_signals(rates))
    # With a huge tolerance no result is discarded early.
    search = "iosig.transforms.periods.null_model.detection.SEARCH"
    monkeypatch.setattr(search, replace(SEARCH, log_p_margin=1e6))
    second = detect(make_signals(rates))
    assert 10 < first.is_periodic.sum() < 80
    assert first.outcome.tolist() == second.outcome.tolist()
    for name in ("frequency_hz", "confidence", "window_start_s", "window_end_s", "false_alarm_probability"):
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), rtol=1e-9)


# ---- aperiodic signals


NOISE = {
    "white": lambda rng, count: noise.draw_white(rng, count, 500),
    "skewed": lambda rng, count: noise.draw_white(rng, count, 200, LevelParams(relative_spread=2, is_skewed=True)),
    "red": lambda rng, count: noise.draw_ar1(rng, count, 500, np.repeat([0.5, 0.9, 0.99, 0.7], count // 4)),
    "few": lambda rng, count: noise.draw_bursts(rng, count, 600, BurstParams(6, 0.1)),
    "bursts": lambda rng, count: noise.draw_bursts(rng, count, 600, BurstParams(20, 0.3, 0.5, 0.5)),
    "busy": lambda rng, count: noise.draw_bursts(rng, count, 1000, BurstParams(50, 0.6)),
    "many": lambda rng, count: noise.draw_bursts(rng, count, 1000, BurstParams(200, 0.1)),
    "one after the other": lambda rng, count: noise.draw_bursts(
        rng, count, 600, BurstParams(20, 0.2, may_overlap=False)
    ),
    "padded": lambda rng, count: np.pad(noise.draw_bursts(rng, count, 400, BurstParams(15)), ((0, 0), (500, 300))),
    "sparse": lambda rng, count: noise.draw_bursts(rng, count // 4, 5000, BurstParams(30, 0.01)),
}


@pytest.mark.parametrize("kind", NOISE)
def test_noise_is_rarely_periodic(kind: str) -> None:
    rates = NOISE[kind](generator(11), 400)
    result = detect(make_signals(rates))
    assert set(result.outcome) <= {"periodic", "aperiodic"}
    # At most 1 % on average: 4 of 400, and up to twice as many by chance.
    assert result.is_periodic.sum() <= 8 * len(rates) / 400
    assert (result.false_alarm_probability >= 0).all()
    assert (result.false_alarm_probability <= 1).all()
    assert np.isnan(result.period_s[~result.is_periodic]).all()
    assert np.isnan(result.confidence[~result.is_periodic]).all()


def test_untestable_signals_have_an_outcome() -> None:
    rows = np.zeros((8, 100))
    rows[0] = 3.3e9
    rows[2] = NAN
    rows[3] = np.inf
    rows[4, 10:] = NAN
    rows[4, :10] = 1.0
    rows[5, 40] = 5e-324
    rows[6] = -1.0
    rows[7, ::2] = 1e308 * generator().random(50)
    rows[7, 1:80] = NAN
    result = detect(make_signals(rows))
    expected = ["aperiodic", "no_io", "no_data", "no_data", "too_short", "aperiodic", "no_data", "too_many_gaps"]
    assert result.outcome.tolist() == expected
    assert set(expected) < set(OUTCOMES)
    assert np.isnan(result.frequency_hz).all()
    assert np.isfinite(result.false_alarm_probability).tolist() == [word == "aperiodic" for word in expected]
    assert (result.window_start_s[5], result.window_end_s[5]) == (40, 41)


@pytest.mark.parametrize(("signals", "samples"), [(0, 0), (0, 10), (3, 0), (3, 1), (2, 2)])
def test_few_or_no_samples_have_an_outcome(signals: int, samples: int) -> None:
    result = detect(make_signals(np.ones((signals, samples))))
    assert result.outcome.tolist() == ["too_short" if samples else "no_data"] * signals


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 1.0, NAN, np.inf, -1.0, 1e308, 5e-324]), min_size=40, max_size=40),
        min_size=1, max_size=4,
    )
)  # fmt: skip
def test_any_input_has_an_outcome(rows: list[list[float]]) -> None:
    result = detect(make_signals(np.array(rows)))
    assert set(result.outcome) <= set(OUTCOMES)
    assert np.isfinite(result.frequency_hz).tolist() == result.is_periodic.tolist()
    assert (result.window_end_s >= result.window_start_s).all()


# ---- real data


@pytest.fixture(scope="module")
def edison_reads(shared_data: Path) -> EvenSignals:
    """Read rates of all targets of Edison's scratch1, every 5 s."""
    source = h5lmt.SOURCE.read(shared_data / "lmt" / "edison-snx11025_2018-02-09.h5lmt", Reading())
    polls = pl.concat([batch.rows for batch in source if batch.table.name == "polls"])
    sums = polls.group_by("polled_at").agg(
        pl.col("read_bytes_per_s").sum(), pl.col("read_bytes_per_s").null_count().alias("missing")
    )
    times = sums["polled_at"].dt.epoch("s").to_numpy()
    rates = np.full((times.max() - times.min()) // 5 + 1, NAN)
    is_known = (sums["missing"] == 0).to_numpy()
    rates[(times[is_known] - times.min()) // 5] = sums["read_bytes_per_s"].to_numpy()[is_known]
    return EvenSignals.from_samples(rates, 0.2, float(times.min() - 5))


@pytest.mark.parametrize(("since", "until"), [(8, 25), (13, 16), (13, 15), (13.5, 15.2)])
def test_reads_of_edison_have_their_period_and_window(edison_reads: EvenSignals, since: float, until: float) -> None:
    day = datetime(2018, 2, 9, tzinfo=UTC).timestamp()
    first, last = (max(0, round((day + 3600 * hour - edison_reads.start_s[0]) / 5)) for hour in (since, until))
    result = detect(edison_reads.slice_samples(first, last))
    assert result.is_periodic.all()
    assert 128 <= result.period_s[0] <= 130
    assert result.window_start_s[0] - day == pytest.approx(3600 * 13 + 60 * 53, abs=120)
    assert result.window_end_s[0] - day == pytest.approx(3600 * 14 + 60 * 50, abs=120)


@pytest.mark.parametrize(
    ("log", "module", "direction"),
    [
        ("ior_mpiio_shared_n8_i8_d3", "MPIIO", "write"),
        ("ior_mpiio_shared_n8_i8_d3", "MPIIO", "read"),
        ("ior_posix_fpp_n8_i12_d3", "POSIX", "write"),
    ],
)
def test_bursts_of_ior_are_found_from_segments_and_bins(
    shared_data: Path, log: str, module: str, direction: str
) -> None:
    onsets = pl.read_csv(shared_data / "dxt" / f"{log}.{direction}_bursts.csv")["onset"].to_numpy()
    batches = list(darshan.SOURCE.read(shared_data / "dxt" / f"{log}.darshan", Reading()))

    def rows(table: str) -> pl.DataFrame:
        return pl.concat([batch.rows for batch in batches if batch.table.name == table]).filter(
            module=module, direction=direction
        )

    requests = rows("trace_requests")
    span = Requests.from_arrays(*(requests[name].to_numpy() for name in ("start_s", "end_s", "request_bytes")))
    signals = [make_signals(noise.sample_rates(span, round(60 * hz), hz), hz) for hz in (1.0, 10.0)]
    heatmap = rows("trace_heatmaps")
    bins = np.sum(heatmap["bin_bytes"].to_list(), axis=0, dtype=float)
    signals.append(make_signals(bins[None], 1 / float(heatmap["interval_s"][0])))
    for signal in signals:
        result = detect(signal)
        assert result.is_periodic.all()
        assert result.period_s[0] == pytest.approx(np.diff(onsets).mean(), rel=0.02)

"""The reproduction of FTIO 0.0.9 has FTIO's published numbers, sampling and faults."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.periods import ftio_0_0_9
from iosig.transforms.periods.ftio_0_0_9 import (
    CompatibleParams,
    SignalResult,
    analyze_signal,
    detect,
    detect_in_samples,
    sum_bandwidth,
)
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.throughput.requests import Requests, Steps, step_function
from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.sources.tmio import source
from tests.budget import examples
from tests.transforms.periods.test_ftio import waves
from tests.warehouse.sources import darshan_tables


def read_write_requests(path: Path) -> Requests:
    """The requests of a TMIO trace that FTIO uses for write_sync."""
    parts = [batch.rows for batch in source.read(path, Reading()) if batch.table.name == "trace_requests"]
    rows = pl.concat(parts).filter((pl.col("direction") == "write") & ~pl.col("is_async"))
    volume = rows["request_bytes"].cast(pl.Float64).fill_null(np.nan)
    return Requests.from_arrays(rows["start_s"].to_numpy(), rows["end_s"].to_numpy(), volume.to_numpy())


def make_params(hz: float = 10.0, **others: float) -> CompatibleParams:
    return CompatibleParams(sampling_hz=hz, **others)


def make_steps(edges: list[float], rates: list[float]) -> Steps:
    none, ends = np.zeros(0), np.array([0, len(edges)])
    return Steps(np.array(edges, dtype=float), np.array(rates, dtype=float), ends, none, none, np.zeros(2, np.int64))


def analyze_first(steps: Steps, hz: float = 10.0) -> SignalResult:
    """The result for the first signal."""
    return analyze_signal(*ftio_0_0_9.sample(*next(ftio_0_0_9.iter_windows(steps, make_params(hz))), hz))


def summarize(result: SignalResult) -> tuple[int, int, float, float]:
    at = int(result.order[0])
    return result.sample_count, int(result.bins[at]), float(result.frequencies_hz[at]), float(result.confidences[at])


# ---- published numbers


def test_real_traces_have_the_published_numbers(shared_data: Path) -> None:
    with (shared_data / "tmio" / "golden.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) == 4
    for row in rows:
        steps = sum_bandwidth(read_write_requests(shared_data / "tmio" / row["trace"]))
        hz = float(row["sampling_hz"])
        result, detections = analyze_first(steps, hz), detect(steps, make_params(hz))
        count, place, frequency, confidence = summarize(result)
        assert (count, place) == (int(row["n"]), int(row["bin"]))
        assert (result.outlier_count, result.candidate_count) == (int(row["outliers"]), int(row["candidates"]))
        assert frequency == pytest.approx(float(row["frequency_hz"]), rel=1e-12, abs=0)
        assert confidence == pytest.approx(float(row["confidence"]), rel=0, abs=1e-9)
        assert (detections.frequency_hz[0], detections.confidence[0]) == (frequency, confidence)
        assert detections.period_s[0] == pytest.approx(float(row["period_s"]), rel=1e-12, abs=0)


def test_requests_of_the_ftio_api_test_have_its_numbers() -> None:
    """FTIO's test_api.py: requests of 0 and of 1000 bytes per second, two at a time."""
    began = np.array([start for onset in range(0, 70, 10) for start in (onset + 0.5, onset)])
    ceased = began + 4.5
    rates = np.tile([0.0, 0.0, 1000.0, 1000.0], 4)[:14]
    steps = sum_bandwidth(Requests.from_arrays(began, ceased, rates * 4.5))
    assert (steps.edges_s[0], steps.edges_s[-1]) == (0.0, 65.0)
    assert summarize(analyze_first(steps)) == (650, 3, 3 / 65, pytest.approx(0.8024962918003531, abs=1e-12))
    assert summarize(analyze_first(steps, 1.0)) == (65, 3, 3 / 65, pytest.approx(1.0))


def test_heat_map_has_the_published_number(shared_data: Path) -> None:
    """E3SM's log with -x DXT_POSIX: FTIO treats each rank's bins as requests, and takes five samples per bin."""
    heatmaps = darshan_tables.tables_of(shared_data / "darshan" / "e3sm_io_heatmap_only.darshan")["trace_heatmaps"]
    rows = heatmaps.filter(module="POSIX", direction="write")
    volume = np.array(rows["bin_bytes"].to_list(), dtype=float)
    interval = float(rows["interval_s"][0])
    edges = np.linspace(0.0, volume.shape[1] * interval, volume.shape[1] + 1)
    _, place = np.nonzero(volume)
    steps = sum_bandwidth(Requests.from_arrays(edges[place], edges[place + 1], volume[volume > 0]))
    result = analyze_first(steps, 5 / interval)
    assert result.sample_count == 555
    assert result.outlier_count == 3
    detections = detect(steps, make_params(5 / interval))
    assert detections.period_s[0] == pytest.approx(37.3895, abs=5e-5)
    assert detections.confidence[0] == pytest.approx(0.78696, abs=5e-6)


# ---- results of the program

#: dominant frequencies and confidences that ftio-hpc 0.0.9 from PyPI prints for these traces: `ftio TRACE -e no -f HZ`,
#: with `-ts` for the window after the first fifth, and also `-te` for the window before the last fifth
RESULTS = Path(__file__).with_name("ftio_0_0_9.tsv")


def make_traces(count: int = 30) -> dict[str, Requests]:
    """Synthetic traces of one to eight ranks: every second one has requests without bytes, every fifth at both ends."""
    rng, traces = np.random.default_rng(20), {}
    for number in range(count):
        period, ranks, phases = rng.uniform(2, 15), int(rng.integers(1, 9)), int(rng.integers(8, 40))
        jitter, length = rng.choice([0.0, 0.05, 0.3]), rng.uniform(0.05, 0.6) * period
        requests = []
        for phase in range(phases):
            onset = phase * period + rng.normal(0, jitter * period)
            for _ in range(ranks):
                start = max(0.0, onset + rng.uniform(0, 0.1) * period)
                requests.append((start, start + length * rng.uniform(0.7, 1.3), rng.uniform(1e6, 1e9)))
        start_s, end_s, rates = np.array(requests).T
        if number % 2:
            rates[rng.choice(len(rates), max(1, len(rates) // 10), replace=False)] = 0.0
        if number % 5 == 0:
            first, last = start_s.min(), end_s.max()
            start_s = np.append(start_s, [max(0.0, first - 1.0), last + 0.5])
            end_s = np.append(end_s, [max(0.1, first - 0.5), last + 2.5])
            rates = np.append(rates, [0.0, 0.0])
        traces[f"s{number:02}"] = Requests.from_arrays(start_s, end_s, rates * (end_s - start_s))
    return traces


def compare_with_program(name: str, requests: Requests) -> int:
    """Compare a trace in each window and at each sampling frequency. Returns the number of comparisons."""
    steps, count = sum_bandwidth(requests), 0
    first, last = steps.edges_s[0], steps.edges_s[-1]
    starts = {"whole": (0.0, 0.0), "late": (first + (last - first) / 5, 0.0)}
    windows = starts | {"middle": (starts["late"][0], first + 4 * (last - first) / 5)}
    with RESULTS.open() as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["trace"] == name]
    for row in rows:
        start_s, end_s = windows[row["window"]]
        params = CompatibleParams(float(row["sampling_hz"]), start_s, end_s)
        candidates = detect(steps, params).candidates
        order = np.argsort(candidates.frequency_hz)
        expected = [np.array(row[column].split(), dtype=float) for column in ("frequencies_hz", "confidences")]
        np.testing.assert_allclose(candidates.frequency_hz[order], expected[0], rtol=1e-6, err_msg=str(row))
        np.testing.assert_allclose(candidates.confidence[order], expected[1], rtol=0, atol=1e-6, err_msg=str(row))
        count += 1
    return count


def test_synthetic_traces_have_the_results_of_the_program() -> None:
    assert sum(compare_with_program(*trace) for trace in make_traces().items()) == 270


def test_real_traces_have_the_results_of_the_program(shared_data: Path) -> None:
    names = ("8.jsonl", "384.msgpack", "custom.json")
    assert sum(compare_with_program(name, read_write_requests(shared_data / "tmio" / name)) for name in names) == 27


# ---- sampling


def ftio_samples(times: list[float], rates: list[float], hz: float) -> list[float]:
    """The loop of FTIO's sample_data, for whole numbers of samples."""
    result, old, instant = [], 0, times[0]
    for _ in range(int(np.floor((times[-1] - times[0]) * hz))):
        for place in range(min(old, len(times) - 1), len(times)):
            if place == len(times) - 1 or times[place] <= instant < times[place + 1]:
                old = place
                result.append(rates[place])
                break
        instant = instant + 1 / hz
    return result


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.integers(0, 400).map(lambda tick: tick / 10), min_size=2, max_size=30, unique=True).map(sorted),
    st.sampled_from([0.3, 1.0, 3.0, 7.0, 10.0]),
)
def test_samples_equal_the_sampling_loop_of_ftio(times: list[float], hz: float) -> None:
    rates = [float(place) for place in range(1, len(times))] + [0.0]
    ((values, found_hz, window),) = [
        ftio_0_0_9.sample(*stamps, hz) for stamps in ftio_0_0_9.iter_windows(make_steps(times, rates), make_params())
    ]
    assert values.tolist() == ftio_samples(times, rates, hz)
    assert window == (times[0], times[-1])
    assert found_hz == hz or not len(values)


def test_window_begins_at_a_time_stamp() -> None:
    edges = [5.0 * place for place in range(41)]
    steps = make_steps(edges, [7.0, 0.0] * 20 + [0.0])
    result = detect(steps, make_params(1.0, window_start_s=12.0, window_end_s=177.0))
    assert (result.window_start_s[0], result.window_end_s[0]) == (15.0, 175.0)
    assert result.period_s[0] == 10.0
    assert detect(steps, make_params(1.0, window_start_s=300.0)).outcome[0] == "too_short"


def test_empty_requests_have_edges_and_unknown_requests_no_rate() -> None:
    requests = Requests(
        np.array([0.0, 2.0, 3.0, 9.0, 4.0, 5.0]),
        np.array([1.0, 6.0, 3.0, 10.0, 3.0, 6.0]),
        np.array([0.0, 8.0, np.nan, 0.0, 5.0, 3.0]),
        np.array([0, 0, 0, 0, 0, 2]),
        3,
    )
    steps = sum_bandwidth(requests)
    assert steps.edges_s.tolist() == [0, 1, 2, 3, 6, 9, 10, 5, 6]
    assert steps.bytes_per_s.tolist() == [0, 0, 2, 2, 0, 0, 0, 3, 0]
    assert steps.offsets.tolist() == [0, 7, 7, 9]
    assert detect(steps, make_params(1.0)).outcome.tolist() == ["aperiodic", "too_short", "aperiodic"]


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20), st.integers(1, 9)), min_size=1, max_size=20))
def test_bandwidth_equals_the_step_function(drawn: list[tuple[int, int, int]]) -> None:
    began, lasted, volume = (np.array(column, dtype=float) for column in zip(*drawn, strict=True))
    requests = Requests.from_arrays(began, began + lasted, volume)
    mine, steps = sum_bandwidth(requests), step_function(requests)
    assert mine.edges_s.tolist() == steps.edges_s.tolist()
    assert mine.bytes_per_s.tolist() == steps.bytes_per_s.tolist()


# ---- faults


def test_ftio_misses_harmonics() -> None:
    """By FTIO's `outlier_detection`, bursts of 1.5 s every 20 s have 20 s or 6.7 s; 0.3 s and 0.9 s are aperiodic."""
    result = detect_in_samples(waves(1.5, 1.0))
    np.testing.assert_allclose(result.candidates.frequency_hz, [0.05, 0.15])
    assert result.confidence[0] == pytest.approx(0.42580315, abs=1e-8)
    assert detect_in_samples(waves(2.5, 1.0)).confidence[0] == pytest.approx(0.76797865, abs=1e-8)
    for burst_s in (0.3, 0.9):
        assert detect_in_samples(waves(burst_s, 1.0)).outcome[0] == "aperiodic"


def test_ftio_reports_the_window_as_a_period() -> None:
    result = detect_in_samples(EvenSignals.from_samples(1 + np.cos(2 * np.pi * np.arange(200) / 200), 1.0))
    assert (result.frequency_hz[0], result.confidence[0]) == (0.005, 1.0)


def test_ftio_reports_white_noise_as_periodic() -> None:
    """FTIO's `outlier_detection` reports 349 of these 600 draws as periodic."""
    random = np.random.default_rng(0).standard_normal((600, 1000))
    result = detect_in_samples(EvenSignals(random, np.ones(600), np.zeros(600)))
    assert result.is_periodic.sum() == 349
    # In two draws the result is the Nyquist bin; its amplitude counts once.
    assert result.frequency_hz[[47, 343]].tolist() == [0.5, 0.5]


# ---- degenerate input


@pytest.mark.filterwarnings("error")
def test_tiny_inputs_have_an_outcome() -> None:
    nothing = step_function(Requests.from_arrays([], [], []))
    assert detect(nothing).outcome.tolist() == ["too_short"]
    none = Requests(*[np.zeros(0)] * 3, np.zeros(0, dtype=np.int64), 0)
    assert detect(sum_bandwidth(none)).signal_count == 0
    for samples in ([], [1.0], [0.0] * 30, [np.nan] * 30, [3.0] * 32):
        result = detect_in_samples(EvenSignals.from_samples(samples, 1.0))
        assert np.isnan(result.frequency_hz[0])
    assert detect(make_steps([0.0, 1.0, 50.0], [0.0, 0.0, 0.0])).outcome[0] == "aperiodic"

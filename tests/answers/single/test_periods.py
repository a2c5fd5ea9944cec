"""`iosig period` on an input of any kind: its window, sampling, methods and refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import polars as pl
import pytest

from iosig.answers.single.periods import Query, find_periods
from iosig.settings.model import Settings
from iosig.settings.periods import PeriodSettings
from iosig.streams.landing import ReadOptions
from iosig.transforms.periods.search import IntervalSampling
from iosig.warehouse.errors import UsageError
from tests.budget import one_in
from tests.nights import Cli

PERIOD_S, BURST_S, COUNT = 20.0, 0.3, 30
METHODS = ("null_tested", "dft", "autocorrelation", "merged", "autoperiod", "ftio")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace in FTIO's format: 6 MB in 0.3 s every 20 s, after a first phase of one minute that starts at 90 s."""
    starts = [0.0, *(150.0 + PERIOD_S * k for k in range(COUNT))]
    ends = [60.0, *(start + BURST_S for start in starts[1:])]
    rates = [1e6, *[6e6 / BURST_S] * COUNT]
    phases = {"b_rank_avr": rates, "t_rank_s": starts, "t_rank_e": ends}
    path = tmp_path / "run.json"
    total = {"total_bytes": 6e7 + 6e6 * COUNT, "number_of_ranks": 4, "bandwidth": phases}
    path.write_text(json.dumps({"write_sync": total}))
    return path


@pytest.fixture
def polls(tmp_path: Path) -> Path:
    """An hour of polls of two controllers, every 5 s: reads of 10 s every minute, and a gap of half a minute."""
    times = pl.datetime_range(
        pl.datetime(2026, 3, 3), pl.datetime(2026, 3, 3, 1), "5s", closed="right", time_zone="UTC", eager=True
    )
    seconds = np.arange(1, len(times) + 1) * 5
    reads = np.where((seconds % 60 > 10) & (seconds % 60 <= 20), 2e9, 1e6)
    frame = pl.concat(
        pl.DataFrame({"polled_at": times, "controller": name, "read_bytes_per_s": reads, "write_bytes_per_s": 0.0})
        for name in ("c0", "c1")
    )
    path = tmp_path / "polls.parquet"
    frame.filter(~pl.col("polled_at").dt.minute().is_in([30]) | (pl.col("polled_at").dt.second() > 30)).write_parquet(
        path
    )
    return path


def found(path: Path, **asked: Any) -> list[dict[str, Any]]:
    return find_periods(path, Settings(), ReadOptions(), Query(**asked)).rows.to_dicts()


def one(path: Path, direction: str, **asked: Any) -> dict[str, Any]:
    (row,) = found(path, direction=direction, **asked)
    return row


def test_trace_is_analyzed_without_a_warehouse(trace: Path, cli: Cli, tmp_path: Path) -> None:
    code, out, err = cli("--warehouse", tmp_path / "none", "period", trace, "--direction", "write", "--json")
    assert (code, err) == (0, "")
    (row,) = json.loads(out)["periods"]
    assert (row["method"], row["outcome"]) == ("null_tested", "periodic")
    assert row["period_s"] == pytest.approx(PERIOD_S, rel=1e-3)
    assert not (tmp_path / "none").exists()


def test_all_methods_can_be_requested_together(trace: Path, cli: Cli) -> None:
    code, out, _ = cli("period", trace, "--method", "all")
    assert code == 0
    assert all(method in out for method in METHODS)
    assert "no_io" in out, "nothing is read"


@pytest.mark.parametrize("hz", [1.0, 10.0, 100.0])
def test_period_does_not_depend_on_the_sampling_frequency(hz: float, trace: Path) -> None:
    row = one(trace, "write", sampling_hz=hz)
    assert row["sampling_hz"] == hz
    assert row["period_s"] == pytest.approx(PERIOD_S, rel=1e-3)


@pytest.mark.parametrize("method", ["null_tested", "dft", "autocorrelation", "autoperiod"])
def test_window_limits_the_analyzed_time(method: str, trace: Path) -> None:
    row = one(trace, "write", window=(150.0, 750.0), sampling_hz=10.0, method=method)
    assert row["window_start_s"] >= 150
    assert row["window_end_s"] <= 750
    assert row["period_s"] == pytest.approx(PERIOD_S, rel=1e-2)
    assert row["r_io"] == pytest.approx(BURST_S / PERIOD_S, rel=0.05)


@pytest.mark.parametrize("method", ["dft", "merged"])
@pytest.mark.parametrize("asked", [{}, {"sampling_hz": 10.0}, {"window": (0.0531, math.inf)}])
def test_window_of_ftio_is_the_time_of_the_io(shared_data: Path, method: str, asked: dict[str, Any]) -> None:
    """FTIO 0.0.9 finds 1.927 s in the writes of this trace, from 0.053 to 28.982 s of 29.1 s."""
    row = one(shared_data / "tmio" / "8.jsonl", "write", method=method, **asked)
    assert row["period_s"] == pytest.approx(1.927, abs=0.001)
    assert (row["window_start_s"], row["window_end_s"]) == pytest.approx((0.0531, 28.953), abs=1e-3)
    assert row["sample_count"] == 289


def test_smallest_change_gives_the_sampling_frequency(trace: Path, polls: Path, tmp_path: Path) -> None:
    """FTIO, section II-E; the shortest time between two changes is a burst of 0.3 s."""
    row = one(trace, "write", sampling_hz="auto", method="dft")
    assert row["sampling_hz"] == pytest.approx(1 / BURST_S)
    assert row["abstraction_error"] == pytest.approx(0.0, abs=0.05)
    with pytest.raises(UsageError, match=r"FTIO 0\.0\.9"):
        found(trace, sampling_hz="auto", method="ftio")
    with pytest.raises(UsageError, match="requires a trace"):
        found(polls, sampling_hz="auto")
    phases = {"b_rank_avr": [1e6, 1e6], "t_rank_s": [0.0, 1e-7], "t_rank_e": [60.0, 30.0]}
    close = tmp_path / "close.json"
    close.write_text(json.dumps({"write_sync": {"total_bytes": 9e7, "number_of_ranks": 2, "bandwidth": phases}}))
    with pytest.raises(UsageError, match="samples exceed"):
        found(close, sampling_hz="auto")


def test_requested_window_is_searched_as_given(trace: Path) -> None:
    whole = one(trace, "write", window=(140.0, 745.0), sampling_hz=1.0, method="dft")
    assert (whole["window_start_s"], whole["window_end_s"], whole["sample_count"]) == (140.0, 731.0, 591)
    half = one(trace, "write", window=(140.0, math.inf), sampling_hz=1.0, method="dft")
    assert (half["window_start_s"], half["window_end_s"], half["sample_count"]) == (140.0, 730.0, 590)
    other = one(trace, "write", window=(-math.inf, 725.0), sampling_hz=1.0, method="dft")
    assert (other["window_start_s"], other["window_end_s"]) == (0.0, 725.0)


def test_signals_of_polls_are_cut_to_their_io(polls: Path) -> None:
    """Reads are never 0; writes are always 0."""
    assert one(polls, "read", method="dft")["sample_count"] == one(polls, "read")["sample_count"]
    assert one(polls, "write", method="dft")["outcome"] == "no_io"


def test_first_phase_can_be_skipped(trace: Path) -> None:
    row = one(trace, "write", skip_first_phase=True, method="dft")
    assert row["window_start_s"] == 150.0
    assert row["period_s"] == pytest.approx(PERIOD_S, rel=1e-2)


def test_ftio_uses_its_original_sampling(trace: Path) -> None:
    row = one(trace, "write", method="ftio")
    assert (row["method"], row["is_default"]) == ("ftio", False)
    assert row["window_start_s"] == 0.0


WAYS = ("z_score", "dbscan", "isolation_forest", "local_outlier_factor", "find_peaks")


@pytest.mark.parametrize("way", one_in(5, WAYS))
def test_each_outlier_method_finds_the_period(way: str, trace: Path, cli: Cli, tmp_path: Path) -> None:
    asked = ("period", trace, "--direction", "write", "--method", "dft", "--skip-first-phase", "--outliers", way)
    code, out, err = cli(*asked, "--json")
    assert (code, err) == (0, "")
    (row,) = json.loads(out)["periods"]
    assert (row["method"], row["outliers"], row["outcome"]) == ("dft", way, "periodic")
    assert row["period_s"] == pytest.approx(PERIOD_S, rel=1e-2)
    code, out, _ = cli(*asked, "--plot", tmp_path / "period.png")
    assert code == 0
    assert (tmp_path / "period.png").is_file()
    assert (f"dft ({way})" in out) == (way != "z_score")


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("Z-score", "z_score"),
        ("DB-Scan", "dbscan"),
        ("db", "dbscan"),
        ("Isolation_forest", "isolation_forest"),
        ("Isolation-forest", "isolation_forest"),
        ("LOF", "local_outlier_factor"),
        ("local outlier factor", "local_outlier_factor"),
        ("peak", "find_peaks"),
        ("Find-peaks", "find_peaks"),
    ],
)
def test_outlier_names_of_ftio_are_accepted(name: str, way: str, trace: Path, cli: Cli) -> None:
    code, out, _ = cli("period", trace, "--method", "merged", "--outliers", name, "--json")
    assert code == 0
    assert {row["outliers"] for row in json.loads(out)["periods"]} == {way}


def test_outlier_method_is_reported_by_dft_and_merged_only(trace: Path, cli: Cli) -> None:
    _, out, _ = cli("period", trace, "--method", "all", "--outliers", "peaks", "--json")
    told = {row["method"]: row["outliers"] for row in json.loads(out)["periods"]}
    assert {method for method, way in told.items() if way} == {"dft", "merged"}
    _, out, _ = cli("period", trace, "--method", "dft", "--json")
    assert {row["outliers"] for row in json.loads(out)["periods"]} == {"z_score"}


@pytest.mark.parametrize("method", ["null_tested", "autocorrelation", "autoperiod", "ftio"])
def test_outliers_option_is_refused_for_other_methods(method: str, trace: Path, cli: Cli) -> None:
    code, out, err = cli("period", trace, "--method", method, "--outliers", "lof")
    assert (code, out) == (2, "")
    assert f"--outliers has no effect with --method {method}: use it with dft, merged or all." in err
    code, out, err = cli("period", trace, "--method", method, "--outlier-merge", "union")
    assert (code, out) == (2, "")
    assert f"--outlier-merge has no effect with --method {method}" in err
    assert cli("period", trace, "--method", "dft", "--outliers", "median")[0] == 2


def test_parameters_of_each_method_are_reported(trace: Path, cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "iosig.toml"
    config.write_text(
        '[periods]\noutliers = "find_peaks"\noutlier_merge = "agreement"\nz_score = 2.5\n'
        'autoperiod_significance = "monte_carlo"\n'
    )
    asked = ("--settings", config, "period", trace, "--method", "all", "--direction", "write")
    code, out, _ = cli(*asked, "--json")
    assert code == 0
    rows = {row["method"]: row for row in json.loads(out)["periods"]}
    assert rows["ftio"]["method_parameters"] is None
    assert (rows["dft"]["outliers"], rows["autocorrelation"]["outliers"]) == ("find_peaks", None)
    known = {name: json.loads(rows[name]["method_parameters"]) for name in METHODS if name != "ftio"}
    assert known["merged"] == known["dft"] | known["autocorrelation"]
    dft, autoperiod = known["dft"]["dft"], known["autoperiod"]["autoperiod"]
    assert (dft["method"], dft["merge"], dft["outliers"]["z_threshold"]) == ("find_peaks", "agreement", 2.5)
    expected = {"significance": "monte_carlo", "confidence": 0.99, "permutation_count": 100, "seed": 0}
    assert {name: autoperiod[name] for name in expected} == expected
    assert known["null_tested"]["null_tested"]["false_alarm_probability"] == 0.01
    # options override the settings
    _, out, _ = cli(*asked, "--outliers", "dbscan", "--outlier-merge", "union")
    assert "dft (dbscan, union)" in out


def test_intervals_of_polls_are_searched_as_measured(polls: Path, tmp_path: Path) -> None:
    """The gap at half past, of 30 s, and polls that are lost at random leave uneven times."""
    frame = pl.read_parquet(polls)
    times = frame["polled_at"].unique().sort()
    kept = times.gather(np.flatnonzero(np.random.default_rng(3).random(len(times)) < 0.8))
    uneven = tmp_path / "uneven.parquet"
    frame.filter(pl.col("polled_at").is_in(kept.implode())).write_parquet(uneven)
    settings = Settings(periods=PeriodSettings(autoperiod_sampling="bins"))
    query = Query(direction="read", method="autoperiod")
    row = one(uneven, "read", method="autoperiod")
    assert (row["outcome"], row["sampling"], row["sample_count"]) == ("periodic", "intervals", len(kept))
    assert row["period_s"] == pytest.approx(60.0, rel=0.01)
    (stepped,) = find_periods(uneven, settings, ReadOptions(), query).rows.to_dicts()
    assert (stepped["sampling"], stepped["period_s"]) == ("bins", pytest.approx(60.0, rel=0.01))
    # a requested frequency gives even steps, and a skipped phase is not searched
    assert one(uneven, "read", method="autoperiod", sampling_hz=0.2)["sampling"] == "bins"
    row = one(uneven, "read", method="autoperiod", skip_first_phase=True)
    assert (row["sampling"], row["outcome"]) == ("intervals", "periodic")
    assert row["window_start_s"] > 20


def test_polls_are_one_signal_with_absolute_times(polls: Path, cli: Cli) -> None:
    code, out, _ = cli("period", polls, "--direction", "read", "--filesystem", "scratch")
    assert code == 0
    assert "scratch" in out
    assert "2026-03-03 00:00" in out
    row = one(polls, "read")
    assert row["period_s"] == pytest.approx(60.0, rel=1e-3)
    assert row["basis"] == "polled"
    assert row["missing_ratio"] > 0, "a hole is not a pause"
    assert one(polls, "write")["outcome"] == "no_io"


def test_instants_define_a_window_if_the_clock_is_known(polls: Path, trace: Path, cli: Cli) -> None:
    code, out, _ = cli(
        "period", polls, "--direction", "read", "--window", "2026-03-03T00:10Z/2026-03-03T00:25Z", "--json"
    )
    assert code == 0
    (row,) = json.loads(out)["periods"]
    assert 600 <= row["window_start_s"] < row["window_end_s"] <= 1500
    assert row["period_s"] == pytest.approx(60.0, rel=1e-2)
    code, _, err = cli("period", trace, "--window", "2026-03-03T00:10Z/")
    assert code == 2
    assert "UTC" in err


def test_open_window_ends_with_the_input(trace: Path) -> None:
    assert one(trace, "write", window=(150.0, float("inf")), method="dft")["window_end_s"] == pytest.approx(731, abs=1)


def test_excessive_sampling_is_refused(trace: Path) -> None:
    with pytest.raises(UsageError, match="exceed the maximum"):
        found(trace, sampling_hz=1e9)


def test_figure_is_drawn(trace: Path, cli: Cli, tmp_path: Path) -> None:
    code, _, err = cli("period", trace, "--plot", tmp_path / "period.png")
    assert code == 0
    assert "write" in err
    assert min(matplotlib.image.imread(tmp_path / "period.png").shape[:2]) > 500


def test_figure_agrees_with_rows_of_every_method(trace: Path, cli: Cli, tmp_path: Path) -> None:
    told = find_periods(trace, Settings(), ReadOptions(), Query(method="all", direction="write"))
    rows = {row["method"]: row for row in told.rows.to_dicts()}
    assert [one.method for one in told.drawn] == list(rows)
    for one in told.drawn:
        row, (period_s,), (confidence,) = rows[one.method], one.detections.period_s, one.detections.confidence
        assert one.detections.outcome[0] == row["outcome"]
        if row["outcome"] == "periodic":
            assert period_s == pytest.approx(row["period_s"])
            sure = row["confidence"] if row["refined_confidence"] is None else row["refined_confidence"]
            assert np.nan_to_num(confidence) == pytest.approx(sure or 0.0)
    assert {one.title for one in told.drawn} == {trace.name}, "no path"
    assert cli("period", trace, "--method", "all", "--plot", tmp_path / "all.svg")[0] == 0
    text = (tmp_path / "all.svg").read_text()
    assert text.startswith("<?xml")


@pytest.mark.parametrize("sampling", ["intervals", "bins"])
def test_figure_of_autoperiod_has_the_steps_of_its_search(polls: Path, sampling: IntervalSampling) -> None:
    settings = Settings(periods=PeriodSettings(autoperiod_sampling=sampling))
    result = find_periods(polls, settings, ReadOptions(), Query(direction="read", method="autoperiod"))
    (row,), (drawn,) = result.rows.to_dicts(), result.drawn
    assert drawn.steps is not None
    assert row["sampling"] == sampling
    # the lines of the hill meet at the period that the search reports
    assert drawn.steps.hill_lag_s[0, 1] == pytest.approx(row["period_s"], abs=5.0)
    assert drawn.steps.power.max() > drawn.steps.threshold
    (other,) = find_periods(polls, settings, ReadOptions(), Query(direction="read", method="dft")).drawn
    assert other.steps is None


def test_idle_input_draws_nothing(tmp_path: Path, cli: Cli) -> None:
    series = tmp_path / "idle.csv"
    series.write_text("time_s,write_bytes_per_s\n" + "".join(f"{60 * k},0\n" for k in range(1, 30)))
    code, _, err = cli("period", series, "--plot", tmp_path / "period.png")
    assert code == 2
    assert "Nothing to draw" in err
    assert not (tmp_path / "period.png").exists()


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """A series of 20 s bursts, then slow large bursts with fast small bursts between them."""
    place = np.arange(3000)
    later = (place % 110 < 12) * 2e9 + (place % 9 < 2) * 1e8
    rates = np.where(place < 1200, (place % 20 < 3) * 1e9, later)
    path = tmp_path / "several.csv"
    lines = (f"{at + 1},{rate}" for at, rate in zip(place.tolist(), rates.tolist(), strict=True))
    path.write_text("time_s,write_bytes_per_s\n" + "\n".join(lines) + "\n")
    return path


def test_several_periods_are_listed_as_segments(several: Path, cli: Cli) -> None:
    code, out, _ = cli("period", several, "--json")
    assert code == 0
    (row,) = json.loads(out)["periods"]
    segments = row["segments"]
    assert [each["segment"] for each in segments] == list(range(1, len(segments) + 1))
    assert {round(each["period_s"]) for each in segments} == {20, 110, 9}
    (main,) = (each for each in segments if each["is_main"])
    assert {name: main[name] for name in main if name in row} == {name: row[name] for name in main if name in row}
    assert main["segment_bytes"] == max(each["segment_bytes"] for each in segments)
    assert (main["burst_width_s"], main["duty_ratio"]) == (12, pytest.approx(12 / 110, rel=1e-2))
    assert "is_main" not in row
    code, out, _ = cli("period", several)
    assert code == 0
    assert "Several periods, in order of time" in out
    assert all(text in out for text in ("error_s", "burst_s", "duty"))


def test_ftio_wavelet_reports_segments(several: Path, trace: Path, polls: Path, cli: Cli) -> None:
    (row,) = json.loads(cli("period", several, "--method", "ftio-wavelet", "--json")[1])["periods"]
    assert (row["method"], row["outcome"], row["is_default"]) == ("ftio-wavelet", "periodic", False)
    for path in (trace, polls):
        code, out, _ = cli("period", path, "--method", "ftio-wavelet", "--json")
        assert code == 0
        rows = json.loads(out)["periods"]
        for each in rows:
            assert all(one["frequency_hz"] == each["frequency_hz"] for one in each["segments"])
            assert sum(one["is_main"] for one in each["segments"]) == bool(each["segments"])
        assert any(each["segments"] for each in rows) or path == polls


def test_segments_are_hidden_for_other_methods_and_single_periods(several: Path, trace: Path, cli: Cli) -> None:
    assert json.loads(cli("period", several, "--method", "dft", "--json")[1])["periods"][0]["segments"] == []
    code, out, _ = cli("period", trace, "--direction", "write", "--window", "140:600")
    assert code == 0
    assert "Several periods" not in out


def test_input_without_bytes_is_refused(tmp_path: Path, cli: Cli) -> None:
    log = tmp_path / "jobs.sacct"
    log.write_text("JobID|User|JobName|Partition|NNodes|Start|End|State\n")
    code, out, _ = cli("period", log)
    assert (code, out) == (3, "")


def test_ftio_includes_requests_without_bytes(tmp_path: Path) -> None:
    starts = [0.0, *(20.0 * k for k in range(1, 21))]
    rates = [0.0, *[1e6] * 20]
    phases = {"b_rank_avr": rates, "t_rank_s": starts, "t_rank_e": [start + 2.0 for start in starts]}
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"write_sync": {"total_bytes": 4e7, "number_of_ranks": 1, "bandwidth": phases}}))
    ftio = one(path, "write", method="ftio", sampling_hz=1.0)
    # from the request without bytes to the last one's end: 402 samples; from the first byte on there would be 382
    assert (ftio["window_start_s"], ftio["window_end_s"]) == (0.0, 402.0)
    assert ftio["frequency_hz"] == pytest.approx(20 / 402)
    ours = one(path, "write", sampling_hz=1.0)
    assert ours["window_start_s"] == pytest.approx(20.0, abs=1.0)
    assert ours["period_s"] == pytest.approx(20.0, rel=1e-3)

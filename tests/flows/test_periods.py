"""The night finds periods of jobs, series and traced runs by every method, or gives a reason."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from iosig.settings.model import Settings
from iosig.settings.periods import PeriodSettings
from iosig.streams.landing import ReadOptions, land_paths
from iosig.transforms.periods.search import METHODS
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.store.store import Store
from tests.flows.traced_runs import land, trace
from tests.nights import land_files, run_night

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_checks_throughout")]

PERIOD_S, BURST_S, COUNT = 20.0, 0.3, 30
TIMES = ("start_s", "end_s")
WRITE = {"module": "POSIX", "direction": "write"}


def bursts(**known: Any) -> list[dict[str, Any]]:
    """Requests of 6 MB every 20 s; each takes 0.3 s."""
    return [
        {"request_bytes": 6e6, "start_s": PERIOD_S * k, "end_s": PERIOD_S * k + BURST_S, **known} for k in range(COUNT)
    ]


def land_traces(store: Store) -> dict[str, str]:
    """Land traced runs; return their ids by name."""
    counted = {"module": "POSIX", "written_bytes": 6_000_000 * COUNT, "read_bytes": 0, "write_count": COUNT}
    timed = counted | {"write_start_s": 0.0, "write_end_s": PERIOD_S * COUNT}
    known: dict[str, Any] = {"started_min": -300.0, "duration_s": PERIOD_S * COUNT}
    text = {"module": "STDIO", "direction": "write"}
    return {
        "bursts": land(
            store,
            "bursts",
            trace(modules={"POSIX": {}, "DXT_POSIX": {}}, records=[timed], requests=bursts(**WRITE), **known),
        ),
        # Every other burst belongs to another module; together the bursts recur every 20 s.
        "layers": land(
            store,
            "layers",
            trace(
                tracer="recorder",
                modules={"POSIX": {}, "STDIO": {}},
                requests=[burst | (WRITE if k % 2 else text) for k, burst in enumerate(bursts())],
                **known,
            ),
        ),
        # The program computes for 3 s, then writes for 2 s every 10 s, and ends within a period.
        "late": land(
            store,
            "late",
            trace(
                modules={"POSIX": {}, "DXT_POSIX": {}},
                records=[timed | {"written_bytes": 12_000_000_000, "write_end_s": 115.0}],
                requests=[
                    {"request_bytes": 1e9, "start_s": 3.0 + 10 * k, "end_s": 5.0 + 10 * k, **WRITE} for k in range(12)
                ],
                **known | {"duration_s": 125.0},
            ),
        ),
        # Three nodes start writing 2 s apart.
        "nodes": land(
            store,
            "nodes",
            trace(
                tracer="recorder",
                modules={"POSIX": {}},
                requests=[
                    burst | WRITE | {"host": name} | {key: burst[key] + late for key in TIMES}
                    for name, late in (("n1", 0.0), ("n2", 2.0), ("n3", 4.0))
                    for burst in bursts()
                ],
                **known,
            ),
        ),
        "counters": land(store, "counters", trace(modules={"POSIX": {}}, records=[timed], **known)),
        "unsized": land(
            store,
            "unsized",
            trace(
                tracer="recorder",
                modules={"POSIX": {}},
                records=[{"module": "POSIX", "write_count": COUNT + 1, "read_bytes": 0, "read_count": 0}],
                requests=[*bursts(**WRITE), {"request_bytes": None, "start_s": 5.0, "end_s": 6.0, **WRITE}],
                **known,
            ),
        ),
    }


def write_calls(folder: Path) -> Path:
    """Write a run of four ranks as Recorder's text: every 20 s each opens a file, seeks, and writes at random times."""
    folder.mkdir()
    generator = np.random.default_rng(1)
    for rank in range(4):
        calls = [(1.0 + PERIOD_S * k + 0.1 * rank, "open", f"f{rank} 66 420") for k in range(COUNT)]
        calls += [(at, "lseek", f"f{rank} 0 0") for at in generator.uniform(0, PERIOD_S * COUNT, 40)]
        calls += [(at, "pwrite", f"f{rank} %p 100 0") for at in generator.uniform(0, PERIOD_S * COUNT, 40)]
        lines = [f"{at:.7f} {at + 0.01:.7f} {name} 0 0 ( {words} )\n" for at, name, words in sorted(calls)]
        (folder / f"{rank}.txt").write_text("".join(lines))
    return folder


def write_series(path: Path) -> Path:
    """Write a node's rates of two hours: a minute of writing every ten minutes, and no reading."""
    rows = [f"{30 * k},0,{1e9 if k % 20 in (5, 6) else 0}" for k in range(1, 241)]
    path.write_text("time_s,read_bytes_per_s,write_bytes_per_s\n" + "\n".join(rows) + "\n")
    return path


def write_several(path: Path) -> Path:
    """Write a node's rates of a day: bursts every 10 minutes, then every 35.5 minutes."""
    rows = [f"{30 * k},0,{1e9 if k % (20 if k < 1200 else 71) in (5, 6) else 0}" for k in range(1, 2880)]
    path.write_text("time_s,read_bytes_per_s,write_bytes_per_s\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def released(
    landed_site: Store, tmp_path_factory: pytest.TempPathFactory, quick_checks_throughout: None
) -> tuple[dict[str, pl.DataFrame], dict[str, str]]:
    """Period tables of a night with the small site's jobs, two series, and traces; the traces' ids by name."""
    folder = tmp_path_factory.mktemp("periods")
    store = Store(folder / "warehouse")
    shutil.copytree(landed_site.root, store.root)
    traces = land_traces(store)
    series = [str(write_series(folder / "node7.csv")), str(write_several(folder / "node8.csv"))]
    land_files(store, *series)
    (arrival,) = land_paths(store, Settings(), [str(write_calls(folder / "calls"))], ReadOptions())
    assert arrival.landed
    traces["calls"] = arrival.landed.landing.trace_id
    release = run_night(store)
    with open_release(store, release) as connection:
        tables = ("periods", "period_segments", "node_periods", "metadata_periods")
        return {name: connection.sql(f"from {name}").pl() for name in tables}, traces


@pytest.fixture(scope="module")
def found(released: tuple[dict[str, pl.DataFrame], dict[str, str]]) -> tuple[pl.DataFrame, dict[str, str]]:
    """The rows of `periods`, and the traces' ids by name."""
    return released[0]["periods"], released[1]


def default(rows: pl.DataFrame, subject_id: str, direction: str) -> dict[str, Any]:
    (row,) = rows.filter("is_default", subject_id=subject_id, direction=direction).iter_rows(named=True)
    return row


def test_every_subject_has_a_row_for_each_method(found: tuple[pl.DataFrame, dict[str, str]]) -> None:
    rows, traces = found
    subjects = rows.group_by("subject_kind", "cluster", "subject_id", "started_at", "filesystem", "direction").agg(
        pl.col("method").sort()
    )
    assert all(
        methods == (["null_tested"] if kind == "job" else sorted(METHODS))
        for kind, methods in subjects.select("subject_kind", "method").iter_rows()
    )
    assert set(subjects["subject_kind"]) == {"job", "series", "trace"}
    assert set(traces.values()) <= set(subjects["subject_id"])


@pytest.mark.parametrize("name", ["bursts", "layers"])
def test_traced_run_has_the_period_of_its_bursts(name: str, found: tuple[pl.DataFrame, dict[str, str]]) -> None:
    rows, traces = found
    row = default(rows, traces[name], "write")
    assert row["outcome"] == "periodic"
    assert row["period_s"] == pytest.approx(PERIOD_S, rel=1e-3)
    assert row["false_alarm_probability"] < 1e-6
    assert row["basis"] == "traced"


def test_characterization_of_short_bursts_is_exact(found: tuple[pl.DataFrame, dict[str, str]]) -> None:
    rows, traces = found
    (row,) = rows.filter(subject_id=traces["bursts"], direction="write", method="dft").iter_rows(named=True)
    assert row["sampling_hz"] == 1.0
    assert row["r_io"] == pytest.approx(BURST_S / PERIOD_S, rel=1e-9)
    assert row["b_io_bytes_per_s"] == pytest.approx(6e6 / BURST_S, rel=1e-9)
    assert row["bytes_per_period"] == pytest.approx(6e6, rel=1e-9)
    assert row["periodicity_score"] == pytest.approx(1.0, abs=1e-9)
    # each instant within a burst of 0.3 s counts for a second, while steps hold the bytes
    assert row["abstraction_error"] == pytest.approx(1 / BURST_S - 1)
    assert default(rows, traces["bursts"], "write")["abstraction_error"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("method", ["dft", "merged", "autocorrelation"])
def test_methods_of_ftio_search_the_time_of_the_io(method: str, found: tuple[pl.DataFrame, dict[str, str]]) -> None:
    """In the whole run, 12.5 periods, the transform finds a period of 5 s."""
    rows, traces = found
    (row,) = rows.filter(subject_id=traces["late"], direction="write", method=method).iter_rows(named=True)
    assert (row["window_start_s"], row["window_end_s"], row["sample_count"]) == (3.0, 115.0, 112)
    assert row["period_s"] == pytest.approx(10.0, rel=0.02)
    assert method != "merged" or row["refined_confidence"] > 0.99
    whole = default(rows, traces["late"], "write")
    assert whole["sample_count"] == 125
    (series,) = rows.filter(subject_id="node7", direction="write", method=method).iter_rows(named=True)
    assert (series["window_start_s"], series["window_end_s"]) == (120.0, 6780.0)
    assert series["period_s"] == pytest.approx(600.0, rel=0.02)


@pytest.mark.parametrize(("name", "outcome"), [("counters", "interval_only"), ("unsized", "unknown_sizes")])
def test_bytes_without_time_or_size_have_no_period(
    name: str, outcome: str, found: tuple[pl.DataFrame, dict[str, str]]
) -> None:
    rows, traces = found
    untold = rows.filter(subject_id=traces[name], direction="write")
    assert set(untold["outcome"]) == {outcome}
    answers = untold.drop(
        "ended_on", "subject_kind", "cluster", "subject_id", "started_at", "filesystem", "direction", "metric"
    )
    answers = answers.drop("basis", "method", "is_default", "outcome")
    assert all(column.null_count() == untold.height for column in answers)


def test_subject_without_reads_has_no_read_io(found: tuple[pl.DataFrame, dict[str, str]]) -> None:
    rows, traces = found
    assert default(rows, traces["bursts"], "read")["outcome"] == "no_io"
    assert default(rows, "node7", "read")["outcome"] == "no_io"


def test_series_period_uses_its_sampling_interval(found: tuple[pl.DataFrame, dict[str, str]]) -> None:
    row = default(found[0], "node7", "write")
    assert row["period_s"] == pytest.approx(600.0, rel=1e-3)
    assert row["sampling_hz"] == pytest.approx(1 / 30)
    assert (row["basis"], row["started_at"]) == ("series", None)
    assert 0 <= row["window_start_s"] < row["window_end_s"] <= 7200


def test_jobs_of_unknown_applications_have_no_period(found: tuple[pl.DataFrame, dict[str, str]]) -> None:
    jobs = found[0].filter(subject_kind="job")
    assert set(jobs["basis"]) == {"inferred"}
    assert jobs["started_at"].null_count() == 0
    assert set(jobs["outcome"]) == {"no_signature"}


def test_candidates_describe_the_cosine(found: tuple[pl.DataFrame, dict[str, str]]) -> None:
    (row,) = found[0].filter(subject_id="node7", direction="write", method="dft").iter_rows(named=True)
    assert row["candidates"][0] == row["frequency_hz"]
    assert len(row["candidates"]) == len(row["candidate_amplitudes_bytes_per_s"]) == len(row["candidate_phases_rad"])
    # 24 steps of 30 s with I/O from the first to the last of them
    assert row["mean_bytes_per_s"] == pytest.approx(1e9 * 24 / row["sample_count"])


def test_periodic_row_is_its_segment_with_most_bytes(
    released: tuple[dict[str, pl.DataFrame], dict[str, str]],
) -> None:
    tables, traces = released
    rows, segments = tables["periods"], tables["period_segments"]
    periodic = rows.filter(pl.col("method") == "null_tested", pl.col("outcome") == "periodic")
    main = segments.filter("is_main")
    same = ["window_start_s", "window_end_s", "period_s", "period_error_s", "burst_width_s", "duty_ratio"]
    key = ["subject_kind", "cluster", "subject_id", "started_at", "filesystem", "direction", "method"]
    assert main.select(*key, *same).sort(key).equals(periodic.select(*key, *same).sort(key))
    most = segments.group_by(key).agg(pl.col("segment_bytes").max(), pl.len(), pl.col("segment").max())
    assert main.join(most, on=[*key, "segment_bytes"], how="semi", nulls_equal=True).height == main.height
    assert most["len"].equals(most["segment"])
    assert traces["bursts"] in main["subject_id"]


def test_series_with_two_rhythms_has_two_segments(
    released: tuple[dict[str, pl.DataFrame], dict[str, str]],
) -> None:
    own = released[0]["period_segments"].filter(subject_id="node8", direction="write").sort("segment")
    assert own["period_s"].to_list() == pytest.approx([600, 2130], rel=1e-3)
    assert own["window_end_s"][0] <= own["window_start_s"][1] + 600
    assert own["burst_width_s"].to_list() == [60, 60]
    # a burst or two more or less at the change of rhythm
    assert own["segment_bytes"].to_list() == pytest.approx([60 * 6e10, 24 * 6e10], rel=0.15)
    assert own["segment_bytes"].sum() == pytest.approx(84 * 6e10, rel=0.02)


def test_nodes_have_periods_and_lags(
    released: tuple[dict[str, pl.DataFrame], dict[str, str]],
) -> None:
    nodes, traces = released[0]["node_periods"].sort("host"), released[1]
    assert set(nodes["trace_id"]) == {traces["nodes"]}
    own = nodes.filter(direction="write")
    assert own["host"].to_list() == ["n1", "n2", "n3"]
    assert own["period_s"].to_list() == pytest.approx([PERIOD_S] * 3, rel=1e-3)
    assert own["node_bytes"].to_list() == pytest.approx([6e6 * COUNT] * 3)
    assert own["lag_s"].to_list() == pytest.approx([-2, 0, 2], abs=0.05)
    assert (own["concentration_ratio"] > 0.9).all()
    assert (own["false_alarm_probability"] < 1e-6).all()


def test_metadata_calls_have_separate_periods(released: tuple[dict[str, pl.DataFrame], dict[str, str]]) -> None:
    rows, traces = released[0]["metadata_periods"].sort("operation_group"), released[1]
    assert set(rows["trace_id"]) == {traces["calls"]}
    assert rows["operation_group"].to_list() == ["all", "open", "seek"]
    assert rows["metadata_call_count"].to_list() == [4 * COUNT + 160, 4 * COUNT, 160]
    assert rows["outcome"].to_list() == ["periodic", "periodic", "aperiodic"]
    for row in rows.filter(outcome="periodic").iter_rows(named=True):
        assert row["period_s"] == pytest.approx(PERIOD_S, rel=1e-2)
        assert row["segment_periods_s"] == [row["period_s"]]
        assert (row["segment_starts_s"], row["segment_ends_s"]) == ([row["window_start_s"]], [row["window_end_s"]])
        assert row["false_alarm_probability"] < 0.01
    (seeks,) = rows.filter(operation_group="seek").iter_rows(named=True)
    assert (seeks["period_s"], seeks["segment_periods_s"]) == (None, None)
    # the ranks' writes have no period
    assert default(released[0]["periods"], traces["calls"], "write")["outcome"] == "aperiodic"


@pytest.mark.long
def test_only_configured_methods_are_published(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    land_files(store, write_series(tmp_path / "node7.csv"))
    own = PeriodSettings(
        methods=["merged", "autoperiod"],
        outliers="dbscan",
        outlier_merge="agreement",
        autoperiod_significance="monte_carlo",
    )
    release = run_night(store, Settings(periods=own))
    with open_release(store, release) as connection:
        rows = {row["method"]: row for row in connection.sql("from periods where direction = 'write'").pl().to_dicts()}
    assert set(rows) == {"merged", "autoperiod"}
    known = json.loads(rows["merged"]["method_parameters"])["dft"]
    assert (known["method"], known["merge"], rows["merged"]["sampling"]) == ("dbscan", "agreement", "bins")
    known = json.loads(rows["autoperiod"]["method_parameters"])["autoperiod"]
    assert (known["significance"], known["confidence"], known["seed"]) == ("monte_carlo", 0.99, 0)
    assert (rows["autoperiod"]["sampling"], rows["autoperiod"]["outcome"]) == ("intervals", "periodic")
    assert rows["autoperiod"]["period_s"] == pytest.approx(600.0, rel=0.01)

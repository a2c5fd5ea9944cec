"""Trace samples are the bytes of their runs on one grid, and only those that servers confirm are measured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from iosig.answers.signatures.view import Query, build_view
from iosig.flows.executors import Engine
from iosig.flows.nightly import begin_run, build
from iosig.flows.steps.order import STEPS
from iosig.flows.steps.plan import make_plan
from iosig.flows.steps.trace_samples import build_samples
from iosig.settings.model import Settings, SignatureSettings, TraceSettings
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.samples import GRID_STEPS, SAMPLE_SETS, TRACE_RUNS, TRACE_SAMPLES, TRACE_SERIES
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.store.store import Store
from tests.flows.test_signatures import WAVE, Ran, write_day
from tests.flows.traced_runs import land, trace
from tests.nights import land_files, run_night
from tests.sql.given import rows

_STEPS = (
    "stage polls", "stage jobs", "stage traces", "traces", "samples", "job i/o sources", "trace samples", "sample sets",
)  # fmt: skip
START = datetime(2018, 2, 9, 10, tzinfo=UTC)
POLL_S = 10
#: a run of five minutes that writes in two bursts
BURSTS = np.zeros(300)
BURSTS[60:80] = 5e6
BURSTS[200:240] = 2e6


# ---- one run


def sampled(
    own: Any = BURSTS,
    served: Any = BURSTS,
    *,
    delay_s: float = 0.0,
    interval_s: float = 1.0,
    direction: str = "write",
    margin_s: int = 100,
    grid: dict[str, Any] | None = None,
    **changes: Any,
) -> pl.DataFrame:
    """Return the samples of a run that moved `own` bytes in each second; servers moved `served` bytes `delay_s` later.

    interval_s: step of the trace. margin_s: polled time before and after the run. grid: columns of `grid_steps`.
    """
    first = int(START.timestamp())
    run: dict[str, Any] = {
        "job_id": "1", "started_at": START, "filesystem": "lake", "direction": direction, "tracer": "darshan",
        "traced_bytes": float(np.sum(own)), "outcome": "measured", "interval_s": 1.0, "step_us": 1_000_000,
        "first_step": first, "last_step": first + 300, "step_count": 301,
        "grid_started_at": START - timedelta(seconds=1), "poll_step_us": POLL_S * 1_000_000, "poll_phase_us": 0,
        "poll_first_step": first // POLL_S, "poll_last_step": first // POLL_S + 30,
        "polled_first_step": (first - margin_s) // POLL_S, "polled_last_step": (first + 300 + margin_s) // POLL_S,
        "poll_place": -((first - margin_s) // POLL_S),
    }  # fmt: skip
    edges = np.arange(first - margin_s - POLL_S, first + 300 + margin_s + 1, POLL_S) - first - delay_s
    total = np.interp(edges, np.arange(len(served) + 1), np.concatenate([[0.0], np.cumsum(served)]))
    step_bytes = np.diff(total)
    steps = {
        "read_bytes_per_s": 0.0 * step_bytes,
        "write_bytes_per_s": step_bytes / POLL_S,
        "reported_ratio": np.ones(len(step_bytes)),
    }
    trace_rates = np.asarray(own).reshape(-1, int(interval_s)).mean(axis=1) if interval_s > 1 else own
    series = {
        "job_id": "1", "started_at": START, "direction": direction, "grid_started_at": START, "interval_s": interval_s,
        "step_count": len(trace_rates), "signal_bytes_per_s": list(trace_rates),
    }  # fmt: skip
    return build_samples(
        _rows(TRACE_RUNS, run | changes),
        _rows(TRACE_SERIES, series),
        pl.DataFrame(steps | (grid or {})),
        TraceSettings(),
    )


def _rows(table: Table, row: dict[str, Any]) -> pl.DataFrame:
    """Return one row of a table, with defaults for the other columns."""
    default = rows(f"samples.{table.name}", "job_id \n 1")
    schema = {name: default.schema[name] for name in row}
    return default.with_columns(pl.DataFrame([row], schema=schema)).select(table.column_names)


def outcome(**changes: Any) -> str:
    (found,) = sampled(**changes)["outcome"]
    return str(found)


def test_sample_has_every_byte_in_its_second() -> None:
    (row,) = sampled().to_dicts()
    assert (row["outcome"], row["excess_bytes"], row["compared_ratio"]) == ("measured", 0.0, 1.0)
    # the first step ends when the run starts
    assert row["sample_bytes_per_s"] == [0.0, *BURSTS]
    coarse = sampled(interval_s=100.0)["sample_bytes_per_s"].to_list()[0]
    assert np.add.reduceat(coarse, [1, 101, 201]).tolist() == [100e6, 0.0, 80e6]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "measured"),
        # caches write later or read ahead, and clocks differ by up to half a minute
        ({"delay_s": 25.0}, "measured"),
        ({"delay_s": -25.0}, "measured"),
        ({"served": BURSTS + 1e6}, "measured"),
        ({"served": 0.96 * BURSTS}, "measured"),
        # another time zone, another clock
        ({"delay_s": 60.0}, "differs"),
        ({"delay_s": 3600.0}, "differs"),
        # more bytes than servers moved: a cache served them, or a trace counts them twice
        ({"served": 0.9 * BURSTS}, "differs"),
        ({"own": 2 * BURSTS}, "differs"),
        ({"served": 0 * BURSTS}, "differs"),
        ({"direction": "read"}, "differs"),
        # enough bytes in total, but not when the run moved them
        ({"served": np.full(300, BURSTS.mean())}, "differs"),
        ({"served": np.full(300, 5e6)}, "measured"),
        ({"own": 0 * BURSTS, "served": 0 * BURSTS}, "measured"),
        ({"traced_bytes": 1.1 * BURSTS.sum()}, "incomplete"),
        ({"outcome": "several_tracers", "served": 0 * BURSTS}, "several_tracers"),
    ],
)
def test_outcome_follows_from_traffic_of_servers(changes: dict[str, Any], expected: str) -> None:
    assert outcome(**changes) == expected


def test_without_polls_nothing_is_compared() -> None:
    unpolled: dict[str, Any] = dict.fromkeys(name for name in TRACE_RUNS.column_names if name.startswith("poll"))
    for own in (BURSTS, 0 * BURSTS):
        (row,) = sampled(own=own, **unpolled).to_dicts()
        assert (row["outcome"], row["excess_bytes"], row["compared_ratio"]) == ("no_polls", None, 0.0)
    gap = np.ones(51)
    gap[16:19] = 0.8
    (row,) = sampled(grid={"reported_ratio": gap}).to_dicts()
    # the second burst is compared, and the first is not
    assert (row["outcome"], row["compared_ratio"]) == ("no_polls", pytest.approx(80 / 180))
    assert outcome(grid={"reported_ratio": gap}, served=0 * BURSTS) == "differs"


def test_day_without_matching_traces_has_no_samples() -> None:
    runs, series, grid_steps = map(frames.empty, (TRACE_RUNS, TRACE_SERIES, GRID_STEPS))
    assert build_samples(runs, series, grid_steps, TraceSettings()).is_empty()


# ---- a site


def built(folder: Path, settings: Settings, files: Sequence[Any], store: Store) -> dict[str, pl.DataFrame]:
    """Land files, and compute trace samples and sample sets."""
    for arrival in land_files(store, *files, settings=settings, time_zone="UTC"):
        assert not arrival.has_refusals, arrival.line()
    run = begin_run(store, settings, make_plan(store, settings))
    list(build(run, Engine(), steps=[step for step in STEPS if step.name in _STEPS]))
    samples = [pl.read_parquet(path) for day in run.plan.job_days if (path := run.path(TRACE_SAMPLES, day)).exists()]
    return {
        TRACE_SAMPLES.name: pl.concat([pl.DataFrame(schema={"job_id": pl.String}), *samples], how="diagonal"),
        SAMPLE_SETS.name: pl.read_parquet(run.path(SAMPLE_SETS, None)),
    }


def trace_run(store: Store, number: int, start_min: float, factor: float, tracer: str) -> None:
    """Land a trace of a run of `wave` on the file system of the polls."""
    requests = [
        {"direction": "write", "request_bytes": factor * volume, "start_s": at, "end_s": at + lasting}
        for at, lasting, volume in WAVE
    ]
    modules: dict[str, dict[str, Any]] = {"POSIX": {}}
    if tracer == "darshan":
        modules["DXT_POSIX"] = {}
    record = {"module": "POSIX", "written_bytes": int(factor * 100e9), "read_bytes": 0, "write_count": 3}
    land(
        store,
        f"{number}",
        trace(
            tracer=tracer,
            modules=modules,
            records=[record | {"write_start_s": 100.0, "write_end_s": 740.0}],
            requests=requests,
            started_min=start_min,
            duration_s=900.0,
            job_id=f"a{number}",
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factors", "samples", "source", "count"),
    [
        ([1.0] * 6, "best", "client", 6),
        ([1.0] * 5 + [1.2], "best", "client", 5),
        # the others are too few
        ([1.0] * 4 + [1.2] * 2, "best", "server", 6),
        ([1.0] * 6, "shared", "server", 6),
    ],
)
def test_traces_that_servers_confirm_replace_shared_traffic(
    factors: list[float], samples: Any, source: str, count: int, tmp_path: Path
) -> None:
    store, settings = Store(tmp_path / "warehouse"), Settings(signatures=SignatureSettings(samples=samples))
    starts = [-1000 + 60.0 * number for number in range(6)]
    files = write_day(tmp_path / "site", "a", [Ran("wave", start) for start in starts], -1010.0, -600.0)
    for number, (start, factor) in enumerate(zip(starts, factors, strict=True)):
        trace_run(store, number, start, factor, ("darshan", "recorder", "dftracer")[number % 3])
    found = built(tmp_path, settings, files, store)
    writes = pl.col("direction") == "write"
    traced = found["trace_samples"].filter(writes).sort("job_id")
    assert traced["outcome"].to_list() == ["measured" if factor == 1 else "differs" for factor in factors]
    assert traced["tracer"].to_list() == ["darshan", "recorder", "dftracer"] * 2
    sets = found["sample_sets"].filter(writes)
    assert (sets["source"].unique().to_list(), sets.height) == ([source], count)
    if source == "client":
        assert sets["sample_bytes"].to_list() == pytest.approx([100e9] * count)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_checks")
def test_signature_of_traced_runs_names_its_source(tmp_path: Path) -> None:
    store, starts = Store(tmp_path / "warehouse"), [-1000 + 60.0 * number for number in range(5)]
    files = write_day(tmp_path / "site", "a", [Ran("wave", start) for start in starts], -1010.0, -660.0)
    land_files(store, *files)
    for number, start in enumerate(starts):
        trace_run(store, number, start, 1.0, "darshan")
    release = run_night(store)
    with open_release(store, release) as connection:
        found = connection.sql("from signatures where is_default and direction = 'write'").pl()
        checks = connection.sql("from signature_checks where direction = 'write'").pl()
        (counted,) = connection.sql("select sample_count from applications").fetchall()
    assert found["source"].to_list() == ["client"]
    assert found["volume_bytes"].to_list() == pytest.approx([100e9], rel=0.01)
    assert checks["is_training_run"].to_list() == [True] * checks.height
    assert checks["trace_id"].n_unique() == 5
    assert counted == (5,)
    view = build_view(store, release, Query("wave", direction="write"))
    assert [sample.source for sample in view.samples] == ["client"] * 5


# ---- real traces


def job_log(folder: Path, job_id: str, start: datetime, end: datetime) -> Path:
    """Write a log of a traced job, and of a longer job around it: polls are kept while jobs run."""
    around = [at + timedelta(minutes=shift) for at, shift in ((start, -1), (end, 1))]
    path = folder / "jobs.sacct"
    path.write_text(
        "JobID|User|JobName|Partition|NNodes|Start|End|State\n"
        f"{job_id}|ann|app|batch|4|{start:%FT%TZ}|{end:%FT%TZ}|COMPLETED\n"
        f"77|bob|other|batch|4|{around[0]:%FT%TZ}|{around[1]:%FT%TZ}|COMPLETED\n"
    )
    return path


def poll_file(folder: Path, start: datetime, seconds: int, bytes_per_s: np.ndarray[Any, Any], delay_s: int) -> Path:
    """Write polls of 2 s from a minute before a run to a minute after it."""
    whole = np.zeros(seconds + 240)
    whole[120 + delay_s : 120 + delay_s + len(bytes_per_s)] = bytes_per_s
    rates = whole[: len(whole) // 2 * 2].reshape(-1, 2).mean(axis=1)
    begin = start - timedelta(seconds=120)
    polled_at = [f"{begin + timedelta(seconds=2 * (number + 1)):%FT%TZ}" for number in range(len(rates))]
    frame = pl.DataFrame(
        {"polled_at": polled_at, "controller": "c0", "filesystem": "lake", "read_bytes_per_s": rates},
    ).with_columns(write_bytes_per_s=pl.col("read_bytes_per_s"))
    path = folder / "polls.csv"
    frame.write_csv(path)
    return path


#: path of a log, its job, start, duration, and basis of its signal
LOGS = {
    "dxt": ("dxt/ior_posix_fpp_n8_i12_d3.darshan", "10099", datetime(2026, 11, 20, 22, 52, 43), 39, "requests"),
    "heatmap": ("darshan/e3sm_io_heatmap_only.darshan", "586491", datetime(2022, 3, 2, 19, 52, 46), 727, "heatmap"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_real_traces_are_samples_of_their_jobs(name: str, shared_data: Path, tmp_path: Path) -> None:
    path, job_id, started, lasting_s, basis = LOGS[name]
    start = started.replace(tzinfo=UTC)
    log, jobs = shared_data / path, job_log(tmp_path, job_id, start, start + timedelta(seconds=lasting_s))
    lake: dict[str, Any] = {"partitions": {"batch": ["lake"]}}
    settings = Settings(signatures=SignatureSettings(samples="traced"), **lake)
    found = built(tmp_path, settings, [log, jobs], Store(tmp_path / "a"))
    (row,) = found["trace_samples"].filter(direction="write").to_dicts()
    assert (row["job_id"], row["basis"], row["outcome"]) == (job_id, basis, "no_polls")
    rates = np.array(row["sample_bytes_per_s"])
    assert rates.sum() == pytest.approx(row["traced_bytes"], rel=0.01)
    assert found["sample_sets"]["source"].unique().to_list() == ["client"]
    # the same with polls that see these bytes twenty seconds later, or half of them
    for place, factor, expected in (("b", 1.0, "measured"), ("c", 0.5, "differs")):
        polls = poll_file(tmp_path, start, lasting_s, factor * rates, 20)
        settings = Settings(filesystems={row["filesystem"]: "lake"}, **lake)
        found = built(tmp_path, settings, [log, jobs, polls], Store(tmp_path / place))
        (compared,) = found["trace_samples"].filter(direction="write").to_dicts()
        assert (compared["filesystem"], compared["outcome"]) == ("lake", expected)
        assert compared["sample_bytes_per_s"] == row["sample_bytes_per_s"]

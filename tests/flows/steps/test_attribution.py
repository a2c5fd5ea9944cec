"""The night attributes each minute of traffic to runs: by day, by signature, by trace and by server counters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import numpy as np
import polars as pl
import pytest

from iosig.estimates.attribution import Traffic, _minutes
from iosig.flows.steps.attribution import DAYS, _first_day, attribute, list_affected_days
from iosig.flows.steps.items import StepContext, TableFile
from iosig.flows.steps.run import Run
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.attribution import PLACED_IO, SLOWDOWNS
from iosig.warehouse.contracts.job_io import JOB_IO_SOURCES
from iosig.warehouse.contracts.samples import EXACT_SAMPLES, GRID_STEPS, RUNS
from iosig.warehouse.contracts.signatures import SIGNATURE_BURSTS, SIGNATURES
from iosig.warehouse.contracts.traces import TRACE_JOBS, TRACE_SIGNALS
from iosig.warehouse.store import models

DAY = date(2026, 3, 3)
MIDNIGHT = datetime(2026, 3, 3, tzinfo=UTC)
STEP_S = 10
_FIRST = int(MIDNIGHT.timestamp()) // STEP_S - 360
_LAST = _FIRST + 1800


def at(minutes: float) -> datetime:
    return MIDNIGHT + timedelta(minutes=minutes)


def table(of: Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return rows of a table; missing columns are NULL."""
    return pl.DataFrame(rows, schema=frames.schema(of), orient="row")


def run(job_id: str, start: float, end: float, application: str = "ior") -> dict[str, Any]:
    """Return a run from its start and end in minutes since midnight."""
    return {
        "ended_on": at(end).date(),
        "application_id": f"ann/{application}/8",
        "cluster": "default",
        "job_id": job_id,
        "started_at": at(start),
        "ended_at": at(end),
        "filesystem": "lake",
        "interval_s": float(STEP_S),
        "step_us": STEP_S * 1_000_000,
        "phase_us": 0,
    }


def signature(application: str, direction: str, *, minutes: float, bursts: list[tuple[float, float]]) -> Any:
    """Return a default signature: bursts of two minutes each, given by their start (minutes) and bytes."""
    key = {"application_id": f"ann/{application}/8", "filesystem": "lake", "direction": direction}
    key |= {"metric": "bytes", "method": "elastic"}
    one = key | {"is_default": True, "outcome": "extracted", "duration_s": 60 * minutes, "expected_correlation": 0.9}
    told = [
        key | {"burst": number, "start_s": 60 * begun, "end_s": 60 * begun + 120, "volume_bytes": volume}
        for number, (begun, volume) in enumerate(bursts)
    ]
    return one, told


def traffic(*bursts: tuple[float, float]) -> pl.DataFrame:
    """Return grid steps with write bursts of two minutes, given by their start (minutes) and bytes."""
    rates = np.zeros(_LAST - _FIRST)
    for begun, volume in bursts:
        first = int((at(begun).timestamp()) // STEP_S) - _FIRST
        rates[first : first + 12] += volume / 120
    grid = {"filesystem": "lake", "step_us": STEP_S * 1_000_000, "phase_us": 0, "reported_ratio": 1.0}
    rows = [
        grid | {"step": _FIRST + 1 + place, "read_bytes_per_s": 0.0, "write_bytes_per_s": float(rate)}
        for place, rate in enumerate(rates)
    ]
    return table(GRID_STEPS, rows)


def attributed(
    runs: list[dict[str, Any]],
    grid: pl.DataFrame,
    signatures: list[Any],
    counted: pl.DataFrame | None = None,
    of: Table = PLACED_IO,
    traces: dict[str, pl.DataFrame] | None = None,
) -> pl.DataFrame:
    """Return the rows of a table that the work item of a day writes."""
    given = {
        RUNS.name: table(RUNS, runs),
        GRID_STEPS.name: grid,
        SIGNATURES.name: table(SIGNATURES, [one for one, _ in signatures]),
        SIGNATURE_BURSTS.name: table(SIGNATURE_BURSTS, [burst for _, told in signatures for burst in told]),
        EXACT_SAMPLES.name: frames.empty(EXACT_SAMPLES) if counted is None else counted,
        **{of_traces.name: frames.empty(of_traces) for of_traces in (JOB_IO_SOURCES, TRACE_JOBS, TRACE_SIGNALS)},
        **(traces or {}),
    }
    written: dict[str, pl.DataFrame] = {}

    @contextmanager
    def engine() -> Iterator[duckdb.DuckDBPyConnection]:
        with TemporaryDirectory() as folder, models.engine(Path(folder), "1GB") as connection:
            yield connection

    def expose(connection: duckdb.DuckDBPyConnection, *tables: Table) -> None:
        for of_table in tables:
            models.expose_frame(connection, of_table.layer, of_table.name, given[of_table.name])

    piece = SimpleNamespace(
        days=(DAY,),
        engine=engine,
        expose=expose,
        compute=lambda connection, of_table: models.compute(connection, of_table).pl(lazy=False),
        frame=lambda of: given[of.name],
        scan=lambda of: given[of.name].lazy(),
        write_days=lambda rows, of: written.update({of.name: rows}),
    )
    assert attribute(cast(StepContext, piece)) == written[PLACED_IO.name].height
    return frames.require(written[of.name], of)


def volumes(rows: pl.DataFrame) -> dict[str, float]:
    summed = rows.group_by("job_id").agg(pl.col("attributed_bytes").sum()).sort("job_id")
    return dict(summed.select("job_id", pl.col("attributed_bytes").round(3)).iter_rows())


IOR = signature("ior", "write", minutes=30, bursts=[(5, 2400), (20, 1200)])
S3D = signature("s3d", "write", minutes=30, bursts=[(10, 600)])


def test_attribution_covers_only_burst_minutes_of_runs_of_the_day() -> None:
    runs = [run("1", 10, 40), run("2", -20, 10, "s3d"), run("3", 0, 30, "unknown"), run("0", -40, -10)]
    grid = traffic((15, 2400), (30, 1200), (-10, 600), (-35, 2400))
    found = attributed(runs, grid, [IOR, S3D])
    assert volumes(found) == {"1": 3600, "2": 600}
    assert found.filter(job_id="1")["minute_at"].to_list() == [at(minute) for minute in (16, 17, 31, 32)]
    assert found.filter(job_id="1")["attributed_bytes"].to_list() == pytest.approx([1200, 1200, 600, 600])
    assert (found["attributed_low_bytes"] < found["attributed_bytes"]).all()
    assert (found["attributed_high_bytes"] >= found["attributed_bytes"]).all()
    assert found["confidence"].is_between(0.5, 0.91).all()


def test_minutes_are_summed_in_step_order_on_any_number_of_threads() -> None:
    rng = np.random.default_rng(1)
    run, step = np.repeat(np.arange(2), 450), np.tile(np.arange(450), 2)
    volume = rng.exponential(10.0, len(run))
    summed: dict[tuple[int, int], float] = {}
    for own, at, each in zip(run.tolist(), step.tolist(), volume.tolist(), strict=True):
        key = (own, (at // 30 + 1) * 60_000_000)
        summed[key] = summed.get(key, 0.0) + each
    found = _minutes(run, step, volume, Traffic(np.zeros(450), 0.0, 2.0))
    assert {(own, at): each for own, at, each in found.iter_rows()} == summed
    nothing = np.zeros(0, np.int64)
    found = _minutes(nothing, nothing, np.zeros(0), Traffic(np.zeros(9), 0.0, 2.0))
    assert found.is_empty()
    assert found.schema["attributed_bytes"] == pl.Float64


def test_overlapping_runs_of_other_days_take_their_share() -> None:
    # bytes claimed by a better known run are unavailable to runs of the day, even if its rows belong to another day
    own, other = run("1", 10, 40), run("2", 10, 24 * 60 + 5)
    alone = attributed([own], traffic((15, 2400), (30, 1200)), [IOR])
    both = attributed([own, other], traffic((15, 2400), (30, 1200)), [IOR, S3D])
    assert volumes(alone) == volumes(both) == {"1": 3600}
    rival = run("2", 10, 40, "s3d") | {"ended_on": DAY + timedelta(days=1)}
    taken = signature("s3d", "write", minutes=30, bursts=[(5, 2400), (20, 1200)])
    taken[0]["expected_correlation"] = 1.0
    assert volumes(attributed([own, rival], traffic((15, 2400), (30, 1200)), [IOR, taken])) == {}


def counted(
    job_id: str, start: float, rates: list[float], interval_s: float, outcome: str = "measured"
) -> pl.DataFrame:
    row = run(job_id, start, start + len(rates) * interval_s / 60)
    known = {name: row[name] for name in EXACT_SAMPLES.column_names if name in row}
    own = {"direction": "write", "grid_started_at": at(start), "interval_s": interval_s, "step_count": len(rates)}
    return table(EXACT_SAMPLES, [known | own | {"sample_bytes_per_s": rates, "outcome": outcome}])


def test_counted_bytes_are_attributed_exactly_before_signatures() -> None:
    # both runs have the same signature, and servers counted half of it for run 1
    runs = [run("1", 10, 40), run("2", 10, 40)]
    grid = traffic((15, 2400), (30, 1200))
    rates = [0.0] * 5 + [10.0, 10.0] + [0.0] * 13 + [5.0, 5.0] + [0.0] * 8
    found = attributed(runs, grid, [IOR], counted("1", 10, rates, 60.0))
    assert volumes(found) == {"1": 1800, "2": 1800}
    exact = found.filter(job_id="1")
    assert exact.select("attributed_low_bytes", "attributed_high_bytes").rows() == [
        (each, each) for each in exact["attributed_bytes"]
    ]
    assert exact["confidence"].to_list() == [1.0] * exact.height
    # also for an application without a signature, but not where the count is incomplete
    assert volumes(attributed(runs, grid, [], counted("1", 10, rates, 60.0))) == {"1": 1800}
    assert volumes(attributed(runs[:1], grid, [IOR], counted("1", 10, rates, 60.0, "incomplete"))) == {"1": 3600}


def traced(job_id: str, start: float, rates: list[float], interval_s: float, **changed: Any) -> dict[str, pl.DataFrame]:
    """Return the tables of a traced run with a signal, with some columns changed."""
    known = {"cluster": "default", "job_id": job_id, "ended_on": DAY, "trace_id": "t", "direction": "write"}
    source = known | {"started_at": at(start), "filesystem": "lake", "source": "client", "own_bytes": 1.0}
    job = {"trace_id": "t", "ended_on": DAY, "started_at": at(start), "job_started_at": at(start)}
    signal = {"trace_id": "t", "ended_on": DAY, "direction": "write", "module": "POSIX", "is_async": False}
    signal |= {"basis": "requests", "is_counted": True, "interval_s": interval_s, "signal_bytes_per_s": rates}
    tables = {JOB_IO_SOURCES: source, TRACE_JOBS: job, TRACE_SIGNALS: signal}
    return {of.name: table(of, [row | {k: v for k, v in changed.items() if k in row}]) for of, row in tables.items()}


_TRACED_RATES = [0.0] * 5 + [10.0, 10.0] + [0.0] * 13 + [5.0, 5.0] + [0.0] * 8


def test_trace_time_series_is_subtracted_like_counters() -> None:
    runs, grid = [run("1", 10, 40), run("2", 10, 40)], traffic((15, 2400), (30, 1200))
    found = attributed(runs, grid, [IOR], traces=traced("1", 10, _TRACED_RATES, 60.0))
    assert volumes(found) == {"1": 1800, "2": 1800}
    assert dict(found.select("job_id", "estimate_source").unique().rows()) == {"1": "traced", "2": "attributed"}
    # counters take precedence
    found = attributed(
        runs, grid, [IOR], counted("1", 10, [0.1] * 30, 60.0), traces=traced("1", 10, _TRACED_RATES, 60.0)
    )
    assert volumes(found)["1"] == 180
    assert found.filter(job_id="1")["estimate_source"].unique().to_list() == ["counted"]


@pytest.mark.parametrize(
    "changed",
    [
        {"basis": "interval"},
        {"is_counted": False},
        {"filesystem": None},
        {"own_bytes": None},
        {"job_started_at": None},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_trace_without_time_series_or_file_system_falls_back_to_signature(changed: dict[str, Any]) -> None:
    found = attributed(
        [run("1", 10, 40)],
        traffic((15, 2400), (30, 1200)),
        [IOR],
        traces=traced("1", 10, _TRACED_RATES, 60.0, **changed),
    )
    assert volumes(found) == {"1": 3600}
    assert found["estimate_source"].unique().to_list() == ["attributed"]


def test_grid_step_across_a_minute_boundary_is_split_between_minutes() -> None:
    found = _minutes(
        np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([60.0, 90.0, 30.0]), Traffic(np.zeros(2), 30.0, 90.0)
    )
    assert found.rows() == [
        (0, 60_000_000, pytest.approx(20)), (0, 120_000_000, pytest.approx(40)), (0, 180_000_000, pytest.approx(60)),
        (0, 240_000_000, pytest.approx(30)), (1, 60_000_000, pytest.approx(10)), (1, 120_000_000, pytest.approx(20)),
    ]  # fmt: skip


def test_published_days_overlapping_the_plan_are_limited_again(tmp_path: Path) -> None:
    days = {more: DAY + timedelta(days=more) for more in range(-3, 4)}
    of_day = {days[0]: -1500, days[-1]: -2000, days[-2]: -2900, days[2]: 1440, days[3]: 4000}
    for day, start in of_day.items():
        end = (day - DAY).days * 1440 + 5
        table(RUNS, [run("1", start, end)]).write_parquet(tmp_path / f"{day}.parquet")
    work = SimpleNamespace(
        plan=SimpleNamespace(poll_days=(), job_days=(DAY, None)),
        built=lambda of, wanted: [TableFile(of.name, f"{day}.parquet", day) for day in wanted if day == DAY],
        list_base_files=lambda of: [TableFile(of.name, f"{day}.parquet", day) for day in of_day if day != DAY],
        backfill_days={},
        store=SimpleNamespace(root=tmp_path, here=lambda where: where),
    )
    # the run of the day began two days before; that of the day after the next began on the next day
    assert list_affected_days(cast(Run, work)) == [days[-2], days[-1], days[0]]
    table(RUNS, [run("1", 1400, 2 * 1440 + 5)]).write_parquet(tmp_path / f"{days[2]}.parquet")
    work.backfill_days.clear()
    assert list_affected_days(cast(Run, work)) == [days[-2], days[-1], days[0], days[2]]


def test_attribution_is_empty_without_traffic_signatures_or_runs() -> None:
    grid = traffic()
    assert attributed([run("1", 10, 40)], grid, [IOR]).is_empty()
    assert attributed([run("1", 10, 40)], grid, []).is_empty()
    assert attributed([], grid.clear(), [IOR]).is_empty()
    running = run("9", 5, 40) | {"ended_on": None, "ended_at": None, "step_us": None, "phase_us": None}
    assert volumes(attributed([run("1", 10, 40), running], traffic((15, 2400)), [IOR])).keys() == {"1"}


def crowded_day() -> tuple[list[dict[str, Any]], pl.DataFrame, list[Any]]:
    """Return six consecutive runs of an application; a reader interferes with every other run's second burst.

    These bursts take a minute longer, and so do their runs.
    """
    runs, written, read = [], [], []
    for number in range(6):
        began, is_crowded = 35.0 * number, number % 2 == 1
        runs.append(run(f"{number}", began, began + 30 + is_crowded))
        written += [(began + 5, 2400.0)]
        written += [(began + 20, 800.0), (began + 21, 400.0)] if is_crowded else [(began + 20, 1200.0)]
        if is_crowded:
            runs.append(run(f"1{number}", began + 10, began + 34, "s3d"))
            read.append((began + 20, 2400.0))
    grid = traffic(*written).with_columns(read_bytes_per_s=traffic(*read)["write_bytes_per_s"])
    return runs, grid, [IOR, signature("s3d", "read", minutes=24, bursts=[(10, 2400)])]


def test_slowed_bursts_name_their_top_interferer() -> None:
    rows = attributed(*crowded_day(), of=SLOWDOWNS)
    assert rows.filter(direction="write").height == 12
    slowed = rows.filter(direction="write", outcome="slowed")
    assert slowed.select("job_id", "burst").rows() == [(f"{number}", 1) for number in (1, 3, 5)]
    assert slowed["delay_s"].to_list() == pytest.approx([60] * 3, rel=0.4)
    assert (slowed["delay_low_s"] > 0).all()
    assert slowed["top_interferer_job_id"].to_list() == ["11", "13", "15"]
    assert slowed["top_interferer_application_id"].unique().to_list() == ["ann/s3d/8"]
    assert (
        slowed["top_interferer_bytes"].to_list()
        == slowed["interfering_bytes"].to_list()
        == pytest.approx([2400] * 3, rel=0.1)
    )
    assert slowed["unattributed_bytes"].to_list() == pytest.approx([0] * 3, abs=1)
    alone = rows.filter(direction="write", outcome="not_slowed")
    assert alone["interfering_bytes"].null_count() == alone.height == 9
    assert alone["start_delay_s"].to_list() == pytest.approx([0] * 9, abs=1)


def test_missing_bursts_are_reported_for_runs_of_the_day_only() -> None:
    rows = attributed([run("1", 10, 40), run("0", -40, -10)], traffic((15, 2400), (-35, 2400)), [IOR], of=SLOWDOWNS)
    assert rows.select("job_id", "burst", "outcome", "start_delay_s").rows() == [
        ("1", 0, "not_slowed", pytest.approx(0, abs=1e-6)),
        ("1", 1, "not_found", None),
    ]
    assert attributed([], traffic().clear(), [IOR], of=SLOWDOWNS).is_empty()


def test_days_extend_back_to_the_start_of_the_longest_run_within_31_days(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    table(RUNS, [run("1", -3000, 5), run("2", 1, 5), run("3", -9000, -1)]).write_parquet(path)
    work = SimpleNamespace(
        plan=SimpleNamespace(poll_days=(DAY,), job_days=(DAY, None)),
        built=lambda of, days: [TableFile(of.name, path.name, days[0])],
        list_base_files=lambda of: [],
        backfill_days={},
        store=SimpleNamespace(root=tmp_path, here=lambda where: where),
    )
    assert list(DAYS.days(cast(Run, work))) == [DAY + timedelta(days=more) for more in (-3, -2, -1, 0, 1)]
    table(RUNS, [run("1", -99 * 1440, 5)]).write_parquet(path)
    work.backfill_days.clear()
    assert _first_day(cast(Run, work), DAY) == DAY - timedelta(days=31)

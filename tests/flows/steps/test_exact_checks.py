"""Signatures are compared with server counters of the same runs, step by step, and training runs are marked."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from iosig.flows.steps.exact_checks import against, check_runs
from iosig.flows.steps.items import StepContext, TableFile, WorkItem
from iosig.settings.model import Settings
from iosig.transforms.arrays import Ragged, offsets_of
from iosig.transforms.sample_checks import RunSamples
from iosig.transforms.signatures.bursts import detect_bursts
from iosig.transforms.signatures.signature import Signature
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.samples import EXACT_SAMPLES, SAMPLE_SETS
from iosig.warehouse.contracts.signatures import EXACT_CHECKS, SIGNATURE_BURSTS, SIGNATURE_POINTS, SIGNATURES

DAY = date(2026, 3, 3)
BEGAN = datetime(2026, 3, 3, 10, tzinfo=UTC)
#: two bursts of a minute
CURVE = np.zeros(600)
CURVE[60:120] = 2e9
CURVE[360:420] = 1e9
MADE = Signature.from_curve(CURVE, detect_bursts(CURVE))


def sampled(rates: Any, start_s: float, interval_s: float) -> RunSamples:
    values = np.asarray(rates, np.float64)
    return RunSamples(Ragged(values, offsets_of([len(values)])), np.array([start_s]), np.array([interval_s]))


def counted(curve: Any, phase_s: float, interval_s: float) -> RunSamples:
    """Return scrapes of a run that moved these bytes in each second."""
    total = np.concatenate([[0.0], np.cumsum(curve)])
    edges = np.arange(-phase_s, len(curve) + interval_s, interval_s)
    return sampled(np.diff(np.interp(edges, np.arange(len(total)), total)) / interval_s, -phase_s, interval_s)


@pytest.mark.parametrize("interval_s", [0.5, 2.0, 7.0, 60.0])
@pytest.mark.parametrize("phase", [0.0, 0.4])
def test_run_equal_to_its_signature_has_correlation_1_on_any_grid(interval_s: float, phase: float) -> None:
    crossed, lain, moved, missed, false = against(MADE, counted(CURVE, phase * interval_s, interval_s), 0)
    assert (crossed, lain) == (pytest.approx(1.0), pytest.approx(1.0))
    assert moved == pytest.approx(180e9)
    assert (missed, false) == (0, 0)


def test_late_bursts_and_missing_bursts_lower_the_match() -> None:
    late = np.concatenate([np.zeros(50), CURVE])
    crossed, lain, *_ = against(MADE, counted(late, 1.0, 2.0), 0)
    assert crossed == pytest.approx(1.0, abs=0.02)
    assert lain is not None
    assert lain < 0.3
    half = np.where(np.arange(600) < 300, CURVE, 0.0)
    assert against(MADE, counted(half, 0.0, 2.0), 0)[3:] == (0, 1)
    assert against(MADE, counted(half[:150], 0.0, 2.0), 0)[2:] == (pytest.approx(120e9), 0, 1)
    assert against(MADE, sampled(np.zeros(300), 0.0, 2.0), 0) == (None, None, 0.0, 0, 2)


def test_gaps_hold_no_bytes_and_step_ending_at_start_is_first_second() -> None:
    assert against(MADE, sampled([5e9, np.nan, 5e9], -2.0, 2.0), 0)[2] == pytest.approx(20e9)


# ---- the work item of a day


def rows(table: Table, told: list[dict[str, Any]]) -> pl.DataFrame:
    schema = frames.schema(table)
    known = {"application_id": "ann/wave/8", "filesystem": "lake", "direction": "write", "cluster": "c"}
    known = {name: value for name, value in (known | {"metric": "bytes"}).items() if name in schema}
    fill: dict[Any, Any] = {pl.Int64: 0, pl.Float64: 0.0, pl.String: "", pl.Boolean: False}
    usual = {name: fill.get(dtype) for name, dtype in schema.items()}
    return pl.DataFrame([{**usual, **known, **row} for row in told], schema=schema, orient="row")


def run(job_id: str, **other: Any) -> dict[str, Any]:
    started = {"started_at": BEGAN, "grid_started_at": BEGAN + timedelta(seconds=-1), "ended_on": DAY}
    series = {"interval_s": 2.0, "sample_bytes_per_s": counted(CURVE, 1.0, 2.0).rates.values.tolist()}
    return {"job_id": job_id, "outcome": "measured", **started, **series, **other}


def test_runs_of_a_day_are_compared_with_their_default_signatures(tmp_path: Path) -> None:
    signature = {"is_default": True, "outcome": "extracted", "volume_bytes": 180e9, "outlier_job_ids": '["2"]'}
    parts = {name: getattr(MADE.bursts, name) for name in ("start_s", "peak_s", "end_s", "volume_bytes")}
    bursts = [{"method": "elastic", "burst": k} | {name: of[k] for name, of in parts.items()} for k in range(2)]
    points = [{"method": "elastic", "offset_s": float(k), "bytes_per_s": value} for k, value in enumerate(CURVE)]
    given_rows = {
        EXACT_SAMPLES: [
            *(run(number) for number in "123"),
            run("4", outcome="incomplete"),
            run("5", application_id=None),
            run("6", application_id="ann/other/8"),
        ],
        SIGNATURES: [
            {"method": "elastic", **signature},
            {"method": "iosi", **signature, "is_default": False},
            {"method": "elastic", **signature, "outcome": "no_io", "application_id": "ann/other/8"},
        ],
        SIGNATURE_POINTS: points,
        SIGNATURE_BURSTS: bursts,
        SAMPLE_SETS: [
            {"job_id": number, "started_at": BEGAN, "ended_on": DAY, "source": source}
            for number, source in (("1", "jobstats"), ("2", "jobstats"), ("3", "server"))
        ],
    }
    for table, told in given_rows.items():
        rows(table, told).write_parquet(tmp_path / f"{table.name}.parquet")
    reads = tuple(TableFile(table.name, f"{table.name}.parquet") for table in given_rows)
    written = TableFile(EXACT_CHECKS.name, "found.parquet", DAY)
    piece = WorkItem("exact checks", "exact checks", "", reads, (written,), (DAY,), Settings(), "", "")
    assert check_runs(StepContext(tmp_path, piece)) == 3
    found = pl.read_parquet(tmp_path / "found.parquet")
    frames.require(found, EXACT_CHECKS)
    assert found["job_id"].to_list() == ["1", "2", "3"]
    assert found["is_training_run"].to_list() == [True, False, False]
    assert found["correlation"].to_list() == pytest.approx([1.0] * 3)
    assert found["volume_bytes"].to_list() == [180e9] * 3

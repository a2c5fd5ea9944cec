"""Each run of a day gets a class and a period: measured, traced, inferred, or a reason why not."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.flows.steps.inference import STEP, infer
from iosig.flows.steps.items import StepContext, TableFile, WorkItem
from iosig.settings.model import Settings, SignatureSettings
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.attribution import ATTRIBUTED_IO
from iosig.warehouse.contracts.classes import CLASSES, MEASURED_CLASSES
from iosig.warehouse.contracts.inference import INFERENCE_CHECKS
from iosig.warehouse.contracts.job_io import CLIENT_IO
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.periods import MEASURED_PERIODS, PERIODS
from iosig.warehouse.contracts.samples import SAMPLE_SETS, SAMPLES
from iosig.warehouse.contracts.signatures import SIGNATURE_BURSTS, SIGNATURES
from iosig.warehouse.contracts.traces import TRACE_JOBS

DAY = date(2026, 3, 3)
BEGAN = datetime(2026, 3, 3, 10, tzinfo=UTC)
GB = 1e9
WRITTEN: tuple[Table, ...] = (CLASSES, PERIODS, INFERENCE_CHECKS)
#: default values of each table's columns
KNOWN = {
    "ended_on": DAY,
    "cluster": "c",
    "started_at": BEGAN,
    "filesystem": "lake",
    "metric": "bytes",
    "direction": "write",
    "method": "elastic",
    "is_default": True,
}


def rows(table: Table, told: list[dict[str, Any]]) -> pl.DataFrame:
    """Return rows of a table; columns missing here and in `KNOWN` are empty."""
    schema = frames.schema(table)
    fill: dict[Any, Any] = {pl.Int64: 0, pl.Float64: 0.0, pl.String: "", pl.Boolean: False}
    usual = {column.name: None if column.nullable else fill.get(schema[column.name]) for column in table.columns}
    known = {name: value for name, value in KNOWN.items() if name in schema}
    return pl.DataFrame([{**usual, **known, **row} for row in told], schema=schema, orient="row")


def run(job_id: str, program: str = "wave", **more: Any) -> dict[str, Any]:
    return {"job_id": job_id, "application_id": f"ann/{program}/8", "duration_s": 1000.0, "node_count": 8} | more


RUNS = [
    run("usual"),
    run("slow", duration_s=1200.0),
    run("stopped", duration_s=700.0),
    run("short", duration_s=300.0),
    run("idle"),
    run("counted"),
    run("traced"),
    run("half"),
    run("twice"),
    run("unsure", "doubtful"),
    run("unknown", "rare"),
    run("still", "still"),
]


def signature(program: str, outcome: str = "extracted", expected_correlation: float | None = 0.8) -> dict[str, Any]:
    is_there = outcome == "extracted"
    return {
        "application_id": f"ann/{program}/8",
        "outcome": outcome,
        "expected_correlation": expected_correlation,
        "duration_s": 1000.0 if is_there else None,
        "volume_bytes": 70 * GB if is_there else None,
        "outlier_job_ids": "[]",
    }


def burst(start_s: float, program: str = "wave") -> dict[str, Any]:
    return {
        "application_id": f"ann/{program}/8",
        "burst": int(start_s),
        "start_s": start_s,
        "end_s": start_s + 40,
        "volume_bytes": 35 * GB,
    }


def period_of(kind: str, subject_id: str, period_s: float, **more: Any) -> dict[str, Any]:
    return {
        "subject_kind": kind,
        "subject_id": subject_id,
        "method": "null_tested",
        "outcome": "periodic",
        "frequency_hz": 1 / period_s,
        "period_s": period_s,
        "window_start_s": 0.0,
        "window_end_s": 1000.0,
        "confidence": 0.9,
        "false_alarm_probability": 1e-5,
    } | more


def class_of(kind: str, subject_id: str, label: str, **more: Any) -> dict[str, Any]:
    told = {"subject_kind": kind, "subject_id": subject_id, "outcome": "classified", "label": label}
    return told | {"section_bytes": [1.0, 0.0, 0.0, 0.0], "volume_bytes": 1.0} | more


_TRACE = {"cluster": None, "started_at": None, "filesystem": None, "basis": "traced"}
_APPLICATION = {"cluster": None, "started_at": None, "ended_on": None, "basis": "signature"}
TRACES = [("traced", "t", 990.0), ("half", "h", 500.0), ("twice", "d1", 1000.0), ("twice", "d2", 1000.0)]
CONTENT: dict[Table, list[dict[str, Any]]] = {
    JOBS: RUNS,
    SAMPLES: RUNS,
    SIGNATURES: [
        signature("wave"),
        signature("doubtful", expected_correlation=0.5),
        signature("rare", "too_few_samples", None),
        signature("still", "no_io", None),
    ],
    SIGNATURE_BURSTS: [burst(0.0), burst(960.0), burst(0.0, "doubtful")],
    SAMPLE_SETS: [run("counted", source="jobstats")],
    ATTRIBUTED_IO: [
        run(one["job_id"], attributed_bytes=60 * GB, minute_at=BEGAN) for one in RUNS if one["job_id"] != "idle"
    ],
    TRACE_JOBS: [{"trace_id": trace_id, "duration_s": lasting} for _, trace_id, lasting in TRACES],
    CLIENT_IO: [{"job_id": job, "trace_id": trace_id, "volume_bytes": 1.0} for job, trace_id, _ in TRACES],
    MEASURED_CLASSES: [
        class_of("job", "counted", "START", basis="counted"),
        *(class_of("trace", trace_id, "END", **_TRACE) for _, trace_id, _ in TRACES),
    ],
    MEASURED_PERIODS: [
        period_of("application", "ann/wave/8", 100.0, **_APPLICATION),
        period_of("application", "ann/doubtful/8", 50.0, **_APPLICATION),
        period_of("job", "counted", 200.0, basis="counted"),
        *(period_of("trace", trace_id, 101.0, **_TRACE) for _, trace_id, _ in TRACES),
    ],
}


def inferred(root: Path, threshold: float = 0.6, but: tuple[Table, ...] = ()) -> dict[str, pl.DataFrame]:
    """Run the work item of the day, and return the tables that it wrote."""
    content = {table: rows(table, told) for table, told in CONTENT.items() if table not in but}
    for table, frame in content.items():
        frame.write_parquet(root / f"{table.name}.parquet")
    reads = tuple(TableFile(table.name, f"{table.name}.parquet") for table in content)
    writes = tuple(TableFile(table.name, f"out/{table.name}.parquet", DAY) for table in STEP.writes)
    settings = Settings(signatures=SignatureSettings(min_expected_correlation=threshold))
    infer(StepContext(root, WorkItem("inference", "inference", "m:f", reads, writes, (DAY,), settings, "builds", "")))
    return {
        table.name: pl.read_parquet(path)
        if (path := root / f"out/{table.name}.parquet").exists()
        else frames.empty(table)
        for table in WRITTEN
    }


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    return inferred(tmp_path_factory.mktemp("day"))


def test_each_run_has_one_class_with_its_basis(tables: dict[str, pl.DataFrame]) -> None:
    found = tables["classes"].filter(subject_kind="job").select("subject_id", "basis", "outcome", "label")
    assert found.sort("subject_id").rows() == [
        ("counted", "counted", "classified", "START"),
        ("half", "inferred", "classified", "CANYON"),
        ("idle", "inferred", "classified", "NO_USAGE"),
        ("short", "inferred", "too_short", None),
        ("slow", "inferred", "classified", "CANYON"),
        ("still", "inferred", "classified", "NO_USAGE"),
        ("stopped", "inferred", "classified", "START"),
        ("traced", "traced", "classified", "END"),
        ("twice", "inferred", "classified", "CANYON"),
        ("unknown", "inferred", "no_signature", None),
        ("unsure", "inferred", "unreliable_signature", None),
        ("usual", "inferred", "classified", "CANYON"),
    ]
    assert tables["classes"].filter(basis="inferred")["volume_bytes"].null_count() == 10


def test_each_run_has_one_default_period(tables: dict[str, pl.DataFrame]) -> None:
    found = tables["periods"].filter("is_default", subject_kind="job").select("subject_id", "outcome", "period_s")
    assert found.sort("subject_id").rows() == [
        ("counted", "periodic", 200.0),
        ("half", "periodic", 100.0),
        ("idle", "no_io", None),
        ("short", "periodic", 100.0),
        ("slow", "periodic", pytest.approx(120.0)),
        ("still", "no_io", None),
        ("stopped", "periodic", 100.0),
        ("traced", "periodic", 101.0),
        ("twice", "periodic", 100.0),
        ("unknown", "no_signature", None),
        ("unsure", "unreliable_signature", None),
        ("usual", "periodic", 100.0),
    ]


def test_rows_of_other_subjects_except_applications_are_kept(
    tables: dict[str, pl.DataFrame],
) -> None:
    for name in ("classes", "periods"):
        others = tables[name].filter(pl.col("subject_kind") != "job")
        assert others["subject_id"].sort().to_list() == ["d1", "d2", "h", "t"]


def test_inferred_answers_are_compared_with_measured_ones(tables: dict[str, pl.DataFrame]) -> None:
    columns = [
        "job_id",
        "basis",
        "is_training_run",
        "measured_label",
        "inferred_label",
        "is_same_class",
        "period_agreement",
    ]
    assert tables["inference_checks"].select(columns).rows() == [
        ("counted", "counted", True, "START", "CANYON", False, "harmonic"),
        ("traced", "traced", False, "END", "CANYON", False, "same"),
    ]


def test_threshold_decides_which_signatures_are_used(tmp_path: Path) -> None:
    found = inferred(tmp_path, threshold=0.5)["classes"].filter(subject_id="unsure")
    assert found["label"].to_list() == ["START"]


def test_run_without_attribution_is_not_idle(tmp_path: Path) -> None:
    found = inferred(tmp_path, but=(ATTRIBUTED_IO,))["classes"].filter(subject_id="idle")
    assert found["label"].to_list() == ["CANYON"]


def test_without_signatures_only_measured_answers_remain(tmp_path: Path) -> None:
    tables = inferred(tmp_path, but=(SIGNATURES, SIGNATURE_BURSTS))
    jobs = tables["classes"].filter(subject_kind="job", outcome="classified")
    assert sorted(jobs["basis"]) == ["counted", "traced"]
    assert tables["inference_checks"].is_empty()


def test_day_without_runs_keeps_measured_answers(tmp_path: Path) -> None:
    tables = inferred(tmp_path, but=(SAMPLES,))
    assert tables["classes"].height == len(CONTENT[MEASURED_CLASSES])


def test_last_burst_of_a_slowed_run_falls_into_its_last_quarter(tables: dict[str, pl.DataFrame]) -> None:
    (sections,) = tables["classes"].filter(subject_id="slow")["section_bytes"]
    assert sections.to_list() == [pytest.approx(35 * GB), 0.0, 0.0, pytest.approx(35 * GB)]

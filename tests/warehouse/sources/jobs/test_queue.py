"""Test the conversion of queue cells into rows, for the vocabularies of all schedulers."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.sources.jobs.queue import infer_observation_time, settle_queue
from iosig.warehouse.sources.rows.rejects import ParsedRows

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def settled(**cells: str | None) -> ParsedRows:
    told = {"job_id": "7", "state": "PENDING", "raw": "raw"} | cells
    return settle_queue(pl.DataFrame([{"line": 1} | told]), "UTC", AT)


@pytest.mark.parametrize(
    ("job_id", "count"),
    [("7", 1), ("7_3", 1), ("7_[4]", 1), ("7_[1-9%2]", 9), ("7_[1-9:2,11,20-21]", 8), ("7_[1-3,5,...]", None)],
)
def test_pending_array_counts_its_tasks(job_id: str, count: int | None) -> None:
    assert settled(job_id=job_id).rows["run_count"].to_list() == [count]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5:00", 300), ("59:30", 3_570), ("1:00:00", 3_600), ("2-01:00:00", 176_400), ("1800", 1_800)]
    + [(text, None) for text in ("UNLIMITED", "NOT_SET", "Partition_Limit", "N/A", "")],
)
def test_time_limit_is_in_seconds_or_null(text: str, seconds: int | None) -> None:
    assert settled(time_limit=text).rows["time_limit_s"].to_list() == [seconds]


@pytest.mark.parametrize(
    ("said", "state"),
    [
        *(("PD", "PENDING"), ("R", "RUNNING"), ("RH", "PENDING"), ("stopped", "SUSPENDED"), ("CG", "COMPLETING")),
        *(("SI", "RUNNING"), ("CD", None), ("FAILED", None), ("NODE_FAIL", None)),
    ],
)
def test_ended_jobs_are_skipped_and_states_are_mapped(said: str, state: str | None) -> None:
    found = settled(state=said)
    assert found.rows["queue_state"].to_list() == ([state] if state else [])
    assert found.refused.is_empty()


def test_start_of_pending_job_is_expected_start() -> None:
    told = {"started_at": "2026-03-01T13:00:00", "eligible_at": "1772366400", "wait_reason": "Priority"}
    waits, runs = settled(**told).rows, settled(**told, state="RUNNING").rows
    hour = AT.replace(hour=13)
    assert waits.select("started_at", "expected_start_at", "wait_reason").row(0) == (None, hour, "Priority")
    assert runs.select("started_at", "expected_start_at", "wait_reason").row(0) == (hour, None, None)
    assert waits.select("observed_at", "eligible_at").row(0) == (AT, AT)


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ({"job_id": None}, "no job id"),
        ({"state": "BUSY"}, "BUSY is not one of Slurm's"),
        ({"time_limit": "soon"}, "time limit is not a duration"),
        ({"eligible_at": "soon"}, "eligible time soon is not a time"),
        ({"node_count": "many"}, "nodes is given as many"),
    ],
)
def test_unreadable_cell_refuses_its_row(cell: dict[str, str | None], reason: str) -> None:
    found = settled(**cell)
    assert found.rows.is_empty()
    assert reason in found.refused["reason"].item()
    assert found.refused["remedy"].item()
    assert found.refused["raw"].item() == "raw"


def test_observation_time_is_taken_from_name_or_modification_time(tmp_path: Path) -> None:
    named, other = tmp_path / "squeue-1772366400.json", tmp_path / "squeue-20260301.json"
    for path in (named, other):
        path.touch()
        os.utime(path, (1_772_366_460, 1_772_366_460))
    assert (infer_observation_time(named), infer_observation_time(other)) == (AT, AT.replace(minute=1))

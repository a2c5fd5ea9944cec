"""Test squeue's JSON: plain and wrapped values of different versions yield equal rows."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.contracts.jobs import QUEUE_RECORDS
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.jobs import squeue_json
from iosig.warehouse.sources.protocol import Reading, recognize
from tests.warehouse.sources.batch_reading import gathered

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECONDS = round(AT.timestamp())


def wrapped(number: int | None) -> dict[str, Any]:
    return {"set": number is not None, "infinite": False, "number": number or 0}


def job(is_new: bool, **told: Any) -> dict[str, Any]:
    """Return a job as Slurm 22.05 writes it (data parser 0.0.38), or 24.05 (0.0.41)."""
    number = wrapped if is_new else lambda value: value
    state = told.pop("job_state", "PENDING")
    known = {
        "account": "climate", "cluster": "c1", "comment": "fs=scratch", "name": "icon", "partition": "io",
        "user_name": "ann", "state_reason": "Priority", "job_id": 12, "job_state": [state] if is_new else state,
        "array_job_id": number(0), "array_task_id": number(None), "array_task_string": "",
        "het_job_id": number(0), "het_job_offset": number(0), "node_count": number(4), "time_limit": number(30),
        "submit_time": number(SECONDS - 60), "eligible_time": number(SECONDS - 60), "start_time": number(0),
    }  # fmt: skip
    return known | {name: number(value) if isinstance(value, int) else value for name, value in told.items()}


def read(path: Path, *jobs: Any) -> tuple[pl.DataFrame, ...]:
    path.write_text(json.dumps({"meta": {"Slurm": {}}, "jobs": jobs, "errors": []}, indent=1))
    return gathered(squeue_json.read(path, Reading()), QUEUE_RECORDS)


def test_versions_yield_equal_rows(tmp_path: Path) -> None:
    path, found = tmp_path / f"squeue-{SECONDS}.json", []
    for is_new in (False, True):
        rows, refused = read(
            path,
            job(is_new),
            job(is_new, job_state="RUNNING", start_time=SECONDS - 9, array_job_id=12, array_task_id=3),
            job(is_new, array_job_id=12, array_task_string="4-9%2", time_limit=None),
            job(is_new, het_job_id=12, het_job_offset=1),
            job(is_new, job_state="COMPLETED", start_time=SECONDS - 9),
        )
        assert refused.is_empty()
        assert recognize(read_head(path)).name == "squeue-json"
        found.append(rows)
    assert found[0].equals(found[1])
    rows = found[0]
    assert rows["observed_at"].to_list() == [AT] * 4
    assert rows["job_id"].to_list() == ["12", "12_3", "12_[4-9%2]", "12+1"]
    assert rows["run_count"].to_list() == [1, 1, 6, 1]
    assert rows["time_limit_s"].to_list() == [1800, 1800, None, 1800]
    assert rows["node_count"].to_list() == [4] * 4
    assert rows["wait_reason"].to_list() == ["Priority", None, "Priority", "Priority"]


@pytest.mark.parametrize(
    ("name", "update", "seconds"),
    [
        ("a.json", wrapped(SECONDS), SECONDS),
        ("a.json", SECONDS, SECONDS),
        ("a.json", None, SECONDS + 500),
        ("a.json", wrapped(0), SECONDS + 500),
        (f"squeue-{SECONDS + 9}.json", wrapped(SECONDS), SECONDS + 9),
        # the name is from before the content
        (f"squeue-{SECONDS - 9}.json", wrapped(SECONDS), SECONDS),
    ],
)
def test_time_of_content_precedes_that_of_file(tmp_path: Path, name: str, update: Any, seconds: int) -> None:
    path = tmp_path / name
    path.write_text(json.dumps({"jobs": [job(True)], "last_update": update}))
    os.utime(path, (SECONDS + 500,) * 2)
    rows, _ = gathered(squeue_json.read(path, Reading()), QUEUE_RECORDS)
    assert rows["observed_at"].to_list() == [datetime.fromtimestamp(seconds, UTC)]

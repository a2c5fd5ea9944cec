"""Test the source of Flux' jobs; keys and values follow flux-core's tests of `flux jobs` and its manual."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.jobs.flux import SOURCE
from iosig.warehouse.sources.protocol import recognize
from tests.warehouse.sources.batch_reading import read_log

T = 1772366400


def job(number: int = 1, **more: Any) -> dict[str, Any]:
    """Return a job as `flux jobs --json` writes it."""
    return {
        "t_depend": T + 0.125, "t_run": T + 10.5, "t_cleanup": T + 3610.5, "t_inactive": T + 3611.0, "duration": 0,
        "expiration": 4841438671, "name": "icon", "cwd": "/scratch", "ntasks": 64, "ncores": 128, "nnodes": 2,
        "priority": 16, "ranks": "[0-1]", "nodelist": "cn[01-02]", "success": True, "result": "COMPLETED",
        "waitstatus": 0, "id": number, "t_submit": T + 0.0625, "state": "INACTIVE", "username": "ann", "userid": 1001,
        "urgency": 16, "runtime": 3600.0, "status": "COMPLETED", "returncode": 0, "queue": "main", "bank": "climate",
        "dependencies": [], "annotations": {}, "exception": {"occurred": False},
    } | more  # fmt: skip


def listed(number: int = 1, **more: Any) -> dict[str, Any]:
    """Return a job as the service job-list writes it, with numbers for the user, the state and the result."""
    names = ("username", "status", "returncode", "runtime", "exception", "dependencies", "bank")
    plain = {name: value for name, value in job(number).items() if name not in names}
    return plain | {"state": 64, "result": 1, "exception_occurred": False} | more


def read_text(folder: Path, text: str) -> tuple[pl.DataFrame, ...]:
    path = folder / "flux.json"
    path.write_text(text)
    assert recognize(read_head(path)) == SOURCE
    return read_log(SOURCE, path)


def at(second: float) -> datetime:
    return datetime.fromtimestamp(T + second, UTC)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("is_list", [True, False])
def test_output_of_flux_jobs_is_read(tmp_path: Path, indent: int | None, is_list: bool) -> None:
    rows, refused = read_text(tmp_path, json.dumps({"jobs": [job()]} if is_list else job(), indent=indent) + "\n")
    assert refused.is_empty()
    assert rows.row(0, named=True) == {
        "cluster": None,
        "job_id": "1",
        "user": "ann",
        "account": "climate",
        "job_name": "icon",
        "partition": "main",
        "node_count": 2,
        "task_count": 64,
        "submitted_at": at(0.0625),
        "started_at": at(10.5),
        "ended_at": at(3610.5),
        "state": "COMPLETED",
        "cancelled_by": None,
        "exit_code": "0",
        "node_list": "cn[01-02]",
        "has_shared_nodes": None,
        "comment": None,
        "source_file": "",
        "line": 1,
    }


def test_lines_of_job_list_are_read(tmp_path: Path) -> None:
    jobs = [
        listed(1, waitstatus=10752, result=2),
        listed(2, waitstatus=15, result=8),
        listed(3, t_run=0.0, result=4, waitstatus="", nnodes="", nodelist=""),
        listed(4, t_cleanup=0.0, t_inactive=0.0, result="", waitstatus="", state=16),
        listed(5, t_run=0.0, t_cleanup=0.0, t_inactive=0.0, result="", waitstatus="", state=8),
    ]
    rows, refused = read_text(tmp_path, "".join(json.dumps(each) + "\n" for each in jobs))
    assert refused.is_empty()
    assert rows.select("user", "state", "exit_code", "started_at", "ended_at", "node_count").rows() == [
        ("1001", "FAILED", "42", at(10.5), at(3610.5), 2),
        ("1001", "TIMEOUT", "-15", at(10.5), at(3610.5), 2),
        ("1001", "CANCELLED", None, None, at(3611), None),
        ("1001", "RUNNING", None, at(10.5), None, 2),
        ("1001", "PENDING", None, None, None, 2),
    ]


def test_bad_line_is_refused_alone(tmp_path: Path) -> None:
    lines = [json.dumps(job(1)), '{"id": 2,', json.dumps(job(3, result="LOST")), json.dumps(job(4, t_run="soon"))]
    rows, refused = read_text(tmp_path, "\n".join(["a login message", *lines, json.dumps(job(5)), ""]))
    assert rows.select("job_id", "line").rows() == [("1", 2), ("5", 6)]
    assert refused["line"].to_list() == [1, 3, 4, 5]
    assert "the result LOST does not exist" in refused["reason"][2]
    assert "t_run is not a number" in refused["reason"][3]


@pytest.mark.parametrize("text", ['{"jobs": []}', '{\n  "jobs": []\n}\n'])
def test_empty_answer_has_no_rows(tmp_path: Path, text: str) -> None:
    path = tmp_path / "flux.json"
    path.write_text(text)
    assert recognize(read_head(path)) == SOURCE
    assert not list(SOURCE.read(path, None))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (json.dumps({"jobs": [job(), job()]})[:-40], "truncated|not followed"),
        (json.dumps(job(), indent=2)[:-4], "truncated|Expecting"),
        (json.dumps({"jobs": [job()]}) + json.dumps({"jobs": [job()]}), "another document follows"),
    ],
)
def test_partial_document_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(InputRefused, match=reason):
        read_text(tmp_path, text)

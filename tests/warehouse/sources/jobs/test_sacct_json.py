from __future__ import annotations

import copy
import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.jobs.sacct_json import SOURCE
from iosig.warehouse.sources.protocol import Head, Reading
from tests.warehouse.sources.batch_reading import read_log

Json = dict[str, Any]


def number(value: int | None) -> Json:
    return {"set": value is not None, "infinite": False, "number": value or 0}


def utc(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


#: Slurm 21.08 and 22.05 (data parsers 0.0.37 and 0.0.38): plain numbers, states as words
JOB_21_08: Json = {
    "account": "climate",
    "comment": {"administrator": None, "job": "fs=scratch1", "system": None},
    "allocation_nodes": 2,
    "array": {"job_id": 0, "limits": {"max": {"running": {"tasks": 0}}}, "task": None, "task_id": None},
    "association": {"account": "climate", "cluster": "c1", "partition": None, "user": "ann"},
    "cluster": "c1",
    "derived_exit_code": {"status": "SUCCESS", "return_code": 0},
    "time": {"elapsed": 600, "eligible": 1641003500, "end": 1641004193, "start": 1641003593, "submission": 1641003400},
    "exit_code": {"status": "SUCCESS", "return_code": 0},
    "het": {"job_id": 0, "job_offset": None},
    "job_id": 42,
    "name": "icon",
    "nodes": "cn[01-02]",
    "partition": "main",
    "kill_request_user": None,
    "state": {"current": "COMPLETED", "reason": "None"},
    "user": "ann",
    "steps": [
        {
            "time": {"elapsed": 600, "end": 1641004193, "start": 1641003593},
            "exit_code": {"status": "SUCCESS", "return_code": 0},
            "nodes": {"count": 1, "range": "cn01"},
            "tasks": {"count": 1},
            "state": "COMPLETED",
            "step": {"job_id": 42, "het": {"component": None}, "id": "batch", "name": "batch"},
        },
        {
            "time": {"elapsed": 580, "end": 1641004190, "start": 1641003610},
            "exit_code": {"status": "SUCCESS", "return_code": 0},
            "nodes": {"count": 2, "range": "cn[01-02]"},
            "tasks": {"count": 64},
            "state": "COMPLETED",
            "step": {"job_id": 42, "het": {"component": None}, "id": 0, "name": "icon.x"},
        },
    ],
}
#: Slurm 23.x (0.0.39): step ids are objects
JOB_23_02: Json = JOB_21_08 | {
    "array": {"job_id": 40, "task_id": number(3), "task": ""},
    "het": {"job_id": 0, "job_offset": number(None)},
    "state": {"current": ["CANCELLED"], "reason": "None"},
    "kill_request_user": "root",
    "exit_code": {"status": ["SIGNALED"], "return_code": number(None), "signal": {"signal_id": 15, "name": "TERM"}},
    "steps": [
        {
            "time": {"elapsed": 600, "end": number(1641004193), "start": number(1641003593)},
            "exit_code": {"status": "SUCCESS", "return_code": 0},
            "nodes": {"count": 2, "range": "cn[01-02]", "list": ["cn01", "cn02"]},
            "tasks": {"count": 64},
            "state": "CANCELLED",
            "step": {"id": {"job_id": 42, "step_id": 0}, "name": "icon.x"},
        },
        {
            "time": {"start": number(1641003593), "end": number(0)},
            "state": "RUNNING",
            "step": {"id": {"job_id": 42, "step_id": "1", "step_het_component": 1}, "name": "icon.x"},
        },
    ],
}
#: Slurm 24.x (0.0.40 to 0.0.42): wrapped numbers, states as lists, step ids as text
JOB_24_05: Json = JOB_21_08 | {
    "array": {"job_id": 0, "task_id": number(None), "task": ""},
    "het": {"job_id": 41, "job_offset": number(1)},
    "comment": {"administrator": "", "job": "", "system": ""},
    "state": {"current": ["RUNNING", "RESIZING"], "reason": "None"},
    "time": {"elapsed": 600, "end": 0, "start": 1641003593, "submission": 1641003400},
    "exit_code": {
        "status": ["SUCCESS"],
        "return_code": number(0),
        "signal": {"id": number(None), "name": ""},
    },
    "steps": [
        {
            "time": {"elapsed": 600, "end": number(1641004193), "start": number(1641003593)},
            "exit_code": {"status": ["ERROR"], "return_code": number(3), "signal": {"id": number(0), "name": ""}},
            "nodes": {"count": 2, "list": ["cn01", "cn02"]},
            "tasks": {"count": 64},
            "state": ["FAILED"],
            "step": {"id": "42.0", "name": "icon.x", "stderr": ""},
        }
    ],
}


def write(folder: Path, document: object, name: str = "log.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def read_jobs(folder: Path, *jobs: object) -> tuple[pl.DataFrame, pl.DataFrame]:
    return read_log(SOURCE, write(folder, {"meta": {"Slurm": {}}, "errors": [], "jobs": list(jobs)}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps({"meta": {"Slurm": {"version": {"major": 21}}}, "errors": [], "jobs": [JOB_21_08]}), True),
        (json.dumps({"jobs": [JOB_24_05], "meta": {"slurm": {}}}, indent=2), True),
        ("\n " + json.dumps({"jobs": [], "meta": {"slurm": {}}}), True),
        (json.dumps({"jobs": [JOB_24_05] * 50})[:9000], True),
        (json.dumps({"jobs": [{"job_id": 1, "job_state": ["RUNNING"]}], "meta": {"slurm": {}}}), False),
        (json.dumps({"jobs": [1, 2]}), False),
        (json.dumps([JOB_21_08]), False),
        (json.dumps({"write_sync": {"slurm": 1}}), False),
        ("JobID|State\n1|CD\n", False),
        ("", False),
    ],
)
def test_only_sacct_json_is_recognized(text: str, expected: bool) -> None:
    assert SOURCE.sniff(Head("log", text.encode())) is expected


def test_job_and_steps_of_slurm_21_08_are_read(tmp_path: Path) -> None:
    rows, refused = read_jobs(tmp_path, JOB_21_08)
    assert refused.is_empty()
    assert rows.row(0, named=True) == {
        "cluster": "c1",
        "job_id": "42",
        "user": "ann",
        "account": "climate",
        "job_name": "icon",
        "partition": "main",
        "node_count": 2,
        "task_count": None,
        "submitted_at": utc(1641003400),
        "started_at": utc(1641003593),
        "ended_at": utc(1641004193),
        "state": "COMPLETED",
        "cancelled_by": None,
        "exit_code": "0:0",
        "node_list": "cn[01-02]",
        "has_shared_nodes": None,
        "comment": "fs=scratch1",
        "source_file": "",
        "line": 1,
    }
    names = ["line", "job_id", "job_name", "node_count", "task_count", "started_at", "ended_at", "node_list"]
    assert rows[1:].select(names).rows() == [
        (2, "42.batch", "batch", 1, 1, utc(1641003593), utc(1641004193), "cn01"),
        (3, "42.0", "icon.x", 2, 64, utc(1641003610), utc(1641004190), "cn[01-02]"),
    ]
    shared = rows.select("user", "account", "cluster", "partition", "comment", "submitted_at").unique()
    assert shared.height == 1


def test_submit_line_of_a_job_states_sharing(tmp_path: Path) -> None:
    rows, refused = read_jobs(tmp_path, JOB_21_08 | {"submit_line": "sbatch --exclusive -N 2 job.sh"})
    assert refused.is_empty()
    # steps inherit from their job where runs are staged
    assert rows.select("job_id", "has_shared_nodes").rows() == [("42", False), ("42.batch", None), ("42.0", None)]


def test_array_task_of_slurm_23_with_object_step_ids_is_read(tmp_path: Path) -> None:
    rows, refused = read_jobs(tmp_path, JOB_23_02)
    assert refused.is_empty()
    assert rows.select("job_id", "state", "cancelled_by", "exit_code", "ended_at").rows() == [
        ("40_3", "CANCELLED", "root", "0:15", utc(1641004193)),
        ("40_3.0", "CANCELLED", None, "0:0", utc(1641004193)),
        ("40_3.1+1", "RUNNING", None, None, None),
    ]


def test_kill_request_user_is_used_only_for_cancelled_jobs(tmp_path: Path) -> None:
    rows, refused = read_jobs(tmp_path, {"job_id": 1, "state": {"current": ["COMPLETED"]}, "kill_request_user": "root"})
    assert refused.is_empty()
    assert rows.select("state", "cancelled_by").rows() == [("COMPLETED", None)]


def test_running_het_job_of_slurm_24_is_read(tmp_path: Path) -> None:
    rows, refused = read_jobs(tmp_path, JOB_24_05)
    assert refused.is_empty()
    names = ["job_id", "state", "exit_code", "ended_at", "node_list", "comment"]
    assert rows.select(names).rows() == [
        ("41+1", "RUNNING", "0:0", None, "cn[01-02]", None),
        ("41+1.0", "FAILED", "3:0", utc(1641004193), "cn01,cn02", None),
    ]


def test_pending_array_tasks_keep_their_range(tmp_path: Path) -> None:
    waiting = {"job_id": 40, "task_id": number(None), "task": "5-9%2"}
    rows, _ = read_jobs(tmp_path, {"job_id": 42, "array": waiting, "state": {"current": ["PENDING"]}, "time": {}})
    assert rows.select("job_id", "state", "started_at").rows() == [("40_[5-9%2]", "PENDING", None)]


def test_end_is_computed_only_if_absent(tmp_path: Path) -> None:
    times = {"start": 1641003593, "elapsed": 600}
    job = {"job_id": 1, "state": "COMPLETED"}
    rows, _ = read_jobs(
        tmp_path,
        job | {"time": times},
        job | {"time": times | {"end": 0}},
        job | {"time": times, "state": {"current": "RUNNING"}},
    )
    assert rows["ended_at"].to_list() == [utc(1641004193), None, None]


def test_unset_and_infinite_numbers_are_null(tmp_path: Path) -> None:
    infinite = {"set": True, "infinite": True, "number": 5}
    job = {"job_id": 1, "time": {"start": infinite, "end": number(None)}, "allocation_nodes": infinite}
    rows, refused = read_jobs(tmp_path, job, {"job_id": number(2), "allocation_nodes": number(7)})
    assert refused.is_empty()
    assert rows.select("job_id", "started_at", "node_count").rows() == [("1", None, None), ("2", None, 7)]


def test_steps_of_malformed_job_are_refused_individually(tmp_path: Path) -> None:
    rows, refused = read_jobs(
        tmp_path, JOB_21_08 | {"name": {}}, {"job_id": 7, "steps": [5, {"step": {"id": "7.0"}}, {}]}
    )
    assert rows.select("line", "job_id").rows() == [(4, "7"), (6, "7.0")]
    assert refused["line"].to_list() == [1, 2, 3, 5, 7]
    assert "its job is refused" in refused["reason"][1]


def test_raw_text_of_long_record_is_truncated(tmp_path: Path) -> None:
    _, refused = read_jobs(tmp_path, {"job_id": None, "name": "x" * 10_000})
    assert refused["raw"].str.len_chars().to_list() == [2000]


@pytest.mark.parametrize("content", [b"[" * 100_000, b"[]", b'{"jobs": [{"job_id": ' + b"9" * 5000 + b"}]}"])
def test_document_without_job_list_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(content)
    with pytest.raises(InputRefused) as refusal:
        list(SOURCE.read(path, Reading()))
    assert refusal.value.remedy


def test_empty_export_yields_no_rows(tmp_path: Path) -> None:
    rows, refused = read_jobs(tmp_path)
    assert rows.is_empty()
    assert refused.is_empty()


def damaged(value: Any, dice: random.Random) -> Any:
    """Replace a random nested value by a value of another type."""
    junk = [None, True, -1, 1e300, "", "x", [], {}, [[]], {"set": 1}, "\ud800", 2**70]
    if not isinstance(value, dict | list) or not value or dice.random() < 0.15:
        return dice.choice(junk)
    place = dice.choice(list(value)) if isinstance(value, dict) else dice.randrange(len(value))
    value[place] = damaged(value[place], dice)
    return value


@pytest.mark.parametrize("seed", range(12))
def test_every_record_of_damaged_export_is_read_or_refused(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    jobs = [damaged(copy.deepcopy(dice.choice([JOB_21_08, JOB_23_02, JOB_24_05])), dice) for _ in range(30)]
    rows, refused = read_jobs(tmp_path, *jobs)
    steps = [job.get("steps") if isinstance(job, dict) else None for job in jobs]
    record_count = len(jobs) + sum(len(each) for each in steps if isinstance(each, list))
    assert sorted(rows["line"].to_list() + refused["line"].to_list()) == list(range(1, record_count + 1))

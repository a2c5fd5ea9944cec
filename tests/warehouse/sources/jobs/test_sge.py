"""Test the source of Grid Engine's accounting; REAL was written by Grid Engine 8.1.9 on a farm of one host."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.jobs.sge import SOURCE
from tests.warehouse.sources.batch_reading import read_log, read_written

T = 1795916800
HEAD = "# Version: 8.1.9\n# \n# DO NOT MODIFY THIS FILE MANUALLY!\n# \n"
_USAGE = "0.002166:0.008300:4976.000000:0:0:0:0:631:0:0:0.000000:40:0:0:0:14:10"
_NO_USAGE = "0.000000:0.000000:0.000000:0:0:0:0:0:0:0:0.000000:0:0:0:0:0:0"
REAL = HEAD + "".join(
    f"all.q:vm:staff:ann:{line}\n"
    for line in (
        f"para:5:sge:0:1795916855:1795916868:1795916870:0:0:2:{_USAGE}:NONE:defaultdepartment:smp:4:0:0.010466:0.000000:"
        "0.000000:-pe smp 4:0.000000:NONE:0.000000:0:0",
        f"fails:2:sge:0:1795916849:1795916871:1795916872:0:1:1:{_USAGE}:NONE:defaultdepartment:NONE:1:0:0.009157:"
        "0.000000:0.000000:NONE:0.000000:NONE:0.000000:0:0",
        f"arr:3:sge:0:1795916851:1795916880:1795916882:0:0:2:{_USAGE}:NONE:defaultdepartment:NONE:1:3:0.011702:0.000000:"
        "0.000045:NONE:0.000000:NONE:3522560.000000:0:0",
        f"nowd:7:sge:0:1795916870:0:0:28:0:0:{_NO_USAGE}:NONE:defaultdepartment:NONE:1:0:0.000000:0.000000:0.000000:"
        "NONE:0.000000:NONE:0.000000:0:0",
        f"limit:4:sge:0:1795916853:1795916879:1795916886:37:137:7:{_USAGE}:NONE:defaultdepartment:NONE:1:0:0.008258:"
        "0.000000:0.000045:-l h_rt=5,h_vmem=1G:0.000000:NONE:3731456.000000:0:0",
        f"killed:8:sge:0:1795916881:1795916890:1795916904:100:137:14:{_USAGE}:NONE:defaultdepartment:NONE:1:0:0.010780:"
        "0.000000:0.000045:NONE:0.000000:NONE:3727360.000000:0:0",
    )
)


def record(number: int, *, host: str = "cn1", pe: str = "mpi", slots: int = 8, **others: Any) -> str:
    """Return a line by accounting(5)."""
    field: dict[str, Any] = {
        "failed": 0,
        "status": 0,
        "task": 0,
        "category": "NONE",
        "part": "NONE",
        "more": ":0:0",
        "unit": 1,
    } | others
    submitted, started, ended = ((T + at) * field["unit"] for at in (0, 10, 70))
    return (
        f"long:{host}:staff:ann:icon:{number}:acct:0:{submitted}:{started}:{ended}:{field['failed']}:{field['status']}:60"
        + ":0" * 17
        + f":climate:dept:{pe}:{slots}:{field['task']}:1.5:0.1:0.0:{field['category']}:0.0:{field['part']}:1024.0"
        f"{field['more']}\n"
    )


def read_text(folder: Path, text: str) -> tuple[pl.DataFrame, ...]:
    return read_written(SOURCE, folder / "accounting", text, read=read_log)


def at(second: float) -> datetime:
    return datetime.fromtimestamp(T + second, UTC)


def test_lines_of_grid_engine_are_read(tmp_path: Path) -> None:
    rows, refused = read_text(tmp_path, REAL)
    assert refused.is_empty()
    names = ["line", "job_id", "job_name", "node_count", "task_count", "started_at", "ended_at", "state", "exit_code"]
    assert rows.select(names).rows() == [
        (5, "5", "para", None, 4, at(68), at(70), "COMPLETED", "0"),
        (6, "2", "fails", 1, 1, at(71), at(72), "FAILED", "1"),
        (7, "3_3", "arr", 1, 1, at(80), at(82), "COMPLETED", "0"),
        (8, "7", "nowd", None, 1, None, None, "FAILED", "0"),
        (9, "4", "limit", 1, 1, at(79), at(86), "TIMEOUT", "137"),
        (10, "8", "killed", 1, 1, at(90), at(104), "FAILED", "137"),
    ]
    assert set(rows.select("user", "partition", "account").rows()) == {("ann", "all.q", None)}


def test_published_case_has_one_job_of_sixteen_slots(shared_data: Path) -> None:
    rows, refused = read_log(SOURCE, shared_data / "cases" / "sge-accounting" / "accounting")
    assert refused.is_empty()
    names = ["job_id", "user", "job_name", "started_at", "ended_at", "task_count"]
    hours = [datetime(2026, 3, 2, hour, tzinfo=UTC) for hour in (10, 11)]
    assert rows.select(names).rows() == [("101", "u1", "sim", *hours, 16)]


def test_tasks_of_a_parallel_job_count_its_hosts_and_are_no_runs(tmp_path: Path) -> None:
    parts = [
        record(1, host=host, part=f"{number}.{host}") for number, host in enumerate(("cn1", "cn2", "cn2"), start=1)
    ]
    text = "".join([*parts, record(2, host="cn9", part="1.cn9"), record(1), record(3)])
    rows, _ = read_text(tmp_path, text)
    assert rows.select("job_id", "node_count").rows() == [("1", 2), ("3", None)]


def test_array_tasks_have_their_own_hosts(tmp_path: Path) -> None:
    tasks = [record(1, task=task, host=f"cn{task}", part=part) for task in (1, 2) for part in (f"1.cn{task}", "NONE")]
    rows, _ = read_text(tmp_path, "".join(tasks) + record(1, task=3, pe="NONE", slots=1))
    assert rows.select("job_id", "node_count").rows() == [("1_1", 1), ("1_2", 1), ("1_3", 1)]


@pytest.mark.parametrize("more", ["", ":0:0", ":0:0:NONE:NONE:0:0:login1:/scratch/ann:qsub -N a:b job.sh:60.5:10"])
@pytest.mark.parametrize("category", ["NONE", "-l h_rt=24:00:00", "-q a:b -pe mpi 8", ""])
def test_all_versions_and_separators_in_the_category_are_read(tmp_path: Path, more: str, category: str) -> None:
    rows, refused = read_text(tmp_path, record(1, more=more, category=category))
    assert refused.is_empty()
    names = ["job_id", "account", "task_count", "started_at", "state"]
    assert rows.select(names).rows() == [("1", "climate", 8, at(10), "COMPLETED")]


def test_uge_writes_milliseconds_and_who_deleted_a_job(tmp_path: Path) -> None:
    deleted = ":0:0:NONE:bob@head1:0:0:login1:NONE:qsub job.sh:60.5"
    rows, _ = read_text(tmp_path, record(1, more=deleted, failed=100, status=137, unit=1000))
    names = ["submitted_at", "ended_at", "state", "cancelled_by"]
    assert rows.select(names).rows() == [(at(0), at(70), "CANCELLED", "bob")]


def test_json_lines_of_ocs_are_read(tmp_path: Path) -> None:
    job = {
        "job_number": 1, "task_number": 0, "start_time": (T + 10) * 10**6, "end_time": (T + 70) * 10**6 + 500_000,
        "owner": "ann", "group": "staff", "account": "sge", "qname": "all.q", "hostname": "cn1", "project": "climate",
        "department": "dept", "slots": 1, "job_name": "a \"b\": c", "priority": 0, "submission_time": T * 10**6,
        "submit_cmd_line": "qsub job.sh", "category": "", "failed": 0, "exit_status": 0,
        "usage": {"rusage": {"ru_wallclock": 60}},
    }  # fmt: skip
    task = job | {"job_number": 2, "task_number": 7, "slots": 4, "granted_pe": "mpi"}
    part = task | {"hostname": "cn2", "pe_task_id": "1.cn2"}
    text = "".join(f"{json.dumps(each)}\n" for each in (job, part, task)) + json.dumps(job)[:200] + "\n"
    rows, refused = read_text(tmp_path, text)
    names = ["job_id", "account", "job_name", "node_count", "task_count", "submitted_at", "started_at", "ended_at"]
    assert rows.select(names).rows() == [
        ("1", "climate", 'a "b": c', 1, 1, at(0), at(10), at(70.5)),
        ("2_7", "climate", 'a "b": c', 2, 4, at(0), at(10), at(70.5)),
    ]
    assert refused["line"].to_list() == [4]
    assert "not complete JSON" in refused["reason"][0]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("=" * 62 + "\nqname        all.q               \nhostname     cn1                 \n", "output of qacct"),
        (f"{T}:acct:{record(1)}", "Grid Engine's reporting file"),
        (f"{T}:new_job:{T}:1:-1:NONE:icon:ann:staff::dept:sge:1024\n", "Grid Engine's reporting file"),
    ],
)
def test_other_files_with_the_same_jobs_are_refused_with_a_remedy(tmp_path: Path, text: str, name: str) -> None:
    with pytest.raises(InputRefused, match=name) as refused:
        read_text(tmp_path, text)
    assert "common/accounting" in refused.value.remedy


@pytest.mark.parametrize("start", ["\ufeff", HEAD, "a foreign line\n", "\n\n"])
def test_first_lines_do_not_stop_recognition(tmp_path: Path, start: str) -> None:
    rows, _ = read_text(tmp_path, (start + record(1) + record(2)).replace("\n", "\r\n"))
    assert rows["job_id"].to_list() == ["1", "2"]

"""Test the source of Slurm's jobcomp/filetxt; lines follow JOB_FORMAT of jobcomp_filetxt.c."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.jobs.slurm_completions import SOURCE
from iosig.warehouse.sources.protocol import Reading
from tests.warehouse.sources.batch_reading import UTC_ZONE, read_log, read_written

OLD = (
    "JobId={id} UserId=ann(1001) GroupId=staff(100) Name={name} JobState={state} Partition=main TimeLimit={limit} "
    "StartTime=2026-03-02T10:00:00 EndTime=2026-03-02T11:00:00 NodeList={nodes} NodeCnt={count} ProcCnt=64 WorkDir=/a b"
)
NEW = (
    " ReservationName= Tres=cpu=64,node=2 Account={account} QOS=normal WcKey= Cluster={cluster} "
    "SubmitTime=2026-03-02T09:59:00 EligibleTime=2026-03-02T09:59:00{more} DerivedExitCode=0:0 ExitCode={exit} \n"
)
VALUES = {
    "id": "101", "name": "sim", "state": "COMPLETED", "limit": "120", "nodes": "n[1-2]", "count": "2", "account": "a1",
    "cluster": "c1", "more": "", "exit": "0:0",
}  # fmt: skip


def job(**values: str) -> str:
    return (OLD + NEW).format(**(VALUES | values))


def read_text(folder: Path, text: str, reading: Reading = UTC_ZONE) -> tuple[pl.DataFrame, ...]:
    return read_written(SOURCE, folder / "slurm_jobcomp.log", text, reading, read=read_log)


def test_published_case_has_one_job_of_two_nodes(shared_data: Path) -> None:
    rows, refused = read_log(SOURCE, shared_data / "cases" / "slurm-jobcomp-text" / "a.txt")
    assert refused.is_empty()
    hours = [datetime(2026, 3, 2, hour, tzinfo=UTC) for hour in (10, 11)]
    assert rows.select("job_id", "user", "node_count", "started_at", "ended_at").rows() == [("101", "u1", 2, *hours)]


def test_line_with_all_keys_is_read(tmp_path: Path) -> None:
    rows, refused = read_text(tmp_path, job(name="a = b, c", state="FAILED", exit="1:0"))
    assert refused.is_empty()
    assert rows.row(0, named=True) == {
        "cluster": "c1",
        "job_id": "101",
        "user": "ann",
        "account": "a1",
        "job_name": "a = b, c",
        "partition": "main",
        "node_count": 2,
        "has_shared_nodes": None,
        "task_count": None,
        "submitted_at": datetime(2026, 3, 2, 9, 59, tzinfo=UTC),
        "started_at": datetime(2026, 3, 2, 10, tzinfo=UTC),
        "ended_at": datetime(2026, 3, 2, 11, tzinfo=UTC),
        "state": "FAILED",
        "cancelled_by": None,
        "exit_code": "1:0",
        "node_list": "n[1-2]",
        "comment": None,
        "source_file": "",
        "line": 1,
    }


def test_array_tasks_and_parts_have_the_ids_of_sacct(tmp_path: Path) -> None:
    task = job(id="105", more=" ArrayJobId=101 ArrayTaskId=3")
    part = job(id="201", more=" HetJobId=200 HetJobOffset=1")
    rows, _ = read_text(tmp_path, task + part)
    assert rows["job_id"].to_list() == ["101_3", "200+1"]


def test_lines_of_old_versions_are_read(tmp_path: Path) -> None:
    rows, refused = read_text(
        tmp_path, OLD.format(**VALUES | {"nodes": "(null)", "count": "0", "limit": "UNLIMITED"}) + "\n"
    )
    assert refused.is_empty()
    assert rows.select("job_id", "node_list", "node_count", "exit_code").rows() == [("101", None, 0, None)]


def test_unknown_values_are_null(tmp_path: Path) -> None:
    text = job(account="", cluster="unknown", state="CANCELLED").replace(
        "StartTime=2026-03-02T10:00:00", "StartTime=Unknown"
    )
    rows, _ = read_text(tmp_path, text)
    assert rows.select("account", "cluster", "started_at", "state").rows() == [(None, None, None, "CANCELLED")]


def test_times_need_a_zone(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="no time zone"):
        read_text(tmp_path, job(), Reading())
    rows, _ = read_text(tmp_path, job(), Reading(time_zone="Europe/Berlin"))
    assert rows["started_at"].to_list() == [datetime(2026, 3, 2, 9, tzinfo=UTC)]


def test_output_of_scontrol_is_refused_with_a_remedy(tmp_path: Path) -> None:
    text = "JobId=101 JobName=sim\n   UserId=u1(1001) GroupId=g1(1001) MCS_label=N/A\n   JobState=RUNNING\n"
    with pytest.raises(InputRefused, match="scontrol") as refused:
        read_text(tmp_path, text)
    assert "JobCompLoc" in refused.value.remedy


@pytest.mark.parametrize("start", ["\ufeff", "# a comment\n", "\n\n"])
def test_first_lines_and_line_ends_do_not_stop_recognition(tmp_path: Path, start: str) -> None:
    rows, _ = read_text(tmp_path, (start + job()).replace("\n", "\r\n"))
    assert rows["job_id"].to_list() == ["101"]

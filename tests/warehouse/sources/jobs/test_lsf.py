"""Test the source of LSF's lsb.acct; lines follow the field order of IBM Spectrum LSF, "lsb.acct"."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.sources.jobs.lsf import SOURCE
from tests.warehouse.sources.batch_reading import read_log, read_written

T = 1772366400


def job(
    number: int,
    hosts: str = "cn1 cn1 cn2",
    asked: str = "",
    index: int = 0,
    status: int = 64,
    info: str = "0",
    **more: str,
) -> str:
    """Return a record; `hosts` and `asked` are lists separated by blanks."""
    lists = " ".join(
        " ".join([str(len(names)), *(f'"{name}"' for name in names)]) for names in (asked.split(), hosts.split())
    )
    text = {"name": "icon", "command": "mpirun ./icon", "user": "ann", "start": str(T + 10), "exit": "0"} | more
    return (
        f'"JOB_FINISH" "10.1" {T + 70} {number} 1001 33554434 4 {T} 0 0 {text["start"]} "{text["user"]}" "normal" '
        f'"span[ptile=2]" "" "" "login1" "/scratch/ann" "" "%J.out" "" "{T}.{number}" {lists} {status} 60.0 '
        f'"{text["name"]}" "{text["command"]}" 1.5 0.5'
        + " 0"
        * 17
        + f' "" "climate" {text["exit"]} 4 "" "" {index} 2048 0 "" "" "" "" 0 "" '
        f'{info} "" -1 "/ann" "" "" "" -1 "" "" 5136 "" {T} "" "" 0\n'
    )


def read_text(folder: Path, text: str) -> tuple[pl.DataFrame, ...]:
    return read_written(SOURCE, folder / "lsb.acct", text, read=read_log)


def at(second: float) -> datetime:
    return datetime.fromtimestamp(T + second, UTC)


def test_finished_job_is_read(tmp_path: Path) -> None:
    rows, refused = read_text(tmp_path, job(101))
    assert refused.is_empty()
    assert rows.row(0, named=True) == {
        "cluster": None,
        "job_id": "101",
        "user": "ann",
        "account": "climate",
        "job_name": "icon",
        "partition": "normal",
        "node_count": 2,
        "has_shared_nodes": None,
        "task_count": 4,
        "submitted_at": at(0),
        "started_at": at(10),
        "ended_at": at(70),
        "state": "COMPLETED",
        "cancelled_by": None,
        "exit_code": "0",
        "node_list": "cn1,cn2",
        "comment": None,
        "source_file": "",
        "line": 1,
    }


@pytest.mark.parametrize("hosts", ["cn1 cn1 cn2 cn2", "2*cn1 2*cn2", "4*cn1 cn2"])
@pytest.mark.parametrize("asked", ["", "cn1", "cn1 cn2 cn3"])
def test_nodes_are_the_distinct_hosts(tmp_path: Path, hosts: str, asked: str) -> None:
    rows, refused = read_text(tmp_path, job(1, hosts, asked))
    assert refused.is_empty()
    assert rows.select("node_count", "node_list", "job_name").rows() == [(2, "cn1,cn2", "icon")]


def test_elements_of_arrays_are_tasks(tmp_path: Path) -> None:
    rows, _ = read_text(tmp_path, job(7, index=1) + job(7, index=12))
    assert rows["job_id"].to_list() == ["7[1]", "7[12]"]


def test_texts_may_contain_quotes_and_blanks(tmp_path: Path) -> None:
    rows, refused = read_text(tmp_path, job(1, command='echo ""a b"" 64 60.0;#BSUB -R ""x""', name="my job"))
    assert refused.is_empty()
    assert rows["job_name"].to_list() == ["my job"]


@pytest.mark.parametrize(
    ("info", "state"),
    [("0", "FAILED"), ("5", "TIMEOUT"), ("14", "CANCELLED"), ("16", "OUT_OF_MEMORY"), ("99", "FAILED")],
)
def test_reason_of_termination_is_the_state(tmp_path: Path, info: str, state: str) -> None:
    rows, _ = read_text(tmp_path, job(1, status=32, info=info, exit="256"))
    assert rows.select("state", "exit_code").rows() == [(state, "256")]


def test_job_that_never_started_has_no_start_and_no_nodes(tmp_path: Path) -> None:
    rows, _ = read_text(tmp_path, job(1, "", status=32, info="14", start="0"))
    names = ["started_at", "node_count", "node_list", "state"]
    assert rows.select(names).rows() == [(None, None, None, "CANCELLED")]


def test_records_of_old_versions_end_earlier(tmp_path: Path) -> None:
    rows, refused = read_text(tmp_path, job(1, status=32).partition(" 2048 0")[0] + ' 2048 0 "" "" ""\n')
    assert refused.is_empty()
    assert rows.select("job_id", "state").rows() == [("1", "FAILED")]


@pytest.mark.parametrize("start", ["\ufeff", "# a comment\n", '"EVENT_ADRSV_FINISH" "10.1" 1772366400 0 0 0 "a#1"\n'])
def test_first_lines_and_line_ends_do_not_stop_recognition(tmp_path: Path, start: str) -> None:
    rows, refused = read_text(tmp_path, (start + job(1)).replace("\n", "\r\n"))
    assert rows["job_id"].to_list() == ["1"]
    assert refused.is_empty()

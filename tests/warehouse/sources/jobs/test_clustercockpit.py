"""Test the source of ClusterCockpit's meta.json; members follow the schema job-meta and cc-backend's test data."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.jobs.clustercockpit import SOURCE
from iosig.warehouse.sources.protocol import recognize
from tests.warehouse.sources.batch_reading import read_log

T = 1772366400


def meta(**more: Any) -> dict[str, Any]:
    return {
        "jobId": 398759, "user": "ann", "project": "climate", "cluster": "fritz", "subCluster": "main",
        "partition": "singlenode", "arrayJobId": 0, "numNodes": 2, "numHwthreads": 144, "numAcc": 0, "shared": "none",
        "monitoringStatus": 1, "smt": 0, "jobState": "completed", "duration": 456, "walltime": 86340,
        "resources": [{"hostname": "f1039"}, {"hostname": "f1040", "hwthreads": [0, 1]}],
        "metaData": {"jobName": "icon", "slurmInfo": "\nJobId=398759 JobName=icon\n"}, "startTime": T, "tags": [],
        "statistics": {"cpu_load": {"unit": {"base": ""}, "avg": 51.5, "min": 11.0, "max": 69.6}},
    } | more  # fmt: skip


def read_text(folder: Path, text: str) -> tuple[pl.DataFrame, ...]:
    path = folder / "meta.json"
    path.write_text(text)
    assert recognize(read_head(path)) == SOURCE
    return read_log(SOURCE, path)


def read_job(folder: Path, **more: Any) -> tuple[pl.DataFrame, ...]:
    return read_text(folder, json.dumps(meta(**more)))


@pytest.mark.parametrize("indent", [None, 2])
def test_job_is_read(tmp_path: Path, indent: int | None) -> None:
    rows, refused = read_text(tmp_path, json.dumps(meta(), indent=indent))
    assert refused.is_empty()
    assert rows.row(0, named=True) == {
        "cluster": "fritz",
        "job_id": "398759",
        "user": "ann",
        "account": "climate",
        "job_name": "icon",
        "partition": "singlenode",
        "node_count": 2,
        "task_count": None,
        "submitted_at": None,
        "started_at": datetime.fromtimestamp(T, UTC),
        "ended_at": datetime.fromtimestamp(T + 456, UTC),
        "state": "COMPLETED",
        "cancelled_by": None,
        "exit_code": None,
        "node_list": "f1039,f1040",
        "has_shared_nodes": False,
        "comment": None,
        "source_file": "",
        "line": 1,
    }


@pytest.mark.parametrize(
    ("more", "column", "expected"),
    [
        ({"shared": "single_user"}, "has_shared_nodes", True),
        ({"shared": None, "exclusive": 1}, "has_shared_nodes", False),
        ({"jobState": "running"}, "ended_at", None),
        ({"stopTime": T + 7}, "ended_at", datetime.fromtimestamp(T + 7, UTC)),
        ({"jobState": "out_of_memory"}, "state", "OUT_OF_MEMORY"),
        ({"numNodes": None}, "node_count", 2),
        ({"resources": []}, "node_count", 2),
        ({"metaData": None}, "job_name", None),
    ],
)
def test_other_forms_are_read(tmp_path: Path, more: dict[str, Any], column: str, expected: object) -> None:
    rows, refused = read_job(tmp_path, **more)
    assert refused.is_empty()
    assert rows[column].to_list() == [expected]


def test_exclusive_of_older_versions_states_sharing(tmp_path: Path) -> None:
    old = {name: value for name, value in meta().items() if name != "shared"}
    for number, expected in ((0, True), (1, False), (2, True)):
        rows, _ = read_text(tmp_path, json.dumps(old | {"exclusive": number}))
        assert rows["has_shared_nodes"].to_list() == [expected]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"numNodes": 3}, "numNodes is 3, but resources has 2 hosts"),
        ({"jobId": None}, "no job id"),
        ({"startTime": "soon"}, "not a time"),
        ({"duration": -1}, "duration is negative"),
        ({"jobState": "lost"}, "not one of Slurm's"),
        ({"resources": ["f1"]}, "resources is not an object"),
    ],
)
def test_contradictory_or_malformed_job_is_refused(tmp_path: Path, more: dict[str, Any], reason: str) -> None:
    rows, refused = read_job(tmp_path, **more)
    assert rows.is_empty()
    assert reason in refused["reason"][0]


def test_truncated_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="not valid JSON"):
        read_text(tmp_path, json.dumps(meta())[:-5])

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters.prometheus import SOURCE
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import recognize
from tests.warehouse.sources.batch_reading import read_counters

T = 1723114600


def at(second: float) -> datetime:
    return datetime.fromtimestamp(T + second, UTC)


def series(name: str, values: dict[float, str], **labels: str) -> dict[str, Any]:
    told = {"__name__": name, "component": "ost", "target": "fs1-OST0001", **labels}
    return {"metric": told, "values": [[T + second, value] for second, value in values.items()]}


def read(folder: Path, *items: dict[str, Any]) -> tuple[pl.DataFrame, ...]:
    path = folder / "answer.json"
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": list(items)}}))
    assert recognize(read_head(path)) == SOURCE
    return read_counters(SOURCE, path)


def test_query_range_response_has_a_row_for_each_change(tmp_path: Path) -> None:
    rows, scrapes, refused = read(
        tmp_path,
        series("lustre_job_write_bytes_total", {0: "5", 10: "5", 20: "9", 30: "9"}, jobid="1"),
        series("lustre_job_read_bytes_total", {0: "1", 10: "2", 20: "2", 30: "2"}, jobid="1"),
        series("up", {0: "1"}),
        series("lustre_job_write_bytes_total", {0: "7", 20: "7", 30: "7"}, jobid="2"),
    )
    assert refused.is_empty()
    assert rows.select("job_key", "sampled_at", "total_written_bytes", "total_read_bytes").rows() == [
        ("1", at(0), 5, 1),
        ("2", at(0), 7, None),
        ("1", at(10), 5, 2),
        ("1", at(20), 9, 2),
        # absent at 10
        ("2", at(20), 7, None),
    ]
    assert scrapes.select("scraped_at", "entry_count").rows() == [(at(0), 2), (at(10), 1), (at(20), 2), (at(30), 2)]


def test_process_of_a_daos_client_is_part_of_its_target(tmp_path: Path) -> None:
    labels = {"jobid": "42", "pool": "p1", "target": "cn7:9192"}
    rows, _, refused = read(
        tmp_path,
        *(series("client_pool_xferred_fetch", {0: "5", 10: "9"}, pid=pid, **labels) for pid in ("11", "12")),
    )
    assert refused.is_empty()
    assert rows.select("filesystem", "target", "job_key").unique().sort("target").rows() == [
        ("p1", "cn7:9192:11", "42"),
        ("p1", "cn7:9192:12", "42"),
    ]


def test_query_response_is_a_single_snapshot(tmp_path: Path) -> None:
    one = series("lustre_read_bytes_total", {}) | {"value": [T + 0.25, "1.5e+3"]}
    rows, _, _ = read(tmp_path, one)
    assert rows.select("job_key", "sampled_at", "total_read_bytes").rows() == [(None, at(0.25), 1500)]


def test_bad_sample_loses_only_itself(tmp_path: Path) -> None:
    rows, scrapes, refused = read(
        tmp_path,
        series("lustre_job_write_bytes_total", {0: "5", 10: "NaN", 20: "9", 30: "9"}, jobid="1"),
        series("lustre_job_read_bytes_total", {0: "1", 10: "2", 20: "1_000", 30: "4"}, jobid="1"),
        series("lustre_job_write_bytes_total", {0: "7", 10: "NaN", 20: "7", 30: "-1"}, jobid="2"),
        series("lustre_job_write_bytes_total", {0: "NaN"}, jobid="3"),
    )
    assert rows.select("job_key", "sampled_at", "total_written_bytes", "total_read_bytes").rows() == [
        ("1", at(0), 5, 1),
        ("2", at(0), 7, None),
        ("1", at(10), 5, 2),
        ("1", at(20), 9, 2),
        ("2", at(20), 7, None),
        ("1", at(30), 9, 4),
    ]
    assert scrapes.select("scraped_at", "entry_count").rows() == [(at(0), 2), (at(10), 1), (at(20), 2), (at(30), 1)]
    assert refused["line"].to_list() == [2, 3]
    assert refused["reason"].str.contains("1 of 4 samples are not").all()


@pytest.mark.parametrize("items", [[], [series("lustre_write_bytes_total", {0: "NaN"})]], ids=["empty", "gaps only"])
def test_response_without_values_has_no_rows(tmp_path: Path, items: list[dict[str, Any]]) -> None:
    assert all(table.is_empty() for table in read(tmp_path, *items))


def test_invalid_series_are_refused(tmp_path: Path) -> None:
    good = series("lustre_read_bytes_total", {0: "1"})
    rows, _, refused = read(
        tmp_path,
        good,
        series("lustre_write_bytes_total", {0: "1.5"}),
        {"metric": {"target": "a"}, "values": [[T, "1"]]},
        {"metric": 3},
        {"metric": {"__name__": "lustre_read_bytes_total"}, "values": [[T, "1"]]},
        series("lustre_job_read_bytes_total", {0: "1"}),
    )
    assert rows.height == 1
    assert refused["line"].to_list() == [2, 3, 4, 5, 6]
    with pytest.raises(InputRefused, match="None of the series"):
        read(tmp_path, series("up", {0: "1"}))

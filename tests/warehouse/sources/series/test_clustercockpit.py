"""Test the source of ClusterCockpit's data.json; members follow the schema job-data and cc-backend's test data."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.contracts.series import SERIES
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import recognize
from iosig.warehouse.sources.rows.field_use import record_fields
from iosig.warehouse.sources.series.clustercockpit import SOURCE
from tests.warehouse.sources.batch_reading import read_input
from tests.warehouse.sources.jobs.test_clustercockpit import T, meta

NAMES = ["direction", "time_s", "interval_s", "bytes_per_s", "flag"]


def metric(*nodes: list[Any], base: str = "B/s", prefix: str = "", step: float = 30) -> dict[str, Any]:
    """Return a metric of the scope node."""
    series = [
        {"hostname": f"f{1039 + number}", "statistics": {"min": 0, "avg": 1, "max": 2}, "data": data}
        for number, data in enumerate(nodes)
    ]
    unit = {"base": base} | ({"prefix": prefix} if prefix else {})
    return {"node": {"unit": unit, "timestep": step, "series": series, "statisticsSeries": None}}


LOAD = {"cpu_load": metric([1.0, 2.0], base="")}


def read_data(folder: Path, data: Any, job: Any = None) -> tuple[pl.DataFrame, ...]:
    path = folder / "data.json"
    path.write_text(json.dumps(data))
    (folder / "meta.json").write_text(json.dumps(meta() if job is None else job))
    assert recognize(read_head(path)) == SOURCE
    return read_input(SOURCE, path, table=SERIES)


def test_rates_of_nodes_are_summed_from_the_start_of_the_job(tmp_path: Path) -> None:
    data = LOAD | {
        "lustre_read_bw": metric([1.5, 0.0, 2], [0.5, 4.0, None], prefix="M"),
        "lustre_write_bw": metric([0.0, 8.0], [0.0, 0.25, 2.0]),
        "eth_read_bw": metric([7.0], [7.0]),
    }
    rows, refused = read_data(tmp_path, data)
    assert refused.is_empty()
    assert set(rows.select("subject_id", "node_count").rows()) == {("fritz-398759", 2)}
    assert rows.select(NAMES).rows() == [
        ("read", T + 30.0, 30.0, 2e6, None),
        ("read", T + 60.0, 30.0, 4e6, None),
        ("read", T + 90.0, 30.0, None, "missing"),
        ("write", T + 30.0, 30.0, 0.0, None),
        ("write", T + 60.0, 30.0, 8.25, None),
        # the other node has fewer values
        ("write", T + 90.0, 30.0, None, "missing"),
    ]


def test_file_systems_of_the_schema_are_summed(tmp_path: Path) -> None:
    systems = [
        {"name": name, "type": "lustre", "read_bw": metric([1.0]), "write_bw": metric([2.0]), "read_req": metric([9])}
        for name in ("scratch", "home")
    ]
    rows, _ = read_data(tmp_path, LOAD | {"filesystems": systems})
    assert rows.select("direction", "bytes_per_s").rows() == [("read", 2.0), ("write", 4.0)]


def test_rate_of_both_directions_counts_only_alone(tmp_path: Path) -> None:
    both = LOAD | {"file_bw": metric([0.0, 5.0])}
    rows, _ = read_data(tmp_path, both)
    assert rows.select("direction", "bytes_per_s").rows() == [("unstated", 0.0), ("unstated", 5.0)]
    rows, _ = read_data(tmp_path, both | {"beegfs_read_bw": metric([3.0])})
    assert rows.select("direction", "bytes_per_s").rows() == [("read", 3.0)]


def test_compressed_data_are_read(tmp_path: Path) -> None:
    path = tmp_path / "data.json.gz"
    path.write_bytes(gzip.compress(json.dumps(LOAD | {"gpfs_bw_read": metric([3.0])}).encode()))
    (tmp_path / "meta.json").write_text(json.dumps(meta()))
    rows, _ = read_input(SOURCE, path, table=SERIES)
    assert rows["bytes_per_s"].to_list() == [3.0]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (metric([1.0], base="op/s"), "not B/s"),
        (metric([1.0], prefix="X"), "not B/s"),
        (metric([-1.0]), "not a non-negative number"),
        (metric(["1"]), "a value is not a number"),
        (metric([1.0], step=0), "its timestep"),
        (metric(), "it has no series"),
        ({"core": {}}, "is not an object"),
        (5, "is not an object"),
    ],
)
def test_malformed_metric_is_refused_with_its_direction(tmp_path: Path, bad: Any, reason: str) -> None:
    data = LOAD | {"lustre_read_bw": bad, "nfs_read_bw": metric([1.0]), "lustre_write_bw": metric([2.0])}
    rows, refused = read_data(tmp_path, data)
    assert rows.select("direction", "bytes_per_s").rows() == [("write", 2.0)]
    assert refused["line"].to_list() == [2]
    assert reason in refused["reason"][0]


def test_counts_of_operations_in_a_wrong_unit_are_ignored(tmp_path: Path) -> None:
    data = LOAD | {"nfs4_read": metric([389.0], prefix="M"), "file_bw": metric([1.0])}
    with record_fields() as use:
        rows, _ = read_data(tmp_path, data)
    assert rows["bytes_per_s"].to_list() == [1.0]
    assert (list(use.taken), list(use.ignored)) == (["file_bw"], ["cpu_load", "nfs4_read"])


@pytest.mark.parametrize("job", [{}, meta(startTime=0), meta(cluster=None)])
def test_data_without_a_readable_job_are_refused(tmp_path: Path, job: Any) -> None:
    with pytest.raises(InputRefused, match="no readable meta"):
        read_data(tmp_path, LOAD | {"file_bw": metric([1.0])}, job)


def test_data_without_rates_or_with_mixed_steps_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="no rates of file systems"):
        read_data(tmp_path, LOAD)
    with pytest.raises(InputRefused, match="different time steps"):
        read_data(tmp_path, LOAD | {"a_read_bw": metric([1.0]), "b_read_bw": metric([1.0], step=60)})


def test_description_of_a_cluster_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"name": "fritz", "metricConfig": [{"name": "cpu_load", "unit": {}, "timestep": 60}]}))
    with pytest.raises(InputRefused, match="describes a cluster"):
        recognize(read_head(path))

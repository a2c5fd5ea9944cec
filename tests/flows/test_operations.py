"""Polls with operations have signatures, classes and periods of operations, in the same tables as those of bytes."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from iosig.answers.opening.release import OpenedRelease
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.flows.test_signatures import INTERVAL_S, MIDNIGHT
from tests.nights import Cli, land_files, run_night

pytestmark = pytest.mark.slow

#: bytes of a request of each application; both write the same bytes at the same times
REQUEST_BYTES = {"many": 64e3, "few": 16e6}
#: times of an application's bursts, and bytes and duration of each
BURSTS_S, BURST_BYTES, BURST_S = np.arange(60, 900, 120), 16e9, 20.0
RUN_COUNT, RUN_S, PAUSE_S = 6, 900, 300


def write_polls(folder: Path, *, with_operations: bool = True) -> list[str]:
    """Write a job log of alternating runs of both applications, and polls of all their requests."""
    starts_s = 600 + (RUN_S + PAUSE_S) * np.arange(2 * RUN_COUNT)
    edges = np.arange(0, starts_s[-1] + 2 * RUN_S, INTERVAL_S)
    moved_bytes, operations = 5e6 * edges, 20.0 * edges
    lines = ["JobID|User|JobName|Partition|NNodes|Start|End|State"]
    for number, start_s in enumerate(starts_s.tolist()):
        name = ("many", "few")[number % 2]
        started, ended = (MIDNIGHT + timedelta(seconds=start_s + length) for length in (0, RUN_S))
        lines.append(f"{number}|ann|{name}|batch|8|{started:%FT%TZ}|{ended:%FT%TZ}|COMPLETED")
        for at_s in BURSTS_S.tolist():
            share = np.clip((edges - start_s - at_s) / BURST_S, 0, 1)
            moved_bytes = moved_bytes + share * BURST_BYTES
            operations = operations + share * BURST_BYTES / REQUEST_BYTES[name]
    polls = pl.DataFrame(
        {
            "polled_at": [f"{MIDNIGHT + timedelta(seconds=edge):%FT%TZ}" for edge in edges[1:].tolist()],
            "controller": "c0",
            "read_bytes_per_s": 0.0,
            "write_bytes_per_s": np.diff(moved_bytes) / INTERVAL_S,
            "write_iops": np.diff(operations) / INTERVAL_S,
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "jobs.sacct").write_text("\n".join(lines) + "\n")
    (polls if with_operations else polls.drop("write_iops")).write_csv(folder / "polls.csv")
    return [str(folder / "jobs.sacct"), str(folder / "polls.csv")]


def make_release(folder: Path, *, with_operations: bool = True) -> tuple[Store, Release]:
    store = Store(folder / "warehouse")
    land_files(store, *write_polls(folder, with_operations=with_operations))
    return store, run_night(store)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Release]:
    return make_release(tmp_path_factory.mktemp("operations"))


def rows(planted: tuple[Store, Release], query: str) -> list[dict[str, Any]]:
    """Query the tables as they are published."""
    return OpenedRelease(*planted).sql(query).to_dicts()


def test_signature_of_operations_has_the_requests_of_its_application(planted: tuple[Store, Release]) -> None:
    signatures = rows(planted, "from signatures where metric = 'operations' and outcome = 'extracted' order by all")
    assert {(row["application_id"].split("/")[1], row["direction"]) for row in signatures} == {
        ("many", "write"),
        ("few", "write"),
    }
    for row in signatures:
        request_bytes = REQUEST_BYTES[row["application_id"].split("/")[1]]
        assert row["volume_operations"] == pytest.approx(len(BURSTS_S) * BURST_BYTES / request_bytes, rel=0.05)
        assert row["peak_operations_per_s"] == pytest.approx(BURST_BYTES / BURST_S / request_bytes, rel=0.1)
        assert row["burst_count"] == len(BURSTS_S)
        assert (row["volume_bytes"], row["peak_bytes_per_s"], row["is_default"]) == (None, None, False)


def test_signatures_of_bytes_are_those_without_operations(planted: tuple[Store, Release], tmp_path: Path) -> None:
    query = """
        select * exclude (method_parameters), (
            select sum(hash(bursts)) from {bursts} as bursts where bursts.application_id = signatures.application_id
        ) as bursts
        from signatures where metric = 'bytes' order by application_id, direction, method
    """
    bursts = "(from signature_bursts where metric = 'bytes')"
    without = make_release(tmp_path, with_operations=False)
    assert rows(planted, query.format(bursts=bursts)) == rows(without, query.format(bursts=bursts))
    for table in ("signatures", "sample_sets", "signature_points", "signature_bursts", "classes", "periods"):
        assert rows(without, f"select count(*) as count from {table} where metric = 'operations'") == [{"count": 0}]
    assert rows(without, "select count(*) as count from samples where volume_operations is not null") == [{"count": 0}]


def test_query_without_a_metric_adds_up_bytes_only(planted: tuple[Store, Release]) -> None:
    joined = """
        select sum(points.bytes_per_s) as points_bytes, sum(distinct signatures.volume_bytes) as volume_bytes
        from signatures inner join signature_points as points using (application_id, filesystem, direction, method)
        where is_default {condition}
    """
    unaware, aware = (
        rows(planted, joined.format(condition=condition))
        for condition in ("", "and signatures.metric = 'bytes' and points.metric = 'bytes'")
    )
    assert unaware == aware
    both = "select (select count(*) from signatures where is_default) as all_count, count(*) as count from signatures"
    (counts,) = rows(planted, f"{both} where is_default and metric = 'bytes'")
    assert counts["all_count"] == counts["count"] > 0


@pytest.mark.parametrize("table", ["signature_points", "signature_bursts", "periods", "classes"])
def test_operations_have_one_method_and_no_bytes(planted: tuple[Store, Release], table: str) -> None:
    key = "direction, application_id" if table.startswith("signature") else "subject_kind, subject_id, direction"
    if "method" in (columns := rows(planted, f"from {table} limit 1")[0]):
        methods = f"select {key}, count(distinct method) as count from {table} where metric = 'operations' group by all"
        assert {row["count"] for row in rows(planted, methods)} == {1}
    of_bytes = [name for name in columns if "bytes" in name]
    (known,) = rows(planted, f"select count({'), count('.join(of_bytes)}) from {table} where metric = 'operations'")
    assert set(known.values()) == {0}


def test_operations_have_the_period_and_class_of_their_bursts(planted: tuple[Store, Release]) -> None:
    query = "from {} where metric = 'operations' and direction = 'write' and subject_kind = 'application'"
    for row in rows(planted, query.format("periods")):
        assert row["outcome"] == "periodic"
        assert row["period_s"] == pytest.approx(120.0, rel=0.02)
        assert row["mean_operations_per_s"] > 0
    labels = rows(planted, query.format("classes"))
    assert [row["label"] for row in labels] == ["UNIFORM", "UNIFORM"]
    assert [len(row["section_operations"]) for row in labels] == [4, 4]


def test_runs_inherit_classes_and_periods_of_operations(planted: tuple[Store, Release]) -> None:
    query = "select basis, outcome, count(*) as count from {} where metric = 'operations' and direction = 'write' {}"
    of_jobs = "and subject_kind = 'job' group by all"
    expected = [{"basis": "inferred", "count": 2 * RUN_COUNT}]
    assert rows(planted, query.format("classes", of_jobs)) == [{**row, "outcome": "classified"} for row in expected]
    assert rows(planted, query.format("periods", of_jobs)) == [{**row, "outcome": "periodic"} for row in expected]


def test_attribution_uses_bytes(planted: tuple[Store, Release], tmp_path: Path) -> None:
    without = make_release(tmp_path, with_operations=False)
    for table in ("attributed_io", "job_io", "slowdowns", "unattributed_patterns", "inference_checks"):
        query = f"from {table} order by all"
        assert rows(planted, query) == rows(without, query), table


def test_job_has_its_operations(planted: tuple[Store, Release], cli: Cli, tmp_path: Path) -> None:
    store, _ = planted
    page = tmp_path / "0.html"
    code, output, error = cli("--warehouse", store.root, "job", "0", "--json", "--html", page)
    assert code == 0, error
    (of_write,) = json.loads(output)["operations"]
    assert of_write["direction"] == "write", "the polls have no operations of reads"
    request_bytes = REQUEST_BYTES["many"]
    expected = len(BURSTS_S) * BURST_BYTES / request_bytes + 20 * RUN_S
    assert of_write["volume_operations"] == pytest.approx(expected, rel=0.02)
    assert sum(of_write["operations_per_s"]) * of_write["step_s"] == pytest.approx(expected, rel=0.02)
    assert of_write["peak_operations_per_s"] == pytest.approx(BURST_BYTES / BURST_S / request_bytes + 20, rel=0.01)
    assert (of_write["label"], of_write["period_basis"]) == ("UNIFORM", "inferred")
    assert of_write["period_s"] == pytest.approx(120.0, rel=0.02)
    signature = of_write["signature"]
    assert signature["volume_operations"] == pytest.approx(len(BURSTS_S) * BURST_BYTES / request_bytes, rel=0.05)
    assert max(signature["operations_per_s"]) == pytest.approx(BURST_BYTES / BURST_S / request_bytes, rel=0.1)
    assert "<h2>Operations during the run</h2>" in page.read_text()
    assert "[kop/s]" in page.read_text()
    code, output, error = cli("--warehouse", store.root, "job", "0")
    assert code == 0, error
    (line,) = [line for line in output.partition("Operations of all jobs")[2].splitlines() if " write " in line]
    assert "1.77 Mop" in line
    assert "12.5 kop/s" in line
    assert "UNIFORM (inferred)" in line


def test_job_without_operations_names_none(cli: Cli, tmp_path: Path) -> None:
    store, _ = make_release(tmp_path, with_operations=False)
    page = tmp_path / "0.html"
    code, output, error = cli("--warehouse", store.root, "job", "0", "--json", "--html", page)
    assert code == 0, error
    assert json.loads(output)["operations"] == []
    assert "perations" not in page.read_text()
    assert "perations" not in cli("--warehouse", store.root, "job", "0")[1]


def test_signatures_of_operations_are_carried(planted: tuple[Store, Release], tmp_path: Path) -> None:
    shutil.copytree(planted[0].root, tmp_path / "warehouse")
    store, day = Store(tmp_path / "warehouse"), MIDNIGHT + timedelta(days=1)
    (tmp_path / "jobs.sacct").write_text(
        "JobID|User|JobName|Partition|NNodes|Start|End|State\n"
        f"900|ann|other|batch|8|{day + timedelta(hours=1):%FT%TZ}|{day + timedelta(hours=2):%FT%TZ}|COMPLETED\n"
    )
    times = [day + timedelta(hours=1, seconds=INTERVAL_S * step) for step in range(1, 721)]
    polls = "".join(f"{time:%FT%TZ},c0,0,1000000,20\n" for time in times)
    (tmp_path / "polls.csv").write_text(f"polled_at,controller,read_bytes_per_s,write_bytes_per_s,write_iops\n{polls}")
    land_files(store, tmp_path / "jobs.sacct", tmp_path / "polls.csv")
    second = store, run_night(store)
    query = """
        select application_id, direction, metric, method, is_default, volume_bytes, volume_operations, is_changed
        from signatures where application_id not like '%other%' order by all
    """
    assert rows(second, query) == rows(planted, query)
    for table in ("signature_points", "signature_bursts"):
        query = f"from {table} where application_id not like '%other%' order by all"
        assert rows(second, query) == rows(planted, query)
    for table in ("classes", "periods", "period_segments"):
        query = f"from {table} where subject_kind = 'application' and subject_id not like '%other%' order by all"
        assert rows(second, query) == rows(planted, query)


def test_commands_answer_for_operations(planted: tuple[Store, Release], cli: Cli, tmp_path: Path) -> None:
    store, _ = planted
    target = tmp_path / "many.svg"
    code, output, error = cli(
        "--warehouse", store.root, "plot", "signature", "many", "--metric", "operations", "--output", target
    )
    assert code == 0, error
    assert "writes 1.75 Mop in 7 bursts" in output
    assert "up to 12.5 kop/s" in output
    assert target.is_file()
    polls = str(store.root.parent / "polls.csv")
    code, output, error = cli("period", polls, "--metric", "operations", "--direction", "write", "--json")
    assert code == 0, error
    (row,) = json.loads(output)["periods"]
    assert (row["metric"], row["outcome"], row["mean_bytes_per_s"]) == ("operations", "periodic", None)
    assert row["mean_operations_per_s"] > 0
    code, _, error = cli("period", str(write_polls(tmp_path, with_operations=False)[1]), "--metric", "operations")
    assert (code, "has no operations per second" in error) == (3, True)

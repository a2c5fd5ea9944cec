"""Findings of traced runs are equal for a log alone and from a release, and match expectations of real logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from iosig.answers.findings import query as findings
from iosig.answers.single.one_input import TraceInput, open_input
from iosig.flows.demo.simulated import find_shipped_logs
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions
from iosig.warehouse.contracts.traces import TRACE_FILES, TRACE_HEATMAPS, TRACE_RECORDS, TRACE_REQUESTS

#: start of a log's name -> expected findings, in order
EXPECTED = {
    "e3sm": [
        "waiting_in_collectives write", "misaligned_requests", "small_requests read", "amplified_by_mpiio write",
        "small_requests write", "stragglers", "redundant_reads read", "trace_not_whole", "blocking_io write",
    ],
    "jeanbez": [
        "unbalanced_ranks read", "unbalanced_ranks write", "waiting_in_collectives write", "misaligned_requests",
        "waiting_in_collectives read", "amplified_by_mpiio read", "random_access read", "small_requests read",
        "redundant_writes write", "redundant_reads read", "blocking_io write", "blocking_io read",
    ],
    "snyder_python3": ["redundant_reads read"],
    "mpi-io-test-x86": [],
    "empty_log": [],
    "hdf5_diagonal": ["shared_file_without_mpiio", "redundant_reads read", "metadata_storm"],
    "jlbez": [
        "misaligned_requests", "small_requests write", "small_requests read", "stragglers",
        "waiting_in_collectives write", "blocking_io write",
    ],
    "laytonjb": [],
    "mpi-io-test-ppc": ["blocking_io read"],
    "nonmpi_dxt": ["misaligned_requests", "small_requests write", "random_access read", "small_requests read"],
    "partial_data": ["random_access read", "small_requests read", "trace_not_whole", "blocking_io read"],
    "runtime_and": [],
    "snyder_ior": [],
    "treddy_mpi": ["stragglers", "blocking_io write", "blocking_io read"],
    "treddy_runtime": [],
}  # fmt: skip
_QUICK = ("snyder_python3", "mpi-io-test-x86", "e3sm", "jeanbez")


def shipped(name: str) -> Path:
    return next(path for path in find_shipped_logs() if path.name.startswith(name))


@contextmanager
def read(path: Path) -> Iterator[TraceInput]:
    with open_input(path, Settings(), ReadOptions()) as found:
        assert isinstance(found, TraceInput)
        yield found


def told(run: findings.TracedRun) -> list[str]:
    return [" ".join(filter(None, (row["rule"], row["direction"]))) for row in run.found_rows]


@pytest.mark.parametrize("start", [
    *(pytest.param(name, marks=pytest.mark.slow) for name in _QUICK),
    *(pytest.param(name, marks=pytest.mark.long) for name in EXPECTED if name not in _QUICK),
])  # fmt: skip
def test_real_logs_have_the_expected_findings(start: str, shared_data: Path) -> None:
    path = next((shared_data / "darshan").glob(f"{start}*.darshan"))
    with read(path) as trace:
        assert told(findings.analyze_input(trace)) == EXPECTED[start]


@pytest.mark.long
def test_every_log_has_an_expectation(shared_data: Path) -> None:
    names = [path.name for path in (shared_data / "darshan").glob("*.darshan")]
    assert [name for name in names if not name.startswith(tuple(EXPECTED))] == []


def test_slow_target_is_found_as_straggler() -> None:
    with read(shipped("sample-badost")) as trace:
        run = findings.analyze_input(trace)
    assert told(run) == ["stragglers"]
    (row,) = run.found_rows
    numbers = {one["name"]: one["value"] for one in row["evidence"]}
    # Drishti divides by the time of all 2,048 ranks: 1 %
    assert numbers["slowest_s"] > 700
    assert numbers["mean_s"] < 40
    assert run.maps == ()
    assert run.layers["module"].to_list() == ["POSIX", "STDIO"]


def test_release_and_log_alone_have_equal_findings() -> None:
    with read(shipped("ior_hdf5")) as trace, duckdb.connect() as connection:
        alone = findings.analyze_input(trace)
        for table in (TRACE_HEATMAPS, TRACE_RECORDS, TRACE_FILES, TRACE_REQUESTS):
            connection.register(table.name, trace.read(table).to_arrow())
        connection.register("trace_jobs", trace.jobs.to_arrow())
        connection.register("trace_counters", trace.counters.to_arrow())
        (released,) = findings.analyze_release(connection, trace.jobs["trace_id"].to_list())
        assert findings.analyze_release(connection, []) == []
    assert released.findings.equals(alone.findings)
    assert released.layers.equals(alone.layers)
    assert released.facts == alone.facts
    assert [one.cell_bytes.tolist() for one in released.maps] == [one.cell_bytes.tolist() for one in alone.maps]
    assert {one.direction: one.cell_bytes.sum() for one in alone.maps} == {
        way: trace.counters.filter(module="MPIIO")[column][0]
        for way, column in (("write", "written_bytes"), ("read", "read_bytes"))
    }


@pytest.mark.slow
def test_request_order_and_sizes_equal_darshan_counters(shared_data: Path) -> None:
    """The log has requests and counters of the same run, which must agree."""
    from iosig.transforms.findings.request_facts import sizes_and_order

    with read(next((shared_data / "darshan").glob("nonmpi_dxt*.darshan"))) as trace:
        requests = trace.read(TRACE_REQUESTS)
        run = findings.analyze_input(trace)
    exact = {row["direction"]: row for row in sizes_and_order(requests, 1 << 20).to_dicts()}
    sizes = run.sizes.filter(module="POSIX")
    for way in ("read", "write"):
        small = sizes.filter(size="100K_1M")[f"{way}_count"].sum() + sizes[f"{way}_count"].head(4).sum()
        assert exact[way]["small_count"] == small
        assert exact[way]["request_count"] == run.facts[f"{way}_count"]

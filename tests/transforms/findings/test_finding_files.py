"""Files of a finding have the largest shares of its metric, by requests if these are complete."""

from __future__ import annotations

from typing import Any

import polars as pl

from iosig.transforms.findings.facts import TraceFrames
from iosig.transforms.findings.finding_files import MAX_FILES, find_files
from iosig.transforms.findings.thresholds import Thresholds
from tests.transforms.findings import made_traces as made

MIB = 1 << 20


def record(number: int, module: str = "POSIX", rank: int = 0, **told: Any) -> dict[str, Any]:
    return {"module": module, "file_number": number, "rank": rank} | told


def request(number: int, place: int, offset: int, size: int = 10) -> dict[str, Any]:
    return {
        "module": "POSIX", "rank": 0, "file_number": number, "direction": "read", "offset_bytes": offset,
        "request_bytes": size, "start_s": float(place), "end_s": place + 0.5,
    }  # fmt: skip


def find(
    rule: str, *records: dict[str, Any], requests: list[dict[str, Any]] | None = None, way: str | None = "read"
) -> list[tuple[int, float]]:
    """Return the files of a rule and the share of each."""
    frames = TraceFrames(
        made.jobs(process_count=4),
        made.rows(made.COUNTERS),
        records=made.rows(made.RECORDS, *records),
        files=made.rows(made.FILES, {"file_number": 1, "stripe_bytes": 100, "osts": [1, 2]}),
        requests=None if requests is None else made.rows(made.REQUESTS, *requests),
    )
    rows = find_files(frames, Thresholds()).filter(pl.col("rule") == rule, pl.col("direction").eq_missing(pl.lit(way)))
    return list(rows.select("file_number", "value").iter_rows())


def test_small_requests_are_summed_over_ranks() -> None:
    small = [record(1, rank=rank, read_count=50, read_bytes=50 * 100) for rank in (0, 1)]
    large = record(2, read_count=500, read_bytes=500 * 2 * MIB)
    assert find("small_requests", *small, large, record(3, read_count=7, read_bytes=70)) == [(1, 100.0), (3, 7.0)]


def test_complete_requests_take_precedence_over_records() -> None:
    records = (record(1, read_count=3, read_bytes=30, read_extent_bytes=10), record(2))
    requests = [request(1, 0, 20), request(1, 1, 0), request(1, 2, 0)]
    assert find("random_access", *records, requests=requests) == [(1, 2.0)]
    assert find("redundant_reads", *records, requests=requests) == [(1, 10.0)]
    # one of three requests is present: the bytes beyond the end of the file are in the record
    assert find("random_access", *records, requests=requests[:1]) == []
    assert find("redundant_reads", *records, requests=requests[:1]) == [(1, 20.0)]


def test_stripe_crossings_are_counted_by_file() -> None:
    records = (record(1, read_count=2, read_bytes=120),)
    requests = [request(1, 0, 0, 100), request(1, 1, 90, 20)]
    assert find("stripes_crossed", *records, requests=requests, way=None) == [(1, 1.0)]


def test_straggler_files_rank_by_slowest_process_minus_mean() -> None:
    shared = record(1, rank=-1, read_time_s=8.0, slowest_time_s=5.0)
    assert find("stragglers", shared, record(2, rank=-1, read_time_s=4.0, slowest_time_s=1.0), way=None) == [(1, 3.0)]


def test_shared_files_with_mpi_io_are_excluded() -> None:
    both = [record(1, rank=-1, read_bytes=MIB), record(1, "MPIIO", rank=-1, read_bytes=MIB)]
    assert find("shared_file_without_mpiio", *both, record(2, rank=-1, read_bytes=5), way=None) == [(2, 5.0)]
    assert find("amplified_by_mpiio", *both, record(3, read_bytes=9), record(3, "MPIIO", read_bytes=4)) == [(3, 5.0)]


def test_files_are_limited_to_the_highest_values() -> None:
    many = [record(number, "STDIO", written_bytes=10 * number) for number in range(1, 9)]
    assert find("stdio_used", *many, way=None) == [(8, 80.0), (7, 70.0), (6, 60.0)]
    assert MAX_FILES == 3


def test_trace_without_records_has_no_finding_files() -> None:
    assert find_files(TraceFrames(made.jobs(), made.rows(made.COUNTERS)), Thresholds()).is_empty()

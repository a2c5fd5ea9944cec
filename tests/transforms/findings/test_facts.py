"""Facts of a traced run from counters, records, heat maps and requests; missing data give no fact."""

from __future__ import annotations

from typing import Any

import pytest

from iosig.transforms.findings.facts import TraceFrames, compute_facts
from iosig.transforms.findings.thresholds import Thresholds
from tests.transforms.findings.made_traces import (
    COUNTERS,
    FILES,
    HEATMAPS,
    RECORDS,
    REQUESTS,
    counter_row,
    jobs,
    rows,
)

GB = 10**9
POSIX = counter_row(
    "POSIX",
    {
        "POSIX_SIZE_READ_0_100": 3, "POSIX_SIZE_READ_100_1K": 4, "POSIX_SIZE_READ_1K_10K": 0,
        "POSIX_SIZE_READ_10K_100K": 0, "POSIX_SIZE_READ_100K_1M": 1, "POSIX_SEQ_READS": 6, "POSIX_CONSEC_READS": 5,
        "POSIX_FILE_NOT_ALIGNED": 2, "POSIX_MEM_NOT_ALIGNED": 1,
    },
    read_bytes=800, written_bytes=200, read_count=10, write_count=2, open_count=7, stat_count=1,
    read_time_s=8.0, write_time_s=2.0, metadata_time_s=4.0,
)  # fmt: skip


def facts(*counters: dict[str, Any], process_count: int | None = 4, **frames: Any) -> dict[str, Any]:
    told = TraceFrames(jobs(process_count), rows(COUNTERS, *counters), **frames)
    return compute_facts(told, Thresholds()).row(0, named=True)


def record(rank: int, file: int = 0, module: str = "POSIX", **told: Any) -> dict[str, Any]:
    zeros = {"read_bytes": 0, "written_bytes": 0, "read_time_s": 0.0, "write_time_s": 0.0, "metadata_time_s": 0.0}
    return zeros | {"module": module, "file_number": file, "rank": rank} | told


def test_facts_are_computed_from_counters() -> None:
    found = facts(POSIX, counter_row("STDIO", read_bytes=0, written_bytes=50, read_count=0, write_count=5))
    assert (found["read_small_count"], found["read_sequential_count"], found["read_count"]) == (8, 6, 10)
    assert (found["file_misaligned_count"], found["memory_misaligned_count"]) == (2, 1)
    assert (found["stdio_bytes"], found["read_bytes"], found["write_bytes"]) == (50, 800, 250)
    assert (found["metadata_count"], found["data_count"]) == (8, 17)
    # of 4 processes for 100 s
    assert (found["read_time_ratio"], found["io_time_ratio"]) == (0.02, pytest.approx(14 / 400))
    # the histogram of writes is missing
    assert found["write_small_count"] is None


def test_facts_without_data_are_unknown() -> None:
    found = facts()
    known = {name for name, value in found.items() if value is not None}
    assert known == {"trace_id", "process_count", "duration_s", "tracer"}


def test_io_outside_of_posix_makes_counts_unknown() -> None:
    daos = counter_row("DAOS", read_bytes=GB, written_bytes=0)
    assert facts(POSIX, daos)["read_small_count"] is None
    assert facts(POSIX, daos | {"is_counted": False})["read_small_count"] == 8


def test_rank_facts_use_the_layer_nearest_to_the_program() -> None:
    # one aggregator writes for four processes
    told = [record(rank, module="MPIIO", written_bytes=100) for rank in range(4)]
    counters = [POSIX, counter_row("MPIIO", read_bytes=0, written_bytes=400, is_counted=False)]
    found = facts(*counters, records=rows(RECORDS, *told, record(0, written_bytes=400)))
    assert (found["upper_module"], found["write_rank_count"], found["write_imbalance_ratio"]) == ("MPIIO", 4, 0)
    alone = facts(POSIX, records=rows(RECORDS, record(2, written_bytes=400)))
    assert (alone["write_top_rank"], alone["write_top_bytes"], alone["write_imbalance_ratio"]) == (2, 400, 1)


def test_heat_map_gives_rank_facts_if_records_are_shared() -> None:
    records = rows(RECORDS, record(-1, written_bytes=400))
    assert facts(POSIX, records=records)["write_top_bytes"] is None
    bins = {"module": "POSIX", "direction": "write", "interval_s": 1.0, "step_count": 2}
    maps = rows(HEATMAPS, *({**bins, "rank": rank, "bin_bytes": [rank, 10]} for rank in (0, 3)))
    found = facts(POSIX, records=records, heatmaps=maps)
    assert (found["write_top_bytes"], found["write_rank_count"], found["write_top_rank"]) == (13, 2, 3)
    # DeRose: (13 - 23/4) / 13 · 4/3
    assert found["write_imbalance_ratio"] == pytest.approx((13 - 23 / 4) / 13 * 4 / 3)


def test_slowest_and_mean_process_are_computed_from_records() -> None:
    together = rows(RECORDS, record(-1, write_time_s=40.0, slowest_time_s=25.0, fastest_time_s=5.0))
    found = facts(POSIX, records=together)
    assert (found["slowest_s"], found["mean_s"]) == (25, 10)
    assert found["straggling_ratio"] == pytest.approx((25 - 10) / 25 * 4 / 3)
    apart = rows(RECORDS, *(record(rank, file, read_time_s=5.0 + rank) for rank in range(4) for file in range(2)))
    found = facts(POSIX, records=apart)
    assert (found["slowest_s"], found["mean_s"]) == (16, 13)


def test_busiest_process_includes_shared_files() -> None:
    told = [record(0, 1, read_time_s=30.0), record(1, 2, read_time_s=10.0), record(-1, 3, read_time_s=40.0)]
    assert facts(POSIX, records=rows(RECORDS, *told))["read_time_ratio"] == pytest.approx(0.4)


def test_bytes_beyond_the_extent_count_as_repeated() -> None:
    told = [
        record(0, 1, read_bytes=100, read_extent_bytes=60), record(1, 1, read_bytes=50, read_extent_bytes=90),
        record(0, 2, read_bytes=10, read_extent_bytes=1000), record(0, 3, written_bytes=5, written_extent_bytes=5),
    ]  # fmt: skip
    found = facts(POSIX, records=rows(RECORDS, *told))
    assert (found["read_again_bytes"], found["write_again_bytes"]) == (60, 0)
    unknown = facts(POSIX, records=rows(RECORDS, record(0, read_bytes=100)))
    assert unknown["read_again_bytes"] is None


def test_shared_files_without_mpiio_are_counted() -> None:
    told = [
        record(-1, 1, written_bytes=70), record(0, 2, read_bytes=5), record(1, 2, read_bytes=6),
        record(0, 3, read_bytes=100), record(-1, 4, written_bytes=40), record(-1, 4, "MPIIO", written_bytes=40),
    ]  # fmt: skip
    found = facts(POSIX, records=rows(RECORDS, *told))
    assert (found["bare_shared_bytes"], found["bare_shared_count"]) == (81, 2)


def test_shared_file_with_most_missing_targets_is_chosen() -> None:
    told = [
        record(-1, 1, written_bytes=20 * GB, written_extent_bytes=20 * GB),
        record(0, 2, written_bytes=30 * GB, written_extent_bytes=30 * GB),
        record(0, 3, written_bytes=10, written_extent_bytes=10),
    ]
    files = [{"file_number": 1, "osts": [1, 2]}, {"file_number": 2, "osts": [1]}, {"file_number": 3, "osts": [1, 2]}]
    known = rows(FILES, *({"stripe_bytes": 1 << 20} | file for file in files))
    found = facts(POSIX, records=rows(RECORDS, *told), files=known)
    assert (found["striped_bytes"], found["target_count"], found["wanted_count"]) == (20 * GB, 2, 24)
    assert (found["striped_file_count"], found["wide_file_count"]) == (3, 1)
    bare = rows(FILES, {"file_number": 1})
    assert facts(POSIX, records=rows(RECORDS, *told), files=bare)["striped_file_count"] == 0


def request(place: int, offset: int, length: float) -> dict[str, Any]:
    return {
        "module": "POSIX", "rank": 0, "host": "h", "file_number": 0, "direction": "read", "offset_bytes": offset,
        "request_bytes": length, "start_s": float(place), "end_s": place + 0.5,
    }  # fmt: skip


def test_complete_requests_take_precedence_over_counters() -> None:
    # of 1 MiB exactly, which the histogram counts as small
    told = [request(place, 0, float(1 << 20)) for place in range(10)]
    found = facts(POSIX, requests=rows(REQUESTS, *told))
    assert (found["read_small_count"], found["read_again_bytes"]) == (0, 9 * (1 << 20))
    # A request is missing.
    found = facts(POSIX, requests=rows(REQUESTS, *told[1:]))
    assert (found["read_small_count"], found["read_again_bytes"]) == (8, None)


def test_incomplete_modules_are_counted() -> None:
    partial = counter_row("DXT_POSIX") | {"is_partial": True}
    unread = counter_row("PNETCDF_FILE") | {"outcome": "unsupported"}
    found = facts(POSIX, partial, unread)
    assert (found["module_count"], found["doubtful_module_count"]) == (3, 2)


def test_time_in_mpiio_outside_of_posix_is_waiting() -> None:
    above = counter_row(
        "MPIIO", {"MPIIO_COLL_READS": 4, "MPIIO_SPLIT_READS": 1, "MPIIO_NB_READS": 0}, is_counted=False,
        read_bytes=10, written_bytes=0, read_time_s=48.0, write_time_s=0.0, metadata_time_s=0.0,
    )  # fmt: skip
    found = facts(POSIX, above)
    assert (found["read_waiting_ratio"], found["read_collective_count"]) == (pytest.approx(0.1), 5)
    assert facts(POSIX, above, process_count=1)["read_waiting_ratio"] == 0

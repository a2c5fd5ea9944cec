"""In which files a finding lies: those with most of what its rule counts.

What neither a file's record nor its single requests tell has no files: blocks that requests miss, buffers in memory,
which rank of a shared file moved how much.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from iosig.transforms.findings import request_facts
from iosig.transforms.findings.facts import BYTES, DIRECTIONS, EXTENTS, TIMES, TraceFrames
from iosig.transforms.findings.thresholds import Thresholds

#: files of a finding, those with most
MOST_FILES = 3
_FILE = ("trace_id", "file_number")
_RULE = ("trace_id", "rule", "direction")
_SCHEMA = {
    "trace_id": pl.String, "rule": pl.String, "direction": pl.String, "file_number": pl.Int64, "value": pl.Float64,
    "unit": pl.String,
}  # fmt: skip


def files_of(frames: TraceFrames, thresholds: Thresholds) -> pl.DataFrame:
    """Return the files with most of what each rule counts, by trace, rule and direction, the most first.

    Columns: trace_id, rule, direction (NULL where the rule is about the run), file_number, value, unit. At most
    `MOST_FILES` each; whether the rule holds is not asked.
    """
    if frames.records is None or frames.records.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    summed = _summed(frames.records)
    told = pl.concat([_as_one(rows) for rows in _of_records(summed, frames.jobs, thresholds)])
    # what single requests tell of a run stands for what its records do
    exact = pl.concat([told.clear(), *(_as_one(rows) for rows in _of_requests(frames, summed, thresholds))])
    beside = told.join(exact.select(_RULE).unique(), on=_RULE, how="anti", nulls_equal=True)
    return (
        pl.concat([exact, beside])
        .filter(pl.col("value") > 0)
        .sort(*_RULE, "value", "file_number", descending=[False, False, False, True, False])
        .group_by(_RULE, maintain_order=True)
        .head(MOST_FILES)
        .select(*_SCHEMA)
    )


def _as_one(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items())


def _measured(rows: pl.DataFrame, rule: str, value: pl.Expr, unit: str, way: str | None = None) -> pl.DataFrame:
    return rows.select(*_FILE, rule=pl.lit(rule), direction=pl.lit(way, pl.String), value=value, unit=pl.lit(unit))


# ---- of records


def _summed(records: pl.DataFrame) -> pl.DataFrame:
    """Return what the ranks of a file come to, by module."""
    counts = ("open_count", "read_count", "write_count", "stat_count")
    return records.group_by("module", *_FILE, maintain_order=True).agg(
        pl.col(*counts, *BYTES.values(), *TIMES).sum(),
        pl.col(*EXTENTS.values(), "slowest_time_s").max(),
        is_shared=(pl.col("rank") < 0).any() | (pl.col("rank").n_unique() > 1),
    )


def _of_records(summed: pl.DataFrame, jobs: pl.DataFrame, thresholds: Thresholds) -> Iterator[pl.DataFrame]:
    posix, mpiio = (summed.filter(module=name) for name in ("POSIX", "MPIIO"))
    for way in DIRECTIONS:
        moved, count, spent_s = pl.col(BYTES[way]), pl.col(f"{way}_count"), pl.col(f"{way}_time_s")
        # of a file whose requests are small on the mean, all are taken for small
        small = posix.filter(moved < thresholds.small_bytes * count)
        yield _measured(small, "small_requests", count, "requests", way)
        again = "redundant_reads" if way == "read" else "redundant_writes"
        yield _measured(posix, again, moved - pl.col(EXTENTS[way]), "B", way)
        for rule in ("collective_not_used", "blocking_io"):
            yield _measured(mpiio, rule, count, "requests", way)
        yield _measured(mpiio, "waiting_in_collectives", spent_s, "s", way)
        below = posix.join(mpiio, on=_FILE, suffix="_above")
        yield _measured(below, "amplified_by_mpiio", moved - pl.col(f"{BYTES[way]}_above"), "B", way)
    all_bytes = pl.sum_horizontal(*BYTES.values())
    yield _measured(summed.filter(module="STDIO"), "stdio_used", all_bytes, "B")
    yield _measured(posix, "metadata_time", pl.col("metadata_time_s"), "s")
    yield _measured(posix, "metadata_storm", pl.col("open_count") + pl.col("stat_count"), "operations")
    others = summed.filter(pl.col("module").is_in(["MPIIO", "DFS", "DAOS"]))
    bare = posix.filter("is_shared").join(others, on=_FILE, how="anti")
    yield _measured(bare, "shared_file_without_mpiio", all_bytes, "B")
    waited = posix.join(jobs.select("trace_id", "process_count"), on="trace_id").filter(pl.col("process_count") > 0)
    mean_s = pl.sum_horizontal(TIMES) / pl.col("process_count")
    yield _measured(waited, "stragglers", pl.col("slowest_time_s") - mean_s, "s")


# ---- of requests


def _of_requests(frames: TraceFrames, summed: pl.DataFrame, thresholds: Thresholds) -> Iterator[pl.DataFrame]:
    """Yield what single requests tell, of runs of which all of a direction are there."""
    if frames.requests is None or frames.requests.is_empty():
        return
    requests = frames.requests.filter(pl.col("module") == "POSIX", pl.col("file_number").is_not_null())
    of_files = ("module", "direction", *_FILE)
    told = request_facts.sizes_and_order(requests, thresholds.small_bytes, of_files).join(
        request_facts.distinct_bytes(requests, of_files), on=of_files
    )
    for way in DIRECTIONS:
        counted = summed.filter(module="POSIX").group_by("trace_id").agg(counted=pl.col(f"{way}_count").sum())
        seen = told.filter(direction=way).join(counted, on="trace_id")
        whole = seen.filter(pl.col("request_count").sum().over("trace_id") >= pl.col("counted"))
        yield _measured(whole, "small_requests", pl.col("small_count"), "requests", way)
        random = pl.col("request_count") - pl.col("sequential_count")
        yield _measured(whole, "random_access", random, "requests", way)
        again = "redundant_reads" if way == "read" else "redundant_writes"
        yield _measured(whole, again, pl.col("moved_bytes") - pl.col("distinct_bytes"), "B", way)
    if frames.files is not None:
        crossed = request_facts.on_stripes(requests, frames.files, _FILE)
        yield _measured(crossed, "stripes_crossed", pl.col("crossing_count"), "requests")

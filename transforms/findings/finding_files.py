"""Find the files that a finding concerns: those with the highest values of the rule's measure.

If a rule's measure is unknown by file, its findings have no files: misaligned requests, buffers in memory, and bytes by
rank of shared files.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from iosig.transforms.findings import request_facts
from iosig.transforms.findings.facts import BYTES, DIRECTIONS, EXTENTS, TIMES, TraceFrames
from iosig.transforms.findings.thresholds import Thresholds

#: maximum number of files per finding
MAX_FILES = 3
_FILE = ("trace_id", "file_number")
_RULE = ("trace_id", "rule", "direction")
_SCHEMA = {
    "trace_id": pl.String, "rule": pl.String, "direction": pl.String, "file_number": pl.Int64, "value": pl.Float64,
    "unit": pl.String,
}  # fmt: skip


def find_files(frames: TraceFrames, thresholds: Thresholds) -> pl.DataFrame:
    """Find the files with the highest values of each rule's measure.

    Parameters
    ----------
    frames
        Frames of traced runs.
    thresholds
        Thresholds of the rules.

    Returns
    -------
    pl.DataFrame
        trace_id, rule, direction (NULL if the rule concerns the whole run), file_number, value, unit; sorted by trace,
        rule and direction. For each, up to `MAX_FILES` files, the highest value first. The result includes rules that
        did not yield a finding.
    """
    if frames.records is None or frames.records.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    totals = _sum_records(frames.records)
    approximate = pl.concat([_cast_to_schema(rows) for rows in _values_from_records(totals, frames.jobs, thresholds)])
    # values from individual requests take precedence over those from records
    exact = pl.concat(
        [approximate.clear(), *(_cast_to_schema(rows) for rows in _values_from_requests(frames, totals, thresholds))]
    )
    remaining = approximate.join(exact.select(_RULE).unique(), on=_RULE, how="anti", nulls_equal=True)
    return (
        pl.concat([exact, remaining])
        .filter(pl.col("value") > 0)
        .sort(*_RULE, "value", "file_number", descending=[False, False, False, True, False])
        .group_by(_RULE, maintain_order=True)
        .head(MAX_FILES)
        .select(*_SCHEMA)
    )


def _cast_to_schema(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items())


def _make_values(
    rows: pl.DataFrame, rule: str, value: pl.Expr, unit: str, direction: str | None = None
) -> pl.DataFrame:
    return rows.select(
        *_FILE, rule=pl.lit(rule), direction=pl.lit(direction, pl.String), value=value, unit=pl.lit(unit)
    )


# ---- values from records


def _sum_records(records: pl.DataFrame) -> pl.DataFrame:
    """Combine the records of all ranks by module and file: sums, and maxima of extents and slowest times."""
    counts = ("open_count", "read_count", "write_count", "stat_count")
    return records.group_by("module", *_FILE, maintain_order=True).agg(
        pl.col(*counts, *BYTES.values(), *TIMES).sum(),
        pl.col(*EXTENTS.values(), "slowest_time_s").max(),
        is_shared=(pl.col("rank") < 0).any() | (pl.col("rank").n_unique() > 1),
    )


def _values_from_records(totals: pl.DataFrame, jobs: pl.DataFrame, thresholds: Thresholds) -> Iterator[pl.DataFrame]:
    posix, mpiio = (totals.filter(module=name) for name in ("POSIX", "MPIIO"))
    for direction in DIRECTIONS:
        moved_bytes, count, spent_s = (
            pl.col(BYTES[direction]),
            pl.col(f"{direction}_count"),
            pl.col(f"{direction}_time_s"),
        )
        # if the mean request to a file is small, all requests to the file count as small
        small = posix.filter(moved_bytes < thresholds.small_bytes * count)
        yield _make_values(small, "small_requests", count, "requests", direction)
        rule_name = "redundant_reads" if direction == "read" else "redundant_writes"
        yield _make_values(posix, rule_name, moved_bytes - pl.col(EXTENTS[direction]), "B", direction)
        for rule in ("collective_not_used", "blocking_io"):
            yield _make_values(mpiio, rule, count, "requests", direction)
        yield _make_values(mpiio, "waiting_in_collectives", spent_s, "s", direction)
        below = posix.join(mpiio, on=_FILE, suffix="_above")
        yield _make_values(
            below, "amplified_by_mpiio", moved_bytes - pl.col(f"{BYTES[direction]}_above"), "B", direction
        )
    all_bytes = pl.sum_horizontal(*BYTES.values())
    yield _make_values(totals.filter(module="STDIO"), "stdio_used", all_bytes, "B")
    yield _make_values(posix, "metadata_time", pl.col("metadata_time_s"), "s")
    yield _make_values(posix, "metadata_storm", pl.col("open_count") + pl.col("stat_count"), "operations")
    upper_totals = totals.filter(pl.col("module").is_in(["MPIIO", "DFS", "DAOS"]))
    bare_shared = posix.filter("is_shared").join(upper_totals, on=_FILE, how="anti")
    yield _make_values(bare_shared, "shared_file_without_mpiio", all_bytes, "B")
    waited = posix.join(jobs.select("trace_id", "process_count"), on="trace_id").filter(pl.col("process_count") > 0)
    mean_s = pl.sum_horizontal(TIMES) / pl.col("process_count")
    yield _make_values(waited, "stragglers", pl.col("slowest_time_s") - mean_s, "s")


# ---- values from requests


def _values_from_requests(frames: TraceFrames, totals: pl.DataFrame, thresholds: Thresholds) -> Iterator[pl.DataFrame]:
    """Yield values of findings from individual requests, for runs whose trace has every request of a direction."""
    if frames.requests is None or frames.requests.is_empty():
        return
    requests = frames.requests.filter(pl.col("module") == "POSIX", pl.col("file_number").is_not_null())
    file_key = ("module", "direction", *_FILE)
    files = request_facts.sizes_and_order(requests, thresholds.small_bytes, file_key).join(
        request_facts.distinct_bytes(requests, file_key), on=file_key
    )
    for direction in DIRECTIONS:
        counts = totals.filter(module="POSIX").group_by("trace_id").agg(total_count=pl.col(f"{direction}_count").sum())
        traced = files.filter(direction=direction).join(counts, on="trace_id")
        complete = traced.filter(pl.col("request_count").sum().over("trace_id") >= pl.col("total_count"))
        yield _make_values(complete, "small_requests", pl.col("small_count"), "requests", direction)
        random = pl.col("request_count") - pl.col("sequential_count")
        yield _make_values(complete, "random_access", random, "requests", direction)
        rule_name = "redundant_reads" if direction == "read" else "redundant_writes"
        yield _make_values(complete, rule_name, pl.col("moved_bytes") - pl.col("distinct_bytes"), "B", direction)
    if frames.files is not None:
        crossings = request_facts.count_crossings(requests, frames.files, _FILE)
        yield _make_values(crossings, "stripes_crossed", pl.col("crossing_count"), "requests")

"""Compute the facts that rules test, one row per traced run.

An unknown fact is NULL, never 0. Facts with the prefix `read_` or `write_` concern that direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import polars as pl

from iosig.transforms.findings import request_facts
from iosig.transforms.findings.thresholds import Thresholds

DIRECTIONS = ("read", "write")
_TRACE = "trace_id"
#: layers in which ranks are compared, starting with the layer nearest to the program
_UPPER = ("MPIIO", "DFS", "DAOS", "POSIX", "STDIO")
_SMALL_BINS = ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M")
BYTES = {"read": "read_bytes", "write": "written_bytes"}
EXTENTS = {"read": "read_extent_bytes", "write": "written_extent_bytes"}
TIMES = ("read_time_s", "write_time_s", "metadata_time_s")


@dataclass(frozen=True, slots=True)
class TraceFrames:
    """Landed frames of traced runs.

    Attributes
    ----------
    jobs, counters, heatmaps
        Rows of `trace_jobs`, `trace_counters`, `trace_heatmaps`.
    records, files, requests
        Rows of `trace_records`, `trace_files`, `trace_requests`, without nested requests. None if not read; the facts
        that need these rows are then unknown.
    """

    jobs: pl.DataFrame
    counters: pl.DataFrame
    heatmaps: pl.DataFrame | None = None
    records: pl.DataFrame | None = None
    files: pl.DataFrame | None = None
    requests: pl.DataFrame | None = None


def compute_facts(frames: TraceFrames, thresholds: Thresholds) -> pl.DataFrame:
    """Compute the facts of traced runs.

    Parameters
    ----------
    frames
        Frames of n runs.
    thresholds
        Thresholds of the rules.

    Returns
    -------
    pl.DataFrame
        One row per run, in the order of `jobs`.
    """
    counters = frames.counters.with_columns(_decode_counters())
    parts = [
        _layer_facts(counters),
        _posix_facts(counters),
        _mpiio_facts(counters),
        _rank_facts(frames, counters),
        *_record_facts(frames, counters, thresholds),
        *_request_facts(frames, counters, thresholds),
    ]
    runs = frames.jobs.select(_TRACE, "process_count", "duration_s", "tracer")
    joined = reduce(lambda left, right: left.join(right, on=_TRACE, how="left", maintain_order="left"), parts, runs)
    return _derive_facts(_add_missing_columns(joined))


# ---- facts from counters


def _counter_names() -> list[str]:
    bins = [f"POSIX_SIZE_{direction}_{size}" for direction in ("READ", "WRITE") for size in _SMALL_BINS]
    order = [f"POSIX_{kind}_{direction}S" for kind in ("SEQ", "CONSEC") for direction in ("READ", "WRITE")]
    mpiio = [
        f"MPIIO_{kind}_{direction}S" for kind in ("INDEP", "COLL", "SPLIT", "NB") for direction in ("READ", "WRITE")
    ]
    return [*bins, *order, *mpiio, "POSIX_MEM_NOT_ALIGNED", "POSIX_FILE_NOT_ALIGNED"]


def _decode_counters() -> pl.Expr:
    fields = pl.Struct({name: pl.Float64() for name in _counter_names()})
    return pl.col("counters").str.json_decode(fields).alias("decoded")


def _counter(name: str) -> pl.Expr:
    return pl.col("decoded").struct.field(name)


def _layer_facts(counters: pl.DataFrame) -> pl.DataFrame:
    """Sum over all counted layers: bytes by direction, bytes through STDIO, times, calls, and incomplete modules."""
    is_counted = pl.col("is_counted")
    is_whole = (pl.col("outcome") == "sound") & ~pl.col("is_partial")
    calls = ("open_count", "stat_count", "read_count", "write_count")
    return counters.group_by(_TRACE).agg(
        *(pl.col(name).filter(is_counted).sum().alias(f"{direction}_bytes") for direction, name in BYTES.items()),
        *(pl.col(name).filter(is_counted).sum().alias(f"all_{name}") for name in calls),
        *(_sum_available(name, is_counted).alias(f"all_{name}") for name in TIMES),
        stdio_bytes=pl.sum_horizontal(pl.col(*BYTES.values())).filter(pl.col("module") == "STDIO").sum(),
        stdio_time_s=pl.sum_horizontal(pl.col(*TIMES)).filter(pl.col("module") == "STDIO").sum(),
        posix_moved_bytes=pl.sum_horizontal(pl.col(*BYTES.values())).filter(pl.col("module") == "POSIX").sum(),
        modules=pl.col("module").sort(),
        module_count=pl.len(),
        doubtful_module_count=(~is_whole).sum(),
    )


def _sum_available(name: str, condition: pl.Expr) -> pl.Expr:
    available = pl.col(name).filter(condition)
    return pl.when(available.is_not_null().any()).then(available.sum())


def _posix_facts(counters: pl.DataFrame) -> pl.DataFrame:
    small = {
        direction: pl.sum_horizontal(_counter(f"POSIX_SIZE_{direction.upper()}_{size}") for size in _SMALL_BINS)
        for direction in DIRECTIONS
    }
    # the sum over an empty histogram is 0; without a histogram, it must be NULL
    has_histogram = {
        direction: _counter(f"POSIX_SIZE_{direction.upper()}_0_100").is_not_null() for direction in DIRECTIONS
    }
    return counters.filter(module="POSIX").select(
        _TRACE,
        *(pl.col(f"{direction}_count").cast(pl.Float64) for direction in DIRECTIONS),
        *(
            pl.when(has_histogram[direction]).then(small[direction]).alias(f"{direction}_small_count")
            for direction in DIRECTIONS
        ),
        *(
            _counter(f"POSIX_SEQ_{direction.upper()}S").alias(f"{direction}_sequential_count")
            for direction in DIRECTIONS
        ),
        *(
            _counter(f"POSIX_CONSEC_{direction.upper()}S").alias(f"{direction}_consecutive_count")
            for direction in DIRECTIONS
        ),
        *(pl.col(f"{direction}_time_s").alias(f"posix_{direction}_time_s") for direction in DIRECTIONS),
        *(pl.col(name).cast(pl.Float64).alias(f"posix_{direction}_bytes") for direction, name in BYTES.items()),
        file_misaligned_count=_counter("POSIX_FILE_NOT_ALIGNED"),
        memory_misaligned_count=_counter("POSIX_MEM_NOT_ALIGNED"),
    )


def _mpiio_facts(counters: pl.DataFrame) -> pl.DataFrame:
    def counter(kind: str, direction: str) -> pl.Expr:
        return _counter(f"MPIIO_{kind}_{direction.upper()}S")

    return counters.filter(module="MPIIO").select(
        _TRACE,
        *(counter("INDEP", direction).alias(f"{direction}_independent_count") for direction in DIRECTIONS),
        *(
            (counter("COLL", direction) + counter("SPLIT", direction)).alias(f"{direction}_collective_count")
            for direction in DIRECTIONS
        ),
        *(counter("NB", direction).alias(f"{direction}_nonblocking_count") for direction in DIRECTIONS),
        *(pl.col(f"{direction}_time_s").alias(f"mpiio_{direction}_time_s") for direction in DIRECTIONS),
        *(pl.col(name).cast(pl.Float64).alias(f"mpiio_{direction}_bytes") for direction, name in BYTES.items()),
    )


# ---- facts of ranks


def upper_layers(counters: pl.DataFrame) -> pl.DataFrame:
    """Find, for each run, the layer nearest to the program that moved bytes.

    In lower layers, a few processes may perform the I/O of all processes.
    """
    has_bytes = pl.sum_horizontal(pl.col(*BYTES.values()).fill_null(0)) > 0
    order = pl.DataFrame({"module": _UPPER, "place": range(len(_UPPER))})
    # STDIO is last: its output is rarely the purpose of the program
    return (
        counters.filter(has_bytes, ~pl.col("module").str.starts_with("DXT_"))
        .join(order, on="module")
        .sort(_TRACE, "place")
        .unique(_TRACE, keep="first", maintain_order=True)
        .select(_TRACE, "module")
    )


def _rank_facts(frames: TraceFrames, counters: pl.DataFrame) -> pl.DataFrame:
    """Compute totals, maxima and counts of ranks that moved bytes, by direction.

    The source is the records of a trace, or its heat maps if it has no records.
    """
    upper = upper_layers(counters)
    rank_bytes: pl.DataFrame | None = None
    for source in (_rank_bytes_from_records(frames, upper), _rank_bytes_from_heatmaps(frames, upper)):
        if source is not None:
            rank_bytes = (
                source
                if rank_bytes is None
                else pl.concat([rank_bytes, source.join(rank_bytes, on=_TRACE, how="anti")])
            )
    schema = {_TRACE: pl.String, "direction": pl.String, "rank": pl.Int64, "bytes": pl.Float64}
    ranks = pl.DataFrame(schema=schema) if rank_bytes is None else rank_bytes
    parts = [
        ranks.filter(pl.col("direction") == direction, pl.col("bytes") > 0)
        .group_by(_TRACE)
        .agg(
            pl.col("bytes").max().alias(f"{direction}_top_bytes"),
            pl.col("bytes").sum().alias(f"{direction}_rank_bytes"),
            pl.len().alias(f"{direction}_rank_count"),
            pl.col("rank").sort_by("bytes", "rank", descending=[True, False]).first().alias(f"{direction}_top_rank"),
        )
        for direction in DIRECTIONS
    ]
    return (
        upper.rename({"module": "upper_module"})
        .join(parts[0], on=_TRACE, how="left")
        .join(parts[1], on=_TRACE, how="left")
    )


def _rank_bytes_from_records(frames: TraceFrames, upper: pl.DataFrame) -> pl.DataFrame | None:
    if frames.records is None:
        return None
    records = frames.records.join(upper, on=[_TRACE, "module"], how="semi")
    # records of all ranks together (rank -1) make the bytes of single ranks unknown
    single = records.filter((pl.col("rank") >= 0).all().over(_TRACE))
    return _sum_by_rank(
        [
            single.select(_TRACE, "rank", bytes=pl.col(name), direction=pl.lit(direction))
            for direction, name in BYTES.items()
        ]
    )


def _rank_bytes_from_heatmaps(frames: TraceFrames, upper: pl.DataFrame) -> pl.DataFrame | None:
    if frames.heatmaps is None:
        return None
    heatmaps = frames.heatmaps.join(upper, on=[_TRACE, "module"], how="semi").filter(pl.col("rank") >= 0)
    return _sum_by_rank([heatmaps.select(_TRACE, "rank", "direction", bytes=pl.col("bin_bytes").list.sum())])


def _sum_by_rank(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    rows = pl.concat([part.select(_TRACE, "direction", "rank", pl.col("bytes").cast(pl.Float64)) for part in parts])
    return rows.group_by(_TRACE, "direction", "rank").agg(pl.col("bytes").sum())


# ---- facts from records and files


def _record_facts(frames: TraceFrames, counters: pl.DataFrame, thresholds: Thresholds) -> list[pl.DataFrame]:
    if frames.records is None:
        return []
    records = frames.records
    parts = [
        _straggler_facts(records, frames.jobs, counters),
        _repeat_facts(records),
        _sharing_facts(records),
        _busiest_times(records, frames.jobs, counters.filter("is_counted").select(_TRACE, "module"), "busiest"),
        _busiest_times(records.filter(module="MPIIO"), frames.jobs, counters.select(_TRACE, "module"), "mpiio_busiest"),
    ]
    if frames.files is not None:
        parts.append(_striping_facts(records, frames.files, thresholds))
    return parts


def _straggler_facts(records: pl.DataFrame, jobs: pl.DataFrame, counters: pl.DataFrame) -> pl.DataFrame:
    """Find the I/O times of the slowest and of the mean process, where they differ the most.

    A record of all ranks together contains the time of the slowest rank. If a run has only records of single ranks, the
    times of each rank are summed over all files.
    """
    upper, total_s = upper_layers(counters), pl.sum_horizontal(TIMES)
    upper_records = records.join(upper, on=[_TRACE, "module"], how="semi").with_columns(spent_s=total_s)
    process_counts = jobs.select(_TRACE, "process_count")
    shared = upper_records.filter(pl.col("rank") < 0, pl.col("slowest_time_s").is_not_null()).select(
        _TRACE, total_s="spent_s", slowest_s="slowest_time_s"
    )
    # only runs in which every record belongs to a single rank
    is_single = (pl.col("rank") >= 0).all().over(_TRACE)
    by_rank = upper_records.filter(is_single).group_by(_TRACE, "rank").agg(pl.col("spent_s").sum()).group_by(_TRACE)
    single = by_rank.agg(total_s=pl.col("spent_s").sum(), slowest_s=pl.col("spent_s").max())
    return (
        pl.concat([shared, single])
        .join(process_counts, on=_TRACE)
        .filter(pl.col("process_count") > 0)
        .with_columns(mean_s=pl.col("total_s") / pl.col("process_count"))
        .sort(pl.col("slowest_s") - pl.col("mean_s"), descending=True)
        .group_by(_TRACE)
        .agg(slowest_s=pl.col("slowest_s").first(), mean_s=pl.col("mean_s").first())
    )


def _busiest_times(records: pl.DataFrame, jobs: pl.DataFrame, layers: pl.DataFrame, name: str) -> pl.DataFrame:
    """Compute the read, write and metadata times of the busiest process in the given layers.

    A record of all ranks together adds its mean time to each process.
    """
    process_counts = jobs.select(_TRACE, "process_count")
    selected = records.join(layers, on=[_TRACE, "module"], how="semi").join(process_counts, on=_TRACE)
    divisor = pl.when(pl.col("rank") < 0).then(pl.col("process_count")).otherwise(1)
    ranks = selected.with_columns(pl.col(*TIMES) / divisor).group_by(_TRACE, "rank").agg(pl.col(*TIMES).sum())
    is_single = pl.col("rank") >= 0
    return ranks.group_by(_TRACE).agg(
        (pl.col(time).filter(is_single).max().fill_null(0) + pl.col(time).filter(~is_single).sum()).alias(
            f"{name}_{time}"
        )
        for time in TIMES
    )


def _repeat_facts(records: pl.DataFrame) -> pl.DataFrame:
    """Sum the bytes read or written in excess of each file's extent: a lower bound of repeated bytes."""
    files = (
        records.filter(module="POSIX")
        .group_by(_TRACE, "file_number")
        .agg(
            *(pl.col(name).sum() for name in BYTES.values()),
            *(pl.col(name).max() for name in EXTENTS.values()),
        )
    )
    excess = {direction: (pl.col(BYTES[direction]) - pl.col(EXTENTS[direction])).clip(0) for direction in DIRECTIONS}
    is_known = {
        direction: pl.col(EXTENTS[direction]).is_not_null() | (pl.col(BYTES[direction]) == 0)
        for direction in DIRECTIONS
    }
    return files.group_by(_TRACE).agg(
        pl.when(is_known[direction].all())
        .then(excess[direction].sum())
        .cast(pl.Float64)
        .alias(f"{direction}_again_bytes")
        for direction in DIRECTIONS
    )


def _sharing_facts(records: pl.DataFrame) -> pl.DataFrame:
    """Sum the bytes of files that several processes accessed through POSIX only, and count these files."""
    files = records.group_by(_TRACE, "file_number").agg(
        is_shared=((pl.col("rank") < 0) & (pl.col("module") == "POSIX")).any()
        | (pl.col("rank").filter(pl.col("module") == "POSIX").n_unique() > 1),
        has_other=pl.col("module").is_in(["MPIIO", "DFS", "DAOS"]).any(),
        bytes=pl.sum_horizontal(pl.col(*BYTES.values())).filter(pl.col("module") == "POSIX").sum(),
    )
    is_bare = pl.col("is_shared") & ~pl.col("has_other") & (pl.col("bytes") > 0)
    return files.group_by(_TRACE).agg(
        bare_shared_bytes=pl.col("bytes").filter(is_bare).sum().cast(pl.Float64), bare_shared_count=is_bare.sum()
    )


def _striping_facts(records: pl.DataFrame, files: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    """Find the striped file that lacks the most targets: its bytes, targets and recommended targets.

    Also count the striped files, and the files with several targets that fit into one stripe.
    """
    striped = files.filter(pl.col("stripe_bytes") > 0, pl.col("osts").list.len() > 0)
    of_files = (
        records.filter(module="POSIX")
        .group_by(_TRACE, "file_number")
        .agg(
            is_shared=(pl.col("rank") < 0).any() | (pl.col("rank").n_unique() > 1),
            bytes=pl.sum_horizontal(pl.col(*BYTES.values())).sum(),
            extent_bytes=pl.max_horizontal(*EXTENTS.values()).max(),
        )
    )
    recommended = pl.lit(1)
    for min_bytes, count in thresholds.min_target_counts:
        recommended = pl.when(pl.col("bytes") >= min_bytes).then(count).otherwise(recommended)
    placed = (
        striped.join(of_files, on=[_TRACE, "file_number"])
        .with_columns(targets=pl.col("osts").list.len().cast(pl.Int64), wanted=recommended)
        .with_columns(lacking=pl.when("is_shared").then((pl.col("wanted") - pl.col("targets")).clip(0)).otherwise(0))
    )
    if placed.is_empty():
        # files are known, but no file is striped
        return files.select(_TRACE).unique().with_columns(striped_file_count=pl.lit(0.0))
    worst = pl.struct("bytes", "targets", "wanted").sort_by("lacking", "bytes", descending=True).first()
    is_wide = (pl.col("targets") > 1) & (pl.col("extent_bytes") <= pl.col("stripe_bytes"))
    return placed.group_by(_TRACE).agg(
        striped_bytes=worst.struct.field("bytes"),
        target_count=worst.struct.field("targets"),
        wanted_count=pl.when(pl.col("lacking").max() > 0).then(worst.struct.field("wanted")).otherwise(0),
        striped_file_count=pl.len(),
        wide_file_count=is_wide.sum(),
    )


# ---- facts from requests


def _request_facts(frames: TraceFrames, counters: pl.DataFrame, thresholds: Thresholds) -> list[pl.DataFrame]:
    """Compute facts from individual requests, for runs with all POSIX requests in the trace."""
    if frames.requests is None or frames.requests.is_empty():
        return []
    movers = request_facts.count_movers(frames.requests)
    posix = frames.requests.filter(pl.col("module") == "POSIX")
    sizes = request_facts.sizes_and_order(posix, thresholds.small_bytes)
    facts = sizes.join(request_facts.distinct_bytes(posix), on=[_TRACE, "module", "direction"])
    counts = counters.filter(module="POSIX").select(_TRACE, *(f"{direction}_count" for direction in DIRECTIONS))
    parts = []
    for direction in DIRECTIONS:
        rows = facts.filter(direction=direction).join(counts, on=_TRACE, how="left")
        complete = rows.filter(pl.col("request_count") >= pl.col(f"{direction}_count").fill_null(0))
        parts.append(
            complete.select(
                _TRACE,
                pl.col("request_count").cast(pl.Float64).alias(f"{direction}_seen_count"),
                *(
                    pl.col(f"{name}_count").cast(pl.Float64).alias(f"{direction}_seen_{name}_count")
                    for name in ("small", "sequential", "consecutive")
                ),
                (pl.col("moved_bytes") - pl.col("distinct_bytes")).clip(0).alias(f"{direction}_seen_again_bytes"),
            )
        )
    parts.append(movers.filter(module="POSIX").drop("module"))
    if frames.files is not None:
        parts.append(request_facts.count_crossings(posix, frames.files))
    return parts


def _add_missing_columns(joined: pl.DataFrame) -> pl.DataFrame:
    """Add a NULL column for each fact that no frame provides."""
    return joined.with_columns(
        pl.lit(None, dtype).alias(name) for name, dtype in _OPTIONAL_FACTS.items() if name not in joined.columns
    )


_OPTIONAL_NAMES = (
    "slowest_s", "mean_s", "bare_shared_bytes", "bare_shared_count", "striped_bytes", "target_count", "wanted_count",
    "striped_file_count", "wide_file_count", "striped_count", "crossing_count", "mover_count", "host_count",
    *(f"{name}_{time}" for name in ("busiest", "mpiio_busiest") for time in TIMES),
    *(
        f"{direction}_{name}" for direction in DIRECTIONS
        for name in ("again_bytes", "seen_count", "seen_small_count", "seen_sequential_count",
                     "seen_consecutive_count", "seen_again_bytes")
    ),
)  # fmt: skip
_OPTIONAL_FACTS = dict.fromkeys(_OPTIONAL_NAMES, pl.Float64)


def _derive_facts(facts: pl.DataFrame) -> pl.DataFrame:
    """Add derived facts: exact counts where known, fractions of the run's time, and imbalance ratios."""
    processes_s = pl.col("process_count") * pl.col("duration_s")
    # I/O that bypasses POSIX (DAOS, vendor libraries) makes the POSIX counts inconclusive
    is_posix = pl.col("posix_moved_bytes") + pl.col("stdio_bytes") >= pl.col("read_bytes") + pl.col("write_bytes")
    exact = [
        pl.when(pl.col(f"{direction}_seen_count").is_not_null())
        .then(pl.col(f"{direction}_seen_{name}"))
        .otherwise(pl.when(is_posix).then(f"{direction}_{name}"))
        .alias(f"{direction}_{name}")
        for direction in DIRECTIONS
        for name in ("small_count", "sequential_count", "consecutive_count", "again_bytes")
    ]
    counts = [
        pl.coalesce(f"{direction}_seen_count", pl.when(is_posix).then(f"{direction}_count")).alias(f"{direction}_count")
        for direction in DIRECTIONS
    ]
    mean_s = {name: pl.col(f"all_{name}") / pl.col("process_count") for name in TIMES}
    shares = [
        (pl.coalesce(f"busiest_{name}", mean_s[name]) / pl.col("duration_s"))
        .clip(0, 1)
        .alias(name.replace("_time_s", "_time_ratio"))
        for name in TIMES
    ]
    return facts.with_columns(
        *exact,
        *counts,
        *shares,
        *(
            pl.when(pl.col("process_count") > 1)
            .then(
                (pl.col(f"mpiio_{direction}_time_s") - pl.col(f"posix_{direction}_time_s").fill_null(0)) / processes_s
            )
            .otherwise(0.0)
            .clip(0, 1)
            .alias(f"{direction}_waiting_ratio")
            for direction in DIRECTIONS
        ),
        **{
            f"mpiio_{direction}_time_ratio": (
                pl.coalesce(
                    f"mpiio_busiest_{direction}_time_s", pl.col(f"mpiio_{direction}_time_s") / pl.col("process_count")
                )
                / pl.col("duration_s")
            ).clip(0, 1)
            for direction in DIRECTIONS
        },
        **{
            f"{direction}_imbalance_ratio": _imbalance_ratio(f"{direction}_top_bytes", f"{direction}_rank_bytes")
            for direction in DIRECTIONS
        },
        straggling_ratio=_imbalance_ratio("slowest_s", pl.col("mean_s") * pl.col("process_count")),
        straggling_time_ratio=((pl.col("slowest_s") - pl.col("mean_s")) / pl.col("duration_s")).clip(0, 1),
        slowest_time_ratio=(pl.col("slowest_s") / pl.col("duration_s")).clip(0, 1),
        stdio_time_ratio=(pl.col("stdio_time_s") / processes_s).clip(0, 1),
        io_time_ratio=pl.when(pl.any_horizontal(pl.col(f"all_{name}").is_not_null() for name in TIMES))
        .then(pl.sum_horizontal(f"all_{name}" for name in TIMES) / processes_s)
        .clip(0, 1),
        metadata_count=pl.col("all_open_count") + pl.col("all_stat_count"),
        data_count=pl.col("all_read_count") + pl.col("all_write_count"),
    )


def _imbalance_ratio(maximum: str, total: str | pl.Expr) -> pl.Expr:
    """Compute the imbalance of a load, from 0 (equal) to 1 (one process has all); NULL for a single process.

    It is (max - mean) / max · n / (n - 1): DeRose, Homer and Johnson, "Detecting Application Load Imbalance on High End
    Massively Parallel Systems", Euro-Par 2007, section 3 (DOI 10.1007/978-3-540-74466-5_17).
    """
    count = pl.col("process_count").cast(pl.Float64)
    top, total_bytes = pl.col(maximum), pl.col(total) if isinstance(total, str) else total
    return pl.when((count > 1) & (top > 0)).then(((top - total_bytes / count) / top * count / (count - 1)).clip(0, 1))

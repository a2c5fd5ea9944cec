"""Facts of traced runs, a row each: what rules are asked of.

A fact that the trace does not hold is NULL, never 0. Facts with `read_` or `write_` before them are of that direction.
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
#: layers, the nearest to the program first: where ranks are compared
_UPPER = ("MPIIO", "DFS", "DAOS", "POSIX", "STDIO")
_SMALL_BINS = ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M")
BYTES = {"read": "read_bytes", "write": "written_bytes"}
EXTENTS = {"read": "read_extent_bytes", "write": "written_extent_bytes"}
TIMES = ("read_time_s", "write_time_s", "metadata_time_s")


@dataclass(frozen=True, slots=True)
class TraceFrames:
    """What is known of traced runs.

    jobs, counters, heatmaps: rows of `trace_jobs`, `trace_counters`, `trace_heatmaps`; records, files, requests: of
    `trace_records`, `trace_files`, `trace_requests`, without those that were made within others. A table that was not
    read is None: what only it tells is not known then.
    """

    jobs: pl.DataFrame
    counters: pl.DataFrame
    heatmaps: pl.DataFrame | None = None
    records: pl.DataFrame | None = None
    files: pl.DataFrame | None = None
    requests: pl.DataFrame | None = None


def facts_of(frames: TraceFrames, thresholds: Thresholds) -> pl.DataFrame:
    """Return the facts of traced runs (n rows, in the order of `jobs`)."""
    counters = frames.counters.with_columns(_decoded())
    parts = [
        _layers(counters),
        _posix(counters),
        _mpiio(counters),
        _ranks(frames, counters),
        *_of_records(frames, counters, thresholds),
        *_of_requests(frames, counters, thresholds),
    ]
    runs = frames.jobs.select(_TRACE, "process_count", "duration_s", "tracer")
    joined = reduce(lambda left, right: left.join(right, on=_TRACE, how="left", maintain_order="left"), parts, runs)
    return _refined(_with_columns(joined))


# ---- of counters


def _names() -> list[str]:
    bins = [f"POSIX_SIZE_{way}_{size}" for way in ("READ", "WRITE") for size in _SMALL_BINS]
    order = [f"POSIX_{kind}_{way}S" for kind in ("SEQ", "CONSEC") for way in ("READ", "WRITE")]
    mpiio = [f"MPIIO_{kind}_{way}S" for kind in ("INDEP", "COLL", "SPLIT", "NB") for way in ("READ", "WRITE")]
    return [*bins, *order, *mpiio, "POSIX_MEM_NOT_ALIGNED", "POSIX_FILE_NOT_ALIGNED"]


def _decoded() -> pl.Expr:
    fields = pl.Struct({name: pl.Float64() for name in _names()})
    return pl.col("counters").str.json_decode(fields).alias("told")


def _told(name: str) -> pl.Expr:
    return pl.col("told").struct.field(name)


def _layers(counters: pl.DataFrame) -> pl.DataFrame:
    """Return what all layers come to whose bytes count: bytes by direction, STDIO's part, times, calls, doubts."""
    counted = pl.col("is_counted")
    is_whole = (pl.col("outcome") == "sound") & ~pl.col("is_partial")
    calls = ("open_count", "stat_count", "read_count", "write_count")
    return counters.group_by(_TRACE).agg(
        *(pl.col(name).filter(counted).sum().alias(f"{way}_bytes") for way, name in BYTES.items()),
        *(pl.col(name).filter(counted).sum().alias(f"all_{name}") for name in calls),
        *(_sum_of_known(name, counted).alias(f"all_{name}") for name in TIMES),
        stdio_bytes=pl.sum_horizontal(pl.col(*BYTES.values())).filter(pl.col("module") == "STDIO").sum(),
        stdio_time_s=pl.sum_horizontal(pl.col(*TIMES)).filter(pl.col("module") == "STDIO").sum(),
        posix_moved_bytes=pl.sum_horizontal(pl.col(*BYTES.values())).filter(pl.col("module") == "POSIX").sum(),
        modules=pl.col("module").sort(),
        module_count=pl.len(),
        doubtful_module_count=(~is_whole).sum(),
    )


def _sum_of_known(name: str, where: pl.Expr) -> pl.Expr:
    known = pl.col(name).filter(where)
    return pl.when(known.is_not_null().any()).then(known.sum())


def _posix(counters: pl.DataFrame) -> pl.DataFrame:
    small = {
        way: pl.sum_horizontal(_told(f"POSIX_SIZE_{way.upper()}_{size}") for size in _SMALL_BINS) for way in DIRECTIONS
    }
    # a sum over nothing is 0: where the histogram is not there, it is not known
    known = {way: _told(f"POSIX_SIZE_{way.upper()}_0_100").is_not_null() for way in DIRECTIONS}
    return counters.filter(module="POSIX").select(
        _TRACE,
        *(pl.col(f"{way}_count").cast(pl.Float64) for way in DIRECTIONS),
        *(pl.when(known[way]).then(small[way]).alias(f"{way}_small_count") for way in DIRECTIONS),
        *(_told(f"POSIX_SEQ_{way.upper()}S").alias(f"{way}_sequential_count") for way in DIRECTIONS),
        *(_told(f"POSIX_CONSEC_{way.upper()}S").alias(f"{way}_consecutive_count") for way in DIRECTIONS),
        *(pl.col(f"{way}_time_s").alias(f"posix_{way}_time_s") for way in DIRECTIONS),
        *(pl.col(name).cast(pl.Float64).alias(f"posix_{way}_bytes") for way, name in BYTES.items()),
        file_misaligned_count=_told("POSIX_FILE_NOT_ALIGNED"),
        memory_misaligned_count=_told("POSIX_MEM_NOT_ALIGNED"),
    )


def _mpiio(counters: pl.DataFrame) -> pl.DataFrame:
    def of(kind: str, way: str) -> pl.Expr:
        return _told(f"MPIIO_{kind}_{way.upper()}S")

    return counters.filter(module="MPIIO").select(
        _TRACE,
        *(of("INDEP", way).alias(f"{way}_independent_count") for way in DIRECTIONS),
        *((of("COLL", way) + of("SPLIT", way)).alias(f"{way}_collective_count") for way in DIRECTIONS),
        *(of("NB", way).alias(f"{way}_nonblocking_count") for way in DIRECTIONS),
        *(pl.col(f"{way}_time_s").alias(f"mpiio_{way}_time_s") for way in DIRECTIONS),
        *(pl.col(name).cast(pl.Float64).alias(f"mpiio_{way}_bytes") for way, name in BYTES.items()),
    )


# ---- of ranks


def upper_layers(counters: pl.DataFrame) -> pl.DataFrame:
    """Return the layer nearest to the program that moved bytes, of each run: below it, a few may do the work of all."""
    moved = pl.sum_horizontal(pl.col(*BYTES.values()).fill_null(0)) > 0
    order = pl.DataFrame({"module": _UPPER, "place": range(len(_UPPER))})
    # what STDIO prints beside is not what the program is about
    return (
        counters.filter(moved, ~pl.col("module").str.starts_with("DXT_"))
        .join(order, on="module")
        .sort(_TRACE, "place")
        .unique(_TRACE, keep="first", maintain_order=True)
        .select(_TRACE, "module")
    )


def _ranks(frames: TraceFrames, counters: pl.DataFrame) -> pl.DataFrame:
    """Return, by direction, how many ranks moved bytes, and the most that one did; from records, else heat maps."""
    upper = upper_layers(counters)
    found: pl.DataFrame | None = None
    for source in (_ranks_of_records(frames, upper), _ranks_of_heatmaps(frames, upper)):
        if source is not None:
            found = source if found is None else pl.concat([found, source.join(found, on=_TRACE, how="anti")])
    schema = {_TRACE: pl.String, "direction": pl.String, "rank": pl.Int64, "bytes": pl.Float64}
    ranks = pl.DataFrame(schema=schema) if found is None else found
    parts = [
        ranks.filter(pl.col("direction") == way, pl.col("bytes") > 0)
        .group_by(_TRACE)
        .agg(
            pl.col("bytes").max().alias(f"{way}_top_bytes"),
            pl.col("bytes").sum().alias(f"{way}_rank_bytes"),
            pl.len().alias(f"{way}_rank_count"),
            pl.col("rank").sort_by("bytes", "rank", descending=[True, False]).first().alias(f"{way}_top_rank"),
        )
        for way in DIRECTIONS
    ]
    return (
        upper.rename({"module": "upper_module"})
        .join(parts[0], on=_TRACE, how="left")
        .join(parts[1], on=_TRACE, how="left")
    )


def _ranks_of_records(frames: TraceFrames, upper: pl.DataFrame) -> pl.DataFrame | None:
    if frames.records is None:
        return None
    own = frames.records.join(upper, on=[_TRACE, "module"], how="semi")
    # where some files' ranks are told of together, what each moved is not known
    single = own.filter((pl.col("rank") >= 0).all().over(_TRACE))
    return _long(
        [single.select(_TRACE, "rank", bytes=pl.col(name), direction=pl.lit(way)) for way, name in BYTES.items()]
    )


def _ranks_of_heatmaps(frames: TraceFrames, upper: pl.DataFrame) -> pl.DataFrame | None:
    if frames.heatmaps is None:
        return None
    own = frames.heatmaps.join(upper, on=[_TRACE, "module"], how="semi").filter(pl.col("rank") >= 0)
    return _long([own.select(_TRACE, "rank", "direction", bytes=pl.col("bin_bytes").list.sum())])


def _long(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    found = pl.concat([part.select(_TRACE, "direction", "rank", pl.col("bytes").cast(pl.Float64)) for part in parts])
    return found.group_by(_TRACE, "direction", "rank").agg(pl.col("bytes").sum())


# ---- of records and files


def _of_records(frames: TraceFrames, counters: pl.DataFrame, thresholds: Thresholds) -> list[pl.DataFrame]:
    if frames.records is None:
        return []
    records = frames.records
    found = [
        _stragglers(records, frames.jobs, counters),
        _again(records),
        _shared(records),
        _busiest(records, frames.jobs, counters.filter("is_counted").select(_TRACE, "module"), "busiest"),
        _busiest(records.filter(module="MPIIO"), frames.jobs, counters.select(_TRACE, "module"), "mpiio_busiest"),
    ]
    if frames.files is not None:
        found.append(_targets(records, frames.files, thresholds))
    return found


def _stragglers(records: pl.DataFrame, jobs: pl.DataFrame, counters: pl.DataFrame) -> pl.DataFrame:
    """Return the time of the slowest process and of the mean one, where the others waited longest for it.

    A file whose processes are told of together has the slowest's time; where each is told of, its times in all files
    are added.
    """
    upper, spent = upper_layers(counters), pl.sum_horizontal(TIMES)
    own = records.join(upper, on=[_TRACE, "module"], how="semi").with_columns(spent_s=spent)
    ranks = jobs.select(_TRACE, "process_count")
    together = own.filter(pl.col("rank") < 0, pl.col("slowest_time_s").is_not_null()).select(
        _TRACE, total_s="spent_s", slowest_s="slowest_time_s"
    )
    # the ranks of files that are told of together are not among these
    is_single = (pl.col("rank") >= 0).all().over(_TRACE)
    each = own.filter(is_single).group_by(_TRACE, "rank").agg(pl.col("spent_s").sum()).group_by(_TRACE)
    apart = each.agg(total_s=pl.col("spent_s").sum(), slowest_s=pl.col("spent_s").max())
    return (
        pl.concat([together, apart])
        .join(ranks, on=_TRACE)
        .filter(pl.col("process_count") > 0)
        .with_columns(mean_s=pl.col("total_s") / pl.col("process_count"))
        .sort(pl.col("slowest_s") - pl.col("mean_s"), descending=True)
        .group_by(_TRACE)
        .agg(slowest_s=pl.col("slowest_s").first(), mean_s=pl.col("mean_s").first())
    )


def _busiest(records: pl.DataFrame, jobs: pl.DataFrame, layers: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the time that the busiest process spent in reads, in writes and in metadata, in some layers.

    Of a file whose processes are told of together, each is given the mean's time.
    """
    own = records.join(layers, on=[_TRACE, "module"], how="semi").join(jobs.select(_TRACE, "process_count"), on=_TRACE)
    spread = pl.when(pl.col("rank") < 0).then(pl.col("process_count")).otherwise(1)
    ranks = own.with_columns(pl.col(*TIMES) / spread).group_by(_TRACE, "rank").agg(pl.col(*TIMES).sum())
    is_one = pl.col("rank") >= 0
    return ranks.group_by(_TRACE).agg(
        (pl.col(time).filter(is_one).max().fill_null(0) + pl.col(time).filter(~is_one).sum()).alias(f"{name}_{time}")
        for time in TIMES
    )


def _again(records: pl.DataFrame) -> pl.DataFrame:
    """Return the bytes that files were read or written beyond how far they go: so many at least were moved again."""
    files = (
        records.filter(module="POSIX")
        .group_by(_TRACE, "file_number")
        .agg(
            *(pl.col(name).sum() for name in BYTES.values()),
            *(pl.col(name).max() for name in EXTENTS.values()),
        )
    )
    beyond = {way: (pl.col(BYTES[way]) - pl.col(EXTENTS[way])).clip(0) for way in DIRECTIONS}
    known = {way: pl.col(EXTENTS[way]).is_not_null() | (pl.col(BYTES[way]) == 0) for way in DIRECTIONS}
    return files.group_by(_TRACE).agg(
        pl.when(known[way].all()).then(beyond[way].sum()).cast(pl.Float64).alias(f"{way}_again_bytes")
        for way in DIRECTIONS
    )


def _shared(records: pl.DataFrame) -> pl.DataFrame:
    """Return the bytes that several processes moved in one file by POSIX alone, and in how many such files."""
    files = records.group_by(_TRACE, "file_number").agg(
        is_shared=((pl.col("rank") < 0) & (pl.col("module") == "POSIX")).any()
        | (pl.col("rank").filter(pl.col("module") == "POSIX").n_unique() > 1),
        has_other=pl.col("module").is_in(["MPIIO", "DFS", "DAOS"]).any(),
        bytes=pl.sum_horizontal(pl.col(*BYTES.values())).filter(pl.col("module") == "POSIX").sum(),
    )
    bare = pl.col("is_shared") & ~pl.col("has_other") & (pl.col("bytes") > 0)
    return files.group_by(_TRACE).agg(
        bare_shared_bytes=pl.col("bytes").filter(bare).sum().cast(pl.Float64), bare_shared_count=bare.sum()
    )


def _targets(records: pl.DataFrame, files: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    """Return, of the striped file that lacks most targets, its bytes, targets and the targets that it should have.

    And how many striped files there are, and how many lie within one stripe though they have several targets.
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
    wanted = pl.lit(1)
    for least_bytes, count in thresholds.few_targets:
        wanted = pl.when(pl.col("bytes") >= least_bytes).then(count).otherwise(wanted)
    placed = (
        striped.join(of_files, on=[_TRACE, "file_number"])
        .with_columns(targets=pl.col("osts").list.len().cast(pl.Int64), wanted=wanted)
        .with_columns(lacking=pl.when("is_shared").then((pl.col("wanted") - pl.col("targets")).clip(0)).otherwise(0))
    )
    if placed.is_empty():
        # files were told of, and none of them has stripes
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


# ---- of requests


def _of_requests(frames: TraceFrames, counters: pl.DataFrame, thresholds: Thresholds) -> list[pl.DataFrame]:
    """Return what requests tell, of runs of which all requests of POSIX are there."""
    if frames.requests is None or frames.requests.is_empty():
        return []
    movers = request_facts.movers(frames.requests)
    below = frames.requests.filter(pl.col("module") == "POSIX")
    sizes = request_facts.sizes_and_order(below, thresholds.small_bytes)
    told = sizes.join(request_facts.distinct_bytes(below), on=[_TRACE, "module", "direction"])
    counted = counters.filter(module="POSIX").select(_TRACE, *(f"{way}_count" for way in DIRECTIONS))
    found = []
    for way in DIRECTIONS:
        own = told.filter(direction=way).join(counted, on=_TRACE, how="left")
        whole = own.filter(pl.col("request_count") >= pl.col(f"{way}_count").fill_null(0))
        found.append(
            whole.select(
                _TRACE,
                pl.col("request_count").cast(pl.Float64).alias(f"{way}_seen_count"),
                *(
                    pl.col(f"{name}_count").cast(pl.Float64).alias(f"{way}_seen_{name}_count")
                    for name in ("small", "sequential", "consecutive")
                ),
                (pl.col("moved_bytes") - pl.col("distinct_bytes")).clip(0).alias(f"{way}_seen_again_bytes"),
            )
        )
    of_posix = movers.filter(module="POSIX").drop("module")
    found.append(of_posix)
    if frames.files is not None:
        found.append(request_facts.on_stripes(below, frames.files))
    return found


def _with_columns(joined: pl.DataFrame) -> pl.DataFrame:
    """Return the facts with a column, without a value, for each that no part of what was read tells of."""
    return joined.with_columns(
        pl.lit(None, dtype).alias(name) for name, dtype in _ALL.items() if name not in joined.columns
    )


_NUMBERS = (
    "slowest_s", "mean_s", "bare_shared_bytes", "bare_shared_count", "striped_bytes", "target_count", "wanted_count",
    "striped_file_count", "wide_file_count", "striped_count", "crossing_count", "mover_count", "host_count",
    *(f"{name}_{time}" for name in ("busiest", "mpiio_busiest") for time in TIMES),
    *(
        f"{way}_{name}" for way in DIRECTIONS
        for name in ("again_bytes", "seen_count", "seen_small_count", "seen_sequential_count",
                     "seen_consecutive_count", "seen_again_bytes")
    ),
)  # fmt: skip
_ALL = dict.fromkeys(_NUMBERS, pl.Float64)


def _refined(facts: pl.DataFrame) -> pl.DataFrame:
    """Return the facts with what several of them come to: exact counts before sums, shares of the run's time."""
    processes_s = pl.col("process_count") * pl.col("duration_s")
    # what POSIX does not see (DAOS, a device's own library) is not known to be well
    is_posix = pl.col("posix_moved_bytes") + pl.col("stdio_bytes") >= pl.col("read_bytes") + pl.col("write_bytes")
    exact = [
        pl.when(pl.col(f"{way}_seen_count").is_not_null())
        .then(pl.col(f"{way}_seen_{name}"))
        .otherwise(pl.when(is_posix).then(f"{way}_{name}"))
        .alias(f"{way}_{name}")
        for way in DIRECTIONS
        for name in ("small_count", "sequential_count", "consecutive_count", "again_bytes")
    ]
    counts = [
        pl.coalesce(f"{way}_seen_count", pl.when(is_posix).then(f"{way}_count")).alias(f"{way}_count")
        for way in DIRECTIONS
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
            .then((pl.col(f"mpiio_{way}_time_s") - pl.col(f"posix_{way}_time_s").fill_null(0)) / processes_s)
            .otherwise(0.0)
            .clip(0, 1)
            .alias(f"{way}_waiting_ratio")
            for way in DIRECTIONS
        ),
        **{
            f"mpiio_{way}_time_ratio": (
                pl.coalesce(f"mpiio_busiest_{way}_time_s", pl.col(f"mpiio_{way}_time_s") / pl.col("process_count"))
                / pl.col("duration_s")
            ).clip(0, 1)
            for way in DIRECTIONS
        },
        **{f"{way}_imbalance_ratio": _imbalance(f"{way}_top_bytes", f"{way}_rank_bytes") for way in DIRECTIONS},
        straggling_ratio=_imbalance("slowest_s", pl.col("mean_s") * pl.col("process_count")),
        straggling_time_ratio=((pl.col("slowest_s") - pl.col("mean_s")) / pl.col("duration_s")).clip(0, 1),
        slowest_time_ratio=(pl.col("slowest_s") / pl.col("duration_s")).clip(0, 1),
        stdio_time_ratio=(pl.col("stdio_time_s") / processes_s).clip(0, 1),
        io_time_ratio=pl.when(pl.any_horizontal(pl.col(f"all_{name}").is_not_null() for name in TIMES))
        .then(pl.sum_horizontal(f"all_{name}" for name in TIMES) / processes_s)
        .clip(0, 1),
        metadata_count=pl.col("all_open_count") + pl.col("all_stat_count"),
        data_count=pl.col("all_read_count") + pl.col("all_write_count"),
    )


def _imbalance(most: str, total: str | pl.Expr) -> pl.Expr:
    """Return the imbalance of a load, from 0 (all processes have the same) to 1 (one has all); NULL for one process.

    (most - mean) / most · n / (n - 1): DeRose, Homer and Johnson, "Detecting Application Load Imbalance on High End
    Massively Parallel Systems", Euro-Par 2007, section 3 (DOI 10.1007/978-3-540-74466-5_17).
    """
    count = pl.col("process_count").cast(pl.Float64)
    top, whole = pl.col(most), pl.col(total) if isinstance(total, str) else total
    return pl.when((count > 1) & (top > 0)).then(((top - whole / count) / top * count / (count - 1)).clip(0, 1))

"""Compute signals of traced runs (rates by module and direction) from requests, records and heat maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from iosig.estimates.columns import floats, list_column
from iosig.transforms.arrays import Ints, Ragged, Reals
from iosig.transforms.throughput import even_values, signals
from iosig.transforms.throughput.requests import Requests
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.traces import (
    TRACE_FILES,
    TRACE_HEATMAPS,
    TRACE_MODULES,
    TRACE_RECORDS,
    TRACE_REQUESTS,
    TRACE_SIGNALS,
)

_SIGNAL = ["trace_id", "module", "direction", "is_async"]
_MODULE = ["trace_id", "module", "direction"]
#: landed tables of a traced run, except the run itself
LANDED = (
    TRACE_MODULES,
    TRACE_RECORDS,
    TRACE_FILES,
    TRACE_HEATMAPS,
    TRACE_REQUESTS,
)


def make_signals(
    jobs: pl.DataFrame,
    counters: pl.DataFrame,
    records: pl.DataFrame,
    heatmaps: pl.DataFrame,
    requests: Sequence[pl.LazyFrame],
    params: signals.SignalParams,
) -> pl.DataFrame:
    """Compute the signals of traced runs, as rows of `trace_signals`.

    jobs, counters, records, heatmaps: rows of `trace_jobs`, `trace_counters`, `trace_records` and
    `trace_heatmaps`; requests: rows of `trace_requests`, read frame by frame.
    """
    intervals = _intervals(records)
    chosen = signals.choose_basis(_volumes(counters, intervals, heatmaps, requests), params)
    ordered = chosen.join(
        counters.select("trace_id", "module", "ended_on", "is_counted"), on=["trace_id", "module"], how="left"
    ).sort(_SIGNAL)
    of_bins = ordered.filter(pl.col("basis") == "heatmap")
    of_requests = ordered.filter(pl.col("basis") != "heatmap")
    parts = [_from_heatmaps(of_bins, heatmaps), _from_requests(of_requests, jobs, intervals, requests, params)]
    return pl.concat([frames.empty(TRACE_SIGNALS), *parts]).sort(_SIGNAL)


def _volumes(
    counters: pl.DataFrame, intervals: pl.DataFrame, heatmaps: pl.DataFrame, requests: Sequence[pl.LazyFrame]
) -> pl.DataFrame:
    """Return the bytes from each data source, by module, direction and `is_async`."""
    counted = _sum_counters(counters)
    requested = _sum_requests(requests)
    mapped = (
        heatmaps.group_by(_MODULE)
        .agg(heatmap_bytes=pl.col("bin_bytes").list.sum().sum().cast(pl.Float64))
        .with_columns(is_async=pl.lit(False))
    )
    timed = intervals.group_by(_MODULE).agg(has_interval=pl.lit(True))
    signaled = [frame.select(_SIGNAL) for frame in (counted, requested, mapped)]
    # counters do not distinguish is_async, so split their bytes in proportion to the requests
    all_requests = requested.group_by(_MODULE).agg(all_request_bytes=pl.col("request_bytes").sum())
    return (
        pl.concat(signaled)
        .unique()
        .join(counted, on=_SIGNAL, how="left")
        .join(requested, on=_SIGNAL, how="left")
        .join(mapped, on=_SIGNAL, how="left")
        .join(all_requests, on=_MODULE, how="left")
        .join(timed, on=_MODULE, how="left")
        .with_columns(
            pl.col("has_interval").fill_null(False) & ~pl.col("is_async"),
            counted_bytes=pl.when(pl.col("all_request_bytes") > 0)
            .then(pl.col("counted_bytes").max().over(_MODULE) * pl.col("request_bytes") / pl.col("all_request_bytes"))
            .otherwise("counted_bytes"),
        )
    )


def _sum_counters(counters: pl.DataFrame) -> pl.DataFrame:
    is_own = ~pl.col("module").str.starts_with("DXT_") & (pl.col("module") != "HEATMAP")
    return (
        counters.filter(is_own)
        .select("trace_id", "module", read="read_bytes", write="written_bytes")
        .unpivot(index=["trace_id", "module"], variable_name="direction", value_name="counted_bytes")
        .filter(pl.col("counted_bytes").is_not_null())
        .with_columns(pl.col("counted_bytes").cast(pl.Float64), is_async=pl.lit(False))
    )


def _sum_requests(requests: Sequence[pl.LazyFrame]) -> pl.DataFrame:
    if not requests:
        return pl.DataFrame(
            schema={**dict.fromkeys(_MODULE, pl.String), "is_async": pl.Boolean, "request_bytes": pl.Float64}
        )
    return (
        pl.concat(requests)
        .filter(~pl.col("is_nested"), pl.col("request_bytes") > 0)
        .group_by(_SIGNAL)
        .agg(pl.col("request_bytes").sum())
        .collect(engine="streaming")
    )


def _intervals(records: pl.DataFrame) -> pl.DataFrame:
    """Convert each record to one request per direction, from the first start to the last end."""
    parts = [
        records.select(
            "trace_id",
            "module",
            pl.lit(direction).alias("direction"),
            pl.lit(False).alias("is_async"),
            pl.col(volume).cast(pl.Float64).alias("request_bytes"),
            pl.col(began).alias("start_s"),
            pl.col(ceased).alias("end_s"),
        )
        for direction, volume, began, ceased in (
            ("read", "read_bytes", "read_start_s", "read_end_s"),
            ("write", "written_bytes", "write_start_s", "write_end_s"),
        )
    ]
    return pl.concat(parts).filter(pl.col("request_bytes") > 0, pl.col("end_s") >= pl.col("start_s"))


def _from_heatmaps(chosen: pl.DataFrame, heatmaps: pl.DataFrame) -> pl.DataFrame:
    """Build signals from heat maps, summed over ranks."""
    summed = (
        heatmaps.join(chosen.select(_MODULE), on=_MODULE, how="semi")
        .select(*_MODULE, "interval_s", "step_count", "bin_bytes", step=pl.int_ranges(0, pl.col("step_count")))
        .explode("bin_bytes", "step", empty_as_null=False)
        .group_by(*_MODULE, "interval_s", "step")
        .agg(pl.col("bin_bytes").sum())
        .sort(*_MODULE, "step")
        .group_by(*_MODULE, "interval_s", maintain_order=True)
        .agg(pl.col("bin_bytes").cast(pl.Float64).alias("signal_bytes"), pl.len().cast(pl.Int64).alias("step_count"))
    )
    return _build_rows(chosen.join(summed, on=_MODULE, how="inner"))


def _from_requests(
    chosen: pl.DataFrame,
    jobs: pl.DataFrame,
    intervals: pl.DataFrame,
    requests: Sequence[pl.LazyFrame],
    params: signals.SignalParams,
) -> pl.DataFrame:
    """Build signals from requests and record intervals, spread over each signal's grid."""
    latest = _latest(requests, intervals)
    timed = chosen.join(jobs.select("trace_id", "duration_s"), on="trace_id", how="left").join(
        latest, on="trace_id", how="left"
    )
    end_s = floats(timed.select(pl.max_horizontal("duration_s", "latest_s")).to_series())
    interval_s, step_count = signals.choose_grids(np.nan_to_num(np.maximum(end_s, 0.0)), params)
    is_resolved = even_values.is_resolved(np.zeros(len(interval_s)), interval_s, step_count)
    interval_s, step_count = interval_s[is_resolved], step_count[is_resolved]
    resolved = timed.filter(is_resolved).drop("duration_s", "latest_s").with_row_index("subject")
    volumes = _bin(resolved, interval_s, step_count, intervals, requests)
    return _build_rows(
        resolved.drop("subject").with_columns(
            interval_s=interval_s, step_count=step_count, signal_bytes=list_column(volumes)
        )
    )


def _latest(requests: Sequence[pl.LazyFrame], intervals: pl.DataFrame) -> pl.DataFrame:
    ends = [intervals.lazy().select("trace_id", "end_s")]
    if requests:
        ends.append(pl.concat(requests).select("trace_id", "end_s"))
    latest = pl.concat(ends).group_by("trace_id").agg(latest_s=pl.col("end_s").max())
    return latest.collect(engine="streaming")


def _bin(
    subjects: pl.DataFrame,
    interval_s: Reals,
    step_count: Ints,
    intervals: pl.DataFrame,
    requests: Sequence[pl.LazyFrame],
) -> Ragged:
    grid = even_values.Grid(np.zeros(subjects.height), interval_s, step_count)
    bins = even_values.BinAccumulator(grid)
    of_basis = {
        basis: subjects.filter(pl.col("basis") == basis).select("subject", *_SIGNAL)
        for basis in ("requests", "interval")
    }
    for chunk in _chunks(intervals, of_basis["interval"], requests, of_basis["requests"]):
        start_s, end_s, volume_bytes = (chunk[name].to_numpy() for name in ("start_s", "end_s", "request_bytes"))
        bins.add(Requests(start_s, end_s, volume_bytes, chunk["subject"].cast(pl.Int64).to_numpy(), subjects.height))
    return Ragged(bins.result().volume_bytes, grid.offsets)


def _chunks(
    intervals: pl.DataFrame, of_intervals: pl.DataFrame, requests: Sequence[pl.LazyFrame], of_requests: pl.DataFrame
) -> Iterator[pl.DataFrame]:
    yield intervals.join(of_intervals, on=_SIGNAL, how="inner")
    for rows in requests if of_requests.height else ():
        transfers = rows.select(*_SIGNAL, "request_bytes", "start_s", "end_s", "is_nested").filter(
            ~pl.col("is_nested"), pl.col("request_bytes") > 0
        )
        yield transfers.join(of_requests.lazy(), on=_SIGNAL, how="inner", maintain_order="left").collect()


def _build_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Build rows of `trace_signals` from bytes per step; signals without bytes are omitted."""
    return (
        rows.with_columns(
            volume_bytes=pl.col("signal_bytes").list.sum(),
            signal_bytes_per_s=pl.col("signal_bytes") / pl.col("interval_s"),
        )
        .with_columns(peak_bytes_per_s=pl.col("signal_bytes_per_s").list.max())
        .filter(pl.col("volume_bytes") > 0)
        .select(TRACE_SIGNALS.column_names)
    )

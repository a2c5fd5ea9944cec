"""Build subjects with their signals, as input for classes and periods.

A subject is a job, time series, traced run or application in one direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.estimates.columns import epoch_s, floats, ragged
from iosig.transforms.arrays import InPieces, Ints, Ragged, Reals, offsets_of
from iosig.transforms.throughput import even_values, intervals
from iosig.transforms.throughput.requests import Requests
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.periods import PERIODS
from iosig.warehouse.contracts.samples import EXACT_SAMPLES
from iosig.warehouse.contracts.series import SERIES_INTERVALS
from iosig.warehouse.contracts.signatures import SIGNATURE_POINTS, SIGNATURES
from iosig.warehouse.contracts.traces import TRACE_COUNTERS, TRACE_JOBS, TRACE_SIGNALS

#: key columns of a subject
KEYS = (
    "ended_on",
    "subject_kind",
    "cluster",
    "subject_id",
    "started_at",
    "filesystem",
    "direction",
    "metric",
    "basis",
)
#: tables from which the signals of subjects are read
SIGNAL_TABLES = (
    JOBS,
    EXACT_SAMPLES,
    SERIES_INTERVALS,
    TRACE_JOBS,
    TRACE_COUNTERS,
    TRACE_SIGNALS,
    SIGNATURES,
    SIGNATURE_POINTS,
)
_SIGNAL = ["trace_id", "module", "direction", "is_async"]
#: basis of the results for each kind of subject
_BASIS = {"job": "counted", "series": "series", "application": "signature", "trace": "traced"}


@dataclass(frozen=True, slots=True)
class Intervals(InPieces):
    """Intervals of n subjects as measured: right edges and lengths [s], mean rates (NaN if not measured), offsets."""

    right_s: Reals
    interval_s: Reals
    bytes_per_s: Reals
    offsets: Ints


@dataclass(frozen=True, slots=True)
class Subjects:
    """Subjects (n) and their signals.

    keys: one row per subject, with the columns of `KEYS`, and `untold`: reason for a missing signal, else NULL.
    samples: ragged (n) [B/s], NaN if not measured. sampling_hz (n). start_s (n): start of the first sample, since the
    run's start, since time zero of the trace, or on the series' own clock. intervals: those from which the samples are
    resampled, if any.
    """

    keys: pl.DataFrame
    samples: Ragged
    sampling_hz: Reals
    start_s: Reals
    intervals: Intervals | None = None

    @property
    def end_s(self) -> Reals:
        """The right edge of each signal's last sample (n)."""
        return self.start_s + np.diff(self.samples.offsets) / self.sampling_hz


def build_keys(kind: str, subjects: pl.DataFrame, **named: pl.Expr | str) -> pl.DataFrame:
    """Build the key columns and `untold` for subjects of one kind; columns that the kind does not have are NULL.

    The metric is bytes unless the subjects have one.

    named: expressions for columns with other names.
    """
    metric = [] if "metric" in subjects.columns else [pl.lit("bytes").alias("metric")]
    of_kind = [pl.lit(kind).alias("subject_kind"), pl.lit(_BASIS[kind]).alias("basis")]
    columns = subjects.with_columns(*metric, *of_kind).with_columns(**named)
    schema = {name: frames.schema(PERIODS)[name] for name in KEYS} | {"untold": pl.String()}
    return pl.concat(
        [pl.DataFrame(schema=schema), columns.select(name for name in schema if name in columns.columns)],
        how="diagonal",
    )


def job_subjects(samples: pl.DataFrame) -> Subjects:
    """Build subjects from rows of `exact_samples`."""
    keys = build_keys("job", samples, subject_id="job_id")
    start_s = epoch_s(samples["grid_started_at"]) - epoch_s(samples["started_at"])
    return Subjects(keys, ragged(samples["sample_bytes_per_s"]), 1.0 / samples["interval_s"].to_numpy(), start_s)


def series_subjects(rows: pl.DataFrame, params: intervals.StepParams | None = None) -> Subjects:
    """Build subjects from rows of `series_intervals`, resampled to even steps of their median interval.

    The intervals are included unless `params` requests a length of steps.
    """
    ordered = rows.sort("ended_on", "subject_id", "direction", "time_s")
    subjects = ordered.group_by("ended_on", "subject_id", "direction", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("count")
    )
    right_s, interval_s, rates = (floats(ordered[name]) for name in ("time_s", "interval_s", "bytes_per_s"))
    offsets = offsets_of(subjects["count"].to_numpy())
    signals = intervals.resample_intervals(right_s - interval_s, right_s, rates * interval_s, offsets, params)
    return Subjects(
        build_keys("series", subjects),
        signals.bytes_per_s,
        signals.sampling_hz,
        signals.start_s,
        Intervals(right_s, interval_s, rates, offsets) if params is None or params.interval_s is None else None,
    )


def build_trace_subjects(
    jobs: pl.DataFrame, counters: pl.DataFrame, signals: pl.DataFrame, max_interval_ratio: float
) -> Subjects:
    """Build subjects from rows of `trace_jobs`, `trace_counters` and `trace_signals`, summed over modules."""
    counted = signals.filter("is_counted")
    runs = list_trace_runs(jobs, counters, counted, max_interval_ratio)
    # a direction without bytes has no signal, but its outcome is known
    untold = pl.when(pl.col("counted_bytes") == 0).then(pl.lit("no_io")).otherwise("untold")
    keys = build_keys("trace", runs, subject_id="trace_id", untold=untold)
    return Subjects(keys, *_sum_signals(runs, counted.filter(pl.col("basis") != "interval")))


def collect_trace_requests(
    keys: pl.DataFrame, signals: pl.DataFrame, requests: Sequence[pl.LazyFrame], *, with_empty: bool = False
) -> Requests:
    """Return the requests of traced runs; bins of heat maps replace requests where only these exist.

    keys: keys of the subjects, as returned by `build_trace_subjects`. signals: rows of `trace_signals`. requests: rows
    of `trace_requests`. with_empty: include requests of zero bytes, which take time.
    """
    rows = _join_requests(keys, signals, requests, [], with_empty=with_empty)
    start_s, end_s, volume_bytes = (floats(rows[name]) for name in ("start_s", "end_s", "request_bytes"))
    owner = rows["subject"].cast(pl.Int64).to_numpy()
    return Requests(start_s, end_s, volume_bytes, owner, keys.height)


def collect_trace_nodes(
    keys: pl.DataFrame, signals: pl.DataFrame, requests: Sequence[pl.LazyFrame]
) -> tuple[pl.DataFrame, Requests]:
    """Return the nodes of traced runs, and the requests that each node made.

    keys, signals, requests: as in `collect_trace_requests`. One row per node: columns of keys, `subject` (row),
    `host`, `node_count` of the subject, and `number`, which is the owner in the requests. Runs with a request from an
    unknown host have no nodes.
    """
    hosted = [frame for frame in requests if frame.select(pl.col("host").is_not_null().any()).collect().item()]
    rows = _join_requests(keys, signals, hosted, ["host"])
    with_hosts = rows.filter(pl.col("host").is_not_null().all().over("subject"))
    hosts = with_hosts.select("subject", "host").unique().sort("subject", "host")
    numbered = hosts.with_row_index("number").with_columns(node_count=pl.len().over("subject"))
    named = keys.with_row_index("subject").filter(pl.col("untold").is_null())
    nodes = numbered.join(named, on="subject", how="inner", maintain_order="left")
    placed = with_hosts.join(numbered, on=["subject", "host"], how="left")
    start_s, end_s, volume_bytes = (floats(placed[name]) for name in ("start_s", "end_s", "request_bytes"))
    return nodes, Requests(start_s, end_s, volume_bytes, placed["number"].cast(pl.Int64).to_numpy(), numbered.height)


def _join_requests(
    keys: pl.DataFrame,
    signals: pl.DataFrame,
    requests: Sequence[pl.LazyFrame],
    extra_columns: list[str],
    *,
    with_empty: bool = False,
) -> pl.DataFrame:
    """Return rows for `collect_trace_requests`, with further columns of the requests, which are NULL for bins."""
    subjects = keys.select(pl.col("subject_id").alias("trace_id"), "direction").with_row_index("subject")
    counted = signals.filter("is_counted").join(subjects, on=["trace_id", "direction"], how="inner")
    columns = ["subject", "start_s", "end_s", "request_bytes"]
    bins = _bins(counted.filter(pl.col("basis") == "heatmap")).select(columns)
    pieces = [bins.with_columns(pl.lit(None, pl.String).alias(name) for name in extra_columns)]
    of_requests = counted.filter(pl.col("basis") == "requests").select(*_SIGNAL, "subject")
    is_wanted = pl.col("request_bytes") >= 0 if with_empty else pl.col("request_bytes") > 0
    for frame in requests if of_requests.height else ():
        transfers = frame.filter(~pl.col("is_nested"), is_wanted)
        selected = transfers.select(*_SIGNAL, "request_bytes", "start_s", "end_s", *extra_columns)
        joined = selected.join(of_requests.lazy(), on=_SIGNAL, how="inner", maintain_order="left")
        pieces.append(joined.select(*columns, *extra_columns).collect())
    return pl.concat(pieces)


def _bins(signals: pl.DataFrame) -> pl.DataFrame:
    """Convert each step of a signal to a request."""
    steps = signals.select(
        "subject", "interval_s", rate="signal_bytes_per_s", step=pl.int_ranges(0, pl.col("step_count"))
    ).explode("rate", "step", empty_as_null=False)
    return steps.with_columns(
        start_s=pl.col("step") * pl.col("interval_s"),
        end_s=(pl.col("step") + 1) * pl.col("interval_s"),
        request_bytes=pl.col("rate") * pl.col("interval_s"),
    )


def list_trace_runs(
    jobs: pl.DataFrame, counters: pl.DataFrame, counted: pl.DataFrame, max_interval_ratio: float
) -> pl.DataFrame:
    """Return both directions of each traced run with a counted module, and the completeness of its byte counts.

    counted: rows of `trace_signals` with `is_counted`. Columns: those of `trace_jobs`, direction, `counted_bytes` (NULL
    if the size of a request is unknown), `end_s`, and `untold`: `interval_only` if more than the fraction
    `max_interval_ratio` of the bytes is known from counters only, `unknown_sizes`, or NULL.
    """
    keys = ["trace_id", "direction"]
    is_finer = pl.col("basis") != "interval"
    timed = counted.group_by(keys).agg(timed_bytes=pl.col("volume_bytes").filter(is_finer).sum())
    ends = counted.group_by("trace_id").agg(signal_ended_s=(pl.col("step_count") * pl.col("interval_s")).max())
    is_complete = (pl.col("timed_bytes") >= (1 - max_interval_ratio) * pl.col("counted_bytes")).fill_null(False)
    return (
        _sum_counters(counters, counted)
        .join(timed, on=keys, how="left")
        .join(ends, on="trace_id", how="left")
        .join(jobs, on="trace_id", how="left")
        # the last bin of a heat map may extend beyond the run's end; its bytes count
        .with_columns(
            pl.col("timed_bytes").fill_null(0.0),
            end_s=pl.max_horizontal("duration_s", "signal_ended_s").cast(pl.Float64),
        )
        .with_columns(
            untold=pl.when(pl.col("counted_bytes").is_null())
            .then(pl.lit("unknown_sizes"))
            .when(~is_complete)
            .then(pl.lit("interval_only"))
        )
        .sort(keys)
    )


def _sum_counters(counters: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
    # a single request of unknown size makes the sum unknown
    sums = {
        direction: pl.when((pl.col(volume).is_not_null() | (pl.col(count).fill_null(0) == 0)).all()).then(
            pl.col(volume).sum()
        )
        for direction, volume, count in (
            ("read", "read_bytes", "read_count"),
            ("write", "written_bytes", "write_count"),
        )
    }
    volumes = (
        counters.filter("is_counted")
        .group_by("trace_id")
        .agg(**sums)
        .unpivot(index="trace_id", variable_name="direction", value_name="counted_bytes")
        .with_columns(pl.col("counted_bytes").cast(pl.Float64))
    )
    # bytes of unknown direction are neither reads nor writes
    unstated = (
        counted.filter(pl.col("direction") == "unstated")
        .group_by("trace_id", "direction")
        .agg(pl.col("volume_bytes").sum().alias("counted_bytes"))
    )
    return pl.concat([volumes.join(unstated, on="trace_id", how="anti"), unstated])


def _sum_signals(runs: pl.DataFrame, signals: pl.DataFrame) -> tuple[Ragged, Reals, Reals]:
    """Sum each run's signals on the finest of their grids; returns samples, sampling frequency and start."""
    keys = ["trace_id", "direction"]
    placed = signals.join(runs.select(keys).with_row_index("subject"), on=keys, how="inner").sort(
        "subject", maintain_order=True
    )
    owner = placed["subject"].cast(pl.Int64).to_numpy()
    of_signal = placed["interval_s"].to_numpy()
    interval_s, step_count = np.full(runs.height, np.inf), np.zeros(runs.height, dtype=np.int64)
    np.minimum.at(interval_s, owner, of_signal)
    counts = placed["step_count"].to_numpy()
    # differences up to a hundredth of a step are jitter, as in `iosig.transforms.throughput.intervals`
    np.maximum.at(step_count, owner, np.ceil(counts * (of_signal / interval_s[owner]) - 0.01).astype(np.int64))
    interval_s = np.where(np.isfinite(interval_s), interval_s, 1.0)
    grid = even_values.Grid(np.zeros(runs.height), interval_s, step_count)
    pieces = ragged(placed["signal_bytes_per_s"])
    if len(np.unique(owner)) == len(owner):
        # one signal per run, in order: no resampling needed
        return Ragged(pieces.values, grid.offsets), 1.0 / interval_s, np.zeros(runs.height)
    bins = even_values.BinAccumulator(grid)
    step = np.arange(len(pieces.values)) - np.repeat(pieces.offsets[:-1], counts)
    width, subject = np.repeat(of_signal, counts), np.repeat(owner, counts)
    bins.add(Requests(step * width, (step + 1) * width, pieces.values * width, subject, runs.height))
    return Ragged(bins.result().bytes_per_s, grid.offsets), 1.0 / interval_s, np.zeros(runs.height)

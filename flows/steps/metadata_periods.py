"""Periods of metadata calls of traced runs: when opens, closes, seeks, stats and the like come, one count a call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from iosig.estimates.columns import floats, list_column
from iosig.estimates.periods import params_of
from iosig.flows.steps.items import StepContext
from iosig.flows.steps.step import Step, built, landed_of_traces
from iosig.transforms.arrays import Ragged, offsets_of
from iosig.transforms.periods import finding
from iosig.transforms.periods.finding import PeriodParams, Periods
from iosig.transforms.throughput.signals import SignalParams, grids
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.periods import METADATA_PERIODS
from iosig.warehouse.contracts.traces import TRACE_JOBS, TRACE_METADATA

#: samples that are worked on at a time
_SAMPLES_AT_A_TIME = 1 << 23
_SUBJECT = ["trace_id", "operation_group"]
#: what all calls together are called
_ALL = "all"


def find(context: StepContext) -> int:
    """Find the periods of metadata calls of the traced runs that ended on a day. Returns the rows."""
    params = params_of(context.settings.periods, methods=("controlled",))
    wanted = "controlled" in context.settings.periods.methods
    calls = context.landed(TRACE_METADATA) if wanted else []
    rows = metadata_rows(context.frame(TRACE_JOBS), calls, params, context.settings.traces.params(SignalParams))
    context.write_days(rows, METADATA_PERIODS)
    return rows.height


def metadata_rows(
    jobs: pl.DataFrame, calls: Sequence[pl.LazyFrame], params: PeriodParams, grid: SignalParams
) -> pl.DataFrame:
    """Return rows of `metadata_periods`: of runs whose trace says when they made metadata calls.

    jobs: rows of `trace_jobs`. calls: rows of `trace_metadata`, read one frame after the other. grid: how runs are cut
    into steps. The kinds of calls of a run share one level of false alarms.
    """
    if not calls:
        return frames.empty(METADATA_PERIODS)
    runs = _gridded(jobs, calls, grid)
    counted = _counted(runs, calls)
    subjects = counted.select(_SUBJECT).unique().sort(_SUBJECT).join(runs, on="trace_id", maintain_order="left")
    told = subjects.with_columns(share=pl.len().over("trace_id").cast(pl.Float64))
    # of one share together: what is judged together has one level
    part = pl.col("step_count").cum_sum().over("share") // _SAMPLES_AT_A_TIME
    pieces = told.with_columns(part=part).partition_by("share", "part", maintain_order=True)
    rows = [frames.empty(METADATA_PERIODS), *(_rows(own, counted, params) for own in pieces)]
    return pl.concat(rows).sort(METADATA_PERIODS.key)


def _gridded(jobs: pl.DataFrame, calls: Sequence[pl.LazyFrame], grid: SignalParams) -> pl.DataFrame:
    """Return the runs that made such calls, each with its step and its number of steps, as signals of bytes have."""
    latest = [frame.group_by("trace_id").agg(latest_s=pl.col("ceased_s").max()) for frame in calls]
    ends = pl.concat(latest).group_by("trace_id").agg(pl.col("latest_s").max()).collect(engine="streaming")
    runs = jobs.select("ended_on", "trace_id", "duration_s").join(ends, on="trace_id", how="inner").sort("trace_id")
    lasting = floats(runs.select(pl.max_horizontal("duration_s", "latest_s")).to_series())
    interval_s, step_count = grids(np.maximum(lasting, 0.0), grid)
    return runs.select("ended_on", "trace_id", interval_s=interval_s, step_count=step_count)


def _counted(runs: pl.DataFrame, calls: Sequence[pl.LazyFrame]) -> pl.DataFrame:
    """Return how many calls of each kind began in each step that has any, and how many of all kinds together."""
    step = (pl.col("began_s") / pl.col("interval_s")).floor().cast(pl.Int64).clip(0, pl.col("step_count") - 1)
    found = [
        frame.filter(~pl.col("is_nested"))
        .join(runs.lazy(), on="trace_id", how="inner")
        .group_by("trace_id", operation_group="operation", step=step)
        .agg(metadata_call_count=pl.len().cast(pl.Int64))
        .collect(engine="streaming")
        for frame in calls
    ]
    each = pl.concat(found)
    both = pl.concat([each, each.with_columns(operation_group=pl.lit(_ALL))])
    return both.group_by(*_SUBJECT, "step").agg(pl.col("metadata_call_count").sum())


def _rows(subjects: pl.DataFrame, counted: pl.DataFrame, params: PeriodParams) -> pl.DataFrame:
    """Return the rows of some kinds of calls of runs that have equally many kinds."""
    from iosig.transforms.periods.controlled import ControlledParams  # its import takes long

    hz, counts = 1.0 / subjects["interval_s"].to_numpy(), subjects["step_count"].to_numpy()
    offsets = offsets_of(counts)
    placed = counted.join(subjects.select(*_SUBJECT, first=offsets[:-1]), on=_SUBJECT, how="inner")
    calls = np.zeros(offsets[-1])
    calls[(placed["first"] + placed["step"]).to_numpy()] = placed["metadata_call_count"].to_numpy()
    share = float(subjects["share"][0])
    own = params.controlled or ControlledParams()
    level = replace(own, false_alarm_probability=own.false_alarm_probability / share)
    of_level = replace(params, methods=("controlled",), controlled=level)
    signals = Ragged(calls * np.repeat(hz, counts), offsets)
    (answer,) = finding.find(signals, hz, np.zeros(len(hz)), of_level)
    known = {
        "metadata_call_count": np.add.reduceat(calls, offsets[:-1]).astype(np.int64),
        "sampling_hz": hz,
        **dict(columns_of(answer, share)),
    }
    columns = pl.DataFrame(known).with_columns(pl.col(pl.Float64).fill_nan(None))
    keys = subjects.select("ended_on", *_SUBJECT)
    return pl.concat([keys, columns], how="horizontal").select(METADATA_PERIODS.column_names)


def columns_of(answer: Periods, share: float) -> Iterator[tuple[str, pl.Series]]:
    """Yield the columns of the period that was found; share: the part of the level that each has."""
    found, segments = answer.detections, answer.segments
    assert segments is not None
    yield "outcome", pl.Series(found.outcome.tolist(), dtype=pl.String)
    numbers = {
        "window_start_s": found.window_start_s,
        "window_end_s": found.window_end_s,
        "frequency_hz": found.frequency_hz,
        "period_s": found.period_s,
        "period_error_s": found.told.period_error_s,
        "window_call_ratio": found.told.window_bytes_ratio,
        "burst_width_s": answer.burst_width_s,
        "duty_ratio": np.minimum(answer.burst_width_s * found.frequency_hz, 1.0),
        "confidence": found.confidence,
        "false_alarm_probability": np.minimum(found.false_alarm_probability * share, 1.0),
    }
    yield from ((name, pl.Series(values)) for name, values in numbers.items())
    listed = {
        "segment_starts_s": segments.started_s,
        "segment_ends_s": segments.ended_s,
        "segment_periods_s": 1.0 / segments.frequency_hz,
    }
    is_told = pl.Series(found.is_periodic)
    for name, values in listed.items():
        lists = list_column(Ragged(values, segments.offsets))
        yield name, pl.select(pl.when(is_told).then(lists)).to_series()


STEP = Step(
    "metadata periods",
    find,
    reads=(built(TRACE_JOBS), landed_of_traces(TRACE_METADATA)),
    writes=(METADATA_PERIODS,),
    days=lambda run: run.plan.job_days,
    is_daily=True,
    is_needed=lambda run, day: bool(run.built(TRACE_JOBS, [day])),
)

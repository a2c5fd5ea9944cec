"""Find the periods of metadata calls of traced runs: opens, closes, seeks and stats; each call counts once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from iosig.estimates.columns import floats, list_column
from iosig.estimates.periods import get_params
from iosig.flows.steps.items import StepContext
from iosig.flows.steps.step import Step, read_built, read_landed_of_traces
from iosig.transforms.arrays import Ragged, offsets_of
from iosig.transforms.periods import search
from iosig.transforms.periods.null_model.params import NullModelParams
from iosig.transforms.periods.search import PeriodParams, Periods
from iosig.transforms.throughput import signals
from iosig.transforms.throughput.signals import SignalParams
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.periods import METADATA_GRIDS, METADATA_PERIODS, METADATA_SPANS, METADATA_STEPS
from iosig.warehouse.contracts.traces import TRACE_JOBS, TRACE_METADATA

#: number of samples per part, to bound memory use
_BATCH_SAMPLES = 1 << 23
_SUBJECT = ["trace_id", "operation_group"]


def find(context: StepContext) -> int:
    """Find the periods of metadata calls of the traced runs that ended on a day. Returns the number of rows."""
    rows = frames.empty(METADATA_PERIODS)
    if "null_tested" in context.settings.periods.methods and context.parts(TRACE_METADATA):
        with context.engine() as connection:
            context.expose(connection, TRACE_JOBS)
            context.expose_landed(connection, TRACE_METADATA)
            spans = context.compute(connection, METADATA_SPANS)
            grids = grid_rows(spans, context.settings.traces.params(SignalParams))
            context.put(connection, METADATA_GRIDS, grids)
            steps = context.compute(connection, METADATA_STEPS)
        rows = metadata_rows(grids, steps, get_params(context.settings.periods, methods=("null_tested",)))
    context.write_days(rows, METADATA_PERIODS)
    return rows.height


def grid_rows(spans: pl.DataFrame, grid: SignalParams) -> pl.DataFrame:
    """Divide runs into the same time steps as their byte signals, as rows of `metadata_grids`."""
    interval_s, step_count = signals.choose_grids(floats(spans["lasting_s"]), grid)
    return spans.select("ended_on", "trace_id", interval_s=interval_s, step_count=step_count)


def metadata_rows(grids: pl.DataFrame, steps: pl.DataFrame, params: PeriodParams) -> pl.DataFrame:
    """Return rows of `metadata_periods` for the runs with traced times of metadata calls.

    grids, steps: rows of `metadata_grids` and `metadata_steps`. All kinds of calls of a run share one significance
    level, so each is tested at the level divided by their number.
    """
    subjects = steps.select(_SUBJECT).unique().sort(_SUBJECT).join(grids, on="trace_id", maintain_order="left")
    shared = subjects.with_columns(share=pl.len().over("trace_id").cast(pl.Float64))
    # a part contains runs with the same number of kinds, since signals that are tested together have the same level
    part = pl.col("step_count").cum_sum().over("share") // _BATCH_SAMPLES
    pieces = shared.with_columns(part=part).partition_by("share", "part", maintain_order=True)
    rows = [frames.empty(METADATA_PERIODS), *(_rows(piece, steps, params) for piece in pieces)]
    return pl.concat(rows).sort(METADATA_PERIODS.key)


def _rows(subjects: pl.DataFrame, steps: pl.DataFrame, params: PeriodParams) -> pl.DataFrame:
    """Return the rows of kinds of calls, of runs that all have the same number of kinds."""
    hz, counts = 1.0 / subjects["interval_s"].to_numpy(), subjects["step_count"].to_numpy()
    offsets = offsets_of(counts)
    placed = steps.join(subjects.select(*_SUBJECT, first=offsets[:-1]), on=_SUBJECT, how="inner")
    calls = np.zeros(offsets[-1])
    calls[(placed["first"] + placed["call_step"]).to_numpy()] = placed["metadata_call_count"].to_numpy()
    share = float(subjects["share"][0])
    null_model = params.null_tested or NullModelParams()
    level = replace(null_model, false_alarm_probability=null_model.false_alarm_probability / share)
    of_level = replace(params, methods=("null_tested",), null_tested=level)
    signals = Ragged(calls * np.repeat(hz, counts), offsets)
    (answer,) = search.find_periods(signals, hz, np.zeros(len(hz)), of_level)
    values = {
        "metadata_call_count": np.add.reduceat(calls, offsets[:-1]).astype(np.int64),
        "sampling_hz": hz,
        **dict(make_columns(answer, share)),
    }
    columns = pl.DataFrame(values).with_columns(pl.col(pl.Float64).fill_nan(None))
    keys = subjects.select("ended_on", *_SUBJECT)
    return pl.concat([keys, columns], how="horizontal").select(METADATA_PERIODS.column_names)


def make_columns(answer: Periods, share: float) -> Iterator[tuple[str, pl.Series]]:
    """Yield the columns that describe the periods.

    share: number of signals that share the significance level; it multiplies the false-alarm probabilities.
    """
    detections, segments = answer.detections, answer.segments
    assert segments is not None
    yield "outcome", pl.Series(detections.outcome.tolist(), dtype=pl.String)
    numbers = {
        "window_start_s": detections.window_start_s,
        "window_end_s": detections.window_end_s,
        "frequency_hz": detections.frequency_hz,
        "period_s": detections.period_s,
        "period_error_s": detections.details_or_nan.period_error_s,
        "window_call_ratio": detections.details_or_nan.window_bytes_ratio,
        "burst_width_s": answer.burst_width_s,
        "duty_ratio": np.minimum(answer.burst_width_s * detections.frequency_hz, 1.0),
        "confidence": detections.confidence,
        "false_alarm_probability": np.minimum(detections.false_alarm_probability * share, 1.0),
    }
    yield from ((name, pl.Series(values)) for name, values in numbers.items())
    segment_values = {
        "segment_starts_s": segments.start_s,
        "segment_ends_s": segments.end_s,
        "segment_periods_s": 1.0 / segments.frequency_hz,
    }
    is_told = pl.Series(detections.is_periodic)
    for name, values in segment_values.items():
        lists = list_column(Ragged(values, segments.offsets))
        yield name, pl.select(pl.when(is_told).then(lists)).to_series()


STEP = Step(
    "metadata periods",
    find,
    reads=(read_built(TRACE_JOBS), read_landed_of_traces(TRACE_METADATA)),
    writes=(METADATA_GRIDS, METADATA_PERIODS),
    days=lambda run: run.plan.job_days,
    is_daily=True,
    is_needed=lambda run, day: bool(run.built(TRACE_JOBS, [day])),
)

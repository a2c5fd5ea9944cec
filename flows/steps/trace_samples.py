"""Compute trace samples: the bytes over time that traces recorded for each run, compared with the polls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from iosig.estimates.columns import floats, list_column
from iosig.flows.steps.exact_samples import list_files_during
from iosig.flows.steps.items import Day, StepContext, TableFile
from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Input, Step, read_built, read_live
from iosig.settings.model import TraceSettings
from iosig.transforms import exact_series, sample_checks
from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of, places_of
from iosig.transforms.exact_series import Grids, Intervals
from iosig.transforms.sample_checks import Excess
from iosig.warehouse.contracts.job_io import JOB_IO_SOURCES
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.samples import GRID_STEPS, RUNS, TRACE_RUNS, TRACE_SAMPLES, TRACE_SERIES
from iosig.warehouse.contracts.traces import TRACE_COUNTERS, TRACE_JOBS, TRACE_SIGNALS

_TRACED = (TRACE_JOBS, TRACE_COUNTERS, TRACE_SIGNALS, JOB_IO_SOURCES)
_RUN = ["cluster", "job_id", "started_at", "direction"]
#: minimum share of a sample's bytes that must be at polled times
_MIN_COMPARED_RATIO = 0.5


def sample_traces(context: StepContext) -> int:
    """Compute the samples of the runs that ended on a day from their traces. Returns the number of samples."""
    with context.engine() as connection:
        context.expose(connection, JOBS, RUNS, GRID_STEPS, *_TRACED)
        series = context.compute(connection, TRACE_SERIES)
        runs = context.compute(connection, TRACE_RUNS)
    samples = build_samples(runs, series, context.frame(GRID_STEPS), context.settings.traces)
    context.write_days(samples, TRACE_SAMPLES)
    return samples.height


def build_samples(
    runs: pl.DataFrame, series: pl.DataFrame, grid_steps: pl.DataFrame, settings: TraceSettings
) -> pl.DataFrame:
    """Return rows of `trace_samples` for rows of `trace_runs`, `trace_series` and `grid_steps`."""
    intervals, volume_bytes = _list_intervals(runs, series)
    grids, poll_grids = (_make_grids(runs, prefix) for prefix in ("", "poll_"))
    sample, polled = (exact_series.distribute_to_grids(intervals, volume_bytes, grid) for grid in (grids, poll_grids))
    excess = _compare_with_polls(runs, poll_grids, polled, grid_steps, settings)
    sample_bytes = np.bincount(sample.owner, sample.values, runs.height)
    rates = Ragged(sample.values / (grids.step_us / 1e6)[sample.owner], sample.offsets)
    compared = runs.with_columns(
        sample_bytes_per_s=list_column(rates),
        compared_ratio=excess.compared_ratio,
        excess_bytes=pl.Series(excess.excess_bytes).set(pl.Series(excess.compared_ratio == 0), None),
    )
    outcome = _choose_outcome(pl.Series(sample_bytes), settings)
    return compared.with_columns(outcome=outcome).select(TRACE_SAMPLES.column_names).sort(TRACE_SAMPLES.key)


def _choose_outcome(sample_bytes: pl.Series, settings: TraceSettings) -> pl.Expr:
    """Return the outcome: of the trace alone if it is no sample of the whole run, else of its comparison."""
    traced_bytes = pl.col("traced_bytes")
    return (
        pl.when(pl.col("outcome") != "measured")
        .then("outcome")
        .when(sample_bytes < (1 - settings.max_interval_ratio) * traced_bytes)
        .then(pl.lit("incomplete"))
        .when(pl.col("excess_bytes") > settings.max_excess_ratio * traced_bytes)
        .then(pl.lit("differs"))
        .when(pl.col("compared_ratio") < _MIN_COMPARED_RATIO)
        .then(pl.lit("no_polls"))
        .otherwise("outcome")
    )


def _list_intervals(runs: pl.DataFrame, series: pl.DataFrame) -> tuple[Intervals, Ints]:
    """Convert the steps of signals to intervals with whole bytes; no byte is lost between steps."""
    placed = series.join(runs.select(*_RUN, run=pl.int_range(pl.len())), on=_RUN, how="inner")
    steps = placed.select(
        "run",
        "interval_s",
        start_us=pl.col("grid_started_at").dt.epoch("us"),
        step=pl.int_ranges(0, pl.col("step_count")),
        rate="signal_bytes_per_s",
    ).explode("step", "rate", empty_as_null=False)
    interval_us, start_us, step = floats(steps["interval_s"]) * 1e6, steps["start_us"].to_numpy(), steps["step"]
    edges = [start_us + np.round((step.to_numpy() + shift) * interval_us).astype(np.int64) for shift in (0, 1)]
    total = np.round(np.cumsum(floats(steps["rate"]) * interval_us / 1e6))
    volume_bytes = np.diff(total, prepend=0.0).astype(np.int64)
    has_bytes = volume_bytes > 0
    run = steps["run"].cast(pl.Int64).to_numpy()
    return Intervals(edges[0][has_bytes], edges[1][has_bytes], run[has_bytes]), volume_bytes[has_bytes]


def _make_grids(runs: pl.DataFrame, prefix: str) -> Grids:
    """Build grids from the columns of `trace_runs` with a prefix; a run without such a grid has no steps."""
    empty = {"step_us": 1_000_000, "phase_us": 0, "first_step": 1, "last_step": 0}
    return Grids(*(runs[f"{prefix}{name}"].fill_null(value).to_numpy() for name, value in empty.items()))


def _compare_with_polls(
    runs: pl.DataFrame, grids: Grids, own_bytes: Ragged, grid_steps: pl.DataFrame, settings: TraceSettings
) -> Excess:
    """Compare the bytes of runs, on the grids of polls, with all traffic of their file systems."""
    max_delay = np.ceil(settings.max_delay_s * 1e6 / grids.step_us).astype(np.int64)
    first_step, counts = grids.first_step - max_delay, grids.counts + 2 * max_delay
    step, run = places_of(first_step, counts), np.repeat(np.arange(runs.height), counts)
    polled_first, polled_last = (runs[f"polled_{name}_step"].fill_null(0).to_numpy() for name in ("first", "last"))
    is_polled = (step >= polled_first[run]) & (step <= polled_last[run]) & (grids.counts[run] > 0)
    # both directions, one after the other
    shift = np.where((runs["direction"] == "write").to_numpy(), grid_steps.height, 0)
    place = runs["poll_place"].fill_null(0).to_numpy() + shift
    rates = _list_rates(grid_steps, 1 - settings.max_excess_ratio)[(place[run] + step)[is_polled]]
    served_bytes = np.full(len(step), np.nan)
    served_bytes[is_polled] = rates * grids.step_us[run[is_polled]] / 1e6
    return sample_checks.measure_excess(own_bytes, Ragged(served_bytes, offsets_of(counts)), max_delay)


def _list_rates(grid_steps: pl.DataFrame, min_reported_ratio: float) -> Reals:
    """Return the read rates and then the write rates of all steps; NaN where too few controllers reported."""
    is_reported = grid_steps["reported_ratio"].to_numpy() >= min_reported_ratio
    rates = (floats(grid_steps[name]) for name in ("read_bytes_per_s", "write_bytes_per_s"))
    return np.concatenate([np.where(is_reported, of_direction, np.nan) for of_direction in rates])


def _is_traced(run: Run, day: Day) -> bool:
    """Return whether traces ended while runs of the day were active."""
    has_runs = day is not None and bool(run.built(RUNS, [day]))
    return has_runs and any(list_files_during(run, day, [TRACE_JOBS]))


def _list_traces(run: Run, day: Day) -> Iterator[TableFile]:
    """Yield the traces of all days on which runs of this day were active, and of the following day."""
    return list_files_during(run, day, _TRACED)


STEP = Step(
    "trace samples",
    sample_traces,
    reads=(read_live(JOBS), read_built(RUNS, GRID_STEPS), Input(_TRACED, _list_traces)),
    writes=(TRACE_SAMPLES,),
    days=lambda run: run.plan.job_days,
    is_daily=True,
    is_needed=_is_traced,
)

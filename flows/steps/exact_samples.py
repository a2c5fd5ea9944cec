"""Compute exact samples: the bytes that servers counted for each run, on the grid of its file system."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import numpy as np
import polars as pl

from iosig.estimates.columns import epoch_s, list_column, ragged
from iosig.flows.steps.items import Day, StepContext, TableFile
from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Input, Step, read_built, read_live
from iosig.transforms import exact_series, sample_checks
from iosig.transforms.arrays import Bools, Ragged, places_of
from iosig.transforms.exact_series import Grids, Intervals
from iosig.transforms.sample_checks import RunSamples
from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.counters import COUNTER_DELTAS, COUNTER_GAPS, COUNTER_JOB_TOTALS, COUNTERS_DAILY
from iosig.warehouse.contracts.job_io import EXACT_IO, METADATA_IO
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.samples import (
    EXACT_RUNS,
    EXACT_SAMPLES,
    RUN_COUNTER_DELTAS,
    RUNS,
    SAMPLE_CHECKS,
    SAMPLE_PAIRS,
    SAMPLES,
)
from iosig.warehouse.engine_paths import read_parquet, scan_parquet

#: key of a run on a file system
RUN = ["cluster", "job_id", "started_at", "filesystem"]
#: tables of per-job counters
_COUNTED = (COUNTER_JOB_TOTALS, COUNTERS_DAILY, COUNTER_GAPS, COUNTER_DELTAS)


def take_samples(context: StepContext) -> int:
    """Compute the samples of the runs that ended on a day from their counters. Returns the number of samples."""
    with context.engine() as connection:
        context.expose(connection, JOBS, RUNS, SAMPLES, *_COUNTED)
        for table in (RUN_COUNTER_DELTAS, EXACT_RUNS):
            context.build(connection, table)
        runs, rises = (read_parquet(context.path(table)) for table in (EXACT_RUNS, RUN_COUNTER_DELTAS))
        samples = build_samples(runs, rises)
        context.put(connection, EXACT_SAMPLES, samples)
        for table in (EXACT_IO, METADATA_IO):
            context.build(connection, table)
        pairs = context.compute(connection, SAMPLE_PAIRS)
        context.put(connection, SAMPLE_CHECKS, _correlate(pairs))
    return samples.height


def rates_on_grids(runs: pl.DataFrame, rises: pl.DataFrame, *columns: str) -> list[Ragged]:
    """Compute the rates of counters in each step of each run; NaN in steps without scrapes.

    runs, rises: rows of `exact_runs` and `run_counter_deltas`. columns: integer columns of `rises`.
    """
    # arrays refer to runs by number
    numbers = runs.select(*RUN, run=pl.int_range(pl.len()))
    placed = rises.join(numbers, on=RUN, how="inner")
    from_us, until_us = (
        placed[name].dt.epoch("us").to_numpy() for name in ("interval_started_at", "interval_ended_at")
    )
    intervals = Intervals(from_us, until_us, placed["run"].to_numpy())
    grids = Grids(*(runs[name].to_numpy() for name in ("step_us", "phase_us", "first_step", "last_step")))
    step_s, is_scraped = np.repeat(grids.step_us, grids.counts) / 1e6, _mark_scraped_steps(runs, grids)
    amounts = (exact_series.distribute_to_grids(intervals, placed[name].to_numpy(), grids) for name in columns)
    return [Ragged(np.where(is_scraped, amount.values / step_s, np.nan), amount.offsets) for amount in amounts]


def build_samples(runs: pl.DataFrame, rises: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `exact_samples` for rows of `exact_runs` and `run_counter_deltas`."""
    rates = rates_on_grids(runs, rises, "read_bytes", "written_bytes")
    samples = [
        runs.with_columns(direction=pl.lit(direction), sample_bytes_per_s=list_column(of_direction))
        for direction, of_direction in zip(("read", "write"), rates, strict=True)
    ]
    return (
        pl.concat(samples)
        .filter(pl.col("sample_bytes_per_s").list.max().is_not_null())
        .select(EXACT_SAMPLES.column_names)
        .sort(EXACT_SAMPLES.key)
    )


def _mark_scraped_steps(runs: pl.DataFrame, grids: Grids) -> Bools:
    """Mark the steps that overlap the time between the first and the last scrape."""
    run = np.repeat(np.arange(runs.height), grids.counts)
    right = places_of(grids.first_step, grids.counts) * grids.step_us[run] + grids.phase_us[run]
    begin, end = (runs[name].dt.epoch("us").to_numpy()[run] for name in ("coverage_started_at", "coverage_ended_at"))
    marked: Bools = (right > begin) & (right - grids.step_us[run] < end)
    return marked


def _correlate(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `sample_checks` for rows of `sample_pairs`."""
    exact, cut = (
        RunSamples(ragged(pairs[rates]), epoch_s(pairs[start]), pairs[interval].to_numpy())
        for rates, start, interval in (
            ("sample_bytes_per_s", "grid_started_at", "interval_s"),
            ("cut_bytes_per_s", "cut_grid_started_at", "cut_interval_s"),
        )
    )
    correlation = pl.Series(sample_checks.correlate_samples(exact, cut)).fill_nan(None)
    return pairs.with_columns(cut_correlation=correlation).select(SAMPLE_CHECKS.column_names)


def _is_counted(run: Run, day: Day) -> bool:
    """Return whether servers counted per job while runs of the day were active."""
    return day is not None and bool(run.built(RUNS, [day])) and any(_counters(run, day))


def _counters(run: Run, day: Day) -> Iterator[TableFile]:
    """Yield the counters of all days on which runs of this day were active, and of the following day."""
    return list_files_during(run, day, _COUNTED)


def list_files_during(run: Run, day: Day, tables: Sequence[Table]) -> Iterator[TableFile]:
    """Yield the files of all days on which runs that ended on a day were active, and of the following day."""
    assert day
    paths = run.store.locals(file.path for file in run.built(RUNS, [day]))
    runs = scan_parquet(paths).filter(pl.col("ended_on") == day)
    first = runs.select(pl.col("started_at").min().dt.date()).collect().item() or day
    last = day + timedelta(days=1)
    for table in tables:
        yield from (file for file in run.live(table) if file.day is not None and first <= file.day <= last)


STEP = Step(
    "exact samples",
    take_samples,
    reads=(read_live(JOBS), read_built(RUNS, SAMPLES), Input(_COUNTED, _counters)),
    writes=(RUN_COUNTER_DELTAS, EXACT_RUNS, EXACT_SAMPLES, EXACT_IO, METADATA_IO, SAMPLE_CHECKS),
    days=lambda run: run.plan.job_days,
    is_daily=True,
    is_needed=_is_counted,
)

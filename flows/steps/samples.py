"""Cut each run's sample out of its file system's traffic, and count the samples of each application."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import numpy as np
import polars as pl

from iosig.estimates.columns import floats, list_column
from iosig.flows.steps.items import Day, StepContext, TableFile
from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Input, Step, read_built, read_live
from iosig.transforms import arrays
from iosig.warehouse.contracts.job_io import CLIENT_IO, EXACT_IO, JOB_IO_SOURCES, SERVER_IO
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.polls import POLLS_DAILY, TICKS
from iosig.warehouse.contracts.samples import APPLICATIONS, GRID_STEPS, RUNS, SAMPLE_PLACES, SAMPLES, TRACE_SAMPLES
from iosig.warehouse.engine_paths import read_parquet, scan_parquet

#: input tables of `cut_samples`, with the traffic
_TRAFFIC = (POLLS_DAILY, TICKS)


def cut_samples(context: StepContext) -> int:
    """Cut the samples of the runs that ended on a day out of their file systems' traffic.

    Returns the number of samples.
    """
    with context.engine() as connection:
        context.expose(connection, JOBS, *_TRAFFIC)
        for table in (RUNS, GRID_STEPS):
            context.build(connection, table)
        places, grid_steps = context.compute(connection, SAMPLE_PLACES), read_parquet(context.path(GRID_STEPS))
        samples = _cut(places, grid_steps)
        context.put(connection, SAMPLES, samples)
        context.build(connection, SERVER_IO)
    return samples.height


def _has_jobs(run: Run, day: Day) -> bool:
    """Return whether runs ended on a day; on some days, only series or traces end."""
    return day is not None and bool(run.built(JOBS, [day]))


def _there(run: Run, day: Day) -> Iterator[TableFile]:
    """Yield the jobs of a day and overlapping ones, and the polls of all days on which jobs of the day were active.

    Days before the start of the first of these jobs are not read.
    """
    assert day
    jobs = scan_parquet(run.store.locals(file.path for file in run.built(JOBS, [day])))
    first = jobs.select(pl.col("started_at").min().dt.date()).collect().item() or day
    yield from (file for file in run.live(JOBS) if file.day is None or file.day >= first)
    # the last poll of a run that ends at midnight belongs to the next day
    last = date.fromordinal(day.toordinal() + 1)
    for table in _TRAFFIC:
        yield from (file for file in run.live(table) if file.day is not None and first <= file.day <= last)


def join_io(context: StepContext) -> int:
    """Join the bytes of the runs of a day by polls, counters and traces into one table. Returns the number of rows."""
    with context.engine() as connection:
        context.expose(connection, SERVER_IO, EXACT_IO, CLIENT_IO)
        return context.build_days(connection, JOB_IO_SOURCES)


def _cut(places: pl.DataFrame, grid_steps: pl.DataFrame) -> pl.DataFrame:
    """Cut each run's steps out of its file system's grid; runs without any poll have no sample.

    SQL does the joins. The cutting uses array slices, which share the grid's memory; SQL would copy every step of every
    run.
    """
    first = places["first_place"].to_numpy()
    last = first + places["step_count"].to_numpy() - 1
    cut = places.with_columns(
        sample_bytes_per_s=_cut_rates(places, grid_steps, "bytes_per_s"),
        reported_ratios=list_column(arrays.cut(grid_steps["reported_ratio"].to_numpy(), first, last)),
        sample_operations_per_s=_cut_rates(places, grid_steps, "operations_per_s"),
    )
    is_counted = pl.col("sample_operations_per_s").list.max().is_not_null()
    return (
        cut.filter(pl.col("sample_bytes_per_s").list.max().is_not_null())
        .with_columns(
            reported_ratios=pl.when(pl.col("reported_ratios").list.min() < 1).then("reported_ratios"),
            sample_operations_per_s=pl.when(is_counted).then("sample_operations_per_s"),
        )
        .with_columns(volume_operations=pl.col("sample_operations_per_s").list.sum() * pl.col("interval_s"))
        .select(SAMPLES.column_names)
    )


def _cut_rates(places: pl.DataFrame, grid_steps: pl.DataFrame, unit: str) -> pl.Series:
    """Cut the rates of each run in its direction; all NULL if no step has a rate in this unit."""
    columns = [grid_steps[f"{direction}_{unit}"] for direction in ("read", "write")]
    if all(column.null_count() == len(column) for column in columns):
        return pl.Series([None], dtype=pl.List(pl.Float64)).new_from_index(0, places.height)
    # both directions, one after the other
    rates = np.concatenate([floats(column) for column in columns])
    first = places["first_place"].to_numpy() + np.where(places["direction"] == "write", grid_steps.height, 0)
    return list_column(arrays.cut(rates, first, first + places["step_count"].to_numpy() - 1))


def count_applications(context: StepContext) -> int:
    """Count the samples of every application over all days. Returns the number of applications."""
    with context.engine() as connection:
        context.expose(connection, JOBS, JOB_IO_SOURCES, TRACE_SAMPLES)
        return context.build(connection, APPLICATIONS)


CUT = Step(
    "samples",
    cut_samples,
    reads=(Input((JOBS, *_TRAFFIC), _there),),
    writes=(RUNS, GRID_STEPS, SAMPLES, SERVER_IO),
    days=lambda run: run.plan.job_days,
    is_daily=True,
    is_needed=_has_jobs,
)
IO = Step(
    "job i/o sources",
    join_io,
    reads=(read_built(SERVER_IO, EXACT_IO, CLIENT_IO),),
    writes=(JOB_IO_SOURCES,),
    days=lambda run: run.plan.job_days,
    is_daily=True,
)
COUNT = Step("applications", count_applications, (read_live(JOBS, JOB_IO_SOURCES, TRACE_SAMPLES),), (APPLICATIONS,))

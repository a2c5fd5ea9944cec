"""Samples: each run's piece of its file system's traffic, and the applications that the runs are of."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import polars as pl

from flows.arrays import floats, list_column
from flows.steps.run import OF_POLL_DAYS, Day, Run
from transforms import arrays
from warehouse.contracts.job_io import CLIENT_IO, JOB_IO, SERVER_IO
from warehouse.contracts.jobs import JOBS
from warehouse.contracts.samples import APPLICATIONS, GRID_STEPS, RUNS, SAMPLES
from warehouse.store import models
from warehouse.store.store import write_parquet

if TYPE_CHECKING:
    import duckdb


def cut_samples(run: Run, day: date) -> int:
    """Cut the samples of the runs that ended on a day out of their file systems' traffic. Returns the samples."""
    with run.engine() as connection:
        _expose_runs(run, connection, day)
        for table in (RUNS, GRID_STEPS):
            models.build(connection, table, run.path(table, day), run.parameters([day]))
            models.expose(connection, "samples", table, [run.path(table, day)])
        cut = _cut(pl.read_parquet(run.path(RUNS, day)), pl.read_parquet(run.path(GRID_STEPS, day)), day)
        write_parquet(cut, SAMPLES, run.path(SAMPLES, day))
        models.expose(connection, "samples", SAMPLES, [run.path(SAMPLES, day)])
        models.build(connection, SERVER_IO, run.path(SERVER_IO, day), run.parameters([day]))
    return cut.height


def join_io(run: Run, day: Day) -> int:
    """Put what servers and tracers measured of the runs of a day into one table. Returns the rows."""
    with run.engine() as connection:
        for table in (SERVER_IO, CLIENT_IO):
            built = run.path(table, day)
            models.expose(connection, "samples", table, [built] if built.is_file() else [])
        joined = models.select(connection, JOB_IO)
    if not joined.is_empty():
        write_parquet(joined, JOB_IO, run.path(JOB_IO, day))
    return joined.height


def _expose_runs(run: Run, connection: duckdb.DuckDBPyConnection, day: date) -> None:
    """Make the jobs readable, and the polls of all days on which a run of this day was there."""
    models.expose(connection, "stage", JOBS, run.live(JOBS, run.plan.job_days))
    jobs = pl.scan_parquet(run.path(JOBS, day)) if run.path(JOBS, day).is_file() else None
    first = None if jobs is None else jobs.select(pl.col("started_at").min().dt.date()).collect().item()
    # The last poll of a run that ends at midnight is the next day's.
    within = (first or day, date.fromordinal(day.toordinal() + 1))
    for table in OF_POLL_DAYS:
        models.expose(connection, "stage", table, run.live(table, run.plan.poll_days, within))


def _cut(runs: pl.DataFrame, grid_steps: pl.DataFrame, day: date) -> pl.DataFrame:
    """Cut each run's steps out of its grid, both directions; runs without any poll have no sample."""
    grid = ("filesystem", "step_us", "phase_us")
    wanted = runs.filter(pl.col("ended_on") == day, pl.col("step_us").is_not_null()).with_row_index("run")
    places = (
        grid_steps.with_row_index("place")
        .group_by(grid, maintain_order=True)
        .agg(pl.col("place").first().cast(pl.Int64), pl.col("step").first().alias("grid_first_step"))
    )
    placed = wanted.join(places, on=grid, how="left").sort("run")
    first = (placed["place"] + placed["first_step"] - placed["grid_first_step"]).to_numpy()
    last = first + (placed["last_step"] - placed["first_step"]).to_numpy()
    columns = {"read": "read_bytes_per_s", "write": "write_bytes_per_s"}
    ratios = list_column(arrays.cut(grid_steps["reported_ratio"].to_numpy(), first, last))
    cut = [
        placed.with_columns(
            direction=pl.lit(direction),
            sample_bytes_per_s=list_column(arrays.cut(floats(grid_steps[column]), first, last)),
            reported_ratios=ratios,
        )
        for direction, column in columns.items()
    ]
    grid_started_us = (pl.col("first_step") - 1) * pl.col("step_us") + pl.col("phase_us")
    return (
        pl.concat(cut)
        .filter(pl.col("sample_bytes_per_s").list.max().is_not_null())
        .with_columns(
            reported_ratios=pl.when(pl.col("reported_ratios").list.min() < 1).then("reported_ratios"),
            grid_started_at=grid_started_us.cast(pl.Datetime("us")).dt.replace_time_zone("UTC"),
            step_count=pl.col("last_step") - pl.col("first_step") + 1,
        )
        .select(SAMPLES.column_names)
        .sort("application_id", "cluster", "job_id", "started_at", "filesystem", "direction")
    )


def count_applications(run: Run) -> int:
    """Count the samples of every application over all days. Returns the applications."""
    with run.engine() as connection:
        models.expose(connection, "stage", JOBS, run.live(JOBS, run.plan.job_days))
        models.expose(connection, "samples", JOB_IO, run.live(JOB_IO, run.plan.job_days))
        path = models.build(connection, APPLICATIONS, run.path(APPLICATIONS, None))
    return int(pl.scan_parquet(path).select(pl.len()).collect().item())

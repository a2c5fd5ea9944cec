"""Stage: one truth per thing, out of all that was landed."""

from __future__ import annotations

from datetime import date

import polars as pl

from flows.steps.checks import keep_verdict, limits
from flows.steps.run import Run, write_days
from warehouse.contracts import frames, tables
from warehouse.store import landing, models
from warehouse.store.store import write_parquet


def stage_jobs(run: Run) -> int:
    """Stage the runs and series of the plan's days; rows that break a rule go to quarantine. Returns the rows."""
    days = run.plan.job_days
    with run.engine() as connection:
        run.expose_landed(connection, tables.JOB_RECORDS)
        run.expose_landed(connection, tables.SERIES)
        staged = models.select(connection, tables.JOBS, run.parameters(days))
        intervals = models.select(connection, tables.SERIES_INTERVALS, run.parameters(days))
    checked = run.checker.check(tables.JOBS, staged, limits(run.settings)).result()
    keep_verdict(run, tables.JOBS, checked)
    write_days(run, tables.JOBS, checked.good, days)
    write_days(run, tables.SERIES_INTERVALS, intervals, days)
    write_parquet(checked.quarantined, tables.QUARANTINE, run.folder / "faulty_jobs.parquet")
    return checked.good.height


def stage_polls(run: Run, day: date) -> int:
    """Stage one day of polls: doubles resolved, controllers summed. Returns the ticks."""
    parts = [part for _, part in run.plan.parts(tables.POLLS.name, day)]
    with run.engine() as connection:
        run.expose_landed(connection, tables.POLLS, day)
        steps = [tables.REPEATED_POLLS, tables.FAULTY_POLLS, tables.POLL_TICKS, tables.POLL_DAYS, tables.TICKS]
        if not landing.may_repeat(parts):
            write_parquet(frames.empty(tables.REPEATED_POLLS), tables.REPEATED_POLLS, run.path(steps.pop(0), day))
            models.expose(connection, "stage", tables.REPEATED_POLLS, [run.path(tables.REPEATED_POLLS, day)])
        for table in steps:
            models.build(connection, table, run.path(table, day), run.parameters([day]))
            models.expose(connection, "stage", table, [run.path(table, day)])
    return int(pl.scan_parquet(run.path(tables.TICKS, day)).select(pl.len()).collect().item())

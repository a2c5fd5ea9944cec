"""Stage: one truth per thing, out of all that was landed."""

from __future__ import annotations

from datetime import date

import polars as pl

from flows.steps.checks import keep_verdict, limits
from flows.steps.run import Run, write_days
from warehouse.contracts import frames
from warehouse.contracts.jobs import JOB_RECORDS, JOBS
from warehouse.contracts.polls import FAULTY_POLLS, POLL_DAYS, POLL_TICKS, POLLS, REPEATED_POLLS, TICKS
from warehouse.contracts.quality import QUARANTINE
from warehouse.contracts.series import SERIES, SERIES_INTERVALS
from warehouse.store import landing, models
from warehouse.store.store import write_parquet


def stage_jobs(run: Run) -> int:
    """Stage the runs and series of the plan's days; rows that break a rule go to quarantine. Returns the rows."""
    days = run.plan.job_days
    with run.engine() as connection:
        run.expose_landed(connection, JOB_RECORDS)
        run.expose_landed(connection, SERIES)
        staged = models.select(connection, JOBS, run.parameters(days))
        intervals = models.select(connection, SERIES_INTERVALS, run.parameters(days))
    checked = run.checker.check(JOBS, staged, limits(run.settings)).result()
    keep_verdict(run, JOBS, checked)
    write_days(run, JOBS, checked.good, days)
    write_days(run, SERIES_INTERVALS, intervals, days)
    write_parquet(checked.quarantined, QUARANTINE, run.folder / "faulty_jobs.parquet")
    return checked.good.height


def stage_polls(run: Run, day: date) -> int:
    """Stage one day of polls: doubles resolved, controllers summed. Returns the ticks."""
    parts = [part for _, part in run.plan.parts(POLLS.name, day)]
    with run.engine() as connection:
        run.expose_landed(connection, POLLS, day)
        steps = [REPEATED_POLLS, FAULTY_POLLS, POLL_TICKS, POLL_DAYS, TICKS]
        if not landing.may_repeat(parts):
            write_parquet(frames.empty(REPEATED_POLLS), REPEATED_POLLS, run.path(steps.pop(0), day))
            models.expose(connection, "stage", REPEATED_POLLS, [run.path(REPEATED_POLLS, day)])
        for table in steps:
            models.build(connection, table, run.path(table, day), run.parameters([day]))
            models.expose(connection, "stage", table, [run.path(table, day)])
    return int(pl.scan_parquet(run.path(TICKS, day)).select(pl.len()).collect().item())

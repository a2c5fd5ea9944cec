"""Stage: one truth per thing, out of all that was landed."""

from __future__ import annotations

from flows.steps.checks import FAULTY_JOBS, checked, verdicts_on
from flows.steps.pieces import Given
from flows.steps.run import Work, landed, landed_on_day
from warehouse.contracts import frames
from warehouse.contracts.extrapolations import EXTRAPOLATION_RECORDS, EXTRAPOLATIONS
from warehouse.contracts.jobs import JOB_RECORDS, JOBS
from warehouse.contracts.polls import FAULTY_POLLS, POLL_DAYS, POLL_TICKS, POLLS, REPEATED_POLLS, TICKS
from warehouse.contracts.series import SERIES, SERIES_INTERVALS
from warehouse.store import models
from warehouse.store.manifests import may_repeat
from warehouse.store.store import write_parquet


def stage_jobs(given: Given) -> int:
    """Stage the runs and series of the plan's days; rows that break a rule go to quarantine. Returns the rows."""
    with given.engine() as connection:
        given.expose_landed(connection, JOB_RECORDS, SERIES)
        staged = models.select(connection, JOBS, given.parameters())
        intervals = models.select(connection, SERIES_INTERVALS, given.parameters())
    (found,) = checked(given, JOBS, [staged])
    given.write_days(found.good, JOBS)
    given.write_days(intervals, SERIES_INTERVALS)
    given.write_days(found.quarantined, FAULTY_JOBS, is_sparse=False)
    return found.good.height


def stage_polls(given: Given) -> int:
    """Stage one day of polls: doubles resolved, controllers summed. Returns the ticks."""
    with given.engine() as connection:
        given.expose_landed(connection, POLLS)
        if may_repeat([part for _, part in given.parts(POLLS)]):
            given.build(connection, REPEATED_POLLS)
        else:
            path = given.path(REPEATED_POLLS)
            write_parquet(frames.empty(REPEATED_POLLS), REPEATED_POLLS, path)
            models.expose(connection, "stage", REPEATED_POLLS, [path])
        for table in (FAULTY_POLLS, POLL_TICKS, POLL_DAYS):
            given.build(connection, table)
        return given.build(connection, TICKS)


def gather_extrapolations(given: Given) -> int:
    """Gather the extrapolations of all landed records: of every set of traces and rank count the latest."""
    with given.engine() as connection:
        given.expose_landed(connection, EXTRAPOLATION_RECORDS)
        return given.build(connection, EXTRAPOLATIONS)


POLLS_WORK = Work(
    "stage polls",
    stage_polls,
    reads=(landed_on_day(POLLS),),
    writes=(REPEATED_POLLS, FAULTY_POLLS, POLL_TICKS, POLL_DAYS, TICKS),
    daily=lambda plan: plan.poll_days,
)
JOBS_WORK = Work(
    "stage jobs",
    stage_jobs,
    reads=(landed(JOB_RECORDS, SERIES),),
    writes=(JOBS, SERIES_INTERVALS, FAULTY_JOBS, verdicts_on(JOBS)),
    days=lambda plan: plan.job_days,
    is_check=True,
)
EXTRAPOLATIONS_WORK = Work("extrapolations", gather_extrapolations, (landed(EXTRAPOLATION_RECORDS),), (EXTRAPOLATIONS,))

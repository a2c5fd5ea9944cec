"""Stage landed inputs: resolve duplicates and contradictions, and validate the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iosig.flows.steps.checks import check_rows, verdicts_on
from iosig.flows.steps.items import StepContext
from iosig.flows.steps.step import Step, read_built, read_landed, read_landed_on_day
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.extrapolations import EXTRAPOLATION_RECORDS, EXTRAPOLATIONS
from iosig.warehouse.contracts.jobs import JOB_RECORDS, JOBS, QUEUE_RECORDS, QUEUED_JOBS
from iosig.warehouse.contracts.polls import (
    COUNTER_POLLS,
    FAULTY_POLLS,
    POLL_TICKS,
    POLLS,
    POLLS_DAILY,
    REPEATED_POLLS,
    TICKS,
)
from iosig.warehouse.contracts.quality import FAULTY_JOBS
from iosig.warehouse.contracts.reviews import CLASS_REVIEWS, REVIEW_RECORDS
from iosig.warehouse.contracts.series import SERIES, SERIES_INTERVALS
from iosig.warehouse.store import models
from iosig.warehouse.store.manifests import may_repeat

if TYPE_CHECKING:
    import duckdb


def stage_jobs(context: StepContext) -> int:
    """Stage the runs and series of the plan's days; rows that break a rule go to quarantine.

    Returns the number of rows.
    """
    with context.engine() as connection:
        context.expose_landed(connection, JOB_RECORDS, SERIES)
        staged = models.select(connection, JOBS, context.parameters())
        context.build_days(connection, SERIES_INTERVALS)
    checked = check_rows(context, JOBS, staged)
    context.write_days(checked.good, JOBS)
    context.write_days(checked.quarantined, FAULTY_JOBS, is_sparse=False)
    return checked.good.height


def stage_queue(context: StepContext) -> int:
    """Stage one day of queue snapshots. Returns the number of rows."""
    with context.engine() as connection:
        context.expose_landed(connection, QUEUE_RECORDS)
        return context.build(connection, QUEUED_JOBS)


def stage_polls(context: StepContext) -> int:
    """Stage one day of polls: resolve duplicates, and sum over controllers. Returns the number of ticks."""
    with context.engine() as connection:
        context.expose_landed(connection, POLLS)
        _join_counters(context, connection)
        may_conflict = may_repeat([part for _, part in context.parts(POLLS)])
        if may_conflict:
            models.compute(connection, REPEATED_POLLS, context.parameters())
        else:
            models.expose(connection, REPEATED_POLLS.layer, REPEATED_POLLS, [])
        ticks = models.compute(connection, POLL_TICKS, context.parameters())
        # reading a day of polls again takes as long as summing it
        if may_conflict or ticks.filter("implausible_poll_count > 0").limit(1).fetchall():
            context.build(connection, FAULTY_POLLS)
        else:
            context.put(connection, FAULTY_POLLS, frames.empty(FAULTY_POLLS))
        context.build(connection, POLLS_DAILY)
        return context.build(connection, TICKS)


def _join_counters(context: StepContext, connection: duckdb.DuckDBPyConnection) -> None:
    """Add polls derived from the counters of targets, for file systems without landed polls on that day."""
    if context.files(COUNTER_POLLS):
        context.expose(connection, COUNTER_POLLS)
        models.extend_landed(connection, POLLS, COUNTER_POLLS, unless_in="filesystem")


def gather_extrapolations(context: StepContext) -> int:
    """Gather the latest extrapolation for each set of traces and rank count, from all landed records."""
    with context.engine() as connection:
        context.expose_landed(connection, EXTRAPOLATION_RECORDS)
        return context.build(connection, EXTRAPOLATIONS)


def gather_reviews(context: StepContext) -> int:
    """Gather each reviewer's latest review of a class, from all landed records."""
    with context.engine() as connection:
        context.expose_landed(connection, REVIEW_RECORDS)
        return context.build(connection, CLASS_REVIEWS)


POLLS_STEP = Step(
    "stage polls",
    stage_polls,
    reads=(read_landed_on_day(POLLS), read_built(COUNTER_POLLS)),
    writes=(FAULTY_POLLS, POLLS_DAILY, TICKS),
    days=lambda run: run.plan.poll_days,
    is_daily=True,
)
JOBS_STEP = Step(
    "stage jobs",
    stage_jobs,
    reads=(read_landed(JOB_RECORDS, SERIES),),
    writes=(JOBS, SERIES_INTERVALS, FAULTY_JOBS, verdicts_on(JOBS)),
    days=lambda run: run.plan.job_days,
    is_check=True,
)
QUEUE_STEP = Step(
    "stage queue",
    stage_queue,
    reads=(read_landed_on_day(QUEUE_RECORDS),),
    writes=(QUEUED_JOBS,),
    days=lambda run: run.plan.queue_days,
    is_daily=True,
)
EXTRAPOLATIONS_STEP = Step(
    "extrapolations", gather_extrapolations, (read_landed(EXTRAPOLATION_RECORDS),), (EXTRAPOLATIONS,)
)
REVIEWS_STEP = Step("reviews", gather_reviews, (read_landed(REVIEW_RECORDS),), (CLASS_REVIEWS,))

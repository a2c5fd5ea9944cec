"""Validate the landed rows from which a step computes its tables.

Each check covers the days that the step recomputes, so a night validates no older rows. Verdicts are stored by day like
those of published tables.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

from iosig.flows.steps import counters, predictions, stage, traces
from iosig.flows.steps.checks import keep_verdicts, verdicts_on
from iosig.flows.steps.items import Day, StepContext
from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Input, Step, read_built, read_landed, read_landed_of_traces, read_landed_on_day
from iosig.warehouse.contracts import Table, table as table_named
from iosig.warehouse.contracts.counters import COUNTER_SAMPLES, SCRAPES
from iosig.warehouse.contracts.events import REQUEST_EVENTS
from iosig.warehouse.contracts.extrapolations import EXTRAPOLATION_RECORDS
from iosig.warehouse.contracts.jobs import JOB_RECORDS, QUEUE_RECORDS
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.contracts.predictions import PREDICTION_RECORDS
from iosig.warehouse.contracts.reviews import REVIEW_RECORDS
from iosig.warehouse.contracts.series import SERIES
from iosig.warehouse.contracts.traces import (
    TRACE_CALLS,
    TRACE_FILES,
    TRACE_JOBS,
    TRACE_METADATA,
    TRACE_MODULES,
    TRACE_RECORDS,
    TRACE_REQUESTS,
    TRACES,
)
from iosig.warehouse.store import models

#: landed tables of a traced run
_OF_TRACES = (
    TRACES,
    TRACE_MODULES,
    TRACE_FILES,
    TRACE_RECORDS,
    TRACE_REQUESTS,
    TRACE_METADATA,
    TRACE_CALLS,
    REQUEST_EVENTS,
)
#: rows of series with the end of their subject, which determines the day
_SERIES_ROWS = "select *, max(time_s) over (partition by subject_id) as last_s from landed.series"
#: SQL of the day of a row: that of a daily work item, or NULL
_ITEM_DAY = "list_extract($days::date[], 1)"
#: by table: SQL of the day of a row in an item of several days
_OWN_DAYS = {
    JOB_RECORDS: "(rows.ended_at at time zone 'UTC')::date",
    SERIES: "case when rows.last_s between 1e9 and 1e10 then (to_timestamp(rows.last_s) at time zone 'UTC')::date end",
}


def validate_landed(context: StepContext) -> int:
    """Validate landed tables against their suites.

    Returns the number of verdicts, one for each expectation and day with rows.
    """
    tables = [table_named(file.table.rpartition("/")[2]) for file in context.item.writes]
    return sum(_validate(context, table) for table in dict.fromkeys(tables))


def _validate(context: StepContext, table: Table) -> int:
    from iosig.expectations import landed, suites

    days = context.days or (None,)
    if not context.parts(table):
        return keep_verdicts(context, table, [], days)
    with context.engine() as connection:
        context.expose_landed(connection, table)
        models.expose_frame(connection, "landed", "landings", _list_landings(context, table))
        rows = landed.LandedRows(suites.add_landing_columns(table), _select_rows(table), days)
        return keep_verdicts(context, table, [landed.check(connection, rows)], days)


def _select_rows(table: Table) -> str:
    """Build SQL that selects the rows of a landed table, with their landing and their day."""
    source = f"({_SERIES_ROWS})" if table == SERIES else f"landed.{table.name}"
    return f"""
        select rows.*, landings.input_file, landings.landed_at, {_OWN_DAYS.get(table, _ITEM_DAY)} as checked_on
        from {source} as rows
        inner join landed.landings using (landing_id)
    """


def _list_landings(context: StepContext, table: Table) -> pl.DataFrame:
    """Return the landings of a table, with file and time."""
    known = {
        landing.landing_id: (landing.source_file, datetime.fromisoformat(landing.landed_at))
        for landing, _ in context.parts(table)
    }
    schema = {"landing_id": pl.String(), "input_file": pl.String(), "landed_at": pl.Datetime("us", "UTC")}
    return pl.DataFrame([(name, *values) for name, values in known.items()], schema=schema, orient="row")


def _is_undecided(run: Run, _: Day) -> bool:
    return not run.is_decided


def _has_traces(run: Run, day: Day) -> bool:
    """Return whether traced runs ended on a day, in this run or in the base release."""
    has_rows = bool(run.built(TRACE_JOBS, [day])) or any(file.day == day for file in run.list_base_files(TRACE_JOBS))
    return has_rows and _is_undecided(run, day)


def _make_check(step: Step, *tables: Table, reads: tuple[Input, ...]) -> Step:
    """Return the check of landed tables on the days of a step."""
    return Step(
        f"check landed {step.name.removeprefix('stage ')}",
        validate_landed,
        reads=reads,
        writes=tuple(map(verdicts_on, tables)),
        days=step.days,
        is_daily=step.is_daily,
        is_needed=_has_traces if TRACES in tables else _is_undecided,
        is_repeated=True,
    )


_CHECKS = {
    step.name: _make_check(step, *tables, reads=reads)
    for step, tables, reads in (
        (stage.POLLS_STEP, (POLLS,), (read_landed_on_day(POLLS),)),
        (stage.JOBS_STEP, (JOB_RECORDS, SERIES), (read_landed(JOB_RECORDS, SERIES),)),
        (stage.QUEUE_STEP, (QUEUE_RECORDS,), (read_landed_on_day(QUEUE_RECORDS),)),
        (counters.RISES, (COUNTER_SAMPLES, SCRAPES), (read_landed_on_day(COUNTER_SAMPLES, SCRAPES),)),
        (predictions.STEP, (PREDICTION_RECORDS,), (read_landed_on_day(PREDICTION_RECORDS),)),
        (traces.SIGNALS, _OF_TRACES, (read_built(TRACE_JOBS), read_landed_of_traces(*_OF_TRACES))),
        (stage.EXTRAPOLATIONS_STEP, (EXTRAPOLATION_RECORDS,), (read_landed(EXTRAPOLATION_RECORDS),)),
        (stage.REVIEWS_STEP, (REVIEW_RECORDS,), (read_landed(REVIEW_RECORDS),)),
    )
}


def make_landed_check(step: Step) -> Step | None:
    """Return the check of the landed rows from which a step computes its tables, None for other steps."""
    return _CHECKS.get(step.name)

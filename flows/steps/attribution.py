"""Attribute a file system's traffic to runs, by counters, traces and signatures.

A day's runs are placed on the traffic together with the runs that overlap them, and the day's own rows are kept. Bytes
that servers counted for a run, or that its trace recorded over time, are subtracted first; signatures are fitted to the
residual. Days are placed independently, so runs of two days may claim the same bytes. A second pass (`limit_day`)
therefore limits the attributed bytes of each minute to the polled bytes. Finally, each run gets its best estimate of
bytes (`job_io`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

import polars as pl

from iosig.estimates.attribution import (
    ActiveRuns,
    TrafficAttribution,
    compute_slowdowns,
    extract_traffic,
    list_signatures,
)
from iosig.flows.steps.items import Day, StepContext, TableFile
from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Input, Step, read_built, read_undated
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.attribution import ATTRIBUTED_IO, ATTRIBUTION_DAILY, PLACED_IO, POLLED_MINUTES, SLOWDOWNS
from iosig.warehouse.contracts.job_io import JOB_IO, JOB_IO_SOURCES
from iosig.warehouse.contracts.polls import TICKS
from iosig.warehouse.contracts.samples import EXACT_SAMPLES, GRID_STEPS, OWN_SERIES, RUNS
from iosig.warehouse.contracts.signatures import SIGNATURE_BURSTS, SIGNATURES
from iosig.warehouse.contracts.traces import TRACE_JOBS, TRACE_SIGNALS
from iosig.warehouse.engine_paths import scan_parquet
from iosig.warehouse.store import models

if TYPE_CHECKING:
    import duckdb

_GRID = ("filesystem", "step_us", "phase_us")
#: tables with the bytes of single runs over time
_SERIES_TABLES = (EXACT_SAMPLES, JOB_IO_SOURCES, TRACE_JOBS, TRACE_SIGNALS)
#: maximum number of days before the end of a run on which its bytes are attributed
_MAX_DAYS_TO_RUN_END = 31


def attribute(context: StepContext) -> int:
    """Place the runs of a day, and overlapping runs, on the traffic during these runs.

    Returns the number of rows of the day.
    """
    runs, steps = context.frame(RUNS), context.frame(GRID_STEPS)
    # signatures of other applications are not needed
    was_there = pl.col("application_id").is_in(runs["application_id"].unique().implode())
    signatures, bursts = (context.scan(table).filter(was_there).collect() for table in (SIGNATURES, SIGNATURE_BURSTS))
    all_signatures = list_signatures(signatures, bursts)
    with context.engine() as connection:
        context.expose(connection, *_SERIES_TABLES)
        own_series = context.compute(connection, OWN_SERIES)
    placed_rows, slowdowns = [frames.empty(PLACED_IO)], [frames.empty(SLOWDOWNS)]
    for key, grid in steps.partition_by(_GRID, as_dict=True, maintain_order=True).items():
        is_here = [pl.col(name) == value for name, value in zip(_GRID, key, strict=True)]
        is_own = pl.all_horizontal(pl.col("ended_on") == context.days[0], *is_here).fill_null(value=False)
        filesystem_runs = runs.filter(is_here[0]).with_columns(is_own=is_own)
        traffic_by_direction = []
        for direction in ("read", "write"):
            in_direction = (is_here[0], pl.col("direction") == direction)
            active_runs = ActiveRuns.select(
                filesystem_runs, all_signatures.filter(in_direction), own_series.filter(in_direction)
            )
            if active_runs.has_own:
                traffic_by_direction.append(
                    (active_runs, extract_traffic(grid, direction, active_runs.window()), direction)
                )
        attributions = TrafficAttribution.attribute(traffic_by_direction)
        placed_rows += [attribution.rows() for attribution in attributions]
        slowdowns += [compute_slowdowns(attributions)] if attributions else []
    rows = pl.concat(placed_rows).sort(PLACED_IO.key)
    context.write_days(rows, PLACED_IO)
    context.write_days(pl.concat(slowdowns).sort(SLOWDOWNS.key), SLOWDOWNS)
    return rows.height


# ---- limits, and days


def limit_day(context: StepContext) -> int:
    """Limit a day's attributed bytes to the polled bytes that were neither counted nor traced for a run.

    Returns the number of rows.
    """
    with context.engine() as connection:
        _expose_minutes(context, connection)
        # days that are not recomputed contribute their published rows
        models.expose(
            connection, PLACED_IO.layer, PLACED_IO, [*context.files(PLACED_IO), *context.files(ATTRIBUTED_IO)]
        )
        return context.build(connection, ATTRIBUTED_IO)


def count_days(context: StepContext) -> int:
    """Compare the attributed bytes of a day with its polls. Returns the number of rows."""
    with context.engine() as connection:
        _expose_minutes(context, connection)
        context.expose(connection, ATTRIBUTED_IO)
        return context.build(connection, ATTRIBUTION_DAILY)


def estimate_io(context: StepContext) -> int:
    """Choose the best source of bytes for each run of a day, and add a range. Returns the number of rows."""
    with context.engine() as connection:
        context.expose(connection, JOB_IO_SOURCES, ATTRIBUTED_IO)
        # the inputs of overlapping days are complete only for the runs of this day
        return context.build_days(connection, JOB_IO, is_sparse=False)


def _expose_minutes(context: StepContext, connection: duckdb.DuckDBPyConnection) -> None:
    context.expose(connection, TICKS)
    models.compute(connection, POLLED_MINUTES)


def list_affected_days(run: Run) -> Sequence[date]:
    """Return the plan's days, and published days with runs that overlap runs of the plan's days."""
    job_days = {day for day in run.plan.job_days if day is not None}
    published = {file.day for file in run.list_base_files(JOB_IO) if file.day is not None} - job_days
    return sorted(job_days.union(*(_overlapping(run, day) & published for day in job_days)))


def _overlapping(run: Run, day: date) -> set[date]:
    """Return the days on which runs that overlap the runs of a day may have ended, including the day itself."""
    first = _first_day(run, day)
    later = (day + timedelta(days=day_count) for day_count in range(1, _MAX_DAYS_TO_RUN_END + 1))
    return {
        *(first + timedelta(days=number) for number in range((day - first).days + 1)),
        *(later_day for later_day in later if _first_day(run, later_day) <= day),
    }


def _days(run: Run) -> Sequence[date]:
    """Return the days of polls, their neighbors, and days with runs that have new limits.

    A poll may reach into the minutes of the day before or after.
    """
    days = {day + timedelta(days=offset) for day in run.plan.poll_days for offset in (-1, 0, 1)}
    for ended_on in run.plan.job_days:
        if ended_on is not None:
            first = _first_day(run, ended_on)
            days |= {first + timedelta(days=number) for number in range((ended_on - first).days + 1)}
    return sorted(days)


def _first_day(run: Run, day: date) -> date:
    """Return the day on which the first of the runs that ended on a day began, in this run or in the base release."""
    if day not in run.backfill_days:
        now, before = run.built(RUNS, [day]), [file for file in run.list_base_files(JOB_IO) if file.day == day]
        first_days = [day]
        for file in (*now, *before):
            rows = scan_parquet(run.store.here(run.store.root / file.path)).filter(pl.col("ended_on") == day)
            began_at = rows.select(pl.col("started_at").min()).collect().item()
            if began_at is not None:
                first_days.append(max(began_at.date(), day - timedelta(days=_MAX_DAYS_TO_RUN_END)))
        run.backfill_days[day] = min(first_days)
    return run.backfill_days[day]


def _select_ticks(run: Run, first: date, last: date) -> Iterator[TableFile]:
    """Yield the ticks of a range of days, and of one more day on either side, since polls may span midnight."""
    edges = first - timedelta(days=1), last + timedelta(days=1)
    yield from (file for file in run.live(TICKS) if file.day is not None and edges[0] <= file.day <= edges[1])


def _claims(run: Run, day: Day) -> Iterator[TableFile]:
    """Yield the inputs of `limit_day`: the placed rows of all days with runs that overlap the day, and the polls."""
    assert day
    days = _overlapping(run, day)
    yield from run.built(PLACED_IO, [job_day for job_day in run.plan.job_days if job_day in days])
    for file in run.list_base_files(ATTRIBUTED_IO):
        if file.day in days and file.day not in run.plan.job_days:
            yield replace(file, is_released=False)
    yield from _select_ticks(run, min(days), day)


def _near(run: Run, day: Day) -> Iterator[TableFile]:
    """Yield the ticks around a day, and the attributed bytes of runs that may overlap it."""
    assert day
    yield from _select_ticks(run, day, day)
    released = {file.day: replace(file, is_released=False) for file in run.list_base_files(ATTRIBUTED_IO)}
    for day_count in range(_MAX_DAYS_TO_RUN_END + 1):
        ended_on = day + timedelta(days=day_count)
        yield from run.built(ATTRIBUTED_IO, [ended_on]) or [file for on, file in released.items() if on == ended_on]


def _sources(run: Run, day: Day) -> list[TableFile]:
    """Return the sources of bytes for a day and overlapping days, since a trace may end on another day than its run."""
    days = {None} if day is None else _overlapping(run, day)
    return [file for file in run.live(JOB_IO_SOURCES) if file.day in days]


def _is_polled(run: Run, day: Day) -> bool:
    return any(file.day == day for file in run.live(TICKS))


def _has_runs(run: Run, day: Day) -> bool:
    """Return whether runs ended on the day."""
    return bool(run.built(RUNS, [day]))


def _own_series(run: Run, day: Day) -> Iterator[TableFile]:
    """Yield the counters and traces of the runs of a day and of those that overlap them."""
    assert day
    first = _first_day(run, day)
    for table in _SERIES_TABLES:
        yield from (file for file in run.live(table) if file.day and first <= file.day <= day + timedelta(days=1))


PLACE = Step(
    "attribution",
    attribute,
    reads=(
        read_built(RUNS, GRID_STEPS),
        Input(_SERIES_TABLES, _own_series),
        read_undated(SIGNATURES, SIGNATURE_BURSTS),
    ),
    writes=(PLACED_IO, SLOWDOWNS),
    days=lambda run: [day for day in run.plan.job_days if day is not None],
    is_daily=True,
    is_needed=_has_runs,
)
LIMITS = Step(
    "attribution limits",
    limit_day,
    reads=(Input((PLACED_IO, ATTRIBUTED_IO, TICKS, RUNS), _claims),),
    writes=(ATTRIBUTED_IO,),
    days=list_affected_days,
    is_daily=True,
    days_after=(RUNS,),
)
DAYS = Step(
    "explained days",
    count_days,
    reads=(Input((TICKS, ATTRIBUTED_IO), _near),),
    writes=(ATTRIBUTION_DAILY,),
    days=_days,
    is_daily=True,
    days_after=(RUNS,),
    is_needed=_is_polled,
)
ESTIMATES = Step(
    "job i/o",
    estimate_io,
    reads=(Input((JOB_IO_SOURCES, RUNS), _sources), read_built(ATTRIBUTED_IO)),
    writes=(JOB_IO,),
    days=lambda run: [*list_affected_days(run), *([None] if None in run.plan.job_days else [])],
    is_daily=True,
    days_after=(RUNS,),
)

"""Query the report's data on runs, on statistics of all runs, and on file systems."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import polars as pl

from iosig.answers.attribution.slowdowns import find_slowdowns_of_days
from iosig.answers.findings.query import analyze_tables, select_layers
from iosig.answers.population.query import Query, query_population
from iosig.answers.report.samples import downsample
from iosig.answers.wall import storage_calendar
from iosig.reports.site import traces as site_traces
from iosig.reports.site.filesystems import FilesystemFrames
from iosig.reports.site.population import PopulationFrames
from iosig.reports.site.runs import RunFrames, make_empty_findings
from iosig.reports.wall.storage_calendar import CalendarView

if TYPE_CHECKING:
    import duckdb

_DIRECTIONS = ("write", "read")
#: maximum number of days in the heat map
_MAX_DAYS = 62
#: maximum number of steps of a run's sample
MAX_STEPS = 120
_RUN = ["started_at", "job_id", "cluster", "filesystem", "direction"]


#: name of the temporary relation with the selected hours
#: name of the temporary relation with the selected days of file systems
_CHOSEN_HOURS, _CHOSEN_DAYS = "chosen_hours", "chosen_days"


def read_jobs(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """Query cluster, job id and start of all application runs."""
    rows: pl.DataFrame = connection.sql(_JOBS).pl()
    return rows


def read_hours(connection: duckdb.DuckDBPyConnection) -> dict[datetime, frozenset[date | None]]:
    """Map each hour in which runs started to their end days; None stands for runs without an end."""
    rows = connection.sql(_HOURS).fetchall()
    return {
        datetime.fromtimestamp(3600 * hour, UTC): frozenset((*(days or ()), *([None] if is_open else ())))
        for hour, days, is_open in rows
    }


def read_runs(connection: duckdb.DuckDBPyConnection, chosen: Mapping[datetime, Collection[date | None]]) -> RunFrames:
    """Query the frames of runs that started in some hours; chosen: hours with the end days of their runs."""
    numbers = pl.Series([int(hour.timestamp()) // 3600 for hour in chosen], dtype=pl.Int64)
    end_days = sorted({day for days in chosen.values() for day in days if day})
    # bounds on days let DuckDB skip files
    days = {"since": end_days[0] if end_days else None, "until": end_days[-1] if end_days else None}
    connection.register(_CHOSEN_HOURS, pl.DataFrame({"hour": numbers}).to_arrow())
    try:
        samples = downsample(connection, _SAMPLES, MAX_STEPS, days)
        io = connection.sql(_IO, params=days).pl().join(samples, on=_RUN, how="left").sort(_RUN)
        slowed, traced = connection.sql(_SLOWED, params=days).pl(), _analyze_traces(connection)
        return RunFrames(connection.sql(_RUNS, params=days).pl(), io, traced, slowed)
    finally:
        connection.unregister(_CHOSEN_HOURS)


def read_traced_days(connection: duckdb.DuckDBPyConnection) -> dict[datetime, frozenset[date | None]]:
    """Map each hour in which traced runs started to the end days of their traces."""
    rows = connection.sql(_TRACED_DAYS).fetchall()
    return {
        datetime.fromtimestamp(3600 * hour, UTC): frozenset((*(days or ()), *([None] if is_undated else ())))
        for hour, days, is_undated in rows
    }


def _analyze_traces(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """Analyze the traces of runs that started in the selected hours."""
    jobs = connection.sql(_TRACED).pl()
    if jobs.is_empty():
        return make_empty_findings()
    days = jobs["ended_on"].drop_nulls()
    params = {"since": days.min(), "until": days.max(), "trace_ids": jobs["trace_id"].to_list()}
    counters, heatmaps = (
        pl.DataFrame(connection.sql(_OF_TRACES.format(table=table), params=params).to_arrow_table())
        for table in ("trace_counters", "trace_heatmaps")
    )
    findings, maps = analyze_tables(jobs, counters, heatmaps)
    return site_traces.build_trace_findings(jobs, findings, select_layers(counters, "trace_id"), maps)


def read_calendars(connection: duckdb.DuckDBPyConnection) -> tuple[CalendarView, ...]:
    """Query the calendar of each file system: mean rates per minute of its last days."""
    polled = connection.sql(_FILESYSTEMS, params={"days": _MAX_DAYS}).fetchall()
    return tuple(storage_calendar.build_view(connection, name, first) for name, first in polled)


def read_active_days(connection: duckdb.DuckDBPyConnection) -> dict[date, frozenset[date | None]]:
    """Map each day with active runs to their end days; None stands for runs without an end."""
    rows = connection.sql(_TOUCHED, params={"days": _MAX_DAYS}).fetchall()
    return {day: frozenset((*(end_days or ()), *([None] if is_open else ()))) for day, end_days, is_open in rows}


def read_filesystems(
    connection: duckdb.DuckDBPyConnection, calendars: tuple[CalendarView, ...], chosen: Collection[tuple[str, date]]
) -> FilesystemFrames:
    """Query the frames of the selected days of file systems."""
    chosen_days = pl.DataFrame(sorted(chosen), schema={"filesystem": pl.String, "polled_on": pl.Date}, orient="row")
    connection.register(_CHOSEN_DAYS, chosen_days.to_arrow())
    try:
        parts, active_runs = connection.sql(_PARTS).pl(), connection.sql(_ON_IT).pl()
    finally:
        connection.unregister(_CHOSEN_DAYS)
    slowed = find_slowdowns_of_days(connection, chosen_days)
    day = (pl.col("polled_on") - date(1970, 1, 1)).dt.total_days().cast(pl.Int32).alias("day")
    return FilesystemFrames(calendars, parts, active_runs, slowed.with_columns(day).drop("polled_on"))


def read_population(connection: duckdb.DuckDBPyConnection, query: Query) -> PopulationFrames:
    """Query the statistics of all selected runs."""
    population = query_population(connection, query)
    runs = {name: population.runs.filter(direction=name) for name in _DIRECTIONS}
    return PopulationFrames(
        days=population.days(),
        shares=population.shares(),
        groups=population.groups().rename({"name": "application"}).drop("label_count", "classified_count"),
        periods_s={name: population.periods(name) for name in _DIRECTIONS},
        volumes_bytes={name: rows["bytes"] for name, rows in runs.items()},
    )


#: traces are matched to runs by start, since they may end on another day
_TRACED_DAYS = """
    select floor(epoch(job_started_at) / 3600)::bigint as hour, list(distinct ended_on) filter (ended_on is not null),
        bool_or(ended_on is null)
    from trace_jobs
    where job_started_at is not null
    group by hour
"""

_TRACED = """
    select trace_id, cluster, job_id, job_started_at as started_at, tracer, process_count, duration_s, ended_on
    from trace_jobs
    where job_started_at is not null and floor(epoch(job_started_at) / 3600)::bigint in (select hour from chosen_hours)
    order by job_started_at, job_id, cluster, trace_id
"""

#: rows of selected traces, from the table {table}
_OF_TRACES = """
    from {table}
    where (ended_on between $since and $until or ended_on is null) and list_contains($trace_ids, trace_id)
"""

_JOBS = """
    select job_id, cluster, started_at
    from jobs
    where is_application_run and started_at is not null
    order by started_at, job_id, cluster
"""

_HOURS = """
    select floor(epoch(started_at) / 3600)::bigint as hour, list(distinct ended_on) filter (ended_on is not null),
        bool_or(ended_on is null)
    from jobs
    where is_application_run and started_at is not null
    group by hour
    order by hour
"""

#: a run is active on all days from its start to its end, and on days with attributed bytes or bursts
_TOUCHED = """
    with first as (
        select max(polled_on) - $days as day from polls_daily
    ),

    stays as (
        select ended_on,
            greatest(started_at::date, first.day) as from_day,
            coalesce(ended_at, started_at)::date as to_day
        from jobs, first
        where is_application_run
    ),

    touched as (
        select ended_on, unnest(generate_series(from_day, to_day, interval 1 day))::date as day
        from stays
        where from_day <= to_day
        union all
        select distinct ended_on, (minute_at - interval 1 microsecond)::date as day
        from attributed_io
        union all
        select distinct ended_on, burst_started_at::date as day
        from slowdowns
        where burst_started_at is not null
    )

    select day, list(distinct ended_on) filter (ended_on is not null), bool_or(ended_on is null)
    from touched
    group by day
"""

_RUNS = """
    select cluster, job_id, started_at, ended_at, submitted_at, user, account, application, partition, node_count,
        task_count, state, duration_s
    from jobs
    where is_application_run and started_at is not null and (ended_on between $since and $until or ended_on is null)
        and floor(epoch(started_at) / 3600)::bigint in (select hour from chosen_hours)
    order by started_at, job_id, cluster
"""

#: exact samples if available, else samples cut from the total traffic
_SAMPLES = """
    with exact as (
        select cluster, job_id, started_at, filesystem, direction, application_id, grid_started_at, interval_s,
            sample_bytes_per_s
        from exact_samples
        where outcome = 'measured' and (ended_on between $since and $until or ended_on is null)
            and floor(epoch(started_at) / 3600)::bigint in (select hour from chosen_hours)
    ),

    shared as (
        select cluster, job_id, started_at, filesystem, direction, application_id, grid_started_at, interval_s,
            sample_bytes_per_s
        from samples
        anti join exact using (cluster, job_id, started_at, filesystem, direction)
        where (ended_on between $since and $until or ended_on is null)
            and floor(epoch(started_at) / 3600)::bigint in (select hour from chosen_hours)
    ),

    all_samples as (
        select *, true as is_exact from exact
        union all
        select *, false as is_exact from shared
    )

    select cluster, job_id, started_at, filesystem, direction, application_id, is_exact,
        epoch(grid_started_at) - epoch(started_at) as start_s,
        interval_s,
        sample_bytes_per_s as rates
    from all_samples
"""

_IO = """
    with explained as (
        select cluster, job_id, started_at, filesystem, direction,
            sum(attributed_bytes * confidence) / nullif(sum(attributed_bytes), 0) as confidence
        from attributed_io
        where ended_on between $since and $until or ended_on is null
        group by all
    ),

    labels as (
        select cluster, subject_id as job_id, started_at, filesystem, direction, label, outcome as class_outcome, basis
        from classes
        where subject_kind = 'job' and (ended_on between $since and $until or ended_on is null)
    ),

    periodic as (
        select cluster, subject_id as job_id, started_at, filesystem, direction, period_s, false_alarm_probability,
            basis
        from periods
        where subject_kind = 'job' and is_default and outcome = 'periodic'
            and (ended_on between $since and $until or ended_on is null)
    )

    select
        cluster, job_id, started_at, filesystem, direction,
        job_io.estimated_bytes, job_io.estimated_low_bytes, job_io.estimated_high_bytes, job_io.estimate_source,
        job_io.outcome,
        job_io.own_bytes,
        job_io.filesystem_bytes,
        job_io.is_above_filesystem,
        job_io.own_peak_bytes_per_s,
        job_io.filesystem_peak_bytes_per_s,
        if(job_io.estimate_source = 'attributed', explained.confidence, null) as confidence,
        labels.label, labels.class_outcome, labels.basis as class_basis,
        periodic.period_s, periodic.false_alarm_probability, periodic.basis as period_basis
    from job_io
    left join explained using (cluster, job_id, started_at, filesystem, direction)
    left join labels using (cluster, job_id, started_at, filesystem, direction)
    left join periodic using (cluster, job_id, started_at, filesystem, direction)
    where (job_io.ended_on between $since and $until or job_io.ended_on is null)
        and floor(epoch(started_at) / 3600)::bigint in (select hour from chosen_hours)
"""

#: the found bursts of runs, with their delays
_SLOWED = """
    select cluster, job_id, started_at, filesystem, direction, burst, outcome = 'slowed' as is_slowed,
        burst_expected_at,
        start_delay_s, delay_s, delay_low_s, delay_high_s, top_interferer_job_id, top_interferer_started_at,
        top_interferer_application_id, top_interferer_bytes, unattributed_bytes
    from slowdowns
    where outcome != 'not_found' and (ended_on between $since and $until or ended_on is null)
        and floor(epoch(started_at) / 3600)::bigint in (select hour from chosen_hours)
    order by started_at, job_id, cluster, filesystem, direction, burst
"""

_FILESYSTEMS = """
    select filesystem, greatest(min(polled_on), max(polled_on) - $days + 1) as first_on
    from filesystem_rates
    group by filesystem
    order by filesystem
"""

#: attributed bytes in steps of five minutes: a day's six largest applications separately, all others merged
_PARTS = """
    with days as (
        select filesystem, polled_on
        from chosen_days
    ),

    stepped as (
        select filesystem, application_id, direction,
            ((ceil(epoch(minute_at) / 60)::bigint - 1) // 1440)::int as day,
            (((ceil(epoch(minute_at) / 60)::bigint - 1) % 1440) // 5)::int as step,
            attributed_bytes
        from attributed_io
    ),

    summed as (
        select filesystem, day, application_id, step, sum(attributed_bytes) as attributed_bytes
        from stepped
        semi join days
            on stepped.filesystem = days.filesystem and make_date(1970, 1, 1) + stepped.day = days.polled_on
        group by all
    ),

    ranked as (
        select filesystem, day, application_id,
            row_number() over (partition by filesystem, day order by sum(attributed_bytes) desc,
            application_id) as place
        from summed
        group by filesystem, day, application_id
    )

    select filesystem, day, if(place <= 6, summed.application_id, null) as application_id, step,
        sum(attributed_bytes) as attributed_bytes
    from summed
    inner join ranked using (filesystem, day, application_id)
    group by all
    order by filesystem, day, application_id nulls last, step
"""

#: active runs of each selected day
_ON_IT = """
    with days as (
        select filesystem, polled_on
        from chosen_days
    ),

    application_names as (
        select cluster, job_id, started_at, filesystem, min(application_id) as application_id
        from attributed_io
        group by all
    ),

    run_volumes as (
        select cluster, job_id, started_at, filesystem,
            sum(estimated_bytes) as estimated_bytes,
            sum(own_bytes) as own_bytes
        from job_io
        group by all
    )

    select
        days.filesystem,
        (days.polled_on - make_date(1970, 1, 1))::int as day,
        jobs.cluster, jobs.job_id, jobs.started_at, jobs.ended_at, jobs.user, jobs.application, jobs.node_count,
        application_names.application_id,
        run_volumes.estimated_bytes,
        run_volumes.own_bytes
    from jobs
    inner join run_volumes using (cluster, job_id, started_at)
    inner join days
        on run_volumes.filesystem = days.filesystem
        and jobs.started_at < days.polled_on + interval 1 day
        and coalesce(jobs.ended_at, jobs.started_at) >= days.polled_on
    left join application_names
        on jobs.cluster = application_names.cluster
        and jobs.job_id = application_names.job_id
        and jobs.started_at = application_names.started_at
        and run_volumes.filesystem = application_names.filesystem
    where jobs.is_application_run
    order by days.filesystem, day, jobs.started_at, jobs.job_id, jobs.cluster
"""

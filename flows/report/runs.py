"""What a release has of runs, of all of them together and of file systems, for the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flows.population.asking import Asked, counted
from flows.report.samples import coarse_samples
from flows.wall import storage_calendar
from reports.site.filesystems import FilesystemFrames
from reports.site.population import PopulationFrames
from reports.site.runs import RunFrames

if TYPE_CHECKING:
    import duckdb

_DIRECTIONS = ("write", "read")
#: days of the heat map, the last ones
_MOST_DAYS = 62
_MOST_STEPS = 120
_RUN = ["started_at", "job_id", "cluster", "filesystem", "direction"]


def read_runs(connection: duckdb.DuckDBPyConnection) -> RunFrames:
    """Return the frames of runs."""
    samples = coarse_samples(connection, _SAMPLES, _MOST_STEPS)
    told = connection.sql(_IO).pl().join(samples, on=_RUN, how="left").sort(_RUN)
    return RunFrames(runs=connection.sql(_RUNS).pl(), io=told)


def read_filesystems(connection: duckdb.DuckDBPyConnection) -> FilesystemFrames:
    """Return the frames of file systems."""
    days = {"days": _MOST_DAYS}
    polled = connection.sql(_FILESYSTEMS, params=days).fetchall()
    return FilesystemFrames(
        calendars=tuple(storage_calendar.view_of(connection, name, first) for name, first in polled),
        parts=connection.sql(_PARTS, params=days).pl(),
        runs=connection.sql(_ON_IT, params=days).pl(),
    )


def read_population(connection: duckdb.DuckDBPyConnection) -> PopulationFrames:
    """Return the frames of all runs together."""
    told = counted(connection, Asked())
    runs = {name: told.runs.filter(direction=name) for name in _DIRECTIONS}
    return PopulationFrames(
        days=told.days(),
        shares=told.shares(),
        groups=told.groups().rename({"name": "application"}).drop("label_count", "classified_count"),
        periods_s={name: told.periods(name) for name in _DIRECTIONS},
        volumes_bytes={name: rows["bytes"] for name, rows in runs.items()},
    )


_RUNS = """
    select cluster, job_id, started_at, ended_at, submitted_at, user, account, application, partition, node_count,
        task_count, state, duration_s
    from jobs
    where is_application_run and started_at is not null
    order by started_at, job_id, cluster
"""

#: exact samples where there are some, else those that were cut out of all traffic
_SAMPLES = """
    with exact as (
        select cluster, job_id, started_at, filesystem, direction, application_id, grid_started_at, interval_s,
            sample_bytes_per_s
        from exact_samples
        where outcome = 'measured'
    ),

    shared as (
        select cluster, job_id, started_at, filesystem, direction, application_id, grid_started_at, interval_s,
            sample_bytes_per_s
        from samples
        anti join exact using (cluster, job_id, started_at, filesystem, direction)
    ),

    told as (
        select *, true as is_exact from exact
        union all
        select *, false as is_exact from shared
    )

    select cluster, job_id, started_at, filesystem, direction, application_id, is_exact,
        epoch(grid_started_at) - epoch(started_at) as began_s,
        interval_s,
        sample_bytes_per_s as rates
    from told
"""

_IO = """
    with explained as (
        select cluster, job_id, started_at, filesystem, direction,
            sum(explained_bytes) as explained_bytes,
            sum(low_bytes) as low_bytes,
            sum(high_bytes) as high_bytes,
            sum(explained_bytes * certainty) / nullif(sum(explained_bytes), 0) as certainty
        from attributed_io
        group by all
    ),

    labels as (
        select cluster, subject_id as job_id, started_at, filesystem, direction, label, outcome as class_outcome
        from classes
        where subject_kind = 'job'
    ),

    periodic as (
        select cluster, subject_id as job_id, started_at, filesystem, direction, period_s, false_alarm_probability
        from periods
        where subject_kind = 'job' and is_default and outcome = 'periodic'
    )

    select
        cluster, job_id, started_at, filesystem, direction,
        best_job_io.source,
        best_job_io.outcome,
        best_job_io.is_shared_traffic,
        best_job_io.volume_bytes,
        best_job_io.own_bytes,
        best_job_io.peak_bytes_per_s,
        explained.explained_bytes, explained.low_bytes, explained.high_bytes, explained.certainty,
        labels.label, labels.class_outcome,
        periodic.period_s, periodic.false_alarm_probability
    from best_job_io
    left join explained using (cluster, job_id, started_at, filesystem, direction)
    left join labels using (cluster, job_id, started_at, filesystem, direction)
    left join periodic using (cluster, job_id, started_at, filesystem, direction)
"""

_FILESYSTEMS = """
    select filesystem, greatest(min(polled_on), max(polled_on) - $days + 1) as first_on
    from ticks
    group by filesystem
    order by filesystem
"""

#: what applications' signatures explain, in steps of five minutes, the six of most bytes a day by name
_PARTS = """
    with days as (
        select filesystem, polled_on
        from poll_days
        qualify row_number() over (partition by filesystem order by polled_on desc) <= $days
    ),

    stepped as (
        select filesystem, application_id, direction,
            ((ceil(epoch(minute_at) / 60)::bigint - 1) // 1440)::int as day,
            (((ceil(epoch(minute_at) / 60)::bigint - 1) % 1440) // 5)::int as step,
            explained_bytes
        from attributed_io
    ),

    summed as (
        select filesystem, day, application_id, step, sum(explained_bytes) as explained_bytes
        from stepped
        semi join days
            on stepped.filesystem = days.filesystem and make_date(1970, 1, 1) + stepped.day = days.polled_on
        group by all
    ),

    ranked as (
        select filesystem, day, application_id,
            row_number() over (partition by filesystem, day order by sum(explained_bytes) desc, application_id) as place
        from summed
        group by filesystem, day, application_id
    )

    select filesystem, day, if(place <= 6, summed.application_id, null) as application_id, step,
        sum(explained_bytes) as explained_bytes
    from summed
    inner join ranked using (filesystem, day, application_id)
    group by all
    order by filesystem, day, application_id nulls last, step
"""

#: runs that were there, for each day that they touched
_ON_IT = """
    with days as (
        select filesystem, polled_on
        from poll_days
        qualify row_number() over (partition by filesystem order by polled_on desc) <= $days
    ),

    moved as (
        select cluster, job_id, started_at, filesystem,
            sum(explained_bytes) as explained_bytes,
            any_value(application_id) as application_id
        from attributed_io
        group by all
    ),

    own as (
        select cluster, job_id, started_at, filesystem, sum(own_bytes) as own_bytes
        from best_job_io
        group by all
    )

    select
        days.filesystem,
        (days.polled_on - make_date(1970, 1, 1))::int as day,
        jobs.cluster, jobs.job_id, jobs.started_at, jobs.ended_at, jobs.user, jobs.application, jobs.node_count,
        moved.application_id,
        moved.explained_bytes,
        own.own_bytes
    from jobs
    inner join own using (cluster, job_id, started_at)
    inner join days
        on own.filesystem = days.filesystem
        and jobs.started_at < days.polled_on + interval 1 day
        and coalesce(jobs.ended_at, jobs.started_at) >= days.polled_on
    left join moved
        on jobs.cluster = moved.cluster and jobs.job_id = moved.job_id and jobs.started_at = moved.started_at
        and own.filesystem = moved.filesystem
    where jobs.is_application_run
    order by days.filesystem, day, jobs.started_at, jobs.job_id, jobs.cluster
"""

"""Count what polls, counters and job logs of a release cover, and how many runs each application still needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from iosig.warehouse.errors import NothingToDo

if TYPE_CHECKING:
    import duckdb

#: the tables that `check_site` queries
TABLES = "jobs job_io polls_daily counters_daily attribution_daily unattributed_counter_io applications signatures"
TABLES += " trace_jobs"


@dataclass(frozen=True, slots=True)
class SiteQuery:
    """Thresholds of the check, from the settings.

    min_sample_count: runs that an application needs for a signature. min_expected_correlation: a signature with less
    is unreliable.
    """

    min_sample_count: int
    min_expected_correlation: float


@dataclass(frozen=True, slots=True)
class SiteCheck:
    """What the logs of a site cover.

    filesystems: one row per file system that is polled, counted, or named by a job log: filesystem, has_polls,
    has_counters, first_day, last_day, day_count, missing_day_count (days without data between them), interval_s,
    missing_ratio, run_count (runs that used it), measured_bytes, attributed_ratio (NULL without polls),
    unknown_key_ratio (of the bytes that servers counted by job, those of keys without a known job).
    clusters: one row per cluster: cluster, run_count, first_started_at, last_ended_at, no_user_ratio,
    no_application_ratio, no_node_count_ratio, measured_ratio (runs with polls, counters or a trace).
    applications: number of applications by `state`: reliable, unreliable, no_common_bursts, no_io, too_few_samples.
    waiting: applications with too few samples: application_id, run_count, sample_count, missing_count and expected_on
    (the day with enough samples at the present rate, NULL after a single sample), soonest first.
    traces: number of traced runs by `job_match`.
    """

    query: SiteQuery
    filesystems: pl.DataFrame
    clusters: pl.DataFrame
    applications: pl.DataFrame
    waiting: pl.DataFrame
    traces: pl.DataFrame


def check_site(connection: duckdb.DuckDBPyConnection, query: SiteQuery) -> SiteCheck:
    """Check a release. Raises NothingToDo if it has neither jobs nor polls, counters or traces.

    connection: has `TABLES` of a release.
    """
    counts = {"min_sample_count": query.min_sample_count}
    levels = {"min_expected_correlation": query.min_expected_correlation}
    check = SiteCheck(
        query,
        connection.sql(_FILESYSTEMS).pl(),
        connection.sql(_CLUSTERS).pl(),
        connection.sql(_APPLICATIONS, params=counts | levels).pl(),
        connection.sql(_WAITING, params=counts).pl(),
        connection.sql("select job_match, count(*) as trace_count from trace_jobs group by all order by all").pl(),
    )
    if all(frame.is_empty() for frame in (check.filesystems, check.clusters, check.traces)):
        raise NothingToDo("The release has no jobs, polls, counters or traces: land some, and execute `iosig run`.")
    return check


_FILESYSTEMS = """
    with polled as (
        select filesystem,
            min(polled_on) as first_day,
            max(polled_on) as last_day,
            count(*) as day_count,
            arg_max(interval_s, polled_on) as interval_s,
            sum(missing_ratio * expected_poll_count) / nullif(sum(expected_poll_count), 0) as missing_ratio
        from polls_daily
        group by filesystem
    ),

    counted as (
        select filesystem,
            min(scraped_on) as first_day,
            max(scraped_on) as last_day,
            count(*) as day_count,
            arg_max(interval_s, scraped_on) as interval_s,
            sum(missing_ratio * expected_scrape_count) / nullif(sum(expected_scrape_count), 0) as missing_ratio,
            sum(read_bytes + written_bytes) as counted_bytes
        from counters_daily
        group by filesystem
    ),

    unknown_keys as (
        select filesystem, sum(coalesce(read_bytes, 0) + coalesce(written_bytes, 0)) as unknown_bytes
        from unattributed_counter_io
        group by filesystem
    ),

    attribution as (
        select filesystem,
            sum(measured_bytes) as measured_bytes,
            1 - sum(unattributed_bytes) / nullif(sum(measured_bytes), 0) as attributed_ratio
        from attribution_daily
        group by filesystem
    ),

    named as (
        select filesystem, count(*) as named_run_count
        from jobs
        where is_application_run and filesystem is not null
        group by filesystem
    ),

    used as (
        select filesystem, count(distinct (cluster, job_id, started_at)) as used_run_count
        from job_io
        where filesystem is not null and outcome <> 'no_polls'
        group by filesystem
    )

    select filesystem,
        polled.filesystem is not null as has_polls,
        counted.filesystem is not null as has_counters,
        least(polled.first_day, counted.first_day) as first_day,
        greatest(polled.last_day, counted.last_day) as last_day,
        coalesce(polled.day_count, counted.day_count, 0) as day_count,
        coalesce(
            polled.last_day - polled.first_day + 1 - polled.day_count,
            counted.last_day - counted.first_day + 1 - counted.day_count
        ) as missing_day_count,
        coalesce(polled.interval_s, counted.interval_s) as interval_s,
        coalesce(polled.missing_ratio, counted.missing_ratio) as missing_ratio,
        greatest(coalesce(named_run_count, 0), coalesce(used_run_count, 0)) as run_count,
        measured_bytes,
        attributed_ratio,
        unknown_bytes / nullif(counted_bytes, 0) as unknown_key_ratio
    from polled
    full join counted using (filesystem)
    full join named using (filesystem)
    full join used using (filesystem)
    left join unknown_keys using (filesystem)
    left join attribution using (filesystem)
    order by filesystem
"""

_CLUSTERS = """
    with measured as (
        select distinct cluster, job_id, started_at
        from job_io
        where outcome <> 'no_polls'
    )

    select cluster,
        count(*) as run_count,
        min(started_at) as first_started_at,
        max(ended_at) as last_ended_at,
        avg((user is null)::int) as no_user_ratio,
        avg((application is null)::int) as no_application_ratio,
        avg((node_count is null)::int) as no_node_count_ratio,
        avg((measured.job_id is not null)::int) as measured_ratio
    from jobs
    left join measured using (cluster, job_id, started_at)
    where is_application_run and started_at is not null
    group by cluster
    order by run_count desc, cluster
"""

#: an application counts once, by the better of its file systems and directions
_APPLICATIONS = """
    with signed as (
        select application_id,
            bool_or(outcome = 'extracted' and expected_correlation >= $min_expected_correlation::double)
                as is_reliable,
            bool_or(outcome = 'extracted') as is_extracted,
            bool_or(outcome = 'no_common_bursts') as has_no_common_bursts,
            bool_or(outcome = 'no_io') as is_idle
        from signatures
        where is_default
        group by application_id
    )

    select
        case
            when is_reliable then 'reliable'
            when is_extracted then 'unreliable'
            when has_no_common_bursts then 'no_common_bursts'
            when is_idle and sample_count >= $min_sample_count::bigint then 'no_io'
            else 'too_few_samples'
        end as state,
        count(*) as application_count
    from applications
    left join signed using (application_id)
    group by state
    order by list_position(['reliable', 'unreliable', 'no_common_bursts', 'no_io', 'too_few_samples'], state)
"""

#: samples come at the rate since the first run
_WAITING = """
    with runs as (
        select application_id, count(*) as run_count
        from jobs
        where is_application_run
        group by application_id
    ),

    rates as (
        select application_id, run_count, sample_count, last_run_ended_at,
            $min_sample_count::bigint - sample_count as missing_count,
            epoch(last_run_ended_at) - epoch(first_run_started_at) as span_s
        from applications
        inner join runs using (application_id)
        where sample_count < $min_sample_count::bigint
    )

    select application_id, run_count, sample_count, missing_count,
        case
            when sample_count > 1
                then (last_run_ended_at at time zone 'UTC')::date
                    + ceil(missing_count * span_s / (sample_count - 1) / 86400)::int
        end as expected_on
    from rates
    order by expected_on nulls last, missing_count, run_count desc, application_id
"""

"""Query the data, and draw the figures, of the report's first page: the last day of a release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl

from iosig.answers.attribution import figure as traffic
from iosig.answers.attribution.query import Query, who
from iosig.answers.attribution.slowdowns import find_slowdowns_of_days
from iosig.answers.report.quality import read_check_failures
from iosig.answers.wall import checkpoint_clock as rhythms
from iosig.reports import attribution
from iosig.reports.attribution import AttributionView
from iosig.reports.inline_svg import render_svg
from iosig.reports.site.night import NightFrames
from iosig.reports.wall import checkpoint_clock
from iosig.reports.wall.checkpoint_clock import ClockView

if TYPE_CHECKING:
    import duckdb

_MAX_DAYS = 15
#: number of steps of a day's traffic (15 min each)
#: maximum number of applications in the checkpoint clock
_MAX_STEPS, _MAX_RHYTHMS = 96, 200
_MAX_SLOWED = 10


def draw_figures(connection: duckdb.DuckDBPyConnection, display_id: Callable[[str], str]) -> dict[str, str]:
    """Draw the figures of the page as SVG, keyed by name; display_id: maps an application id to its displayed form."""
    clock, figures = rhythms.build_view(connection, ""), {}
    if clock.rhythms:
        limited = _limit_rhythms(clock, display_id)
        figures["clock"] = render_svg(checkpoint_clock.draw(limited), "clock", limited.finding)
    for filesystem, day in connection.sql(_BUSIEST_FILESYSTEM).fetchall():
        started_at = datetime(day.year, day.month, day.day, tzinfo=UTC)
        answer = who(connection, Query(filesystem, started_at, started_at + timedelta(days=1)))
        named = _rename_layers(traffic.build_view(answer, _MAX_STEPS), display_id)
        figures["owners"] = render_svg(attribution.draw(named), "owners", named.finding)
    return figures


def _limit_rhythms(view: ClockView, display_id: Callable[[str], str]) -> ClockView:
    """Select the applications with the highest mean rates, and the meetings between these."""
    rates = [rhythm.bytes_per_period / rhythm.period_s for rhythm in view.rhythms]
    indices = sorted(sorted(range(len(rates)), key=lambda place: -rates[place])[:_MAX_RHYTHMS])
    places = {old: new for new, old in enumerate(indices)}
    return replace(
        view,
        rhythms=[replace(view.rhythms[place], name=display_id(view.rhythms[place].name)) for place in indices],
        meetings=[
            replace(meeting, first=places[meeting.first], second=places[meeting.second])
            for meeting in view.meetings
            if meeting.first in places and meeting.second in places
        ],
    )


def _rename_layers(view: AttributionView, display_id: Callable[[str], str]) -> AttributionView:
    return replace(
        view,
        traffic=tuple(
            replace(
                direction_traffic, layers=tuple((display_id(name), rates) for name, rates in direction_traffic.layers)
            )
            for direction_traffic in view.traffic
        ),
    )


def read(connection: duckdb.DuckDBPyConnection) -> NightFrames:
    """Query the frames of the first page."""
    days = connection.sql(_DAYS, params={"days": _MAX_DAYS}).pl()
    last = None if days.is_empty() else days["polled_on"][0]
    return NightFrames(
        days=days,
        gaps=connection.sql(_GAPS, params={"days": _MAX_DAYS, "day": last}).pl(),
        counts=connection.sql(_COUNTS, params={"day": last}).pl(),
        changed=connection.sql(_CHANGED).pl(),
        busiest=connection.sql(_BUSIEST, params={"day": last}).pl(),
        unpolled=connection.sql(_UNPOLLED).pl(),
        failed=read_check_failures(connection),
        **_read_slowdowns(connection),
    )


def _read_slowdowns(connection: duckdb.DuckDBPyConnection) -> dict[str, pl.DataFrame]:
    """Query the slowed runs of the last day by decreasing delay, and the number of runs with found bursts."""
    runs = find_slowdowns_of_days(connection, connection.sql(_LAST_DAYS).pl())
    counts = runs.select(looked_count=pl.len(), slowed_count=(pl.col("slowed_burst_count") > 0).sum())
    return {"slowed": runs.filter(pl.col("slowed_burst_count") > 0).head(_MAX_SLOWED), "slowed_counts": counts}


#: the file system with the largest volume on the last day
_BUSIEST_FILESYSTEM = """
    select filesystem, polled_on
    from polls_daily
    where polled_on = (select max(polled_at - interval 1 microsecond)::date from filesystem_rates)
    order by coalesce(read_bytes, 0) + coalesce(written_bytes, 0) desc, filesystem
    limit 1
"""

_LAST_DAYS = """
    select filesystem, polled_on
    from polls_daily
    where polled_on = (select max(polled_at - interval 1 microsecond)::date from filesystem_rates)
"""

#: a day's last poll ends at midnight, so its polled_on is the next day, which is excluded
_DAYS = """
    select
        polled_on,
        sum(coalesce(read_bytes, 0) + coalesce(written_bytes, 0))::double as measured_bytes,
        any_value(explained.attributed_bytes) as attributed_bytes,
        sum(poll_count) / nullif(sum(expected_poll_count), 0) as poll_ratio,
        count(distinct filesystem) as filesystem_count
    from polls_daily
    left join (
        select polled_on, sum(attributed_bytes) as attributed_bytes
        from attribution_daily
        group by polled_on
    ) as explained using (polled_on)
    where polled_on <= (select max(polled_at - interval 1 microsecond)::date from filesystem_rates)
    group by polled_on
    order by polled_on desc
    limit $days
"""

_GAPS = """
    select filesystem, polled_on, missing_ratio
    from polls_daily
    where missing_ratio > 0.01 and polled_on > $day::date - $days and polled_on <= $day::date
    order by polled_on desc, filesystem
"""

_COUNTS = """
    with last_day as (
        select coalesce($day::date, (select max(ended_on) from jobs)) as day
    ),

    chosen as (
        select application_id, bool_or(outcome = 'extracted') as has_signature,
            bool_or(outcome = 'extracted' and expected_correlation >= 0.5) as is_trusted
        from signatures
        where is_default
        group by application_id
    )

    select
        (select day from last_day) as day,
        (
            select count(*) from jobs, last_day
            where is_application_run and ended_on = last_day.day
        ) as run_count,
        (
            select count(distinct jobs.user) from jobs, last_day
            where is_application_run and ended_on = last_day.day
        ) as user_count,
        (select count(*) from chosen) as application_count,
        (select count(*) from chosen where has_signature) as signature_count,
        (select count(*) from chosen where is_trusted) as trusted_count,
        (select count(*) from signatures where is_default and is_changed is not null) as compared_count,
        (select count(*) from rejects) as reject_count
"""

_CHANGED = """
    select application_id, filesystem, direction, change_correlation, relative_volume_change, added_burst_count,
        removed_burst_count
    from signatures
    where is_default and is_changed
    order by change_correlation nulls first, application_id, filesystem, direction
"""

_BUSIEST = """
    with hours as (
        select filesystem, date_trunc('hour', polled_at - interval 1 microsecond) as hour_at,
            sum(coalesce(read_bytes, 0) + coalesce(written_bytes, 0))::double as measured_bytes
        from filesystem_rates
        where polled_at > $day::date and polled_at <= $day::date + interval 1 day
        group by all
    ),

    parts as (
        select filesystem, date_trunc('hour', minute_at - interval 1 microsecond) as hour_at, application_id, direction,
            sum(attributed_bytes) as attributed_bytes
        from attributed_io
        where minute_at > $day::date and minute_at <= $day::date + interval 1 day
        group by all
    ),

    explained as (
        select filesystem, hour_at,
            sum(attributed_bytes) as attributed_bytes,
            count(distinct application_id) as application_count,
            -- break ties deterministically
            arg_max(application_id, (attributed_bytes, application_id, direction)) as application_id,
            arg_max(direction, (attributed_bytes, application_id, direction)) as direction
        from parts
        group by all
    )

    select *
    from hours
    left join explained using (filesystem, hour_at)
    order by measured_bytes desc, filesystem, hour_at
    limit 10
"""

_UNPOLLED = """
    select filesystem, count(*) as run_count
    from jobs
    where is_application_run and filesystem is not null
        and filesystem not in (select filesystem from polls_daily)
    group by filesystem
    order by run_count desc, filesystem
    limit 20
"""

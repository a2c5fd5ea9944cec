"""Compute the monthly volume and burstiness of applications, from their signatures and run counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iosig.reports.wall.population_map import DrawnApplication, MapView

if TYPE_CHECKING:
    import duckdb

#: tables that are queried
TABLES = "jobs signatures classes applications"
_MONTH_DAYS = 30.0


def build_view(connection: duckdb.DuckDBPyConnection, title: str) -> MapView:
    """Build the figure data of all applications; title: names the release."""
    rows = connection.sql(_APPLICATIONS).pl().to_dicts()
    (day_count, known_count) = connection.sql(_SPAN).fetchall()[0]
    day_count = max(float(day_count or 0.0), 1.0)
    drawn = [_drawn(row, day_count) for row in rows]
    return MapView(title, drawn, known_count - len(drawn), day_count)


def _drawn(row: dict[str, Any], day_count: float) -> DrawnApplication:
    return DrawnApplication(
        row["application_id"],
        row["all_bytes"] * _MONTH_DAYS / day_count,
        row["burstiness"],
        row["run_count"],
        row["label"],
    )


#: days from the first to the last run of the release, and its applications
_SPAN = """
    select
        (select epoch(max(ended_at) - min(started_at)) / 86400 from jobs where is_application_run) as day_count,
        (select count(*) from applications) as application_count
"""

#: applications with a signature: volume times run count, summed over signatures; peak-to-mean ratio and class of the
#: signature with the largest total volume
_APPLICATIONS = """
    with runs as (
        select application_id, filesystem
        from jobs
        where is_application_run and ended_at is not null
    ),

    signed as (
        select application_id, filesystem, direction, volume_bytes,
            peak_bytes_per_s * duration_s / volume_bytes as ratio
        from signatures
        where is_default and outcome = 'extracted' and volume_bytes > 0 and duration_s > 0
    ),

    counted as (
        select signed.application_id, signed.filesystem, signed.direction, count(*) as run_count
        from signed
        inner join runs on signed.application_id = runs.application_id
            and (runs.filesystem is null or runs.filesystem = signed.filesystem)
        group by all
    ),

    labeled as (
        select subject_id as application_id, filesystem, direction, any_value(label) as label
        from classes
        where subject_kind = 'application'
        group by all
    )

    select
        application_id,
        sum(volume_bytes * run_count)::double as all_bytes,
        arg_max(ratio, (volume_bytes * run_count, filesystem, direction))::double as burstiness,
        max(run_count)::bigint as run_count,
        arg_max_null(label, (volume_bytes * run_count, filesystem, direction)) as label
    from signed
    inner join counted using (application_id, filesystem, direction)
    left join labeled using (application_id, filesystem, direction)
    group by application_id
    order by application_id
"""

"""Query periods and volumes of applications' writes, and compute expected collisions of their bursts.

Let the bursts of two applications have independent phases, durations w and v, and periods p and q. They collide at the
rate (w + v) / (p q): a burst of the first collides with bursts of the second that start up to v before or w after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from iosig.reports.wall.checkpoint_clock import ClockView, DrawnRhythm, Meeting

if TYPE_CHECKING:
    import duckdb

#: tables that are queried
TABLES = "jobs signatures periods"
#: time before the last end of a run in which collisions are counted [s]
_LAST_S = 86_400


def build_view(connection: duckdb.DuckDBPyConnection, title: str, direction: str = "write") -> ClockView:
    """Build the figure data of one direction; title: names the release."""
    params = {"direction": direction}
    rhythms = connection.sql(_RHYTHMS, params=params).pl().with_row_index("place")
    (signed_count,) = connection.sql(_SIGNED, params=params).fetchall()[0]
    together = connection.sql(_TOGETHER, params=params | {"last_s": _LAST_S}).pl()
    drawn = [
        DrawnRhythm(row["application_id"], row["filesystem"], row["period_s"], row["bytes_per_period"])
        for row in rhythms.iter_rows(named=True)
    ]
    return ClockView(title, "in the last day", drawn, _meetings(rhythms, together), signed_count - len(drawn))


def _meetings(rhythms: pl.DataFrame, together: pl.DataFrame) -> list[Meeting]:
    """Return the pairs of concurrent applications with their expected numbers of collisions."""
    first_rhythms = rhythms.select(
        "filesystem", first_id="application_id", first="place", p="period_s", w="burst_width_s"
    )
    second_rhythms = rhythms.select(
        "filesystem", second_id="application_id", second="place", q="period_s", v="burst_width_s"
    )
    pairs = (
        together.join(first_rhythms, on=["filesystem", "first_id"])
        .join(second_rhythms, on=["filesystem", "second_id"])
        .with_columns(expected_count=pl.col("overlap_s") * (pl.col("w") + pl.col("v")) / (pl.col("p") * pl.col("q")))
        .filter(pl.col("expected_count") > 0)
        .sort("expected_count", "first", "second", descending=[True, False, False])
    )
    return [Meeting(*row) for row in pairs.select("first", "second", "expected_count").iter_rows()]


#: applications with a periodic signature
_RHYTHMS = """
    select subject_id as application_id, filesystem, period_s, bytes_per_period::double as bytes_per_period,
        coalesce(burst_width_s, 0) as burst_width_s
    from periods
    where subject_kind = 'application' and is_default and outcome = 'periodic' and direction = $direction
        and filesystem is not null and period_s > 0 and bytes_per_period > 0
    order by application_id, filesystem
"""

_SIGNED = """
    select count(*)
    from signatures
    where is_default and outcome = 'extracted' and direction = $direction and volume_bytes > 0
"""

#: total overlap of the runs of two such applications on one file system, within `last_s` before the last end
_TOGETHER = """
    with ends as (
        select max(ended_at) as last_at, max(ended_at) - to_seconds($last_s) as first_at
        from jobs
        where is_application_run
    ),

    rhythms as (
        select distinct subject_id as application_id, filesystem
        from periods
        where subject_kind = 'application' and is_default and outcome = 'periodic' and direction = $direction
    ),

    runs as (
        select rhythms.application_id, rhythms.filesystem, jobs.cluster, jobs.job_id,
            greatest(jobs.started_at, ends.first_at) as began_at, least(jobs.ended_at, ends.last_at) as ceased_at
        from jobs
        cross join ends
        inner join rhythms
            on jobs.application_id = rhythms.application_id
            and (jobs.filesystem is null or jobs.filesystem = rhythms.filesystem)
        where jobs.is_application_run and jobs.ended_at > ends.first_at and jobs.started_at < ends.last_at
    )

    select one.filesystem, one.application_id as first_id, other.application_id as second_id,
        sum(epoch(least(one.ceased_at, other.ceased_at) - greatest(one.began_at, other.began_at))) as overlap_s
    from runs as one
    inner join runs as other
        on one.filesystem = other.filesystem and one.application_id < other.application_id
        and one.began_at < other.ceased_at and other.began_at < one.ceased_at
    group by all
    order by all
"""

"""`iosig who --hurt`: runs whose bursts took longer than alone, by how much, and whose bytes stood there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from pydantic import Field

from iosig.answers.attribution.query import Asked, Question, polled, question, unpolled

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class HurtAnswer:
    """Who was hurt in a time. runs: a row each run that was, those that lost most first.

    runs: longer_s, with a range, of the bursts that were hurt, how many of those that were found; others_bytes of
    other runs beside the hurt ones, nobodys_bytes; trust: the lowest of the signatures whose bursts were hurt; and
    first_application_id, first_job_id, first_bytes: of the other run that had most where it had more than any other.
    run_count: runs whose bursts were looked for. is_landed: whether that is of what has landed, not of a release.
    """

    asked: Asked
    until: datetime
    runs: pl.DataFrame
    run_count: int
    is_landed: bool = False


#: the tables that `hurt` queries
TABLES = "slowdowns jobs ticks signatures"


def hurt(connection: duckdb.DuckDBPyConnection, asked: Asked, *, is_landed: bool = False) -> HurtAnswer:
    """Query whose bursts took longer. Raises NothingToDo if the time begins after the last poll.

    connection: has `TABLES`, those of a release or those computed from landed inputs.
    """
    first, last = polled(connection, asked.filesystem)
    until = asked.until or last
    if asked.since >= last:
        raise unpolled(asked, first, last)
    told = {"filesystem": asked.filesystem, "since": asked.since, "until": until}
    runs = connection.sql(_RUNS, params=told | {"directions": list(asked.directions)}).pl()
    return HurtAnswer(asked, until, runs.filter(pl.col("hurt_burst_count") > 0), runs.height, is_landed)


def hurt_days(connection: duckdb.DuckDBPyConnection, days: pl.DataFrame) -> pl.DataFrame:
    """Return the runs whose bursts were found, as `HurtAnswer.runs` has them, by filesystem and day.

    days: filesystem and polled_on, each wanted; a burst is of the day on which it began.
    """
    connection.register(_CHOSEN, days.select("filesystem", "polled_on").to_arrow())
    try:
        found: pl.DataFrame = connection.sql(_DAYS).pl()
        return found
    finally:
        connection.unregister(_CHOSEN)


_CHOSEN = "chosen_hurt_days"


def _by_run(bursts: str, key: str) -> str:
    """Return the query of runs out of that of bursts; key: what tells them apart."""
    return f"""
    with trusts as (select application_id, filesystem, direction, trust from signatures where is_default),

    bursts as (from ({bursts}) left join trusts using (application_id, filesystem, direction)),

    beside as (
        select {key}, first_job_id, first_application_id, sum(first_bytes) as first_bytes
        from bursts
        where is_hurt and first_job_id is not null
        group by {key}, first_job_id, first_application_id
        qualify row_number() over (partition by {key} order by sum(first_bytes) desc, first_job_id) = 1
    ),

    -- errors of bursts have nothing to do with each other: the range of a sum is narrower than the sum of ranges
    runs as (
        select {key}, application_id,
            count(*) as burst_count,
            count(*) filter (is_hurt) as hurt_burst_count,
            sum(longer_s) filter (is_hurt) as longer_s,
            sqrt(sum((longer_s - low_longer_s) ** 2) filter (is_hurt)) as error_s,
            sum(certainty * longer_s) filter (is_hurt) / sum(longer_s) filter (is_hurt) as certainty,
            min(trust) filter (is_hurt) as trust,
            -- who moved bytes beside a burst that lost nothing hurt nobody by it
            coalesce(sum(others_bytes) filter (is_hurt), 0) as others_bytes,
            coalesce(sum(nobodys_bytes) filter (is_hurt), 0) as nobodys_bytes
        from bursts
        group by all
    )

    select runs.* exclude (error_s), jobs.user, jobs.application,
        greatest(longer_s - error_s, 0) as low_longer_s, longer_s + error_s as high_longer_s,
        first_job_id, first_application_id, first_bytes
    from runs
    left join (select cluster, job_id, started_at, jobs.user, application from jobs) as jobs
        using (cluster, job_id, started_at)
    left join beside using ({key})
    order by longer_s desc nulls last, {key}
"""


_RUN = "cluster, job_id, started_at"
_RUNS = _by_run(
    """
        select *, outcome = 'hurt' as is_hurt
        from slowdowns
        where filesystem = $filesystem and outcome != 'not_found' and list_contains($directions, direction)
            and burst_began_at < $until and burst_ended_at > $since
    """,
    _RUN,
)
_DAYS = _by_run(
    """
        select *, outcome = 'hurt' as is_hurt, burst_began_at::date as polled_on
        from slowdowns
        semi join chosen_hurt_days
            on slowdowns.filesystem = chosen_hurt_days.filesystem
            and slowdowns.burst_began_at::date = chosen_hurt_days.polled_on
        where outcome != 'not_found'
    """,
    f"filesystem, polled_on, {_RUN}",
)


class SlowdownsDocument(Question, title="iosig who --hurt"):
    """Whose bursts took longer than alone."""

    format: Literal["iosig-slowdowns/1"] = "iosig-slowdowns/1"
    run_count: int = Field(description="runs whose bursts were found [runs]")
    hurt_run_count: int = Field(description="runs that were hurt [runs]")
    runs: list[Any] = Field(description="those that lost most: see [the page](attribution.md#slowdowns)")


def hurt_document(told: HurtAnswer, max_count: int, release_id: str) -> SlowdownsDocument:
    """Return an answer for programs: so many runs at most, and how many there are."""
    return SlowdownsDocument(
        **question(told.asked, told.until, release_id, is_landed=told.is_landed),
        run_count=told.run_count,
        hurt_run_count=told.runs.height,
        runs=told.runs.head(max_count).to_dicts(),
    )

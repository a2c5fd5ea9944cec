"""`iosig slowdowns`: runs whose bursts took longer than alone, by how much, and who interfered."""

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
class SlowdownAnswer:
    """Who was slowed in a time. runs: a row each run that was, those that lost most first.

    runs: delay_s, with a range, of the bursts that were slowed, how many of those that were found; interfering_bytes of
    other runs beside the slowed ones, unattributed_bytes; expected_correlation: the lowest of the signatures whose
    bursts were slowed; and top_interferer_application_id, top_interferer_job_id, top_interferer_bytes: of the other run
    that had most where it had more than any other. run_count: runs whose bursts were looked for. is_landed: whether
    that is of what has landed, not of a release.
    """

    asked: Asked
    until: datetime
    runs: pl.DataFrame
    run_count: int
    is_landed: bool = False


#: the tables that `slowed` queries
TABLES = "slowdowns jobs filesystem_rates signatures"


def slowed(connection: duckdb.DuckDBPyConnection, asked: Asked, *, is_landed: bool = False) -> SlowdownAnswer:
    """Query whose bursts took longer. Raises NothingToDo if the time begins after the last poll.

    connection: has `TABLES`, those of a release or those computed from landed inputs.
    """
    first, last = polled(connection, asked.filesystem)
    until = asked.until or last
    if asked.since >= last:
        raise unpolled(asked, first, last)
    told = {"filesystem": asked.filesystem, "since": asked.since, "until": until}
    runs = connection.sql(_RUNS, params=told | {"directions": list(asked.directions)}).pl()
    return SlowdownAnswer(asked, until, runs.filter(pl.col("slowed_burst_count") > 0), runs.height, is_landed)


def slowed_days(connection: duckdb.DuckDBPyConnection, days: pl.DataFrame) -> pl.DataFrame:
    """Return the runs whose bursts were found, as `SlowdownAnswer.runs` has them, by filesystem and day.

    days: filesystem and polled_on, each wanted; a burst is of the day on which it began.
    """
    connection.register(_CHOSEN, days.select("filesystem", "polled_on").to_arrow())
    try:
        found: pl.DataFrame = connection.sql(_DAYS).pl()
        return found
    finally:
        connection.unregister(_CHOSEN)


_CHOSEN = "chosen_slowed_days"


def _by_run(bursts: str, key: str) -> str:
    """Return the query of runs out of that of bursts; key: what tells them apart."""
    return f"""
    with expected_correlations as (select application_id, filesystem, direction,
        expected_correlation from signatures where is_default),

    bursts as (from ({bursts}) left join expected_correlations using (application_id, filesystem, direction)),

    beside as (
        select {key}, top_interferer_job_id, top_interferer_application_id,
            sum(top_interferer_bytes) as top_interferer_bytes
        from bursts
        where is_slowed and top_interferer_job_id is not null
        group by {key}, top_interferer_job_id, top_interferer_application_id
        qualify row_number() over (partition by {key} order by sum(top_interferer_bytes) desc,
            top_interferer_job_id) = 1
    ),

    -- errors of bursts have nothing to do with each other: the range of a sum is narrower than the sum of ranges
    runs as (
        select {key}, application_id,
            count(*) as burst_count,
            count(*) filter (is_slowed) as slowed_burst_count,
            sum(delay_s) filter (is_slowed) as delay_s,
            sqrt(sum((delay_s - delay_low_s) ** 2) filter (is_slowed)) as error_s,
            sum(confidence * delay_s) filter (is_slowed) / sum(delay_s) filter (is_slowed) as confidence,
            min(expected_correlation) filter (is_slowed) as expected_correlation,
            -- who moved bytes beside a burst that lost nothing slowed nobody by it
            coalesce(sum(interfering_bytes) filter (is_slowed), 0) as interfering_bytes,
            coalesce(sum(unattributed_bytes) filter (is_slowed), 0) as unattributed_bytes
        from bursts
        group by all
    )

    select runs.* exclude (error_s), jobs.user, jobs.application,
        greatest(delay_s - error_s, 0) as delay_low_s, delay_s + error_s as delay_high_s,
        top_interferer_job_id, top_interferer_application_id, top_interferer_bytes
    from runs
    left join (select cluster, job_id, started_at, jobs.user, application from jobs) as jobs
        using (cluster, job_id, started_at)
    left join beside using ({key})
    order by delay_s desc nulls last, {key}
"""


_RUN = "cluster, job_id, started_at"
_RUNS = _by_run(
    """
        select *, outcome = 'slowed' as is_slowed
        from slowdowns
        where filesystem = $filesystem and outcome != 'not_found' and list_contains($directions, direction)
            and burst_started_at < $until and burst_ended_at > $since
    """,
    _RUN,
)
_DAYS = _by_run(
    """
        select *, outcome = 'slowed' as is_slowed, burst_started_at::date as polled_on
        from slowdowns
        semi join chosen_slowed_days
            on slowdowns.filesystem = chosen_slowed_days.filesystem
            and slowdowns.burst_started_at::date = chosen_slowed_days.polled_on
        where outcome != 'not_found'
    """,
    f"filesystem, polled_on, {_RUN}",
)


class SlowdownsDocument(Question, title="iosig slowdowns"):
    """Whose bursts took longer than alone."""

    format: Literal["iosig-slowdowns/1"] = "iosig-slowdowns/1"
    run_count: int = Field(description="runs whose bursts were found [runs]")
    slowed_run_count: int = Field(description="runs that were slowed [runs]")
    runs: list[Any] = Field(description="those that lost most: see [the page](attribution.md#slowdowns)")


def slowdown_document(told: SlowdownAnswer, max_count: int, release_id: str) -> SlowdownsDocument:
    """Return an answer for programs: so many runs at most, and how many there are."""
    return SlowdownsDocument(
        **question(told.asked, told.until, release_id, is_landed=told.is_landed),
        run_count=told.run_count,
        slowed_run_count=told.runs.height,
        runs=told.runs.head(max_count).to_dicts(),
    )

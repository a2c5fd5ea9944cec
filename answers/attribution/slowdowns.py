"""`iosig slowdowns`: query the runs with bursts delayed by interference, their delays, and who interfered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from pydantic import Field

from iosig.answers.attribution.query import Query, Question, find_poll_range, no_polls_error, question_fields
from iosig.reports.answer_tables import MAX_ROWS, bytes_cell, render_table
from iosig.reports.texts import duration_range_text, duration_text, format_count

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class SlowdownAnswer:
    """Slowed runs of a time range, by decreasing delay.

    runs: one row per slowed run: delay_s with its range, slowed_burst_count of burst_count, interfering_bytes and
    unattributed_bytes during slowed bursts, expected_correlation (minimum over the signatures of slowed bursts), and
    top_interferer_*: the run that interfered most. run_count: runs with found bursts. is_landed: computed from
    landed inputs, not from a release.
    """

    query: Query
    until: datetime
    runs: pl.DataFrame
    run_count: int
    is_landed: bool = False

    def _repr_html_(self) -> str:
        """Return the slowed runs as a table, which notebooks show."""
        return render_table(
            f"{self.query.filesystem}: {self.runs.height:,} of {format_count(self.run_count, 'run')} slowed down",
            ("job", "application", "delay", "range", "slowed bursts", "interfering bytes", "main interferer"),
            [
                (
                    row["job_id"],
                    row["application"],
                    duration_text(row["delay_s"]),
                    duration_range_text(row["delay_low_s"], row["delay_high_s"]),
                    f"{row['slowed_burst_count']} of {row['burst_count']}",
                    bytes_cell(row["interfering_bytes"]),
                    row["top_interferer_job_id"],
                )
                for row in self.runs.head(MAX_ROWS).iter_rows(named=True)
            ],
            self.runs.height,
        )


#: the tables that `find_slowdowns` queries
TABLES = "slowdowns jobs filesystem_rates signatures"


def find_slowdowns(connection: duckdb.DuckDBPyConnection, query: Query, *, is_landed: bool = False) -> SlowdownAnswer:
    """Query the slowed runs of a time range. Raises NothingToDo if it begins after the last poll.

    connection: has `TABLES`, those of a release or those computed from landed inputs.
    """
    first, last = find_poll_range(connection, query.filesystem)
    until = query.until or last
    if query.since >= last:
        raise no_polls_error(query, first, last)
    params = {"filesystem": query.filesystem, "since": query.since, "until": until}
    runs = connection.sql(_RUNS, params=params | {"directions": list(query.directions)}).pl()
    return SlowdownAnswer(query, until, runs.filter(pl.col("slowed_burst_count") > 0), runs.height, is_landed)


def find_slowdowns_of_days(connection: duckdb.DuckDBPyConnection, days: pl.DataFrame) -> pl.DataFrame:
    """Query the runs of some file systems and days, slowed or not, with the columns of `SlowdownAnswer.runs`.

    days: columns filesystem and polled_on; a burst counts on the day on which it starts.
    """
    connection.register(_CHOSEN, days.select("filesystem", "polled_on").to_arrow())
    try:
        rows: pl.DataFrame = connection.sql(_DAYS).pl()
        return rows
    finally:
        connection.unregister(_CHOSEN)


_CHOSEN = "chosen_slowed_days"


def _aggregate_by_run(bursts: str, key: str) -> str:
    """Return the SQL that aggregates a query of bursts to runs, grouped by `key`."""
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

    -- errors of bursts are independent: add their ranges in quadrature
    runs as (
        select {key}, application_id,
            count(*) as burst_count,
            count(*) filter (is_slowed) as slowed_burst_count,
            sum(delay_s) filter (is_slowed) as delay_s,
            sqrt(sum((delay_s - delay_low_s) ** 2) filter (is_slowed)) as error_s,
            sum(confidence * delay_s) filter (is_slowed) / sum(delay_s) filter (is_slowed) as confidence,
            min(expected_correlation) filter (is_slowed) as expected_correlation,
            -- traffic during bursts that were not slowed is no interference
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
_RUNS = _aggregate_by_run(
    """
        select *, outcome = 'slowed' as is_slowed
        from slowdowns
        where filesystem = $filesystem and outcome != 'not_found' and list_contains($directions, direction)
            and burst_started_at < $until and burst_ended_at > $since
    """,
    _RUN,
)
_DAYS = _aggregate_by_run(
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
    """Runs with bursts that took longer than without interference."""

    format: Literal["iosig-slowdowns/1"] = "iosig-slowdowns/1"
    run_count: int = Field(description="runs with detected bursts [runs]")
    slowed_run_count: int = Field(description="runs with a slowed burst [runs]")
    runs: list[Any] = Field(description="slowed runs by decreasing delay: see [the page](attribution.md#slowdowns)")


def build_slowdown_document(answer: SlowdownAnswer, max_count: int, release_id: str) -> SlowdownsDocument:
    """Build the JSON document with at most `max_count` runs and the total count."""
    return SlowdownsDocument(
        **question_fields(answer.query, answer.until, release_id, is_landed=answer.is_landed),
        run_count=answer.run_count,
        slowed_run_count=answer.runs.height,
        runs=answer.runs.head(max_count).to_dicts(),
    )

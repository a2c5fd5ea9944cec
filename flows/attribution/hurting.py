"""`iosig who --hurt`: runs whose bursts took longer than alone, by how much, and whose bytes stood there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from flows.attribution.asking import Asked, instant_text, plain_row, polled
from warehouse.releases.reading import opened
from warehouse.releases.releases import Release
from warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class HurtAnswer:
    """Who was hurt in a time. runs: a row each run that was, those that lost most first.

    runs: longer_s, with a range, of the bursts that were hurt, how many of those that were found; others_bytes of
    other runs meanwhile, nobodys_bytes; and first_application_id, first_job_id, first_bytes: of the other run that had
    most where it had more than any other. run_count: runs whose bursts were looked for. is_landed: whether that is of
    what has landed, not of a release.
    """

    asked: Asked
    until: datetime
    runs: pl.DataFrame
    run_count: int
    is_landed: bool = False


def hurt(store: Store, release: Release, asked: Asked) -> HurtAnswer:
    """Return who was hurt, as a release tells it. UsageError where it has no polls of the file system."""
    with opened(store, release, "slowdowns jobs ticks") as connection:
        return hurt_of(connection, asked)


def hurt_of(connection: duckdb.DuckDBPyConnection, asked: Asked) -> HurtAnswer:
    """Return who was hurt, of tables `slowdowns`, `jobs` and `ticks`."""
    until = asked.until or polled(connection, asked.filesystem)[1]
    told = {"filesystem": asked.filesystem, "since": asked.since, "until": until}
    runs = connection.sql(_RUNS, params=told | {"directions": list(asked.directions)}).pl()
    return HurtAnswer(asked, until, runs.filter(pl.col("hurt_burst_count") > 0), runs.height)


#: bursts whose errors have nothing to do with each other: the range of a sum is narrower than the sum of ranges
_RUNS = """
    with bursts as (
        select *, outcome = 'hurt' as is_hurt
        from slowdowns
        where filesystem = $filesystem and outcome != 'not_found' and list_contains($directions, direction)
            and burst_began_at < $until and burst_ended_at > $since
    ),

    beside as (
        select cluster, job_id, started_at, first_job_id, first_application_id, sum(first_bytes) as first_bytes
        from bursts
        where first_job_id is not null
        group by cluster, job_id, started_at, first_job_id, first_application_id
        qualify row_number() over (
            partition by cluster, job_id, started_at order by sum(first_bytes) desc, first_job_id
        ) = 1
    ),

    runs as (
        select cluster, job_id, started_at, application_id,
            count(*) as burst_count,
            count(*) filter (is_hurt) as hurt_burst_count,
            sum(longer_s) filter (is_hurt) as longer_s,
            sqrt(sum((longer_s - low_longer_s) ** 2) filter (is_hurt)) as error_s,
            sum(certainty * longer_s) filter (is_hurt) / sum(longer_s) filter (is_hurt) as certainty,
            sum(others_bytes) as others_bytes,
            sum(nobodys_bytes) as nobodys_bytes
        from bursts
        group by all
    )

    select runs.* exclude (error_s), jobs.user, jobs.application,
        greatest(longer_s - error_s, 0) as low_longer_s, longer_s + error_s as high_longer_s,
        first_job_id, first_application_id, first_bytes
    from runs
    left join jobs using (cluster, job_id, started_at)
    left join beside using (cluster, job_id, started_at)
    order by longer_s desc nulls last, cluster, job_id, started_at
"""


def hurt_document(told: HurtAnswer, most_count: int, release_id: str) -> dict[str, Any]:
    """Return an answer for programs: so many runs at most, and how many there are."""
    return {
        "release_id": release_id,
        "from": "landed" if told.is_landed else "release",
        "filesystem": told.asked.filesystem,
        "since": instant_text(told.asked.since),
        "until": instant_text(told.until),
        "directions": list(told.asked.directions),
        "run_count": told.run_count,
        "hurt_run_count": told.runs.height,
        "runs": [plain_row(row) for row in told.runs.head(most_count).to_dicts()],
    }

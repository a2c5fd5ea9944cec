"""Draw classified runs at random for manual verification, as in White et al., PEARC'18, section 5.

The paper's form shows the data rate of a run drawn at random, with a button for each class. Runs of class NO_USAGE,
which is a threshold on bytes, have no button there and are not drawn. DOI 10.1145/3219104.3219121.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date
from typing import TYPE_CHECKING, Literal

import polars as pl

from iosig.answers.report.samples import downsample
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

_TABLES = "classes periods run_samples class_reviews"
#: maximum steps of a series on the page
_MAX_STEPS = 240
_KEY = ["cluster", "job_id", "started_at", "filesystem", "direction"]


@dataclass(frozen=True, slots=True)
class ReviewQuery:
    """Selects the runs to draw.

    count: maximum number of runs. seed: the same seed draws the same runs of a release. reviewer: runs that this
    reviewer has already reviewed are not drawn. since, until: UTC days on which the runs ended; None: unbounded.
    """

    count: int
    seed: int
    reviewer: str
    direction: Literal["read", "write"] | None = None
    since: date | None = None
    until: date | None = None


def draw_runs(store: Store, release: Release, query: ReviewQuery) -> pl.DataFrame:
    """Draw classified runs with a series of their traffic, in random order.

    Returns one row per run, file system and direction: the key of `classes`, basis, label, section_bytes, duration_s,
    node_count, period_s (NULL without a period), is_exact (false if the series includes the traffic of other jobs),
    start_s and step_s (of the series, from the run's start), scale_bytes_per_s and rates.

    Raises NothingToDo if the release has no such run.
    """
    with open_release(store, release, _TABLES) as connection:
        runs = query_runs(connection, query)
    if runs.is_empty():
        raise NothingToDo(
            f"Release {release.release_id} has no classified run with a series that {query.reviewer!r} has not "
            "reviewed."
        )
    return runs


def query_runs(connection: duckdb.DuckDBPyConnection, query: ReviewQuery) -> pl.DataFrame:
    """Draw runs from the tables of a release; see `draw_runs`."""
    drawn = pl.DataFrame(connection.sql(_DRAWN, params=asdict(query)).to_arrow_table())
    connection.register("drawn", drawn.select(*_KEY, "source").to_arrow())
    try:
        series = downsample(connection, _SERIES, _MAX_STEPS)
    finally:
        connection.unregister("drawn")
    return drawn.drop("source").join(series, on=_KEY, how="inner", maintain_order="left")


#: a run's own counters come before its traces and shared traffic, and a hash of the key decides the order
_DRAWN = """
    with series as (
        select cluster, job_id, started_at, filesystem, direction,
            arg_min(source, list_position(['jobstats', 'client', 'server'], source)) as source
        from run_samples
        where outcome = 'measured'
            and ($since::date is null or ended_on >= $since::date)
            and ($until::date is null or ended_on <= $until::date)
        group by all
    ),

    chosen_periods as (
        select * from periods
        where is_default and outcome = 'periodic' and subject_kind = 'job'
    ),

    reviewed as (
        select * from class_reviews
        where reviewer = $reviewer and subject_kind = 'job'
    )

    select classes.cluster, classes.subject_id as job_id, classes.started_at, classes.filesystem, classes.direction,
        classes.basis, classes.label, classes.section_bytes, classes.duration_s, classes.node_count,
        chosen_periods.period_s, series.source, series.source != 'server' as is_exact
    from classes
    inner join series
        on classes.cluster = series.cluster and classes.subject_id = series.job_id
        and classes.started_at = series.started_at and classes.filesystem = series.filesystem
        and classes.direction = series.direction
    left join chosen_periods
        on classes.cluster = chosen_periods.cluster and classes.subject_id = chosen_periods.subject_id
        and classes.started_at = chosen_periods.started_at and classes.filesystem = chosen_periods.filesystem
        and classes.direction = chosen_periods.direction
    anti join reviewed
        on classes.cluster = reviewed.cluster and classes.subject_id = reviewed.subject_id
        and classes.started_at = reviewed.started_at and classes.filesystem = reviewed.filesystem
        and classes.direction = reviewed.direction
    where classes.subject_kind = 'job' and classes.outcome = 'classified' and classes.label != 'NO_USAGE'
        and ($direction::varchar is null or classes.direction = $direction)
    order by
        md5(
            concat_ws(
                chr(31), $seed::bigint, classes.cluster, classes.subject_id, epoch_us(classes.started_at),
                classes.filesystem, classes.direction
            )
        )
    limit $count::bigint
"""

_SERIES = """
    select cluster, job_id, started_at, filesystem, direction,
        epoch(grid_started_at) - epoch(started_at) as start_s,
        interval_s,
        sample_bytes_per_s as rates
    from run_samples
    semi join drawn using (source, cluster, job_id, started_at, filesystem, direction)
"""

"""Compute statistics of all runs of a release, after White et al., PEARC'18, section 6, Tables 1-2, Figures 2-5.

The runs are application runs, and series without a job log; a run counts once per file system. The paper excludes jobs
shorter than ten minutes; this module excludes runs without a class. It also excludes jobs on shared nodes; this is a
choice here (`Query.excludes_shared_nodes`). DOI 10.1145/3219104.3219121.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Literal

import polars as pl

from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

By = Literal["application", "user", "account", "duration"]
#: classes with I/O over the whole run: only their periods count in the paper's tables and figures
EVEN = ("UNIFORM", "OTHER")
#: bases of a run's class, most exact first
BASES = ("counted", "series", "traced", "inferred")
#: sources of a run's bytes, best first
WITNESSES = ("exact", "trace", "signature", "none")
#: the tables that are queried
_TABLES = (
    "jobs classes periods inference_checks job_io trace_jobs signatures sample_sets attributed_io attribution_daily"
)
#: number of users in `repeats`: those with the largest jobs (IOSI, Figure 2)
REPEAT_USERS = 7
#: sum of bytes; NULL if the bytes of all runs are unknown
_BYTES = pl.when(pl.col("bytes").is_not_null().any()).then(pl.col("bytes").sum()).alias("bytes")
_RUN = ("subject_kind", "cluster", "subject_id", "started_at", "filesystem")


@dataclass(frozen=True, slots=True)
class Query:
    """Runs that ended on the UTC days `since` to `until` (None: unbounded), grouped by `by`.

    excludes_shared_nodes: leave out runs on nodes that other jobs may have used at the same time.
    """

    since: date | None = None
    until: date | None = None
    by: By = "application"
    excludes_shared_nodes: bool = False


@dataclass(frozen=True, slots=True)
class Population:
    """Classes, periods, volumes and node hours of all selected runs.

    runs: one row per run, file system and direction: class_outcome, label, basis (one of `BASES`), period_s (of
    periodic runs), bytes (best estimate), node_hours, witness (one of `WITNESSES`), name (of its group).
    measured_bytes: bytes that polls measured on those days. agreement: measured and inferred labels of runs with both,
    with run_count. repeats: run_count by user, application and node_count, of the `REPEAT_USERS` users with the largest
    jobs in the job log, in this order, most frequent configuration first (Figure 2 of IOSI, FAST'14).
    """

    query: Query
    runs: pl.DataFrame
    agreement: pl.DataFrame
    measured_bytes: float
    repeats: pl.DataFrame

    @property
    def run_count(self) -> int:
        """Number of runs; a run counts once per file system."""
        return self.runs.select(_RUN).n_unique()

    @property
    def node_hours(self) -> float:
        """Node hours, each run once, of runs with known node counts."""
        unique_runs = self.runs.select("cluster", "subject_id", "started_at", "node_hours").unique(maintain_order=True)
        return float(unique_runs["node_hours"].sum())

    def labels(self) -> pl.DataFrame:
        """Count runs by write and read class (Table 1); NULL for a direction without a class."""
        wide = self.runs.group_by(_RUN).agg(
            pl.col("label").filter(pl.col("direction") == name).first().alias(name) for name in ("write", "read")
        )
        return wide.group_by("write", "read").agg(run_count=pl.len()).sort("write", "read")

    def shares(self) -> pl.DataFrame:
        """Return each class's fraction of runs and bytes, and the fraction of periodic runs in `EVEN` (Table 2)."""
        classified = self.runs.filter(pl.col("label").is_not_null())
        of_all = classified.group_by("direction").agg(
            all_count=pl.len(),
            all_bytes=pl.col("bytes").sum(),
            periodic_count=(pl.col("period_s").is_not_null() & pl.col("label").is_in(EVEN)).sum(),
        )
        of_each = classified.group_by("direction", "label").agg(run_count=pl.len(), bytes=pl.col("bytes").sum())
        known_bytes = pl.when(pl.col("all_bytes") > 0).then(pl.col("all_bytes"))
        return (
            of_each.join(of_all, on="direction")
            .select(
                "direction",
                "label",
                "run_count",
                run_ratio=pl.col("run_count") / pl.col("all_count"),
                bytes_ratio=pl.col("bytes") / known_bytes,
                periodic_ratio=pl.col("periodic_count") / pl.col("all_count"),
            )
            .sort("direction", "label")
        )

    def groups(self) -> pl.DataFrame:
        """Return statistics per application, user, account or range of durations, by decreasing bytes.

        Column label: most frequent class in the direction with more bytes. stability: fraction of runs with that class.
        """
        main = self._main_directions()
        common = (
            main.filter(pl.col("label").is_not_null())
            .group_by("name", "label")
            .len("label_count")
            .sort("label_count", "label", descending=[True, False])
            .group_by("name", maintain_order=True)
            .agg(pl.col("label", "label_count").first(), classified_count=pl.col("label_count").sum())
        )
        totals = self.runs.group_by("name").agg(_BYTES, run_count=pl.struct(_RUN).n_unique())
        hours = self.runs.select("name", *_RUN, "node_hours").unique().group_by("name").agg(pl.col("node_hours").sum())
        periodic = main.group_by("name").agg(
            periodic_ratio=pl.col("period_s").is_not_null().mean(), median_period_s=pl.col("period_s").median()
        )
        return (
            totals.join(hours, on="name", nulls_equal=True)
            .join(common, on="name", how="left", nulls_equal=True)
            .join(periodic, on="name", nulls_equal=True)
            .with_columns(stability=pl.col("label_count") / pl.col("classified_count"))
            .sort("bytes", "node_hours", "name", descending=[True, True, False], nulls_last=True)
        )

    def _main_directions(self) -> pl.DataFrame:
        """Select the runs of each group's direction with more bytes: classes differ between directions."""
        totals = self.runs.group_by("name", "direction").agg(_BYTES)
        main = totals.sort("bytes", "direction", descending=True, nulls_last=True).unique("name", keep="first")
        return self.runs.join(main.select("name", "direction"), on=["name", "direction"], nulls_equal=True)

    def bases(self) -> pl.DataFrame:
        """Count runs and directions by basis of their class."""
        classified = self.runs.filter(pl.col("label").is_not_null()).group_by(pl.col("basis").cast(pl.Enum(BASES)))
        return classified.agg(run_count=pl.len()).sort("basis")

    def count_without_class(self) -> pl.DataFrame:
        """Count runs and directions without a class, by outcome."""
        without = self.runs.filter(pl.col("label").is_null())
        return without.group_by(outcome="class_outcome").agg(run_count=pl.len()).sort("outcome")

    def reference_sources(self) -> pl.DataFrame:
        """Count runs and sum bytes by the best source: exact series, trace, signature or none."""
        best = self.runs.group_by(_RUN).agg(pl.col("witness").cast(pl.Enum(WITNESSES)).min(), pl.col("bytes").sum())
        by_source = best.group_by("witness").agg(run_count=pl.len(), bytes=pl.col("bytes").sum())
        every = pl.DataFrame({"witness": pl.Series(WITNESSES, dtype=pl.Enum(WITNESSES))})
        return every.join(by_source, on="witness", how="left", maintain_order="left").with_columns(
            pl.col("run_count").fill_null(0), pl.col("bytes").fill_null(0.0)
        )

    def periods(self, direction: str) -> pl.Series:
        """Return the periods [s] of runs in the classes `EVEN` (Figures 4 and 5)."""
        even = (pl.col("direction") == direction) & pl.col("label").is_in(EVEN)
        return self.runs.filter(even)["period_s"].drop_nulls()

    def days(self) -> pl.DataFrame:
        """Count runs by end day, direction and class."""
        dated = self.runs.filter(pl.col("label").is_not_null() & pl.col("ended_on").is_not_null())
        return dated.group_by("ended_on", "direction", "label").len("run_count").sort("ended_on", "direction", "label")


def read_population(store: Store, release: Release, query: Query) -> Population:
    """Read the statistics of a release; raises NothingToDo if it has no runs on those days."""
    with open_release(store, release, _TABLES) as connection:
        result = query_population(connection, query)
    if result.runs.is_empty():
        raise NothingToDo(f"Release {release.release_id} has no classified runs or series on those days.")
    return result


def query_population(connection: duckdb.DuckDBPyConnection, query: Query) -> Population:
    """Query the statistics; the connection has `_TABLES`."""
    days = {"since": query.since, "until": query.until}
    selection = days | {"excludes_shared_nodes": query.excludes_shared_nodes}
    runs = connection.sql(_RUNS, params=selection).pl()
    measured = connection.sql(_MEASURED, params=days).pl()["measured_bytes"][0]
    return Population(
        query,
        runs.with_columns(name=pl.col(query.by)),
        connection.sql(_AGREEMENT, params=days).pl(),
        float(measured or 0.0),
        connection.sql(_REPEATS, params=selection | {"user_count": REPEAT_USERS}).pl(),
    )


#: runs with class, period, own bytes if known, and the source of these bytes
_RUNS = """
    with judged as (
        select *
        from classes
        where subject_kind in ('job', 'series')
            and ($since::date is null or ended_on >= $since::date)
            and ($until::date is null or ended_on <= $until::date)
    ),

    chosen_periods as (
        select * from periods
        where is_default and outcome = 'periodic'
    ),

    explained as (
        select cluster, job_id, started_at, filesystem, direction, sum(attributed_bytes) as attributed_bytes
        from attributed_io
        group by all
    ),

    traced as (
        select distinct cluster, job_id, job_started_at as started_at
        from trace_jobs
        where job_id is not null
    ),

    signed as (
        select distinct cluster, job_id, started_at, filesystem, direction
        from sample_sets
        semi join (from signatures where is_default and outcome = 'extracted') as extracted
            using (application_id, filesystem, direction)
    )

    select
        judged.subject_kind,
        judged.cluster,
        judged.subject_id,
        judged.started_at,
        judged.filesystem,
        judged.direction,
        judged.ended_on,
        judged.outcome as class_outcome,
        judged.label,
        judged.basis,
        chosen_periods.period_s,
        jobs.user,
        jobs.account,
        coalesce(jobs.application, if(judged.subject_kind = 'series', judged.subject_id, null)) as application,
        -- section 6 of the paper compares runs of more than 12 hours with all runs
        case
            when judged.duration_s < 3600 then 'under 1 h'
            when judged.duration_s < 14400 then '1 to 4 h'
            when judged.duration_s <= 43200 then '4 to 12 h'
            when judged.duration_s > 43200 then 'over 12 h'
        end as duration,
        judged.node_count * judged.duration_s / 3600 as node_hours,
        coalesce(
            job_io.estimated_bytes,
            if(judged.basis = 'inferred', null, judged.volume_bytes)
        )::double as bytes,
        case
            when judged.basis in ('counted', 'series') then 'exact'
            when judged.basis = 'traced' or traced.job_id is not null then 'trace'
            when signed.job_id is not null then 'signature'
            else 'none'
        end as witness
    from judged
    left join jobs
        on judged.cluster = jobs.cluster and judged.subject_id = jobs.job_id and judged.started_at = jobs.started_at
    left join job_io
        on jobs.cluster = job_io.cluster and jobs.job_id = job_io.job_id
        and jobs.started_at = job_io.started_at and judged.filesystem = job_io.filesystem
        and judged.direction = job_io.direction
    left join explained
        on jobs.cluster = explained.cluster and jobs.job_id = explained.job_id
        and jobs.started_at = explained.started_at and judged.filesystem = explained.filesystem
        and judged.direction = explained.direction
    left join traced
        on jobs.cluster = traced.cluster and jobs.job_id = traced.job_id and jobs.started_at = traced.started_at
    left join signed
        on jobs.cluster = signed.cluster and jobs.job_id = signed.job_id and jobs.started_at = signed.started_at
        and judged.filesystem = signed.filesystem and judged.direction = signed.direction
    left join chosen_periods
        on judged.subject_kind = chosen_periods.subject_kind
        and judged.subject_id = chosen_periods.subject_id
        and judged.direction = chosen_periods.direction
        and judged.cluster is not distinct from chosen_periods.cluster
        and judged.started_at is not distinct from chosen_periods.started_at
        and judged.filesystem is not distinct from chosen_periods.filesystem
    where (judged.subject_kind = 'series' or coalesce(jobs.is_application_run, true))
        and not ($excludes_shared_nodes and coalesce(jobs.has_shared_nodes, false))
    order by all
"""

_AGREEMENT = """
    select
        measured_label,
        inferred_label,
        count(*) as run_count
    from inference_checks
    where is_same_class is not null
        and ($since::date is null or ended_on >= $since::date)
        and ($until::date is null or ended_on <= $until::date)
    group by all
    order by all
"""

#: a configuration is a user, an application and a number of nodes, as in `application_id`
_REPEATS = """
    with logged_runs as (
        select jobs.user, jobs.application, jobs.node_count
        from jobs
        where coalesce(jobs.is_application_run, true)
            and jobs.user is not null
            and jobs.node_count is not null
            and jobs.started_at is not null
            and not ($excludes_shared_nodes and coalesce(jobs.has_shared_nodes, false))
            and ($since::date is null or jobs.ended_on >= $since::date)
            and ($until::date is null or jobs.ended_on <= $until::date)
    ),

    largest as (
        select logged_runs.user, max(logged_runs.node_count) as max_node_count
        from logged_runs
        group by logged_runs.user
        order by max_node_count desc, logged_runs.user
        limit $user_count
    )

    select logged_runs.user, logged_runs.application, logged_runs.node_count, count(*) as run_count
    from logged_runs
    inner join largest on logged_runs.user = largest.user
    group by logged_runs.user, largest.max_node_count, logged_runs.application, logged_runs.node_count
    order by
        largest.max_node_count desc, logged_runs.user, run_count desc, logged_runs.node_count desc,
        logged_runs.application
"""

_MEASURED = """
    select sum(measured_bytes) as measured_bytes
    from attribution_daily
    where ($since::date is null or polled_on >= $since::date) and ($until::date is null or polled_on <= $until::date)
"""

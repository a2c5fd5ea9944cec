"""What a release says of all its runs together: PEARC'18, section 6, Tables 1 and 2, Figures 2 to 5.

Counted are application runs, and series where no job log tells of them; a run counts once for each file system. The
paper leaves out jobs shorter than ten minutes; here those are that have no label. White et al., PEARC'18,
DOI 10.1145/3219104.3219121.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Literal

import polars as pl

from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases.reading import opened
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

By = Literal["application", "user", "account"]
#: of which I/O a period is counted in the paper's tables and figures: it is told of the whole run
EVEN = ("UNIFORM", "OTHER")
#: what classes of runs rest on: the exact ones first
BASES = ("counted", "series", "traced", "inferred")
#: who tells of a run's bytes, the best first
WITNESSES = ("exact", "trace", "signature", "none")
#: what is read of a release
_TABLES = (
    "jobs classes periods inference_checks job_io trace_jobs signatures sample_sets attributed_io attribution_daily"
)
#: bytes of many runs: not known where those of none are
_BYTES = pl.when(pl.col("bytes").is_not_null().any()).then(pl.col("bytes").sum()).alias("bytes")
_RUN = ("subject_kind", "cluster", "subject_id", "started_at", "filesystem")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked: runs that ended from the UTC day `since` to `until` (None: any), in groups of what."""

    since: date | None = None
    until: date | None = None
    by: By = "application"


@dataclass(frozen=True, slots=True)
class Population:
    """What is known of all runs together.

    runs: a row each run, file system and direction: class_outcome, label, basis (one of `BASES`), period_s (of a
    periodic one), bytes (the best estimate, where there is one), node_hours, witness, name (of its group).
    measured_bytes: what polls hold of those days.
    agreement: measured and inferred labels of runs that have both, with run_count.
    """

    asked: Asked
    runs: pl.DataFrame
    agreement: pl.DataFrame
    measured_bytes: float

    @property
    def run_count(self) -> int:
        """Runs, each once for each file system."""
        return self.runs.select(_RUN).n_unique()

    @property
    def node_hours(self) -> float:
        """Node hours of these runs, each once; where their nodes are known."""
        once = self.runs.select("cluster", "subject_id", "started_at", "node_hours").unique(maintain_order=True)
        return float(once["node_hours"].sum())

    def labels(self) -> pl.DataFrame:
        """Return runs by write and read class (Table 1); NULL where a direction has none."""
        wide = self.runs.group_by(_RUN).agg(
            pl.col("label").filter(pl.col("direction") == name).first().alias(name) for name in ("write", "read")
        )
        return wide.group_by("write", "read").agg(run_count=pl.len()).sort("write", "read")

    def shares(self) -> pl.DataFrame:
        """Return the share of runs and bytes that each class has, and of those that are even and periodic (Table 2)."""
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
        """Return applications, users or accounts by what they moved: with their commonest class, and how common it is.

        stability: the share of the runs of a direction that have its commonest class, of the direction that moved more.
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
        moved = self.runs.group_by("name").agg(_BYTES, run_count=pl.struct(_RUN).n_unique())
        hours = self.runs.select("name", *_RUN, "node_hours").unique().group_by("name").agg(pl.col("node_hours").sum())
        periodic = main.group_by("name").agg(
            periodic_ratio=pl.col("period_s").is_not_null().mean(), median_period_s=pl.col("period_s").median()
        )
        return (
            moved.join(hours, on="name", nulls_equal=True)
            .join(common, on="name", how="left", nulls_equal=True)
            .join(periodic, on="name", nulls_equal=True)
            .with_columns(stability=pl.col("label_count") / pl.col("classified_count"))
            .sort("bytes", "node_hours", "name", descending=[True, True, False], nulls_last=True)
        )

    def _main_directions(self) -> pl.DataFrame:
        """Return the runs in the direction in which their group moved more: each direction has classes of its own."""
        moved = self.runs.group_by("name", "direction").agg(_BYTES)
        main = moved.sort("bytes", "direction", descending=True, nulls_last=True).unique("name", keep="first")
        return self.runs.join(main.select("name", "direction"), on=["name", "direction"], nulls_equal=True)

    def bases(self) -> pl.DataFrame:
        """Return how many runs and directions have a class on each basis."""
        classified = self.runs.filter(pl.col("label").is_not_null()).group_by(pl.col("basis").cast(pl.Enum(BASES)))
        return classified.agg(run_count=pl.len()).sort("basis")

    def unclassified(self) -> pl.DataFrame:
        """Return how many runs and directions have no class, by outcome."""
        without = self.runs.filter(pl.col("label").is_null())
        return without.group_by(outcome="class_outcome").agg(run_count=pl.len()).sort("outcome")

    def reference_sources(self) -> pl.DataFrame:
        """Return how many runs have an exact series, a trace, a signature or none, and the bytes that these tell of."""
        best = self.runs.group_by(_RUN).agg(pl.col("witness").cast(pl.Enum(WITNESSES)).min(), pl.col("bytes").sum())
        counted = best.group_by("witness").agg(run_count=pl.len(), bytes=pl.col("bytes").sum())
        every = pl.DataFrame({"witness": pl.Series(WITNESSES, dtype=pl.Enum(WITNESSES))})
        return every.join(counted, on="witness", how="left", maintain_order="left").with_columns(
            pl.col("run_count").fill_null(0), pl.col("bytes").fill_null(0.0)
        )

    def periods(self, direction: str) -> pl.Series:
        """Return the periods [s] of even runs of a direction (Figures 4 and 5)."""
        even = (pl.col("direction") == direction) & pl.col("label").is_in(EVEN)
        return self.runs.filter(even)["period_s"].drop_nulls()

    def days(self) -> pl.DataFrame:
        """Return runs by the day they ended, direction and class."""
        told = self.runs.filter(pl.col("label").is_not_null() & pl.col("ended_on").is_not_null())
        return told.group_by("ended_on", "direction", "label").len("run_count").sort("ended_on", "direction", "label")


def population(store: Store, release: Release, asked: Asked) -> Population:
    """Return what a release says of all its runs. NothingToDo where it has none of those days."""
    with opened(store, release, _TABLES) as connection:
        found = counted(connection, asked)
    if found.runs.is_empty():
        raise NothingToDo(f"Release {release.release_id} has no classes of runs or series of those days.")
    return found


def counted(connection: duckdb.DuckDBPyConnection, asked: Asked) -> Population:
    """Return what the tables of a release say of all runs; the tables have to be those of `_TABLES`."""
    days = {"since": asked.since, "until": asked.until}
    runs = connection.sql(_RUNS, params=days).pl()
    measured = connection.sql(_MEASURED, params=days).pl()["measured_bytes"][0]
    return Population(
        asked,
        runs.with_columns(name=pl.col(asked.by)),
        connection.sql(_AGREEMENT, params=days).pl(),
        float(measured or 0.0),
    )


#: runs with their class, period, own bytes as far as these are known, and the source of these bytes
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
    where judged.subject_kind = 'series' or coalesce(jobs.is_application_run, true)
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

_MEASURED = """
    select sum(measured_bytes) as measured_bytes
    from attribution_daily
    where ($since::date is null or polled_on >= $since::date) and ($until::date is null or polled_on <= $until::date)
"""

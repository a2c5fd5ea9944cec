"""`iosig job`: query the bytes, operations, samples, signatures, neighbors, slowdowns and traces of one run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from iosig.answers.findings import query as findings
from iosig.answers.findings.query import TracedRun
from iosig.answers.report.runs import MAX_STEPS, read_runs
from iosig.answers.report.samples import downsample
from iosig.answers.single.one_input import TraceInput, open_input
from iosig.reports.findings import HeatView, summarize_heat_maps
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions
from iosig.transforms.findings.rank_times import RankTimes
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

#: maximum steps of a signature's curve
_MAX_STEPS = 240
_TABLES = (
    "jobs job_io samples exact_samples attributed_io classes periods signatures signature_points slowdowns "
    f"{findings.TABLES}"
)
#: tables of a run's operations, of which `open_release` selects the rows
_OPERATION_TABLES = "samples classes periods signatures signature_points"
_KEY = ["cluster", "job_id", "started_at"]
_PLACE = ["application_id", "filesystem", "direction"]
_SAMPLE = ["filesystem", "direction", "application_id", "is_exact", "start_s", "step_s", "scale_bytes_per_s", "rates"]


@dataclass(frozen=True, slots=True)
class JobReport:
    """All published data about one run, with the analysis of its traces.

    release_id: None for a trace without a warehouse. job: its row of `jobs`, None if no job log contains it.
    other_runs: start times of other runs with the same job id. neighbors: by decreasing bytes. operations,
    operation_signatures: as samples and signatures, with amounts of operations in the columns of bytes; empty if no
    server counted operations during the run.
    """

    job_id: str
    release_id: str | None
    job: dict[str, Any] | None
    traces: tuple[TracedRun, ...]
    other_runs: tuple[datetime, ...] = ()
    io: pl.DataFrame = field(default_factory=pl.DataFrame)
    samples: pl.DataFrame = field(default_factory=pl.DataFrame)
    signatures: pl.DataFrame = field(default_factory=pl.DataFrame)
    neighbors: pl.DataFrame = field(default_factory=pl.DataFrame)
    slowdowns: pl.DataFrame = field(default_factory=pl.DataFrame)
    operations: pl.DataFrame = field(default_factory=pl.DataFrame)
    operation_signatures: pl.DataFrame = field(default_factory=pl.DataFrame)

    @property
    def maps(self) -> tuple[RankTimes, ...]:
        """Heat maps of the first trace that has any."""
        return next((trace.maps for trace in self.traces if trace.maps), ())


def query_trace(path: Path, settings: Settings) -> JobReport:
    """Report on a trace without a warehouse; raises InputRefused if the input is not a trace."""
    with open_input(path, settings, ReadOptions()) as trace:
        if not isinstance(trace, TraceInput):
            raise InputRefused(f"{path.name} is not a trace.", "Pass a Darshan log.")
        run = findings.analyze_input(trace)
    return JobReport(run.job["traced_job_id"] or path.name, None, None, (run,))


def query_release(
    store: Store, release: Release, job_id: str, cluster: str | None = None, started: datetime | None = None
) -> JobReport:
    """Report on a run of a job in a release: the last one, unless `started` selects another.

    Raises UsageError if the release has no such run.
    """
    with open_release(store, release, _TABLES) as connection:
        params = {"job_id": job_id, "cluster": cluster}
        runs = connection.sql(_RUNS_OF_JOB, params=params).pl()
        chosen = runs if started is None else runs.filter(pl.col("started_at") == started)
        if chosen.is_empty():
            return _report_without_log(connection, release, job_id, runs, started)
        job = chosen.tail(1).row(0, named=True)
        connection.register("chosen_run", chosen.tail(1).to_arrow())
        io = _io(connection, chosen.tail(1))
        places = io.select(*_PLACE).drop_nulls()
        connection.register("chosen_places", places.to_arrow())
        return JobReport(
            job_id,
            release.release_id,
            {name: value for name, value in job.items() if name != "ended_on"},
            tuple(findings.analyze_release(connection, _ids(connection.sql(_TRACES)))),
            tuple(instant for instant in runs["started_at"] if instant != job["started_at"]),
            io.drop(*_KEY, *_SAMPLE[2:]),
            io.select(_SAMPLE).filter(pl.col("rates").is_not_null()),
            connection.sql(_SIGNATURES, params={"max_steps": _MAX_STEPS}).pl(),
            connection.sql(_NEIGHBORS).pl(),
            connection.sql(_SLOWDOWNS).pl(),
            *(_read_operations(store, release, chosen.tail(1)) if connection.sql(_COUNTED).fetchall() else ()),
        )


def _read_operations(store: Store, release: Release, run: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the operations of all jobs during a run, with its class and period in operations, and the signatures."""
    with open_release(store, release, _OPERATION_TABLES, "operations") as connection:
        connection.register("chosen_run", run.to_arrow())
        operations = downsample(connection, _OPERATIONS, MAX_STEPS).sort(
            "filesystem", "direction", descending=[False, True]
        )
        connection.register("chosen_places", operations.select(*_PLACE).drop_nulls().to_arrow())
        return operations, connection.sql(_SIGNATURES, params={"max_steps": _MAX_STEPS}).pl()


def _io(connection: duckdb.DuckDBPyConnection, run: pl.DataFrame) -> pl.DataFrame:
    """Query the bytes and samples of a run, by file system and direction; run: its row of `jobs`."""
    hour = run["started_at"].dt.truncate("1h")[0]
    every = read_runs(connection, {hour: run["ended_on"].to_list()}).io
    return every.join(run, on=_KEY, how="semi").sort("filesystem", "direction", descending=[False, True])


def _report_without_log(
    connection: duckdb.DuckDBPyConnection, release: Release, job_id: str, runs: pl.DataFrame, started: datetime | None
) -> JobReport:
    """Report on a job from its traces only, since no job log contains it."""
    if runs.height:
        starts = ", ".join(f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" for instant in runs["started_at"].tail(5))
        raise UsageError(f"No run of job {job_id!r} started then; the last runs started at {starts}.")
    if started is None:
        traces = findings.analyze_release(connection, _ids(connection.sql(_TRACES_ALONE, params={"job_id": job_id})))
        if traces:
            return JobReport(job_id, release.release_id, None, tuple(traces))
    similar = connection.sql(_SIMILAR, params={"job_id": job_id}).fetchall()
    suggestion = f" Did you mean {', '.join(name for (name,) in similar)}?" if similar else ""
    raise UsageError(f"No job {job_id!r} is in release {release.release_id}.{suggestion}")


def _ids(rows: duckdb.DuckDBPyRelation) -> list[str]:
    return [trace_id for (trace_id,) in rows.fetchall()]


_RUNS_OF_JOB = """
    select cluster, job_id, started_at, ended_at, submitted_at, user, account, application, partition, node_count,
        task_count, state, duration_s, ended_on
    from jobs
    where is_application_run and started_at is not null and job_id = $job_id
        and ($cluster::varchar is null or cluster = $cluster)
    order by started_at, cluster
"""
#: ids with the same prefix or a high similarity, most similar first
_SIMILAR = """
    select job_id
    from jobs
    where is_application_run and (starts_with(job_id, $job_id) or jaro_winkler_similarity(job_id, $job_id) > 0.8)
    group by job_id
    order by jaro_winkler_similarity(job_id, $job_id) desc, job_id
    limit 3
"""
_TRACES = """
    select trace_id
    from trace_jobs
    semi join chosen_run
        on trace_jobs.cluster = chosen_run.cluster and trace_jobs.job_id = chosen_run.job_id
        and trace_jobs.job_started_at = chosen_run.started_at
    order by started_at, trace_id
"""
_TRACES_ALONE = "select trace_id from trace_jobs where traced_job_id = $job_id order by started_at, trace_id"

#: signatures of the run's application on the file systems that it used
_SIGNATURES = """
    with chosen as (
        select application_id, filesystem, direction, method, outcome, expected_correlation, volume_bytes, burst_count,
            duration_s, greatest(ceil(duration_s / $max_steps), 1) as step_s
        from signatures
        semi join chosen_places using (application_id, filesystem, direction)
        where is_default
    ),

    binned as (
        select application_id, filesystem, direction, floor(offset_s / step_s) as bin, avg(bytes_per_s) as rate
        from signature_points
        inner join chosen using (application_id, filesystem, direction, method)
        group by all
    ),

    curves as (
        select application_id, filesystem, direction, list(rate order by bin) as rates
        from binned
        group by all
    )

    select chosen.*, curves.rates
    from chosen
    left join curves using (application_id, filesystem, direction)
    order by filesystem, direction desc
"""

#: any sample of the run with operations
_COUNTED = """
    select 1
    from samples
    semi join chosen_run using (cluster, job_id, started_at, ended_on)
    where volume_operations is not null
    limit 1
"""

#: operations that servers counted during the run, with the run's class and period in operations
_OPERATIONS = """
    with labels as (
        select cluster, subject_id as job_id, started_at, ended_on, filesystem, direction, label, outcome, basis
        from classes
        where subject_kind = 'job'
    ),

    periodic as (
        select cluster, subject_id as job_id, started_at, ended_on, filesystem, direction, period_s,
            false_alarm_probability, basis
        from periods
        where subject_kind = 'job' and is_default and outcome = 'periodic'
    )

    select filesystem, direction, application_id, volume_operations as volume_bytes,
        list_max(sample_operations_per_s) as peak_bytes_per_s,
        label, labels.outcome as class_outcome, labels.basis as class_basis,
        period_s, false_alarm_probability, periodic.basis as period_basis,
        epoch(grid_started_at) - epoch(started_at) as start_s,
        interval_s,
        sample_operations_per_s as rates
    from samples
    semi join chosen_run using (cluster, job_id, started_at, ended_on)
    left join labels using (cluster, job_id, started_at, ended_on, filesystem, direction)
    left join periodic using (cluster, job_id, started_at, ended_on, filesystem, direction)
    where volume_operations is not null
"""

_SLOWDOWNS = """
    select * exclude (cluster, job_id, started_at)
    from slowdowns
    semi join chosen_run using (cluster, job_id, started_at)
    order by all
"""

#: concurrent runs on the same file systems, with the bytes attributed to them during the run
_NEIGHBORS = """
    with places as (
        select distinct filesystem
        from job_io
        semi join chosen_run using (cluster, job_id, started_at)
    ),

    neighbor_volumes as (
        select attributed_io.cluster, attributed_io.job_id, attributed_io.started_at, attributed_io.filesystem,
            min(attributed_io.application_id) as application_id,
            sum(attributed_io.attributed_bytes) as attributed_bytes
        from attributed_io
        inner join chosen_run
            on attributed_io.minute_at > chosen_run.started_at
            and attributed_io.minute_at < chosen_run.ended_at + interval 1 minute
        semi join places on attributed_io.filesystem = places.filesystem
        group by all
    ),

    neighbors as (
        select distinct job_io.cluster, job_io.job_id, job_io.started_at, job_io.filesystem
        from job_io
        semi join places using (filesystem)
    )

    select neighbors.cluster, neighbors.job_id, neighbors.started_at, jobs.ended_at, jobs.user, jobs.application,
        jobs.node_count, neighbors.filesystem, neighbor_volumes.application_id, neighbor_volumes.attributed_bytes
    from neighbors
    inner join jobs using (cluster, job_id, started_at)
    inner join chosen_run
        on jobs.started_at < coalesce(chosen_run.ended_at, chosen_run.started_at)
        and coalesce(jobs.ended_at, jobs.started_at) > chosen_run.started_at
        and (jobs.cluster, jobs.job_id, jobs.started_at)
        != (chosen_run.cluster, chosen_run.job_id, chosen_run.started_at)
    left join neighbor_volumes
        on neighbors.cluster = neighbor_volumes.cluster
        and neighbors.job_id = neighbor_volumes.job_id
        and neighbors.started_at = neighbor_volumes.started_at
        and neighbors.filesystem = neighbor_volumes.filesystem
    where jobs.is_application_run
    order by neighbor_volumes.attributed_bytes desc nulls last, neighbors.started_at, neighbors.job_id,
        neighbors.cluster
"""


# ---- heat map


def build_heat_view(report: JobReport) -> HeatView:
    """Build the figure data of a run's heat maps; raises UsageError if its traces have none."""
    shown = next((trace for trace in report.traces if trace.maps), None)
    if shown is None:
        raise UsageError("This run has no heat map: none of its traces records bytes by rank and time.")
    job = shown.job
    subject = [f"job {report.job_id}", job["application"], job["source_file"]]
    return HeatView("  ·  ".join(str(part) for part in subject if part), shown.maps, summarize_heat_maps(shown.maps))

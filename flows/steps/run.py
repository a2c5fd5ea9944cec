"""A plan at work: where it reads, what it was told, where it builds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from flows.settings import Settings
from flows.steps.checker import Checker, InProcess
from flows.steps.plan import Plan
from warehouse.contracts import Table, frames
from warehouse.contracts.classes import CLASSES
from warehouse.contracts.extrapolations import EXTRAPOLATIONS
from warehouse.contracts.job_io import JOB_IO
from warehouse.contracts.jobs import JOBS
from warehouse.contracts.networks import NETWORK_BOTTLENECKS, NETWORK_EDGES, NETWORK_PATTERNS, NETWORK_RUNS
from warehouse.contracts.periods import PERIODS
from warehouse.contracts.polls import POLL_DAYS, TICKS
from warehouse.contracts.predictions import PREDICTIONS
from warehouse.contracts.samples import APPLICATIONS, SAMPLE_SETS, SAMPLES
from warehouse.contracts.series import SERIES_INTERVALS
from warehouse.contracts.signatures import SIGNATURE_BURSTS, SIGNATURE_CHECKS, SIGNATURE_POINTS, SIGNATURES
from warehouse.contracts.traces import TRACE_COUNTERS, TRACE_HEATMAPS, TRACE_JOBS, TRACE_SIGNALS
from warehouse.releases import releases
from warehouse.store import models
from warehouse.store.landing import Landing, Part
from warehouse.store.store import Store, write_parquet

if TYPE_CHECKING:
    import duckdb

    from expectations.gate import Checked

Day = date | None

#: tables of one file per day that every run rebuilds for its days of polls, and for its days of jobs
OF_POLL_DAYS = (POLL_DAYS, TICKS)
OF_JOB_DAYS = (
    JOBS,
    SERIES_INTERVALS,
    TRACE_JOBS,
    TRACE_COUNTERS,
    TRACE_HEATMAPS,
    TRACE_SIGNALS,
    NETWORK_RUNS,
    NETWORK_EDGES,
    NETWORK_PATTERNS,
    NETWORK_BOTTLENECKS,
    SAMPLES,
    JOB_IO,
    CLASSES,
    PERIODS,
)
#: and for its days of predictions
OF_PREDICTION_DAYS = (PREDICTIONS,)
#: those of them that also hold what is said of applications, which are of no day
OF_SIGNATURES = (CLASSES, PERIODS)
#: tables that every run writes whole
WHOLE = (
    EXTRAPOLATIONS,
    APPLICATIONS,
    SAMPLE_SETS,
    SIGNATURES,
    SIGNATURE_POINTS,
    SIGNATURE_BURSTS,
    SIGNATURE_CHECKS,
)


@dataclass(frozen=True)
class Run:
    """A plan at work: where it reads, what it was told, where it builds, who checks."""

    store: Store
    settings: Settings
    plan: Plan
    checker: Checker = field(default_factory=InProcess)
    #: checks that are under way, by table
    begun: dict[str, Future[Checked]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The plan's own folder."""
        return self.store.builds / self.plan.fingerprint

    def path(self, table: Table, day: Day) -> Path:
        """Return where a day of a table is built."""
        return self.folder / table.name / f"{day.isoformat() if day else 'undated'}.parquet"

    def built(self, table: Table, days: Sequence[Day]) -> dict[Day, Path]:
        """Return the files of a table's days, be there any rows or not."""
        return {day: self.path(table, day) for day in days}

    def live(self, table: Table, days: Sequence[Day], within: tuple[date, date] | None = None) -> list[Path]:
        """Return the table as it will be: the base release's other days, and these days as they are built.

        `within` limits it to the days of a range, both ends included.
        """
        base = self.base_files(table)
        kept = {day: path for path in base if (day := releases.day_of(path)) not in days}
        found = kept | {day: path for day, path in self.built(table, days).items() if path.is_file()}
        if within is None:
            return list(found.values())
        return [path for day, path in found.items() if day is not None and within[0] <= day <= within[1]]

    def base_files(self, table: Table) -> list[Path]:
        """Return the table's files in the release before; none where it has none."""
        return releases.files_of(self.store, self.plan.base).get(table.name, []) if self.plan.base else []

    @contextmanager
    def engine(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open DuckDB with the settings that models join as tables."""
        aliases = list(self.settings.filesystems.items())
        pairs = [(name, place) for name, places in self.settings.partitions.items() for place in places]
        with models.engine(self.folder / "spill", self.settings.engine.memory_limit) as connection:
            models.expose_frame(connection, "settings", "filesystem_aliases", _pairs(aliases, "name"))
            models.expose_frame(connection, "settings", "partition_filesystems", _pairs(pairs, "partition"))
            yield connection

    def expose_landed(self, connection: duckdb.DuckDBPyConnection, table: Table, day: Day = None) -> None:
        """Make a landed table readable, of one day if it is given."""
        models.expose_parts(self.store, connection, table, self.plan.parts(table.name, day))

    def expose_traces(self, connection: duckdb.DuckDBPyConnection, table: Table, trace_ids: pl.Series) -> None:
        """Make a landed table readable, of some traced runs."""
        models.expose_parts(self.store, connection, table, self._of_traces(table, trace_ids))

    def landed_files(self, table: Table, trace_ids: pl.Series) -> list[Path]:
        """Return the landed files of a table that hold some traced runs."""
        return [self.store.root / part.path for _, part in self._of_traces(table, trace_ids)]

    def landed_by_trace(self, table: Table, trace_ids: pl.Series) -> dict[str, list[Path]]:
        """Return the landed files of a table for each traced run; those that have none are left out."""
        found: dict[str, list[Path]] = {}
        for lot, part in self._of_traces(table, trace_ids):
            found.setdefault(lot.trace_id, []).append(self.store.root / part.path)
        return found

    def _of_traces(self, table: Table, trace_ids: pl.Series) -> list[tuple[Landing, Part]]:
        wanted = set(trace_ids)
        return [(lot, part) for lot, part in self.plan.parts(table.name) if lot.trace_id in wanted]

    def parameters(self, days: Sequence[Day]) -> dict[str, Any]:
        """Return what the SQL models may ask for."""
        return {
            "days": [day for day in days if day is not None],
            "has_undated": None in days,
            "application_pattern": self.settings.jobs.application_pattern,
            "filesystem_pattern": self.settings.jobs.filesystem_pattern,
            "controller_limit_bytes_per_s": self.settings.polls.controller_limit_bytes_per_s,
            "clock_tolerance_s": self.settings.traces.clock_tolerance_s,
            "signature_window_days": self.settings.signatures.window_days,
            "has_merged_sizes": self.settings.signatures.has_merged_sizes,
            "most_sample_count": self.settings.signatures.most_sample_count,
        }


def _pairs(pairs: Sequence[tuple[str, str]], first: str) -> pl.DataFrame:
    return pl.DataFrame(pairs, schema={first: pl.String, "filesystem": pl.String}, orient="row")


def write_days(run: Run, table: Table, frame: pl.DataFrame, days: Sequence[Day]) -> None:
    """Write a frame as one file per day that has rows, by the table's partition column."""
    assert table.partition
    for day in days:
        rows = frame.filter(pl.col(table.partition).eq_missing(pl.lit(day, pl.Date)))
        if not rows.is_empty():
            write_parquet(rows, table, run.path(table, day))


def daily(run: Run) -> Iterator[tuple[Table, Sequence[Day]]]:
    """Return the tables that are kept by day, with the days that the run rebuilds."""
    yield from ((table, run.plan.poll_days) for table in OF_POLL_DAYS)
    yield from ((table, run.plan.prediction_days) for table in OF_PREDICTION_DAYS)
    for table in OF_JOB_DAYS:
        yield table, judged_days(run) if table in OF_SIGNATURES else run.plan.job_days


def undated_of_others(run: Run, table: Table) -> pl.DataFrame:
    """Return the rows of no day that stay as they are in the release before: those of all but applications."""
    files = [path for path in run.base_files(table) if releases.day_of(path) is None]
    if None in run.plan.job_days or not files:
        return frames.empty(table)
    return pl.read_parquet(files).filter(pl.col("subject_kind") != "application")


def default_signatures(run: Run) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the default method's rows of `signatures` and `signature_points`."""
    signatures = pl.read_parquet(run.path(SIGNATURES, None)).filter("is_default")
    points = pl.scan_parquet(run.path(SIGNATURE_POINTS, None)).filter(
        pl.col("method").is_in(signatures["method"].unique().implode())
    )
    return signatures, points.drop("method", "low_bytes_per_s", "high_bytes_per_s").collect()


def judged_days(run: Run) -> Sequence[Day]:
    """Return the days whose classes and periods are made anew: what is of no day holds those of signatures too."""
    days = run.plan.job_days
    return days if None in days else (*days, None)

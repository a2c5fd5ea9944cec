"""Networks: who talked to whom in each traced run, window by window, what that looked like, and what held it up."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from iosig.flows.steps.items import Day, StepContext
from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Step, built, landed_of_traces
from iosig.settings.model import NetworkSettings
from iosig.warehouse import processes
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.events import REQUEST_EVENTS
from iosig.warehouse.contracts.networks import NETWORK_BOTTLENECKS, NETWORK_EDGES, NETWORK_PATTERNS, NETWORK_RUNS
from iosig.warehouse.contracts.traces import TRACE_FILES, TRACE_JOBS, TRACE_RECORDS, TRACE_REQUESTS
from iosig.warehouse.errors import IosigError
from iosig.warehouse.store.manifests import Landing, Part, scans
from iosig.warehouse.store.store import Store, join_parquet, write_parquet

if TYPE_CHECKING:
    from iosig.estimates.networks.making import Made

TABLES = (NETWORK_RUNS, NETWORK_EDGES, NETWORK_PATTERNS, NETWORK_BOTTLENECKS)
#: what a network is made of
LANDED = (REQUEST_EVENTS, TRACE_REQUESTS, TRACE_FILES, TRACE_RECORDS)
#: rows of one table that are held in memory before they are written
_MOST_HELD_ROWS = 1 << 20
#: runs, and landed rows of several, that a process makes networks of before it answers
_RUNS_AT_A_TIME, _ROWS_AT_A_TIME = 256, 1 << 16
#: so often it is worth to have processes for it
_MANY = 4
#: the columns of every table that say whose rows they are
_OWN = {"ended_on": pl.Date(), "trace_id": pl.String(), "source_file": pl.String()}
#: a row of `trace_jobs`, and its landed parts by table
_Run = tuple[Mapping[str, Any], Mapping[Table, Sequence[tuple[Landing, Part]]]]
#: how a computation fails by what a trace holds; a full disk or memory is no fault of a trace
_FAULTS_OF_CONTENT = (
    IosigError,
    ArithmeticError,
    LookupError,
    ValueError,
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
)


def make_networks(context: StepContext) -> int:
    """Make the networks of the traced runs that ended on a day, one after the other. Returns the runs."""
    jobs = context.frame(TRACE_JOBS)
    landed = {table: _by_trace(context, table) for table in LANDED}
    runs = [
        (job, {table: of_trace[job["trace_id"]] for table, of_trace in landed.items()})
        for job in jobs.select("ended_on", "trace_id", "source_file", "process_count").iter_rows(named=True)
    ]
    written = _Written(context)
    for rows in _each(context, runs):
        written.add(rows)
    written.finish()
    return jobs.height


def _by_trace(context: StepContext, table: Table) -> Mapping[str, list[tuple[Landing, Part]]]:
    """Return the landed parts of a table for each traced run."""
    found: dict[str, list[tuple[Landing, Part]]] = defaultdict(list)
    for landed, part in context.parts(table):
        found[landed.trace_id].append((landed, part))
    return found


def _each(context: StepContext, runs: Sequence[_Run]) -> Iterator[dict[Table, pl.DataFrame]]:
    """Yield the rows of runs, some together, in order; many are made in several processes."""
    chunks = _chunks(runs)
    tasks = [(number, (context.root, chunk, context.settings.networks)) for number, chunk in enumerate(chunks)]
    worker_count = processes.workers(context.settings.engine.worker_count)
    if len(chunks) < _MANY or worker_count == 1:
        yield from (_together(*arguments) for _, arguments in tasks)
        return
    with processes.pool(worker_count) as pool:
        yield from (rows for _, rows in processes.in_order(pool, _together, tasks))


def _chunks(runs: Sequence[_Run]) -> list[list[_Run]]:
    """Return runs, some together: few if they are large."""
    chunks: list[list[_Run]] = []
    row_count = 0
    for run in runs:
        own = _row_count(run[1])
        if not chunks or len(chunks[-1]) == _RUNS_AT_A_TIME or row_count + own > _ROWS_AT_A_TIME:
            chunks.append([])
            row_count = 0
        chunks[-1].append(run)
        row_count += own
    return chunks


def _together(root: Path, runs: Sequence[_Run], settings: NetworkSettings) -> dict[Table, pl.DataFrame]:
    """Return the rows of a few runs, in order."""
    store = Store(root)
    is_small = [not of_run[REQUEST_EVENTS] and _row_count(of_run) <= _ROWS_AT_A_TIME for _, of_run in runs]
    found, left = _of_small(store, [run for run, small in zip(runs, is_small, strict=True) if small], settings)
    if not left and all(is_small):
        return found
    alone = [run for run, small in zip(runs, is_small, strict=True) if not small] + left
    rows = [found, *(_of_one(store, run, settings) for run in alone)]
    order = pl.DataFrame({"trace_id": [job["trace_id"] for job, _ in runs], "place": range(len(runs))})
    return {
        table: pl.concat(parts)
        .join(order, on="trace_id", how="left", maintain_order="left")
        .sort("place", maintain_order=True)
        .drop("place")
        for table in TABLES
        if (parts := [each[table] for each in rows if table in each])
    }


def _of_small(
    store: Store, runs: Sequence[_Run], settings: NetworkSettings
) -> tuple[dict[Table, pl.DataFrame], list[_Run]]:
    """Return the rows of small runs, made together, and the runs that are to be made each alone."""
    from iosig.estimates.networks.together import TooManyPiecesError, rows_together
    from iosig.transforms.networks.network import NetworkParams

    if not runs:
        return {}, []
    jobs = [job for job, _ in runs]
    try:
        landed = {table: _read(store, runs, table) for table in LANDED if table != REQUEST_EVENTS}
        made = rows_together(landed, [job["process_count"] for job in jobs], settings.params(NetworkParams))
        own = pl.DataFrame([[job[name] for job in jobs] for name in _OWN], schema=_OWN)
        return {
            table: frames.require(
                rows.hstack(own[rows["run"]]).select(table.column_names),
                table,
            )
            for table, rows in made.rows.items()
        }, [runs[number] for number in made.left]
    except TooManyPiecesError:
        if len(runs) == 1:
            return {}, list(runs)
        half = len(runs) // 2
        (rows, left), (more, more_left) = (_of_small(store, part, settings) for part in (runs[:half], runs[half:]))
        joined = {table: pl.concat([each[table] for each in (rows, more) if table in each]) for table in rows | more}
        return joined, left + more_left
    except _FAULTS_OF_CONTENT:
        # one of them: it is found by making each alone
        return {}, list(runs)


def _read(store: Store, runs: Sequence[_Run], table: Table) -> pl.DataFrame:
    """Return the landed rows of a table, each with the number of its run."""
    from iosig.estimates.networks.together import COLUMNS

    numbers = pl.DataFrame({"trace_id": [job["trace_id"] for job, _ in runs], "run": range(len(runs))})
    columns = ["trace_id", *COLUMNS[table]]
    found = scans(store, table, [pair for _, of_run in runs for pair in of_run[table]])
    parts = pl.collect_all([rows.select(columns) for rows in found])
    rows = pl.concat([frames.empty(table).select(columns), *parts])
    return rows.join(numbers, on="trace_id", maintain_order="left").drop("trace_id")


def _of_one(store: Store, run: _Run, settings: NetworkSettings) -> dict[Table, pl.DataFrame]:
    job, parts = run
    return network_rows_of(job, {table.name: scans(store, table, of_run) for table, of_run in parts.items()}, settings)


def _row_count(parts: Mapping[Table, Sequence[tuple[Landing, Part]]]) -> int:
    return sum(part.row_count for of_table in parts.values() for _, part in of_table)


def network_rows_of(
    job: Mapping[str, Any], landed: Mapping[str, Sequence[pl.LazyFrame]], settings: NetworkSettings
) -> dict[Table, pl.DataFrame]:
    """Return the rows that one traced run gives the tables of networks.

    job: ended_on, trace_id, source_file and process_count of the run. landed: the run's rows of each table that a
    network is made of (`LANDED`), by the table's name. A run of which no network can be made has one row, with the
    reason.
    """
    from iosig.transforms.networks.rows import run_row

    try:
        return _held(job, _rows(_made(job, landed, settings)))
    except _FAULTS_OF_CONTENT as fault:
        return _held(job, {NETWORK_RUNS: run_row("refused", reason=f"{type(fault).__name__}: {fault}")})


def _made(job: Mapping[str, Any], landed: Mapping[str, Sequence[pl.LazyFrame]], settings: NetworkSettings) -> Made:
    from iosig.estimates.networks.making import Asked, network_of_trace
    from iosig.transforms.networks.network import NetworkParams

    params = settings.params(NetworkParams)
    return network_of_trace(landed, Asked(), params, job["process_count"])


def _rows(made: Made) -> dict[Table, pl.DataFrame]:
    """Return what was made as rows, without the run's own columns."""
    from iosig.transforms.networks.rows import bottleneck_rows, edge_rows, pattern_rows, run_row

    line = run_row(
        made.outcome,
        network=made.network,
        module=made.module,
        request_count=made.request_count,
        covered_ratio=made.covered_ratio,
        skew=made.skew,
        negative_count=made.negative_count if made.network else None,
    )
    if made.network is None:
        return {NETWORK_RUNS: line}
    return {
        NETWORK_RUNS: line,
        NETWORK_EDGES: edge_rows(made.network),
        NETWORK_PATTERNS: pattern_rows(made.network, made.patterns),
        NETWORK_BOTTLENECKS: bottleneck_rows(made.bottlenecks),
    }


def _held(job: Mapping[str, Any], rows: Mapping[Table, pl.DataFrame]) -> dict[Table, pl.DataFrame]:
    """Return rows with the run's own columns, held to their contracts."""
    own = [pl.lit(job[name], dtype).alias(name) for name, dtype in _OWN.items()]
    return {
        table: frames.require(found.with_columns(own).select(table.column_names), table)
        for table, found in rows.items()
    }


@dataclass
class _Written:
    """The rows of a day as they come: held as long as they are few, else written in parts that are joined."""

    context: StepContext
    held: dict[Table, list[pl.DataFrame]] = field(default_factory=lambda: {table: [] for table in TABLES})
    parts: dict[Table, list[Path]] = field(default_factory=lambda: {table: [] for table in TABLES})

    @property
    def _folder(self) -> Path:
        (day,) = self.context.days
        return self.context.folder / "network_parts" / (day.isoformat() if day else "undated")

    def add(self, rows: Mapping[Table, pl.DataFrame]) -> None:
        """Take the rows of one more run."""
        for table, found in rows.items():
            self.held[table].append(found)
            if sum(frame.height for frame in self.held[table]) >= _MOST_HELD_ROWS:
                self._write_part(table)

    def finish(self) -> None:
        """Write the day's file of each table that has rows."""
        for table in TABLES:
            path = self.context.path(table)
            if self.parts[table]:
                self._write_part(table)
                join_parquet(self.parts[table], table, path)
            elif any(frame.height for frame in self.held[table]):
                write_parquet(pl.concat(self.held[table]), table, path)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write_part(self, table: Table) -> None:
        part = self._folder / table.name / f"{len(self.parts[table])}.parquet"
        self.parts[table].append(write_parquet(pl.concat([frames.empty(table), *self.held[table]]), table, part))
        self.held[table] = []


def _is_wanted(run: Run, day: Day) -> bool:
    """Take the days of traced runs, if the night is to make networks."""
    return run.settings.networks.is_nightly and bool(run.built(TRACE_JOBS, [day]))


STEP = Step(
    "networks",
    make_networks,
    reads=(built(TRACE_JOBS), landed_of_traces(*LANDED)),
    writes=TABLES,
    days=lambda run: run.plan.job_days,
    is_daily=True,
    is_needed=_is_wanted,
    is_parallel=True,
)

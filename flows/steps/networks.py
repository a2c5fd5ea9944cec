"""Build the network of each traced run: its transfers by time window, patterns and bottlenecks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from iosig.flows.steps.items import Chunk, Day, StepContext
from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Step, read_built, read_in_chunks
from iosig.settings.model import NetworkSettings
from iosig.transforms.arrays import split_into_chunks
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.events import REQUEST_EVENTS
from iosig.warehouse.contracts.networks import NETWORK_BOTTLENECKS, NETWORK_EDGES, NETWORK_PATTERNS, NETWORK_RUNS
from iosig.warehouse.contracts.traces import TRACE_FILES, TRACE_JOBS, TRACE_RECORDS, TRACE_REQUESTS
from iosig.warehouse.engine_paths import read_parquet
from iosig.warehouse.errors import IosigError
from iosig.warehouse.store.manifests import Landing, Part, scans
from iosig.warehouse.store.store import Store, write_parquet

if TYPE_CHECKING:
    from iosig.estimates.networks.builder import NetworkResult

TABLES = (NETWORK_RUNS, NETWORK_EDGES, NETWORK_PATTERNS, NETWORK_BOTTLENECKS)
#: landed tables from which a network is built
LANDED = (REQUEST_EVENTS, TRACE_REQUESTS, TRACE_FILES, TRACE_RECORDS)
#: maximum number of runs per work item, and of their landed rows; a single run may exceed the latter
_CHUNK_RUNS, _CHUNK_ROWS = 1024, 1 << 19
#: maximum number of runs per batch, and of their landed rows; a single run may exceed the latter
_BATCH_RUNS, _BATCH_ROWS = 256, 1 << 16
#: columns of every table that identify the run
_OWN = {"ended_on": pl.Date(), "trace_id": pl.String(), "source_file": pl.String()}
#: a row of `trace_jobs`, and the run's landed parts by table
_Run = tuple[Mapping[str, Any], Mapping[Table, Sequence[tuple[Landing, Part]]]]
#: errors that the content of a trace can cause, unlike a full disk or memory
_FAULTS_OF_CONTENT = (
    IosigError,
    ArithmeticError,
    LookupError,
    ValueError,
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
)


def divide(run: Run, day: Day) -> list[Chunk]:
    """Divide the traced runs that ended on a day into chunks of a bounded number of landed rows."""
    files = run.built(TRACE_JOBS, [day])
    paths = run.store.locals(file.path for file in files)
    trace_ids = [trace_id for path in paths for trace_id in read_parquet(path, columns=["trace_id"])["trace_id"]]
    landed: dict[str, list[Landing]] = defaultdict(list)
    for landing in run.find_landings(LANDED, trace_ids=set(trace_ids)):
        landed[landing.trace_id].append(landing)
    row_counts = [sum(part.row_count for landing in landed[name] for part in landing.parts) for name in trace_ids]
    return [
        Chunk((*files, *(landing for name in names for landing in landed[name])), tuple(names))
        for names in (trace_ids[chunk] for chunk in split_into_chunks(row_counts, _CHUNK_ROWS, _CHUNK_RUNS))
    ]


def make_networks(context: StepContext) -> int:
    """Build the networks of a chunk of traced runs in batches. Returns the number of runs."""
    landed = {table: _by_trace(context, table) for table in LANDED}
    jobs = context.frame(TRACE_JOBS).filter(pl.col("trace_id").is_in(context.item.chunk_keys))
    runs = [
        (job, {table: of_trace[job["trace_id"]] for table, of_trace in landed.items()})
        for job in jobs.select("ended_on", "trace_id", "source_file", "process_count").iter_rows(named=True)
    ]
    rows = [_together(Store(context.root), batch, context.settings.networks) for batch in _batches(runs)]
    for table in TABLES:
        joined = pl.concat([frames.empty(table), *(batch_rows[table] for batch_rows in rows if table in batch_rows)])
        if joined.height:
            write_parquet(joined, table, context.chunk_path(table))
    return jobs.height


def join_networks(context: StepContext) -> int:
    """Join the networks of all chunks of a day. Returns the number of runs."""
    for table in TABLES:
        context.join_chunks(table)
    return int(context.scan(TRACE_JOBS).select(pl.len()).collect().item())


def _by_trace(context: StepContext, table: Table) -> Mapping[str, list[tuple[Landing, Part]]]:
    """Return the landed parts of a table for each traced run."""
    by_trace: dict[str, list[tuple[Landing, Part]]] = defaultdict(list)
    for landed, part in context.parts(table):
        by_trace[landed.trace_id].append((landed, part))
    return by_trace


def _batches(runs: Sequence[_Run]) -> Iterable[Sequence[_Run]]:
    """Yield batches of runs with a bounded number of rows."""
    row_counts = [_row_count(of_run) for _, of_run in runs]
    yield from (runs[batch] for batch in split_into_chunks(row_counts, _BATCH_ROWS, _BATCH_RUNS))


def _together(store: Store, runs: Sequence[_Run], settings: NetworkSettings) -> dict[Table, pl.DataFrame]:
    """Return the rows of a batch of runs, in order."""
    is_small = [not of_run[REQUEST_EVENTS] and _row_count(of_run) <= _BATCH_ROWS for _, of_run in runs]
    built, remaining = _build_small_runs(
        store, [run for run, small in zip(runs, is_small, strict=True) if small], settings
    )
    if not remaining and all(is_small):
        return built
    large_runs = [run for run, small in zip(runs, is_small, strict=True) if not small] + remaining
    rows = [built, *(_build_single_run(store, run, settings) for run in large_runs)]
    order = pl.DataFrame({"trace_id": [job["trace_id"] for job, _ in runs], "place": range(len(runs))})
    return {
        table: pl.concat(parts)
        .join(order, on="trace_id", how="left", maintain_order="left")
        .sort("place", maintain_order=True)
        .drop("place")
        for table in TABLES
        if (parts := [tables[table] for tables in rows if table in tables])
    }


def _build_small_runs(
    store: Store, runs: Sequence[_Run], settings: NetworkSettings
) -> tuple[dict[Table, pl.DataFrame], list[_Run]]:
    """Build the networks of small runs together. Return their rows, and the runs that must be built one by one."""
    from iosig.estimates.networks.batch_networks import TooManyPiecesError, build_batch
    from iosig.transforms.networks.network import NetworkParams

    if not runs:
        return {}, []
    jobs = [job for job, _ in runs]
    try:
        landed = {table: _read(store, runs, table) for table in LANDED if table != REQUEST_EVENTS}
        built = build_batch(landed, [job["process_count"] for job in jobs], settings.params(NetworkParams))
        job_columns = pl.DataFrame([[job[name] for job in jobs] for name in _OWN], schema=_OWN)
        return {
            table: frames.require(
                rows.hstack(job_columns[rows["run"]]).select(table.column_names),
                table,
            )
            for table, rows in built.rows.items()
        }, [runs[number] for number in built.left]
    except TooManyPiecesError:
        if len(runs) == 1:
            return {}, list(runs)
        half = len(runs) // 2
        (rows, remaining), (more_rows, more_left) = (
            _build_small_runs(store, part, settings) for part in (runs[:half], runs[half:])
        )
        joined = {
            table: pl.concat([tables[table] for tables in (rows, more_rows) if table in tables])
            for table in rows | more_rows
        }
        return joined, remaining + more_left
    except _FAULTS_OF_CONTENT:
        # one of the runs causes the error: building them one by one identifies it
        return {}, list(runs)


def _read(store: Store, runs: Sequence[_Run], table: Table) -> pl.DataFrame:
    """Return the landed rows of a table for a batch, each with the number of its run."""
    from iosig.estimates.networks.batch_networks import COLUMNS

    numbers = pl.DataFrame({"trace_id": [job["trace_id"] for job, _ in runs], "run": range(len(runs))})
    columns = ["trace_id", *COLUMNS[table]]
    scanned = scans(store, table, [pair for _, of_run in runs for pair in of_run[table]])
    parts = pl.collect_all([rows.select(columns) for rows in scanned])
    rows = pl.concat([frames.empty(table).select(columns), *parts])
    return rows.join(numbers, on="trace_id", maintain_order="left").drop("trace_id")


def _build_single_run(store: Store, run: _Run, settings: NetworkSettings) -> dict[Table, pl.DataFrame]:
    job, parts = run
    return build_network_rows(
        job, {table.name: scans(store, table, of_run) for table, of_run in parts.items()}, settings
    )


def _row_count(parts: Mapping[Table, Sequence[tuple[Landing, Part]]]) -> int:
    return sum(part.row_count for of_table in parts.values() for _, part in of_table)


def build_network_rows(
    job: Mapping[str, Any], landed: Mapping[str, Sequence[pl.LazyFrame]], settings: NetworkSettings
) -> dict[Table, pl.DataFrame]:
    """Build the network of one traced run, as rows of each table of networks.

    job: ended_on, trace_id, source_file and process_count of the run. landed: the run's rows of the input tables
    (`LANDED`), by table name. A run without a network has one row, with the reason.
    """
    from iosig.transforms.networks.rows import run_row

    try:
        return _require_contracts(job, _rows(_build_network(job, landed, settings)))
    except _FAULTS_OF_CONTENT as fault:
        return _require_contracts(job, {NETWORK_RUNS: run_row("refused", reason=f"{type(fault).__name__}: {fault}")})


def _build_network(
    job: Mapping[str, Any], landed: Mapping[str, Sequence[pl.LazyFrame]], settings: NetworkSettings
) -> NetworkResult:
    from iosig.estimates.networks.builder import Query, build_trace_network
    from iosig.transforms.networks.network import NetworkParams

    params = settings.params(NetworkParams)
    return build_trace_network(landed, Query(), params, job["process_count"])


def _rows(result: NetworkResult) -> dict[Table, pl.DataFrame]:
    """Convert a network to rows of each table, without the columns that identify the run."""
    from iosig.transforms.networks.rows import bottleneck_rows, edge_rows, pattern_rows, run_row

    line = run_row(
        result.outcome,
        network=result.network,
        module=result.module,
        request_count=result.request_count,
        covered_ratio=result.covered_ratio,
        skew=result.skew,
        negative_time_count=result.negative_time_count if result.network else None,
    )
    if result.network is None:
        return {NETWORK_RUNS: line}
    return {
        NETWORK_RUNS: line,
        NETWORK_EDGES: edge_rows(result.network),
        NETWORK_PATTERNS: pattern_rows(result.network, result.patterns),
        NETWORK_BOTTLENECKS: bottleneck_rows(result.bottlenecks),
    }


def _require_contracts(job: Mapping[str, Any], rows: Mapping[Table, pl.DataFrame]) -> dict[Table, pl.DataFrame]:
    """Add the columns that identify the run to rows, and validate the rows against their contracts."""
    run_columns = [pl.lit(job[name], dtype).alias(name) for name, dtype in _OWN.items()]
    return {
        table: frames.require(frame.with_columns(run_columns).select(table.column_names), table)
        for table, frame in rows.items()
    }


def _is_wanted(run: Run, day: Day) -> bool:
    """Return whether traced runs ended on a day, and the settings enable networks in nightly runs."""
    return run.settings.networks.is_nightly and bool(run.built(TRACE_JOBS, [day]))


STEP = Step(
    "networks",
    join_networks,
    reads=(read_built(TRACE_JOBS), read_in_chunks(*LANDED)),
    writes=TABLES,
    days=lambda run: run.plan.job_days,
    is_daily=True,
    is_needed=_is_wanted,
    chunks=divide,
    chunk_function=make_networks,
)

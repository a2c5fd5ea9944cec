"""Read one input, a file or folder, without a warehouse, and stage it as in the nightly flow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl

from iosig.estimates.signals import LANDED, make_signals
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions, make_reading
from iosig.traces.extrapolation import view
from iosig.transforms.throughput.signals import SignalParams
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.contracts.series import SERIES
from iosig.warehouse.contracts.traces import (
    TRACE_COUNTERS,
    TRACE_HEATMAPS,
    TRACE_JOBS,
    TRACE_RECORDS,
    TRACE_REQUESTS,
    TRACES,
)
from iosig.warehouse.engine_paths import read_parquet, scan_parquet
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.extrapolations import compressed_traces
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Batch, Source, find_folder_source, get_input_name, recognize
from iosig.warehouse.store import models

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class RowInput:
    """Rows of `series_intervals` or of `polls`; refused_count: rows that could not be read."""

    name: str
    rows: pl.DataFrame
    refused_count: int


@dataclass(frozen=True, slots=True)
class TraceInput:
    """Rows of a traced run in `trace_jobs`, `trace_counters` and `trace_signals`, and its landed rows by table."""

    name: str
    jobs: pl.DataFrame
    counters: pl.DataFrame
    signals: pl.DataFrame
    landed: Mapping[str, list[pl.LazyFrame]]
    refused_count: int

    def read(self, table: Table) -> pl.DataFrame:
        """Collect the landed rows of a table."""
        return pl.concat([frames.empty(table), *pl.collect_all(self.landed[table.name])])


@dataclass(frozen=True, slots=True)
class SeriesInput(RowInput):
    """Input of time series, with one row of `series_intervals` per interval."""


@dataclass(frozen=True, slots=True)
class PollInput(RowInput):
    """Input of controller polls, with one row of `polls` per poll."""


OneInput = SeriesInput | PollInput | TraceInput


@contextmanager
def open_input(path: Path, settings: Settings, read_options: ReadOptions) -> Iterator[OneInput]:
    """Read one input; temporary files exist until the context ends.

    Raises InputRefused if the format is unknown, the input is unreadable, or it has no bytes over time.
    """
    if compressed_traces.is_compressed_trace(path):
        with TemporaryDirectory(prefix="iosig-") as scratch:
            yield _trace(path.name, view.batches(path), settings, Path(scratch))
        return
    owned = find_folder_source(path) if path.is_dir() else None
    if path.is_dir() and owned is None:
        raise InputRefused(
            f"{path.name} is a folder, but not a trace.",
            "Pass a file, or the folder of one run (Recorder writes one file per rank).",
        )
    source = owned[0] if owned else recognize(read_head(path))
    batches = source.read(path, make_reading(source, settings, read_options))
    if source.kind == "traces":
        with TemporaryDirectory(prefix="iosig-") as scratch:
            yield _trace(get_input_name(path, source), batches, settings, Path(scratch))
    else:
        yield _rows(path.name, source, list(batches))


def _rows(name: str, source: Source, batches: list[Batch]) -> SeriesInput | PollInput:
    refused_count = sum(batch.rows.height for batch in batches if batch.table == REJECTS)
    series, polls = ([batch.rows for batch in batches if batch.table == table] for table in (SERIES, POLLS))
    if polls:
        return PollInput(name, pl.concat(polls), refused_count)
    if not series:
        raise InputRefused(
            f"{name} is {source.doc[0].lower()}{source.doc[1:]}, neither a series nor a trace nor polls.",
            "Land it instead.",
        )
    return SeriesInput(name, pl.concat(series).with_columns(ended_on=pl.lit(None, pl.Date)), refused_count)


def _trace(name: str, batches: Iterable[Batch], settings: Settings, scratch: Path) -> TraceInput:
    files = _write_batches(name, batches, scratch)
    landed = defaultdict(list, {table: [scan_parquet(path) for path in paths] for table, paths in files.items()})
    with models.engine(scratch / "spill", settings.engine.memory_limit) as connection:
        jobs, counters, heatmaps = _stage(connection, name, files)
    signals = make_signals(
        jobs,
        counters,
        _read(files, TRACE_RECORDS),
        heatmaps,
        landed[TRACE_REQUESTS.name],
        settings.traces.params(SignalParams),
    )
    return TraceInput(name, jobs, counters, signals, landed, _read(files, REJECTS).height)


def _stage(
    connection: duckdb.DuckDBPyConnection, name: str, files: Mapping[str, list[Path]]
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Stage the rows of `trace_jobs`, `trace_counters` and `trace_heatmaps` of a run without a job log."""
    for table in (TRACES, *LANDED):
        models.expose_landed(connection, table, files[table.name], [name] * len(files[table.name]))
    models.expose(connection, "stage", JOBS, [])
    days = _read(files, TRACES)["ended_on"].drop_nulls().to_list()
    jobs = models.select(connection, TRACE_JOBS, {"days": days, "has_undated": not days, "clock_tolerance_s": 0.0})
    models.expose_frame(connection, "stage", TRACE_JOBS.name, jobs)
    return jobs, models.select(connection, TRACE_COUNTERS), models.select(connection, TRACE_HEATMAPS)


def _read(files: Mapping[str, list[Path]], table: Table) -> pl.DataFrame:
    return pl.concat([frames.empty(table), *map(read_parquet, files[table.name])])


def _write_batches(name: str, batches: Iterable[Batch], folder: Path) -> Mapping[str, list[Path]]:
    """Write batches to Parquet files, so that memory does not grow with the trace; returns paths by table."""
    files: defaultdict[str, list[Path]] = defaultdict(list)
    for number, batch in enumerate(batches):
        constants = [
            pl.lit(name).alias(column) for column in ("trace_id", "source_file") if column in batch.rows.columns
        ]
        path = folder / f"{batch.table.name}-{number}.parquet"
        # Internal files: written by Polars without metadata on units, which would need pyarrow.
        frames.require(batch.rows.with_columns(constants), batch.table).write_parquet(path, compression="lz4")
        files[batch.table.name].append(path)
    return files

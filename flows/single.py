"""One input, no warehouse: what the night computes of a series or of a traced run, at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl

from flows.landing import Told, reading_of
from flows.settings import Settings
from flows.steps.classes import series_classes, trace_classes
from flows.steps.traces import LANDED, make_signals, params_of
from flows.throughput import By, throughput_by
from transforms.classes import ClassParams
from warehouse import models
from warehouse.contracts import Table, frames, tables
from warehouse.errors import InputRefused
from warehouse.landing import input_name
from warehouse.sources import Batch, Source, owner, recognize
from warehouse.sources.opening import read_head
from warehouse.store import write_parquet

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class Classified:
    """What one input tells: rows of `classes`; of a trace its modules and its signals too, else none.

    name: the input's, by which a traced run goes. classes, counters, signals: rows of `classes`, `trace_counters`
    and `trace_signals`. refused_count: rows that could not be read. throughput: told apart, if that was asked for.
    """

    name: str
    classes: pl.DataFrame
    refused_count: int
    counters: pl.DataFrame = field(default_factory=lambda: frames.empty(tables.TRACE_COUNTERS))
    signals: pl.DataFrame = field(default_factory=lambda: frames.empty(tables.TRACE_SIGNALS))
    throughput: pl.DataFrame | None = None


def classify_input(path: Path, settings: Settings, told: Told, by: By | None = None) -> Classified:
    """Classify the series in a file, or a traced run; one row of classes per direction.

    `by` asks for a trace's throughput by rank, host, file or storage target too (`throughput`).

    Raises InputRefused if the input holds neither, or nothing of it can be read.
    """
    owned = owner(path) if path.is_dir() else None
    source = owned[0] if owned else recognize(read_head(path))
    batches = source.read(path, reading_of(source, settings, told))
    if source.kind == "traces":
        return _classify_trace(input_name(path, source), batches, settings, by)
    return _classify_series(path, source, list(batches), settings)


def _classify_series(path: Path, source: Source, batches: list[Batch], settings: Settings) -> Classified:
    series = [batch.rows for batch in batches if batch.table == tables.SERIES]
    if not series:
        raise InputRefused(
            f"{path.name} is {source.doc[0].lower()}{source.doc[1:]}, neither a series nor a trace.", "Land it instead."
        )
    intervals = pl.concat(series).with_columns(ended_on=pl.lit(None, pl.Date))
    found = series_classes(intervals, ClassParams(**settings.classes.model_dump()))
    refused_count = sum(batch.rows.height for batch in batches if batch.table == tables.REJECTS)
    return Classified(path.name, found, refused_count)


def _classify_trace(name: str, batches: Iterable[Batch], settings: Settings, by: By | None) -> Classified:
    params, grids = ClassParams(**settings.classes.model_dump()), params_of(settings.traces)
    with TemporaryDirectory(prefix="iosig-") as scratch:
        files = _kept(name, batches, Path(scratch))
        with models.engine(Path(scratch) / "spill", settings.engine.memory_limit) as connection:
            jobs, counters, heatmaps = _staged(connection, name, files)
        requests = files[tables.TRACE_REQUESTS.name]
        signals = make_signals(jobs, counters, _read(files, tables.TRACE_RECORDS), heatmaps, requests, grids)
        throughput = None
        if by is not None:
            (duration_s,) = jobs["duration_s"]
            throughput = throughput_by(requests, _read(files, tables.TRACE_FILES), duration_s, by, grids)
        refused_count = _read(files, tables.REJECTS).height
    found = trace_classes(jobs, counters, signals, params, settings.traces.max_interval_ratio)
    return Classified(name, found, refused_count, counters, signals, throughput)


def _staged(
    connection: duckdb.DuckDBPyConnection, name: str, files: Mapping[str, list[Path]]
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the rows of `trace_jobs`, `trace_counters` and `trace_heatmaps` of a run that no job log tells of."""
    for table in (tables.TRACES, *LANDED):
        models.expose_landed(connection, table, files[table.name], [name] * len(files[table.name]))
    models.expose(connection, "stage", tables.JOBS, [])
    days = _read(files, tables.TRACES)["ended_on"].drop_nulls().to_list()
    jobs = models.select(
        connection, tables.TRACE_JOBS, {"days": days, "has_undated": not days, "clock_tolerance_s": 0.0}
    )
    models.expose_frame(connection, "stage", tables.TRACE_JOBS.name, jobs)
    return jobs, models.select(connection, tables.TRACE_COUNTERS), models.select(connection, tables.TRACE_HEATMAPS)


def _read(files: Mapping[str, list[Path]], table: Table) -> pl.DataFrame:
    return pl.concat([frames.empty(table), *map(pl.read_parquet, files[table.name])])


def _kept(name: str, batches: Iterable[Batch], folder: Path) -> Mapping[str, list[Path]]:
    """Write batches as files, so that memory does not grow with the trace; return them by table."""
    files: defaultdict[str, list[Path]] = defaultdict(list)
    for number, batch in enumerate(batches):
        known = [pl.lit(name).alias(column) for column in ("trace_id", "source_file") if column in batch.rows.columns]
        path = folder / f"{batch.table.name}-{number}.parquet"
        files[batch.table.name].append(write_parquet(batch.rows.with_columns(known), batch.table, path))
    return files


def signal_intervals(signals: pl.DataFrame) -> pl.DataFrame:
    """Return signals as one row per step.

    Columns: trace_id, module, direction, is_async, time_s (the right edge), interval_s, bytes_per_s.
    """
    steps = signals.select(
        "trace_id",
        "module",
        "direction",
        "is_async",
        time_s=pl.int_ranges(1, pl.col("step_count") + 1),
        interval_s="interval_s",
        bytes_per_s="signal_bytes_per_s",
    ).explode("time_s", "bytes_per_s", empty_as_null=False)
    return steps.with_columns(time_s=pl.col("time_s") * pl.col("interval_s"))

"""One input, no warehouse: what the night computes of a series or of a traced run, at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from flows.landing import Told, reading_of
from flows.settings import Settings
from flows.steps.classes import series_classes, trace_classes
from flows.steps.traces import LANDED, make_signals, params_of
from transforms.classes import ClassParams
from warehouse import models
from warehouse.contracts import Table, frames, tables
from warehouse.errors import InputRefused
from warehouse.landing import input_name
from warehouse.sources import Batch, Source, owner, recognize
from warehouse.sources.opening import read_head
from warehouse.store import write_parquet


@dataclass(frozen=True, slots=True)
class Classified:
    """What one input tells: rows of `classes`; of a trace its modules and its signals too, else none.

    name: the input's. classes, counters, signals: rows of `classes`, `trace_counters` and `trace_signals`; a traced run goes by the
    input's name. refused_count: rows that could not be read.
    """

    name: str
    classes: pl.DataFrame
    counters: pl.DataFrame
    signals: pl.DataFrame
    refused_count: int


def classify_input(path: Path, settings: Settings, told: Told) -> Classified:
    """Classify the series in a file, or a traced run; one row of classes per direction.

    Raises InputRefused if the input holds neither, or nothing of it can be read.
    """
    owned = owner(path) if path.is_dir() else None
    source = owned[0] if owned else recognize(read_head(path))
    batches = source.read(path, reading_of(source, settings, told))
    if source.kind == "traces":
        return _classify_trace(input_name(path, source), batches, settings)
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
    return Classified(path.name, found, frames.empty(tables.TRACE_COUNTERS), frames.empty(tables.TRACE_SIGNALS), refused_count)


def _classify_trace(name: str, batches: Iterable[Batch], settings: Settings) -> Classified:
    with TemporaryDirectory(prefix="iosig-") as scratch:
        folder = Path(scratch)
        files = _kept(name, batches, folder)
        with models.engine(folder / "spill", settings.engine.memory_limit) as connection:
            for table in (tables.TRACES, *LANDED):
                models.expose_landed(connection, table, files[table.name], [name] * len(files[table.name]))
            models.expose(connection, "stage", tables.JOBS, [])
            days = pl.concat([frames.empty(tables.TRACES), *map(pl.read_parquet, files["traces"])])["ended_on"]
            parameters = {"days": days.drop_nulls().to_list(), "has_undated": True, "clock_tolerance_s": 0.0}
            jobs = models.select(connection, tables.TRACE_JOBS, parameters)
            models.expose_frame(connection, "stage", "trace_jobs", jobs)
            counters = models.select(connection, tables.TRACE_COUNTERS)
            heatmaps = models.select(connection, tables.TRACE_HEATMAPS, parameters)
        records = pl.concat([frames.empty(tables.TRACE_RECORDS), *map(pl.read_parquet, files["trace_records"])])
        requests = files[tables.TRACE_REQUESTS.name]
        signals = make_signals(jobs, counters, records, heatmaps, requests, params_of(settings.traces))
        refused_count = sum(pl.read_parquet(path).height for path in files[tables.REJECTS.name])
    params = ClassParams(**settings.classes.model_dump())
    found = trace_classes(jobs, counters, signals, params, settings.traces.max_interval_ratio)
    return Classified(name, found, counters, signals, refused_count)


def _kept(name: str, batches: Iterable[Batch], folder: Path) -> defaultdict[str, list[Path]]:
    """Write batches as files, so that memory does not grow with the trace; return them by table."""
    files: defaultdict[str, list[Path]] = defaultdict(list)
    for number, batch in enumerate(batches):
        known = [pl.lit(name).alias(column) for column in ("trace_id", "source_file") if column in batch.rows.columns]
        files[batch.table.name].append(_written(batch.rows.with_columns(known), batch.table, folder, number))
    return files


def _written(rows: pl.DataFrame, table: Table, folder: Path, number: int) -> Path:
    return write_parquet(rows, table, folder / f"{table.name}-{number}.parquet")


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

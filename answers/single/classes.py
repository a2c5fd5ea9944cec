"""The classes of one input, as the night would give them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import Field

from iosig.answers.documents import Document, Part, columns_of
from iosig.answers.single.one_input import PollInput, SeriesInput, TraceInput, opened
from iosig.answers.single.throughput import By, throughput_by
from iosig.estimates.classes import series_classes, trace_classes
from iosig.settings.model import Settings
from iosig.streams.landing import Told
from iosig.transforms.classes import ClassParams
from iosig.transforms.throughput.signals import SignalParams
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.traces import TRACE_COUNTERS, TRACE_FILES, TRACE_REQUESTS, TRACE_SIGNALS
from iosig.warehouse.errors import InputRefused


@dataclass(frozen=True, slots=True)
class Classified:
    """What one input tells: rows of `classes`; of a trace its modules and its signals too, else none.

    name: the input's, by which a traced run goes. classes, counters, signals: rows of `classes`, `trace_counters`
    and `trace_signals`. refused_count: rows that could not be read. throughput: told apart, if that was asked for.
    """

    name: str
    classes: pl.DataFrame
    refused_count: int
    counters: pl.DataFrame = field(default_factory=lambda: frames.empty(TRACE_COUNTERS))
    signals: pl.DataFrame = field(default_factory=lambda: frames.empty(TRACE_SIGNALS))
    throughput: pl.DataFrame | None = None


class _ClassRow(Part, extra="allow", json_schema_extra=columns_of("classes")):
    """A row of `classes`."""


class ClassesDocument(Document, title="iosig classify"):
    """When in its run it does its I/O."""

    format: Literal["iosig-classes/1"] = "iosig-classes/1"
    name: str = Field(description="the input")
    classes: list[_ClassRow] = Field(description="a row for each subject and direction")


def classify_input(path: Path, settings: Settings, told: Told, by: By | None = None) -> Classified:
    """Classify the series in a file, or a traced run; one row of classes per direction.

    `by` asks for a trace's throughput by rank, host, file or storage target too (`throughput`).

    Raises InputRefused if the input holds neither, or nothing of it can be read.
    """
    params = settings.classes.params(ClassParams)
    with opened(path, settings, told) as found:
        if isinstance(found, PollInput):
            raise InputRefused(
                f"{found.name} holds polls of controllers, which have no run to be classified.",
                "Land it instead, with the job log of its days.",
            )
        if isinstance(found, SeriesInput):
            return Classified(found.name, series_classes(found.rows, params), found.refused_count)
        return _classify_trace(found, params, settings, by)


def _classify_trace(found: TraceInput, params: ClassParams, settings: Settings, by: By | None) -> Classified:
    throughput = None
    if by is not None:
        (duration_s,) = found.jobs["duration_s"]
        requests, files = found.landed[TRACE_REQUESTS.name], found.read(TRACE_FILES)
        throughput = throughput_by(requests, files, duration_s, by, settings.traces.params(SignalParams))
    labelled = trace_classes(found.jobs, found.counters, found.signals, params, settings.traces.max_interval_ratio)
    return Classified(found.name, labelled, found.refused_count, found.counters, found.signals, throughput)


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

"""Classify one input, as in the nightly flow."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import Field

from iosig.answers.documents import Document, Part, make_columns_schema
from iosig.answers.single.one_input import PollInput, SeriesInput, TraceInput, open_input
from iosig.answers.single.throughput import By, split_throughput
from iosig.estimates.classes import series_classes, trace_classes
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions
from iosig.transforms.classes import ClassParams
from iosig.transforms.throughput.signals import SignalParams
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.traces import TRACE_COUNTERS, TRACE_FILES, TRACE_REQUESTS, TRACE_SIGNALS
from iosig.warehouse.errors import InputRefused


@dataclass(frozen=True, slots=True)
class ClassResult:
    """Classes of one input; for a trace also its modules and signals, else empty frames.

    name: of the input, also the trace_id of a traced run. classes, counters, signals: rows of `classes`,
    `trace_counters` and `trace_signals`. refused_count: rows that could not be read. throughput: by the requested key.
    """

    name: str
    classes: pl.DataFrame
    refused_count: int
    counters: pl.DataFrame = field(default_factory=lambda: frames.empty(TRACE_COUNTERS))
    signals: pl.DataFrame = field(default_factory=lambda: frames.empty(TRACE_SIGNALS))
    throughput: pl.DataFrame | None = None


class _ClassRow(Part, extra="allow", json_schema_extra=make_columns_schema("classes")):
    """Columns of the published table `classes`."""


class ClassesDocument(Document, title="iosig classify"):
    """Classes of one input, which describe when in a run it does its I/O."""

    format: Literal["iosig-classes/1"] = "iosig-classes/1"
    name: str = Field(description="the input")
    classes: list[_ClassRow] = Field(description="a row for each subject and direction")


def classify_input(path: Path, settings: Settings, read_options: ReadOptions, by: By | None = None) -> ClassResult:
    """Classify the series in a file, or a traced run; one row of classes per direction.

    by: adds the throughput of a trace by rank, host, file or storage target.

    Raises InputRefused if the input is neither a series nor a trace, or is unreadable.
    """
    params = settings.classes.params(ClassParams)
    with open_input(path, settings, read_options) as one_input:
        if isinstance(one_input, PollInput):
            raise InputRefused(
                f"{one_input.name} contains polls of controllers, which have no run to classify.",
                "Land it instead, with the job log of the same days.",
            )
        if isinstance(one_input, SeriesInput):
            return ClassResult(one_input.name, series_classes(one_input.rows, params), one_input.refused_count)
        return _classify_trace(one_input, params, settings, by)


def _classify_trace(trace: TraceInput, params: ClassParams, settings: Settings, by: By | None) -> ClassResult:
    throughput = None
    if by is not None:
        (duration_s,) = trace.jobs["duration_s"]
        requests, files = trace.landed[TRACE_REQUESTS.name], trace.read(TRACE_FILES)
        throughput = split_throughput(requests, files, duration_s, by, settings.traces.params(SignalParams))
    labeled = trace_classes(trace.jobs, trace.counters, trace.signals, params, settings.traces.max_interval_ratio)
    return ClassResult(trace.name, labeled, trace.refused_count, trace.counters, trace.signals, throughput)


def signal_intervals(signals: pl.DataFrame) -> pl.DataFrame:
    """Explode signals to one row per step.

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

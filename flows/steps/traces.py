"""Join traced runs with their jobs, sum their counters by module, and build signals of their bytes over time."""

from __future__ import annotations

import polars as pl

from iosig.estimates.signals import LANDED, make_signals
from iosig.flows.steps.items import StepContext
from iosig.flows.steps.step import Step, read_built, read_landed_of_traces, read_landed_traces, read_live
from iosig.transforms.throughput import signals
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.job_io import CLIENT_IO
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.traces import (
    TRACE_COUNTERS,
    TRACE_HEATMAPS,
    TRACE_JOBS,
    TRACE_RECORDS,
    TRACE_REQUESTS,
    TRACE_SIGNALS,
    TRACES,
)
from iosig.warehouse.engine_paths import read_parquet


def stage_traces(context: StepContext) -> int:
    """Join the traced runs of the plan's days with the job log. Returns the number of traced runs."""
    with context.engine() as connection:
        context.expose_landed(connection, TRACES)
        context.expose(connection, JOBS)
        return context.build_days(connection, TRACE_JOBS)


def trace_signals(context: StepContext) -> int:
    """Sum the counters by module, and build the signals, of the traced runs that ended on a day.

    Returns the number of signals.
    """
    with context.engine() as connection:
        context.expose(connection, TRACE_JOBS)
        context.expose_landed(connection, *LANDED)
        for table in (TRACE_COUNTERS, TRACE_HEATMAPS):
            context.build(connection, table)
        signals = _compute_signals(context)
        context.put(connection, TRACE_SIGNALS, signals)
        context.build(connection, CLIENT_IO)
    return signals.height


def _compute_signals(context: StepContext) -> pl.DataFrame:
    records = pl.collect_all(context.scan_landed(TRACE_RECORDS))
    return make_signals(
        context.frame(TRACE_JOBS),
        read_parquet(context.path(TRACE_COUNTERS)),
        # rows that landed under older versions lack newer columns
        pl.concat([frames.empty(TRACE_RECORDS), *records], how="diagonal"),
        read_parquet(context.path(TRACE_HEATMAPS)),
        context.scan_landed(TRACE_REQUESTS),
        context.settings.traces.params(signals.SignalParams),
    )


STAGE = Step(
    "stage traces",
    stage_traces,
    reads=(read_landed_traces(), read_live(JOBS)),
    writes=(TRACE_JOBS,),
    days=lambda run: run.plan.job_days,
)
SIGNALS = Step(
    "traces",
    trace_signals,
    reads=(read_built(TRACE_JOBS), read_landed_of_traces(*LANDED)),
    writes=(TRACE_COUNTERS, TRACE_HEATMAPS, TRACE_SIGNALS, CLIENT_IO),
    days=lambda run: run.plan.job_days,
    is_daily=True,
    is_needed=lambda run, day: bool(run.built(TRACE_JOBS, [day])),
)

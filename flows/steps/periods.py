"""Find the periods of the I/O of jobs, series, traced runs and applications, by every method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from iosig.estimates import subjects
from iosig.estimates.periods import DEFAULT_METHOD, Rows, find_rows, get_params
from iosig.flows.steps.items import StepContext
from iosig.flows.steps.node_periods import node_rows
from iosig.flows.steps.step import Step, read_built, read_carried, read_landed_of_traces
from iosig.flows.steps.subjects import compute_counted_samples, select_applications
from iosig.transforms.periods.search import PeriodParams
from iosig.transforms.throughput.requests import step_function
from iosig.warehouse.contracts.periods import (
    KEPT_NODES,
    KEPT_PERIODS,
    KEPT_SEGMENTS,
    MEASURED_PERIODS,
    NODE_PERIODS,
    PERIOD_SEGMENTS,
    PERIODS,
)
from iosig.warehouse.contracts.samples import EXACT_SAMPLES
from iosig.warehouse.contracts.series import SERIES_INTERVALS
from iosig.warehouse.contracts.traces import TRACE_COUNTERS, TRACE_JOBS, TRACE_REQUESTS, TRACE_SIGNALS
from iosig.warehouse.store.manifests import Landing, Part, scans
from iosig.warehouse.store.store import Store

#: models that select the rows of the base release that are still valid, by table
_KEPT_TABLES = {PERIODS: KEPT_PERIODS, PERIOD_SEGMENTS: KEPT_SEGMENTS, NODE_PERIODS: KEPT_NODES}
#: maximum number of requests per batch, to bound memory use
_BATCH_REQUESTS = 5_000_000


def find(context: StepContext) -> int:
    """Find the periods of counted runs, series and traced runs that ended on a day.

    An undated item also finds those of applications. Returns the number of rows.
    """
    settings = context.settings.periods
    params = get_params(settings)
    pieces = []
    if context.files(EXACT_SAMPLES):
        counted = subjects.job_subjects(compute_counted_samples(context))
        pieces.append(find_rows(counted, get_params(settings, settings.server_methods)))
    if context.files(SERIES_INTERVALS):
        pieces.append(find_rows(subjects.series_subjects(context.frame(SERIES_INTERVALS)), params))
    if context.files(TRACE_SIGNALS):
        pieces += _analyze_traces(context, params)
    if context.days == (None,):
        applications, kept_rows = select_applications(context, _KEPT_TABLES)
        pieces.append(Rows(*kept_rows))
        of_operations = get_params(settings, (DEFAULT_METHOD,))
        pieces += [
            find_rows(signatures, params if metric == "bytes" else of_operations)
            for metric, signatures in applications.items()
        ]
    rows = Rows.concat(pieces)
    context.write_days(rows.periods, MEASURED_PERIODS)
    context.write_days(rows.segments, PERIOD_SEGMENTS)
    context.write_days(rows.nodes, NODE_PERIODS)
    return rows.periods.height


def _analyze_traces(context: StepContext, params: PeriodParams) -> Iterator[Rows]:
    """Yield the periods of traced runs in batches, computed from requests, because fixed steps blur short bursts."""
    jobs, counters, signals = map(context.frame, (TRACE_JOBS, TRACE_COUNTERS, TRACE_SIGNALS))
    parts = context.parts(TRACE_REQUESTS)
    for trace_ids in _groups(parts, jobs["trace_id"]):
        in_batch = pl.col("trace_id").is_in(trace_ids.implode())
        own_signals = signals.filter(in_batch)
        trace_subjects = subjects.build_trace_subjects(
            jobs.filter(in_batch), counters.filter(in_batch), own_signals, context.settings.traces.max_interval_ratio
        )
        batch_ids = set(trace_ids)
        request_parts = [(landed, part) for landed, part in parts if landed.trace_id in batch_ids]
        requests = scans(Store(context.root), TRACE_REQUESTS, request_parts)
        rows = find_rows(
            trace_subjects,
            params,
            step_function(subjects.collect_trace_requests(trace_subjects.keys, own_signals, requests)),
        )
        yield replace(rows, nodes=node_rows(trace_subjects, rows.periods, own_signals, requests, params))


def _groups(parts: Sequence[tuple[Landing, Part]], trace_ids: pl.Series) -> Iterator[pl.Series]:
    """Yield batches of traced runs with a limited number of requests in total."""
    counts = pl.DataFrame(
        [(landing.trace_id, part.row_count) for landing, part in parts],
        schema={"trace_id": pl.String, "row_count": pl.Int64},
        orient="row",
    )
    summed = counts.group_by("trace_id").agg(pl.col("row_count").sum())
    placed = trace_ids.to_frame().join(summed, on="trace_id", how="left", maintain_order="left")
    group = pl.col("row_count").fill_null(0).cum_sum() // _BATCH_REQUESTS
    for _, rows in placed.with_columns(group=group).group_by("group", maintain_order=True):
        yield rows["trace_id"]


STEP = Step(
    "periods",
    find,
    reads=(read_built(*subjects.SIGNAL_TABLES), read_carried(*_KEPT_TABLES), read_landed_of_traces(TRACE_REQUESTS)),
    writes=(MEASURED_PERIODS, PERIOD_SEGMENTS, NODE_PERIODS),
    days=lambda run: run.plan.analysis_days,
    is_daily=True,
)

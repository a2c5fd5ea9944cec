"""Compare each exact sample, taken from per-job counters, with its application's signature."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.estimates.columns import epoch_s, ragged
from iosig.estimates.signatures import published
from iosig.estimates.signatures.published import KEY
from iosig.flows.steps.items import Day, StepContext
from iosig.flows.steps.run import Run
from iosig.flows.steps.signature_checks import none_if_nan
from iosig.flows.steps.step import Step, read_built, read_undated
from iosig.transforms.arrays import Reals
from iosig.transforms.sample_checks import RunSamples
from iosig.transforms.signatures import similarity
from iosig.transforms.signatures.bursts import detect_bursts
from iosig.transforms.signatures.signature import Signature
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.samples import EXACT_SAMPLES, SAMPLE_SETS
from iosig.warehouse.contracts.signatures import (
    EXACT_CHECKS,
    EXACT_PAIRS,
    SIGNATURE_BURSTS,
    SIGNATURE_POINTS,
    SIGNATURES,
)
from iosig.warehouse.store import models

if TYPE_CHECKING:
    import duckdb

_RESULT_COLUMNS = ("cross_correlation", "correlation", "exact_bytes", "missed_burst_count", "false_burst_count")


def check_runs(context: StepContext) -> int:
    """Compare the exact samples of the runs that ended on a day with their signatures.

    Returns the number of comparisons.
    """
    with context.engine() as connection:
        context.expose(connection, EXACT_SAMPLES, SIGNATURES, SAMPLE_SETS)
        pairs = context.compute(connection, EXACT_PAIRS)
        rows = _compare_signatures(context, connection, pairs) if pairs.height else frames.empty(EXACT_CHECKS)
    context.write_days(rows, EXACT_CHECKS)
    return rows.height


def _compare_signatures(
    context: StepContext, connection: duckdb.DuckDBPyConnection, pairs: pl.DataFrame
) -> pl.DataFrame:
    """Return rows of `exact_checks`; pairs: rows of `exact_pairs`."""
    for table in (SIGNATURES, SIGNATURE_POINTS, SIGNATURE_BURSTS):
        models.expose(connection, "main", table, context.files(table))
    rows = published.select_by_keys(connection, pairs)
    signatures = published.read_signatures(connection, rows)
    numbered = pairs.join(rows.select(KEY).with_row_index("signature"), on=KEY, how="left", maintain_order="left")
    exact = RunSamples(
        ragged(pairs["sample_bytes_per_s"]),
        epoch_s(pairs["grid_started_at"]) - epoch_s(pairs["started_at"]),
        pairs["interval_s"].to_numpy(),
    )
    places = numbered["signature"].to_list()
    comparisons = [against(signatures[number], exact, run) for run, number in enumerate(places)]
    schema = frames.schema(EXACT_CHECKS)
    columns = pl.DataFrame(comparisons, schema={name: schema[name] for name in _RESULT_COLUMNS}, orient="row")
    return pl.concat([pairs, columns], how="horizontal").select(EXACT_CHECKS.column_names)


def against(signature: Signature, exact: RunSamples, run: int) -> tuple[float | int | None, ...]:
    """Compare a signature with one run's exact sample; return the values of columns of `exact_checks`.

    exact: samples, with the offset of each from the start of its run. Bytes are compared in steps of the sample, bursts
    in seconds.
    """
    first, last = exact.rates.offsets[run : run + 2]
    rates, interval_s = np.nan_to_num(exact.rates.values[first:last]), float(exact.interval_s[run])
    # bytes of the first step were moved after the start of the run
    count = max(len(rates), int(np.ceil((signature.duration_s - exact.start_s[run]) / interval_s)))
    edges = np.maximum(exact.start_s[run] + np.arange(count + 1) * interval_s, 0.0)
    truth = np.zeros(count)
    truth[: len(rates)] = rates * interval_s
    estimate = np.diff(np.interp(edges, np.arange(len(signature.bytes_per_s) + 1), _running(signature.bytes_per_s)))
    missed, false = similarity.count_burst_errors(signature.bursts, detect_bursts(_by_second(truth, edges)))
    return (
        none_if_nan(similarity.cross_correlation(estimate, truth)),
        none_if_nan(similarity.correlation(estimate, truth)),
        float(truth.sum()),
        missed,
        false,
    )


def _running(values: Reals) -> Reals:
    return np.concatenate([[0.0], np.cumsum(values)])


def _by_second(step_bytes: Reals, edges: Reals) -> Reals:
    """Distribute the bytes between edges [s] to seconds; the total is preserved."""
    total = _running(step_bytes)
    seconds = np.arange(int(np.ceil(edges[-1] - 1e-9)) + 1)
    by_second: Reals = np.diff(np.interp(seconds, edges, total))
    # a first step that ends when the run begins has no length
    by_second[:1] += total[-1] - by_second.sum()
    return by_second


def _is_counted(run: Run, day: Day) -> bool:
    """Return whether servers counted bytes for runs of the day."""
    return bool(run.built(EXACT_SAMPLES, [day]) and run.built(SIGNATURES, [None]))


STEP = Step(
    "exact checks",
    check_runs,
    reads=(
        read_built(EXACT_SAMPLES, SIGNATURE_POINTS),
        read_undated(SIGNATURES, SIGNATURE_BURSTS, SAMPLE_SETS),
    ),
    writes=(EXACT_CHECKS,),
    days=lambda run: run.plan.job_days,
    is_daily=True,
    is_needed=_is_counted,
)

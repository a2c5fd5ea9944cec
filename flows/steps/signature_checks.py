"""Compare signatures with the truth: the bytes that traced runs of the application moved, recorded on the clients."""

from __future__ import annotations

import numpy as np
import polars as pl

from iosig.estimates.signatures import published
from iosig.estimates.signatures.published import KEY
from iosig.estimates.subjects import Subjects, build_trace_subjects
from iosig.flows.steps.items import StepContext
from iosig.flows.steps.step import Step, read_built, read_live
from iosig.transforms.arrays import Reals
from iosig.transforms.signatures import similarity
from iosig.transforms.signatures.bursts import detect_bursts
from iosig.transforms.signatures.signature import Signature
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.samples import SAMPLE_SETS, SAMPLES
from iosig.warehouse.contracts.signatures import (
    SIGNATURE_BURSTS,
    SIGNATURE_CHECKS,
    SIGNATURE_POINTS,
    SIGNATURES,
    TRACED_PAIRS,
)
from iosig.warehouse.contracts.traces import TRACE_COUNTERS, TRACE_JOBS, TRACE_SIGNALS
from iosig.warehouse.engine_paths import scan_parquet
from iosig.warehouse.store import models
from iosig.warehouse.store.store import write_parquet

_TRACED = (TRACE_JOBS, TRACE_COUNTERS, TRACE_SIGNALS, SAMPLES)
_RESULT_COLUMNS = (
    "cross_correlation", "correlation", "volume_bytes", "traced_bytes", "missed_burst_count", "false_burst_count",
)  # fmt: skip
_SIGNATURES = (SIGNATURES, SIGNATURE_POINTS, SIGNATURE_BURSTS)


def check_signatures(context: StepContext) -> int:
    """Compare each signature with each traced run of its application. Returns the number of comparisons."""
    traced = _load_traced_runs(context)
    checks = frames.empty(SIGNATURE_CHECKS) if traced is None else _compare_signatures(context, *traced)
    write_parquet(checks, SIGNATURE_CHECKS, context.path(SIGNATURE_CHECKS))
    return checks.height


def _load_traced_runs(context: StepContext) -> tuple[pl.DataFrame, Subjects] | None:
    """Return the pairs of signatures and traced runs of their applications, and the signals of these runs."""
    if not all(map(context.files, _TRACED)):
        return None
    with context.engine() as connection:
        context.expose(connection, TRACE_JOBS, SAMPLES, SIGNATURES, SAMPLE_SETS)
        pairs = context.compute(connection, TRACED_PAIRS)
    if pairs.is_empty():
        return None
    jobs, is_wanted = context.frame(TRACE_JOBS), pl.col("trace_id").is_in(pairs["trace_id"].implode())
    signals, counters = (
        scan_parquet(context.files(table)).filter(is_wanted).collect() for table in (TRACE_SIGNALS, TRACE_COUNTERS)
    )
    ratio = context.settings.traces.max_interval_ratio
    return pairs, build_trace_subjects(jobs.filter(is_wanted), counters, signals, ratio)


def _compare_signatures(context: StepContext, pairs: pl.DataFrame, traced: Subjects) -> pl.DataFrame:
    """Compare every signature of a traced application with each of its traced runs."""
    usable = traced.keys.with_row_index("place").filter(pl.col("untold").is_null())
    placed = pairs.join(usable.select("place", "direction", trace_id="subject_id"), on=["trace_id", "direction"])
    with context.engine() as connection:
        for table in _SIGNATURES:
            models.expose(connection, "main", table, context.files(table))
        rows = published.select_by_keys(connection, placed)
        signatures = published.read_signatures(connection, rows)
    numbered = placed.join(rows.select(KEY).with_row_index("signature"), on=KEY, maintain_order="left")
    comparisons = [
        _against(signatures[number], traced, place) for number, place in numbered.select("signature", "place").rows()
    ]
    schema = frames.schema(SIGNATURE_CHECKS)
    results = pl.DataFrame(comparisons, schema={name: schema[name] for name in _RESULT_COLUMNS}, orient="row")
    checks = pl.concat([numbered, results], how="horizontal")
    return checks.select(SIGNATURE_CHECKS.column_names).sort(SIGNATURE_CHECKS.key)


def _against(signature: Signature, traced: Subjects, place: int) -> tuple[float | int | None, ...]:
    """Compare a signature with a traced run; return the values of columns of `signature_checks`."""
    truth = _by_second(traced, place)
    missed, false = similarity.count_burst_errors(signature.bursts, detect_bursts(truth))
    return (
        none_if_nan(similarity.cross_correlation(signature.bytes_per_s, truth)),
        none_if_nan(similarity.correlation(signature.bytes_per_s, truth)),
        signature.volume_bytes,
        float(truth.sum()),
        missed,
        false,
    )


def _by_second(traced: Subjects, place: int) -> Reals:
    """Return one run's mean rate in each second; the total number of bytes is preserved."""
    first, last = traced.samples.offsets[place : place + 2]
    rates = np.nan_to_num(traced.samples.values[first:last])
    step_s = 1.0 / traced.sampling_hz[place]
    total = np.concatenate([[0.0], np.cumsum(rates) * step_s])
    seconds = np.arange(int(np.ceil(len(rates) * step_s - 1e-9)) + 1)
    by_second: Reals = np.diff(np.interp(seconds, np.arange(len(total)) * step_s, total))
    return by_second


def none_if_nan(value: float) -> float | None:
    """Replace an undefined correlation (NaN) with None."""
    return None if np.isnan(value) else float(np.clip(value, -1.0, 1.0))


STEP = Step(
    "signature checks",
    check_signatures,
    (read_built(*_SIGNATURES, SAMPLE_SETS), read_live(*_TRACED)),
    (SIGNATURE_CHECKS,),
)

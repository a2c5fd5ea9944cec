"""Periods of metadata operations: counted per call, per operation and in total, with a shared significance level."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from iosig.flows.steps.metadata_periods import grid_rows, metadata_rows
from iosig.transforms.arrays import Ragged
from iosig.transforms.periods.null_model.params import NullModelParams
from iosig.transforms.periods.search import PeriodParams, find_periods
from iosig.transforms.throughput.signals import SignalParams
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.periods import METADATA_PERIODS, METADATA_SPANS, METADATA_STEPS
from iosig.warehouse.contracts.traces import TRACE_JOBS, TRACE_METADATA
from tests.sql import given

PARAMS = PeriodParams(methods=("null_tested",))


def calls(*kinds: tuple[str, str, np.ndarray]) -> pl.DataFrame:
    """Rows of `trace_metadata`: trace, operation and start times of the calls."""
    parts = [pl.DataFrame({"trace_id": trace, "operation": kind, "start_s": at}) for trace, kind, at in kinds]
    known = pl.concat(parts).with_columns(
        end_s=pl.col("start_s") + 0.01, is_nested=pl.lit(False), metadata_call=pl.int_range(pl.len()), rank=0
    )
    return pl.concat([frames.empty(TRACE_METADATA), known], how="diagonal_relaxed")


def jobs(**durations: float) -> pl.DataFrame:
    known = pl.DataFrame({"trace_id": list(durations), "duration_s": list(durations.values())})
    return pl.concat([frames.empty(TRACE_JOBS), known], how="diagonal_relaxed")


def periods(jobs: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Return the step's rows for traced runs and their calls."""
    landed = calls.with_columns(part_order=pl.lit(0, pl.Int64), part_row=pl.lit(0, pl.Int64), landing_id=pl.lit(""))
    spans = given.select_alone(METADATA_SPANS, {"stage.trace_jobs": jobs, "landed.trace_metadata": landed})
    grids = grid_rows(spans, SignalParams())
    steps = given.select_alone(METADATA_STEPS, {"landed.trace_metadata": landed, "samples.metadata_grids": grids})
    return metadata_rows(grids, steps, PARAMS)


def test_operation_counts_share_the_significance_level_of_a_run() -> None:
    generator = np.random.default_rng(3)
    opens = 5.0 + 30.0 * np.arange(20) + generator.uniform(0, 1, 20)
    stats = generator.uniform(0, 600, 200)
    landed = calls(("a", "open", opens), ("a", "stat", stats), ("b", "open", opens[:5]))
    nested = landed.with_columns(is_nested=pl.lit(True))
    found = periods(jobs(a=600.0, b=600.0, c=9.0), pl.concat([landed, nested]))
    assert found.schema == frames.schema(METADATA_PERIODS)
    assert found.select("trace_id", "operation_group", "metadata_call_count").rows() == [
        ("a", "all", 220),
        ("a", "open", 20),
        ("a", "stat", 200),
        ("b", "all", 5),
        ("b", "open", 5),
    ]
    # slow reference: each signal separately, at its share of the significance level
    for row in found.iter_rows(named=True):
        own = landed.filter(trace_id=row["trace_id"])
        own = own if row["operation_group"] == "all" else own.filter(operation=row["operation_group"])
        signal = np.bincount(np.floor(own["start_s"].to_numpy()).astype(int), minlength=600).astype(float)
        share = {"a": 3, "b": 2}[row["trace_id"]]
        level = NullModelParams(false_alarm_probability=0.01 / share)
        params = PeriodParams(methods=("null_tested",), null_tested=level)
        (alone,) = find_periods(Ragged(signal, np.array([0, 600])), np.ones(1), np.zeros(1), params)
        assert row["outcome"] == alone.detections.outcome[0]
        assert row["period_s"] == pytest.approx(alone.detections.period_s[0], nan_ok=True) or row["period_s"] is None
        assert row["false_alarm_probability"] == pytest.approx(
            min(alone.detections.false_alarm_probability[0] * share, 1.0)
        )
    (opened,) = found.filter(trace_id="a", operation_group="open").iter_rows(named=True)
    assert opened["period_s"] == pytest.approx(30.0, rel=0.01)
    assert opened["period_error_s"] < 0.3


def test_trace_without_metadata_has_no_rows() -> None:
    assert periods(jobs(a=600.0), frames.empty(TRACE_METADATA)).equals(frames.empty(METADATA_PERIODS))


def test_calls_at_and_after_the_end_of_the_run_are_counted() -> None:
    landed = calls(("a", "open", np.array([0.0, 100.0, 100.0])))
    found = periods(jobs(a=100.0), landed)
    assert found["metadata_call_count"].to_list() == [3, 3]
    assert found["outcome"].is_in(["aperiodic", "too_short"]).all()

"""Metadata rates: exact counts on a run's grid, with class and period."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from iosig.flows.steps.metadata_rates import rate_rows
from iosig.transforms.classes import ClassParams
from iosig.transforms.periods.search import PeriodParams
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.periods import METADATA_RATES
from iosig.warehouse.contracts.samples import EXACT_RUNS, METADATA_RUNS, RUN_COUNTER_DELTAS
from tests.sql import given

START = datetime(2026, 3, 3, 10, tzinfo=UTC)
STEP_S, STEPS = 10, 120
PARAMS = PeriodParams(methods=("null_tested",))


def runs(*places: tuple[str, str], counted_from_s: float = 0.0) -> pl.DataFrame:
    """Rows of `exact_runs`: jobs of twenty minutes on file systems."""
    first = int(START.timestamp()) // STEP_S + 1
    known = pl.DataFrame(places, schema=["job_id", "filesystem"], orient="row").with_columns(
        cluster=pl.lit("c"), started_at=START, ended_at=START + timedelta(seconds=STEP_S * STEPS),
        outcome=pl.lit("measured"),
        coverage_started_at=START + timedelta(seconds=counted_from_s), coverage_ended_at=START + timedelta(hours=1),
        interval_s=float(STEP_S), step_us=STEP_S * 1_000_000, phase_us=0, first_step=first, last_step=first + STEPS - 1,
        grid_started_at=START, step_count=STEPS,
    )  # fmt: skip
    return pl.concat([frames.empty(EXACT_RUNS), known], how="diagonal_relaxed")


def rises(job_id: str, filesystem: str, counts: dict[int, int | None]) -> pl.DataFrame:
    """Rows of `run_counter_deltas`: counts by step number."""
    known = pl.DataFrame(
        {"step": list(counts), "metadata_operation_count": pl.Series(list(counts.values()), dtype=pl.Int64)}
    )
    interval_started_at = pl.lit(START) + pl.duration(seconds=pl.col("step") * STEP_S)
    told = known.select(
        "metadata_operation_count", job_id=pl.lit(job_id), filesystem=pl.lit(filesystem), cluster=pl.lit("c"),
        started_at=START, interval_started_at=interval_started_at,
        interval_ended_at=interval_started_at + timedelta(seconds=STEP_S),
    )  # fmt: skip
    return pl.concat([frames.empty(RUN_COUNTER_DELTAS), told], how="diagonal_relaxed")


JOB_ROWS = pl.concat(
    [
        frames.empty(JOBS),
        pl.DataFrame({"cluster": "c", "job_id": ["1", "2"], "node_count": 2}).with_columns(started_at=START),
    ],
    how="diagonal_relaxed",
)


def rated(runs: pl.DataFrame, rises: pl.DataFrame) -> pl.DataFrame:
    given_tables = {"samples.exact_runs": runs, "samples.run_counter_deltas": rises, "stage.jobs": JOB_ROWS}
    return rate_rows(given.select_alone(METADATA_RUNS, given_tables), rises, ClassParams(), PARAMS)


def test_bursts_of_opens_are_classified_and_periodic() -> None:
    counts: dict[int, int | None] = {step: 500 + step for step in range(5, STEPS, 12)}
    counted = pl.concat([rises("1", "lake", counts | {STEPS + 20: 7}), rises("2", "pond", {3: None})])
    found = rated(runs(("1", "lake"), ("2", "lake"), ("2", "pond")), counted)
    assert found.schema == frames.schema(METADATA_RATES)
    busy, idle = found.to_dicts()
    # late operations are in the total, but in no step
    assert busy["metadata_operation_count"] == sum(filter(None, counts.values())) + 7
    rates = np.array(busy["sample_operations_per_s"])
    assert dict(zip(np.flatnonzero(rates).tolist(), (rates[rates > 0] * STEP_S).tolist(), strict=True)) == counts
    assert (busy["outcome"], busy["class_outcome"], busy["label"]) == ("periodic", "classified", "UNIFORM")
    assert busy["period_s"] == pytest.approx(120.0, rel=0.01)
    assert sum(busy["section_operations"]) == sum(filter(None, counts.values()))
    assert (idle["job_id"], idle["filesystem"], idle["metadata_operation_count"]) == ("2", "lake", 0)
    assert (idle["outcome"], idle["label"], idle["is_complete"]) == ("no_io", "NO_USAGE", True)


def test_steps_before_the_first_scrape_are_unknown() -> None:
    counted = rises("1", "lake", {100: 5})
    found = rated(runs(("1", "lake"), counted_from_s=600.0), counted)
    (row,) = found.to_dicts()
    assert row["sample_operations_per_s"][:60] == [None] * 60
    assert row["sample_operations_per_s"][60] == 0
    assert row["missing_ratio"] == 0.5


def test_no_rows_where_metadata_operations_are_not_counted() -> None:
    nobody = rises("1", "lake", {3: None})
    assert rated(runs(("1", "lake")), nobody).equals(frames.empty(METADATA_RATES))

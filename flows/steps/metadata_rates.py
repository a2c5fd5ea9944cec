"""Compute the class and period of metadata operations during each run, from per-job counters of servers."""

from __future__ import annotations

import polars as pl

from iosig.estimates.columns import epoch_s, floats, list_column, ragged
from iosig.estimates.periods import get_params
from iosig.flows.steps.exact_samples import RUN, rates_on_grids
from iosig.flows.steps.items import StepContext
from iosig.flows.steps.metadata_periods import make_columns
from iosig.flows.steps.step import Step, read_built
from iosig.transforms import classes
from iosig.transforms.classes import ClassParams
from iosig.transforms.periods import search
from iosig.transforms.periods.search import PeriodParams
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.periods import METADATA_RATES
from iosig.warehouse.contracts.samples import EXACT_RUNS, METADATA_RUNS, RUN_COUNTER_DELTAS

_COUNT, _RATES = "metadata_operation_count", "sample_operations_per_s"
#: number of samples per part, to bound memory use
_BATCH_SAMPLES = 1 << 23


def tell(context: StepContext) -> int:
    """Compute the metadata rates of the runs that ended on a day. Returns the number of rows."""
    with context.engine() as connection:
        context.expose(connection, EXACT_RUNS, RUN_COUNTER_DELTAS, JOBS)
        runs = context.compute(connection, METADATA_RUNS)
    class_params = context.settings.classes.params(ClassParams)
    params = get_params(context.settings.periods, methods=("null_tested",))
    rows = rate_rows(runs, context.frame(RUN_COUNTER_DELTAS), class_params, params)
    context.write_days(rows, METADATA_RATES)
    return rows.height


def rate_rows(runs: pl.DataFrame, rises: pl.DataFrame, class_params: ClassParams, params: PeriodParams) -> pl.DataFrame:
    """Return rows of `metadata_rates`, for runs on file systems with per-job counters of metadata operations.

    runs, rises: rows of `metadata_runs` and `run_counter_deltas`.
    """
    (rates,) = rates_on_grids(runs, rises.filter(pl.col(_COUNT).is_not_null()), _COUNT)
    subjects = (
        runs.with_columns(list_column(rates).alias(_RATES), is_complete=pl.col("outcome") == "measured")
        .filter(pl.col(_RATES).list.max().is_not_null())
        .sort(RUN)
    )
    part = pl.col("step_count").cum_sum() // _BATCH_SAMPLES
    pieces = subjects.with_columns(part=part).partition_by("part", maintain_order=True)
    return pl.concat([frames.empty(METADATA_RATES), *(_analyze_runs(piece, class_params, params) for piece in pieces)])


def _analyze_runs(subjects: pl.DataFrame, class_params: ClassParams, params: PeriodParams) -> pl.DataFrame:
    """Return the rows of some runs, with class and period."""
    rates, hz = ragged(subjects[_RATES]), 1.0 / subjects["interval_s"].to_numpy()
    grid_s, start_s, end_s = (epoch_s(subjects[name]) for name in ("grid_started_at", "started_at", "ended_at"))
    sections = classes.grid_sections(rates.values, rates.offsets, grid_s, 1.0 / hz, start_s, end_s)
    labeled = classes.classify(sections, floats(subjects["node_count"]), class_params.for_operations()).select(
        "label", "cv", "missing_ratio", class_outcome="outcome", section_operations="section_bytes"
    )
    (answer,) = search.find_periods(rates, hz, grid_s - start_s, params)
    periods = pl.DataFrame({"sampling_hz": hz, **dict(make_columns(answer, 1.0))}).with_columns(
        pl.col(pl.Float64).fill_nan(None)
    )
    keys = subjects.drop("outcome")
    return pl.concat([keys, labeled, periods], how="horizontal").select(METADATA_RATES.column_names)


STEP = Step(
    "metadata rates",
    tell,
    reads=(read_built(JOBS, EXACT_RUNS, RUN_COUNTER_DELTAS),),
    writes=(METADATA_RATES,),
    days=lambda run: run.plan.job_days,
    is_daily=True,
    is_needed=lambda run, day: bool(run.built(EXACT_RUNS, [day])),
)

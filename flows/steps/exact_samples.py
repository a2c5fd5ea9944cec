"""Exact samples: what servers counted for each run itself, on the grid of its file system."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import polars as pl

from iosig.estimates.columns import epoch_s, list_column, ragged
from iosig.flows.steps.items import Day, StepContext, TableFile
from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Input, Step, built, live
from iosig.transforms import exact_series, sample_checks
from iosig.transforms.arrays import Bools, Ragged, places_of
from iosig.transforms.exact_series import Grids, Intervals
from iosig.transforms.sample_checks import RunSamples
from iosig.warehouse.contracts.counters import COUNTED_JOBS, COUNTER_DAYS, COUNTER_GAPS, COUNTER_RISES
from iosig.warehouse.contracts.job_io import EXACT_IO, METADATA_IO
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.samples import EXACT_RUNS, EXACT_SAMPLES, RUN_RISES, RUNS, SAMPLE_CHECKS, SAMPLES
from iosig.warehouse.engine_paths import read_parquet, scan_parquet
from iosig.warehouse.store.store import write_parquet

#: what tells a run of a file system apart
RUN = ["cluster", "job_id", "started_at", "filesystem"]
#: what tells of what servers counted
_COUNTED = (COUNTED_JOBS, COUNTER_DAYS, COUNTER_GAPS, COUNTER_RISES)


def take_samples(context: StepContext) -> int:
    """Take the samples of the runs that ended on a day from what servers counted for them. Returns the samples."""
    with context.engine() as connection:
        context.expose(connection, JOBS, RUNS, *_COUNTED)
        for table in (RUN_RISES, EXACT_RUNS):
            context.build(connection, table)
        runs, rises = (read_parquet(context.path(table)) for table in (EXACT_RUNS, RUN_RISES))
        taken = samples_of(runs, rises)
        context.put(connection, EXACT_SAMPLES, taken)
        for table in (EXACT_IO, METADATA_IO):
            context.build(connection, table)
    write_parquet(checks_of(taken, context.frame(SAMPLES)), SAMPLE_CHECKS, context.path(SAMPLE_CHECKS))
    return taken.height


@dataclass(frozen=True, slots=True)
class Gridded:
    """Runs whose grid has steps, as rows of `exact_runs`, and what was counted for them, on their grids."""

    runs: pl.DataFrame
    rises: pl.DataFrame
    grids: Grids

    @classmethod
    def of(cls, runs: pl.DataFrame, rises: pl.DataFrame) -> Gridded:
        """Take rows of `exact_runs` and `run_rises`; a run also tells when its grid began, and its number of steps."""
        known = runs.filter(pl.col("last_step") >= pl.col("first_step")).with_row_index("run")
        began_us = (pl.col("first_step") - 1) * pl.col("step_us") + pl.col("phase_us")
        told = known.with_columns(
            grid_started_at=began_us.cast(pl.Datetime("us")).dt.replace_time_zone("UTC"),
            step_count=pl.col("last_step") - pl.col("first_step") + 1,
        )
        placed = rises.join(known.select(pl.col("run").cast(pl.Int64), *RUN), on=RUN, how="inner")
        grids = Grids(*(known[name].to_numpy() for name in ("step_us", "phase_us", "first_step", "last_step")))
        return cls(told, placed, grids)

    def rates(self, column: str) -> Ragged:
        """Return what a column counts, a second, in each step of each run; NaN where nothing was scraped."""
        from_us, until_us = (self.rises[name].dt.epoch("us").to_numpy() for name in ("from_at", "until_at"))
        intervals = Intervals(from_us, until_us, self.rises["run"].to_numpy())
        found = exact_series.distribute_to_grids(intervals, self.rises[column].to_numpy(), self.grids)
        step_s = np.repeat(self.grids.step_us, self.grids.counts) / 1e6
        return Ragged(np.where(_scraped(self.runs, self.grids), found.values / step_s, np.nan), found.offsets)


def samples_of(runs: pl.DataFrame, rises: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `exact_samples`, as rows of `exact_runs` and `run_rises` tell."""
    gridded = Gridded.of(runs, rises)
    taken = [
        gridded.runs.with_columns(direction=pl.lit(direction), sample_bytes_per_s=list_column(gridded.rates(column)))
        for direction, column in (("read", "read_bytes"), ("write", "written_bytes"))
    ]
    return (
        pl.concat(taken)
        .filter(pl.col("sample_bytes_per_s").list.max().is_not_null())
        .select(EXACT_SAMPLES.column_names)
        .sort(EXACT_SAMPLES.key)
    )


def _scraped(runs: pl.DataFrame, grids: Grids) -> Bools:
    """Mark the steps of which a part lies between the first scrape and the last one."""
    run = np.repeat(np.arange(runs.height), grids.counts)
    right = places_of(grids.first_step, grids.counts) * grids.step_us[run] + grids.phase_us[run]
    begin, end = (runs[name].dt.epoch("us").to_numpy()[run] for name in ("counted_from_at", "counted_until_at"))
    marked: Bools = (right > begin) & (right - grids.step_us[run] < end)
    return marked


def checks_of(exact: pl.DataFrame, cut: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `sample_checks`: exact samples beside those that were cut out of shared traffic."""
    both = exact.join(cut, on=list(EXACT_SAMPLES.key), how="inner", suffix="_cut").sort(EXACT_SAMPLES.key)
    pair = [
        RunSamples(
            ragged(both[f"sample_bytes_per_s{suffix}"]),
            epoch_s(both[f"grid_started_at{suffix}"]),
            both[f"interval_s{suffix}"].to_numpy(),
        )
        for suffix in ("", "_cut")
    ]
    correlation = pl.Series(sample_checks.correlate_samples(*pair)).fill_nan(None)
    volumes = {
        name: pl.col(f"sample_bytes_per_s{suffix}").list.sum() * pl.col(f"interval_s{suffix}")
        for name, suffix in (("exact_bytes", ""), ("cut_bytes", "_cut"))
    }
    times = pl.when(pl.col("exact_bytes") > 0).then(pl.col("cut_bytes") / pl.col("exact_bytes"))
    return both.with_columns(**volumes, cut_correlation=correlation).with_columns(times_exact=times).select(
        SAMPLE_CHECKS.column_names
    )  # fmt: skip


def _is_counted(run: Run, day: Day) -> bool:
    """Take the days of runs while which servers counted by job."""
    return day is not None and bool(run.built(RUNS, [day])) and any(_counters(run, day))


def _counters(run: Run, day: Day) -> Iterator[TableFile]:
    """Yield what was counted on the days on which a run of this day was there, and on the day after."""
    assert day
    paths = run.store.locals(file.path for file in run.built(RUNS, [day]))
    runs = scan_parquet(paths).filter(pl.col("ended_on") == day)
    first = runs.select(pl.col("started_at").min().dt.date()).collect().item() or day
    last = day + timedelta(days=1)
    for table in _COUNTED:
        yield from (file for file in run.live(table) if file.day is not None and first <= file.day <= last)


STEP = Step(
    "exact samples",
    take_samples,
    reads=(live(JOBS), built(RUNS, SAMPLES), Input(_COUNTED, _counters)),
    writes=(RUN_RISES, EXACT_RUNS, EXACT_SAMPLES, EXACT_IO, METADATA_IO, SAMPLE_CHECKS),
    days=lambda run: run.plan.job_days,
    is_daily=True,
    is_needed=_is_counted,
)

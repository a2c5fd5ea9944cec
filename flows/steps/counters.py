"""Compute the increments of server counters, day by day, and sum them by job, day and poll."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date

import polars as pl

from iosig.flows.steps.items import Day, StepContext, TableFile
from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Input, Step, read_landed_on_day
from iosig.transforms import counters, job_keys
from iosig.transforms.counters import TARGET, CounterParams
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.counters import (
    COUNTER_DELTAS,
    COUNTER_GAPS,
    COUNTER_JOB_TOTALS,
    COUNTER_LAST_VALUES,
    COUNTER_SAMPLES,
    COUNTER_TARGETS,
    COUNTERS_DAILY,
    JOB_KEYS,
    SCRAPES,
    TIMED_SCRAPES,
    UNATTRIBUTED_COUNTER_IO,
)
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.polls import COUNTER_POLLS
from iosig.warehouse.engine_paths import scan_parquet
from iosig.warehouse.sources.rows.counters import flag_server_counters
from iosig.warehouse.store.manifests import Landing, scans
from iosig.warehouse.store.store import Store, write_parquet

#: number of readings per part, to bound memory use
_BATCH_READINGS = 250_000


def end_days(context: StepContext) -> int:
    """Find the last values of each counter entry on a day. Returns the number of entries."""
    scrapes = _pair_scrapes(context)
    parts = [counters.select_last_values(samples, scrapes) for samples in _samples(context)]
    pieces = [
        frames.empty(COUNTER_LAST_VALUES),
        *(_add_day(part, context).select(COUNTER_LAST_VALUES.column_names) for part in parts),
    ]
    ends = pl.concat(pieces)
    write_parquet(ends, COUNTER_LAST_VALUES, context.path(COUNTER_LAST_VALUES))
    return ends.height


def stage_counters(context: StepContext) -> int:
    """Compute the increments between consecutive scrapes of a day, and the day's totals.

    Returns the number of increments.
    """
    scrapes = _pair_scrapes(context)
    targets = _write_rises(context, scrapes)
    keys = scan_parquet(context.path(COUNTER_DELTAS)).select(pl.col("job_key").drop_nulls().unique()).collect()
    with context.engine() as connection:
        context.expose(connection, COUNTER_DELTAS, COUNTER_GAPS)
        context.put(connection, TIMED_SCRAPES, scrapes.select(TIMED_SCRAPES.column_names))
        context.put(connection, COUNTER_TARGETS, targets.select(COUNTER_TARGETS.column_names))
        context.put(connection, JOB_KEYS, job_keys.parse_keys(keys["job_key"], context.settings.counters.job_keys))
        for table in (COUNTER_JOB_TOTALS, COUNTERS_DAILY, COUNTER_POLLS):
            context.build(connection, table)
    return int(scan_parquet(context.path(COUNTER_DELTAS)).select(pl.len()).collect().item())


def _write_rises(context: StepContext, scrapes: pl.DataFrame) -> pl.DataFrame:
    """Write the increments and gaps of a day, and return a summary of each target's readings."""
    ends, params = context.frame(COUNTER_LAST_VALUES), context.settings.counters.params(CounterParams)
    folder = context.folder / "counter_parts" / str(context.days[0])
    shutil.rmtree(folder, ignore_errors=True)
    edges = _add_day(counters.find_edge_gaps(scrapes, params), context).select(COUNTER_GAPS.column_names)
    parts, targets, gaps = [], [frames.empty(COUNTER_TARGETS)], [frames.empty(COUNTER_GAPS), edges]
    for number, (samples, own_scrapes, own_ends) in enumerate(_by_targets(context, scrapes, ends)):
        deltas = counters.compute_deltas(samples, own_scrapes, own_ends, flag_server_counters, params)
        rows = _add_day(deltas.rows, context).select(COUNTER_DELTAS.column_names)
        parts.append(write_parquet(rows, COUNTER_DELTAS, folder / f"{number:05d}.parquet"))
        targets.append(deltas.targets.select(COUNTER_TARGETS.column_names))
        gaps.append(_add_day(deltas.gaps, context).select(COUNTER_GAPS.column_names))
    context.join(parts, COUNTER_DELTAS)
    write_parquet(pl.concat(gaps).sort(COUNTER_GAPS.key), COUNTER_GAPS, context.path(COUNTER_GAPS))
    return pl.concat(targets)


def _add_day(rows: pl.DataFrame, context: StepContext) -> pl.DataFrame:
    return rows.with_columns(scraped_on=pl.lit(context.days[0], pl.Date))


def sum_unattributed(context: StepContext) -> int:
    """Sum the bytes of a day that servers counted under names without a known job. Returns the number of kinds."""
    with context.engine() as connection:
        context.expose(connection, COUNTER_JOB_TOTALS, JOBS)
        return context.build(connection, UNATTRIBUTED_COUNTER_IO)


# ---- inputs


def _pair_scrapes(context: StepContext) -> pl.DataFrame:
    """Return the valid scrapes of the day, each with the preceding scrape."""
    (day,) = context.days
    parts = context.parts(SCRAPES)
    on_day, before = (
        pl.concat([frames.empty(SCRAPES), *(rows.collect() for rows in scans(Store(context.root), SCRAPES, of))])
        for of in (
            [part for part in parts if part[1].day == str(day)],
            [part for part in parts if part[1].day != str(day)],
        )
    )
    return counters.order_scrapes(on_day, before)


def _samples(context: StepContext) -> Iterator[pl.DataFrame]:
    """Yield the readings of a day in batches with all readings of some targets, in the order of landing."""
    landed = context.scan_landed(COUNTER_SAMPLES)
    if not landed:
        return
    rows = pl.concat(landed)
    counted = rows.group_by("target").len().collect(engine="streaming").sort("target")
    group = pl.col("len").cum_sum() // _BATCH_READINGS
    for names in counted.with_columns(group=group).partition_by("group", maintain_order=True):
        yield rows.filter(pl.col("target").is_in(names["target"].implode())).collect()


def _by_targets(
    context: StepContext, scrapes: pl.DataFrame, ends: pl.DataFrame
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]]:
    """Yield readings, scrapes and last values for some targets at a time; targets without readings come last."""
    remaining = scrapes
    for samples in _samples(context):
        targets = samples.select(TARGET).unique()
        own_scrapes, own_ends = (
            rows.join(targets, on=TARGET, how="semi", maintain_order="left") for rows in (scrapes, ends)
        )
        yield samples, own_scrapes, own_ends
        remaining = remaining.join(targets, on=TARGET, how="anti", maintain_order="left")
    yield frames.empty(COUNTER_SAMPLES), remaining, ends.join(remaining, on=TARGET, how="semi", maintain_order="left")


def _day_before(run: Run, day: Day) -> Iterator[TableFile | Landing]:
    """Yield the last scrapes and the last values of the day before."""
    assert day
    before = date.fromordinal(day.toordinal() - 1)
    yield from run.find_landings((SCRAPES,), before)
    yield from (file for file in run.live(COUNTER_LAST_VALUES) if file.day == before)


def _jobs_since(run: Run, day: Day) -> Iterator[TableFile]:
    """Yield the counted names of a day, and the jobs that ended on that day or later, or have not ended yet."""
    assert day
    yield from (file for file in run.live(COUNTER_JOB_TOTALS) if file.day == day)
    before = date.fromordinal(day.toordinal() - 1)
    yield from (file for file in run.live(JOBS) if file.day is None or file.day >= before)


ENDS = Step(
    "counter ends",
    end_days,
    reads=(read_landed_on_day(COUNTER_SAMPLES, SCRAPES),),
    writes=(COUNTER_LAST_VALUES,),
    days=lambda run: run.plan.counter_days,
    is_daily=True,
)
RISES = Step(
    "counters",
    stage_counters,
    reads=(read_landed_on_day(COUNTER_SAMPLES, SCRAPES), Input((SCRAPES, COUNTER_LAST_VALUES), _day_before)),
    writes=(
        COUNTER_DELTAS,
        COUNTER_GAPS,
        TIMED_SCRAPES,
        COUNTER_TARGETS,
        JOB_KEYS,
        COUNTER_JOB_TOTALS,
        COUNTERS_DAILY,
        COUNTER_POLLS,
    ),
    days=lambda run: run.plan.counter_days,
    is_daily=True,
)
UNASSIGNED = Step(
    "unassigned i/o",
    sum_unattributed,
    reads=(Input((COUNTER_JOB_TOTALS, JOBS), _jobs_since),),
    writes=(UNATTRIBUTED_COUNTER_IO,),
    days=lambda run: run.plan.told_days,
    is_daily=True,
)

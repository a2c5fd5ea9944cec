"""Counters: what the entries of servers rose by, day by day, and what that comes to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date

import polars as pl

from iosig.flows.steps.items import Day, StepContext, TableFile
from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Input, Step, landed_on_day
from iosig.transforms import counters, job_keys
from iosig.transforms.counters import TARGET, CounterParams
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.counters import (
    COUNTED_JOBS,
    COUNTER_DAYS,
    COUNTER_ENDS,
    COUNTER_GAPS,
    COUNTER_RISES,
    COUNTER_SAMPLES,
    RISEN,
    SCRAPES,
    UNASSIGNED_IO,
)
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.polls import COUNTER_POLLS
from iosig.warehouse.engine_paths import scan_parquet
from iosig.warehouse.sources.rows.counters import polled
from iosig.warehouse.store.manifests import Landing, scans
from iosig.warehouse.store.store import Store, write_parquet

#: readings that are worked on at a time: it bounds the memory
_READINGS_AT_A_TIME = 250_000


def end_days(context: StepContext) -> int:
    """Find the last values of each entry on a day. Returns the entries."""
    scrapes = _timed(context)
    parts = [counters.last_values(samples, scrapes) for samples in _samples(context)]
    found = [frames.empty(COUNTER_ENDS), *(_dated(part, context).select(COUNTER_ENDS.column_names) for part in parts)]
    ends = pl.concat(found)
    write_parquet(ends, COUNTER_ENDS, context.path(COUNTER_ENDS))
    return ends.height


def stage_counters(context: StepContext) -> int:
    """Find what rose between every two scrapes of a day, and what the day comes to. Returns the rises."""
    scrapes, ends = _timed(context), context.frame(COUNTER_ENDS)
    folder = context.folder / "counter_parts" / str(context.days[0])
    shutil.rmtree(folder, ignore_errors=True)
    params = context.settings.counters.params(CounterParams)
    edges = _dated(counters.edge_gaps(scrapes, params), context).select(COUNTER_GAPS.column_names)
    parts, told, gaps = [], [_NO_TARGETS], [frames.empty(COUNTER_GAPS), edges]
    for number, (samples, own_scrapes, own_ends) in enumerate(_by_targets(context, scrapes, ends)):
        found = counters.rises(samples, own_scrapes, own_ends, polled, params)
        rows = _dated(found.rows, context).select(COUNTER_RISES.column_names)
        parts.append(write_parquet(rows, COUNTER_RISES, folder / f"{number:05d}.parquet"))
        told.append(_summed(rows, found.targets))
        gaps.append(_dated(found.gaps, context).select(COUNTER_GAPS.column_names))
    context.join(parts, COUNTER_RISES)
    lost = pl.concat(gaps).sort(COUNTER_GAPS.key)
    write_parquet(lost, COUNTER_GAPS, context.path(COUNTER_GAPS))
    targets = pl.concat(told)
    jobs = _counted_jobs(context)
    write_parquet(jobs, COUNTED_JOBS, context.path(COUNTED_JOBS))
    days = _day_rows(scrapes.filter("is_job_scrape"), targets, lost, jobs, _covered_s(context))
    write_parquet(_dated(days, context).select(COUNTER_DAYS.column_names), COUNTER_DAYS, context.path(COUNTER_DAYS))
    polls = _polls(scrapes.filter(~pl.col("is_job_scrape")), targets, context)
    write_parquet(polls, COUNTER_POLLS, context.path(COUNTER_POLLS))
    return int(scan_parquet(context.path(COUNTER_RISES)).select(pl.len()).collect().item())


def _dated(rows: pl.DataFrame, context: StepContext) -> pl.DataFrame:
    return rows.with_columns(counted_on=pl.lit(context.days[0], pl.Date))


def tell_unassigned(context: StepContext) -> int:
    """Tell of a day what servers counted under names of which no job is known. Returns the kinds of names."""
    with context.engine() as connection:
        context.expose(connection, COUNTED_JOBS, JOBS)
        return context.build(connection, UNASSIGNED_IO)


# ---- what is read


def _timed(context: StepContext) -> pl.DataFrame:
    """Return the scrapes of the day that count, each with the one before."""
    (day,) = context.days
    parts = context.parts(SCRAPES)
    on_day, before = (
        pl.concat([frames.empty(SCRAPES), *(rows.collect() for rows in scans(Store(context.root), SCRAPES, of))])
        for of in (
            [each for each in parts if each[1].day == str(day)],
            [each for each in parts if each[1].day != str(day)],
        )
    )
    return counters.timed_scrapes(on_day, before)


def _samples(context: StepContext) -> Iterator[pl.DataFrame]:
    """Yield the readings of a day in the order of landing, all of some targets at a time."""
    landed = context.landed(COUNTER_SAMPLES)
    if not landed:
        return
    rows = pl.concat(landed)
    counted = rows.group_by("target").len().collect(engine="streaming").sort("target")
    group = pl.col("len").cum_sum() // _READINGS_AT_A_TIME
    for names in counted.with_columns(group=group).partition_by("group", maintain_order=True):
        yield rows.filter(pl.col("target").is_in(names["target"].implode())).collect()


def _by_targets(
    context: StepContext, scrapes: pl.DataFrame, ends: pl.DataFrame
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]]:
    """Yield readings, scrapes and last values of some targets at a time, at last of those without readings."""
    left = scrapes
    for samples in _samples(context):
        own = samples.select(TARGET).unique()
        own_scrapes, own_ends = (
            rows.join(own, on=TARGET, how="semi", maintain_order="left") for rows in (scrapes, ends)
        )
        yield samples, own_scrapes, own_ends
        left = left.join(own, on=TARGET, how="anti", maintain_order="left")
    yield frames.empty(COUNTER_SAMPLES), left, ends.join(left, on=TARGET, how="semi", maintain_order="left")


def _day_before(run: Run, day: Day) -> Iterator[TableFile | Landing]:
    """Read the last scrapes and the last values of the day before."""
    assert day
    before = date.fromordinal(day.toordinal() - 1)
    yield from run.landed((SCRAPES,), before)
    yield from (file for file in run.live(COUNTER_ENDS) if file.day == before)


def _jobs_since(run: Run, day: Day) -> Iterator[TableFile]:
    """Read the names of a day, and the jobs that ended on it or later, or did not end yet."""
    assert day
    yield from (file for file in run.live(COUNTED_JOBS) if file.day == day)
    before = date.fromordinal(day.toordinal() - 1)
    yield from (file for file in run.live(JOBS) if file.day is None or file.day >= before)


# ---- what a day comes to

_NO_TARGETS = pl.DataFrame(
    schema={
        **dict.fromkeys(TARGET, pl.String()),
        **dict.fromkeys(("sample_count", "other_count", "duplicate_count", "conflicting_count"), pl.Int64()),
        **dict.fromkeys(("is_silent", "is_exceeded", "has_read_bytes", "has_written_bytes"), pl.Boolean()),
        **dict.fromkeys(("unknown_count", "read_bytes", "written_bytes"), pl.Int64()),
    }
)


def _summed(rows: pl.DataFrame, targets: pl.DataFrame) -> pl.DataFrame:
    """Return targets with what their jobs moved, and of how many intervals it is not known."""
    moved = rows.filter(pl.col("job_key").is_not_null()).group_by(TARGET).agg(
        pl.col("flag").is_not_null().sum().cast(pl.Int64).alias("unknown_count"),
        pl.col("read_bytes", "written_bytes").sum(),
    )  # fmt: skip
    found = targets.join(moved, on=TARGET, how="left", maintain_order="left")
    return found.with_columns(pl.col(moved.columns[3:]).fill_null(0)).select(_NO_TARGETS.columns)


def _counted_jobs(context: StepContext) -> pl.DataFrame:
    """Return what each job moved on a day, as servers name it, and whose id stands in the name."""
    rises = scan_parquet(context.path(COUNTER_RISES)).filter(pl.col("job_key").is_not_null())
    counted = rises.group_by("counted_on", "filesystem", "job_key").agg(
        pl.col(column.name for column in RISEN).sum(),
        from_at=pl.coalesce("from_at", "until_at").min(),
        until_at=pl.col("until_at").max(),
        unknown_rise_count=pl.col("flag").is_not_null().sum().cast(pl.Int64),
    )
    found = counted.collect(engine="streaming")
    keys = job_keys.read_keys(found["job_key"].unique(), context.settings.counters.job_keys)
    return found.join(keys, on="job_key").select(COUNTED_JOBS.column_names).sort(COUNTED_JOBS.key)


def _covered_s(context: StepContext) -> pl.Expr:
    """Return the covered time of a day: the data begin within the first day of coverage and end within the last."""
    (day,), (first, last) = context.days, context.item.poll_span
    midnight = pl.lit(day).cast(pl.Datetime("us", "UTC"))
    start = pl.max_horizontal("counted_from_at", midnight) if day == first else midnight
    end = pl.col("counted_until_at") if day == last else midnight + pl.duration(days=1)
    return (end - start).dt.total_microseconds() / 1e6


def _day_rows(
    scrapes: pl.DataFrame, targets: pl.DataFrame, gaps: pl.DataFrame, jobs: pl.DataFrame, covered_s: pl.Expr
) -> pl.DataFrame:
    """Return rows of `counter_days`: of the file systems of which two scrapes of one target are known."""
    counted = pl.len().cast(pl.Int64)
    due = pl.max_horizontal((covered_s / pl.col("interval_s")).round().cast(pl.Int64), 1) * pl.col("target_count")
    summed = targets.group_by("filesystem").agg(
        pl.col("sample_count", "read_bytes", "written_bytes").sum(),
        other_sample_count=pl.col("other_count").sum(),
        duplicate_sample_count=pl.col("duplicate_count").sum(),
        conflicting_sample_count=pl.col("conflicting_count").sum(),
        unknown_rise_count=pl.col("unknown_count").sum(),
        silent_target_count=pl.col("is_silent").sum().cast(pl.Int64),
        exceeded_target_count=pl.col("is_exceeded").sum().cast(pl.Int64),
    )
    lost = gaps.filter("is_job_scrape").group_by("filesystem").agg(gap_count=counted)
    found = scrapes.group_by("filesystem").agg(
        target_count=pl.struct(TARGET).n_unique().cast(pl.Int64),
        scrape_count=counted,
        counted_from_at=pl.min_horizontal("previous_at", "scraped_at").min(),
        counted_until_at=pl.col("scraped_at").max(),
    )
    keys = jobs.group_by("filesystem").agg(job_key_count=counted)
    for more in (keys, summed, lost):
        found = found.join(more, on="filesystem", how="left")
    return (
        found.join(_grids(scrapes), on="filesystem")
        .with_columns(pl.col(pl.Int64).fill_null(0))
        .with_columns(expected_scrape_count=due)
        .with_columns(missing_ratio=(1 - pl.col("scrape_count") / pl.col("expected_scrape_count")).clip(0, 1))
        .sort("filesystem")
    )


def _grids(scrapes: pl.DataFrame) -> pl.DataFrame:
    """Return the interval of each file system's scrapes, and where in it they fall, as most do."""
    at_us = pl.col("scraped_at").dt.epoch("us")
    step_us = at_us - pl.col("previous_at").dt.epoch("us")
    steps = _most(scrapes.filter(pl.col("previous_at").is_not_null()).select("filesystem", value=step_us))
    placed = scrapes.join(steps, on="filesystem").select("filesystem", "value", phase=at_us % pl.col("value"))
    phases = _most(placed.select("filesystem", value="phase"))
    return steps.select("filesystem", interval_s=pl.col("value") / 1e6).join(
        phases.select("filesystem", grid_phase_s=pl.col("value") / 1e6), on="filesystem"
    )


def _most(values: pl.DataFrame) -> pl.DataFrame:
    """Return each file system's most frequent value, the least of several."""
    counted = values.group_by("filesystem", "value").agg(count=pl.len())
    return counted.sort("count", "value", descending=[True, False]).unique("filesystem", keep="first").drop("count")


# ---- totals as polls


def _polls(scrapes: pl.DataFrame, targets: pl.DataFrame, context: StepContext) -> pl.DataFrame:
    """Return what targets moved in all between every two scrapes of their totals, as polls.

    What targets of a file system say counts, else what its servers say, else its clients: each is all of it.
    """
    rank = pl.col("component").replace_strict({"ost": 0, "mdt": 0, "server": 1, "client": 2}, return_dtype=pl.Int8)
    known = targets.filter(pl.col("has_read_bytes") | pl.col("has_written_bytes"))
    taken = known.filter(rank == rank.min().over("filesystem"))
    due = scrapes.filter(pl.col("previous_at").is_not_null()).join(taken, on=TARGET, how="inner")
    rises = scan_parquet(context.path(COUNTER_RISES)).filter(pl.col("job_key").is_null()).collect()
    moved = due.join(
        rises.rename({"until_at": "scraped_at"}), on=[*TARGET, "scraped_at"], how="left", maintain_order="left",
        suffix="_risen",
    )  # fmt: skip
    interval_s = (pl.col("scraped_at") - pl.col("previous_at")).dt.total_microseconds() / 1e6

    def rate(risen: str, is_known: str) -> pl.Expr:
        is_there = pl.col("flag").is_null() & pl.col(is_known)
        return pl.when(is_there).then(pl.col(risen).fill_null(0) / interval_s)

    return moved.select(
        polled_at="scraped_at",
        filesystem="filesystem",
        controller="target",
        interval_s=interval_s,
        read_bytes_per_s=rate("read_bytes_risen", "has_read_bytes"),
        write_bytes_per_s=rate("written_bytes_risen", "has_written_bytes"),
        read_iops=rate("read_count", "has_read_bytes"),
        write_iops=rate("write_count", "has_written_bytes"),
        flag=pl.when(pl.col("flag").is_not_null()).then(pl.lit("reset")),
    ).sort("polled_at", "controller", "filesystem")


ENDS = Step(
    "counter ends",
    end_days,
    reads=(landed_on_day(COUNTER_SAMPLES, SCRAPES),),
    writes=(COUNTER_ENDS,),
    days=lambda run: run.plan.counter_days,
    is_daily=True,
)
RISES = Step(
    "counters",
    stage_counters,
    reads=(landed_on_day(COUNTER_SAMPLES, SCRAPES), Input((SCRAPES, COUNTER_ENDS), _day_before)),
    writes=(COUNTER_RISES, COUNTER_GAPS, COUNTER_DAYS, COUNTER_POLLS, COUNTED_JOBS),
    days=lambda run: run.plan.counter_days,
    is_daily=True,
)
UNASSIGNED = Step(
    "unassigned i/o",
    tell_unassigned,
    reads=(Input((COUNTED_JOBS, JOBS), _jobs_since),),
    writes=(UNASSIGNED_IO,),
    days=lambda run: run.plan.told_days,
    is_daily=True,
)

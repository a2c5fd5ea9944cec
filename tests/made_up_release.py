"""A release of a large made-up site, published from files as a night would build them, without the night.

By default: 5,000 applications, 100,000 runs in 90 days on two file systems polled every 10 s, samples of 150 steps,
signatures of 20 minutes. Tests take a smaller one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from iosig.warehouse.contracts import frames, table as contract
from iosig.warehouse.contracts.types import Column
from iosig.warehouse.releases import publishing, releases
from iosig.warehouse.releases.publishing import Draft
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store, write_parquet

_BEGAN = date(2026, 1, 1)
_STEP_S, _STEPS, _SECONDS = 10.0, 150, 1200
_SET_RUNS = 20


@dataclass(frozen=True, slots=True)
class SiteSize:
    """How large a site is."""

    applications: int = 5_000
    runs: int = 100_000
    days: int = 90
    seed: int = 1


# ---- the release


def made_up_release(store: Store, size: SiteSize, *, is_next_night: bool = False) -> Release:
    """Publish a release of so many applications, runs and days; or, upon it, that of the night after the last day.

    In a night each application that ran moves a tenth more than before; all others are as they were.
    """
    name = "next-night" if is_next_night else "made-up"
    folder = store.builds / name
    applications = _applications(size)
    days = range(size.days + is_next_night)
    built: dict[str, dict[date | None, Path]] = {}

    def keep(name: str, rows: pl.DataFrame, day: date | None = None) -> None:
        path = folder / name / f"{day or 'all'}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        made = contract(name)
        write_parquet(_whole(rows, name), made, path)
        built.setdefault(name, {})[day] = path

    keep("applications", applications.drop("place", "filesystem"))
    sets = []
    for number in days:
        runs = _runs(applications, size, number)
        sets.append(_directed(runs).drop("node_count"))
        if is_next_night and number < size.days:
            continue
        day = _BEGAN + timedelta(days=number)
        for table, rows in _of_day(runs, day, np.random.default_rng([size.seed, number])):
            keep(table, rows, day)
    grown = sets[-1]["application_id"].unique() if is_next_night else pl.Series(dtype=pl.String)
    for table, rows in _signatures(applications, size, grown):
        keep(table, rows)
    latest = pl.concat(sets).sort("started_at").group_by("application_id", "direction", maintain_order=True)
    keep("sample_sets", latest.tail(_SET_RUNS).with_columns(pl.col("duration_s") * 1e8, interval_s=_STEP_S))
    last = _BEGAN + timedelta(days=days[-1])
    base = releases.current(store)
    draft = Draft(
        fingerprint=name,
        dates=(None,),
        inputs=(),
        removed_inputs=(),
        parameters="{}",
        code_version="0",
        verdict="passed",
        base_release_id=base.release_id if base else None,
        release_id=f"{last}-{name}",
    )
    return publishing.publish(store, draft, built)


def _whole(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return rows with all columns of a table: NULL, or nothing, where they are not given."""
    made = contract(name)
    schema = frames.schema(made)
    lacking = [column for column in made.columns if column.name not in rows.columns]
    filled = rows.with_columns(pl.lit(_least(column), schema[column.name]).alias(column.name) for column in lacking)
    return filled.select(made.column_names).cast(schema)


def _least(column: Column) -> object:
    """Return NULL, or the least that a column may hold."""
    if column.nullable:
        return None
    nothing = {"text": (*column.choices, "")[0], "int": column.low or 0, "real": column.low or 0.0, "bool": False}
    return nothing.get(column.dtype, [])


def _applications(size: SiteSize) -> pl.DataFrame:
    place = pl.int_range(size.applications, eager=True).alias("place").to_frame()
    return place.with_columns(
        user=pl.format("u{}", pl.col("place") % 400),
        application=pl.format("app{}", "place"),
        node_count=2 ** (pl.col("place") % 8),
        filesystem=pl.format("widow{}", 1 + pl.col("place") % 2),
        sample_count=pl.lit(size.runs // size.applications),
        first_run_started_at=pl.lit(_midnight(_BEGAN)),
        last_run_ended_at=pl.lit(_midnight(_BEGAN + timedelta(days=size.days))),
    ).with_columns(application_id=pl.format("{}/{}/{}", "user", "application", "node_count"))


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _runs(applications: pl.DataFrame, size: SiteSize, number: int) -> pl.DataFrame:
    """Return the runs of a day, each application's in turn."""
    first, last = (size.runs * edge // size.days for edge in (number, number + 1))
    chance = np.random.default_rng([size.seed, number, 7])
    job = np.arange(first, last)
    seconds = chance.integers(0, 84_000, len(job))
    runs = pl.DataFrame({"place": job % size.applications, "job_id": [str(1_000_000 + one) for one in job.tolist()]})
    day = _BEGAN + timedelta(days=number)
    return runs.join(
        applications.drop("sample_count", "first_run_started_at", "last_run_ended_at"),
        on="place",
        maintain_order="left",
    ).select(
        pl.exclude("place"),
        cluster=pl.lit("titan"),
        started_at=pl.lit(_midnight(day)) + pl.duration(seconds=pl.Series(seconds)),
        duration_s=pl.lit(_STEP_S * _STEPS),
        ended_on=pl.lit(day),
    )


def _directed(runs: pl.DataFrame) -> pl.DataFrame:
    names = ("application_id", "filesystem", "cluster", "job_id", "started_at", "ended_on", "duration_s", "node_count")
    each = [runs.select(names).with_columns(direction=pl.lit(name)) for name in ("read", "write")]
    return pl.concat(each).with_columns(source=pl.lit("server"), step_count=pl.lit(_STEPS))


def _of_day(runs: pl.DataFrame, day: date, chance: np.random.Generator) -> Iterator[tuple[str, pl.DataFrame]]:
    ended = pl.col("started_at") + pl.duration(seconds=_STEP_S * _STEPS)
    yield "jobs", runs.with_columns(is_application_run=pl.lit(True), job_kind=pl.lit("allocation"), ended_at=ended,
                                    submitted_at=pl.col("started_at"), state=pl.lit("COMPLETED"))  # fmt: skip
    both = _directed(runs)
    rates = chance.lognormal(18.0, 1.0, (both.height, _STEPS))
    yield (
        "samples",
        both.with_columns(
            grid_started_at=pl.col("started_at"),
            interval_s=pl.lit(_STEP_S),
            sample_bytes_per_s=pl.Series(rates).arr.to_list(),
            reported_ratios=pl.Series(np.ones_like(rates)).arr.to_list(),
        ),
    )
    volume = pl.Series("volume_bytes", rates.sum(axis=1) * _STEP_S)
    told = both.with_columns(volume, outcome=pl.lit("measured"), is_shared_traffic=pl.lit(True))
    yield "job_io", told.rename({"volume_bytes": "filesystem_bytes"}).with_columns(
        outcome=pl.lit("attributed"), estimate_source=pl.lit("attributed"), estimated_bytes=pl.lit(4.8e10),
        estimated_low_bytes=pl.lit(2.4e10), estimated_high_bytes=pl.lit(7.2e10),
    )  # fmt: skip
    judged = told.rename({"job_id": "subject_id"}).with_columns(
        subject_kind=pl.lit("job"),
        basis=pl.lit("counted"),
        outcome=pl.lit("classified"),
        label=pl.lit("UNIFORM"),
        ended_on=pl.lit(day),
    )
    yield "classes", judged
    yield "periods", judged.with_columns(
        outcome=pl.lit("periodic"), method=pl.lit("null_tested"), is_default=pl.lit(True),
        period_s=pl.Series(chance.uniform(20, 600, judged.height)),
    )  # fmt: skip
    written = both.filter(direction="write").with_columns(minute=pl.lit(list(range(1, 25)))).explode("minute")
    yield "attributed_io", written.with_columns(
        minute_at=pl.col("started_at").dt.truncate("1m") + pl.duration(minutes="minute"),
        attributed_bytes=pl.lit(2e9), attributed_low_bytes=pl.lit(1e9), attributed_high_bytes=pl.lit(3e9),
        confidence=pl.lit(0.8),
    )  # fmt: skip
    yield "slowdowns", _slowdowns(both.filter(direction="write"), chance)
    yield from _polls(day, chance)


def _slowdowns(runs: pl.DataFrame, chance: np.random.Generator) -> pl.DataFrame:
    """Return four bursts of each run, of which one in twenty was slowed by the run that began after it."""
    is_slowed = pl.Series(chance.uniform(0, 1, 4 * runs.height) < 0.05)
    other = {f"top_interferer_{name}": pl.col(name).shift(-1) for name in ("job_id", "started_at", "application_id")}
    bursts = runs.drop("duration_s", "source", "step_count", "node_count").with_columns(**other, burst=[0, 1, 2, 3])
    began = pl.col("started_at") + pl.duration(seconds=300 * pl.col("burst"))
    told = bursts.explode("burst").with_columns(
        burst_expected_at=began, burst_started_at=began, burst_ended_at=began + pl.duration(seconds=90),
        start_delay_s=0.0,
        outcome=pl.when(is_slowed).then(pl.lit("slowed")).otherwise(pl.lit("not_slowed")), confidence=0.8,
    )  # fmt: skip
    more = {
        "delay_s": 30.0,
        "delay_low_s": 9.0,
        "delay_high_s": 52.0,
        "interfering_bytes": 3e11,
        "unattributed_bytes": 1e10,
    }
    more["top_interferer_bytes"] = 2.5e11
    return told.with_columns(pl.lit(value).alias(name) for name, value in more.items())


def _polls(day: date, chance: np.random.Generator) -> Iterator[tuple[str, pl.DataFrame]]:
    edges = np.arange(_STEP_S, 86_400 + _STEP_S, _STEP_S)
    names = pl.DataFrame({"filesystem": ["widow1", "widow2"], "polled_on": [day] * 2})
    moved = (chance.lognormal(19.0, 1.0, len(edges)) * _STEP_S).astype(np.int64)
    ticks = pl.DataFrame({"second": edges, "read_bytes": moved, "written_bytes": 2 * moved})
    at = pl.lit(_midnight(day)) + pl.duration(seconds="second")
    yield "filesystem_rates", names.join(ticks, how="cross").with_columns(polled_at=at, interval_s=pl.lit(_STEP_S))
    total = int(moved.sum())
    yield "polls_daily", names.with_columns(
        read_bytes=pl.lit(total), written_bytes=pl.lit(2 * total), poll_count=pl.lit(len(edges)),
        expected_poll_count=pl.lit(len(edges)), missing_ratio=pl.lit(0.0), interval_s=pl.lit(_STEP_S),
    )  # fmt: skip
    yield "attribution_daily", names.with_columns(
        direction=pl.lit("write"), measured_bytes=pl.lit(2.0 * total), attributed_bytes=pl.lit(1.0 * total),
        unattributed_bytes=pl.lit(1.0 * total), excess_own_bytes=pl.lit(0.0), confidence=pl.lit(0.8),
    )  # fmt: skip


def _signatures(applications: pl.DataFrame, size: SiteSize, grown: pl.Series) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the signatures of writes, their points and bursts: four bursts each, of heights of their own.

    grown: the applications that are a tenth higher.
    """
    chance = np.random.default_rng(size.seed)
    key = applications.select("application_id", "filesystem", "first_run_started_at", "last_run_ended_at").with_columns(
        direction=pl.lit("write"), method=pl.lit("elastic"), is_default=pl.lit(True), outcome=pl.lit("extracted")
    )
    heights = chance.lognormal(21.0, 0.6, key.height)
    heights[key["application_id"].is_in(grown.implode()).to_numpy()] *= 1.1
    is_burst = np.arange(_SECONDS) % 300 < 60
    yield "signatures", key.with_columns(
        sample_count=pl.lit(_SET_RUNS), used_sample_count=pl.lit(_SET_RUNS), outlier_job_ids=pl.lit("[]"),
        duration_s=pl.lit(float(_SECONDS)), burst_count=pl.lit(4), method_parameters=pl.lit("{}"),
        volume_bytes=pl.Series(heights * is_burst.sum()), peak_bytes_per_s=pl.Series(heights),
        expected_correlation=pl.Series(chance.uniform(0, 1, key.height)),
    )  # fmt: skip
    noise = chance.uniform(0.8, 1.2, (key.height, _SECONDS)) * is_burst * heights[:, None]
    own = key.select("application_id", "filesystem", "direction", "method")
    yield (
        "signature_points",
        (
            own.with_columns(
                offset_s=pl.lit(np.arange(_SECONDS, dtype=float).tolist()), bytes_per_s=pl.Series(noise).arr.to_list()
            )
            .explode("offset_s", "bytes_per_s")
            .with_columns(low_bytes_per_s=pl.col("bytes_per_s") * 0.8, high_bytes_per_s=pl.col("bytes_per_s") * 1.2)
        ),
    )
    starts = [0.0, 300.0, 600.0, 900.0]
    yield "signature_bursts", own.with_columns(start_s=pl.lit(starts), burst=pl.lit([0, 1, 2, 3])).explode(
        "start_s", "burst"
    ).with_columns(
        peak_s=pl.col("start_s") + 30, end_s=pl.col("start_s") + 60, volume_bytes=pl.lit(1e11),
        support_ratio=pl.lit(1.0),
    )  # fmt: skip

"""Simulate the job statistics of a site: the counts by job on its servers, and the readings of a collector.

A scrape reads all entries of all targets of a server. Single scrapes, or scrapes over a period, may be lost. Counts of
entries that disappear before the next scrape are lost; the ground truth contains them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints, Reals, places_of
from iosig.transforms.synthetic import entries
from iosig.transforms.synthetic.entries import Changes, Lifetimes, Readings, Targets
from iosig.transforms.synthetic.site import Site, jitter_edges
from iosig.transforms.synthetic.workload import DAY_S, DIRECTIONS, stream

#: maximum size of a request: Lustre's bulk transfers of 4 MiB
REQUEST_BYTES = 4 << 20
#: number of users of interactive transfers; the keys of such transfers consist of program and user number
_INTERACTIVE_USER_COUNT = 20
_FIRST_USER_ID = 1000
_COUNTERS = ("read_bytes", "written_bytes", "open_count", "close_count")
_INSTANT = pl.Datetime("us", "UTC")


@dataclass(frozen=True, slots=True)
class JobStatisticsParams:
    """Parameters of the servers, and of the collector that reads their counters.

    Attributes
    ----------
    seed
        Random seed.
    filesystem
        Prefix of target names.
    ost_count, mdt_count, targets_per_server
        Numbers of OSTs and MDTs, and of targets per server.
    stripe_count
        Number of OSTs of a job's files.
    job_key
        Name of a job on the servers; `%j` is its id.
    interval_s
        Interval between scrapes [s].
    cleanup_interval_s
        Idle time after which an entry is dropped (Lustre: 600 s).
    restarts_per_day
        Number of restarts of each server per day.
    lost_ratio
        Fraction of a server's scrapes that are lost.
    outages_per_day, outage_s
        Number of periods without scrapes of a server, and their minimum and maximum duration [s].
    """

    seed: int = 1
    filesystem: str = "widow2"
    ost_count: int = 4
    mdt_count: int = 1
    targets_per_server: int = 2
    stripe_count: int = 2
    job_key: str = "%j"
    interval_s: float = 60.0
    cleanup_interval_s: float = 600.0
    restarts_per_day: float = 0.0
    lost_ratio: float = 0.0
    outages_per_day: float = 0.0
    outage_s: tuple[float, float] = (300.0, 2400.0)

    @property
    def targets(self) -> pl.DataFrame:
        """Server, component and name of each target."""
        kinds = (("ost", "oss", self.ost_count), ("mdt", "mds", self.mdt_count))
        rows = [
            (f"{server}{number // self.targets_per_server + 1:02d}", kind, f"{start}{number:04x}")
            for kind, server, count in kinds
            for start in [f"{self.filesystem}-{kind.upper()}"]
            for number in range(count)
        ]
        return pl.DataFrame(rows, schema=["server", "component", "target"], orient="row")


@dataclass(frozen=True, slots=True)
class JobStatistics:
    """Server-side counts, as read by a collector, and the ground truth.

    Attributes
    ----------
    scrapes
        server, component, target, scraped_at; sorted by server, time and target.
    readings
        Entries at each scrape: the columns of `scrapes`, job_key, sampled_at (last change), counter_started_at, and
        read_bytes, written_bytes, open_count and close_count since then.
    moved
        Ground truth: job_key, job_id (NULL without a job), target, polled_at (right edge of the site's poll), the four
        counts, and is_lost (no scrape observed them).
    """

    params: JobStatisticsParams
    scrapes: pl.DataFrame
    readings: pl.DataFrame
    moved: pl.DataFrame


def count_jobs(site: Site, params: JobStatisticsParams | None = None) -> JobStatistics:
    """Simulate the job statistics of a site's servers.

    Parameters
    ----------
    site
        Simulated site.
    params
        Servers and collector.

    Returns
    -------
    JobStatistics
        Deterministic for a seed.
    """
    params = params or JobStatisticsParams()
    targets = _draw_targets(site, params)
    counts_by_tick = _count_by_tick(site, params)
    entry = (
        counts_by_tick.select(pl.struct("target_number", "job_key").rle_id()).to_series().to_numpy().astype(np.int64)
    )
    changes = Changes(entry, counts_by_tick["target_number"].to_numpy(), counts_by_tick["at_us"].to_numpy())
    lifetimes = entries.find_lifetimes(changes, targets, round(params.cleanup_interval_s * 1e6))
    read = entries.read_entries(changes, lifetimes, targets)
    is_lost = pl.Series("is_lost", ~entries.mark_observed(changes, lifetimes, targets))
    return JobStatistics(
        params=params,
        scrapes=_list_scrapes(targets, params.targets, site),
        readings=_entry_counts(counts_by_tick, changes, lifetimes, read, params.targets, site),
        moved=_true_counts(params.targets, counts_by_tick.hstack([is_lost]), site),
    )


def _entry_counts(
    counts_by_tick: pl.DataFrame,
    changes: Changes,
    lifetimes: Lifetimes,
    read: Readings,
    names: pl.DataFrame,
    site: Site,
) -> pl.DataFrame:
    """List the counts of each entry since its start, at each scrape."""
    since_site = counts_by_tick.select(pl.col(_COUNTERS).cum_sum().over(pl.Series(changes.entry)))
    before = since_site[lifetimes.first] - counts_by_tick.select(_COUNTERS)[lifetimes.first]
    values = since_site[read.change] - before[read.lifetime]
    columns = [
        _to_timestamps("scraped_at", read.scraped_us, site),
        counts_by_tick["job_key"].gather(read.change),
        _to_timestamps("sampled_at", changes.at_us[read.change], site),
        _to_timestamps("counter_started_at", changes.at_us[lifetimes.first][read.lifetime], site),
        *values,
    ]
    rows = names[lifetimes.target[read.lifetime]].hstack(columns)
    return rows.sort("server", "scraped_at", "target", "counter_started_at", "job_key")


def _to_timestamps(name: str, us: Ints, site: Site) -> pl.Series:
    start = np.datetime64(site.params.start.replace(tzinfo=None), "us")
    return pl.Series(name, start + us.astype("timedelta64[us]")).dt.replace_time_zone("UTC")


def _list_scrapes(targets: Targets, names: pl.DataFrame, site: Site) -> pl.DataFrame:
    parts = [
        names[number].join(_to_timestamps("scraped_at", scraped_us, site).to_frame(), how="cross")
        for number, scraped_us in enumerate(targets.scraped_us)
    ]
    return pl.concat(parts).sort("server", "scraped_at", "target")


def _true_counts(names: pl.DataFrame, counts_by_tick: pl.DataFrame, site: Site) -> pl.DataFrame:
    step_us = round(site.params.interval_s * 1e6)
    return counts_by_tick.select(
        "job_key", "job_id",
        names["target"].gather(counts_by_tick["target_number"]),
        _to_timestamps("polled_at", counts_by_tick["tick"].to_numpy() * step_us, site),
        *_COUNTERS, "is_lost",
    )  # fmt: skip


# ---- servers and collector


def _draw_targets(site: Site, params: JobStatisticsParams) -> Targets:
    """Draw scrapes, restarts and cleanups of each server from separate random streams."""
    servers = params.targets["server"]
    looks_us = stream(params.seed, "cleanup").integers(0, round(params.cleanup_interval_s * 5e5), len(servers))
    return Targets(
        [_scrape_times_us(server, site, params) for server in servers],
        [_restart_times_us(server, site, params) for server in servers],
        looks_us,
    )


def _restart_times_us(server: str, site: Site, params: JobStatisticsParams) -> Ints:
    rng, span = stream(params.seed, "restarts", server), site.params.span_s
    return np.sort((rng.uniform(0.0, span, rng.poisson(params.restarts_per_day * span / DAY_S)) * 1e6).astype(np.int64))


def _scrape_times_us(server: str, site: Site, params: JobStatisticsParams) -> Ints:
    rng, span = stream(params.seed, "scrapes", server), site.params.span_s
    at_s = np.arange(int(span / params.interval_s) + 1) * params.interval_s
    is_kept = rng.random(len(at_s)) >= params.lost_ratio
    for _ in range(rng.poisson(params.outages_per_day * span / DAY_S)):
        start_s = rng.uniform(0.0, span)
        is_kept &= (at_s < start_s) | (at_s > start_s + rng.uniform(*params.outage_s))
    return (at_s[is_kept] * 1e6).round().astype(np.int64)


# ---- counts


def _count_by_tick(site: Site, params: JobStatisticsParams) -> pl.DataFrame:
    """List the counts of each target, job and tick of the site.

    Columns: target_number, job_key, job_id, tick, at_us (time of the last change), and the counts; sorted by target,
    job and time.
    """
    parts = pl.concat([_count_bytes(site, params), _count_metadata(site, params)], how="diagonal")
    summed = parts.group_by("target_number", "job_key", "job_id", "tick").agg(pl.col(_COUNTERS).sum())
    ordered = summed.sort("target_number", "job_key", "tick")
    step_us = round(site.params.interval_s * 1e6)
    early_us = stream(params.seed, "changes").integers(0, step_us, ordered.height)
    at_us = np.maximum(ordered["tick"].to_numpy() * step_us - early_us, 0)
    return ordered.with_columns(at_us=pl.Series(at_us))


def _job_key(params: JobStatisticsParams) -> pl.Expr:
    """Key of each transfer on the servers: id of a job, program and number of an interactive user, or empty."""
    interactive = pl.format("{}.{}", "name", _FIRST_USER_ID + pl.col("chain") % _INTERACTIVE_USER_COUNT)
    default_key = pl.when(pl.col("source") == "transfer").then(interactive).otherwise(pl.lit(""))
    before, _, after = params.job_key.partition("%j")
    job = pl.concat_str(pl.lit(before), "job_id", pl.lit(after))
    return pl.when(pl.col("job_id").is_null()).then(default_key).otherwise(job)


def _count_bytes(site: Site, params: JobStatisticsParams) -> pl.DataFrame:
    """Integer bytes that each OST served for each job in each tick."""
    owner = pl.struct("chain", "job_id", "direction").rank("dense").cast(pl.Int64) - 1
    served = site.served.with_columns(_job_key(params).alias("job_key"), owner=owner)
    served = served.sort("owner", "until_s", maintain_order=True)
    owners = served.unique("owner", keep="first", maintain_order=True)
    first, counts, moved_bytes = _accumulate(served, jitter_edges(site.params))
    row_owner, ticks = np.repeat(np.arange(owners.height), counts), places_of(first, counts)
    # reads and writes of a job use the same stripes
    number = owners["job_key"].rank("dense").to_numpy().astype(np.int64) - 1
    place, shares = _draw_stripes(int(number.max(initial=-1)) + 1, params)
    is_first = np.append(True, row_owner[1:] != row_owner[:-1])[: len(row_owner)]
    parts = []
    for stripe in range(place.shape[1]):
        total = np.floor(moved_bytes * shares[number, stripe][row_owner])
        tick_bytes = np.where(is_first, total, np.diff(total, prepend=0.0)).astype(np.int64)
        target = place[number, stripe][row_owner]
        columns = {"target_number": target, "tick": ticks, "tick_bytes": tick_bytes, "owner": row_owner}
        parts.append(pl.DataFrame(columns).filter(pl.col("tick_bytes") > 0))
    keys = owners.select("owner", "job_key", "job_id", "direction")
    rows = pl.concat(parts).join(keys, on="owner", how="left")
    byte_columns = [
        pl.when(pl.col("direction") == direction).then("tick_bytes").otherwise(0).alias(name)
        for direction, name in zip(DIRECTIONS, _COUNTERS[:2], strict=True)
    ]
    return rows.select("target_number", "job_key", "job_id", "tick", *byte_columns)


def _accumulate(served: pl.DataFrame, edges_s: Reals) -> tuple[Ints, Ints, Reals]:
    """Return first tick and number of ticks of each owner (n), and the cumulative bytes at the end of each tick.

    served: intervals of constant rate, sorted by `owner` and time. edges_s: edges of ticks on the servers' clock.
    """
    owner = served["owner"].to_numpy()
    begins = np.flatnonzero(np.diff(owner, prepend=-1))
    ends = np.append(begins[1:], len(owner))[: len(begins)] - 1
    from_s, until_s = served["from_s"].to_numpy(), served["until_s"].to_numpy()
    first = np.maximum(np.searchsorted(edges_s, from_s[begins], side="right") - 1, 0)
    last = np.searchsorted(edges_s, until_s[ends]) - 1
    counts = np.maximum(last - first + 1, 0)
    after = served.select(pl.col("moved_bytes").cum_sum().over("owner")).to_series().to_numpy()
    # all curves are concatenated with separate time ranges, and interpolated in one call
    span = float(edges_s[-1] - edges_s[0]) + 1.0
    at = np.stack([from_s, until_s], axis=1).ravel() + np.repeat(owner, 2) * span
    total = np.stack([after - served["moved_bytes"].to_numpy(), after], axis=1).ravel()
    row_owner = np.repeat(np.arange(len(begins)), counts)
    right = np.clip(edges_s[places_of(first, counts) + 1], from_s[begins][row_owner], until_s[ends][row_owner])
    return first, counts, np.interp(right + row_owner * span, at, total) if len(at) else np.empty(0)


def _draw_stripes(count: int, params: JobStatisticsParams) -> tuple[Ints, Reals]:
    """Draw the OSTs of each job's files, and the fraction of bytes on each OST: two arrays (jobs, stripes)."""
    rng = stream(params.seed, "stripes")
    stripes = min(params.stripe_count, params.ost_count)
    place = rng.permuted(np.tile(np.arange(params.ost_count), (count, 1)), axis=1)[:, :stripes]
    shares = rng.standard_gamma(50.0, (count, stripes))
    return place, shares / shares.sum(axis=1, keepdims=True)


def _count_metadata(site: Site, params: JobStatisticsParams) -> pl.DataFrame:
    """List the opens and closes of each job in each tick: one file per task and burst."""
    bursts = site.bursts.filter(pl.col("job_id").is_not_null()).join(
        site.jobs.select("job_id", "task_count"), on="job_id", how="inner", maintain_order="left"
    )
    number = pl.col("job_id").rank("dense").cast(pl.Int64) - 1
    mdt = stream(params.seed, "directories").integers(0, max(params.mdt_count, 1), max(site.jobs.height, 1))
    with_mdt = bursts.with_columns(pl.Series("mdt", mdt).gather(bursts.select(number).to_series()), chain=pl.lit(0))
    seconds = (pl.col("at") - pl.lit(site.params.start, _INSTANT)).dt.total_microseconds() / 1e6
    parts = [
        with_mdt.select("job_id", "mdt", "task_count", "source", "name", "chain", at=edge, counter=pl.lit(counter))
        for edge, counter in (("started_at", "open_count"), ("ended_at", "close_count"))
    ]
    last = round(site.params.span_s / site.params.interval_s)
    return (
        pl.concat(parts)
        .filter(pl.col("at").is_not_null(), pl.lit(params.mdt_count > 0))
        .select(
            pl.col("mdt").alias("target_number") + params.ost_count,
            _job_key(params).alias("job_key"),
            "job_id",
            (seconds / site.params.interval_s).ceil().cast(pl.Int64).clip(0, last).alias("tick"),
            *(
                pl.when(pl.col("counter") == counter).then("task_count").otherwise(0).alias(counter)
                for counter in ("open_count", "close_count")
            ),
        )
    )

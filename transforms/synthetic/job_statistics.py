"""Job statistics of a synthetic site: what its servers count by job, and what a collector reads of that.

A scrape reads all entries of all targets of a server; some scrapes are lost, one by one or for a while. What was
counted and never read, because its entry was gone before the next scrape, is lost, and known here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints, Reals, places_of
from iosig.transforms.synthetic import entries
from iosig.transforms.synthetic.entries import Changes, Lives, Readings, Targets
from iosig.transforms.synthetic.site import Site, uneven_edges
from iosig.transforms.synthetic.workload import DAY_S, DIRECTIONS, stream

#: what a request moves at most: Lustre's bulk transfers of 4 MiB
REQUEST_BYTES = 4 << 20
#: users who move files by hand: servers know them by program and number
_HAND_COUNT = 20
_FIRST_USER = 1000
_COUNTED = ("read_bytes", "written_bytes", "open_count", "close_count")
_INSTANT = pl.Datetime("us", "UTC")


@dataclass(frozen=True, slots=True)
class JobStatisticsParams:
    """What counts, and how it is read.

    filesystem: what the targets' names begin with. ost_count, mdt_count, targets_per_server: the targets.
    stripe_count: on how many of them a job's files lie.
    job_key: what servers call a job, `%j` its id. interval_s: from scrape to scrape. cleanup_interval_s: an entry that
    is not used for longer is dropped (Lustre: 600 s). restarts_per_day: of each server. lost_ratio: scrapes of a server
    that are lost; outages_per_day, outage_s: times without any scrape of a server, the shortest and the longest.
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
        """The targets: server, component, target."""
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
    """What servers counted, what was read of it, and what is true.

    scrapes: server, component, target, scraped_at, in order of server, time and target. readings: every entry that
    there was at a scrape: the same columns and job_key, sampled_at (when it counted last), counter_started_at,
    read_bytes, written_bytes, open_count, close_count, all since then. moved: job_key, job_id (NULL: none), target,
    polled_at (the right edge of the site's poll), the same four counts, and whether they are lost: no scrape saw them.
    """

    params: JobStatisticsParams
    scrapes: pl.DataFrame
    readings: pl.DataFrame
    moved: pl.DataFrame


def count_jobs(site: Site, params: JobStatisticsParams | None = None) -> JobStatistics:
    """Let the servers of a site count by job, and a collector read them: the same seed gives the same frames."""
    params = params or JobStatisticsParams()
    targets = _targets(site, params)
    counted = _counted(site, params)
    whose = counted.select(pl.struct("target_number", "job_key").rle_id()).to_series().to_numpy().astype(np.int64)
    changes = Changes(whose, counted["target_number"].to_numpy(), counted["at_us"].to_numpy())
    found = entries.lives(changes, targets, round(params.cleanup_interval_s * 1e6))
    read = entries.readings(changes, found, targets)
    is_lost = pl.Series("is_lost", ~entries.are_seen(changes, found, targets))
    return JobStatistics(
        params=params,
        scrapes=_scrapes(targets, params.targets, site),
        readings=_readings(counted, changes, found, read, params.targets, site),
        moved=_moved(params.targets, counted.hstack([is_lost]), site),
    )


def _readings(
    counted: pl.DataFrame, changes: Changes, lives: Lives, read: Readings, names: pl.DataFrame, site: Site
) -> pl.DataFrame:  # fmt: skip
    """Return what scrapes read, with all that each entry counted since it began."""
    since_site = counted.select(pl.col(_COUNTED).cum_sum().over(pl.Series(changes.entry)))
    before = since_site[lives.first] - counted.select(_COUNTED)[lives.first]
    values = since_site[read.change] - before[read.life]
    told = [
        _instants("scraped_at", read.scraped_us, site),
        counted["job_key"].gather(read.change),
        _instants("sampled_at", changes.at_us[read.change], site),
        _instants("counter_started_at", changes.at_us[lives.first][read.life], site),
        *values,
    ]
    rows = names[lives.target[read.life]].hstack(told)
    return rows.sort("server", "scraped_at", "target", "counter_started_at", "job_key")


def _instants(name: str, us: Ints, site: Site) -> pl.Series:
    began = np.datetime64(site.params.start.replace(tzinfo=None), "us")
    return pl.Series(name, began + us.astype("timedelta64[us]")).dt.replace_time_zone("UTC")


def _scrapes(targets: Targets, names: pl.DataFrame, site: Site) -> pl.DataFrame:
    parts = [
        names[number].join(_instants("scraped_at", own, site).to_frame(), how="cross")
        for number, own in enumerate(targets.scraped_us)
    ]
    return pl.concat(parts).sort("server", "scraped_at", "target")


def _moved(names: pl.DataFrame, counted: pl.DataFrame, site: Site) -> pl.DataFrame:
    step_us = round(site.params.interval_s * 1e6)
    return counted.select(
        "job_key", "job_id",
        names["target"].gather(counted["target_number"]),
        _instants("polled_at", counted["tick"].to_numpy() * step_us, site),
        *_COUNTED, "is_lost",
    )  # fmt: skip


# ---- what servers do, and who reads them


def _targets(site: Site, params: JobStatisticsParams) -> Targets:
    """Draw when each server restarts, and when it is read; each server draws from a stream of its own."""
    servers = params.targets["server"]
    looks = stream(params.seed, "cleanup").integers(0, round(params.cleanup_interval_s * 5e5), len(servers))
    return Targets(
        [_scraped_us(server, site, params) for server in servers],
        [_restarted_us(server, site, params) for server in servers],
        looks,
    )


def _restarted_us(server: str, site: Site, params: JobStatisticsParams) -> Ints:
    rng, span = stream(params.seed, "restarts", server), site.params.span_s
    return np.sort((rng.uniform(0.0, span, rng.poisson(params.restarts_per_day * span / DAY_S)) * 1e6).astype(np.int64))


def _scraped_us(server: str, site: Site, params: JobStatisticsParams) -> Ints:
    rng, span = stream(params.seed, "scrapes", server), site.params.span_s
    at_s = np.arange(int(span / params.interval_s) + 1) * params.interval_s
    keeps = rng.random(len(at_s)) >= params.lost_ratio
    for _ in range(rng.poisson(params.outages_per_day * span / DAY_S)):
        began = rng.uniform(0.0, span)
        keeps &= (at_s < began) | (at_s > began + rng.uniform(*params.outage_s))
    return (at_s[keeps] * 1e6).round().astype(np.int64)


# ---- what is counted


def _counted(site: Site, params: JobStatisticsParams) -> pl.DataFrame:
    """Return what each target counted for each job in each tick of the site.

    Columns: target_number, job_key, job_id, tick, at_us (when it counted last), and what it counted; in order of
    target, job and time.
    """
    both = pl.concat([_data(site, params), _metadata(site, params)], how="diagonal")
    summed = both.group_by("target_number", "job_key", "job_id", "tick").agg(pl.col(_COUNTED).sum())
    ordered = summed.sort("target_number", "job_key", "tick")
    step_us = round(site.params.interval_s * 1e6)
    early = stream(params.seed, "changes").integers(0, step_us, ordered.height)
    at_us = np.maximum(ordered["tick"].to_numpy() * step_us - early, 0)
    return ordered.with_columns(at_us=pl.Series(at_us))


def _job_key(params: JobStatisticsParams) -> pl.Expr:
    """Return what servers call who moves something: a job by its id, a user's program, and what nobody named."""
    hand = pl.format("{}.{}", "name", _FIRST_USER + pl.col("chain") % _HAND_COUNT)
    told = pl.when(pl.col("source") == "transfer").then(hand).otherwise(pl.lit(""))
    before, _, after = params.job_key.partition("%j")
    job = pl.concat_str(pl.lit(before), "job_id", pl.lit(after))
    return pl.when(pl.col("job_id").is_null()).then(told).otherwise(job)


def _data(site: Site, params: JobStatisticsParams) -> pl.DataFrame:
    """Return the whole bytes that each OST served for each job in each tick."""
    owner = pl.struct("chain", "job_id", "direction").rank("dense").cast(pl.Int64) - 1
    served = site.served.with_columns(_job_key(params).alias("job_key"), owner=owner)
    served = served.sort("owner", "until_s", maintain_order=True)
    who = served.unique("owner", keep="first", maintain_order=True)
    first, counts, moved = _curves(served, uneven_edges(site.params))
    whose, ticks = np.repeat(np.arange(who.height), counts), places_of(first, counts)
    # a job reads what it wrote from where it lies
    number = who["job_key"].rank("dense").to_numpy().astype(np.int64) - 1
    place, shares = _stripes(int(number.max(initial=-1)) + 1, params)
    is_first = np.append(True, whose[1:] != whose[:-1])[: len(whose)]
    parts = []
    for stripe in range(place.shape[1]):
        total = np.floor(moved * shares[number, stripe][whose])
        own = np.where(is_first, total, np.diff(total, prepend=0.0)).astype(np.int64)
        target = place[number, stripe][whose]
        counted = {"target_number": target, "tick": ticks, "own_bytes": own, "owner": whose}
        parts.append(pl.DataFrame(counted).filter(pl.col("own_bytes") > 0))
    found = pl.concat(parts).join(who.select("owner", "job_key", "job_id", "direction"), on="owner", how="left")
    ways = [
        pl.when(pl.col("direction") == direction).then("own_bytes").otherwise(0).alias(name)
        for direction, name in zip(DIRECTIONS, _COUNTED[:2], strict=True)
    ]
    return found.select("target_number", "job_key", "job_id", "tick", *ways)


def _curves(served: pl.DataFrame, edges_s: Reals) -> tuple[Ints, Ints, Reals]:
    """Return the first tick and the number of ticks of each owner (n), and what it had been served by each one's end.

    served: pieces at one rate each, in order of `owner` and time. edges_s: of the ticks, on the servers' clock.
    """
    owner = served["owner"].to_numpy()
    begins = np.flatnonzero(np.diff(owner, prepend=-1))
    ends = np.append(begins[1:], len(owner))[: len(begins)] - 1
    from_s, until_s = served["from_s"].to_numpy(), served["until_s"].to_numpy()
    first = np.maximum(np.searchsorted(edges_s, from_s[begins], side="right") - 1, 0)
    last = np.searchsorted(edges_s, until_s[ends]) - 1
    counts = np.maximum(last - first + 1, 0)
    after = served.select(pl.col("moved_bytes").cum_sum().over("owner")).to_series().to_numpy()
    # all curves one after the other in one: each has a span of its own
    span = float(edges_s[-1] - edges_s[0]) + 1.0
    at = np.stack([from_s, until_s], axis=1).ravel() + np.repeat(owner, 2) * span
    total = np.stack([after - served["moved_bytes"].to_numpy(), after], axis=1).ravel()
    whose = np.repeat(np.arange(len(begins)), counts)
    right = np.clip(edges_s[places_of(first, counts) + 1], from_s[begins][whose], until_s[ends][whose])
    return first, counts, np.interp(right + whose * span, at, total) if len(at) else np.empty(0)


def _stripes(count: int, params: JobStatisticsParams) -> tuple[Ints, Reals]:
    """Draw on which OSTs the files of so many jobs lie, and how much of them: two arrays (jobs, stripes)."""
    rng = stream(params.seed, "stripes")
    stripes = min(params.stripe_count, params.ost_count)
    place = rng.permuted(np.tile(np.arange(params.ost_count), (count, 1)), axis=1)[:, :stripes]
    shares = rng.standard_gamma(50.0, (count, stripes))
    return place, shares / shares.sum(axis=1, keepdims=True)


def _metadata(site: Site, params: JobStatisticsParams) -> pl.DataFrame:
    """Return the files that each job opened and closed in each tick: each task has one for each burst."""
    bursts = site.bursts.filter(pl.col("job_id").is_not_null()).join(
        site.jobs.select("job_id", "task_count"), on="job_id", how="inner", maintain_order="left"
    )
    number = pl.col("job_id").rank("dense").cast(pl.Int64) - 1
    mdt = stream(params.seed, "directories").integers(0, max(params.mdt_count, 1), max(site.jobs.height, 1))
    named = bursts.with_columns(pl.Series("mdt", mdt).gather(bursts.select(number).to_series()), chain=pl.lit(0))
    seconds = (pl.col("at") - pl.lit(site.params.start, _INSTANT)).dt.total_microseconds() / 1e6
    parts = [
        named.select("job_id", "mdt", "task_count", "source", "name", "chain", at=edge, what=pl.lit(what))
        for edge, what in (("started_at", "open_count"), ("ended_at", "close_count"))
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
                pl.when(pl.col("what") == what).then("task_count").otherwise(0).alias(what)
                for what in ("open_count", "close_count")
            ),
        )
    )

"""A supercomputer's storage that never was: job log, controller polls, and the truth behind them.

Modelled on Spider at OLCF as IOSI describes it (Liu et al., FAST'14): 2-s polls of RAID controllers
(section 2.2), bursty jobs that run many times (2.1), persistent background of about 0.1 GB/s (5.1),
interactive transfers and foreign jobs of a period of their own (4, 6.1), contention that stretches and
shifts bursts (4), restarts that run shorter (5.1, note 1). The applications are the paper's IOR_A, IOR_B
and IOR_C (section 6) and others of known shape.

All is drawn from one seed, each part from a stream of its own: a further application changes nobody
else's plans. What others do to each other's speed is `iosig.transforms.synthetic.contention`. A poll daemon sees the
traffic split over controllers, in whole bytes, and with faults. Rows come in the order in which they arrive, which is
not always that of their time stamps.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of
from iosig.transforms.synthetic.contention import Chains, Pipe, Shared, share
from iosig.transforms.synthetic.workload import (
    APPLICATIONS,
    DAY_S,
    DIRECTIONS,
    END,
    GB,
    PROFILE,
    START,
    Application,
    Direction,
    Piece,
    Plan,
    Workload,
    plans,
    stream,
)


@dataclass(frozen=True, slots=True)
class Faults:
    """How a site's polls go wrong; ratios of all polls, lengths in seconds. All are ours, by order of size.

    lost_ratio: single polls that never arrive. late_ratio: polls that arrive up to late_s after their
    time. repeated_ratio: polls that arrive twice. block_s: once a day the polls of one controller are
    held back that long and arrive together. controller_outage_s: every even day one controller is silent,
    from the lower to the upper length. outage_s: every odd day nothing is polled at all.
    """

    lost_ratio: float = 3e-4
    late_ratio: float = 5e-4
    late_s: float = 600.0
    repeated_ratio: float = 1e-4
    block_s: float = 300.0
    controller_outage_s: tuple[float, float] = (1200.0, 7200.0)
    outage_s: tuple[float, float] = (60.0, 300.0)

    def scaled(self, level: float) -> Faults:
        """Return faults that are so many times as frequent, or as long; no outage takes more than a quarter day."""

        def length(seconds: float) -> float:
            return min(DAY_S / 4, seconds * level)

        return replace(
            self,
            lost_ratio=min(1.0, self.lost_ratio * level),
            late_ratio=min(1.0, self.late_ratio * level),
            repeated_ratio=min(1.0, self.repeated_ratio * level),
            block_s=length(self.block_s),
            controller_outage_s=(length(self.controller_outage_s[0]), length(self.controller_outage_s[1])),
            outage_s=(length(self.outage_s[0]), length(self.outage_s[1])),
        )


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Polls in the order in which they arrived: which tick and which controller each is of."""

    tick: Ints
    controller: Ints


def split_polls(volume_bytes: Reals, controller_count: int, interval_s: float, rng: np.random.Generator) -> Reals:
    """Split each tick's bytes over controllers in whole bytes (ticks, controllers).

    No controller has quite its even share, nor the same from minute to minute (the stripes of what is
    active) or tick to tick. Counters count whole bytes: over any span the sum is true to a byte per
    controller.
    """
    ticks = len(volume_bytes)
    minutes = max(1, round(60.0 / interval_s))
    standing = rng.lognormal(0.0, 0.1, controller_count)
    stripes = rng.standard_gamma(6.0, (ticks // minutes + 1, controller_count)) * standing
    shares = rng.standard_gamma(20.0, (ticks, controller_count))
    shares *= np.repeat(stripes, minutes, axis=0)[:ticks]
    shares *= (volume_bytes / shares.sum(axis=1))[:, None]
    counters = np.floor(np.cumsum(shares, axis=0, out=shares), out=shares)
    counters[1:] -= counters[:-1].copy()
    return counters


def perfect(tick_count: int, controller_count: int) -> Arrivals:
    """Return polls as they ought to come: every controller at every tick, in order."""
    places = np.arange(tick_count * controller_count)
    return Arrivals(places // controller_count, places % controller_count)


def arrivals(
    tick_count: int, controller_count: int, interval_s: float, faults: Faults, rng: np.random.Generator
) -> Arrivals:
    """Return polls as they do come: some lost, some late, some twice."""
    keeps = np.ones((tick_count, controller_count), dtype=np.bool_)
    delay = np.zeros((tick_count, controller_count))
    for day in range(int(np.ceil(tick_count * interval_s / DAY_S))):
        _spoil_day(keeps, delay, day, interval_s, faults, rng)
    keeps &= rng.random(keeps.shape) >= faults.lost_ratio
    is_late = rng.random(keeps.shape) < faults.late_ratio
    delay[is_late] += rng.uniform(interval_s, faults.late_s, int(is_late.sum()))
    place = np.flatnonzero(keeps)
    again = place[rng.random(place.size) < faults.repeated_ratio]
    arrived = (place // controller_count) * interval_s + delay.ravel()[place]
    arrived_again = (again // controller_count) * interval_s + rng.uniform(0.0, faults.late_s, again.size)
    order = np.argsort(np.concatenate([arrived, arrived_again]), kind="stable")
    place = np.concatenate([place, again])[order]
    return Arrivals(place // controller_count, place % controller_count)


def _spoil_day(
    keeps: Bools, delay: Reals, day: int, interval_s: float, faults: Faults, rng: np.random.Generator
) -> None:
    """Mark a day's outage, and the block of polls that comes late."""
    low, high = faults.outage_s if day % 2 else faults.controller_outage_s
    outage_s, outage_at, block_at = rng.uniform(low, high), rng.random(), rng.random()
    silent, held = rng.integers(keeps.shape[1], size=2)
    per_day = DAY_S / interval_s

    def span(at: float, lasting_s: float) -> slice:
        first = int((day + at * (1.0 - lasting_s / DAY_S)) * per_day)
        return slice(first, first + int(lasting_s / interval_s))

    keeps[span(outage_at, outage_s), slice(None) if day % 2 else silent] = False
    block = span(block_at, faults.block_s)
    waits = (block.stop - np.arange(len(delay))[block]) * interval_s
    delay[block, held] = waits


_TASKS_PER_NODE = 16
_EXIT_CODES = {"COMPLETED": "0:0", "FAILED": "1:0", "TIMEOUT": "0:0", "NODE_FAIL": "1:0", "CANCELLED": "0:15"}
_INSTANT = pl.Datetime("us", "UTC")


@dataclass(frozen=True, slots=True)
class SiteParams:
    """How large, how busy and how faulty the site is.

    seed, start (UTC midnight is usual), days: what is drawn, and for when. controller_count, interval_s:
    what is polled (IOSI, section 2.2: every 2 s). foreign_level, fault_level: other users' activity and
    the polls' faults as multiples of the usual; 0 is none of it. background_bytes_per_s: mean of the
    persistent background (IOSI, 5.1: 0.11 GB/s). controller_bytes_per_s: what a controller delivers to
    mixed streams (half of 240 GB/s / 96, IOSI, 2.2). seek_loss_ratio: see `contention.Pipe`.
    drift_ratio, stop_ratio: see `workload.Workload`. texture_s: how unevenly time passes on the servers,
    which makes the height of bursts uneven and keeps their volume. These four are ours, so that most
    runs differ by less than a tenth in duration (IOSI, 5.1). cluster, partition, top_interferer_job_id: what the job
    log calls the machine, where its jobs run, and the first of them.
    """

    seed: int = 1
    start: datetime = datetime(2026, 3, 2, tzinfo=UTC)
    days: float = 3
    controller_count: int = 8
    interval_s: float = 2.0
    foreign_level: float = 1.0
    fault_level: float = 1.0
    background_bytes_per_s: float = 0.1 * GB
    controller_bytes_per_s: float = 1.25 * GB
    seek_loss_ratio: float = 0.25
    drift_ratio: float = 0.015
    stop_ratio: float = 0.12
    texture_s: float = 0.5
    cluster: str = "titan"
    partition: str = "batch"
    top_interferer_job_id: int = 4_000_000
    faults: Faults = field(default_factory=Faults)

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated."""
        if self.start.utcoffset() != timedelta(0):
            raise ValueError("start must be an instant in UTC")
        if self.seed < 0 or self.controller_count < 1 or self.tick_count < 2:
            raise ValueError("a site needs a seed of 0 or more, a controller and two polls")

    @property
    def tick_count(self) -> int:
        """How many polls of each controller are due."""
        return round(self.days * DAY_S / self.interval_s)

    @property
    def workload(self) -> Workload:
        """What goes on at the site; a storm takes half of the bandwidth."""
        storm = 0.5 * self.controller_count * self.controller_bytes_per_s
        return Workload(self.seed, self.span_s, self.foreign_level, self.drift_ratio, self.stop_ratio, storm)

    @property
    def span_s(self) -> float:
        """From the start to the last poll: the first poll's right edge is the start itself."""
        return (self.tick_count - 1) * self.interval_s

    @property
    def edges_s(self) -> Reals:
        """The polls' edges in seconds since the start (ticks + 1)."""
        return np.arange(-1, self.tick_count, dtype=np.float64) * self.interval_s


@dataclass(frozen=True, slots=True)
class Site:
    """A simulated site: what it logged, and what is true.

    jobs: one row per job, as a job log has it (running ones without an end). polls: in order of arrival.
    truth: application, direction, offset_s (the left edge of a second), bytes_per_s: each application
    alone. served: source, name, chain, job_id, direction, from_s, until_s, moved_bytes: what storage moved for whom,
    at one rate each, in order of time for each chain. runs: job_id, application, kind (complete, stopped,
    restart, running), bursts it did (first_burst, burst_count). bursts: every transfer with its owner, times,
    volume and what of it was moved by the last poll. traffic: bytes per tick before any poll was lost.
    """

    params: SiteParams
    applications: tuple[Application, ...]
    jobs: pl.DataFrame
    polls: pl.DataFrame
    truth: pl.DataFrame
    runs: pl.DataFrame
    bursts: pl.DataFrame
    traffic: pl.DataFrame
    served: pl.DataFrame


# ---- from plans to what happened


def _gaps(chain: Plan) -> Iterator[tuple[int, float, Piece]]:
    """Yield (part, wait, piece): a job that follows another one of its chain waits in the queue first."""
    for part, (job, pieces) in enumerate(chain.parts):
        for index, piece in enumerate(pieces):
            yield part, piece.wait_s + (job.queue_s + 30.0 if part and not index else 0.0), piece


def _contend(planned: Sequence[Plan], params: SiteParams) -> tuple[pl.DataFrame, Shared]:
    """Run all plans on the shared storage; return every step with its times, and the totals."""
    rows = [
        (number, part, wait, piece.burst, piece.volume_bytes, piece.peak_bytes_per_s, piece.weight, piece.direction)
        for number, chain in enumerate(planned)
        for part, wait, piece in _gaps(chain)
    ]
    names = ("chain", "part", "wait_s", "burst", "volume_bytes", "peak_bytes_per_s", "weight", "direction")
    dtypes = (pl.Int64, pl.Int64, pl.Float64, pl.Int64, pl.Float64, pl.Float64, pl.Float64, pl.String)
    steps = pl.DataFrame(rows, schema=dict(zip(names, dtypes, strict=True)), orient="row")
    counts = np.bincount(steps["chain"].to_numpy(), minlength=len(planned))
    chains = Chains(
        start_s=np.array([chain.start_s for chain in planned]),
        offsets=offsets_of(counts),
        wait_s=steps["wait_s"].to_numpy(),
        volume_bytes=steps["volume_bytes"].to_numpy(),
        peak_bytes_per_s=steps["peak_bytes_per_s"].to_numpy(),
        weight=steps["weight"].to_numpy(),
        channel=(steps["direction"] == "write").cast(pl.Int64).to_numpy(),
    )
    pipe = Pipe(params.controller_count * params.controller_bytes_per_s, params.seek_loss_ratio)
    shared = share(chains, pipe, params.span_s)
    happened = steps.with_columns(
        start_s=pl.Series(shared.start_s).fill_nan(None),
        end_s=pl.Series(shared.end_s).fill_nan(None),
        moved_bytes=pl.Series(shared.moved_bytes),
    )
    return happened, shared


def _at(seconds: str, params: SiteParams, *, whole: bool = False) -> pl.Expr:
    """Return the instant of a column of seconds since the start; job logs know whole seconds only."""
    value = pl.col(seconds).floor() if whole else pl.col(seconds)
    return pl.lit(params.start, _INSTANT) + (value * 1e6).round().cast(pl.Int64).cast(pl.Duration("us"))


def _logged(planned: Sequence[Plan], steps: pl.DataFrame, params: SiteParams) -> pl.DataFrame:
    """Return every job that began, with its id, and `chain` and `part` to find its bursts by."""
    jobs = pl.DataFrame(
        [
            (number, part, job.name, job.user, job.account, job.node_count, job.queue_s, job.source, job.state,
             job.kind, job.first_burst)
            for number, chain in enumerate(planned)
            for part, (job, _) in enumerate(chain.parts)
        ],
        schema={
            "chain": pl.Int64, "part": pl.Int64, "job_name": pl.String, "user": pl.String, "account": pl.String,
            "node_count": pl.Int64, "queue_s": pl.Float64, "source": pl.String, "state": pl.String,
            "kind": pl.String, "first_burst": pl.Int64,
        },
        orient="row",
    )  # fmt: skip
    starts = steps.filter(pl.col("burst") == START).select("chain", "part", "start_s")
    ends = steps.filter(pl.col("burst") == END).select("chain", "part", "end_s")
    begun = jobs.join(starts, on=["chain", "part"]).join(ends, on=["chain", "part"])
    begun = begun.filter(pl.col("start_s").is_not_null()).with_columns(
        submitted_s=pl.col("start_s") - pl.col("queue_s")
    )
    is_running = pl.col("end_s").is_null()
    return begun.sort("submitted_s", "chain", maintain_order=True).with_columns(
        job_id=(params.top_interferer_job_id + 7 * pl.int_range(pl.len())).cast(pl.String),
        state=pl.when(is_running).then(pl.lit("RUNNING")).otherwise("state"),
        kind=pl.when(is_running & (pl.col("source") == "application")).then(pl.lit("running")).otherwise("kind"),
    )


def _jobs(logged: pl.DataFrame, params: SiteParams) -> pl.DataFrame:
    """Return the job log; who cancels a job is its own user."""
    uids = {user: str(10_000 + zlib.crc32(user.encode()) % 50_000) for user in logged["user"].unique()}
    uid = pl.col("user").replace_strict(uids, return_dtype=pl.String)
    return logged.select(
        pl.lit(params.cluster).alias("cluster"),
        "job_id",
        "user",
        "account",
        "job_name",
        pl.lit(params.partition).alias("partition"),
        "node_count",
        (pl.col("node_count") * _TASKS_PER_NODE).alias("task_count"),
        _at("submitted_s", params, whole=True).alias("submitted_at"),
        _at("start_s", params, whole=True).alias("started_at"),
        _at("end_s", params, whole=True).alias("ended_at"),
        "state",
        pl.when(pl.col("state") == "CANCELLED").then(uid).alias("cancelled_by"),
        pl.col("state").replace_strict(_EXIT_CODES, default="0:0").alias("exit_code"),
    )


def _runs(logged: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Return each application's runs: what became of them, and which bursts they began."""
    begun = (
        steps.filter((pl.col("burst") >= 0) & pl.col("start_s").is_not_null())
        .group_by("chain", "part")
        .agg(burst_count=pl.col("burst").n_unique().cast(pl.Int64))
    )
    return (
        logged.filter(pl.col("source") == "application")
        .join(begun, on=["chain", "part"], how="left", maintain_order="left")
        .select(
            "job_id", pl.col("job_name").alias("application"), "kind", "first_burst", pl.col("burst_count").fill_null(0)
        )
    )


def _all_bursts(planned: Sequence[Plan], logged: pl.DataFrame, steps: pl.DataFrame, params: SiteParams) -> pl.DataFrame:
    """Return every burst and transfer that was planned, its pieces put together."""
    return (
        steps.filter(pl.col("burst") >= 0)
        .group_by("chain", "part", "burst", "direction", maintain_order=True)
        .agg(
            pl.col("start_s").first(),
            pl.col("end_s").last(),
            pl.col("volume_bytes", "moved_bytes").sum(),
        )
        .join(_owners(planned), on=["chain", "part"], how="left", maintain_order="left")
        .join(logged.select("chain", "part", "job_id"), on=["chain", "part"], how="left", maintain_order="left")
        .select(
            "source", "name", "job_id", "burst", "direction",
            _at("start_s", params).alias("started_at"), _at("end_s", params).alias("ended_at"),
            "volume_bytes", "moved_bytes",
        )
    )  # fmt: skip


def _owners(planned: Sequence[Plan]) -> pl.DataFrame:
    return pl.DataFrame(
        [(i, p, job.source, job.name) for i, chain in enumerate(planned) for p, (job, _) in enumerate(chain.parts)],
        schema={"chain": pl.Int64, "part": pl.Int64, "source": pl.String, "name": pl.String},
        orient="row",
    )


def _served(planned: Sequence[Plan], logged: pl.DataFrame, steps: pl.DataFrame, shared: Shared) -> pl.DataFrame:
    """Return what storage moved for whom, from one event to the next."""
    event = shared.served_event
    moved = steps.select("chain", "part", "direction")[shared.served_step].with_columns(
        from_s=pl.Series(shared.at_s[np.maximum(event - 1, 0)]),
        until_s=pl.Series(shared.at_s[event]),
        moved_bytes=pl.Series(shared.served_bytes),
    )
    keys = ("chain", "part")
    return (
        moved.group_by(*keys, "direction", "from_s", "until_s", maintain_order=True)
        .agg(pl.col("moved_bytes").sum())
        .join(_owners(planned), on=keys, how="left", maintain_order="left")
        .join(logged.select(*keys, "job_id"), on=keys, how="left", maintain_order="left")
        .select("source", "name", "chain", "job_id", "direction", "from_s", "until_s", "moved_bytes")
        .sort("chain", "until_s", maintain_order=True)
    )


# ---- traffic


def _wandering(count: int, step: float, rng: np.random.Generator) -> Reals:
    """Return a line of mean 0 and variance 1 that has a new aim every `step` ticks."""
    aims = rng.standard_normal(math.ceil(count / step) + 1)
    # between two independent aims a line has two thirds of their variance, on average
    return np.interp(np.arange(count) / step, np.arange(len(aims)), aims) * math.sqrt(1.5)


def _background(direction: Direction, params: SiteParams) -> Reals:
    """Return the persistent background's bytes per tick: slow waves, days and nights, and a restless surface."""
    count, interval = params.tick_count, params.interval_s
    slow = _wandering(count, 1200.0 / interval, stream(params.seed, "background", direction, "waves"))
    fast = _wandering(count, 6.0 / interval, stream(params.seed, "background", direction, "surface"))
    mean = params.background_bytes_per_s * (0.6 if direction == "write" else 0.4)
    hours = params.edges_s[1:] / 3600.0
    day = 1.0 + 0.3 * np.sin((hours - 10.0) / 24.0 * 2.0 * np.pi)
    # a quiet Lustre system's rate varies by about 0.4 in the logarithm, half of it remembered from poll to poll
    level: Reals = mean * interval * day * np.exp(0.35 * slow + 0.4 * fast - (0.35**2 + 0.4**2) / 2.0)
    return level


def uneven_edges(params: SiteParams) -> Reals:
    """Return the polls' edges on a clock that runs unevenly: rates waver, and no byte is lost.

    What a server reports within an interval is not just what was sent in it: caches fill and drain.
    """
    rng = stream(params.seed, "texture")
    edges = params.edges_s
    slow = _wandering(len(edges), 12.0 / params.interval_s, rng)
    fast = 0.15 * params.interval_s * rng.standard_normal(len(edges))
    uneven = np.maximum.accumulate(edges + params.texture_s * (slow + fast))
    uneven = np.clip(uneven, edges[0], edges[-1])
    uneven[[0, -1]] = edges[[0, -1]]
    return uneven


def _traffic(shared: Shared, params: SiteParams) -> pl.DataFrame:
    """Return each tick's bytes: the background's, and all."""
    moved = shared.volumes(uneven_edges(params))
    columns: dict[str, Reals] = {}
    for channel, direction in enumerate(DIRECTIONS):
        background = _background(direction, params)
        columns[f"background_{direction}_bytes"] = background
        columns[f"{direction}_bytes"] = background + (moved[:, channel] if channel < moved.shape[1] else 0.0)
    return pl.DataFrame({"polled_s": params.edges_s[1:], **columns}).select(
        _at("polled_s", params).alias("polled_at"), *columns
    )


def _polls(traffic: pl.DataFrame, params: SiteParams) -> pl.DataFrame:
    """Return the polls of all controllers in order of arrival."""
    count = params.controller_count
    if params.fault_level > 0:
        rng = stream(params.seed, "faults")
        faults = params.faults.scaled(params.fault_level)
        arrived = arrivals(params.tick_count, count, params.interval_s, faults, rng)
    else:
        arrived = perfect(params.tick_count, count)
    names = pl.Series([f"ddn{number:02d}" for number in range(1, count + 1)])
    rates = {}
    for direction in DIRECTIONS:
        rng = stream(params.seed, "controllers", direction)
        volumes = split_polls(traffic[f"{direction}_bytes"].to_numpy(), count, params.interval_s, rng)
        rates[f"{direction}_bytes_per_s"] = volumes[arrived.tick, arrived.controller] / params.interval_s
    return pl.DataFrame(
        {
            "polled_at": traffic["polled_at"].gather(arrived.tick),
            "controller": names.gather(arrived.controller),
            **rates,
        }
    )


# ---- truth


def signature(application: Application, direction: Direction) -> Reals:
    """Return an application's rate alone in each second of its run, in bytes per second."""
    times, moved = [0.0], [0.0]
    for burst in application.bursts:
        if burst.direction != direction:
            continue
        times.append(burst.offset_s)
        moved.append(moved[-1])
        for volume, peak in PROFILE:
            times.append(times[-1] + burst.volume_bytes * volume / (burst.peak_bytes_per_s * peak))
            moved.append(moved[-1] + burst.volume_bytes * volume)
    seconds = np.arange(np.ceil(application.duration_s) + 1)
    return np.diff(np.interp(seconds, times, moved))


def _truth(applications: Iterable[Application]) -> pl.DataFrame:
    parts = [
        pl.DataFrame({"bytes_per_s": rates}).select(
            pl.lit(application.name).alias("application"),
            pl.lit(direction).alias("direction"),
            pl.int_range(pl.len()).cast(pl.Float64).alias("offset_s"),
            "bytes_per_s",
        )
        for application in applications
        for direction in DIRECTIONS
        for rates in [signature(application, direction)]
    ]
    schema = {"application": pl.String, "direction": pl.String, "offset_s": pl.Float64, "bytes_per_s": pl.Float64}
    return pl.concat([pl.DataFrame(schema=schema), *parts])


def simulate(params: SiteParams, applications: Sequence[Application] = APPLICATIONS) -> Site:
    """Simulate a site: the same parameters and applications give the same frames."""
    names = [(application.name, application.user) for application in applications]
    if len(set(names)) < len(names):
        raise ValueError("two applications of one user have the same name")
    planned = plans(applications, params.workload)
    steps, shared = _contend(planned, params)
    logged = _logged(planned, steps, params)
    traffic = _traffic(shared, params)
    return Site(
        params=params,
        applications=tuple(applications),
        jobs=_jobs(logged, params),
        polls=_polls(traffic, params),
        truth=_truth(applications),
        runs=_runs(logged, steps),
        bursts=_all_bursts(planned, logged, steps, params),
        traffic=traffic,
        served=_served(planned, logged, steps, shared),
    )

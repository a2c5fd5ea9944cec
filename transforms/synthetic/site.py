"""Simulate the storage of a supercomputer: job log, controller polls, and ground truth.

The model is Spider at OLCF, as described by IOSI (Liu et al., FAST'14): 2-s polls of RAID controllers (section 2.2),
bursty jobs that run many times (2.1), persistent background of about 0.1 GB/s (5.1), interactive transfers and foreign
jobs with their own periods (4, 6.1), contention that stretches and shifts bursts (4), restarts that run shorter (5.1,
note 1). The applications are the paper's IOR_A, IOR_B and IOR_C (section 6) and others of known shape.

Everything derives from one seed, with a separate random stream for each part, so that an additional application does
not change the plans of the others. `iosig.transforms.synthetic.contention` simulates the contention. The poll daemon
observes the traffic split over controllers, in integer bytes, and with faults. Rows are in order of arrival, which may
differ from the order of their timestamps.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from iosig.transforms.arrays import Reals, offsets_of
from iosig.transforms.synthetic.contention import Chains, SharedBandwidth, SharingResult, simulate_sharing
from iosig.transforms.synthetic.polls import Faults, arrive_in_order, simulate_arrivals, split_polls
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
    make_plans,
    stream,
)

_TASKS_PER_NODE = 16
_EXIT_CODES = {"COMPLETED": "0:0", "FAILED": "1:0", "TIMEOUT": "0:0", "NODE_FAIL": "1:0", "CANCELLED": "0:15"}
_INSTANT = pl.Datetime("us", "UTC")


@dataclass(frozen=True, slots=True)
class SiteParams:
    """Size, activity and faults of a site.

    Attributes
    ----------
    seed, start, days
        Random seed, start (usually midnight UTC), and duration.
    controller_count, interval_s
        Number of controllers, and polling interval (IOSI, section 2.2: 2 s).
    foreign_level, fault_level
        Activity of other users and faults of polls, as multiples of the typical ones; 0 for none.
    background_bytes_per_s
        Mean of the persistent background (IOSI, 5.1: 0.11 GB/s).
    controller_bytes_per_s
        Bandwidth of a controller for mixed streams (half of 240 GB/s / 96, IOSI, 2.2).
    seek_loss_ratio
        See `contention.SharedBandwidth`.
    drift_ratio, stop_ratio
        See `workload.Workload`.
    texture_s
        Jitter of the servers' clock [s], which makes the height of bursts irregular but preserves their volume. This
        and the previous three values are our own choice: most runs differ by less than 10 % in duration (IOSI, 5.1).
    cluster, partition, top_interferer_job_id
        Names in the job log, and first job id.
    faults
        Faults at level 1.
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
        """Raise ValueError if the site cannot be simulated."""
        if self.start.utcoffset() != timedelta(0):
            raise ValueError("start must be a time in UTC")
        if self.seed < 0 or self.controller_count < 1 or self.tick_count < 2:
            raise ValueError("a site needs a nonnegative seed, one or more controllers, and two or more polls")

    @property
    def tick_count(self) -> int:
        """Number of scheduled polls of each controller."""
        return round(self.days * DAY_S / self.interval_s)

    @property
    def workload(self) -> Workload:
        """Workload of the site; an I/O storm, i.e. a rare burst of many streams, takes half of the bandwidth."""
        storm = 0.5 * self.controller_count * self.controller_bytes_per_s
        return Workload(self.seed, self.span_s, self.foreign_level, self.drift_ratio, self.stop_ratio, storm)

    @property
    def span_s(self) -> float:
        """Time from the start to the last poll; the right edge of the first poll is the start [s]."""
        return (self.tick_count - 1) * self.interval_s

    @property
    def edges_s(self) -> Reals:
        """Edges of the polls since the start, shape (ticks + 1,) [s]."""
        return np.arange(-1, self.tick_count, dtype=np.float64) * self.interval_s


@dataclass(frozen=True, slots=True)
class Site:
    """Logged data of a simulated site, and ground truth.

    Attributes
    ----------
    params, applications
        Input of the simulation.
    jobs
        One row per job, as in a job log; running jobs have no end.
    polls
        Polls in order of arrival.
    truth
        application, direction, offset_s (left edge of a second), bytes_per_s: each application without contention.
    runs
        job_id, application, kind (complete, stopped, restart, running), and the bursts of the run (first_burst,
        burst_count).
    bursts
        Every transfer with its owner, times, volume, and the bytes that it moved before the last poll.
    traffic
        Bytes per tick before the polls' faults.
    served
        source, name, chain, job_id, direction, from_s, until_s, moved_bytes: intervals of constant rate, in order of
        time within each chain.
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


# ---- simulation of plans


def _iterate_pieces(chain: Plan) -> Iterator[tuple[int, float, Piece]]:
    """Yield (part, wait, piece); subsequent jobs of a chain first wait in the queue."""
    for part, (job, pieces) in enumerate(chain.parts):
        for index, piece in enumerate(pieces):
            yield part, piece.wait_s + (job.queue_s + 30.0 if part and not index else 0.0), piece


def _simulate_contention(plans: Sequence[Plan], params: SiteParams) -> tuple[pl.DataFrame, SharingResult]:
    """Simulate all plans on the shared storage; the result contains the times of every step, and the totals."""
    rows = [
        (number, part, wait, piece.burst, piece.volume_bytes, piece.peak_bytes_per_s, piece.weight, piece.direction)
        for number, chain in enumerate(plans)
        for part, wait, piece in _iterate_pieces(chain)
    ]
    names = ("chain", "part", "wait_s", "burst", "volume_bytes", "peak_bytes_per_s", "weight", "direction")
    dtypes = (pl.Int64, pl.Int64, pl.Float64, pl.Int64, pl.Float64, pl.Float64, pl.Float64, pl.String)
    steps = pl.DataFrame(rows, schema=dict(zip(names, dtypes, strict=True)), orient="row")
    counts = np.bincount(steps["chain"].to_numpy(), minlength=len(plans))
    chains = Chains(
        start_s=np.array([chain.start_s for chain in plans]),
        offsets=offsets_of(counts),
        wait_s=steps["wait_s"].to_numpy(),
        volume_bytes=steps["volume_bytes"].to_numpy(),
        peak_bytes_per_s=steps["peak_bytes_per_s"].to_numpy(),
        weight=steps["weight"].to_numpy(),
        channel=(steps["direction"] == "write").cast(pl.Int64).to_numpy(),
    )
    bandwidth = SharedBandwidth(params.controller_count * params.controller_bytes_per_s, params.seek_loss_ratio)
    shared = simulate_sharing(chains, bandwidth, params.span_s)
    simulated = steps.with_columns(
        start_s=pl.Series(shared.start_s).fill_nan(None),
        end_s=pl.Series(shared.end_s).fill_nan(None),
        moved_bytes=pl.Series(shared.moved_bytes),
    )
    return simulated, shared


def _to_timestamp(seconds: str, params: SiteParams, *, is_whole: bool = False) -> pl.Expr:
    """Timestamp of a column of seconds since the start; job logs have integer seconds."""
    value = pl.col(seconds).floor() if is_whole else pl.col(seconds)
    return pl.lit(params.start, _INSTANT) + (value * 1e6).round().cast(pl.Int64).cast(pl.Duration("us"))


def _find_jobs(plans: Sequence[Plan], steps: pl.DataFrame, params: SiteParams) -> pl.DataFrame:
    """List the jobs that started, with their ids, and `chain` and `part` as keys of their bursts."""
    jobs = pl.DataFrame(
        [
            (number, part, job.name, job.user, job.account, job.node_count, job.queue_s, job.source, job.state,
             job.kind, job.first_burst)
            for number, chain in enumerate(plans)
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
    started = jobs.join(starts, on=["chain", "part"]).join(ends, on=["chain", "part"])
    started = started.filter(pl.col("start_s").is_not_null()).with_columns(
        submitted_s=pl.col("start_s") - pl.col("queue_s")
    )
    is_running = pl.col("end_s").is_null()
    return started.sort("submitted_s", "chain", maintain_order=True).with_columns(
        job_id=(params.top_interferer_job_id + 7 * pl.int_range(pl.len())).cast(pl.String),
        state=pl.when(is_running).then(pl.lit("RUNNING")).otherwise("state"),
        kind=pl.when(is_running & (pl.col("source") == "application")).then(pl.lit("running")).otherwise("kind"),
    )


def _make_job_log(logged_jobs: pl.DataFrame, params: SiteParams) -> pl.DataFrame:
    """Make the job log; jobs are cancelled by their own users."""
    uids = {user: str(10_000 + zlib.crc32(user.encode()) % 50_000) for user in logged_jobs["user"].unique()}
    uid = pl.col("user").replace_strict(uids, return_dtype=pl.String)
    return logged_jobs.select(
        pl.lit(params.cluster).alias("cluster"),
        "job_id",
        "user",
        "account",
        "job_name",
        pl.lit(params.partition).alias("partition"),
        "node_count",
        (pl.col("node_count") * _TASKS_PER_NODE).alias("task_count"),
        _to_timestamp("submitted_s", params, is_whole=True).alias("submitted_at"),
        _to_timestamp("start_s", params, is_whole=True).alias("started_at"),
        _to_timestamp("end_s", params, is_whole=True).alias("ended_at"),
        "state",
        pl.when(pl.col("state") == "CANCELLED").then(uid).alias("cancelled_by"),
        pl.col("state").replace_strict(_EXIT_CODES, default="0:0").alias("exit_code"),
    )


def _make_runs(logged_jobs: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """List the runs of each application: outcome, and the bursts that they started."""
    burst_counts = (
        steps.filter((pl.col("burst") >= 0) & pl.col("start_s").is_not_null())
        .group_by("chain", "part")
        .agg(burst_count=pl.col("burst").n_unique().cast(pl.Int64))
    )
    return (
        logged_jobs.filter(pl.col("source") == "application")
        .join(burst_counts, on=["chain", "part"], how="left", maintain_order="left")
        .select(
            "job_id", pl.col("job_name").alias("application"), "kind", "first_burst", pl.col("burst_count").fill_null(0)
        )
    )


def _merge_bursts(
    plans: Sequence[Plan], logged_jobs: pl.DataFrame, steps: pl.DataFrame, params: SiteParams
) -> pl.DataFrame:
    """List all planned bursts and transfers, with their pieces merged."""
    return (
        steps.filter(pl.col("burst") >= 0)
        .group_by("chain", "part", "burst", "direction", maintain_order=True)
        .agg(
            pl.col("start_s").first(),
            pl.col("end_s").last(),
            pl.col("volume_bytes", "moved_bytes").sum(),
        )
        .join(_owners(plans), on=["chain", "part"], how="left", maintain_order="left")
        .join(logged_jobs.select("chain", "part", "job_id"), on=["chain", "part"], how="left", maintain_order="left")
        .select(
            "source", "name", "job_id", "burst", "direction",
            _to_timestamp("start_s", params).alias("started_at"), _to_timestamp("end_s", params).alias("ended_at"),
            "volume_bytes", "moved_bytes",
        )
    )  # fmt: skip


def _owners(plans: Sequence[Plan]) -> pl.DataFrame:
    return pl.DataFrame(
        [(i, p, job.source, job.name) for i, chain in enumerate(plans) for p, (job, _) in enumerate(chain.parts)],
        schema={"chain": pl.Int64, "part": pl.Int64, "source": pl.String, "name": pl.String},
        orient="row",
    )


def _make_served_rows(
    plans: Sequence[Plan], logged_jobs: pl.DataFrame, steps: pl.DataFrame, shared: SharingResult
) -> pl.DataFrame:
    """List the bytes moved for each owner between events."""
    event = shared.served_event
    volumes = steps.select("chain", "part", "direction")[shared.served_step].with_columns(
        from_s=pl.Series(shared.at_s[np.maximum(event - 1, 0)]),
        until_s=pl.Series(shared.at_s[event]),
        moved_bytes=pl.Series(shared.served_bytes),
    )
    keys = ("chain", "part")
    return (
        volumes.group_by(*keys, "direction", "from_s", "until_s", maintain_order=True)
        .agg(pl.col("moved_bytes").sum())
        .join(_owners(plans), on=keys, how="left", maintain_order="left")
        .join(logged_jobs.select(*keys, "job_id"), on=keys, how="left", maintain_order="left")
        .select("source", "name", "chain", "job_id", "direction", "from_s", "until_s", "moved_bytes")
        .sort("chain", "until_s", maintain_order=True)
    )


# ---- traffic


def _random_curve(count: int, step: float, rng: np.random.Generator) -> Reals:
    """Draw a curve of mean 0 and variance 1 that is linear between random values every `step` ticks."""
    nodes = rng.standard_normal(math.ceil(count / step) + 1)
    # linear interpolation between independent values has two thirds of their variance, on average
    return np.interp(np.arange(count) / step, np.arange(len(nodes)), nodes) * math.sqrt(1.5)


def _background_bytes(direction: Direction, params: SiteParams) -> Reals:
    """Draw the bytes per tick of the persistent background, with slow waves, a daily cycle and fast noise."""
    count, interval = params.tick_count, params.interval_s
    slow = _random_curve(count, 1200.0 / interval, stream(params.seed, "background", direction, "waves"))
    fast = _random_curve(count, 6.0 / interval, stream(params.seed, "background", direction, "surface"))
    mean = params.background_bytes_per_s * (0.6 if direction == "write" else 0.4)
    hours = params.edges_s[1:] / 3600.0
    day = 1.0 + 0.3 * np.sin((hours - 10.0) / 24.0 * 2.0 * np.pi)
    # the logarithmic rate of a quiet Lustre system has a standard deviation of 0.4, half of it correlated between polls
    level: Reals = mean * interval * day * np.exp(0.35 * slow + 0.4 * fast - (0.35**2 + 0.4**2) / 2.0)
    return level


def jitter_edges(params: SiteParams) -> Reals:
    """Compute the edges of the polls on a clock with jitter, which varies rates but preserves volumes.

    Parameters
    ----------
    params
        Parameters of the site.

    Returns
    -------
    (ticks + 1,)
        Ascending edges [s]. Bytes reported for an interval may have been sent in another one, since caches fill and
        drain.
    """
    rng = stream(params.seed, "texture")
    edges = params.edges_s
    slow = _random_curve(len(edges), 12.0 / params.interval_s, rng)
    fast = 0.15 * params.interval_s * rng.standard_normal(len(edges))
    jittered = np.maximum.accumulate(edges + params.texture_s * (slow + fast))
    jittered = np.clip(jittered, edges[0], edges[-1])
    jittered[[0, -1]] = edges[[0, -1]]
    return jittered


def _make_traffic(shared: SharingResult, params: SiteParams) -> pl.DataFrame:
    """Compute the bytes of the background and of all traffic in each tick."""
    volumes = shared.volumes(jitter_edges(params))
    columns: dict[str, Reals] = {}
    for channel, direction in enumerate(DIRECTIONS):
        background = _background_bytes(direction, params)
        columns[f"background_{direction}_bytes"] = background
        columns[f"{direction}_bytes"] = background + (volumes[:, channel] if channel < volumes.shape[1] else 0.0)
    return pl.DataFrame({"polled_s": params.edges_s[1:], **columns}).select(
        _to_timestamp("polled_s", params).alias("polled_at"), *columns
    )


def _make_polls(traffic: pl.DataFrame, params: SiteParams) -> pl.DataFrame:
    """List the polls of all controllers in order of arrival."""
    count = params.controller_count
    if params.fault_level > 0:
        rng = stream(params.seed, "faults")
        faults = params.faults.scale(params.fault_level)
        arrivals = simulate_arrivals(params.tick_count, count, params.interval_s, faults, rng)
    else:
        arrivals = arrive_in_order(params.tick_count, count)
    names = pl.Series([f"ddn{number:02d}" for number in range(1, count + 1)])
    rates = {}
    for direction in DIRECTIONS:
        rng = stream(params.seed, "controllers", direction)
        volumes = split_polls(traffic[f"{direction}_bytes"].to_numpy(), count, params.interval_s, rng)
        rates[f"{direction}_bytes_per_s"] = volumes[arrivals.tick, arrivals.controller] / params.interval_s
    return pl.DataFrame(
        {
            "polled_at": traffic["polled_at"].gather(arrivals.tick),
            "controller": names.gather(arrivals.controller),
            **rates,
        }
    )


# ---- truth


def signature(application: Application, direction: Direction) -> Reals:
    """Compute the rate of an application without contention.

    Parameters
    ----------
    application
        Application with its bursts.
    direction
        Read or write.

    Returns
    -------
    (seconds,)
        Mean rate in each second of the run [bytes/s].
    """
    times, cumulative_bytes = [0.0], [0.0]
    for burst in application.bursts:
        if burst.direction != direction:
            continue
        times.append(burst.offset_s)
        cumulative_bytes.append(cumulative_bytes[-1])
        for volume, peak in PROFILE:
            times.append(times[-1] + burst.volume_bytes * volume / (burst.peak_bytes_per_s * peak))
            cumulative_bytes.append(cumulative_bytes[-1] + burst.volume_bytes * volume)
    seconds = np.arange(np.ceil(application.duration_s) + 1)
    return np.diff(np.interp(seconds, times, cumulative_bytes))


def _make_truth(applications: Iterable[Application]) -> pl.DataFrame:
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
    """Simulate jobs, traffic and polls of a site.

    Parameters
    ----------
    params
        Size, activity and faults.
    applications
        Applications that run at the site.

    Returns
    -------
    Site
        Deterministic for the same parameters and applications.

    Raises
    ------
    ValueError
        If two applications of a user have the same name.
    """
    names = [(application.name, application.user) for application in applications]
    if len(set(names)) < len(names):
        raise ValueError("two applications of one user have the same name")
    plans = make_plans(applications, params.workload)
    steps, shared = _simulate_contention(plans, params)
    logged_jobs = _find_jobs(plans, steps, params)
    traffic = _make_traffic(shared, params)
    return Site(
        params=params,
        applications=tuple(applications),
        jobs=_make_job_log(logged_jobs, params),
        polls=_make_polls(traffic, params),
        truth=_make_truth(applications),
        runs=_make_runs(logged_jobs, steps),
        bursts=_merge_bursts(plans, logged_jobs, steps, params),
        traffic=traffic,
        served=_make_served_rows(plans, logged_jobs, steps, shared),
    )

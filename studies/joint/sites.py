"""Simulate sites with background traffic mostly from other jobs, and the undisturbed rate of each application."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from iosig.studies.signatures.sites import STUDIED
from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of, places_of
from iosig.transforms.joint.shared_traffic import SharedTraffic
from iosig.transforms.synthetic.site import Site, SiteParams, signature, simulate
from iosig.transforms.synthetic.workload import DAY_S, GB, Application, Burst, stream

#: mean total traffic relative to the applications' typical peak rate; this peak rate [B/s]
LEVELS = {"calm": 0.2, "busy": 0.5, "stormy": 1.0}
PEAK_BYTES_PER_S = 2.6 * GB
#: defaults: one controller polls all traffic, fair sharing, and 0.3 % variation of the pace between runs
_USUAL = SiteParams(
    controller_count=1,
    controller_bytes_per_s=10 * GB,
    foreign_level=0.0,
    fault_level=0.0,
    drift_ratio=0.003,
    seek_loss_ratio=0.0,
)


@dataclass(frozen=True, slots=True)
class Family:
    """A family of similar sites: a description, and the parameters from which they are drawn.

    params: parameters of the simulation, except the days, which follow from the level. neighbor_count: number of
    applications in addition to the studied ones. is_logged: whether the job log contains these neighbors.
    """

    doc: str
    params: SiteParams = _USUAL
    neighbor_count: int = 20
    is_logged: bool = True


FAMILIES: dict[str, Family] = {
    "fair": Family("transfers share the bandwidth fairly, without seek losses"),
    "drifting": Family(
        "like fair, but runs differ by 1 % in their pace instead of 0.3 %", replace(_USUAL, drift_ratio=0.01)
    ),
    "coarse": Family("like fair, but polls come every 10 s instead of 2", replace(_USUAL, interval_s=10.0)),
    "stopping": Family("like fair, but a quarter of the runs stop early and restart", replace(_USUAL, stop_ratio=0.25)),
    "mixed": Family("like fair, plus transfers, storms and irregular jobs", replace(_USUAL, foreign_level=1.0)),
    "seeks": Family("each concurrent transfer costs a tenth of the speed", replace(_USUAL, seek_loss_ratio=0.1)),
    "heavy seeks": Family("the same, with a quarter", replace(_USUAL, seek_loss_ratio=0.25)),
    "unlogged": Family("like fair, but no other job is in the job log", is_logged=False),
}


@dataclass(frozen=True, slots=True)
class SimulatedSite:
    """A simulated site as observed, and its truth.

    shared: traffic and all completed logged runs, each a sample. applications: the logged ones, the studied ones first.
    own: true bytes of each sample's run. at_work: number of other active runs per step. work_ratio: fraction of the
    step in which the run itself was active. cost: slowdown per other active run, as in
    `iosig.transforms.joint.contention`. paced: rate of each application with mean gaps of its complete runs and
    undisturbed bursts.
    """

    shared: SharedTraffic
    applications: tuple[Application, ...]
    own: Ragged
    at_work: Reals
    work_ratio: Reals
    cost: float
    paced: tuple[Reals, ...]


def draw_neighbors(seed: int, count: int) -> Iterator[Application]:
    """Draw applications with random periods and bursts: periodic, alternating in size, or irregular."""
    for number in range(count):
        rng = stream(seed, "joint neighbour", number)
        duration_s = float(rng.uniform(900.0, 3600.0))
        every_s = float(rng.choice([75, 120, 180, 240, 300, 450, 600]))
        burst_count = max(3, int((duration_s - 60.0) / every_s))
        peak = rng.uniform(1.0, 3.5) * GB
        duty = rng.uniform(0.06, 0.25)
        starts = 20.0 + rng.uniform(0.0, 0.5) * every_s + every_s * np.arange(burst_count)
        if rng.random() < 0.3:
            starts = starts + rng.uniform(0.0, 0.45, burst_count) * every_s
        sizes = np.where(np.arange(burst_count) % 2, rng.choice([1.0, 0.3]), 1.0)
        volumes = duty * every_s * 0.8 * peak * sizes
        bursts = tuple(Burst(float(at), float(volume), float(peak)) for at, volume in zip(starts, volumes, strict=True))
        end_s = max(duration_s, bursts[-1].end_s + 30.0)
        nodes = int(2 ** rng.integers(3, 10))
        yield Application(f"n{number:02d}", f"u{number:02d}", f"prj{number:03d}", nodes, end_s, bursts)


def draw_site(family: Family, level: str, seed: int) -> SimulatedSite:
    """Simulate a site with enough days to reach the level's mean traffic."""
    applications = (*STUDIED, *draw_neighbors(seed, family.neighbor_count))
    volume = sum(application.run_count * application.volume_bytes("write") for application in applications)
    days = volume / (LEVELS[level] * PEAK_BYTES_PER_S * DAY_S)
    site = simulate(replace(family.params, seed=seed, days=days), applications)
    logged = applications if family.is_logged else STUDIED
    return _observe_site(site, logged)


def _observe_site(site: Site, logged: Sequence[Application]) -> SimulatedSite:
    interval_s = site.params.interval_s
    place = {application.name: number for number, application in enumerate(logged)}
    runs = site.jobs.join(site.runs, on="job_id").filter(
        pl.col("ended_at").is_not_null(), pl.col("application").is_in(list(place))
    )
    since = pl.col("started_at", "ended_at") - pl.lit(site.params.start)
    times = runs.select(since.dt.total_microseconds() / 1e6 / interval_s + 1.0)
    shared = SharedTraffic(
        site.traffic["write_bytes"].to_numpy().astype(np.float64),
        interval_s,
        runs["application"].replace_strict(place, return_dtype=pl.Int64).to_numpy(),
        len(logged),
        times["started_at"].to_numpy(),
        times["ended_at"].to_numpy(),
        np.ones(runs.height, dtype=np.bool_),
    )
    job_ids = runs["job_id"][shared.sample_runs].to_list()
    first, after = shared.sample_windows()
    own_bytes = _collect_own_bytes(site, job_ids, first, after)
    work_ratio = _compute_work_ratio(site, job_ids, first, after)
    active_count = _count_active_transfers(site, np.arange(len(shared.volume_bytes) + 1))
    at_work = np.maximum(active_count[places_of(first, after - first)] - work_ratio, 0.0)
    paced = tuple(_build_mean_gap_curve(site, application, runs) for application in logged)
    return SimulatedSite(shared, tuple(logged), own_bytes, at_work, work_ratio, site.params.seek_loss_ratio, paced)


def _compute_work_ratio(site: Site, job_ids: Sequence[str], first: Ints, after: Ints) -> Reals:
    """Return the fraction of each step in [first, after) during which each run was active."""
    parts = site.bursts.filter(pl.col("started_at").is_not_null()).partition_by("job_id", as_dict=True)
    ratios = [
        _count_active_transfers(
            replace(site, bursts=parts.get((job_id,), site.bursts.clear())), np.arange(begin, end + 1)
        )
        for job_id, begin, end in zip(job_ids, first.tolist(), after.tolist(), strict=True)
    ]
    return np.concatenate(ratios)


def _count_active_transfers(site: Site, edges: Ints) -> Reals:
    """Return the mean number of active transfers in each step between neighboring edges."""
    times = site.bursts.filter(pl.col("started_at").is_not_null()).select(
        (pl.col("started_at", "ended_at") - pl.lit(site.params.start)).dt.total_microseconds() / 1e6
    )
    start_s, end_s = (times[name].fill_null(site.params.span_s).to_numpy() for name in ("started_at", "ended_at"))
    at_s = (edges - 1.0) * site.params.interval_s
    # time since the start (or end) of each transfer, summed over transfers, at each edge
    cumulative_s = [
        np.searchsorted(times_s, at_s) * at_s
        - np.concatenate([[0.0], np.cumsum(times_s)])[np.searchsorted(times_s, at_s)]
        for times_s in (np.sort(start_s), np.sort(end_s))
    ]
    counts: Reals = np.diff(cumulative_s[0] - cumulative_s[1]) / site.params.interval_s
    return counts


def _build_mean_gap_curve(site: Site, application: Application, runs: pl.DataFrame) -> Reals:
    """Return an application's rate with the mean gaps of its complete runs."""
    complete_runs = runs.filter(pl.col("application") == application.name, pl.col("kind") == "complete")
    if complete_runs.is_empty():
        return signature(application, "write")
    since = pl.col("begun_at", "started_at", "ended_at") - pl.lit(site.params.start)
    times = (
        site.bursts.join(complete_runs.select("job_id", begun_at="started_at"), on="job_id")
        .sort("job_id", "burst")
        .select(since.dt.total_microseconds() / 1e6)
        .to_numpy()
        .reshape(complete_runs.height, len(application.bursts), 3)
    )
    # start times in the log are truncated to seconds: half a second on average
    end_s = np.concatenate([times[:, :1, 0] + 0.5, times[:, :-1, 2]], axis=1)
    at_s, bursts = 0.0, []
    for burst, gap_s in zip(application.bursts, (times[:, :, 1] - end_s).mean(axis=0).tolist(), strict=True):
        bursts.append(replace(burst, offset_s=at_s + gap_s))
        at_s = bursts[-1].end_s
    return signature(replace(application, bursts=tuple(bursts), duration_s=max(at_s, application.duration_s)), "write")


def _collect_own_bytes(site: Site, job_ids: Sequence[str], first: Ints, after: Ints) -> Ragged:
    """Return the true bytes of each run in its steps [first, after)."""
    parts = site.served.filter(direction="write").partition_by("job_id", as_dict=True)
    run_bytes = []
    for job_id, begin, end in zip(job_ids, first.tolist(), after.tolist(), strict=True):
        rows = parts[(job_id,)]
        times = rows.select("from_s", "until_s").to_numpy().ravel() / site.params.interval_s + 1.0
        total = np.cumsum(rows["moved_bytes"].to_numpy())
        moved = np.stack([np.concatenate([[0.0], total[:-1]]), total], axis=1).ravel()
        run_bytes.append(np.diff(np.interp(np.arange(begin, end + 1), times, moved)))
    return Ragged(np.concatenate(run_bytes), offsets_of(after - first))

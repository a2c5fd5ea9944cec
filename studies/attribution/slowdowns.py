"""Compare slowdowns estimated from traffic and job log with the service times of the simulated storage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.studies.sites import SiteSignatures, SiteTraffic, plan_runs, select_logged_jobs, to_seconds
from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.attribution.explanation import explain_traffic
from iosig.transforms.attribution.runs import Runs
from iosig.transforms.attribution.slowdowns import (
    RunTraffic,
    compute_contention,
    estimate_slope,
    estimate_slowdowns,
    find_interference,
)
from iosig.transforms.synthetic.site import Site
from iosig.transforms.synthetic.workload import Direction, make_plans

#: minimum delay of a slowed burst; minimum delay of a burst that should be detected as slowed [s]
MIN_DELAY_S, CLEAR_DELAY_S = 1.0, 10.0
_MIN_FILLED = 0.5


@dataclass(frozen=True, slots=True)
class _DetectedBursts:
    """Bursts (m) detected in one direction: job, times, and the duration and bytes of an undisturbed burst."""

    job: Ints
    start_s: Reals
    end_s: Reals
    alone_s: Reals
    meant_bytes: Reals
    withheld_bytes: Reals
    late_s: Reals
    duration_s: Reals


def evaluate_slowdowns(
    site: Site, traffic_by_direction: Mapping[Direction, SiteTraffic], signatures: Mapping[Direction, SiteSignatures]
) -> pl.DataFrame:
    """Return the detected bursts with the estimated and the true delay.

    Columns: delay_s, low_s, high_s, is_slowed; true_delay_s: the actual minus the undisturbed duration; is_there: for
    slowed bursts with a top interferer, whether that job moved bytes at the time.
    """
    detections = {
        direction: _detect_bursts(traffic, signatures[direction]) for direction, traffic in traffic_by_direction.items()
    }
    job, start_s, end_s, alone_s, meant_bytes, withheld_bytes, late_s, duration_s = (
        np.concatenate([getattr(bursts, name) for bursts, _ in detections.values()])
        for name in _DetectedBursts.__slots__
    )
    run_traffic = _collect_traffic(
        [moved for _, moved in detections.values()], len(traffic_by_direction["write"].logged.start_s)
    )
    total_bytes = np.sum([_sum_between(traffic, start_s, end_s) for traffic in traffic_by_direction.values()], axis=0)
    interfering_bytes = np.maximum(total_bytes - run_traffic.sum_between(job, start_s, end_s) - withheld_bytes, 0.0)
    contention_s = compute_contention(alone_s, meant_bytes, end_s - start_s, interfering_bytes)
    runs, at = np.unique(job, return_index=True)
    sums: Reals = np.bincount(np.searchsorted(runs, job), contention_s).astype(np.float64)
    application = traffic_by_direction["write"].logged.application[runs]
    slope = estimate_slope(late_s[at], sums, duration_s[at], application)
    slowdowns = estimate_slowdowns(contention_s, slope, traffic_by_direction["write"].interval_s)
    first = find_interference(job, start_s, end_s, run_traffic).top_run
    rows = pl.DataFrame(
        {
            "job": job,
            "direction": np.repeat(list(detections), [len(bursts.job) for bursts, _ in detections.values()]),
            "start_s": start_s,
            "end_s": end_s,
            "delay_s": slowdowns.delay,
            "low_s": slowdowns.low,
            "high_s": slowdowns.high,
            "is_slowed": slowdowns.is_delayed,
            "first": first,
        }
    ).with_row_index("row")
    return _join_truth(rows, site).drop("row", "start_s", "end_s", "first")


def _detect_bursts(
    traffic: SiteTraffic, signatures: SiteSignatures
) -> tuple[_DetectedBursts, tuple[Ints, Reals, Reals]]:
    """Return the detected bursts, and the attributed bytes of each job: job, time and volume."""
    jobs, runs = plan_runs(traffic, signatures)
    explanation = explain_traffic(traffic.traffic_bytes, runs, traffic.interval_s)
    placements, step_s = explanation.placements, traffic.interval_s
    is_found = placements.filled_ratio >= _MIN_FILLED
    at = (runs.offsets[placements.run] + placements.burst)[is_found]
    run = placements.run[is_found]
    bursts = _DetectedBursts(
        jobs[run],
        placements.started[is_found] * step_s,
        placements.ended[is_found] * step_s,
        runs.burst_duration[at] * step_s,
        runs.volume_bytes[at],
        np.where(placements.is_attributed, 0.0, placements.filled_ratio)[is_found] * runs.volume_bytes[at],
        _compute_start_delays(runs, step_s)[run],
        runs.duration[run] * step_s,
    )
    return bursts, (jobs[explanation.run], (explanation.step.astype(np.float64) + 1) * step_s, explanation.volume_bytes)


def _compute_start_delays(runs: Runs, step_s: float) -> Reals:
    delays_s: Reals = (runs.ended - runs.started - runs.duration) * step_s
    return delays_s


def _collect_traffic(moved: list[tuple[Ints, Reals, Reals]], run_count: int) -> RunTraffic:
    job = np.concatenate([job for job, _, _ in moved])
    at_s, volume = (np.concatenate([part[place] for part in moved]) for place in (1, 2))
    order = np.lexsort((at_s, job))
    return RunTraffic(job[order], at_s[order], volume[order], run_count)


def _sum_between(traffic: SiteTraffic, start_s: Reals, end_s: Reals) -> Reals:
    cumulative_bytes = np.concatenate([[0.0], np.cumsum(traffic.traffic_bytes)])
    edges = np.arange(len(cumulative_bytes)) * traffic.interval_s
    result: Reals = np.interp(end_s, edges, cumulative_bytes) - np.interp(start_s, edges, cumulative_bytes)
    return result


# ---- the truth


def _join_truth(rows: pl.DataFrame, site: Site) -> pl.DataFrame:
    """Add each burst's true delay; a true burst belongs to the detected burst with the largest overlap."""
    jobs = select_logged_jobs(site).select("job_id").with_row_index("job").with_columns(pl.col("job").cast(pl.Int64))
    bursts = (
        site.bursts.with_columns(pl.Series("alone_s", list(_iterate_undisturbed_s(site))))
        .drop_nulls(["started_at", "ended_at"])
        .join(jobs, on="job_id", how="inner")
        .select(
            "job",
            "direction",
            true="burst",
            alone_s="alone_s",
            interval_started_at="started_at",
            interval_ended_at="ended_at",
        )
    )
    bursts = bursts.with_columns(
        from_s=pl.Series(to_seconds(site, bursts["interval_started_at"])),
        until_s=pl.Series(to_seconds(site, bursts["interval_ended_at"])),
    )
    overlap = pl.min_horizontal("end_s", "until_s") - pl.max_horizontal("start_s", "from_s")
    delays = (
        rows.join(bursts, on=["job", "direction"], how="inner")
        .with_columns(overlap_s=overlap, true_delay_s=pl.col("until_s") - pl.col("from_s") - pl.col("alone_s"))
        .filter(pl.col("overlap_s") > 0)
        .sort("overlap_s", descending=True)
        .unique(["job", "direction", "true"], keep="first", maintain_order=True)
        .group_by("row")
        .agg(pl.col("true_delay_s").sum())
    )
    served = site.served.join(jobs.rename({"job": "first"}), on="job_id", how="inner")
    moved_s = pl.min_horizontal("end_s", pl.col("until_s") + site.params.interval_s) - pl.max_horizontal(
        "start_s", pl.col("from_s") + site.params.interval_s
    )
    named = rows.filter(pl.col("is_slowed"), pl.col("first") >= 0)
    presence = (
        named.join(served, on="first", how="left")
        .with_columns(moved_s=moved_s)
        .group_by("row")
        .agg(is_there=(pl.col("moved_s") > 0).any())
    )
    return rows.join(delays, on="row", how="inner").join(presence, on="row", how="left")


def _iterate_undisturbed_s(site: Site) -> Iterator[float]:
    """Yield the duration of each burst without interference, in the order of the site's bursts."""
    for plan in make_plans(site.applications, site.params.workload):
        for _, pieces in plan.parts:
            durations_s: dict[tuple[int, Direction], float] = {}
            for piece in pieces:
                if piece.burst >= 0:
                    key = piece.burst, piece.direction
                    durations_s[key] = durations_s.get(key, 0.0) + piece.volume_bytes / piece.peak_bytes_per_s
            yield from durations_s.values()


def summarize_slowdowns(bursts: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Compute precision, recall and interval coverage of the slowdown estimates, grouped by `names`."""
    delay_s, is_slowed = pl.col("true_delay_s"), pl.col("is_slowed")
    is_in_interval = delay_s.is_between("low_s", "high_s")
    return bursts.group_by(names, maintain_order=True).agg(
        burst_count=pl.len(),
        lost_s=delay_s.clip(0).sum(),
        slowed_count=is_slowed.sum(),
        right=(delay_s.filter(is_slowed) > MIN_DELAY_S).mean(),
        clear_count=(delay_s > CLEAR_DELAY_S).sum(),
        found=is_slowed.filter(delay_s > CLEAR_DELAY_S).mean(),
        of_lost=delay_s.filter(is_slowed).clip(0).sum() / delay_s.clip(0).sum(),
        held=is_in_interval.mean(),
        held_hurt=is_in_interval.filter(is_slowed).mean(),
        there=pl.col("is_there").mean(),
    )

"""Slowed runs: burst delays, estimated from traffic and job log, compared with the service times of the storage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.studies.sites import Known, Seen, planned, seconds, started
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

#: a burst that lost more than the first was slowed, and one that lost the second should be found [s]
HURT_S, CLEAR_S = 1.0, 10.0
_LEAST_FILLED = 0.5


@dataclass(frozen=True, slots=True)
class _Laid:
    """Bursts that were found in a direction (m): whose, when, and what a run alone takes and moves."""

    job: Ints
    start_s: Reals
    end_s: Reals
    alone_s: Reals
    meant_bytes: Reals
    withheld_bytes: Reals
    late_s: Reals
    duration_s: Reals


def slowed_bursts(site: Site, seen: Mapping[Direction, Seen], known: Mapping[Direction, Known]) -> pl.DataFrame:
    """Return the bursts of runs that were found: what is said of each, and the truth.

    delay_s, low_s, high_s, is_slowed; true_delay_s: what it took beyond what it would have taken alone; and of those
    slowed that name another job, is_there: whether that moved anything meanwhile.
    """
    found = {direction: _laid(one, known[direction]) for direction, one in seen.items()}
    job, start_s, end_s, alone_s, meant, withheld, late_s, duration_s = (
        np.concatenate([getattr(laid, name) for laid, _ in found.values()]) for name in _Laid.__slots__
    )
    moves = _moves([moved for _, moved in found.values()], len(seen["write"].logged.start_s))
    there = np.sum([_between(one, start_s, end_s) for one in seen.values()], axis=0)
    others = np.maximum(there - moves.sum_between(job, start_s, end_s) - withheld, 0.0)
    crowded_s = compute_contention(alone_s, meant, end_s - start_s, others)
    runs, at = np.unique(job, return_index=True)
    sums: Reals = np.bincount(np.searchsorted(runs, job), crowded_s).astype(np.float64)
    application = seen["write"].logged.application[runs]
    slope = estimate_slope(late_s[at], sums, duration_s[at], application)
    slowdowns = estimate_slowdowns(crowded_s, slope, seen["write"].interval_s)
    first = find_interference(job, start_s, end_s, moves).top_run
    rows = pl.DataFrame(
        {
            "job": job,
            "direction": np.repeat(list(found), [len(laid.job) for laid, _ in found.values()]),
            "start_s": start_s,
            "end_s": end_s,
            "delay_s": slowdowns.delay,
            "low_s": slowdowns.low,
            "high_s": slowdowns.high,
            "is_slowed": slowdowns.is_delayed,
            "first": first,
        }
    ).with_row_index("row")
    return _with_truth(rows, site).drop("row", "start_s", "end_s", "first")


def _laid(seen: Seen, known: Known) -> tuple[_Laid, tuple[Ints, Reals, Reals]]:
    """Return the bursts that were found, and what each job moved: the job, when, and how much."""
    jobs, runs = planned(seen, known)
    found = explain_traffic(seen.traffic_bytes, runs, seen.interval_s)
    placements, step_s = found.placements, seen.interval_s
    is_found = placements.filled_ratio >= _LEAST_FILLED
    at = (runs.offsets[placements.run] + placements.burst)[is_found]
    run = placements.run[is_found]
    laid = _Laid(
        jobs[run],
        placements.started[is_found] * step_s,
        placements.ended[is_found] * step_s,
        runs.burst_duration[at] * step_s,
        runs.volume_bytes[at],
        np.where(placements.is_attributed, 0.0, placements.filled_ratio)[is_found] * runs.volume_bytes[at],
        _late_s(runs, step_s)[run],
        runs.duration[run] * step_s,
    )
    return laid, (jobs[found.run], (found.step.astype(np.float64) + 1) * step_s, found.volume_bytes)


def _late_s(runs: Runs, step_s: float) -> Reals:
    late: Reals = (runs.ended - runs.started - runs.duration) * step_s
    return late


def _moves(moved: list[tuple[Ints, Reals, Reals]], run_count: int) -> RunTraffic:
    job = np.concatenate([job for job, _, _ in moved])
    at_s, volume = (np.concatenate([part[place] for part in moved]) for place in (1, 2))
    order = np.lexsort((at_s, job))
    return RunTraffic(job[order], at_s[order], volume[order], run_count)


def _between(seen: Seen, start_s: Reals, end_s: Reals) -> Reals:
    by_then = np.concatenate([[0.0], np.cumsum(seen.traffic_bytes)])
    edges = np.arange(len(by_then)) * seen.interval_s
    found: Reals = np.interp(end_s, edges, by_then) - np.interp(start_s, edges, by_then)
    return found


# ---- the truth


def _with_truth(rows: pl.DataFrame, site: Site) -> pl.DataFrame:
    """Return rows with what each burst took longer than alone; a true burst is of the one it overlaps most."""
    jobs = started(site).select("job_id").with_row_index("job").with_columns(pl.col("job").cast(pl.Int64))
    bursts = (
        site.bursts.with_columns(pl.Series("alone_s", list(_alone_s(site))))
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
        from_s=pl.Series(seconds(site, bursts["interval_started_at"])),
        until_s=pl.Series(seconds(site, bursts["interval_ended_at"])),
    )
    overlap = pl.min_horizontal("end_s", "until_s") - pl.max_horizontal("start_s", "from_s")
    longer = (
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
    there = (
        named.join(served, on="first", how="left")
        .with_columns(moved_s=moved_s)
        .group_by("row")
        .agg(is_there=(pl.col("moved_s") > 0).any())
    )
    return rows.join(longer, on="row", how="inner").join(there, on="row", how="left")


def _alone_s(site: Site) -> Iterator[float]:
    """Yield what each burst of a site takes alone, at its run's own pace, in the order in which the site has them."""
    for plan in make_plans(site.applications, site.params.workload):
        for _, pieces in plan.parts:
            alone: dict[tuple[int, Direction], float] = {}
            for piece in pieces:
                if piece.burst >= 0:
                    key = piece.burst, piece.direction
                    alone[key] = alone.get(key, 0.0) + piece.volume_bytes / piece.peak_bytes_per_s
            yield from alone.values()


def summed(bursts: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Return how good what is said of bursts is, by what is named."""
    longer, slowed = pl.col("true_delay_s"), pl.col("is_slowed")
    is_held = longer.is_between("low_s", "high_s")
    return bursts.group_by(names, maintain_order=True).agg(
        burst_count=pl.len(),
        lost_s=longer.clip(0).sum(),
        slowed_count=slowed.sum(),
        right=(longer.filter(slowed) > HURT_S).mean(),
        clear_count=(longer > CLEAR_S).sum(),
        found=slowed.filter(longer > CLEAR_S).mean(),
        of_lost=longer.filter(slowed).clip(0).sum() / longer.clip(0).sum(),
        held=is_held.mean(),
        held_hurt=is_held.filter(slowed).mean(),
        there=pl.col("is_there").mean(),
    )

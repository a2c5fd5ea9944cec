"""Simulate sites, extract signatures, attribute the traffic by every method (way), and compare with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from iosig.studies import sites as sites_module
from iosig.studies.attribution.slowdowns import evaluate_slowdowns
from iosig.studies.attribution.ways import WAYS, select_known_jobs
from iosig.studies.sites import (
    FAMILIES,
    LEVELS,
    MINUTE_S,
    SiteTraffic,
    extract_site_signatures,
    observe_site,
    simulate_site,
)
from iosig.studies.study import SeedParams
from iosig.studies.work_items import ReportProgress, ignore_progress, map_work_items
from iosig.transforms.arrays import Bools, Reals

#: minutes with a lower rate are not evaluated [B/s]
MIN_BYTES_PER_S = 1e9
#: jobs with fewer bytes are left out of the relative errors [B]
MIN_BYTES = 1e9
_TOP = 3


#: number of sites per family and level, and seeds
StudyParams = SeedParams


@dataclass(frozen=True, slots=True)
class Results:
    """Attribution scores per site and job, and slowdown estimates per burst.

    sites: bytes and numbers of minutes, one row per site, direction and way. jobs: moved and attributed bytes, one row
    per way and job that belongs to an application with a signature and moved MIN_BYTES or more. bursts: see
    `evaluate_slowdowns`.
    """

    params: StudyParams
    sites: pl.DataFrame
    jobs: pl.DataFrame
    bursts: pl.DataFrame


def study(params: StudyParams, report_progress: ReportProgress = ignore_progress) -> Results:
    """Simulate and evaluate all sites."""
    items = list(product(FAMILIES, LEVELS, params.seeds))
    results = map_work_items(evaluate_site, items, params.worker_count, report_progress)
    sites, jobs, bursts = (pl.concat(frames) for frames in zip(*results, strict=True))
    return Results(params, sites, jobs, bursts)


def evaluate_site(item: tuple[str, str, int]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the scores of all ways on one site: rows of `sites`, `jobs` and `bursts`."""
    family, level, seed = item
    key = {"family": family, "level": level, "seed": seed}
    sites, jobs = [], []
    site = simulate_site(family, level, seed, sites_module.DAYS)
    directions = observe_site(site)
    signatures = {direction: extract_site_signatures(traffic) for direction, traffic in directions.items()}
    for direction, traffic in directions.items():
        known_signatures = signatures[direction]
        is_known = select_known_jobs(traffic.logged, known_signatures)
        for way, (_, attribute) in WAYS.items():
            attributed_bytes = attribute(traffic, known_signatures)
            labels = key | {"direction": direction, "way": way}
            sites.append(labels | compare_with_truth(traffic, attributed_bytes, is_known))
            jobs.append(
                _select_job_bytes(traffic, attributed_bytes, is_known).with_columns(
                    pl.lit(value).alias(name) for name, value in labels.items()
                )
            )
    bursts = evaluate_slowdowns(site, directions, signatures).with_columns(
        pl.lit(value).alias(name) for name, value in key.items()
    )
    return pl.DataFrame(sites), pl.concat(jobs), bursts


def compare_with_truth(traffic: SiteTraffic, attributed_bytes: Reals, is_known: Bools) -> dict[str, float]:
    """Compare attributed bytes (jobs, minutes) with the truth; return the columns of `Results.sites`."""
    truth = traffic.truth_bytes
    right = np.minimum(truth, attributed_bytes)
    hits, known_hits, minute_count, known_minute_count = _count_top_minutes(traffic, attributed_bytes, is_known)
    return {
        "measured_bytes": float(traffic.traffic_bytes.sum()),
        "job_bytes": float(truth.sum()),
        "known_bytes": float(truth[is_known].sum()),
        "known_right_bytes": float(right[is_known].sum()),
        "known_given_bytes": float(attributed_bytes[is_known].sum()),
        "other_right_bytes": float(right[~is_known].sum()),
        "other_given_bytes": float(attributed_bytes[~is_known].sum()),
        "hits": hits,
        "asked": minute_count,
        "known_hits": known_hits,
        "known_asked": known_minute_count,
    }


def _count_top_minutes(
    traffic: SiteTraffic, attributed_bytes: Reals, is_known: Bools
) -> tuple[float, float, float, float]:
    """Count minutes with the top job among the first three by attributed bytes, and all evaluated minutes.

    The third and fourth numbers cover only minutes with a top job that has a signature. Ties count with the probability
    that a random order ranks the job among the first three.
    """
    minutes = np.flatnonzero((traffic.minutes_bytes > MIN_BYTES_PER_S * MINUTE_S) & traffic.truth_bytes.any(axis=0))
    if not len(minutes):
        return 0.0, 0.0, 0.0, 0.0
    first = traffic.truth_bytes[:, minutes].argmax(axis=0)
    minute_bytes = attributed_bytes[:, minutes]
    top_bytes = minute_bytes[first, np.arange(len(minutes))]
    larger_count, equal_count = (minute_bytes > top_bytes).sum(axis=0), (minute_bytes == top_bytes).sum(axis=0)
    hit_probability = np.where(top_bytes > 0, np.clip((_TOP - larger_count) / equal_count, 0.0, 1.0), 0.0)
    has_known_top = is_known[first]
    return (
        float(hit_probability.sum()),
        float(hit_probability[has_known_top].sum()),
        float(len(minutes)),
        float(has_known_top.sum()),
    )


def _select_job_bytes(traffic: SiteTraffic, attributed_bytes: Reals, is_known: Bools) -> pl.DataFrame:
    moved = traffic.truth_bytes.sum(axis=1)
    is_selected = is_known & (moved >= MIN_BYTES)
    return pl.DataFrame({"moved_bytes": moved[is_selected], "given_bytes": attributed_bytes[is_selected].sum(axis=1)})

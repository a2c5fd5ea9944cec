"""Simulate sites, infer the classes and periods of all runs by every method (`way`), and simulate a year of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from iosig.studies import sites
from iosig.studies.attribution.ways import select_known_jobs
from iosig.studies.population import PARTS
from iosig.studies.population.ways import WAYS, compute_truth
from iosig.studies.population.year import Year, simulate_year
from iosig.studies.sites import (
    FAMILIES,
    LEVELS,
    Transfers,
    extract_site_signatures,
    observe_site,
    select_logged_jobs,
    simulate_site,
)
from iosig.studies.study import SeedParams
from iosig.studies.work_items import ReportProgress, ignore_progress, map_work_items


@dataclass(frozen=True, slots=True)
class StudyParams(SeedParams):
    """Number of sites per family and level, number of jobs of the simulated year, and the results to compute.

    parts: results to compute, all if empty.
    """

    job_count: int = 6000
    parts: tuple[str, ...] = ()

    def wants(self, part: str) -> bool:
        """Whether a result is to be computed."""
        return part in (self.parts or PARTS)


@dataclass(frozen=True, slots=True)
class Results:
    """Inferred and true class and period of each run.

    runs: one row per direction and way, for each run with a class. Columns: family, level, seed, direction, way; label,
    period_s; true_label, true_period_s; has_signature, expected_correlation: of the run's application; moved_bytes:
    true bytes. year: a year of jobs with planted classes and periods, if it was simulated.
    """

    params: StudyParams
    runs: pl.DataFrame
    year: Year | None = None


def study(params: StudyParams, report_progress: ReportProgress = ignore_progress) -> Results:
    """Simulate and evaluate all sites, and the year."""
    items = list(product(FAMILIES, LEVELS, params.seeds)) if params.wants("sites") else []
    runs = map_work_items(evaluate_site, items, params.worker_count, report_progress)
    year = simulate_year(params.job_count, params.seed) if params.wants("year") else None
    return Results(params, pl.concat(runs) if runs else pl.DataFrame(), year)


def evaluate_site(item: tuple[str, str, int]) -> pl.DataFrame:
    """Infer class and period of the runs of one site by all ways: rows of `runs`."""
    family, level, seed = item
    site = simulate_site(family, level, seed, sites.DAYS)
    jobs = select_logged_jobs(site)
    frames = []
    for direction, traffic in observe_site(site).items():
        signatures, moved = extract_site_signatures(traffic), Transfers.from_site(site, jobs, direction)
        truths = compute_truth(traffic, moved).rows.rename({"label": "true_label", "period_s": "true_period_s"})
        truths = truths.with_columns(
            has_signature=pl.Series(select_known_jobs(traffic.logged, signatures)),
            expected_correlation=signatures.expected_correlation[traffic.logged.application],
            moved_bytes=np.bincount(moved.job, moved.volume_bytes, truths.height),
        ).filter(pl.col("true_label").is_not_null() & pl.Series(traffic.logged.is_complete))
        key = {"family": family, "level": level, "seed": seed, "direction": direction}
        for way, (_, estimate) in WAYS.items():
            rows = truths.join(estimate(traffic, signatures).rows, on="job", how="inner", maintain_order="left").drop(
                "job"
            )
            frames.append(rows.with_columns(pl.lit(value).alias(name) for name, value in (key | {"way": way}).items()))
    return pl.concat(frames)

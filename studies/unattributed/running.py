"""Plant applications, detect patterns, and rank jobs without a signature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from iosig.studies.attribution.running import compare_with_truth
from iosig.studies.attribution.ways import attribute_traffic, distribute_residual, select_known_jobs, share_residual
from iosig.studies.real_day import Day
from iosig.studies.sites import (
    FAMILIES,
    LEVELS,
    SiteSignatures,
    SiteTraffic,
    Transfers,
    extract_site_signatures,
    observe_site,
    select_logged_jobs,
)
from iosig.studies.study import DayParams
from iosig.studies.unattributed import planted, real
from iosig.studies.work_items import ReportProgress, ignore_progress, map_work_items
from iosig.transforms.arrays import Reals

#: knowledge of the logged jobs' bytes: as attributed, exact for jobs with a signature, exact for all
ATTRIBUTED, SIGNED, LOGGED = "as attributed", "jobs with a signature known", "all logged jobs known"


#: number of sites per family and level, seeds, and a real day
StudyParams = DayParams


@dataclass(frozen=True, slots=True)
class Results:
    """Detected patterns, top-3 counts, and the measured day.

    patterns: rows of `planted.match_patterns` by site, direction and knowledge of the background. tops: by way, number
    of minutes above 1 GB/s (`asked`), and of minutes with the top job ranked among the first three (`hits`). days: the
    same for a measured day with decoys, one row per draw. runs: runs of this day with true and likely bytes.
    """

    params: StudyParams
    patterns: pl.DataFrame
    tops: pl.DataFrame
    runs: pl.DataFrame
    days: pl.DataFrame


def study(params: StudyParams, report_progress: ReportProgress = ignore_progress) -> Results:
    """Simulate and evaluate all sites, and the measured day if given."""
    items = list(product(FAMILIES, LEVELS, params.seeds))
    results = map_work_items(evaluate_site, items, params.worker_count, report_progress)
    runs, days = pl.DataFrame(), pl.DataFrame()
    if params.polls is not None and params.log is not None:
        day = Day.read(params.polls, params.log)
        runs, days = (
            real.summarize_real_runs(day),
            real.rank_among_decoys(day, range(params.seed, params.seed + real.DRAWS)),
        )
    patterns, tops = ([result[place] for result in results] for place in (0, 1))
    return Results(params, pl.concat(patterns, how="diagonal_relaxed"), pl.concat(tops), runs, days)


def evaluate_site(item: tuple[str, str, int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Detect patterns and rank jobs on one site: rows of `patterns` and `tops`."""
    family, level, seed = item
    site = planted.draw_site(family, level, seed)
    jobs = select_logged_jobs(site, [planted.UNLOGGED_USER])
    patterns, tops = [], []
    for direction, traffic in observe_site(site, [planted.UNLOGGED_USER]).items():
        key = {"family": family, "level": level, "seed": seed, "direction": direction}
        signatures = extract_site_signatures(traffic)
        attributed_bytes = attribute_traffic(traffic, signatures)
        for name, (residual, step_s) in _compute_residuals(
            traffic, signatures, attributed_bytes, Transfers.from_site(site, jobs, direction)
        ):
            patterns_found = planted.detect_patterns(residual, step_s, traffic.logged)
            patterns += [
                key | {"known": name} | row for row in planted.match_patterns(site, direction, patterns_found, step_s)
            ]
        tops += [
            key | {"way": way} | _count_tops(traffic, signatures, allocation)
            for way, allocation in _allocate(traffic, signatures, attributed_bytes).items()
        ]
    schema = {"is_right": pl.Boolean}
    return pl.DataFrame(patterns, schema_overrides=schema, infer_schema_length=None), pl.DataFrame(tops)


def _compute_residuals(
    traffic: SiteTraffic, signatures: SiteSignatures, attributed_bytes: Reals, moved: Transfers
) -> Iterator[tuple[str, tuple[Reals, float]]]:
    """Yield the residual in steps and the length of a step, with increasing knowledge of the jobs' bytes."""
    is_signed = select_known_jobs(traffic.logged, signatures)
    yield ATTRIBUTED, planted.compute_site_residual(traffic, attributed_bytes)
    yield SIGNED, planted.compute_oracle_residual(traffic, moved, is_signed)
    yield LOGGED, planted.compute_oracle_residual(traffic, moved, np.ones_like(is_signed))


def _allocate(traffic: SiteTraffic, signatures: SiteSignatures, attributed_bytes: Reals) -> dict[str, Reals]:
    """Return the bytes that each way attributes, by job and minute."""
    return {
        "signatures alone": attributed_bytes,
        "rest shared equally": share_residual(traffic, signatures),
        "rest by likely rates": attributed_bytes + distribute_residual(traffic, attributed_bytes),
    }


def _count_tops(traffic: SiteTraffic, signatures: SiteSignatures, attributed_bytes: Reals) -> dict[str, float]:
    scores = compare_with_truth(traffic, attributed_bytes, select_known_jobs(traffic.logged, signatures))
    return {name: scores[name] for name in ("hits", "asked")}

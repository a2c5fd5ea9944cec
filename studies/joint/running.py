"""Simulate sites, extract signatures separately and jointly, and compare them with the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import polars as pl

from iosig.studies.joint import real
from iosig.studies.joint.plain import extract_both
from iosig.studies.joint.sites import FAMILIES, LEVELS, SimulatedSite, draw_site
from iosig.studies.real_day import Day
from iosig.studies.study import DayParams
from iosig.studies.work_items import ReportProgress, ignore_progress, map_work_items
from iosig.transforms.joint.contention import remove_contention
from iosig.transforms.joint.envelope import extract_envelopes
from iosig.transforms.joint.extraction import JointResult
from iosig.transforms.signatures import methods
from iosig.transforms.signatures.bursts import detect_bursts
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.similarity import correlation, cross_correlation, volume_ratio

#: the separate methods of comparison
PLAIN = ("elastic", "robust", "time_normalized", "iosi_filtered", "quantile")
USUAL, JOINT, CHOSEN, ORACLE = "usual", "joint", "chosen", "oracle"
#: upper bound for the given runs: exact gaps, and undisturbed bursts
PACED = "paced"
#: number of random draws of the measured day
DRAWS = 5


#: number of sites per family and level, seeds, and a real day
StudyParams = DayParams


@dataclass(frozen=True, slots=True)
class Results:
    """Scores of signatures per site, application and way (method).

    answers: family, level, seed, application, way, cross_correlation, correlation and volume_ratio (0 without a
    signature), expected_correlation, and for the way `joint` explained_ratio and is_better. days: see
    `real.evaluate_day`.
    """

    params: StudyParams
    answers: pl.DataFrame
    days: pl.DataFrame = field(default_factory=pl.DataFrame)


def study(params: StudyParams, report_progress: ReportProgress = ignore_progress) -> Results:
    """Simulate and evaluate all sites, and the measured day if given."""
    items = list(product(FAMILIES, LEVELS, params.seeds))
    answers = pl.concat(map_work_items(evaluate_site, items, params.worker_count, report_progress))
    return Results(params, answers, evaluate_real_day(params))


def evaluate_real_day(params: StudyParams) -> pl.DataFrame:
    """Evaluate the measured day; returns an empty frame if no day is given."""
    if params.polls is None or params.log is None:
        return pl.DataFrame()
    return real.evaluate_day(Day.read(params.polls, params.log), range(params.seed, params.seed + DRAWS))


def evaluate_site(item: tuple[str, str, int]) -> pl.DataFrame:
    """Score the signatures of all ways on one site."""
    family, level, seed = item
    site = draw_site(FAMILIES[family], level, seed)
    raw = site.shared.cut_samples(site.shared.volume_bytes)
    answers = methods.extract_signatures(site.shared.make_sample_sets(raw), methods=PLAIN)
    plain, expected_correlation, joint = extract_both(site.shared, answers)
    chosen = [
        new if is_new else old for old, new, is_new in zip(plain, joint.signatures, joint.is_accepted, strict=True)
    ]
    clean = site.shared.make_sample_sets(site.own, raw.values - site.own.values)
    oracle = extract_envelopes(remove_contention(clean, site.at_work, site.work_ratio, site.cost), 1)
    paced = [Signature.from_curve(one, detect_bursts(one)) for one in site.paced]
    rows = [
        *(_score_signatures(site, answer.method, answer.signatures, answer.expected_correlation) for answer in answers),
        _score_signatures(site, USUAL, plain, expected_correlation),
        _score_signatures(site, JOINT, joint.signatures, joint.expected_correlation, joint),
        _score_signatures(
            site, CHOSEN, chosen, np.where(joint.is_accepted, joint.expected_correlation, expected_correlation)
        ),
        _score_signatures(site, ORACLE, oracle.signatures, oracle.expected_correlation),
        _score_signatures(site, PACED, paced, np.full(len(paced), np.nan)),
    ]
    labels = {"family": family, "level": level, "seed": seed}
    return pl.concat(rows).select(*(pl.lit(value).alias(name) for name, value in labels.items()), pl.all())


_SCHEMA = {
    "application": pl.String,
    "way": pl.String,
    "cross_correlation": pl.Float64,
    "correlation": pl.Float64,
    "volume_ratio": pl.Float64,
    "expected_correlation": pl.Float64,
    "explained_ratio": pl.Float64,
    "is_better": pl.Boolean,
}


def _score_signatures(
    site: SimulatedSite,
    way: str,
    signatures: Sequence[Signature],
    expected_correlation: Sequence[float] | np.ndarray,
    joint: JointResult | None = None,
) -> pl.DataFrame:
    rows = []
    for place, (application, truth, signature) in enumerate(
        zip(site.applications, site.truths, signatures, strict=True)
    ):
        is_extracted = signature.outcome == "extracted"
        pair = signature.bytes_per_s, truth.bytes_per_s
        rows.append(
            {
                "application": application.name,
                "way": way,
                "cross_correlation": cross_correlation(*pair) if is_extracted else 0.0,
                "correlation": correlation(*pair) if is_extracted else 0.0,
                "volume_ratio": volume_ratio(*pair) if is_extracted else 0.0,
                "expected_correlation": float(expected_correlation[place])
                if is_extracted and math.isfinite(expected_correlation[place])
                else None,
                "explained_ratio": None if joint is None else float(joint.explained_ratio[place]),
                "is_better": None if joint is None else bool(joint.is_accepted[place]),
            }
        )
    return pl.DataFrame(rows, _SCHEMA)

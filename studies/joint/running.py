"""Simulate sites, extract signatures separately and jointly, and compare them with the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import polars as pl

from iosig.studies.joint import real
from iosig.studies.joint.plain import extract_both
from iosig.studies.joint.sites import FAMILIES, LEVELS, draw_site
from iosig.studies.real_day import Day
from iosig.studies.signatures.scores import score_signatures
from iosig.studies.signatures.sites import LabeledSamples
from iosig.studies.study import DayParams
from iosig.studies.work_items import ReportProgress, ignore_progress, map_work_items
from iosig.transforms.arrays import Reals
from iosig.transforms.joint.contention import remove_contention
from iosig.transforms.joint.envelope import extract_envelopes
from iosig.transforms.joint.extraction import JointResult
from iosig.transforms.signatures import methods
from iosig.transforms.signatures.bursts import detect_bursts
from iosig.transforms.signatures.signature import Signature

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
    samples = LabeledSamples(site.applications, site.shared.make_sample_sets(raw))
    answers = methods.extract_signatures(samples.sets, methods=PLAIN)
    plain, expected_correlation, joint = extract_both(site.shared, answers)
    chosen = [
        new if is_new else old for old, new, is_new in zip(plain, joint.signatures, joint.is_accepted, strict=True)
    ]
    clean = site.shared.make_sample_sets(site.own, raw.values - site.own.values)
    oracle = extract_envelopes(remove_contention(clean, site.at_work, site.work_ratio, site.cost), 1)
    paced = [Signature.from_curve(curve, detect_bursts(curve)) for curve in site.paced]
    rows = [
        *(
            _score_signatures(samples, answer.method, answer.signatures, answer.expected_correlation)
            for answer in answers
        ),
        _score_signatures(samples, USUAL, plain, expected_correlation),
        _score_signatures(samples, JOINT, joint.signatures, joint.expected_correlation, joint),
        _score_signatures(
            samples, CHOSEN, chosen, np.where(joint.is_accepted, joint.expected_correlation, expected_correlation)
        ),
        _score_signatures(samples, ORACLE, oracle.signatures, oracle.expected_correlation),
        _score_signatures(samples, PACED, paced, np.full(len(paced), np.nan)),
    ]
    labels = {"family": family, "level": level, "seed": seed}
    return pl.concat(rows).select(*(pl.lit(value).alias(name) for name, value in labels.items()), pl.all())


#: similarities to the truth, 0 without a signature
_SIMILARITIES = ("cross_correlation", "correlation", "volume_ratio")


def _score_signatures(
    samples: LabeledSamples,
    way: str,
    signatures: Sequence[Signature],
    expected_correlation: Sequence[float] | Reals,
    joint: JointResult | None = None,
) -> pl.DataFrame:
    correlations = pl.Series(expected_correlation, dtype=pl.Float64).fill_nan(None)
    return score_signatures(samples, way, signatures).select(
        "application",
        pl.col("method").alias("way"),
        pl.col(_SIMILARITIES).fill_null(0.0),
        expected_correlation=pl.when(outcome="extracted").then(correlations),
        explained_ratio=pl.lit(None, pl.Float64) if joint is None else pl.Series(joint.explained_ratio),
        is_better=pl.lit(None, pl.Boolean) if joint is None else pl.Series(joint.is_accepted),
    )

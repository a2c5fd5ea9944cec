"""The study itself: draws sites, finds signatures plainly and together, and holds them to the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import polars as pl

from iosig.studies.joint import real
from iosig.studies.joint.plain import plainly, usual
from iosig.studies.joint.sites import FAMILIES, LEVELS, Drawn, drawn
from iosig.studies.pieces import Told, nobody, worked
from iosig.studies.real_day import Day
from iosig.studies.study import DayParams
from iosig.transforms.joint.contention import remove_contention
from iosig.transforms.joint.envelope import extract_envelopes
from iosig.transforms.joint.extraction import JointParams, JointResult, extract_jointly
from iosig.transforms.joint.shared_traffic import KnownSignatures
from iosig.transforms.signatures import methods
from iosig.transforms.signatures.bursts import detect_bursts
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.similarity import correlation, cross_correlation, volume_ratio

#: the plain methods that are held against it, and what is published of them if nothing is said
PLAIN = ("elastic", "robust", "time_normalized", "iosi", "quantile")
USUAL, JOINT, CHOSEN, ORACLE = "usual", "joint", "chosen", "oracle"
#: what nobody who has these runs can come nearer than, but by chance: their gaps known exactly, their bursts as alone
PACED = "paced"
#: a real day is drawn so often
DRAWS = 5


#: how much is drawn: sites of each family and level, and a real day
StudyParams = DayParams


@dataclass(frozen=True, slots=True)
class Results:
    """What came of it: a row each site, application and way.

    answers: family, level, seed, application, way, cross_correlation, correlation and volume_ratio (0 where there is no
    signature), expected correlation, and of the way `joint` explained_ratio and is_better. days: what `real.tried` says
    of a real day.
    """

    params: StudyParams
    answers: pl.DataFrame
    days: pl.DataFrame = field(default_factory=pl.DataFrame)


def study(params: StudyParams, told: Told = nobody) -> Results:
    """Draw and judge all sites, and a real day if there is one."""
    pieces = list(product(FAMILIES, LEVELS, params.seeds))
    answers = pl.concat(worked(judged, pieces, params.worker_count, told))
    return Results(params, answers, day_of(params))


def day_of(params: StudyParams) -> pl.DataFrame:
    """Return what comes of a real day, nothing where there is none."""
    if params.polls is None or params.log is None:
        return pl.DataFrame()
    return real.tried(Day.read(params.polls, params.log), range(params.seed, params.seed + DRAWS))


def judged(piece: tuple[str, str, int]) -> pl.DataFrame:
    """Return what all ways make of one site."""
    family, level, seed = piece
    site = drawn(FAMILIES[family], level, seed)
    raw = site.shared.cut_samples(site.shared.volume_bytes)
    answers = methods.extract_signatures(site.shared.make_sample_sets(raw), methods=PLAIN)
    plain, expected_correlation = usual(answers)
    known = KnownSignatures(tuple(one if one.outcome == "extracted" else None for one in plain), expected_correlation)
    found = extract_jointly(site.shared, known, plainly, JointParams())
    both = [new if is_new else old for old, new, is_new in zip(plain, found.signatures, found.is_accepted, strict=True)]
    clean = site.shared.make_sample_sets(site.own, raw.values - site.own.values)
    seen = extract_envelopes(remove_contention(clean, site.at_work, site.work_ratio, site.cost), 1)
    paced = [Signature.from_curve(one, detect_bursts(one)) for one in site.paced]
    rows = [
        *(_rows(site, answer.method, answer.signatures, answer.expected_correlation) for answer in answers),
        _rows(site, USUAL, plain, expected_correlation),
        _rows(site, JOINT, found.signatures, found.expected_correlation, found),
        _rows(site, CHOSEN, both, np.where(found.is_accepted, found.expected_correlation, expected_correlation)),
        _rows(site, ORACLE, seen.signatures, seen.expected_correlation),
        _rows(site, PACED, paced, np.full(len(paced), np.nan)),
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


def _rows(
    site: Drawn,
    way: str,
    signatures: Sequence[Signature],
    expected_correlation: Sequence[float] | np.ndarray,
    found: JointResult | None = None,
) -> pl.DataFrame:
    rows = []
    for place, (application, truth, one) in enumerate(zip(site.applications, site.truths, signatures, strict=True)):
        is_there = one.outcome == "extracted"
        pair = one.bytes_per_s, truth.bytes_per_s
        rows.append(
            {
                "application": application.name,
                "way": way,
                "cross_correlation": cross_correlation(*pair) if is_there else 0.0,
                "correlation": correlation(*pair) if is_there else 0.0,
                "volume_ratio": volume_ratio(*pair) if is_there else 0.0,
                "expected_correlation": float(expected_correlation[place])
                if is_there and math.isfinite(expected_correlation[place])
                else None,
                "explained_ratio": None if found is None else float(found.explained_ratio[place]),
                "is_better": None if found is None else bool(found.is_accepted[place]),
            }
        )
    return pl.DataFrame(rows, _SCHEMA)

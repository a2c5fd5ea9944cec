"""How near signatures come to the truth: a row for each, with IOSI's yardsticks (section 6.3) and ours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from iosig.studies.signatures.methods import LACKING, WARPED
from iosig.studies.signatures.sites import Drawn, Truth
from iosig.transforms.signatures.expected_correlation import PREFERRED_METHODS, RunSummary, select_method
from iosig.transforms.signatures.methods import DEFAULT_METHODS
from iosig.transforms.signatures.outliers import select_typical_runs
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.similarity import correlation, count_burst_errors, cross_correlation, volume_ratio

#: what is told of the answers that are chosen by expected correlation
CHOSEN = "chosen"

SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "application": pl.String,
    "method": pl.String,
    "outcome": pl.String,
    "sample_count": pl.Int64,
    "burst_count": pl.Int64,
    "cross_correlation": pl.Float64,
    "correlation": pl.Float64,
    "volume_ratio": pl.Float64,
    "missed_count": pl.Int64,
    "false_count": pl.Int64,
    "duration_ratio": pl.Float64,
    "expected_correlation": pl.Float64,
    "evidence": pl.List(pl.Float64),
}


def scored(
    drawn: Drawn, method: str, found: Sequence[Signature], judges: Sequence[RunSummary | None] | None = None
) -> pl.DataFrame:
    """Return a row for each application; NULL where there is no signature, whose bursts are all missed.

    judges: of each application's set; without them there is neither expected correlation nor evidence.
    """
    asked = [None] * len(found) if judges is None else judges
    counts = drawn.sets.offsets[1:] - drawn.sets.offsets[:-1]
    rows = [
        {
            "application": application.name,
            "method": method,
            "outcome": one.outcome,
            "sample_count": int(count),
            "burst_count": len(truth.bursts),
            **_yardsticks(one, truth),
            **_judged(one, method, judge),
        }
        for application, count, truth, one, judge in zip(
            drawn.applications, counts, drawn.truths, found, asked, strict=True
        )
    ]
    return pl.DataFrame(rows, SCHEMA).with_columns(pl.selectors.float().fill_nan(None))


def judges_of(drawn: Drawn) -> list[RunSummary | None]:
    """Return the judge of each application's runs."""
    sets = drawn.sets
    is_usual = select_typical_runs(sets.duration_s, sets.offsets)
    edges = sets.offsets.tolist()
    return [
        RunSummary.from_set(sets.get_set(place).select_runs(is_usual[a:b]))
        for place, (a, b) in enumerate(pairwise(edges))
    ]


def with_chosen(answers: pl.DataFrame) -> pl.DataFrame:
    """Return rows of several methods with those of the chosen ones below, as a method of their own.

    Chosen among the methods that are asked if nothing is said; none where no contender is among them.
    """
    asked = answers.filter(pl.col("method").is_in(DEFAULT_METHODS))
    if not set(PREFERRED_METHODS) & set(asked["method"]):
        return answers
    rows = []
    for (_,), own in asked.group_by("application", maintain_order=True):
        trusts = {
            name: math.nan if expected_correlation is None else expected_correlation
            for name, expected_correlation in own.select("method", "expected_correlation").rows()
        }
        rows.append(own.filter(method=select_method(trusts)))
    return pl.concat([answers, pl.concat(rows).with_columns(method=pl.lit(CHOSEN))])


def _judged(found: Signature, method: str, judge: RunSummary | None) -> dict[str, object]:
    if judge is None or found.outcome != "extracted":
        return {}
    # no judge knows that a signature lacks bursts
    asked = WARPED if method == LACKING.name else method
    return {
        "expected_correlation": judge.predict_correlation(found, asked),
        "evidence": judge.compute_features(found, asked).tolist(),
    }


def _yardsticks(found: Signature, truth: Truth) -> dict[str, float | int]:
    if found.outcome != "extracted":
        return {"missed_count": len(truth.bursts), "false_count": 0}
    missed, false = count_burst_errors(found.bursts, truth.bursts)
    return {
        "cross_correlation": cross_correlation(found.bytes_per_s, truth.bytes_per_s),
        "correlation": correlation(found.bytes_per_s, truth.bytes_per_s),
        "volume_ratio": volume_ratio(found.bytes_per_s, truth.bytes_per_s),
        "missed_count": missed,
        "false_count": false,
        "duration_ratio": found.duration_s / len(truth.bytes_per_s),
    }

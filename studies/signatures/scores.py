"""Score signatures: one row for each signature, with the metrics of IOSI (section 6.3) and ours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from iosig.studies.signatures.methods import ELASTIC, LACKING
from iosig.studies.signatures.sites import LabeledSamples, Truth
from iosig.transforms.signatures.expected_correlation import PREFERRED_METHODS, RunSummary, select_method
from iosig.transforms.signatures.methods import DEFAULT_METHODS
from iosig.transforms.signatures.outliers import select_typical_runs
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.similarity import correlation, count_burst_errors, cross_correlation, volume_ratio

#: method name of signatures selected by expected correlation
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


def score_signatures(
    samples: LabeledSamples,
    method: str,
    signatures: Sequence[Signature],
    summaries: Sequence[RunSummary | None] | None = None,
) -> pl.DataFrame:
    """Score one method's signatures; without a signature scores are NULL and all bursts are missed.

    summaries: of each application's runs; None leaves out expected correlation and evidence.
    """
    summaries_or_none = [None] * len(signatures) if summaries is None else summaries
    counts = samples.sets.offsets[1:] - samples.sets.offsets[:-1]
    rows = [
        {
            "application": application.name,
            "method": method,
            "outcome": signature.outcome,
            "sample_count": int(count),
            "burst_count": len(truth.bursts),
            **_compute_metrics(signature, truth),
            **_predict_quality(signature, method, summary),
        }
        for application, count, truth, signature, summary in zip(
            samples.applications, counts, samples.truths, signatures, summaries_or_none, strict=True
        )
    ]
    return pl.DataFrame(rows, SCHEMA).with_columns(pl.selectors.float().fill_nan(None))


def summarize_runs(samples: LabeledSamples) -> list[RunSummary | None]:
    """Summarize each application's typical runs, for the expected correlation."""
    sets = samples.sets
    is_usual = select_typical_runs(sets.duration_s, sets.offsets, sets.is_truncated)
    edges = sets.offsets.tolist()
    return [
        RunSummary.from_set(sets.get_set(place).select_runs(is_usual[a:b]))
        for place, (a, b) in enumerate(pairwise(edges))
    ]


def append_best(answers: pl.DataFrame) -> pl.DataFrame:
    """Append the signatures selected by expected correlation as a separate method.

    They are selected from those of the default methods. Without any preferred method, nothing is appended.
    """
    candidates = answers.filter(pl.col("method").is_in(DEFAULT_METHODS))
    if not set(PREFERRED_METHODS) & set(candidates["method"]):
        return answers
    rows = []
    for (_,), application_rows in candidates.group_by("application", maintain_order=True):
        correlations = {
            name: math.nan if expected_correlation is None else expected_correlation
            for name, expected_correlation in application_rows.select("method", "expected_correlation").rows()
        }
        rows.append(application_rows.filter(method=select_method(correlations)))
    return pl.concat([answers, pl.concat(rows).with_columns(method=pl.lit(CHOSEN))])


def _predict_quality(signature: Signature, method: str, summary: RunSummary | None) -> dict[str, object]:
    if summary is None or signature.outcome != "extracted":
        return {}
    # the expected correlation must not know that bursts were removed
    evaluated_method = ELASTIC if method == LACKING.name else method
    return {
        "expected_correlation": summary.predict_correlation(signature, evaluated_method),
        "evidence": summary.compute_features(signature, evaluated_method).tolist(),
    }


def _compute_metrics(signature: Signature, truth: Truth) -> dict[str, float | int]:
    if signature.outcome != "extracted":
        return {"missed_count": len(truth.bursts), "false_count": 0}
    missed_count, false_count = count_burst_errors(signature.bursts, truth.bursts)
    return {
        "cross_correlation": cross_correlation(signature.bytes_per_s, truth.bytes_per_s),
        "correlation": correlation(signature.bytes_per_s, truth.bytes_per_s),
        "volume_ratio": volume_ratio(signature.bytes_per_s, truth.bytes_per_s),
        "missed_count": missed_count,
        "false_count": false_count,
        "duration_ratio": signature.duration_s / len(truth.bytes_per_s),
    }

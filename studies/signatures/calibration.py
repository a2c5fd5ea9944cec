"""Calibrate the expected correlation by cross-validation over families: evidence against true correlations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from iosig.studies.signatures.methods import ORACLES
from iosig.studies.signatures.scores import CHOSEN
from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.expected_correlation import FEATURES, select_method
from iosig.transforms.signatures.methods import DEFAULT_METHODS

#: weight of the ridge penalty, against collinear evidence [rows]
_RIDGE = 1.0


#: evidence with a non-negative weight; evidence with a non-positive weight
_POSITIVE = (
    "agreement", "smoothed_agreement", "coverage", "run_correlation", "leave_one_out_coverage",
    "leave_one_out_correlation", "split_half_correlation",
)  # fmt: skip
_NEGATIVE = ("missing_ratio", "duration_uncertainty", "interference_ratio")


def fit_weights(evidence: Reals, correlation: Reals) -> Reals:
    """Fit weights of evidence (rows, k) to correlations (rows); returns 1 + k weights, the constant first.

    Ridge regression on standardized evidence (Hoerl and Kennard, 1970, DOI 10.1080/00401706.1970.10488634), with sign
    constraints on evidence that can only count for or only against a signature.
    """
    from scipy.optimize import lsq_linear

    middle, spread = evidence.mean(axis=0), evidence.std(axis=0) + 1e-9
    count = evidence.shape[1]
    rows = np.concatenate([np.ones((len(evidence), 1)), (evidence - middle) / spread], axis=1)
    # the ridge penalty as additional rows with target 0
    shrunk = np.sqrt(_RIDGE) * np.eye(count + 1)[1:]
    low = [-np.inf, *(0.0 if name in _POSITIVE else -np.inf for name in FEATURES)]
    high = [np.inf, *(0.0 if name in _NEGATIVE else np.inf for name in FEATURES)]
    problem = np.concatenate([rows, shrunk]), np.concatenate([correlation, np.zeros(count)])
    solution = lsq_linear(*problem, bounds=(low, high)).x
    slopes = solution[1:] / spread
    return np.concatenate([[solution[0] - slopes @ middle], slopes])


def cross_predict(evidence: Reals, correlation: Reals, family: Sequence[str]) -> Reals:
    """Predict each row's correlation (rows) with weights fitted on all other families."""
    names = np.asarray(family)
    predictions = np.zeros(len(correlation))
    for name in np.unique(names):
        is_held_out = names == name
        if is_held_out.all():
            continue
        weights = fit_weights(evidence[~is_held_out], correlation[~is_held_out])
        predictions[is_held_out] = np.clip(weights[0] + evidence[is_held_out] @ weights[1:], 0.0, 1.0)
    return predictions


# ---- results of the study

#: method name of signatures selected with weights fitted on all other families
HELD_OUT = "held out"
_SET = ("family", "level", "value", "seed", "application")


def cross_validate(answers: pl.DataFrame) -> pl.DataFrame:
    """Add `told`, the correlation predicted with weights of all other families, to rows that have evidence.

    answers: the columns of `running.Results.answers` and `family`. The selected signatures are appended with the method
    `HELD_OUT`; their `told` is NULL without a signature.
    """
    has_evidence = pl.col("evidence").is_not_null() & ~pl.col("method").is_in(
        [CHOSEN, *(oracle.name for oracle in ORACLES)]
    )
    rows = answers.filter(has_evidence)
    if rows.is_empty():
        return rows.with_columns(told=pl.lit(None, pl.Float64))
    predictions = cross_predict(
        np.array(rows["evidence"].to_list()),
        rows["correlation"].fill_null(0.0).clip(0.0).to_numpy(),
        rows["family"].to_list(),
    )
    predicted_rows = rows.with_columns(told=pl.Series(predictions))
    # sets without a prediction are kept: a missing signature counts as one without I/O
    refused = answers.filter(pl.col("evidence").is_null()).with_columns(told=pl.lit(math.nan))
    candidates = pl.concat([predicted_rows, refused]).filter(pl.col("method").is_in(DEFAULT_METHODS))
    selected = []
    for _, candidate_rows in candidates.group_by(_SET, maintain_order=True):
        selected.append(
            candidate_rows.filter(method=select_method(dict(candidate_rows.select("method", "told").rows())))
        )
    return pl.concat(
        [
            predicted_rows,
            *(frame.with_columns(pl.col("told").fill_nan(None), method=pl.lit(HELD_OUT)) for frame in selected),
        ]
    )

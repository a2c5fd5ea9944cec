"""The judge of signatures is calibrated: evidence beside true correlations, on families held out."""

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

#: what keeps weights of evidence small that is nearly the same, in rows
_RIDGE = 1.0


#: what can only speak for a signature, and what only against it: an honest judge holds to that
_FOR = (
    "agreement", "smoothed_agreement", "coverage", "run_correlation", "leave_one_out_coverage",
    "leave_one_out_correlation", "split_half_correlation",
)  # fmt: skip
_AGAINST = ("missing_ratio", "duration_uncertainty", "interference_ratio")


def weights(evidence: Reals, correlation: Reals) -> Reals:
    """Return the weights with which evidence (rows, k) comes nearest to correlations (rows): 1 + k, the constant first.

    Ridge regression on evidence in its standard deviations (Hoerl and Kennard, 1970, DOI
    10.1080/00401706.1970.10488634), bounded where a piece of evidence can speak only one way.
    """
    from scipy.optimize import lsq_linear

    middle, spread = evidence.mean(axis=0), evidence.std(axis=0) + 1e-9
    count = evidence.shape[1]
    rows = np.concatenate([np.ones((len(evidence), 1)), (evidence - middle) / spread], axis=1)
    # small weights are rows of their own that ask for zeros
    shrunk = np.sqrt(_RIDGE) * np.eye(count + 1)[1:]
    low = [-np.inf, *(0.0 if name in _FOR else -np.inf for name in FEATURES)]
    high = [np.inf, *(0.0 if name in _AGAINST else np.inf for name in FEATURES)]
    both = np.concatenate([rows, shrunk]), np.concatenate([correlation, np.zeros(count)])
    found = lsq_linear(*both, bounds=(low, high)).x
    slopes = found[1:] / spread
    return np.concatenate([[found[0] - slopes @ middle], slopes])


def rotated(evidence: Reals, correlation: Reals, family: Sequence[str]) -> Reals:
    """Return what each row would be told (rows) by weights that are made of all other families."""
    names = np.asarray(family)
    told = np.zeros(len(correlation))
    for name in np.unique(names):
        is_held_out = names == name
        if is_held_out.all():
            continue
        found = weights(evidence[~is_held_out], correlation[~is_held_out])
        told[is_held_out] = np.clip(found[0] + evidence[is_held_out] @ found[1:], 0.0, 1.0)
    return told


# ---- of the study's answers

#: what is told of the answers that are chosen by weights made of all other families
HELD_OUT = "held out"
_SET = ("family", "level", "value", "seed", "application")


def held_out(answers: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of families that have evidence, and `told`, predicted by weights of all other families.

    answers: a frame with the columns of `running.Results.answers` and `family`. Below them the rows that are chosen by
    that, with `HELD_OUT` as their method; of these `told` is NULL where there is no signature.
    """
    is_asked = pl.col("evidence").is_not_null() & ~pl.col("method").is_in([CHOSEN, *(one.name for one in ORACLES)])
    rows = answers.filter(is_asked)
    if rows.is_empty():
        return rows.with_columns(told=pl.lit(None, pl.Float64))
    found = rotated(
        np.array(rows["evidence"].to_list()),
        rows["correlation"].fill_null(0.0).clip(0.0).to_numpy(),
        rows["family"].to_list(),
    )
    told = rows.with_columns(told=pl.Series(found))
    # a set of which nothing is told has a row, too: what has no signature counts as one that says that there is no I/O
    refused = answers.filter(pl.col("evidence").is_null()).with_columns(told=pl.lit(math.nan))
    every = pl.concat([told, refused]).filter(pl.col("method").is_in(DEFAULT_METHODS))
    taken = []
    for _, own in every.group_by(_SET, maintain_order=True):
        taken.append(own.filter(method=select_method(dict(own.select("method", "told").rows()))))
    return pl.concat(
        [told, *(one.with_columns(pl.col("told").fill_nan(None), method=pl.lit(HELD_OUT)) for one in taken)]
    )

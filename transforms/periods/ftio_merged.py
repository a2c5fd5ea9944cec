"""Two methods' answers as one: how well the transform's period and the autocorrelation's agree.

FTIO's refined confidence (Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section II-C).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transforms.arrays import Reals
from transforms.periods.answers import Candidates, Detections


@dataclass(frozen=True, slots=True)
class Refined:
    """The merged answer for n signals.

    detections: the transform's periods, confidences and candidates. similarity, refined_confidence (n): c_s and
    (c_d + c_a + c_s) / 3, from 0 to 1; NaN unless periodic, c_s also where the autocorrelation has no answer.
    """

    detections: Detections
    similarity: Reals
    refined_confidence: Reals


def refine(transform: Detections, autocorrelation: Detections) -> Refined:
    """Return the transform's answers with confidences that the autocorrelation refines (section II-C).

    The transform's result is trusted more, and the autocorrelation "used to adjust the confidence": the period, the
    outcome and the candidates stay as they are. Where the autocorrelation finds no period, nothing supports the
    transform's: c_a and c_s count as 0, and c_d / 3 is left. Where the transform finds none there is none to
    refine.
    """
    if transform.signal_count != autocorrelation.signal_count:
        raise ValueError("the two methods' answers are not of the same signals")
    is_both = transform.is_periodic & autocorrelation.is_periodic
    similarity = np.where(is_both, similarities(transform.period_s, autocorrelation.candidates), np.nan)
    parts = [
        transform.confidence,
        np.where(autocorrelation.is_periodic, autocorrelation.confidence, 0.0),
        np.where(is_both, similarity, 0.0),
    ]
    with np.errstate(invalid="ignore"):
        mean = np.clip(np.sum(parts, axis=0) / len(parts), 0.0, 1.0)
    return Refined(transform, similarity, np.where(transform.is_periodic, mean, np.nan))


def similarities(period_s: Reals, candidates: Candidates) -> Reals:
    """Return how alike each period is to the candidates of its signal (n), from 0 to 1; NaN where it has none.

    1 - the coefficient of variation of the candidates' periods and the period itself, all together (section II-C; so
    111.67 s is 97.6 % alike to five candidates about 104.8 s, and 25.73 s 99.7 % to a single one of 25.6 s).
    """
    counts = candidates.counts
    owner = candidates.owner
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        others = 1.0 / candidates.frequency_hz
        # in units of the longest: no square leaves the range of a float
        longest = period_s.astype(np.float64)
        np.maximum.at(longest, owner, others)
        own, others = period_s / longest, others / longest[owner]
        mean = (np.bincount(owner, others, len(counts)) + own) / (counts + 1.0)
        squares = np.bincount(owner, np.square(others - mean[owner]), len(counts)) + np.square(own - mean)
        found = 1.0 - np.sqrt(squares / (counts + 1.0)) / mean
    return np.where(counts > 0, np.clip(found, 0.0, 1.0), np.nan)

"""Usual runs: those of a set that take about as long as most.

A run that stopped early, or began again from a checkpoint, is no sample of the whole application (IOSI, FAST'14,
section 5.1 and its note 1). Local outlier factors miss such runs where several are alike, or where they are nearly
whole; and a single short one that stays would set the length of the whole set, since IOSI's duration correction goes
by the shortest.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class UsualRunParams:
    """Which runs are usual.

    most_shorter_ratio: one that is shorter than most by more is not (ours: noise does not make a run shorter).
    most_longer_ratio: nor is one that is longer by more (section 5.1: after outlier elimination the deviation in
    duration is typically less than 10 %). least_count: where fewer would be left, all are usual (ours). None: no limit.
    """

    most_shorter_ratio: float | None = 0.05
    most_longer_ratio: float | None = 0.1
    least_count: int = 3


def are_usual(duration_s: Reals, offsets: Ints, params: UsualRunParams | None = None) -> Bools:
    """Mark the usual runs of sets.

    Parameters
    ----------
    duration_s : shape (n,), of each run; one that is not known, or not positive, is not usual
    offsets : shape (m + 1,), set i has the runs offsets[i] to offsets[i + 1]

    Returns
    -------
    Bools : shape (n,)

    What most runs of a set take is the half-sample mode of their durations (Bickel and Fruehwirth, 2006,
    doi 10.1016/j.csda.2005.07.011): not the median, since up to a half of a set may be runs that stopped early or
    began again, while noise prolongs whole ones by little.

    """
    chosen = params or UsualRunParams()
    counts = np.diff(offsets)
    usual_s = np.repeat([half_sample_mode(duration_s[a:b]) for a, b in pairwise(offsets)], counts)
    low = 1.0 - chosen.most_shorter_ratio if chosen.most_shorter_ratio is not None else 0.0
    high = 1.0 + chosen.most_longer_ratio if chosen.most_longer_ratio is not None else np.inf
    is_usual = (duration_s > 0) & (duration_s >= low * usual_s) & (duration_s <= high * usual_s)
    owner = np.repeat(np.arange(len(counts)), counts)
    is_enough = np.bincount(owner[is_usual], minlength=len(counts)) >= chosen.least_count
    marked: Bools = is_usual | ~is_enough[owner]
    return marked


def half_sample_mode(values: Reals) -> float:
    """Return the mode of values (n): of the half that lies closest together, again the closest half; NaN for none."""
    ordered = np.sort(values[np.isfinite(values) & (values > 0)])
    if not len(ordered):
        return float("nan")
    while len(ordered) > 2:
        half = (len(ordered) + 1) // 2
        first = int(np.argmin(ordered[half - 1 :] - ordered[: len(ordered) - half + 1]))
        ordered = ordered[first : first + half]
    return float(ordered[0] * 0.5 + ordered[-1] * 0.5)

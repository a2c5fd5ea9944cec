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

from transforms.arrays import Bools, Ints, Reals, owners


@dataclass(frozen=True, slots=True)
class UsualRunParams:
    """Which runs are usual.

    most_shorter_ratio: one that is shorter than most by more is not (ours: noise does not make a run shorter).
    most_longer_ratio: nor is one that is longer by more (section 5.1: after outlier elimination the deviation in
    duration is typically less than 10 %). least_count: where fewer would be left, all are usual (ours). None: no limit.
    least_share: the longest group of alike runs is the usual one, if it has this share of the largest group's runs
    (ours: a run may stop anywhere, and be alike others, but no part of it is longer than all of it).
    """

    most_shorter_ratio: float | None = 0.05
    most_longer_ratio: float | None = 0.1
    least_count: int = 3
    least_share: float = 0.6


def are_usual(duration_s: Reals, offsets: Ints, params: UsualRunParams | None = None) -> Bools:
    """Mark the usual runs of sets.

    Parameters
    ----------
    duration_s : shape (n,), of each run; one that is not known, or not positive, is not usual
    offsets : shape (m + 1,), set i has the runs offsets[i] to offsets[i + 1]

    Returns
    -------
    Bools : shape (n,)

    What most runs of a set take is the median of the longest group that is large enough, a group being the runs that
    are alike one of them. Not the median of all, nor their mode: a half of a set and more may be runs that stopped or
    began again.

    """
    chosen = params or UsualRunParams()
    counts = np.diff(offsets)
    usual_s = np.repeat([usual_duration_s(duration_s[a:b], chosen) for a, b in pairwise(offsets)], counts)
    low, high = _limits(chosen)
    is_usual = (duration_s > 0) & (duration_s >= low * usual_s) & (duration_s <= high * usual_s)
    owner = owners(offsets)
    is_enough = np.bincount(owner[is_usual], minlength=len(counts)) >= chosen.least_count
    marked: Bools = is_usual | ~is_enough[owner]
    return marked


def usual_duration_s(duration_s: Reals, params: UsualRunParams) -> float:
    """Return what most runs (n) of a set take; NaN where no duration is known."""
    known = np.sort(duration_s[np.isfinite(duration_s) & (duration_s > 0)])
    if not len(known):
        return float("nan")
    low, high = _limits(params)
    first, last = np.searchsorted(known, low * known, side="left"), np.searchsorted(known, high * known, side="right")
    alike = last - first
    longest = int(np.flatnonzero(alike >= params.least_share * alike.max())[-1])
    return float(np.median(known[first[longest] : last[longest]]))


def _limits(params: UsualRunParams) -> tuple[float, float]:
    """Return how much shorter and longer than usual a run may be, as factors."""
    low = 1.0 - params.most_shorter_ratio if params.most_shorter_ratio is not None else 0.0
    high = 1.0 + params.most_longer_ratio if params.most_longer_ratio is not None else float("inf")
    return low, high

"""Bursts of what is left: stretches that stand out of the restless surface of what flows always."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transforms.arrays import Ints, Reals
from transforms.signatures.bursts import joined, stretches

#: a burst's profile: how much of it has passed at so many times of its extent
PROFILE_POINTS = 8


@dataclass(frozen=True, slots=True)
class LeftBurstParams:
    """What stands out; the values are ours, chosen on simulated sites (seeds 11 to 13).

    stretch_s: calm stretches of that length tell how restless the surface is. calm_quantile: so calm as this quantile
    of them. rise: a burst rises so many times as high as the surface does in the mean; edge_ratio: and lasts while it
    is above that share of it. most_apart_s: what is less apart is one burst.
    """

    stretch_s: float = 7200.0
    calm_quantile: float = 0.25
    rise: float = 12.0
    edge_ratio: float = 0.25
    most_apart_s: float = 6.0


@dataclass(frozen=True, slots=True)
class LeftBursts:
    """Bursts (n) in order of time: the step with which each begins, the one after its last, and its bytes.

    width (n): how many steps it would take at one rate: the square of its sum over the sum of its squares. profile (n,
    `PROFILE_POINTS`): which share of its bytes has passed at even times of its extent.
    """

    first: Ints
    after: Ints
    volume_bytes: Reals
    width: Reals
    profile: Reals

    def __len__(self) -> int:
        """Return the number of bursts."""
        return len(self.first)


def left_bursts(left_bytes: Reals, interval_s: float, params: LeftBurstParams | None = None) -> LeftBursts:
    """Return the bursts of what is left (bytes in each step, NaN where nothing was measured).

    Bursts beside a gap are left out: nobody knows how much of them is missing.
    """
    params = params or LeftBurstParams()
    level = params.rise * _surface(left_bytes, interval_s, params)
    known = np.nan_to_num(left_bytes)
    if not level > 0:
        level = params.edge_ratio * float(known.max(initial=0.0))
    first, after = joined(*stretches(known > params.edge_ratio * level), params.most_apart_s / interval_s)
    is_gap = np.concatenate([[True], np.isnan(left_bytes), [True]])
    # places in is_gap are one later: the step before a burst, and the one after it
    keeps = ~(is_gap[first] | is_gap[after + 1]) & (_of_each(np.maximum, known, first, after) > level)
    first, after = first[keeps], after[keeps]
    volume = _of_each(np.add, known, first, after)
    squares = _of_each(np.add, known**2, first, after)
    return LeftBursts(first, after, volume, volume**2 / squares, _profiles(known, first, after))


def _surface(left_bytes: Reals, interval_s: float, params: LeftBurstParams) -> float:
    """Return how high the surface is in calm stretches: their medians' low quantile; 0 where none was measured."""
    count = max(1, round(params.stretch_s / interval_s))
    padded = np.full(-(-len(left_bytes) // count) * count, np.nan)
    padded[: len(left_bytes)] = left_bytes
    each = padded.reshape(-1, count)
    is_known = np.isfinite(each).mean(axis=1) > 0.5
    if not is_known.any():
        return 0.0
    return float(np.quantile(np.nanmedian(each[is_known], axis=1), params.calm_quantile))


def _of_each(how: np.ufunc, values: Reals, first: Ints, after: Ints) -> Reals:
    """Return what a ufunc makes of each stretch; stretches do not overlap."""
    if not len(first):
        return np.zeros(0)
    edges = np.stack([first, after], axis=1).ravel()
    found: Reals = how.reduceat(np.append(values, 0.0), edges)[::2]
    return found


def _profiles(values: Reals, first: Ints, after: Ints) -> Reals:
    """Return which share of each stretch has passed at even times of it (stretches, `PROFILE_POINTS`)."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    shares = np.arange(1, PROFILE_POINTS + 1) / (PROFILE_POINTS + 1)
    at = first[:, None] + shares * (after - first)[:, None]
    passed = np.interp(at, np.arange(len(total)), total) - total[first][:, None]
    found: Reals = passed / np.maximum(total[after] - total[first], 1e-300)[:, None]
    return found

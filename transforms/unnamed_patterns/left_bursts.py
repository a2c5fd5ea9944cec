"""Bursts of what is left: stretches that stand out of the restless surface of what flows always."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import maximum_filter1d

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, places_of, rows_of
from iosig.transforms.signatures.bursts import find_true_intervals, merge_intervals

#: a burst's profile: how much of it has passed at so many times of its extent
PROFILE_POINTS = 8


@dataclass(frozen=True, slots=True)
class LeftBurstParams:
    """What stands out; the values are ours, chosen on simulated sites (seeds 11 to 13).

    stretch_s: calm stretches of that length tell how restless the surface is. calm_quantile: so calm as this quantile
    of them. rise: a burst rises so many times as high as the surface does in the mean; edge_ratio: and lasts while it
    is above that share of it, and above own_ratio of the highest step that is so near (near_s): slow transfers beside
    it are no part of it. most_apart_s: what is less apart is one burst. beside_s: what is nowhere above what flows so
    long before and after it, other bursts apart, is none. flank_s: what flows so long beside a burst flows beneath it,
    too, and is not its own (two minutes tell that better than a quarter of one, and than ten; seeds 64 to 67).
    """

    stretch_s: float = 7200.0
    calm_quantile: float = 0.25
    rise: float = 12.0
    edge_ratio: float = 0.25
    own_ratio: float = 0.2
    near_s: float = 60.0
    most_apart_s: float = 6.0
    beside_s: float = 15.0
    flank_s: float = 120.0


@dataclass(frozen=True, slots=True)
class LeftBursts:
    """Bursts (n) in order of time: the step with which each begins, the one after its last, and its bytes.

    inexact_bytes (n): by how much its bytes are inexact: one standard deviation of what flows beneath it. width (n):
    how many steps it would take at one rate: the square of its sum over the sum of its squares. profile (n,
    `PROFILE_POINTS`): which share of its bytes has passed at even times of its extent.
    """

    first: Ints
    after: Ints
    volume_bytes: Reals
    inexact_bytes: Reals
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
    near = 2 * round(params.near_s / interval_s) + 1
    least = np.maximum(params.edge_ratio * level, params.own_ratio * maximum_filter1d(known, near))
    is_in: Bools = known > least
    first, after = merge_intervals(*find_true_intervals(is_in), params.most_apart_s / interval_s)
    is_gap = np.concatenate([[True], np.isnan(left_bytes), [True]])
    # places in is_gap are one later: the step before a burst, and the one after it
    highest, beside = _highest(known, first, after), np.where(is_in, np.nan, left_bytes)
    keeps = ~(is_gap[first] | is_gap[after + 1]) & (highest > level)
    keeps &= highest > _beneath(beside, first, after, max(1, round(params.beside_s / interval_s)))[0]
    first, after = first[keeps], after[keeps]
    return _measured(known, first, after, *_beneath(beside, first, after, max(1, round(params.flank_s / interval_s))))


def _measured(known: Reals, first: Ints, after: Ints, beneath: Reals, spread: Reals) -> LeftBursts:
    """Return bursts with what they have above what flows beneath them, also in the steps in which they begin and end.

    beneath, spread (bursts): bytes a step, and how much they differ. What is nowhere above it is no burst.
    """
    counts = after - first + 2
    values = np.maximum(known[places_of(first - 1, counts)] - np.repeat(beneath, counts), 0.0)
    offsets = offsets_of(counts)
    volume, squares = (_sums(each, offsets) for each in (values, values**2))
    profile = _profiles(values, offsets[:-1] + 1, offsets[1:] - 1)
    width = np.divide(volume**2, squares, out=np.zeros_like(volume), where=squares > 0)
    inexact = spread * np.sqrt(counts)
    return rows_of(LeftBursts(first, after, volume, inexact, width, profile), np.flatnonzero(width > 0))


def _beneath(beside: Reals, first: Ints, after: Ints, count: int) -> tuple[Reals, Reals]:
    """Return what flows beneath bursts: the mean of what flows in so many steps before and after (bursts).

    And the standard deviation of these steps. beside (steps): NaN where that is not told. The step next to a burst is
    not asked: it has a part of it.
    """
    padded = np.concatenate([np.full(count + 1, np.nan), beside, np.full(count + 1, np.nan)])
    ways = np.arange(count)
    sides = np.stack([padded[first[:, None] + ways], padded[after[:, None] + count + 2 + ways]])
    is_told = np.isfinite(sides)
    there = is_told.sum(axis=2)
    means = np.divide(np.where(is_told, sides, 0.0).sum(axis=2), there, out=np.zeros(there.shape), where=there > 0)
    found: Reals = means.sum(axis=0) / np.maximum((there > 0).sum(axis=0), 1)
    differ = np.where(is_told, sides - found[:, None], 0.0)
    spread: Reals = np.sqrt((differ**2).sum(axis=(0, 2)) / np.maximum(there.sum(axis=0) - 1, 1))
    return found, spread


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


def _highest(values: Reals, first: Ints, after: Ints) -> Reals:
    """Return the highest value of each stretch; stretches do not overlap."""
    if not len(first):
        return np.zeros(0)
    edges = np.stack([first, after], axis=1).ravel()
    found: Reals = np.maximum.reduceat(np.append(values, 0.0), edges)[::2]
    return found


def _sums(values: Reals, offsets: Ints) -> Reals:
    """Return the sum of each stretch: those that follow one another, none of them empty."""
    return np.add.reduceat(values, offsets[:-1]) if len(values) else np.zeros(0)


def _profiles(values: Reals, first: Ints, after: Ints) -> Reals:
    """Return which share of each stretch has passed at even times of it (stretches, `PROFILE_POINTS`)."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    shares = np.arange(1, PROFILE_POINTS + 1) / (PROFILE_POINTS + 1)
    at = first[:, None] + shares * (after - first)[:, None]
    passed = np.interp(at, np.arange(len(total)), total) - total[first][:, None]
    found: Reals = passed / np.maximum(total[after] - total[first], 1e-300)[:, None]
    return found

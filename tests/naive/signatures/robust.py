"""Naive implementations for `iosig.transforms.signatures.robust`: alignment step by step, quantiles point by point."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.naive.signatures.robust_alignment import total_until


def warped(
    rates: Sequence[float],
    begun_s: Sequence[float],
    alone_s: Sequence[float],
    step_s: float,
    step_count: int,
    lead_s: float,
) -> list[float]:
    """Rates of a run whose bursts, each with its following gap, are shifted to their times without interference.

    Rates before the first burst are shifted with it; each later burst includes a short lead before it.
    """
    result = []
    for step in range(step_count):
        burst = 0
        for place, alone in enumerate(alone_s):
            if alone - lead_s <= step * step_s:
                burst = place
        left = step * step_s + begun_s[burst] - alone_s[burst]
        until, before = total_until(rates, (left + step_s) / step_s), total_until(rates, left / step_s)
        result.append(until - before)
    return result


def weighted_quantile(values: Sequence[float], weights: Sequence[float], level: float) -> float:
    """Weighted quantile: each value is at the middle of its weight, with linear interpolation."""
    together = zip(values, range(len(values)), weights, strict=True)
    known = sorted((value, row, weight) for value, row, weight in together if weight > 0)
    if not known:
        return math.nan
    places, passed = [], 0.0
    for _, _, weight in known:
        places.append(passed + weight / 2)
        passed += weight
    target = places[0] + level * (places[-1] - places[0])
    for before in range(len(known) - 1):
        if target <= places[before + 1]:
            share = (target - places[before]) / (places[before + 1] - places[before])
            return known[before][0] * (1 - share) + known[before + 1][0] * share
    return known[-1][0]

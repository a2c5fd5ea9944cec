"""The slow twin of `transforms.signatures.envelopes`: one point after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence


def weighted_quantile(values: Sequence[float], weights: Sequence[float], level: float) -> float:
    """The quantile of values: each stands in the middle of its weight, and between them it is linear."""
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

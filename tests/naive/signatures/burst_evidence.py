"""The naive twin of `iosig.transforms.signatures.burst_evidence`: one run, one rate, one time after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence


def shares(
    others: Sequence[Sequence[int]], run: int, count: int, bins: int, pooled: float, least: float
) -> list[float]:
    """How probable each bin of a run's rates is by others alone: by what is told of it, and a little of all runs."""
    every = [rate for row in others for rate in row if rate < bins]
    own = [rate for rate in others[run] if rate < bins]
    found = []
    for place in range(bins):
        of_all = every.count(place) / max(1, len(every))
        share = (own.count(place) + pooled * count * of_all) / (len(own) + pooled * count)
        found.append((1 - least) * share + least / bins)
    return found


def among(alone: Sequence[float], own: int, slowed: float, decay: float) -> list[float]:
    """How probable each bin is among a burst of a rate that may be slowed: others' rates, moved by it."""
    most = max(1, round(slowed * own)) if own else 0
    weights = [decay**less for less in range(most + 1)]
    found = [0.0] * len(alone)
    for other, share in enumerate(alone):
        for less, weight in enumerate(weights):
            found[min(max(other + own - less, 0), len(alone) - 1)] += share * weight / sum(weights)
    return found


def likelier(
    alone: Sequence[Sequence[float]], rates: Sequence[int], own: int, lack: float, rule: tuple[float, float]
) -> float:
    """How much likelier all runs' rates at one time are with a burst than without, a logarithm."""
    total = 0.0
    for shares_of_run, rate in zip(alone, rates, strict=True):
        if rate < len(shares_of_run):
            with_burst = (1 - lack) * among(shares_of_run, own, *rule)[rate] + lack * shares_of_run[rate]
            none = among(shares_of_run, 0, *rule)[rate]
            total += math.log(with_burst / ((1 - lack) * none + lack * shares_of_run[rate]))
    return total

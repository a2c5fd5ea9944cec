"""Naive implementation of `iosig.transforms.signatures.burst_evidence`: run by run, rate by rate."""

from __future__ import annotations

import math
from collections.abc import Sequence


def background_distribution(
    background: Sequence[Sequence[int]], run: int, count: int, bins: int, pooled: float, floor: float
) -> list[float]:
    """Background distribution of a run: its histogram shrunk toward the pooled one, with a floor."""
    pooled_rates = [rate for row in background for rate in row if rate < bins]
    own = [rate for rate in background[run] if rate < bins]
    result = []
    for place in range(bins):
        of_all = pooled_rates.count(place) / max(1, len(pooled_rates))
        share = (own.count(place) + pooled * count * of_all) / (len(own) + pooled * count)
        result.append((1 - floor) * share + floor / bins)
    return result


def burst_distribution(alone: Sequence[float], own: int, slowed: float, decay: float) -> list[float]:
    """Rate distribution during a burst that may be slowed: the background, shifted by the burst."""
    most = max(1, round(slowed * own)) if own else 0
    weights = [decay**less for less in range(most + 1)]
    result = [0.0] * len(alone)
    for other, share in enumerate(alone):
        for less, weight in enumerate(weights):
            result[min(max(other + own - less, 0), len(alone) - 1)] += share * weight / sum(weights)
    return result


def log_likelihood_ratio(
    alone: Sequence[Sequence[float]], rates: Sequence[int], own: int, miss_probability: float, rule: tuple[float, float]
) -> float:
    """Log-likelihood ratio of a burst against no burst, for the rates of all runs at one time."""
    total = 0.0
    for distribution, rate in zip(alone, rates, strict=True):
        if rate < len(distribution):
            with_burst = (1 - miss_probability) * burst_distribution(distribution, own, *rule)[
                rate
            ] + miss_probability * distribution[rate]
            none = burst_distribution(distribution, 0, *rule)[rate]
            total += math.log(with_burst / ((1 - miss_probability) * none + miss_probability * distribution[rate]))
    return total

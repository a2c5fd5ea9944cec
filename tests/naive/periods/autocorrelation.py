"""Naive implementation of `iosig.transforms.periods.autocorrelation`: a loop over lags, pairs of samples, peaks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise


def list_lag_pairs(count: int, lag: int, *, is_circular: bool) -> list[tuple[int, int]]:
    """Positions of pairs of samples that are a lag apart."""
    if is_circular:
        return [(place, (place + lag) % count) for place in range(count)]
    return [(place, place + lag) for place in range(count - lag)]


def correlate(values: Sequence[float], *, is_circular: bool = False) -> list[float]:
    """Mean product of deviations of known samples at each lag, divided by their variance.

    Weighted by the share of pairs of a lag among all samples; NaN if no pair is known.
    """
    known = [value for value in values if not math.isnan(value)]
    mean = math.fsum(known) / len(known)
    variance = math.fsum((value - mean) ** 2 for value in known) / len(known)
    result = []
    for lag in range(len(values)):
        places = list_lag_pairs(len(values), lag, is_circular=is_circular)
        products = [(values[left] - mean) * (values[right] - mean) for left, right in places]
        products = [product for product in products if not math.isnan(product)]
        weight = len(places) / len(values)
        result.append(weight * math.fsum(products) / len(products) / variance if products else math.nan)
    return result


def select_distances(places: Sequence[int], heights: Sequence[float], max_z: float) -> list[int]:
    """Distances between consecutive peaks within `max_z` weighted standard deviations of their weighted mean."""
    distances = [right - left for left, right in pairwise(places)]
    weights = [min(left, right) for left, right in pairwise(heights)]
    total = sum(weights)
    mean = sum(weight * distance for weight, distance in zip(weights, distances, strict=True)) / total
    variance = sum(w * (distance - mean) ** 2 for w, distance in zip(weights, distances, strict=True)) / total
    return [distance for distance in distances if abs(distance - mean) <= max_z * math.sqrt(variance) + 1e-9]

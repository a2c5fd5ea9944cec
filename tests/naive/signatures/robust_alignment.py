"""Naive implementation of `iosig.transforms.signatures.robust_alignment`: run by run, burst by burst."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product


def at(rates: Sequence[float], step: int) -> float:
    """Rate of a run in a step; 0 outside of the run."""
    return rates[step] if 0 <= step < len(rates) else 0.0


def fit(rates: Sequence[float], begin: int, length: int, height: float, margin: int, excess_weight: float) -> float:
    """Fit of a burst at a place: 1 if the run contains all of it, and no bytes next to it."""
    inside = sum(min(at(rates, step), height) for step in range(begin, begin + length))
    over = sum(min(at(rates, step), 2 * height) for step in range(begin, begin + length)) - inside
    before = sum(min(at(rates, step), height) for step in range(begin - margin, begin))
    after = sum(min(at(rates, step), height) for step in range(begin + length, begin + length + margin))
    return (inside - excess_weight * (over + before + after)) / (height * length)


def rise(rates: Sequence[float], begin: int, height: float, reach: int) -> float:
    """Volume in the steps after a place minus the volume before it; 1 for a step from 0 to the height."""
    after = sum(min(at(rates, step), height) for step in range(begin, begin + reach))
    before = sum(min(at(rates, step), height) for step in range(begin - reach, begin))
    return (after - before) / (height * reach)


def path_score(
    scores: Sequence[Sequence[float]],
    offsets: Sequence[int],
    path: Sequence[int],
    later: Sequence[float],
    earlier: Sequence[float],
) -> float:
    """Total score of a path minus the cost of its changes; paths start at an offset of 0."""
    total, before = 0.0, 0
    for burst, place in enumerate(path):
        change = offsets[place] - before
        total += scores[burst][place] - (later[burst] * change if change > 0 else -earlier[burst] * change)
        before = offsets[place]
    return total


def best_score(
    scores: Sequence[Sequence[float]], offsets: Sequence[int], later: Sequence[float], earlier: Sequence[float]
) -> float:
    """Highest score over all paths."""
    paths = product(range(len(offsets)), repeat=len(scores))
    return max(path_score(scores, offsets, path, later, earlier) for path in paths)


def total_until(rates: Sequence[float], place: float) -> float:
    """Volume up to a fractional step."""
    whole = [rate * min(1.0, max(0.0, place - step)) for step, rate in enumerate(rates)]
    return sum(whole)

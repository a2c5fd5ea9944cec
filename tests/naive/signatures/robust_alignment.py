"""The naive twin of `iosig.transforms.signatures.robust_alignment`: one run, one burst, one place after the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product


def at(rates: Sequence[float], step: int) -> float:
    """A run's rate in a step; nothing before and after the run."""
    return rates[step] if 0 <= step < len(rates) else 0.0


def fit(rates: Sequence[float], begin: int, length: int, height: float, margin: int, excess_weight: float) -> float:
    """How well a burst of a height and a length fits at a place: 1 if all is there, and nothing beside it."""
    inside = sum(min(at(rates, step), height) for step in range(begin, begin + length))
    over = sum(min(at(rates, step), 2 * height) for step in range(begin, begin + length)) - inside
    before = sum(min(at(rates, step), height) for step in range(begin - margin, begin))
    after = sum(min(at(rates, step), height) for step in range(begin + length, begin + length + margin))
    return (inside - excess_weight * (over + before + after)) / (height * length)


def rise(rates: Sequence[float], begin: int, height: float, reach: int) -> float:
    """What is moved in some steps after a place more than in as many before it, 1 if from nothing to the height."""
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
    """The scores along a path, less what its changes cost; it begins at an offset of 0."""
    total, before = 0.0, 0
    for burst, place in enumerate(path):
        change = offsets[place] - before
        total += scores[burst][place] - (later[burst] * change if change > 0 else -earlier[burst] * change)
        before = offsets[place]
    return total


def best_score(
    scores: Sequence[Sequence[float]], offsets: Sequence[int], later: Sequence[float], earlier: Sequence[float]
) -> float:
    """The highest score of all paths there are."""
    paths = product(range(len(offsets)), repeat=len(scores))
    return max(path_score(scores, offsets, path, later, earlier) for path in paths)


def total_until(rates: Sequence[float], place: float) -> float:
    """What is moved until a fraction of steps."""
    whole = [rate * min(1.0, max(0.0, place - step)) for step, rate in enumerate(rates)]
    return sum(whole)

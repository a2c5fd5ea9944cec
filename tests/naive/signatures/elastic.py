"""Naive implementation of `iosig.transforms.signatures.elastic`: run by run, block by block, shift by shift."""

from __future__ import annotations

from collections.abc import Sequence


def at(rates: Sequence[float], step: int) -> float:
    """Rate of a run in a step; 0 outside of the run."""
    return rates[step] if 0 <= step < len(rates) else 0.0


def overlap(
    rates: Sequence[float], common: Sequence[float], block: int, length: int, shift: int, excess_cost: float
) -> float:
    """Score of a block of the common curve against a shifted run: minus missing bytes, minus weighted excess."""
    total = 0.0
    for step in range(block * length, min((block + 1) * length, len(common))):
        over = at(rates, step + shift) - common[step]
        total -= -over if over < 0 else excess_cost * over
    return total


def best_score(scores: Sequence[Sequence[float]], change_cost: float) -> float:
    """Highest total score (blocks, shifts) of a path minus the cost of its changes; paths start at the middle shift."""
    middle = len(scores[0]) // 2
    worth = [score - change_cost * abs(place - middle) for place, score in enumerate(scores[0])]
    for row in scores[1:]:
        worth = [
            score + max(before - change_cost * abs(place - other) for other, before in enumerate(worth))
            for place, score in enumerate(row)
        ]
    return max(worth)


def score_path(scores: Sequence[Sequence[float]], path: Sequence[int], change_cost: float) -> float:
    """Total score of a path minus the cost of its changes."""
    total, before = 0.0, len(scores[0]) // 2
    for row, place in zip(scores, path, strict=True):
        total += row[place] - change_cost * abs(place - before)
        before = place
    return total

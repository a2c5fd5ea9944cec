"""The naive twin of `iosig.transforms.signatures.elastic`: one run, one block, one shift after the other."""

from __future__ import annotations

from collections.abc import Sequence


def at(rates: Sequence[float], step: int) -> float:
    """A run's rate in a step; nothing before and after the run."""
    return rates[step] if 0 <= step < len(rates) else 0.0


def overlap(
    rates: Sequence[float], common: Sequence[float], block: int, length: int, shift: int, excess_cost: float
) -> float:
    """How well a block of what is common overlaps with a run that is later by a shift: what is lacking, and excess."""
    total = 0.0
    for step in range(block * length, min((block + 1) * length, len(common))):
        over = at(rates, step + shift) - common[step]
        total -= -over if over < 0 else excess_cost * over
    return total


def best_worth(scores: Sequence[Sequence[float]], change_cost: float) -> float:
    """The highest sum of scores (blocks, shifts) along a path, less what its changes cost; it begins in the middle."""
    middle = len(scores[0]) // 2
    worth = [score - change_cost * abs(place - middle) for place, score in enumerate(scores[0])]
    for row in scores[1:]:
        worth = [
            score + max(before - change_cost * abs(place - other) for other, before in enumerate(worth))
            for place, score in enumerate(row)
        ]
    return max(worth)


def worth_of(scores: Sequence[Sequence[float]], path: Sequence[int], change_cost: float) -> float:
    """The sum of scores along one path, less what its changes cost."""
    total, before = 0.0, len(scores[0]) // 2
    for row, place in zip(scores, path, strict=True):
        total += row[place] - change_cost * abs(place - before)
        before = place
    return total

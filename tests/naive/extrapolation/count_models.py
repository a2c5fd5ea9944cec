"""Naive implementation of `iosig.transforms.extrapolation.count_models`: every k in a range is tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence

FORMULAS: dict[str, Callable[[int, int], int]] = {
    "floor": lambda k, n: k // n,
    "ceil": lambda k, n: -(-k // n),
    "floor times n": lambda k, n: n * (k // n),
    "ceil times n": lambda k, n: n * -(-k // n),
}


def parameters(points: Sequence[tuple[int, int]], formula: str, scale: int, most: int) -> list[int]:
    """Return every k up to `most` for which a formula, multiplied by `scale`, gives all points."""
    of = FORMULAS[formula]
    return [k for k in range(-most, most + 1) if all(scale * of(k, n) == value for n, value in points)]

"""The obvious slow twin of `transforms.arrays`: one slice after the other."""

from __future__ import annotations

from collections.abc import Sequence


def cut(series: Sequence[float], first: Sequence[int], last: Sequence[int]) -> list[list[float]]:
    """Return the pieces, each from its first to its last index, both included."""
    pieces = []
    for begin, end in zip(first, last, strict=True):
        piece = []
        for index in range(begin, end + 1):
            if not 0 <= index < len(series):
                raise IndexError(index)
            piece.append(series[index])
        pieces.append(piece)
    return pieces

"""The naive twin of `iosig.transforms.arrays`: one piece after the other."""

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


def offsets(counts: Sequence[int]) -> list[int]:
    """Return where each piece begins, and where the last one ends."""
    found = [0]
    for count in counts:
        found.append(found[-1] + count)
    return found


def rows(counts: Sequence[int]) -> list[tuple[int, int]]:
    """Return the piece of each row, and its place in it."""
    return [(owner, place) for owner, count in enumerate(counts) for place in range(count)]

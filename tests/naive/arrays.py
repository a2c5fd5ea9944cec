"""Naive implementation of `iosig.transforms.arrays`: a Python loop over pieces."""

from __future__ import annotations

from collections.abc import Sequence


def cut(series: Sequence[float], first: Sequence[int], last: Sequence[int]) -> list[list[float]]:
    """Slices of a series at inclusive bounds."""
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
    """Cumulative counts with a leading 0."""
    result = [0]
    for count in counts:
        result.append(result[-1] + count)
    return result


def rows(counts: Sequence[int]) -> list[tuple[int, int]]:
    """Piece index of each row, and the index of the row within the piece."""
    return [(owner, place) for owner, count in enumerate(counts) for place in range(count)]

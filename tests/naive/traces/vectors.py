"""Naive implementation of `iosig.transforms.traces.vectors`: stretches and shares are expanded number by number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from iosig.transforms.traces.progressions import NumberList, Stretch
from iosig.transforms.traces.trace import Vector


def numbers(stretch: Stretch) -> list[int]:
    """Return the numbers of a stretch by nested loops, with the last dimension innermost."""
    firsts = list(stretch.numbers) if isinstance(stretch, NumberList) else [stretch.start]

    def below(level: int, base: int) -> list[int]:
        if level == len(stretch.counts):
            return [base + first for first in firsts]
        found: list[int] = []
        for index in range(stretch.counts[level]):
            found += below(level + 1, base + stretch.strides[level] * index)
        return found

    return below(0, 0)


def row(stretches: Sequence[Stretch]) -> list[int]:
    """Return the numbers of a row."""
    found: list[int] = []
    for stretch in stretches:
        found += numbers(stretch)
    return found


def table(vector: Vector) -> dict[int, list[int]]:
    """Return the values of each rank; no rank is in two shares."""
    found: dict[int, list[int]] = {}
    for share in vector:
        first, shifts = row(share.values), [row(shift) for shift in share.shifts]
        for index in product(*(range(count) for count in share.ranks.counts)):
            rank, own = share.ranks.start, list(first)
            for stride, shift, step in zip(share.ranks.strides, shifts, index, strict=True):
                rank += stride * step
                own = [value + step * more for value, more in zip(own, shift, strict=True)]
            assert rank not in found
            found[rank] = own
    return found

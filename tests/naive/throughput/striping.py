"""Naive implementation of `iosig.transforms.throughput.striping`: byte by byte."""

from __future__ import annotations

from collections.abc import Sequence


def pieces(offset: int, length: int, stripe_bytes: int, osts: Sequence[int]) -> list[tuple[int, int, int]]:
    """Pieces of a request: offset, length, target."""
    found: list[tuple[int, int, int]] = []
    for byte in range(offset, offset + length):
        target = osts[byte // stripe_bytes % len(osts)]
        if found and byte % stripe_bytes:
            start, size, _ = found[-1]
            found[-1] = (start, size + 1, target)
        else:
            found.append((byte, 1, target))
    return found

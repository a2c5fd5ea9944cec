"""Naive implementations of `iosig.warehouse.sources.rows.counters`: reading by reading."""

from __future__ import annotations

import math
from collections.abc import Sequence


def polled(values: Sequence[int]) -> list[str | None]:
    """Flags of the counter of a server."""
    flags: list[str | None] = []
    fell_from: float = math.inf
    fell_to = 0
    for index, value in enumerate(values):
        flag = None
        if index:
            before = values[index - 1]
            if value < before:
                flag = "reset" if value < values[0] else "decrease"
                fell_from, fell_to = before, value
            elif before < fell_from <= value and value - before > before - fell_to:
                flag = "decrease"
        flags.append(flag)
    return flags


def segments(values: Sequence[float]) -> list[list[float]]:
    """Readings up to each reset, which is a value below all previous readings."""
    parts: list[list[float]] = []
    for value in values:
        if not parts or value < min(parts[-1]):
            parts.append([])
        parts[-1].append(value)
    return parts


def confirmed(values: Sequence[float]) -> list[tuple[float, str | None]]:
    """Confirmed increase and flag of each reading of a counter that may decrease."""
    found: list[tuple[float, str | None]] = []
    for number, part in enumerate(segments(values)):
        for index, value in enumerate(part):
            if index == 0:
                found.append((0, "reset" if number else None))
                continue
            rise = min(part[index:]) - min(part[index - 1 :])
            found.append((rise, None if rise == value - part[index - 1] else "retracted"))
    return found

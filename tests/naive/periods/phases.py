"""The naive twin of `iosig.transforms.periods.phases`: one signal, sample after sample, with the default parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

#: first sample, and the sample after the last
Run = tuple[int, int]


def runs_above_mean(values: Sequence[float]) -> list[Run]:
    """Stretches of samples above the mean of those that were measured."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return []
    mean = sum(known) / len(known)
    found: list[Run] = []
    for place, value in enumerate(values):
        if not value > mean * (1 + 1e-9):
            continue
        if found and found[-1][1] == place:
            found[-1] = (found[-1][0], place + 1)
        else:
            found.append((place, place + 1))
    return found


def _merged(runs: Sequence[Run], is_bridged: Sequence[bool]) -> list[Run]:
    found = [runs[0]]
    for run, bridged in zip(runs[1:], is_bridged, strict=True):
        if bridged:
            found[-1] = (found[-1][0], run[1])
        else:
            found.append(run)
    return found


def parting_gap(pauses: Sequence[int], count: int, cycle: float) -> float:
    """Maximum gap within a phase, in samples. cycle: known period in samples, or NaN."""
    if not math.isnan(cycle):
        return cycle / 16
    if sum(pauses) < 0.1 * count or not pauses:
        return math.inf
    total = 0
    for pause in sorted(pauses):
        total += pause
        if total > sum(pauses) / 2:
            return pause / 12
    raise AssertionError("half of a sum is reached")


def phases(values: Sequence[float], cycle: float) -> list[tuple[int, int, float, bool, bool]]:
    """First sample, sample after the last, sum in between, whether the phase is open, whether it is cut."""
    runs = runs_above_mean(values)
    if not runs:
        return []
    moved = [0.0 if math.isnan(value) else value for value in values]
    mean = sum(moved) / sum(not math.isnan(value) for value in values)
    pauses = [(left[1], right[0]) for left, right in pairwise(runs)]
    runs = _merged(runs, [sum(moved[low:high]) >= 0.5 * mean * (high - low) for low, high in pauses])
    lengths = [right[0] - left[1] for left, right in pairwise(runs)]
    gap = parting_gap(lengths, len(values), cycle)
    runs = _merged(runs, [length <= gap for length in lengths])
    quiet = 0.1 * len(values) if math.isinf(gap) else gap
    return [
        (
            low,
            high,
            sum(moved[low:high]),
            number == len(runs) - 1 and len(values) - high <= quiet,
            all(math.isnan(value) for value in values[:low]),
        )
        for number, (low, high) in enumerate(runs)
    ]

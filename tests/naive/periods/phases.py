"""Naive implementation of `iosig.transforms.periods.phases`: sample by sample, with the default parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

#: First sample, and the sample after the last.
Run = tuple[int, int]


def find_runs_above_mean(values: Sequence[float]) -> list[Run]:
    """Runs of samples above the mean of all measured samples."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return []
    mean = sum(known) / len(known)
    result: list[Run] = []
    for place, value in enumerate(values):
        if not value > mean * (1 + 1e-9):
            continue
        if result and result[-1][1] == place:
            result[-1] = (result[-1][0], place + 1)
        else:
            result.append((place, place + 1))
    return result


def _merge(runs: Sequence[Run], is_bridged: Sequence[bool]) -> list[Run]:
    result = [runs[0]]
    for run, bridged in zip(runs[1:], is_bridged, strict=True):
        if bridged:
            result[-1] = (result[-1][0], run[1])
        else:
            result.append(run)
    return result


def compute_max_gap(gaps: Sequence[int], count: int, cycle: float) -> float:
    """Maximum gap within a phase, in samples. cycle: known period in samples, or NaN."""
    if not math.isnan(cycle):
        return cycle / 16
    if sum(gaps) < 0.1 * count or not gaps:
        return math.inf
    total = 0
    for pause in sorted(gaps):
        total += pause
        if total > sum(gaps) / 2:
            return pause / 12
    raise AssertionError("half of a sum is reached")


def find_phases(values: Sequence[float], cycle: float) -> list[tuple[int, int, float, bool, bool]]:
    """First sample, sample after the last, sum in between, whether the phase is open, and whether it is cut."""
    runs = find_runs_above_mean(values)
    if not runs:
        return []
    moved = [0.0 if math.isnan(value) else value for value in values]
    mean = sum(moved) / sum(not math.isnan(value) for value in values)
    gaps = [(left[1], right[0]) for left, right in pairwise(runs)]
    runs = _merge(runs, [sum(moved[low:high]) >= 0.5 * mean * (high - low) for low, high in gaps])
    lengths = [right[0] - left[1] for left, right in pairwise(runs)]
    gap = compute_max_gap(lengths, len(values), cycle)
    runs = _merge(runs, [length <= gap for length in lengths])
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

"""Naive implementation of `iosig.transforms.signatures.robust_template`: time by time, interval by interval."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.stats import binom


def smallest_tail(rates: Sequence[Sequence[float]], interference: Sequence[float], time: int) -> float:
    """Minimum binomial tail over the rates reached by more than half of the runs."""
    run_count = len(rates)
    here = sorted((run[time] for run in rates), reverse=True)
    least = 1.0
    for reaching in range(run_count, max(run_count // 2, run_count - max(1, run_count // 2)), -1):
        rate = here[reaching - 1]
        probability = max(sum(other >= rate for other in interference), 1) / len(interference)
        least = min(least, float(binom.sf(reaching - 1, run_count, probability)))
    return least


def find_intervals(marks: Sequence[bool]) -> list[tuple[int, int]]:
    """Half-open intervals of true marks."""
    result: list[tuple[int, int]] = []
    for place, mark in enumerate(marks):
        if mark and result and result[-1][1] == place:
            result[-1] = (result[-1][0], place + 1)
        elif mark:
            result.append((place, place + 1))
    return result


def merge_intervals(parts: Sequence[tuple[int, int]], max_gap: float) -> list[tuple[int, int]]:
    """Merge intervals that are at most `max_gap` apart, until nothing changes."""
    result: list[tuple[int, int]] = []
    for begin, end in sorted(parts):
        if result and begin - result[-1][1] <= max_gap:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((begin, end))
    return result


def height(curve: Sequence[float], begin: int, end: int) -> float:
    """Upper quartile, linear between ranks, or the mean if it is larger."""
    inside = sorted(curve[begin:end])
    rank = 0.75 * (len(inside) - 1)
    low = int(rank)
    quartile = inside[low] + (rank - low) * (inside[min(low + 1, len(inside) - 1)] - inside[low])
    return max(quartile, sum(inside) / len(inside))


def extend_interval(curve: Sequence[float], begin: int, end: int, edge_ratio: float) -> tuple[int, int] | None:
    """Interval from the first to the last place above a share of the height, extended while the curve stays above."""
    least = edge_ratio * height(curve, begin, end)
    above = [place for place in range(begin, end) if curve[place] > least]
    if not above:
        return None
    first, last = above[0], above[-1]
    while first > 0 and curve[first - 1] > least:
        first -= 1
    while last + 1 < len(curve) and curve[last + 1] > least:
        last += 1
    return first, last + 1


def common_bursts(
    curve: Sequence[float],
    marks: Sequence[bool],
    step_s: float,
    *,
    edge_ratio: float,
    max_dip_s: float,
    min_duration_s: float,
    min_volume_ratio: float,
) -> list[tuple[int, int]]:
    """Marked intervals after merging, a minimum duration, extension, merging again, and a minimum volume."""
    parts = [
        part
        for part in merge_intervals(find_intervals(marks), max_dip_s / step_s)
        if (part[1] - part[0]) * step_s >= min_duration_s
    ]
    larger = [part for begin, end in parts if (part := extend_interval(curve, begin, end, edge_ratio))]
    bursts = merge_intervals(larger, max_dip_s / step_s)
    volumes = sorted(sum(curve[begin:end]) for begin, end in bursts)
    if not volumes:
        return []
    middle = (volumes[(len(volumes) - 1) // 2] + volumes[len(volumes) // 2]) / 2
    return [
        (begin, end)
        for begin, end in bursts
        if sum(curve[begin:end]) > min_volume_ratio * middle and (end - begin) * step_s >= min_duration_s
    ]

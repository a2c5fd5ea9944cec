"""The naive twin of `iosig.transforms.signatures.robust_template`: one time, one stretch after the other."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.stats import binom


def least_tail(rates: Sequence[Sequence[float]], foreign: Sequence[float], time: int) -> float:
    """The least probability of as many runs reaching a rate by chance, of more than half of the runs to all."""
    run_count = len(rates)
    here = sorted((run[time] for run in rates), reverse=True)
    least = 1.0
    for reaching in range(run_count, max(run_count // 2, run_count - max(1, run_count // 2)), -1):
        rate = here[reaching - 1]
        probability = max(sum(other >= rate for other in foreign), 1) / len(foreign)
        least = min(least, float(binom.sf(reaching - 1, run_count, probability)))
    return least


def stretches(marks: Sequence[bool]) -> list[tuple[int, int]]:
    """Where marks are set in a row: the first place and the one after the last."""
    found: list[tuple[int, int]] = []
    for place, mark in enumerate(marks):
        if mark and found and found[-1][1] == place:
            found[-1] = (found[-1][0], place + 1)
        elif mark:
            found.append((place, place + 1))
    return found


def joined(parts: Sequence[tuple[int, int]], most_apart: float) -> list[tuple[int, int]]:
    """Stretches as one where no more than so many places lie between them, again and again until none do."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(parts):
        if found and begin - found[-1][1] <= most_apart:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def height(curve: Sequence[float], begin: int, end: int) -> float:
    """The upper quartile, linear between ranks, or the mean if that is more."""
    inside = sorted(curve[begin:end])
    rank = 0.75 * (len(inside) - 1)
    low = int(rank)
    quartile = inside[low] + (rank - low) * (inside[min(low + 1, len(inside) - 1)] - inside[low])
    return max(quartile, sum(inside) / len(inside))


def grown(curve: Sequence[float], begin: int, end: int, edge_ratio: float) -> tuple[int, int] | None:
    """From the first to the last place above a share of the height, and on as long as the curve is above it."""
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
    dip_s: float,
    least_s: float,
    least_volume_ratio: float,
) -> list[tuple[int, int]]:
    """Marked stretches, joined, long enough, grown, joined again, large enough."""
    parts = [part for part in joined(stretches(marks), dip_s / step_s) if (part[1] - part[0]) * step_s >= least_s]
    larger = [part for begin, end in parts if (part := grown(curve, begin, end, edge_ratio))]
    bursts = joined(larger, dip_s / step_s)
    volumes = sorted(sum(curve[begin:end]) for begin, end in bursts)
    if not volumes:
        return []
    middle = (volumes[(len(volumes) - 1) // 2] + volumes[len(volumes) // 2]) / 2
    return [
        (begin, end)
        for begin, end in bursts
        if sum(curve[begin:end]) > least_volume_ratio * middle and (end - begin) * step_s >= least_s
    ]

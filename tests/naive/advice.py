"""Naive implementation of `iosig.transforms.advice`: a loop over delays, phases and steps."""

from __future__ import annotations

from collections.abc import Sequence


def rate_between(rates: Sequence[float], step: float, begin: float, end: float) -> float:
    """Bytes of a signature between two positions in it."""
    total = 0.0
    for number, rate in enumerate(rates):
        low, high = max(begin, number * step), min(end, (number + 1) * step)
        if high > low:
            total += rate * (high - low)
    return total


def line(rates: Sequence[float], step: float, elapsed: float, tempo: float, grid: float, count: int) -> list[float]:
    """Mean rates on a grid of a run at a position in its signature, continuing at a tempo."""
    edges = [elapsed + i * grid * tempo for i in range(count + 1)]
    return [rate_between(rates, step, edges[i], edges[i + 1]) / grid for i in range(count)]


def late_load(
    runs: Sequence[tuple[Sequence[float], float, float, float]],
    background: float,
    capacity: float,
    grid: float,
    count: int,
) -> list[float]:
    """Load of runs (rates, step, elapsed, tempo) that delay each other when their total exceeds the capacity."""
    wanted = [line(rates, step, elapsed, tempo, grid, count) for rates, step, elapsed, tempo in runs]
    load = [background] * count
    for (rates, step, place, tempo), asked in zip(runs, wanted, strict=True):
        for i in range(count):
            total = background + sum(other[i] for other in wanted)
            is_slow = asked[i] > 0 and total > capacity
            then = place + grid * tempo * (capacity / total if is_slow else 1.0)
            load[i] += rate_between(rates, step, place, then) / grid
            place = then
    return load


def contended(own: Sequence[float], others: Sequence[float], capacity: float, delay: int, grid: float) -> float:
    """Additional bytes beyond the capacity due to the application, started `delay` steps later."""
    total = 0.0
    for i, rate in enumerate(own):
        other = others[i + delay]
        total += (max(0.0, other + rate - capacity) - max(0.0, other - capacity)) * grid
    return total


def own_contended(own: Sequence[float], others: Sequence[float], capacity: float, delay: int, grid: float) -> float:
    """Bytes of the application beyond the capacity, divided among all traffic in proportion to demand."""
    total = 0.0
    for i, rate in enumerate(own):
        both = others[i + delay] + rate
        if both > capacity:
            total += (both - capacity) * rate / both * grid
    return total


def extra_s(own: Sequence[float], others: Sequence[float], capacity: float, delay: int, grid: float) -> float:
    """Additional duration of the run in seconds: at 1 / x of its requested rate, a step takes x times as long."""
    total = 0.0
    for i, rate in enumerate(own):
        if rate > 0:
            total += (max(1.0, (others[i + delay] + rate) / capacity) - 1.0) * grid
    return total


def met_load(own: Sequence[float], others: Sequence[float], capacity: float, delay: int) -> float:
    """Mean load that the bytes of the application meet, as a share of the capacity."""
    met = sum(rate * others[i + delay] for i, rate in enumerate(own))
    return met / (sum(own) * capacity)


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean."""
    return sum(values) / len(values)

"""Naive implementation of `iosig.transforms.advice`: a loop over delays, phases and steps."""

from __future__ import annotations

from collections.abc import Sequence


def rate_between(rates: Sequence[float], step: float, begin: float, end: float) -> float:
    """Bytes that a signature asks for between two places in it."""
    total = 0.0
    for number, rate in enumerate(rates):
        low, high = max(begin, number * step), min(end, (number + 1) * step)
        if high > low:
            total += rate * (high - low)
    return total


def line(rates: Sequence[float], step: float, elapsed: float, tempo: float, grid: float, count: int) -> list[float]:
    """Mean rates on a grid of someone who is that far into a signature and goes on at that tempo."""
    edges = [elapsed + i * grid * tempo for i in range(count + 1)]
    return [rate_between(rates, step, edges[i], edges[i + 1]) / grid for i in range(count)]


def late_load(
    runs: Sequence[tuple[Sequence[float], float, float, float]],
    background: float,
    capacity: float,
    grid: float,
    count: int,
) -> list[float]:
    """The load of runs (rates, step, elapsed, tempo) that slow each other where all are more than the capacity."""
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
    """Bytes beyond the capacity that are not beyond it without the application, begun so many steps later."""
    total = 0.0
    for i, rate in enumerate(own):
        other = others[i + delay]
        total += (max(0.0, other + rate - capacity) - max(0.0, other - capacity)) * grid
    return total


def own_contended(own: Sequence[float], others: Sequence[float], capacity: float, delay: int, grid: float) -> float:
    """The application's own bytes of all that is beyond the capacity, in proportion to demand."""
    total = 0.0
    for i, rate in enumerate(own):
        both = others[i + delay] + rate
        if both > capacity:
            total += (both - capacity) * rate / both * grid
    return total


def extra_s(own: Sequence[float], others: Sequence[float], capacity: float, delay: int, grid: float) -> float:
    """Seconds that its run takes longer: at 1 / x of the rate that it asks for, a step takes x times as long."""
    total = 0.0
    for i, rate in enumerate(own):
        if rate > 0:
            total += (max(1.0, (others[i + delay] + rate) / capacity) - 1.0) * grid
    return total


def met_load(own: Sequence[float], others: Sequence[float], capacity: float, delay: int) -> float:
    """The load that the application's bytes meet on average, as a share of the capacity."""
    met = sum(rate * others[i + delay] for i, rate in enumerate(own))
    return met / (sum(own) * capacity)


def mean(values: Sequence[float]) -> float:
    """The plain mean."""
    return sum(values) / len(values)

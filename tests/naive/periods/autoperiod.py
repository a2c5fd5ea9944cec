"""Naive implementation of `iosig.transforms.periods.autoperiod`: one even signal at a time, a loop for every sum."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.naive.periods import autoperiod_periodogram


def correlate_circular(values: Sequence[float]) -> list[float]:
    """Circular autocorrelation without the mean, averaged over pairs of known samples (not NaN)."""
    count = len(values)
    known = [x for x in values if not math.isnan(x)]
    mean = sum(known) / len(known)
    variance = sum((x - mean) ** 2 for x in known) / len(known)
    result = []
    for lag in range(count):
        products = [(values[i] - mean) * (values[(i + lag) % count] - mean) for i in range(count)]
        pairs = [product for product in products if not math.isnan(product)]
        result.append(sum(pairs) / len(pairs) / variance)
    return result


def measure_similarity(values: Sequence[float]) -> list[float]:
    """Normalized square difference: twice the products divided by the squares of all known pairs, without the mean."""
    known = [x for x in values if not math.isnan(x)]
    level = [x - sum(known) / len(known) for x in values]
    result = []
    for lag in range(len(level)):
        pairs = [(x, y) for x, y in zip(level, level[lag:], strict=False) if not math.isnan(x + y)]
        squares = sum(x * x + y * y for x, y in pairs)
        result.append(2 * sum(x * y for x, y in pairs) / squares if squares else math.nan)
    return result


def fit_line(values: Sequence[float]) -> tuple[float, float]:
    """Slope and squared error of the least-squares line through values at 0, 1, 2, ..."""
    count = len(values)
    at, mean = (count - 1) / 2, sum(values) / count
    slope = sum((i - at) * (y - mean) for i, y in enumerate(values)) / sum((i - at) ** 2 for i in range(count))
    return slope, sum((y - mean - slope * (i - at)) ** 2 for i, y in enumerate(values))


def fit_two_lines(values: Sequence[float]) -> tuple[float, int, float, float] | None:
    """Error, split and slopes of the best two lines of at least three points each."""
    best = None
    for cut in range(2, len(values) - 2):
        (rising, before), (falling, after) = fit_line(values[: cut + 1]), fit_line(values[cut:])
        if best is None or before + after < best[0]:
            best = (before + after, cut, rising, falling)
    return best


def make_hill_window(lag: float, cycles: float, steps: int, minimum: int) -> tuple[int, int]:
    """First and last lag of the window around a hint of `cycles` cycles."""
    first = math.floor((steps / (cycles + 1) + steps / cycles) / 2 - 1)
    last = math.ceil((steps / cycles + steps / (cycles - 1)) / 2 + 1)
    while last - first + 1 < minimum:
        first, last = first - 1, last + 1
    first = max(first, round(lag / 2), 1)
    return first, min(last, round(1.5 * lag), (steps + 1) // 2)


def find_hill(correlation: Sequence[float], first: int, last: int, steps: int, minimum: float) -> int | None:
    """The top of the hill between two lags, or None."""
    part = correlation[first : last + 1]
    result = fit_two_lines(part)
    top = first + part.index(max(part)) if part else 0
    if result is None or not result[2] > 0 > result[3] or not first < top < last or not 2 < top < steps / 2:
        return None
    reach = (top + 1) // 2
    valley = max(min(correlation[top - reach : top + 1]), min(correlation[top : top + reach + 1]))
    return top if correlation[top] > minimum and correlation[top] - valley > minimum else None


def refine_top(alike: Sequence[float], first: int, last: int, top: int) -> float:
    """Vertex of the parabola through a hill's top and its neighbors, if both are at least half as high."""
    part = alike[first : last + 1]
    highest = first + part.index(max(part))
    top = highest if first < highest < last else top
    a, b, c = alike[top - 1 : top + 2]
    if min(a, c) < b / 2 or a - 2 * b + c >= 0 or b >= 1 - 1e-9:
        return float(top)
    return top + (a - c) / (2 * (a - 2 * b + c))


def find_periods(values: Sequence[float], confidence: float = 0.9, samples_per_peak: int = 5) -> list[float]:
    """All periods of an even signal in samples (NaN: not measured), by descending power."""
    count, steps = len(values), len(values) - 1
    known = [(float(i), x) for i, x in enumerate(values) if not math.isnan(x)]
    times, level = [t for t, _ in known], [x for _, x in known]
    grid = autoperiod_periodogram.list_frequencies(steps, 1.0, samples_per_peak)
    powers = [autoperiod_periodogram.compute_power(times, level, f) for f in grid]
    threshold = -math.log(1 - confidence ** (1 / len(grid)))
    hints = [
        (p, f * steps) for p, f in zip(powers, grid, strict=True) if p > threshold and f * steps > 2 and f < 0.5 - 1e-12
    ]
    hints.sort(key=lambda hint: -hint[0])
    correlation, alike = correlate_circular(values), measure_similarity(values)
    minimum = 1.96 * math.sqrt(count) / len(known)
    result: list[float] = []
    tops: set[int] = set()
    for place, (power, cycles) in enumerate(hints):
        first, last = make_hill_window(steps / cycles, cycles, steps, 6)
        top = find_hill(correlation, first, last, steps, minimum)
        if top is None or top in tops:
            continue
        tops.add(top)
        leaks = [4 * p / max(1.0, math.pi * abs(c - cycles)) ** 2 >= power for p, c in hints[:place]]
        if not result or not any(leaks):
            result.append(refine_top(alike, first, last, top))
    return result

"""Naive implementation of `iosig.transforms.extrapolation.time_models`: each field and model in fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from scipy import stats

#: The basis of each model in addition to its constant, and whether it has a constant.
MODELS = {"constant": (None, True), "linear": (1, True), "inverse": (-1, False), "inverse plus constant": (-1, True)}
#: Models with fewer parameters first.
ORDER = ("constant", "inverse", "linear", "inverse plus constant")


def solved(rows: Sequence[tuple[Fraction, Fraction]], values: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
    """Return both least-squares coefficients by Cramer's rule; the coefficient of a zero column is 0."""
    a, b, d = (sum((row[i] * row[j] for row in rows), Fraction(0)) for i, j in ((0, 0), (0, 1), (1, 1)))
    x, y = (sum((row[i] * value for row, value in zip(rows, values, strict=True)), Fraction(0)) for i in (0, 1))
    if not a:
        return Fraction(0), y / d
    if not d:
        return x / a, Fraction(0)
    return (x * d - b * y) / (a * d - b * b), (a * y - b * x) / (a * d - b * b)


def fit(name: str, counts: Sequence[int], times: Sequence[float]) -> tuple[Fraction, Fraction, Fraction]:
    """Return constant, slope and the sum of squared residuals of a model."""
    power, has_constant = MODELS[name]
    places = [Fraction(count) ** power if power else Fraction(0) for count in counts]
    rows = [(Fraction(int(has_constant)), place) for place in places]
    values = list(map(Fraction, times))
    constant, slope = solved(rows, values)
    squares = sum(
        (value - constant * one - slope * place) ** 2 for value, (one, place) in zip(values, rows, strict=True)
    )
    return constant, slope, Fraction(squares)


def predicted(name: str, constant: Fraction, slope: Fraction, at: int) -> Fraction:
    power, _ = MODELS[name]
    return constant + (slope * Fraction(at) ** power if power else 0)


def is_sure(name: str, counts: Sequence[int], times: Sequence[float], at: int, ratio: float, clock: float) -> bool:
    """Return whether the model is significant by Student's t-test."""
    power, has_constant = MODELS[name]
    if power is None or not has_constant:
        return True
    freedom = len(counts) - 2
    if freedom < 1:
        return False
    constant, slope, squares = fit(name, counts, times)
    beyond = at / max(counts) if power == 1 else min(counts) / at
    limit = stats.t.isf(ratio / max(1.0, beyond) / 2, freedom)
    places = [float(count) ** power for count in counts]
    middle = sum(places) / len(places)
    spread = sum((place - middle) ** 2 for place in places)
    noise = max(math.sqrt(squares / freedom), clock / math.sqrt(6))
    is_sloped = abs(slope) > limit * noise / math.sqrt(spread)
    if power == 1:
        return is_sloped
    return is_sloped and abs(constant) > limit * noise * math.sqrt(1 / len(counts) + middle**2 / spread)


def model(
    counts: Sequence[int], times: Sequence[float], at: int, ratio: float = 0.3, clock: float = 1e-6
) -> tuple[str, float]:
    """Return the name of the model and its predicted time."""
    best: tuple[float, str, float] | None = None
    for name in ORDER:
        freedom = len(counts) - (1 if name in ("constant", "inverse") else 2)
        if freedom < 1 and not (name == "constant" and len(counts) == 1):
            continue
        constant, slope, squares = fit(name, counts, times)
        time = predicted(name, constant, slope, at)
        deviation = math.sqrt(squares / max(freedom, 1))
        if time < 0 or not is_sure(name, counts, times, at, ratio, clock):
            continue
        if best is None or deviation < best[0]:
            best = deviation, name, float(time)
    assert best is not None
    return best[1], best[2]

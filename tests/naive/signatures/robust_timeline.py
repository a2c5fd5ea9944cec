"""Naive implementation of `iosig.transforms.signatures.robust_timeline`: the objective as a linear program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog


def cost(
    at_s: Sequence[float],
    reached_s: Sequence[Sequence[float]],
    weights: Sequence[float],
    levels: Sequence[Sequence[float]],
    spans: Sequence[int],
) -> float:
    """Quantile loss summed over runs and spans."""
    total, at = 0.0, [0.0, *at_s]
    for run, weight in zip(reached_s, weights, strict=True):
        times = [0.0, *run]
        for span, level in zip(spans, levels, strict=True):
            for begin in range(len(times) - span):
                rest = times[begin + span] - times[begin] - (at[begin + span] - at[begin])
                total += weight * (level[begin] * rest if rest > 0 else (level[begin] - 1) * rest)
    return total


def minimum_cost(
    reached_s: Sequence[Sequence[float]],
    weights: Sequence[float],
    levels: Sequence[Sequence[float]],
    spans: Sequence[int],
) -> float:
    """Minimum of `cost` by a linear program with a positive and a negative part of each residual."""
    points = len(reached_s[0])
    rows, right, prices = [], [], []
    for run, weight in zip(reached_s, weights, strict=True):
        times = [0.0, *run]
        for span, level in zip(spans, levels, strict=True):
            for begin in range(len(times) - span):
                row = np.zeros(points)
                row[begin + span - 1] = 1.0
                if begin:
                    row[begin - 1] = -1.0
                rows.append(row)
                right.append(times[begin + span] - times[begin])
                prices.append((weight * level[begin], weight * (1 - level[begin])))
    count = len(rows)
    equal = np.hstack([np.array(rows), np.eye(count), -np.eye(count)])
    price = np.concatenate([np.zeros(points), [above for above, _ in prices], [below for _, below in prices]])
    solved = linprog(price, A_eq=equal, b_eq=right, bounds=[(None, None)] * points + [(0, None)] * 2 * count)
    return float(solved.fun)

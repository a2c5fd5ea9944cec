"""Compute residual traffic: bytes of each step without the constant background and without explained bytes."""

from __future__ import annotations

import math

import numpy as np

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.attribution.explanation import ExplainParams, subtract_background

#: step lengths that divide a minute [s]
_STEP_LENGTHS_S = (5.0, 6.0, 10.0, 12.0, 15.0, 20.0, 30.0)
_MINUTE_S = 60.0
#: minimum polled fraction of a step; below it, the step counts as not measured
_MIN_POLLED_RATIO = 0.5
#: maximum explained fraction of a block of steps; above it, the residual of its steps is unknown
_MAX_EXPLAINED_RATIO = 0.1


def compute_residual(
    traffic_bytes: Reals, attributed_bytes: Reals, block: Ints, interval_s: float, params: ExplainParams | None = None
) -> Reals:
    """Subtract the background, and mask blocks in which much is explained.

    Parameters
    ----------
    traffic_bytes : Reals, shape (steps,)
        Bytes in each step; NaN where nothing was measured.
    attributed_bytes : Reals, shape (blocks,)
        Explained bytes of each block of steps, for instance a minute.
    block : Ints, shape (steps,)
        Block of each step.
    interval_s : float
        Length of a step [s].
    params : ExplainParams, optional
        Parameters of the background.

    Returns
    -------
    Reals, shape (steps,)
        Residual bytes. NaN where nothing was measured, and in blocks with more than 10 % explained, since the explained
        bytes cannot be assigned to steps there.

    """
    foreground = subtract_background(traffic_bytes, interval_s, params)
    block_bytes = np.bincount(block, foreground, len(attributed_bytes))
    is_residual = attributed_bytes <= _MAX_EXPLAINED_RATIO * block_bytes
    return np.where(np.isfinite(traffic_bytes) & is_residual[block], foreground, np.nan)


def compute_proportional_residual(
    traffic_bytes: Reals, attributed_bytes: Reals, block: Ints, interval_s: float, params: ExplainParams | None = None
) -> Reals:
    """Subtract the background, and the explained bytes of each block in proportion to the traffic of its steps.

    Parameters and shape are those of `compute_residual`; no block is masked.
    """
    foreground = subtract_background(traffic_bytes, interval_s, params)
    block_bytes = np.bincount(block, foreground, len(attributed_bytes))
    explained_ratio = np.divide(attributed_bytes, block_bytes, out=np.ones_like(block_bytes), where=block_bytes > 0)
    return np.where(np.isfinite(traffic_bytes), foreground * np.maximum(1.0 - explained_ratio, 0.0)[block], np.nan)


def choose_step_s(interval_s: float) -> float:
    """Choose the step length [s] for polls at an interval [s]: a divisor or a multiple of a minute; 5 s or more.

    Shorter steps show fluctuations of the servers, but no further bursts.
    """
    whole_minutes_s = _MINUTE_S * math.ceil(interval_s / _MINUTE_S - 1e-9)
    return next((step_s for step_s in _STEP_LENGTHS_S if step_s >= interval_s - 1e-6), whole_minutes_s)


def resample_polls(edge_s: Reals, interval_s: Reals, volume_bytes: Reals, start_s: float, step_s: float) -> Reals:
    """Resample polls to equal steps; bytes of a poll across several steps are divided by time.

    Parameters
    ----------
    edge_s : Reals, shape (polls,)
        Right edges in ascending order [s].
    interval_s : Reals, shape (polls,)
        Length of each poll's interval [s].
    volume_bytes : Reals, shape (polls,)
        Bytes of each interval; NaN where nothing was counted.
    start_s : float
        Start of the first step [s].
    step_s : float
        Length of a step [s].

    Returns
    -------
    Reals, shape (steps,)
        Bytes of each step, scaled to its full length; NaN where less than half of it was polled.

    """
    is_known = np.isfinite(volume_bytes)
    edge_s, interval_s, volume_bytes = edge_s[is_known], interval_s[is_known], volume_bytes[is_known]
    if not len(edge_s):
        return np.zeros(0)
    count = int(np.ceil((edge_s[-1] - start_s) / step_s - 1e-9))
    edges = np.linspace(start_s, start_s + count * step_s, count + 1)
    # intervals that overlap by mistake begin where the previous one ends
    interval_start_s: Reals = np.maximum(edge_s - interval_s, np.append(-np.inf, edge_s[:-1]))
    times = np.stack([interval_start_s, edge_s], axis=1).ravel()
    polled_s, polled_bytes = (_integrate(times, amount, edges) for amount in (edge_s - interval_start_s, volume_bytes))
    is_measured = polled_s >= _MIN_POLLED_RATIO * step_s
    return np.where(is_measured, polled_bytes * step_s / np.maximum(polled_s, 1e-9), np.nan)


def _integrate(times: Reals, amounts: Reals, edges: Reals) -> Reals:
    """Compute the amounts between edges; amounts[i] accrues evenly from times[2 i] to times[2 i + 1]."""
    total = np.stack([np.cumsum(amounts) - amounts, np.cumsum(amounts)], axis=1).ravel()
    integral: Reals = np.diff(np.interp(edges, times, total))
    return integral

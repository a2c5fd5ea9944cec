"""Simulate mechanisms of real sites that change what runs show: write-back caches, time limits, and job arrays."""

from __future__ import annotations

import numpy as np

from iosig.transforms.arrays import Reals


def drain_cache(bytes_per_s: Reals, drain_s: float) -> Reals:
    """Return the traffic that servers receive from a cache that drains exponentially, shape (..., seconds).

    drain_s: time constant [s]; 0 if there is no cache. Bytes that drain after the last second are lost.
    """
    from scipy.signal import lfilter

    if not drain_s:
        return bytes_per_s
    kept = float(np.exp(-1.0 / drain_s))
    drained: Reals = lfilter([1.0 - kept], [1.0, -kept], bytes_per_s, axis=-1)
    return drained


def stop_at_limit(end_s: Reals, limit_s: float, *traffic: Reals) -> tuple[Reals, ...]:
    """Stop runs at a time limit: return their ends (runs), and their traffic (runs, seconds) without later bytes."""
    if not np.isfinite(limit_s):
        return end_s, *traffic
    share = np.clip(limit_s - np.arange(traffic[0].shape[-1]), 0.0, 1.0)
    return np.minimum(end_s, limit_s), *(bytes_per_s * share for bytes_per_s in traffic)


def add_siblings(own: Reals, array_size: int, spread_s: int, rng: np.random.Generator) -> Reals:
    """Add to each run the traffic of the runs of its job array during its window (runs, seconds).

    Consecutive runs form arrays of `array_size`. They start at random within `spread_s`, and do not slow each other.
    """
    if array_size == 1:
        return own
    run_count, seconds = len(own), own.shape[1]
    start_s = rng.integers(0, spread_s, run_count)
    total = own.copy()
    for run in range(run_count):
        first = run - run % array_size
        for sibling in {*range(first, min(first + array_size, run_count))} - {run}:
            later_s = int(start_s[sibling] - start_s[run])
            begin, end = max(0, later_s), min(seconds, seconds + later_s)
            total[run, begin:end] += own[sibling, begin - later_s : end - later_s]
    return total

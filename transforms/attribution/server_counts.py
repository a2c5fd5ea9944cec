"""Distribute the bytes that servers counted for individual runs over the steps of the file system's traffic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ragged, Reals, owners, places_of
from iosig.transforms.attribution.runs import RunBytes


def distribute_counts(series: Ragged, started: Reals, interval_steps: Reals, traffic_bytes: Reals) -> RunBytes:
    """Distribute the counts of each interval over its steps, in proportion to the traffic.

    Parameters
    ----------
    series : Ragged
        Bytes of n runs in consecutive intervals; NaN where nothing was counted.
    started : Reals, shape (n,)
        Start of each run's first interval; step k extends from k to k + 1.
    interval_steps : Reals, shape (n,)
        Length of each run's intervals, in steps.
    traffic_bytes : Reals, shape (steps,)
        Bytes in each step; NaN where nothing was measured.

    Returns
    -------
    RunBytes
        Bytes by run and step; counts before the first step and after the last one are dropped.

    """
    run = owners(series.offsets)
    interval = np.arange(len(run)) - series.offsets[run]
    begin = started[run] + interval * interval_steps[run]
    end = begin + interval_steps[run]
    counted = np.flatnonzero(np.nan_to_num(series.values) > 0)
    run, begin, end, volume = run[counted], begin[counted], end[counted], series.values[counted]
    first = np.clip(np.floor(begin), 0, len(traffic_bytes)).astype(np.int64)
    counts = np.clip(np.ceil(end), first, len(traffic_bytes)).astype(np.int64) - first
    step, row = places_of(first, counts), np.repeat(np.arange(len(first)), counts)
    cumulative = _CumulativeTraffic.from_steps(traffic_bytes)
    step_traffic = cumulative(np.minimum(step + 1, end[row])) - cumulative(np.maximum(step, begin[row]))
    moved_bytes = volume[row] * step_traffic / (cumulative(end) - cumulative(begin))[row]
    has_bytes = moved_bytes > 0
    return RunBytes(run[row][has_bytes], step[has_bytes], moved_bytes[has_bytes])


@dataclass(frozen=True, slots=True)
class _CumulativeTraffic:
    """Cumulative traffic at fractional steps, extrapolated at the mean rate."""

    total: Reals
    mean: float

    @classmethod
    def from_steps(cls, traffic_bytes: Reals) -> _CumulativeTraffic:
        measured = np.nan_to_num(traffic_bytes)
        mean = float(measured.mean()) if measured.size else 0.0
        # a small constant rate distributes counts evenly where nothing was polled
        total = np.concatenate([[0.0], np.cumsum(measured + max(mean, 1.0) * 1e-9)])
        return cls(total, max(mean, 1.0))

    def __call__(self, at: Reals) -> Reals:
        count = len(self.total) - 1
        outside = at - np.clip(at, 0, count)
        cumulative: Reals = np.interp(at, np.arange(count + 1), self.total) + self.mean * outside
        return cumulative

"""Counted runs: bytes that servers counted for a run itself, laid on the steps of its file system's traffic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, Reals, owners, places_of


@dataclass(frozen=True, slots=True)
class Counted:
    """What runs were counted to move of a file system's traffic: the run, the step and the bytes of each row (k)."""

    run: Ints
    step: Ints
    volume_bytes: Reals


def lay(series: Ragged, started: Reals, lasting: Reals, traffic_bytes: Reals) -> Counted:
    """Lay counted bytes on the traffic's steps; those of an interval over several steps lie where the traffic does.

    series: n runs' bytes in intervals on end, NaN where nothing was counted. started (n): where on the grid the first
    interval of each begins, step k being from k to k + 1. lasting (n): how many steps an interval takes. traffic_bytes
    (steps): NaN where nothing was measured. What lies before the grid or after it is left out.
    """
    owner = owners(series.offsets)
    place = np.arange(len(owner)) - series.offsets[owner]
    begun = started[owner] + place * lasting[owner]
    ended = begun + lasting[owner]
    is_told = np.flatnonzero(np.nan_to_num(series.values) > 0)
    owner, begun, ended, volume = owner[is_told], begun[is_told], ended[is_told], series.values[is_told]
    first = np.clip(np.floor(begun), 0, len(traffic_bytes)).astype(np.int64)
    counts = np.clip(np.ceil(ended), first, len(traffic_bytes)).astype(np.int64) - first
    step, of = places_of(first, counts), np.repeat(np.arange(len(first)), counts)
    passed = _Passed.of(traffic_bytes)
    within = passed(np.minimum(step + 1, ended[of])) - passed(np.maximum(step, begun[of]))
    moved = volume[of] * within / (passed(ended) - passed(begun))[of]
    has = moved > 0
    return Counted(owner[of][has], step[has], moved[has])


@dataclass(frozen=True, slots=True)
class _Passed:
    """How much traffic has passed at a place of the grid; before it and after it, it passes as in the mean."""

    total: Reals
    mean: float

    @classmethod
    def of(cls, traffic_bytes: Reals) -> _Passed:
        known = np.nan_to_num(traffic_bytes)
        mean = float(known.mean()) if known.size else 0.0
        # a little flows everywhere: what was counted while nothing was polled lies evenly
        total = np.concatenate([[0.0], np.cumsum(known + max(mean, 1.0) * 1e-9)])
        return cls(total, max(mean, 1.0))

    def __call__(self, place: Reals) -> Reals:
        count = len(self.total) - 1
        outside = place - np.clip(place, 0, count)
        passed: Reals = np.interp(place, np.arange(count + 1), self.total) + self.mean * outside
        return passed

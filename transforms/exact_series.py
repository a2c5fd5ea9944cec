"""Distribute counter deltas over the steps of a run's grid, in whole bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of, places_of


@dataclass(frozen=True, slots=True)
class Grids:
    """Time grids of n runs: step length and phase [us], and first and last step.

    Step k is (phase + (k - 1) * step, phase + k * step], counted from 1970.
    """

    step_us: Ints
    phase_us: Ints
    first_step: Ints
    last_step: Ints

    @property
    def counts(self) -> Ints:
        """Number of steps of each run (n)."""
        counts: Ints = np.maximum(self.last_step - self.first_step + 1, 0)
        return counts


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals between scrapes (m): start and end [us since 1970], and index of the run."""

    from_us: Ints
    until_us: Ints
    run: Ints


def distribute_to_grids(intervals: Intervals, volume_bytes: Ints, grids: Grids) -> Ragged:
    """Distribute the bytes of intervals over the steps of each run's grid, in proportion to time.

    Parameters
    ----------
    intervals : Intervals
        m intervals.
    volume_bytes : Ints, shape (m,)
        Bytes of each interval, at most 2^53.
    grids : Grids
        Grids of n runs.

    Returns
    -------
    Ragged
        Whole bytes of each step, n pieces. Bytes outside a run's grid are dropped.

    Notes
    -----
    Steps get differences of the rounded cumulative bytes, so no byte is lost between steps. An interval without length
    belongs to one step.

    """
    offsets = offsets_of(grids.counts)
    values = np.zeros(offsets[-1])
    run, until_us = intervals.run, intervals.until_us
    step, phase = grids.step_us[run], grids.phase_us[run]
    length = np.maximum(until_us - intervals.from_us, 1)
    start = until_us - length - phase
    first = np.maximum(start // step + 1, grids.first_step[run])
    last = np.minimum(-((phase - until_us) // step), grids.last_step[run])
    counts = np.maximum(last - first + 1, 0)
    number, owner = places_of(first, counts), np.repeat(np.arange(len(run)), counts)
    edge = number * step[owner] - start[owner]
    total = volume_bytes[owner]

    def cumulative_at(edge_us: Ints) -> Reals:
        cumulative: Reals = np.round(total * (np.clip(edge_us, 0, length[owner]) / length[owner]))
        return cumulative

    index = offsets[:-1][run[owner]] + number - grids.first_step[run[owner]]
    np.add.at(values, index, cumulative_at(edge) - cumulative_at(edge - step[owner]))
    return Ragged(values, offsets)

"""Exact series: what rose between scrapes, on the even steps of a run's grid, in whole bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, Reals, offsets_of, places_of


@dataclass(frozen=True, slots=True)
class Grids:
    """The grids of runs (n): the length of a step and where its edges lie [us], and the first and the last step.

    Steps are counted from 1970: step k is (phase + (k - 1) x step, phase + k x step].
    """

    step_us: Ints
    phase_us: Ints
    first_step: Ints
    last_step: Ints

    @property
    def counts(self) -> Ints:
        """How many steps each run has (n)."""
        counts: Ints = np.maximum(self.last_step - self.first_step + 1, 0)
        return counts


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals between scrapes (m), in which something rose: from, until [us since 1970], and whose they are."""

    from_us: Ints
    until_us: Ints
    run: Ints


def on_grids(intervals: Intervals, volume_bytes: Ints, grids: Grids) -> Ragged:
    """Return the bytes in each step of each run's grid (n pieces).

    volume_bytes (m): what rose in the intervals, at most 2^53. An interval over several steps is shared among them by
    time, as differences of its rounded running total, so that no byte is lost between two steps; what lies outside of
    the run's steps is left out. One without a length is all of the step that it lies in.
    """
    offsets = offsets_of(grids.counts)
    values = np.zeros(offsets[-1])
    run, until = intervals.run, intervals.until_us
    step, phase = grids.step_us[run], grids.phase_us[run]
    length = np.maximum(until - intervals.from_us, 1)
    left = until - length - phase
    first = np.maximum(left // step + 1, grids.first_step[run])
    last = np.minimum(-((phase - until) // step), grids.last_step[run])
    counts = np.maximum(last - first + 1, 0)
    number, owner = places_of(first, counts), np.repeat(np.arange(len(run)), counts)
    edge = number * step[owner] - left[owner]
    total = volume_bytes[owner]

    def moved_by(edge_us: Ints) -> Reals:
        moved: Reals = np.round(total * (np.clip(edge_us, 0, length[owner]) / length[owner]))
        return moved

    place = offsets[:-1][run[owner]] + number - grids.first_step[run[owner]]
    np.add.at(values, place, moved_by(edge) - moved_by(edge - step[owner]))
    return Ragged(values, offsets)

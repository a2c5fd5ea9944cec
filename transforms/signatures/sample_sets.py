"""Define sample sets: the runs of one application, each with the traffic that the storage servers measured during it.

IOSI (Liu et al., FAST'14, https://www.usenix.org/conference/fast14/technical-sessions/presentation/liu), section 5.1,
groups the runs of one user on the same number of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, offsets_of, owners


@dataclass(frozen=True, slots=True)
class SampleSet:
    """The samples of the n runs of one application.

    Attributes
    ----------
    samples : n pieces
        Mean rates of steps of `interval_s` [bytes per second]; NaN where not measured.
    interval_s
        Length of a step [s].
    start_s : (n,)
        Left edge of each sample's first step, relative to the start of its run [s]. It is up to one step before the
        start, since runs do not start at the instants of polls.
    duration_s : (n,)
        Duration of each run [s].
    interference : (values,) or None
        Rates of other jobs in the same steps, if the samples are the runs' own traffic. NaN where unknown; None if
        unknown for all runs.
    is_truncated : (n,) or None
        Whether a run was stopped before it was complete; None if all runs are complete.
    """

    samples: Ragged
    interval_s: float
    start_s: Reals
    duration_s: Reals
    interference: Reals | None = None
    is_truncated: Bools | None = None

    @property
    def run_count(self) -> int:
        """The number of runs."""
        return len(self.duration_s)

    @property
    def rates(self) -> list[Reals]:
        """The sample of each run, as views of one array."""
        edges = self.samples.offsets
        return [self.samples.values[first:last] for first, last in pairwise(edges)]

    def select_runs(self, is_selected: Bools) -> SampleSet:
        """Return the set with only the marked runs (n)."""
        if is_selected.all():
            return self
        return SampleSet(
            Ragged(self._select_values(self.samples.values, is_selected), offsets_of(self.samples.counts[is_selected])),
            self.interval_s,
            self.start_s[is_selected],
            self.duration_s[is_selected],
            None if self.interference is None else self._select_values(self.interference, is_selected),
            None if self.is_truncated is None else self.is_truncated[is_selected],
        )

    def _select_values(self, values: Reals, is_selected: Bools) -> Reals:
        """Concatenate the slices of the marked runs, which is faster than a mask over all values."""
        edges = self.samples.offsets.tolist()
        return np.concatenate([values[:0], *(values[edges[run] : edges[run + 1]] for run in is_selected.nonzero()[0])])


@dataclass(frozen=True, slots=True)
class SampleSets:
    """The samples of m applications with n runs in all: set i has the runs offsets[i] to offsets[i + 1].

    Attributes
    ----------
    samples, start_s, duration_s : n
        As in `SampleSet`.
    interval_s : (m,)
        Length of a step [s], the same for all samples of a set.
    offsets : (m + 1,)
    interference : (values,) or None
        As in `SampleSet`.
    is_truncated : (n,) or None
        As in `SampleSet`.
    """

    samples: Ragged
    start_s: Reals
    duration_s: Reals
    interval_s: Reals
    offsets: Ints
    interference: Reals | None = None
    is_truncated: Bools | None = None

    @property
    def set_count(self) -> int:
        """The number of sets."""
        return len(self.offsets) - 1

    @property
    def owner(self) -> Ints:
        """The index of the set of each run (n)."""
        return owners(self.offsets)

    def get_set(self, index: int) -> SampleSet:
        """Return one set; its samples are a view, not a copy."""
        runs = slice(self.offsets[index], self.offsets[index + 1])
        edges = self.samples.offsets[self.offsets[index] : self.offsets[index + 1] + 1]
        values = self.samples.values[edges[0] : edges[-1]]
        return SampleSet(
            Ragged(values, edges - edges[0]),
            float(self.interval_s[index]),
            self.start_s[runs],
            self.duration_s[runs],
            None if self.interference is None else self.interference[edges[0] : edges[-1]],
            None if self.is_truncated is None else self.is_truncated[runs],
        )

    @classmethod
    def concatenate(cls, sets: list[SampleSet]) -> SampleSets:
        """Combine sets, in order."""
        counts = [sample_set.samples.counts for sample_set in sets]
        has_interference = any(sample_set.interference is not None for sample_set in sets)
        interference = (
            np.full(len(sample_set.samples.values), np.nan)
            if sample_set.interference is None
            else sample_set.interference
            for sample_set in sets
        )
        return cls(
            samples=Ragged(
                np.concatenate([np.zeros(0), *(sample_set.samples.values for sample_set in sets)]),
                offsets_of(np.concatenate([np.zeros(0, np.int64), *counts])),
            ),
            start_s=np.concatenate([np.zeros(0), *(sample_set.start_s for sample_set in sets)]),
            duration_s=np.concatenate([np.zeros(0), *(sample_set.duration_s for sample_set in sets)]),
            interval_s=np.array([sample_set.interval_s for sample_set in sets], dtype=np.float64),
            offsets=offsets_of([sample_set.run_count for sample_set in sets]),
            interference=np.concatenate([np.zeros(0), *interference]) if has_interference else None,
            is_truncated=_concatenate_marks(sets),
        )


def _concatenate_marks(sets: list[SampleSet]) -> Bools | None:
    """Concatenate `is_truncated` of sets; None if no run was truncated."""
    if all(sample_set.is_truncated is None for sample_set in sets):
        return None
    marks = (
        np.zeros(sample_set.run_count, np.bool_) if sample_set.is_truncated is None else sample_set.is_truncated
        for sample_set in sets
    )
    return np.concatenate([np.zeros(0, np.bool_), *marks])

"""Sample sets: the runs of one application, each with the traffic that storage servers saw while it ran.

IOSI (Liu et al., FAST'14, https://www.usenix.org/conference/fast14/technical-sessions/presentation/liu), section 5.1:
the runs of one user with one number of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, offsets_of, owners


@dataclass(frozen=True, slots=True)
class SampleSet:
    """The samples of one application (n runs).

    samples: ragged (n), in bytes per second, NaN where not measured: the mean rates of steps of interval_s.
    started_s (n): the left edge of each sample's first step since its run's start: it lies within one step before it,
    since runs do not begin when servers are polled. duration_s (n): how long each run took. others: what others moved
    in the same steps, where samples are the runs' own and that is known; NaN where it is not, None: of no run.
    """

    samples: Ragged
    interval_s: float
    started_s: Reals
    duration_s: Reals
    others: Reals | None = None

    @property
    def run_count(self) -> int:
        """The number of runs."""
        return len(self.duration_s)

    @property
    def rates(self) -> list[Reals]:
        """Each run's sample: views, not copies."""
        edges = self.samples.offsets
        return [self.samples.values[first:last] for first, last in pairwise(edges)]

    def kept(self, is_kept: Bools) -> SampleSet:
        """Return the runs that are marked (n)."""
        if is_kept.all():
            return self
        return SampleSet(
            Ragged(self._of_runs(self.samples.values, is_kept), offsets_of(self.samples.counts[is_kept])),
            self.interval_s,
            self.started_s[is_kept],
            self.duration_s[is_kept],
            None if self.others is None else self._of_runs(self.others, is_kept),
        )

    def _of_runs(self, values: Reals, is_kept: Bools) -> Reals:
        """Return the values of the runs that are marked, run by run: to mark each value takes longer."""
        edges = self.samples.offsets.tolist()
        return np.concatenate([values[:0], *(values[edges[run] : edges[run + 1]] for run in is_kept.nonzero()[0])])


@dataclass(frozen=True, slots=True)
class SampleSets:
    """The samples of many applications: m sets of n runs in all.

    Set i has the runs offsets[i] to offsets[i + 1]. samples, started_s, duration_s (n): as in `SampleSet`.
    interval_s (m): all samples of a set have the same step.
    """

    samples: Ragged
    started_s: Reals
    duration_s: Reals
    interval_s: Reals
    offsets: Ints
    others: Reals | None = None

    @property
    def set_count(self) -> int:
        """The number of sets."""
        return len(self.offsets) - 1

    @property
    def owner(self) -> Ints:
        """The set of each run (n)."""
        return owners(self.offsets)

    def one(self, place: int) -> SampleSet:
        """Return one set: its samples are a view, not a copy."""
        runs = slice(self.offsets[place], self.offsets[place + 1])
        edges = self.samples.offsets[self.offsets[place] : self.offsets[place + 1] + 1]
        values = self.samples.values[edges[0] : edges[-1]]
        return SampleSet(
            Ragged(values, edges - edges[0]),
            float(self.interval_s[place]),
            self.started_s[runs],
            self.duration_s[runs],
            None if self.others is None else self.others[edges[0] : edges[-1]],
        )

    @classmethod
    def of(cls, sets: list[SampleSet]) -> SampleSets:
        """Return sets in order."""
        counts = [one.samples.counts for one in sets]
        is_known = any(one.others is not None for one in sets)
        others = (np.full(len(one.samples.values), np.nan) if one.others is None else one.others for one in sets)
        return cls(
            samples=Ragged(
                np.concatenate([np.zeros(0), *(one.samples.values for one in sets)]),
                offsets_of(np.concatenate([np.zeros(0, np.int64), *counts])),
            ),
            started_s=np.concatenate([np.zeros(0), *(one.started_s for one in sets)]),
            duration_s=np.concatenate([np.zeros(0), *(one.duration_s for one in sets)]),
            interval_s=np.array([one.interval_s for one in sets], dtype=np.float64),
            offsets=offsets_of([one.run_count for one in sets]),
            others=np.concatenate([np.zeros(0), *others]) if is_known else None,
        )

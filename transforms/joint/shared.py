"""What signatures are found together in: one file system's traffic, and the runs that were there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, offsets_of, places_of
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.transforms.signatures.signature import Signature

#: times of a log are of whole seconds if they are no further from it [s]
_NEARLY_S = 1e-3


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of m applications: the signature of each, None where there is none, and its trust (m)."""

    signatures: tuple[Signature | None, ...]
    trust: Reals


@dataclass(frozen=True, slots=True)
class Shared:
    """The traffic of one file system in one direction, and n runs that were there, of m applications.

    volume_bytes (steps): NaN where not measured; step k is from time k to k + 1, in steps of interval_s. application
    (n): whose run each is. started, ended (n): when it was there, in steps. is_sample (n): whether it is in the sample
    set of its application: such runs have ended.
    """

    volume_bytes: Reals
    interval_s: float
    application: Ints
    application_count: int
    started: Reals
    ended: Reals
    is_sample: Bools

    @property
    def begun(self) -> Reals:
        """When each run began, as near as its log tells (n), in steps."""
        return self.started + self._cut_off

    @property
    def ceased(self) -> Reals:
        """When each run ended, as near as its log tells (n), in steps."""
        return self.ended + self._cut_off

    @property
    def _cut_off(self) -> float:
        """What a job log that knows whole seconds only cuts off of a time, in the mean, in steps."""
        times_s = np.concatenate([self.started, self.ended]) * self.interval_s
        since_s = times_s - times_s[:1]
        is_whole = bool((np.abs(since_s - np.round(since_s)) < _NEARLY_S).all())
        return 0.5 / self.interval_s if is_whole else 0.0

    @property
    def samples(self) -> Ints:
        """The runs that are samples, those of one application on end (k)."""
        own = np.flatnonzero(self.is_sample)
        found: Ints = own[np.argsort(self.application[own], kind="stable")]
        return found

    @property
    def set_offsets(self) -> Ints:
        """Where the samples of each application begin among all of them (m + 1)."""
        return offsets_of(np.bincount(self.application[self.samples], minlength=self.application_count))

    def windows(self) -> tuple[Ints, Ints]:
        """Return the first step of each sample (k), and the one after its last.

        As `sql/samples/runs.sql` has it, a step is a run's if its right edge is in the run or an interval after it.
        """
        count, own = len(self.volume_bytes), self.samples
        first = np.clip(np.ceil(self.started[own]) - 1, 0, count).astype(np.int64)
        after = np.clip(np.ceil(self.ended[own]), first, count).astype(np.int64)
        return first, after

    def cut(self, values: Reals) -> Ragged:
        """Return what each sample has of values (steps)."""
        first, after = self.windows()
        return Ragged(values[places_of(first, after - first)], offsets_of(after - first))

    def sets(self, volumes: Ragged, others: Reals | None = None) -> SampleSets:
        """Return sample sets of each application with so many bytes in each step, and of others' in the same steps.

        Samples as they are begin when the log says, as plain methods have it; those of which others' are known when the
        runs did, as near as that is told.
        """
        own, (first, _) = self.samples, self.windows()
        began = self.started if others is None else self.begun
        return SampleSets(
            Ragged(volumes.values / self.interval_s, volumes.offsets),
            (first - began[own]) * self.interval_s,
            (self.ended - self.started)[own] * self.interval_s,
            np.full(self.application_count, self.interval_s),
            self.set_offsets,
            None if others is None else others / self.interval_s,
        )

"""What signatures are found together in: one file system's traffic, and the runs that were there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transforms.arrays import Bools, Ints, Ragged, Reals, offsets_of, places_of
from transforms.attribution.runs import Runs
from transforms.signatures.sample_sets import SampleSets
from transforms.signatures.signature import Signature

#: signatures of methods that tell no trust are taken as half sure
_HALF_SURE = 0.5


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of m applications: the signature of each, None where there is none, and its trust (m)."""

    signatures: tuple[Signature | None, ...]
    trust: Reals

    @property
    def has(self) -> Bools:
        """Which applications have a signature with bursts (m)."""
        return np.array([one is not None and len(one.bursts) > 0 for one in self.signatures], dtype=np.bool_)


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
        """Return sample sets of each application with so many bytes in each step, and of others' in the same steps."""
        own, (first, _) = self.samples, self.windows()
        return SampleSets(
            Ragged(volumes.values / self.interval_s, volumes.offsets),
            (first - self.started[own]) * self.interval_s,
            (self.ended - self.started)[own] * self.interval_s,
            np.full(self.application_count, self.interval_s),
            self.set_offsets,
            None if others is None else others / self.interval_s,
        )

    def meant(self, known: Known) -> tuple[Ints, Runs]:
        """Return which runs are of applications with a signature, and what each of them means to do."""
        runs = np.flatnonzero(known.has[self.application])
        own = [_signature(known.signatures, application) for application in self.application[runs].tolist()]
        begun, ceased, volume = (
            np.concatenate([np.zeros(0), *(getattr(one.bursts, name) for one in own)])
            for name in ("started_s", "ended_s", "volume_bytes")
        )
        duration = np.array([one.duration_s for one in own]) / self.interval_s
        return runs, Runs.of_signatures(
            (self.started[runs], self.ended[runs], duration),
            np.nan_to_num(known.trust[self.application[runs]], nan=_HALF_SURE),
            offsets_of([len(one.bursts) for one in own]),
            (begun / self.interval_s, ceased / self.interval_s, volume),
        )


def _signature(signatures: Sequence[Signature | None], application: int) -> Signature:
    one = signatures[application]
    assert one is not None
    return one

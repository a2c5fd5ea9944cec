"""Define the input of joint extraction: the traffic of one file system, and the runs that used it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, offsets_of, places_of
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.transforms.signatures.signature import Signature

#: maximum distance from a whole second at which a logged time counts as a whole second [s]
_TOLERANCE_S = 1e-3


@dataclass(frozen=True, slots=True)
class KnownSignatures:
    """Signatures of m applications before joint extraction.

    Attributes
    ----------
    signatures : m
        Signature of each application; None if it has none.
    expected_correlation : (m,)
        Expected correlation of the signature with the truth; NaN without a signature.
    """

    signatures: tuple[Signature | None, ...]
    expected_correlation: Reals


@dataclass(frozen=True, slots=True)
class SharedTraffic:
    """The traffic of one file system in one direction, and n runs of m applications that used it.

    Attributes
    ----------
    volume_bytes : (steps,)
        Bytes in each step; NaN where not measured. Step k extends from time k to k + 1, in units of `interval_s`.
    interval_s
        Length of a step [s].
    application : (n,)
        Index of each run's application.
    application_count
        Number of applications, m.
    started, ended : (n,)
        Logged start and end of each run, in steps.
    is_sample : (n,)
        Whether the run is in its application's sample set; such runs have ended.
    """

    volume_bytes: Reals
    interval_s: float
    application: Ints
    application_count: int
    started: Reals
    ended: Reals
    is_sample: Bools

    @property
    def start_estimate(self) -> Reals:
        """Return the start of each run (n), corrected for truncation in the log, in steps."""
        return self.started + self._truncation

    @property
    def end_estimate(self) -> Reals:
        """Return the end of each run (n), corrected for truncation in the log, in steps."""
        return self.ended + self._truncation

    @property
    def _truncation(self) -> float:
        """Return the mean error of logged times in steps: half a second if the job log truncates to whole seconds."""
        times_s = np.concatenate([self.started, self.ended]) * self.interval_s
        since_s = times_s - times_s[:1]
        is_whole = bool((np.abs(since_s - np.round(since_s)) < _TOLERANCE_S).all())
        return 0.5 / self.interval_s if is_whole else 0.0

    @property
    def sample_runs(self) -> Ints:
        """Return the indices of the runs that are samples (k), grouped by application."""
        indices = np.flatnonzero(self.is_sample)
        grouped: Ints = indices[np.argsort(self.application[indices], kind="stable")]
        return grouped

    @property
    def set_offsets(self) -> Ints:
        """Return the index of each application's first sample among all samples (m + 1)."""
        return offsets_of(np.bincount(self.application[self.sample_runs], minlength=self.application_count))

    def sample_windows(self) -> tuple[Ints, Ints]:
        """Return the first step of each sample (k), and the step after its last.

        As in `sql/samples/runs.sql`, a step belongs to a run if its right edge is during the run or within one interval
        after it.
        """
        count, runs = len(self.volume_bytes), self.sample_runs
        first = np.clip(np.ceil(self.started[runs]) - 1, 0, count).astype(np.int64)
        end = np.clip(np.ceil(self.ended[runs]), first, count).astype(np.int64)
        return first, end

    def cut_samples(self, values: Reals) -> Ragged:
        """Cut the window of each sample out of an array of values (steps)."""
        first, end = self.sample_windows()
        return Ragged(values[places_of(first, end - first)], offsets_of(end - first))

    def make_sample_sets(self, volumes: Ragged, interference: Reals | None = None) -> SampleSets:
        """Create the sample set of each application.

        Parameters
        ----------
        volumes : k pieces
            Volume in each step of the samples [bytes].
        interference : (values,), optional
            Volume of other applications in the same steps [bytes]. If given, starts are corrected for truncation.
            Otherwise, starts are as logged, as in the methods for a single application.
        """
        runs, (first, _) = self.sample_runs, self.sample_windows()
        start = self.started if interference is None else self.start_estimate
        return SampleSets(
            Ragged(volumes.values / self.interval_s, volumes.offsets),
            (first - start[runs]) * self.interval_s,
            (self.ended - self.started)[runs] * self.interval_s,
            np.full(self.application_count, self.interval_s),
            self.set_offsets,
            None if interference is None else interference / self.interval_s,
        )

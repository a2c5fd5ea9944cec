"""Represent runs with the bursts that their signatures predict, and bytes by run and step.

A signature is the rate at which an application moves bytes along its run. A burst is a stretch of a signature that
rises above the background. A window is the range of traffic steps that covers a run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import InPieces, Ints, Reals, offsets_of

#: peak of a burst divided by its mean rate; measured peaks are noisier and explain less, and any value from 1.15 to 1.3
#: gives equal results
PEAK_RATIO = 1.2


@dataclass(frozen=True, slots=True)
class RunBytes:
    """Bytes of runs as k rows (run, step, bytes), sorted by run and step; rows without bytes may be missing."""

    run: Ints
    step: Ints
    volume_bytes: Reals


@dataclass(frozen=True, slots=True)
class WindowedRuns(InPieces):
    """n runs with m bursts in total; times are in steps of each run's own window, which covers the run.

    Attributes
    ----------
    started : Reals, shape (n,)
        Start of the run within the first step of its window, 0 to 1.
    elapsed : Reals, shape (n,)
        Actual length of the run.
    duration : Reals, shape (n,)
        Length of a run without contention.
    offsets : Ints, shape (n + 1,)
        Run i has the bursts offsets[i] to offsets[i + 1], in chronological order.
    burst_start : Reals, shape (m,)
        Time from the start of the run to the burst, without contention.
    burst_duration : Reals, shape (m,)
        Length of the burst without contention.
    volume_bytes, peak_bytes : Reals, shape (m,)
        Bytes of the burst, and its maximum bytes in one step.

    """

    started: Reals
    elapsed: Reals
    duration: Reals
    offsets: Ints
    burst_start: Reals
    burst_duration: Reals
    volume_bytes: Reals
    peak_bytes: Reals


@dataclass(frozen=True, slots=True)
class Runs(InPieces):
    """n runs with m bursts in total, on the steps of the traffic: step k extends from k to k + 1.

    Attributes
    ----------
    started, ended : Reals, shape (n,)
        Start and end of each run, in steps.
    duration : Reals, shape (n,)
        Length of a run without contention, in steps.
    expected_correlation : Reals, shape (n,)
        Expected correlation of the signature with the truth, 0 to 1.
    application : Ints, shape (n,)
        Index of the signature.
    offsets, burst_start, burst_duration, volume_bytes, peak_bytes
        Bursts, as in `WindowedRuns`.

    """

    started: Reals
    ended: Reals
    duration: Reals
    expected_correlation: Reals
    application: Ints
    offsets: Ints
    burst_start: Reals
    burst_duration: Reals
    volume_bytes: Reals
    peak_bytes: Reals

    @classmethod
    def from_signatures(
        cls,
        times: tuple[Reals, Reals, Reals],
        signatures: tuple[Reals, Ints],
        offsets: Ints,
        bursts: tuple[Reals, Reals, Reals],
    ) -> Runs:
        """Create runs from the bursts of their signatures.

        Parameters
        ----------
        times : (Reals, Reals, Reals), shape (n,) each
            Start, end and duration of the runs, in steps.
        signatures : (Reals, Ints), shape (n,) each
            Expected correlation and index of each run's signature.
        offsets : Ints, shape (n + 1,)
            Run i has the bursts offsets[i] to offsets[i + 1].
        bursts : (Reals, Reals, Reals), shape (m,) each
            Start and end of each burst in steps, and its bytes. A shorter burst is extended to one step.

        Returns
        -------
        Runs

        """
        start, end, volume = bursts
        duration = np.maximum(end - start, 1.0)
        return cls(*times, *signatures, offsets, start, duration, volume, PEAK_RATIO * volume / duration)

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.started)

    def windows(self, step_count: int) -> tuple[Ints, Ints]:
        """Return the window of each run: its first step, and the step after its last, limited to the traffic."""
        first = np.clip(np.floor(self.started), 0, step_count).astype(np.int64)
        after = np.clip(np.ceil(self.ended) + 1, first, step_count).astype(np.int64)
        return first, after

    def to_windows(self, runs: Ints, first: Ints) -> WindowedRuns:
        """Select runs, with times relative to the first steps of their windows."""
        bursts = self.places_in(runs)
        return WindowedRuns(
            self.started[runs] - first,
            self.ended[runs] - self.started[runs],
            self.duration[runs],
            offsets_of(self.counts[runs]),
            self.burst_start[bursts],
            self.burst_duration[bursts],
            self.volume_bytes[bursts],
            self.peak_bytes[bursts],
        )

    def rank_by_distinctness(self) -> Ints:
        """Order runs by highest peak times expected correlation, descending: the most distinct runs come first."""
        highest, has_bursts = np.zeros(len(self)), self.counts > 0
        if has_bursts.any():
            highest[has_bursts] = np.maximum.reduceat(self.peak_bytes, self.offsets[:-1][has_bursts])
        order: Ints = np.argsort(-highest * self.expected_correlation, kind="stable")
        return order

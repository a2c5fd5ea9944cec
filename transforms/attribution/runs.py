"""Runs whose bytes are looked for in a file system's traffic: when they were there, and what each means to do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import InPieces, Ints, Reals, offsets_of

#: a burst's peak over its mean rate: measured peaks are noisier, and explain less (between 1.15 and 1.3 all are alike)
PEAK_RATIO = 1.2


@dataclass(frozen=True, slots=True)
class InRooms(InPieces):
    """n runs with m bursts in all, each on the steps of a room of its own, which begins and ends with the run.

    started (n): where in the room's first step it started, 0 to 1. lasted (n): how long it was there; duration (n): how
    long one alone takes, both in steps. offsets (n + 1): run i has the bursts offsets[i] to offsets[i + 1]. Per burst
    (m), in order of time: begun, when it begins in a run alone, in steps since the run's start; lasting, how many steps
    it takes alone; volume_bytes; peak_bytes, the most that it moves in a step.
    """

    started: Reals
    lasted: Reals
    duration: Reals
    offsets: Ints
    begun: Reals
    lasting: Reals
    volume_bytes: Reals
    peak_bytes: Reals


@dataclass(frozen=True, slots=True)
class Runs(InPieces):
    """n runs with m bursts in all, on the steps of the traffic's grid: step k is from time k to k + 1.

    started, ended (n): when each run was there, in steps. duration (n): what a run alone takes, in steps. trust (n):
    how far its signature is to be trusted, 0 to 1. application (n): whose signature it is, from 0. offsets (n + 1):
    run i has the bursts offsets[i] to offsets[i + 1]. Per burst (m): as in `InRooms`.
    """

    started: Reals
    ended: Reals
    duration: Reals
    trust: Reals
    application: Ints
    offsets: Ints
    begun: Reals
    lasting: Reals
    volume_bytes: Reals
    peak_bytes: Reals

    @classmethod
    def of_signatures(
        cls,
        times: tuple[Reals, Reals, Reals],
        of: tuple[Reals, Ints],
        offsets: Ints,
        bursts: tuple[Reals, Reals, Reals],
    ) -> Runs:
        """Return runs by their signatures.

        times: started, ended, duration (n), and of bursts begin and end (m), in steps; then volumes (m), in bytes. of:
        trust and application (n).
        """
        begun, ceased, volume = bursts
        lasting = np.maximum(ceased - begun, 1.0)
        return cls(*times, *of, offsets, begun, lasting, volume, PEAK_RATIO * volume / lasting)

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.started)

    def windows(self, step_count: int) -> tuple[Ints, Ints]:
        """Return the first step of each run, and the one after its last one, of those that there are."""
        first = np.clip(np.floor(self.started), 0, step_count).astype(np.int64)
        after = np.clip(np.ceil(self.ended) + 1, first, step_count).astype(np.int64)
        return first, after

    def in_rooms(self, runs: Ints, first: Ints) -> InRooms:
        """Return some runs whose rooms begin with these steps."""
        at = self.places_in(runs)
        return InRooms(
            self.started[runs] - first,
            self.ended[runs] - self.started[runs],
            self.duration[runs],
            offsets_of(self.counts[runs]),
            self.begun[at],
            self.lasting[at],
            self.volume_bytes[at],
            self.peak_bytes[at],
        )

    def surest_first(self) -> Ints:
        """Return the runs by how little their bursts can be taken for others': tall and well known ones first."""
        tallest, has_bursts = np.zeros(len(self)), self.counts > 0
        if has_bursts.any():
            tallest[has_bursts] = np.maximum.reduceat(self.peak_bytes, self.offsets[:-1][has_bursts])
        order: Ints = np.argsort(-tallest * self.trust, kind="stable")
        return order

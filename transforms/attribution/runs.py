"""Runs whose bytes are looked for in a file system's traffic: when they were there, and what each means to do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transforms.arrays import Ints, Reals

#: a burst's peak over its mean rate: measured peaks are noisier, and explain less (between 1.15 and 1.3 all are alike)
PEAK_RATIO = 1.2


@dataclass(frozen=True, slots=True)
class Run:
    """One run with b bursts, on the steps of the room in which it is placed: the room begins and ends with the run.

    started: where in the room's first step it started, 0 to 1. lasted: how long it was there; duration: how long one
    alone takes, both in steps. Per burst (b), in order of time: begun, when it begins in a run alone, in steps since
    the run's start; lasting, how many steps it takes alone; volume_bytes; peak_bytes, the most that it moves in a step.
    """

    started: float
    lasted: float
    duration: float
    begun: Reals
    lasting: Reals
    volume_bytes: Reals
    peak_bytes: Reals


@dataclass(frozen=True, slots=True)
class Runs:
    """n runs with m bursts in all, on the steps of the traffic's grid: step k is from time k to k + 1.

    started, ended (n): when each run was there, in steps. duration (n): what a run alone takes, in steps. trust (n):
    how far its signature is to be trusted, 0 to 1. application (n): whose signature it is, from 0. offsets (n + 1):
    run i has the bursts offsets[i] to offsets[i + 1]. Per burst (m): as in `Run`.
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

    def one(self, run: int, first: int) -> Run:
        """Return a run whose room begins with a step."""
        own = slice(self.offsets[run], self.offsets[run + 1])
        return Run(
            float(self.started[run]) - first,
            float(self.ended[run] - self.started[run]),
            float(self.duration[run]),
            self.begun[own],
            self.lasting[own],
            self.volume_bytes[own],
            self.peak_bytes[own],
        )

    def surest_first(self) -> Ints:
        """Return the runs by how little their bursts can be taken for others': tall and well known ones first."""
        tallest, has_bursts = np.zeros(len(self)), np.diff(self.offsets) > 0
        if has_bursts.any():
            tallest[has_bursts] = np.maximum.reduceat(self.peak_bytes, self.offsets[:-1][has_bursts])
        order: Ints = np.argsort(-tallest * self.trust, kind="stable")
        return order

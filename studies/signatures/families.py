"""Families of simulated sites that differ in what matters to signatures: all that they are, in one place.

Fixed before the methods that are measured on them. A level is the mean of foreign traffic over the application's
highest peak, the same in all families. What the words mean is in `injected` and `backgrounds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: the foreign mean over the application's peak
FOREIGN_LEVELS = {"calm": 0.2, "busy": 0.5, "stormy": 1.0}
#: from this drift on no method can know the mean time scale to a burst's width
MOST_KNOWN_DRIFT = 0.01

#: what a run's computing differs by: one factor, one for each gap, a sum of these, or by how much others do
Drift = Literal["scale", "gaps", "walk", "load"]
#: what others cost a burst: a fair share of one capacity, seeks, or a wait before it begins
Contention = Literal["fair", "seeks", "latency"]
#: what others do: see `backgrounds`
Foreign = Literal["rests", "never_rests", "streams", "tails", "neighbour", "diurnal", "real"]
#: what the runs do: all the same; volumes that grow with the step; bursts that are skipped; runs that stop and begin
#: again; three of ten runs with another input
Program = Literal["same", "growing", "skipping", "restarts", "inputs"]


@dataclass(frozen=True, slots=True)
class Family:
    """One family of sites.

    drift_ratio: the standard deviation of what waits are multiplied by. contention_size: the capacity as a multiple of
    the peak (fair), what others of one peak cost (seeks), or the mean wait where they move one peak [s] (latency).
    jitter_ratio: the standard deviation of when a poll is taken, over the interval.
    """

    name: str
    drift: Drift
    drift_ratio: float
    contention: Contention
    contention_size: float
    foreign: Foreign
    program: Program
    interval_s: float
    jitter_ratio: float

    @property
    def is_known_in_time(self) -> bool:
        """Whether ten runs can tell how long one takes alone, to about a burst's width."""
        return self.drift_ratio < MOST_KNOWN_DRIFT


FAMILIES: tuple[Family, ...] = (
    Family("resting", "scale", 0.003, "seeks", 0.15, "rests", "same", 2.0, 0.0),
    Family("unresting", "gaps", 0.008, "seeks", 0.15, "never_rests", "same", 2.0, 0.0),
    Family("fair", "gaps", 0.003, "fair", 2.0, "rests", "growing", 5.0, 0.1),
    Family("bursty", "walk", 0.005, "latency", 3.0, "tails", "same", 1.0, 0.0),
    Family("neighbour", "scale", 0.003, "fair", 3.0, "neighbour", "same", 2.0, 0.1),
    Family("diurnal", "load", 0.005, "seeks", 0.1, "diurnal", "restarts", 5.0, 0.0),
    Family("skipping", "gaps", 0.003, "seeks", 0.1, "rests", "skipping", 2.0, 0.1),
    Family("inputs", "scale", 0.003, "latency", 2.0, "tails", "inputs", 2.0, 0.0),
    Family("streams", "load", 0.003, "fair", 2.0, "streams", "growing", 1.0, 0.1),
    Family("coarse", "gaps", 0.003, "fair", 3.0, "diurnal", "same", 10.0, 0.1),
    Family("stretching", "scale", 0.015, "seeks", 0.1, "rests", "same", 2.0, 0.0),
    Family("wandering", "walk", 0.012, "latency", 2.0, "neighbour", "skipping", 5.0, 0.0),
)

#: neither drift nor contention: a run is the application alone
ALONE = Family("alone", "gaps", 0.0, "fair", 1e9, "rests", "same", 2.0, 0.0)
#: what runs are like among real traffic (Edison, polled every 5 s): cut into pieces that do not overlap, reads and
#: writes apart, each scaled to the levels
REAL = Family("edison", "gaps", 0.003, "seeks", 0.15, "real", "same", 5.0, 0.0)
#: hours of a piece: the longest application's runs find room in it
REAL_PIECE_HOURS = 4.0

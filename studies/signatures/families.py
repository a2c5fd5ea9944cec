"""Define families of simulated sites, which differ in the properties that affect signatures.

They were fixed before the methods were evaluated on them. A level is the mean background traffic relative to the
application's highest peak, and is the same in all families. See `injected` and `backgrounds` for the meaning of the
values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

#: mean background traffic relative to the application's peak
FOREIGN_LEVELS = {"calm": 0.2, "busy": 0.5, "stormy": 1.0}
#: drift above which the mean time scale cannot be estimated to within the width of a burst
MAX_KNOWN_DRIFT = 0.01

#: variation of computing times: one factor per run, one per gap, a random walk, by background load, or one stall of
#: exponentially distributed length per run
Drift = Literal["scale", "gaps", "walk", "load", "stall"]
#: effect of the background on a burst: fair sharing, seeks, or latency before it starts
Contention = Literal["fair", "seeks", "latency"]
#: kind of background traffic: see `backgrounds`
Foreign = Literal[
    "rests", "never_rests", "streams", "tails", "neighbour", "short_neighbour", "long_neighbour", "diurnal", "real"
]
#: behavior of the runs: all alike; volumes that grow from burst to burst; skipped bursts; runs that stop and restart;
#: three of ten runs with another input
Program = Literal["same", "growing", "skipping", "restarts", "inputs"]


@dataclass(frozen=True, slots=True)
class Family:
    """A family of sites with common drift, contention, background and polls.

    drift_ratio: standard deviation of the factor on waits, or mean stall relative to all waits. contention_size:
    capacity relative to the peak (fair), cost of a background of one peak (seeks), or mean wait at a background of one
    peak [s] (latency). jitter_ratio: standard deviation of poll times relative to the interval.

    drain_s: time constant with which a write-back cache drains [s]. clock_s: largest difference between the clocks of
    the job log and the polls, which varies between runs [s]. limit_ratio: time limit relative to the undisturbed
    duration. array_size: number of runs that are submitted together, and start within one undisturbed duration.
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
    drain_s: float = 0.0
    clock_s: float = 0.0
    limit_ratio: float = math.inf
    array_size: int = 1

    @property
    def has_known_time_scale(self) -> bool:
        """Whether ten runs suffice to estimate the undisturbed duration to about the width of a burst."""
        return self.drift == "stall" or self.drift_ratio < MAX_KNOWN_DRIFT


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
    Family("short stalls", "stall", 0.01, "seeks", 0.15, "rests", "same", 2.0, 0.0),
    Family("long stalls", "stall", 0.03, "seeks", 0.1, "tails", "same", 5.0, 0.1),
    Family("cache", "scale", 0.003, "fair", 3.0, "rests", "same", 2.0, 0.0, drain_s=5.0),
    Family("slow cache", "gaps", 0.003, "seeks", 0.1, "never_rests", "growing", 5.0, 0.1, drain_s=15.0),
    Family("clocks", "gaps", 0.003, "seeks", 0.1, "rests", "same", 2.0, 0.0, clock_s=3.0),
    Family("far clocks", "scale", 0.003, "fair", 2.0, "streams", "same", 5.0, 0.1, clock_s=8.0),
    Family("limits", "gaps", 0.003, "seeks", 0.3, "rests", "same", 2.0, 0.0, limit_ratio=1.03),
    Family("tight limits", "stall", 0.02, "fair", 2.0, "diurnal", "same", 5.0, 0.0, limit_ratio=1.02),
    Family("pairs", "scale", 0.003, "seeks", 0.1, "rests", "same", 2.0, 0.0, array_size=2),
    Family("arrays", "gaps", 0.003, "fair", 3.0, "tails", "growing", 5.0, 0.1, array_size=4),
    Family("short neighbour", "gaps", 0.003, "seeks", 0.1, "short_neighbour", "same", 2.0, 0.0),
    Family("long neighbour", "scale", 0.003, "fair", 2.0, "long_neighbour", "same", 5.0, 0.1),
)

#: family with neither drift nor contention, in which runs equal the undisturbed application
ALONE = Family("alone", "gaps", 0.0, "fair", 1e9, "rests", "same", 2.0, 0.0)
#: family with measured background traffic (Edison, polled every 5 s), cut into disjoint pieces, separately for reads
#: and writes, and scaled to the levels
REAL = Family("edison", "gaps", 0.003, "seeks", 0.15, "real", "same", 5.0, 0.0)
#: length of a piece [h], enough for the runs of the longest application
REAL_PIECE_HOURS = 4.0

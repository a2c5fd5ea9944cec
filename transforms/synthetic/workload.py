"""What the users of a supercomputer mean to do to its storage, before anybody is in anybody's way.

Applications that run again and again with the same bursts (IOSI: Liu et al., FAST'14, section 2.1), foreign
jobs with a period of their own (6.1), interactive transfers (4) and rare storms (5.1, outliers). Each is a
plan: jobs one after the other, or a transfer without a job. Each draws from a stream of random numbers of
its own, so that a further application changes nobody else's plans.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

Direction = Literal["read", "write"]
DIRECTIONS: tuple[Direction, ...] = ("read", "write")

GB = 1e9
DAY_S = 86400.0
#: a burst rises, holds and ebbs: shares of its volume, and of its peak (ours)
PROFILE = ((0.05, 0.5), (0.80, 1.0), (0.15, 0.6))
_PROFILE_S = sum(volume / peak for volume, peak in PROFILE)
#: the pieces of a plan that only mark an instant: a job's start and its end
START, END = -1, -2
_STOPPED_STATES = ("FAILED", "TIMEOUT", "NODE_FAIL", "CANCELLED")


@dataclass(frozen=True, slots=True)
class Burst:
    """One burst of an application: when it begins in a run alone on the machine, and what it moves.

    It reaches peak_bytes_per_s, and takes `duration_s` alone.
    """

    offset_s: float
    volume_bytes: float
    peak_bytes_per_s: float
    direction: Direction = "write"

    @property
    def duration_s(self) -> float:
        """How long the burst takes alone."""
        return self.volume_bytes / self.peak_bytes_per_s * _PROFILE_S

    @property
    def end_s(self) -> float:
        """When it ends in a run alone."""
        return self.offset_s + self.duration_s


@dataclass(frozen=True, slots=True)
class Revision:
    """A new version of an application: runs that start at `from_s` or later have this duration and these bursts."""

    from_s: float
    duration_s: float
    bursts: tuple[Burst, ...]


@dataclass(frozen=True, slots=True)
class Application:
    """What one user runs again and again: its size, its duration and its bursts alone on the machine.

    starts_s: when its runs start; such planned runs are all complete. Empty: `run_count` runs at random times, some of
    which stop. revision: what a later version does, if there is one. weight: of its transfers, see `Piece`: how many
    streams of a usual application they are.
    """

    name: str
    user: str
    account: str
    node_count: int
    duration_s: float
    bursts: tuple[Burst, ...]
    run_count: int = 10
    starts_s: tuple[float, ...] = ()
    revision: Revision | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse bursts that overlap: a run does one thing at a time."""
        if self.revision:
            self.at(self.revision.from_s)
        ends = [0.0, *(burst.end_s for burst in self.bursts)]
        begins = [*(burst.offset_s for burst in self.bursts), self.duration_s]
        if any(end > begin for end, begin in zip(ends, begins, strict=True)):
            raise ValueError(f"{self.name}: a burst begins before the one before it ends, or ends after the run")

    def at(self, time_s: float) -> Application:
        """Return the version that runs which start at a time have."""
        if self.revision is None or time_s < self.revision.from_s:
            return self
        return replace(self, duration_s=self.revision.duration_s, bursts=self.revision.bursts, revision=None)

    @property
    def waits_s(self) -> tuple[float, ...]:
        """The time without I/O before each burst, and after the last one."""
        ends = [0.0, *(burst.end_s for burst in self.bursts)]
        begins = [*(burst.offset_s for burst in self.bursts), self.duration_s]
        return tuple(begin - end for end, begin in zip(ends, begins, strict=True))

    def volume_bytes(self, direction: Direction) -> float:
        """Return what one whole run moves."""
        return sum(burst.volume_bytes for burst in self.bursts if burst.direction == direction)


def bursts(
    first_s: float, every_s: float, volumes_gb: Sequence[float], peaks_gb_per_s: Sequence[float], direction: Direction
) -> tuple[Burst, ...]:
    """Return one burst per volume at a fixed step; the peaks are taken in turn."""
    return tuple(
        Burst(first_s + i * every_s, volume * GB, peaks_gb_per_s[i % len(peaks_gb_per_s)] * GB, direction)
        for i, volume in enumerate(volumes_gb)
    )


#: The volumes and steps of the three IOR jobs are section 6's, at its 2 to 3 GB/s; they make 25 bursts
#: in all, as in 6.1. S3D stands for short tall bursts of uneven height (6.2). The others are ours:
#: one without a period, and shapes that give the classifier something to tell apart.
APPLICATIONS: tuple[Application, ...] = (
    Application("ior_a", "ana", "prj101", 16, 1520.0, bursts(240, 300, [128] * 5, [2.7], "write")),
    Application("ior_b", "ana", "prj101", 16, 1270.0, bursts(100, 120, [64, 16] * 5, [2.6], "write")),
    Application("ior_c", "ana", "prj101", 16, 1270.0, bursts(100, 120, [64, 32, 16] * 3 + [64], [2.5], "write")),
    Application("s3d", "ben", "prj102", 1125, 3980.0, bursts(310, 490, [22] * 8, [5.5, 4.2, 6.0, 4.8], "write")),
    Application(
        "flash",
        "chi",
        "prj103",
        256,
        3000.0,
        (
            Burst(130, 24 * GB, 2.0 * GB),
            Burst(412, 6 * GB, 1.2 * GB),
            Burst(475, 48 * GB, 2.4 * GB),
            Burst(1021, 12 * GB, 1.8 * GB),
            Burst(1704, 90 * GB, 2.8 * GB),
            Burst(1790, 6 * GB, 1.2 * GB),
            Burst(2603, 36 * GB, 2.2 * GB),
        ),
    ),
    Application(
        "montage",
        "dora",
        "prj104",
        32,
        2200.0,
        (*bursts(15, 30, [9] * 69, [0.8], "read"), Burst(2075, 320 * GB, 4.0 * GB)),
    ),
    Application(
        "milc",
        "emil",
        "prj105",
        512,
        2520.0,
        (Burst(20, 180 * GB, 3.0 * GB, "read"), Burst(140, 250 * GB, 2.6 * GB), Burst(2380, 260 * GB, 2.6 * GB)),
    ),
    Application(
        "gromacs",
        "fay",
        "prj106",
        64,
        2400.0,
        (Burst(8, 40 * GB, 2.0 * GB, "read"), *bursts(720, 110, [60] * 9, [2.4], "write")),
    ),
)


# ---- plans


@dataclass(frozen=True, slots=True)
class Workload:
    """How much is going on.

    seed, span_s: what is drawn, for how long. foreign_level: other users' activity as a multiple of the
    usual. drift_ratio: how much the computing between bursts differs from run to run, and half of what the
    speed of bursts does. stop_ratio: runs that do not come to their end. storm_bytes_per_s: what a storm
    reaches alone.
    """

    seed: int
    span_s: float
    foreign_level: float
    drift_ratio: float
    stop_ratio: float
    storm_bytes_per_s: float

    @property
    def days(self) -> range:
        """The days on which anything can begin: each has a stream of its own, so that the first is always the same."""
        return range(math.ceil(self.span_s / DAY_S))


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the log will have it; queue_s: how long it waits for its nodes.

    source: `application`, `foreign`, `transfer` or `storm`. kind, first_burst: of an application's runs,
    whether it is `complete`, `stopped` or a `restart`, and with which burst it begins.
    """

    name: str
    user: str
    account: str
    node_count: int
    queue_s: float
    source: str
    state: str = "COMPLETED"
    kind: str = ""
    first_burst: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """A wait and then a transfer; `burst` is its number in the run, or START or END for a job's own edges."""

    wait_s: float
    burst: int
    volume_bytes: float = 0.0
    peak_bytes_per_s: float = 1.0
    direction: Direction = "write"
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What one actor does from `start_s` on: jobs one after the other, or a transfer without a job."""

    start_s: float
    parts: tuple[tuple[Job, tuple[Piece, ...]], ...]


def stream(seed: int, *key: str | int) -> np.random.Generator:
    """Return a stream of random numbers of its own for each key."""
    words = tuple(zlib.crc32(str(part).encode()) for part in key)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=words))


def _shaped(burst: Burst, number: int, wait_s: float, speed: float, weight: float) -> Iterator[Piece]:
    for volume, peak in PROFILE:
        rate = burst.peak_bytes_per_s * peak * speed
        yield Piece(wait_s, number, burst.volume_bytes * volume, rate, burst.direction, weight)
        wait_s = 0.0


@dataclass(frozen=True, slots=True)
class _Pace:
    """How one run differs from the signature: its computing times, and the speed of its bursts."""

    waits_s: tuple[float, ...]
    speeds: tuple[float, ...]

    @classmethod
    def draw(cls, application: Application, drift_ratio: float, rng: np.random.Generator) -> _Pace:
        """Draw a run's pace: one factor for all of its computing, and a smaller one for each wait."""
        count = len(application.bursts)
        stretch = 1.0 + drift_ratio * (rng.standard_normal() + 0.3 * rng.standard_normal(count + 1))
        waits = np.array(application.waits_s) * np.maximum(stretch, 0.5)
        speeds = np.exp(2.0 * drift_ratio * rng.standard_normal(count))
        return cls(tuple(waits.tolist()), tuple(speeds.tolist()))


def _work(application: Application, pace: _Pace, first: int, last: int, cut: float) -> tuple[Piece, ...]:
    """Return a job's pieces: bursts `first` to `last`, and a share `cut` of the way to the end of the next.

    Up to a half of that way is computing, from there on the burst is under way.
    """
    pieces = [Piece(0.0, START)]
    for i in range(first, last):
        pieces += _shaped(application.bursts[i], i, pace.waits_s[i], pace.speeds[i], application.weight)
    wait = pace.waits_s[last]
    if last < len(application.bursts) and cut > 0.5:
        begun = replace(application.bursts[last], volume_bytes=application.bursts[last].volume_bytes * (2 * cut - 1))
        pieces += _shaped(begun, last, wait, pace.speeds[last], application.weight)
        wait = 0.0
    return (*pieces, Piece(wait * min(1.0, 2 * cut), END))


def _run(application: Application, number: int, workload: Workload) -> Plan:
    """Plan one run: complete, or stopped somewhere and perhaps begun again from its last whole burst."""
    rng = stream(workload.seed, "application", application.name, application.user, number)
    slot = max(0.0, workload.span_s - 1.2 * application.duration_s) / max(1, application.run_count)
    started = (number + rng.random()) * slot
    if application.starts_s:
        started = application.starts_s[number]
    application = application.at(started)
    pace = _Pace.draw(application, workload.drift_ratio, rng)
    queues = rng.lognormal(5.5, 1.2, 2)
    is_stopped, is_restarted = rng.random() < workload.stop_ratio, rng.random() < 0.75
    count = len(application.bursts)
    stop, cut, state = int(rng.integers(1, max(2, count))), rng.random(), str(rng.choice(_STOPPED_STATES))
    job = Job(
        application.name, application.user, application.account, application.node_count, queues[0], "application",
        kind="complete",
    )  # fmt: skip
    if not is_stopped or count < 2 or application.starts_s:
        return Plan(started, ((job, _work(application, pace, 0, count, 1.0)),))
    stopped = (replace(job, kind="stopped", state=state), _work(application, pace, 0, stop, cut))
    if not is_restarted:
        return Plan(started, (stopped,))
    again = replace(job, kind="restart", queue_s=queues[1], first_burst=stop)
    return Plan(started, (stopped, (again, _work(application, pace, stop, count, 1.0))))


# ---- everybody else


_FOREIGN_NAMES = (
    "xgc",
    "chimera",
    "lammps",
    "gtc",
    "cam",
    "qmcpack",
    "nwchem",
    "vasp",
    "namd",
    "denovo",
    "vpic",
    "wrf",
)


@dataclass(frozen=True, slots=True)
class _Foreign:
    """A foreign application: bursts at a step of its own, for as many cycles as the run has."""

    name: str
    user: str
    account: str
    node_count: int
    every_s: float
    volumes_bytes: tuple[float, ...]
    peak_bytes_per_s: float
    input_bytes: float
    cycles: float

    @classmethod
    def draw(cls, name: str, seed: int) -> _Foreign:
        """Draw what an application of that name does."""
        rng = stream(seed, "foreign", name)
        every = float(rng.choice([60, 90, 180, 300, 450, 600, 900, 1200, 1800]))
        # IOSI, 5.3: applications keep their I/O to 5 to 10 percent of the run, and there are lighter ones
        peak = rng.uniform(0.5, 2.5) * GB
        volume = every * rng.uniform(0.03, 0.10) * peak
        return cls(
            name, f"u{rng.integers(1000, 9999)}", f"prj{rng.integers(1, 99):03d}", int(2 ** rng.integers(3, 11)),
            every, (volume,) if rng.random() < 0.6 else (volume, volume / 4), peak,
            rng.uniform(5, 60) * GB if rng.random() < 0.5 else 0.0, rng.uniform(2000, 9000) / every,
        )  # fmt: skip

    def run(self, start_s: float, rng: np.random.Generator) -> Plan:
        """Plan one run of it."""
        cycles = max(1, int(rng.lognormal(np.log(self.cycles), 0.5)))
        state = str(rng.choice(_STOPPED_STATES)) if rng.random() < 0.1 else "COMPLETED"
        job = Job(self.name, self.user, self.account, self.node_count, rng.lognormal(5.5, 1.2), "foreign", state)
        pieces = [Piece(0.0, START)]
        if self.input_bytes:
            pieces.append(Piece(10.0, 0, self.input_bytes, self.peak_bytes_per_s, "read"))
        for cycle in range(cycles):
            volume = self.volumes_bytes[cycle % len(self.volumes_bytes)]
            wait = (self.every_s - volume / self.peak_bytes_per_s) * rng.normal(1.0, 0.01)
            pieces.append(Piece(wait, cycle + 1, volume, self.peak_bytes_per_s))
        return Plan(start_s, ((job, (*pieces, Piece(rng.uniform(5, 60), END))),))


def _foreign(workload: Workload) -> Iterator[Plan]:
    """Plan foreign jobs: about 30 a day, of a dozen applications."""
    known = [_Foreign.draw(name, workload.seed) for name in _FOREIGN_NAMES]
    for day in workload.days:
        rng = stream(workload.seed, "foreign-day", day)
        for at in np.sort(rng.uniform(0.0, DAY_S, rng.poisson(30 * workload.foreign_level))):
            yield known[int(rng.integers(len(known)))].run(day * DAY_S + float(at), rng)


def _transfers(workload: Workload) -> Iterator[Plan]:
    """Plan interactive transfers: slow, of all sizes, mostly in working hours."""
    hours = 1.0 + 0.9 * np.sin((np.arange(24) - 10.0) / 24.0 * 2.0 * np.pi)
    for day in workload.days:
        rng = stream(workload.seed, "transfers", day)
        count = rng.poisson(180 * workload.foreign_level)
        at = (rng.choice(24, count, p=hours / hours.sum()) + rng.random(count)) * 3600.0 + day * DAY_S
        volumes, peaks = rng.lognormal(np.log(2 * GB), 1.2, count), rng.lognormal(np.log(0.08 * GB), 0.6, count)
        ways = rng.integers(2, size=count)
        for i in range(count):
            piece = Piece(0.0, 0, volumes[i], peaks[i], DIRECTIONS[ways[i]], 0.1)
            yield Plan(float(at[i]), ((Job("scp", "", "", 0, 0.0, "transfer"), (piece,)),))


def _storms(workload: Workload) -> Iterator[Plan]:
    """Plan storms: rare, many streams at once, half of the bandwidth for minutes."""
    for day in workload.days:
        rng = stream(workload.seed, "storms", day)
        for _ in range(rng.poisson(1.0 * workload.foreign_level)):
            peak = workload.storm_bytes_per_s
            at, lasting, way = day * DAY_S + rng.uniform(0.0, DAY_S), rng.uniform(240, 900), rng.integers(2)
            piece = Piece(0.0, 0, peak * lasting, peak, DIRECTIONS[way], 4.0)
            yield Plan(at, ((Job("storm", "", "", 0, 0.0, "storm"), (piece,)),))


def plans(applications: Sequence[Application], workload: Workload) -> list[Plan]:
    """Plan everything that anybody does: the applications' runs first, in order, then the others."""
    runs = [
        _run(application, number, workload)
        for application in applications
        for number in range(len(application.starts_s) or application.run_count)
    ]
    return [*runs, *_foreign(workload), *_transfers(workload), *_storms(workload)]

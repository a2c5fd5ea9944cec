"""Plan the I/O of the users of a supercomputer, before contention.

The activities are applications that run repeatedly with the same bursts (IOSI: Liu et al., FAST'14, section 2.1),
foreign jobs with their own periods (6.1), interactive transfers (4) and rare storms (5.1, outliers). Each activity is a
plan: consecutive jobs, or a transfer without a job. Each plan has a separate random stream, so that an additional
application does not change the others.
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
#: fractions of a burst's volume and of its peak rate while it rises, holds and falls (our choice)
PROFILE = ((0.05, 0.5), (0.80, 1.0), (0.15, 0.6))
_PROFILE_S = sum(volume / peak for volume, peak in PROFILE)
#: burst numbers of the pieces that mark a job's start and end
START, END = -1, -2
_STOPPED_STATES = ("FAILED", "TIMEOUT", "NODE_FAIL", "CANCELLED")


@dataclass(frozen=True, slots=True)
class Burst:
    """Burst of an application in a run without contention.

    It reaches `peak_bytes_per_s`, and lasts `duration_s`.
    """

    offset_s: float
    volume_bytes: float
    peak_bytes_per_s: float
    direction: Direction = "write"

    @property
    def duration_s(self) -> float:
        """Duration without contention [s]."""
        return self.volume_bytes / self.peak_bytes_per_s * _PROFILE_S

    @property
    def end_s(self) -> float:
        """End of the burst in a run without contention [s]."""
        return self.offset_s + self.duration_s


@dataclass(frozen=True, slots=True)
class Revision:
    """New version of an application: duration and bursts of runs that start at `from_s` or later."""

    from_s: float
    duration_s: float
    bursts: tuple[Burst, ...]


@dataclass(frozen=True, slots=True)
class Application:
    """Application that a user runs repeatedly: size, duration, and bursts without contention.

    Attributes
    ----------
    run_count
        Number of runs at random times; some runs stop early.
    starts_s
        Start times of complete runs [s]; replaces `run_count` unless empty.
    revision
        Later version, if any.
    weight
        Weight of its transfers, see `Piece`, relative to a typical application.
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
        """Raise ValueError if bursts overlap."""
        if self.revision:
            self.at(self.revision.from_s)
        ends = [0.0, *(burst.end_s for burst in self.bursts)]
        begins = [*(burst.offset_s for burst in self.bursts), self.duration_s]
        if any(end > begin for end, begin in zip(ends, begins, strict=True)):
            raise ValueError(f"{self.name}: a burst overlaps the previous one, or ends after the run")

    def at(self, time_s: float) -> Application:
        """Return the version of the application for runs that start at a time."""
        if self.revision is None or time_s < self.revision.from_s:
            return self
        return replace(self, duration_s=self.revision.duration_s, bursts=self.revision.bursts, revision=None)

    @property
    def waits_s(self) -> tuple[float, ...]:
        """Time without I/O before each burst, and after the last one [s]."""
        ends = [0.0, *(burst.end_s for burst in self.bursts)]
        begins = [*(burst.offset_s for burst in self.bursts), self.duration_s]
        return tuple(begin - end for end, begin in zip(ends, begins, strict=True))

    def volume_bytes(self, direction: Direction) -> float:
        """Bytes of a complete run in one direction."""
        return sum(burst.volume_bytes for burst in self.bursts if burst.direction == direction)


def bursts(
    first_s: float, every_s: float, volumes_gb: Sequence[float], peaks_gb_per_s: Sequence[float], direction: Direction
) -> tuple[Burst, ...]:
    """Create bursts at a fixed interval.

    Parameters
    ----------
    first_s, every_s
        Start of the first burst, and interval [s].
    volumes_gb
        Volume of each burst.
    peaks_gb_per_s
        Peak rates, used cyclically.
    direction
        Read or write.

    Returns
    -------
    tuple[Burst, ...]
        One per volume.
    """
    return tuple(
        Burst(first_s + i * every_s, volume * GB, peaks_gb_per_s[i % len(peaks_gb_per_s)] * GB, direction)
        for i, volume in enumerate(volumes_gb)
    )


#: applications of a site; the volumes and intervals of the three IOR jobs are those of section 6, at 2 to 3 GB/s; they
#: have 25 bursts in total, as in 6.1; S3D represents short, high bursts of different heights (6.2); the others are our
#: own: one without a period, and shapes of different classes
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
    """Activity level and randomness of a workload.

    Attributes
    ----------
    seed, span_s
        Random seed, and duration [s].
    foreign_level
        Activity of other users, as a multiple of the typical one.
    drift_ratio
        Relative standard deviation of the computing time between bursts; that of the bursts' speed is twice this value.
    stop_ratio
        Fraction of runs that stop early.
    storm_bytes_per_s
        Rate of a storm without contention.
    """

    seed: int
    span_s: float
    foreign_level: float
    drift_ratio: float
    stop_ratio: float
    storm_bytes_per_s: float

    @property
    def days(self) -> range:
        """Days on which plans can start; each has a separate random stream."""
        return range(math.ceil(self.span_s / DAY_S))


@dataclass(frozen=True, slots=True)
class Job:
    """Job as it will appear in the log.

    Attributes
    ----------
    queue_s
        Time in the queue [s].
    source
        `application`, `foreign`, `transfer` or `storm`.
    kind, first_burst
        For runs of applications: `complete`, `stopped` or `restart`, and the number of the first burst.
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
    """Wait followed by a transfer; `burst` is the number of the burst in the run, or START or END."""

    wait_s: float
    burst: int
    volume_bytes: float = 0.0
    peak_bytes_per_s: float = 1.0
    direction: Direction = "write"
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Activities from `start_s` on, either consecutive jobs, or a transfer without a job."""

    start_s: float
    parts: tuple[tuple[Job, tuple[Piece, ...]], ...]


def stream(seed: int, *key: str | int) -> np.random.Generator:
    """Create the random generator of a key; different keys give independent generators."""
    words = tuple(zlib.crc32(str(part).encode()) for part in key)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=words))


def _shape_burst(burst: Burst, number: int, wait_s: float, speed: float, weight: float) -> Iterator[Piece]:
    for volume, peak in PROFILE:
        rate = burst.peak_bytes_per_s * peak * speed
        yield Piece(wait_s, number, burst.volume_bytes * volume, rate, burst.direction, weight)
        wait_s = 0.0


@dataclass(frozen=True, slots=True)
class _Pace:
    """Computing times and burst speeds of a run, which deviate from the signature."""

    waits_s: tuple[float, ...]
    speeds: tuple[float, ...]

    @classmethod
    def draw(cls, application: Application, drift_ratio: float, rng: np.random.Generator) -> _Pace:
        """Draw a common deviation for all computing times, a smaller one for each, and the speeds of bursts."""
        count = len(application.bursts)
        stretch = 1.0 + drift_ratio * (rng.standard_normal() + 0.3 * rng.standard_normal(count + 1))
        waits = np.array(application.waits_s) * np.maximum(stretch, 0.5)
        speeds = np.exp(2.0 * drift_ratio * rng.standard_normal(count))
        return cls(tuple(waits.tolist()), tuple(speeds.tolist()))


def _make_pieces(application: Application, pace: _Pace, first: int, last: int, cut: float) -> tuple[Piece, ...]:
    """Create the pieces of a job from bursts `first` to `last`, and a fraction `cut` of the way to the end of the next.

    The first half of that way is the computation, and the second half is the burst.
    """
    pieces = [Piece(0.0, START)]
    for i in range(first, last):
        pieces += _shape_burst(application.bursts[i], i, pace.waits_s[i], pace.speeds[i], application.weight)
    wait = pace.waits_s[last]
    if last < len(application.bursts) and cut > 0.5:
        partial = replace(application.bursts[last], volume_bytes=application.bursts[last].volume_bytes * (2 * cut - 1))
        pieces += _shape_burst(partial, last, wait, pace.speeds[last], application.weight)
        wait = 0.0
    return (*pieces, Piece(wait * min(1.0, 2 * cut), END))


def _plan_run(application: Application, number: int, workload: Workload) -> Plan:
    """Plan one run, which is complete, or stopped early and possibly restarted from its last complete burst."""
    rng = stream(workload.seed, "application", application.name, application.user, number)
    slot = max(0.0, workload.span_s - 1.2 * application.duration_s) / max(1, application.run_count)
    started = (number + rng.random()) * slot
    if application.starts_s:
        started = application.starts_s[number]
    application = application.at(started)
    pace = _Pace.draw(application, workload.drift_ratio, rng)
    queues = rng.lognormal(5.5, 1.2, 2)
    is_stopped, has_restart = rng.random() < workload.stop_ratio, rng.random() < 0.75
    count = len(application.bursts)
    stop, cut, state = int(rng.integers(1, max(2, count))), rng.random(), str(rng.choice(_STOPPED_STATES))
    job = Job(
        application.name, application.user, application.account, application.node_count, queues[0], "application",
        kind="complete",
    )  # fmt: skip
    if not is_stopped or count < 2 or application.starts_s:
        return Plan(started, ((job, _make_pieces(application, pace, 0, count, 1.0)),))
    stopped = (replace(job, kind="stopped", state=state), _make_pieces(application, pace, 0, stop, cut))
    if not has_restart:
        return Plan(started, (stopped,))
    restart = replace(job, kind="restart", queue_s=queues[1], first_burst=stop)
    return Plan(started, (stopped, (restart, _make_pieces(application, pace, stop, count, 1.0))))


# ---- other users


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
class _ForeignApplication:
    """Foreign application with bursts at an interval of its own, for a number of cycles per run."""

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
    def draw(cls, name: str, seed: int) -> _ForeignApplication:
        """Draw the parameters of an application with this name."""
        rng = stream(seed, "foreign", name)
        every = float(rng.choice([60, 90, 180, 300, 450, 600, 900, 1200, 1800]))
        # IOSI, 5.3: I/O takes 5 to 10 percent of the run, and less in some applications
        peak = rng.uniform(0.5, 2.5) * GB
        volume = every * rng.uniform(0.03, 0.10) * peak
        return cls(
            name, f"u{rng.integers(1000, 9999)}", f"prj{rng.integers(1, 99):03d}", int(2 ** rng.integers(3, 11)),
            every, (volume,) if rng.random() < 0.6 else (volume, volume / 4), peak,
            rng.uniform(5, 60) * GB if rng.random() < 0.5 else 0.0, rng.uniform(2000, 9000) / every,
        )  # fmt: skip

    def run(self, start_s: float, rng: np.random.Generator) -> Plan:
        """Plan one run of the application as a job."""
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


def _plan_foreign(workload: Workload) -> Iterator[Plan]:
    """Plan foreign jobs: about 30 per day, of twelve applications."""
    applications = [_ForeignApplication.draw(name, workload.seed) for name in _FOREIGN_NAMES]
    for day in workload.days:
        rng = stream(workload.seed, "foreign-day", day)
        for at in np.sort(rng.uniform(0.0, DAY_S, rng.poisson(30 * workload.foreign_level))):
            yield applications[int(rng.integers(len(applications)))].run(day * DAY_S + float(at), rng)


def _plan_transfers(workload: Workload) -> Iterator[Plan]:
    """Plan interactive transfers, which are slow, of any size, and mostly during working hours."""
    hours = 1.0 + 0.9 * np.sin((np.arange(24) - 10.0) / 24.0 * 2.0 * np.pi)
    for day in workload.days:
        rng = stream(workload.seed, "transfers", day)
        count = rng.poisson(180 * workload.foreign_level)
        at = (rng.choice(24, count, p=hours / hours.sum()) + rng.random(count)) * 3600.0 + day * DAY_S
        volumes, peaks = rng.lognormal(np.log(2 * GB), 1.2, count), rng.lognormal(np.log(0.08 * GB), 0.6, count)
        direction_indexes = rng.integers(2, size=count)
        for i in range(count):
            piece = Piece(0.0, 0, volumes[i], peaks[i], DIRECTIONS[direction_indexes[i]], 0.1)
            yield Plan(float(at[i]), ((Job("scp", "", "", 0, 0.0, "transfer"), (piece,)),))


def _plan_storms(workload: Workload) -> Iterator[Plan]:
    """Plan storms, which are rare, have many simultaneous streams, and take half of the bandwidth for minutes."""
    for day in workload.days:
        rng = stream(workload.seed, "storms", day)
        for _ in range(rng.poisson(1.0 * workload.foreign_level)):
            peak = workload.storm_bytes_per_s
            at, duration_s, direction_index = (
                day * DAY_S + rng.uniform(0.0, DAY_S),
                rng.uniform(240, 900),
                rng.integers(2),
            )
            piece = Piece(0.0, 0, peak * duration_s, peak, DIRECTIONS[direction_index], 4.0)
            yield Plan(at, ((Job("storm", "", "", 0, 0.0, "storm"), (piece,)),))


def make_plans(applications: Sequence[Application], workload: Workload) -> list[Plan]:
    """Plan all activities: first the runs of the applications, in order, then the activities of other users."""
    runs = [
        _plan_run(application, number, workload)
        for application in applications
        for number in range(len(application.starts_s) or application.run_count)
    ]
    return [*runs, *_plan_foreign(workload), *_plan_transfers(workload), *_plan_storms(workload)]

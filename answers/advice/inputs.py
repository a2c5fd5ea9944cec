"""What advice rests on: signatures, and file systems with their load and what runs there, whoever tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.warehouse.contracts.application_ids import all_node_counts

#: whether the curve of a release is used, the bursts of a feed, or those that a mix holds itself
SignatureBasis = Literal["curve", "bursts", "mix"]
CapacityBasis = Literal["settings", "observed", "mix"]
#: known: its signature says what comes; over: it has run for longer than its signature; unknown: in the background
JobStatus = Literal["known", "over", "unknown"]


@dataclass(frozen=True, slots=True)
class Rates:
    """A rate that is constant between edges: edges_s (n + 1) from 0 on, since the run's start, and bytes_per_s (n)."""

    edges_s: Reals
    bytes_per_s: Reals

    @classmethod
    def of_curve(cls, bytes_per_s: Reals) -> Rates:
        """Return a signature's curve, a value for each second (n)."""
        return cls(np.arange(len(bytes_per_s) + 1, dtype=np.float64), bytes_per_s)

    @classmethod
    def of_bursts(cls, start_s: Reals, duration_s: Reals, volume_bytes: Reals, until_s: float = 0.0) -> Rates:
        """Return bursts (n) in any order, each at its mean rate; where they overlap, their sum."""
        rates = volume_bytes / duration_s
        places = np.concatenate([[0.0], start_s, start_s + duration_s])
        steps = np.concatenate([[0.0], rates, -rates])
        edges, edge_of = np.unique(np.append(places, max(until_s, float(places.max()))), return_inverse=True)
        changes = np.bincount(edge_of, np.append(steps, 0.0), len(edges))
        return cls(edges, np.maximum(np.cumsum(changes)[:-1], 0.0))

    @classmethod
    def sum_of(cls, parts: Sequence[Rates]) -> Rates:
        """Return the sum of rates, at all their edges."""
        edges = np.unique(np.concatenate([np.zeros(1), *(part.edges_s for part in parts)]))
        total = np.zeros(max(len(edges) - 1, 0))
        for part in parts:
            total += np.diff(part.moved_bytes(edges)) / np.diff(edges)
        return cls(edges, total)

    @property
    def duration_s(self) -> float:
        """When the last of it ends, since the run's start."""
        return float(self.edges_s[-1])

    @property
    def volume_bytes(self) -> float:
        """All of it."""
        return float(self.bytes_per_s @ np.diff(self.edges_s))

    @property
    def peak_bytes_per_s(self) -> float:
        """The highest rate."""
        return float(self.bytes_per_s.max(initial=0.0))

    def moved_bytes(self, at_s: Reals) -> Reals:
        """Return what is moved by some instants since the run's start (m)."""
        moved = np.concatenate([np.zeros(1), np.cumsum(self.bytes_per_s * np.diff(self.edges_s))])
        found: Reals = np.interp(at_s, self.edges_s, moved)
        return found

    def stepped(self, from_s: float, step_s: float, count: int) -> Reals:
        """Return the mean rates of so many steps of one length, from an instant on (count)."""
        edges: Reals = from_s + step_s * np.arange(count + 1, dtype=np.float64)
        found: Reals = np.maximum(np.diff(self.moved_bytes(edges)) / step_s, 0.0)
        return found


@dataclass(frozen=True, slots=True)
class KnownSignature:
    """What an application moves alone, reads and writes added up: both share the file system.

    filesystem: whose signature it is. outcomes: of each direction. confidence: how probable it is that the next run
    moves a byte of it where it says, None where the method does not tell. expected correlation: the correlation with
    what it moves alone that is to be expected, None where that is not told. valid_until: not to be used from then on.
    """

    application_id: str | None
    filesystem: str | None
    rates: Rates
    basis: SignatureBasis
    outcomes: Mapping[str, str]
    method: str | None = None
    confidence: float | None = None
    expected_correlation: float | None = None
    sample_count: int | None = None
    last_run_ended_at: datetime | None = None
    valid_until: datetime | None = None

    def holds_at(self, at: datetime) -> bool:
        """Return whether it may still be used."""
        return self.valid_until is None or at < self.valid_until


class SignatureSource(Protocol):
    """Where signatures come from."""

    def application_ids(self) -> Sequence[str]:
        """Return the applications that have a signature, in order."""

    def others(self) -> Sequence[str]:
        """Return further applications that are known to have none, in order."""

    def of(self, application_ids: Iterable[str]) -> Mapping[str, Mapping[str, KnownSignature]]:
        """Return the signatures of some applications, by application and file system; what has none is left out."""

    def why_none(self, application_id: str) -> str:
        """Say, in a sentence or two, what is known of an application without a signature, and what to do."""


def most_told(by_filesystem: Mapping[str, KnownSignature]) -> KnownSignature:
    """Return the signature of the file system on which an application moves most."""
    return max(
        (by_filesystem[name] for name in sorted(by_filesystem)), key=lambda signature: signature.rates.volume_bytes
    )


def on_filesystem(
    known: Mapping[str, Mapping[str, KnownSignature]], application_id: str, filesystem: str, *, is_certain: bool
) -> KnownSignature | None:
    """Return what is known of an application on a file system; of all node counts where its own has nothing.

    is_certain: it is known that the application runs there, so that its signature of another one holds as well.
    """
    for name in (application_id, all_node_counts(application_id)):
        found = known.get(name, {})
        if filesystem in found:
            return found[filesystem]
        if found and is_certain:
            return most_told(found)
    return None


@dataclass(frozen=True, slots=True)
class RunningJob:
    """What runs on a file system, or did so within the time of its load.

    elapsed_s: since its start. ended_s_ago: None while it runs. signature: None where nothing is known of it.
    """

    name: str
    application_id: str | None
    elapsed_s: float
    signature: KnownSignature | None
    ended_s_ago: float | None = None

    @property
    def is_running(self) -> bool:
        """Whether it still runs."""
        return self.ended_s_ago is None

    @property
    def status(self) -> JobStatus:
        """What its signature says of the time to come."""
        if self.signature is None:
            return "unknown"
        return "known" if self.elapsed_s < self.signature.rates.duration_s else "over"

    def attributed_bytes(self, from_s: float, until_s: float) -> float:
        """Return what its signature says it moved between two times, each so many seconds ago."""
        if self.signature is None:
            return 0.0
        until_s = max(until_s, self.ended_s_ago or 0.0)
        started = max(self.elapsed_s - from_s, 0.0)
        moved = self.signature.rates.moved_bytes(np.array([started, max(self.elapsed_s - until_s, started)]))
        return float(moved[1] - moved[0])


@dataclass(frozen=True, slots=True)
class Load:
    """What a file system moved of late: the mean rate, and the time it was measured in, so many seconds ago.

    measured_until: when the last poll ended; None where whoever told of it did not say.
    """

    bytes_per_s: float
    from_s_ago: float
    until_s_ago: float
    measured_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class FilesystemState:
    """A file system that a job can be sent to.

    capacity_bytes_per_s: what it can move at most, from whom, and when it was seen to. load: None where the background
    is told outright (given_background_bytes_per_s).
    """

    filesystem: str
    capacity_bytes_per_s: float
    capacity_basis: CapacityBasis
    running: tuple[RunningJob, ...]
    load: Load | None
    given_background_bytes_per_s: float | None = None
    capacity_observed_at: datetime | None = None

    @property
    def attributed_bytes_per_s(self) -> float:
        """What the signatures of its jobs say of the time in which the load was measured."""
        if self.load is None:
            return 0.0
        lasted_s = self.load.from_s_ago - self.load.until_s_ago
        moved = sum(job.attributed_bytes(self.load.from_s_ago, self.load.until_s_ago) for job in self.running)
        return moved / lasted_s

    @property
    def background_bytes_per_s(self) -> float:
        """What nobody's signature explains of its load, never below 0; it is expected to go on."""
        if self.load is None:
            return self.given_background_bytes_per_s or 0.0
        return max(self.load.bytes_per_s - self.attributed_bytes_per_s, 0.0)

    @property
    def now_running(self) -> tuple[RunningJob, ...]:
        """The jobs that still run."""
        return tuple(job for job in self.running if job.is_running)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file system of which nothing can be said, and why."""

    filesystem: str
    reason: str


@dataclass(frozen=True, slots=True)
class SiteState:
    """All file systems that advice is about, at one instant."""

    at: datetime
    filesystems: tuple[FilesystemState, ...]
    excluded: tuple[LeftOut, ...] = ()


def utc(value: datetime) -> datetime:
    """Return an instant in UTC; one without a zone is UTC already."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)

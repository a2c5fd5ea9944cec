"""Define the inputs of advice: signatures, and file systems with their load and running jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.warehouse.contracts.application_ids import all_node_counts

#: origin of a signature: curve of a release, bursts of a feed, or bursts given in a mix
SignatureBasis = Literal["curve", "bursts", "mix"]
CapacityBasis = Literal["settings", "observed", "mix"]
#: known: the job is within its signature; over: it has run for longer than its signature; unknown: it has no signature,
#: so its traffic counts as background
JobStatus = Literal["known", "over", "unknown"]


@dataclass(frozen=True, slots=True)
class Rates:
    """Piecewise constant rate: `edges_s` (n + 1) since the run's start, beginning at 0, and `bytes_per_s` (n)."""

    edges_s: Reals
    bytes_per_s: Reals

    @classmethod
    def of_curve(cls, bytes_per_s: Reals) -> Rates:
        """Build rates from a signature's curve with one value per second (n)."""
        return cls(np.arange(len(bytes_per_s) + 1, dtype=np.float64), bytes_per_s)

    @classmethod
    def of_bursts(cls, start_s: Reals, duration_s: Reals, volume_bytes: Reals, until_s: float = 0.0) -> Rates:
        """Build rates from bursts (n) in any order, each at its mean rate; overlapping bursts are summed."""
        rates = volume_bytes / duration_s
        places = np.concatenate([[0.0], start_s, start_s + duration_s])
        steps = np.concatenate([[0.0], rates, -rates])
        edges, edge_of = np.unique(np.append(places, max(until_s, float(places.max()))), return_inverse=True)
        changes = np.bincount(edge_of, np.append(steps, 0.0), len(edges))
        return cls(edges, np.maximum(np.cumsum(changes)[:-1], 0.0))

    @classmethod
    def sum_of(cls, parts: Sequence[Rates]) -> Rates:
        """Add rates on the union of their edges."""
        edges = np.unique(np.concatenate([np.zeros(1), *(part.edges_s for part in parts)]))
        total = np.zeros(max(len(edges) - 1, 0))
        for part in parts:
            total += np.diff(part.cumulative_bytes(edges)) / np.diff(edges)
        return cls(edges, total)

    @property
    def duration_s(self) -> float:
        """Time of the last edge since the run's start."""
        return float(self.edges_s[-1])

    @property
    def volume_bytes(self) -> float:
        """Integral of the rate over time."""
        return float(self.bytes_per_s @ np.diff(self.edges_s))

    @property
    def peak_bytes_per_s(self) -> float:
        """Maximum of the rate; 0 if there are no intervals."""
        return float(self.bytes_per_s.max(initial=0.0))

    def cumulative_bytes(self, at_s: Reals) -> Reals:
        """Return the cumulative bytes at times since the run's start (m)."""
        cumulative_bytes_at_edges = np.concatenate([np.zeros(1), np.cumsum(self.bytes_per_s * np.diff(self.edges_s))])
        values: Reals = np.interp(at_s, self.edges_s, cumulative_bytes_at_edges)
        return values

    def resample(self, from_s: float, step_s: float, count: int) -> Reals:
        """Return mean rates in `count` steps of equal length, beginning at `from_s`."""
        edges: Reals = from_s + step_s * np.arange(count + 1, dtype=np.float64)
        means: Reals = np.maximum(np.diff(self.cumulative_bytes(edges)) / step_s, 0.0)
        return means


@dataclass(frozen=True, slots=True)
class KnownSignature:
    """Rate of an application without interference; reads and writes are summed, since both share the file system.

    outcomes: outcome per direction. confidence: probability that the next run moves a byte at the time that the
    signature gives, None if the method has none. expected_correlation: expected correlation with the undisturbed run,
    None if unknown. valid_until: expiry.
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
        """Return whether the signature has not expired."""
        return self.valid_until is None or at < self.valid_until


class SignatureSource(Protocol):
    """Lookup of signatures, from a release or from a feed."""

    def application_ids(self) -> Sequence[str]:
        """Return the ids of applications with a signature, sorted."""

    def list_without_signature(self) -> Sequence[str]:
        """Return the ids of known applications without a signature, sorted."""

    def find(self, application_ids: Iterable[str]) -> Mapping[str, Mapping[str, KnownSignature]]:
        """Return signatures by application and file system; applications without a signature are omitted."""

    def explain_missing(self, application_id: str) -> str:
        """Explain in one or two sentences why an application has no signature, and how to get one."""


def choose_largest(by_filesystem: Mapping[str, KnownSignature]) -> KnownSignature:
    """Return the signature with the largest volume among file systems; the first by name on a tie."""
    return max(
        (by_filesystem[name] for name in sorted(by_filesystem)), key=lambda signature: signature.rates.volume_bytes
    )


def find_for_filesystem(
    signatures_by_application: Mapping[str, Mapping[str, KnownSignature]],
    application_id: str,
    filesystem: str,
    *,
    is_certain: bool,
) -> KnownSignature | None:
    """Find the signature of an application on a file system, falling back to its signature for all node counts.

    is_certain: the application is known to run there, so its signature of another file system is used as well.
    """
    for name in (application_id, all_node_counts(application_id)):
        signatures = signatures_by_application.get(name, {})
        if filesystem in signatures:
            return signatures[filesystem]
        if signatures and is_certain:
            return choose_largest(signatures)
    return None


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that runs on a file system, or ran there within the load window.

    elapsed_s: time since its start. ended_s_ago: None while it runs. signature: None if unknown.
    """

    name: str
    application_id: str | None
    elapsed_s: float
    signature: KnownSignature | None
    ended_s_ago: float | None = None

    @property
    def is_running(self) -> bool:
        """Whether the job has not ended."""
        return self.ended_s_ago is None

    @property
    def status(self) -> JobStatus:
        """Whether the job has a signature, and has not yet run for longer than that."""
        if self.signature is None:
            return "unknown"
        return "known" if self.elapsed_s < self.signature.rates.duration_s else "over"

    def attributed_bytes(self, from_s: float, until_s: float) -> float:
        """Return the bytes that its signature attributes to it between two times, in seconds before now."""
        if self.signature is None:
            return 0.0
        until_s = max(until_s, self.ended_s_ago or 0.0)
        start_s = max(self.elapsed_s - from_s, 0.0)
        cumulative = self.signature.rates.cumulative_bytes(np.array([start_s, max(self.elapsed_s - until_s, start_s)]))
        return float(cumulative[1] - cumulative[0])


@dataclass(frozen=True, slots=True)
class Load:
    """Recent mean rate of a file system, and its measurement window in seconds before now.

    measured_until: end of the last poll; None if the input does not give it.
    """

    bytes_per_s: float
    from_s_ago: float
    until_s_ago: float
    measured_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class FilesystemState:
    """State of a file system that is a candidate for a job.

    capacity_bytes_per_s: maximum rate; capacity_basis and capacity_observed_at give its origin. load: None if the
    background is given directly (given_background_bytes_per_s).
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
        """Mean rate that signatures attribute to its jobs within the measurement window of the load."""
        if self.load is None:
            return 0.0
        window_s = self.load.from_s_ago - self.load.until_s_ago
        attributed = sum(job.attributed_bytes(self.load.from_s_ago, self.load.until_s_ago) for job in self.running)
        return attributed / window_s

    @property
    def background_bytes_per_s(self) -> float:
        """Unattributed part of the load, never negative; advice expects it to continue."""
        if self.load is None:
            return self.given_background_bytes_per_s or 0.0
        return max(self.load.bytes_per_s - self.attributed_bytes_per_s, 0.0)

    @property
    def now_running(self) -> tuple[RunningJob, ...]:
        """Jobs without an end time, which still load the file system."""
        return tuple(job for job in self.running if job.is_running)


@dataclass(frozen=True, slots=True)
class ExcludedFilesystem:
    """A file system that cannot be assessed, and the reason."""

    filesystem: str
    reason: str


@dataclass(frozen=True, slots=True)
class SiteState:
    """All candidate file systems at one instant."""

    at: datetime
    filesystems: tuple[FilesystemState, ...]
    excluded: tuple[ExcludedFilesystem, ...] = ()


def utc(value: datetime) -> datetime:
    """Convert an instant to UTC; an instant without a time zone counts as UTC."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)

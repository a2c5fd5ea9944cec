"""Application traces whose period is known: FTIO's "semi-synthetic" traces, drawn from a seed.

Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section III-A: an application is J
iterations, each a compute phase and then an I/O phase, which is picked from a library of traced ones; processes may
begin late, compute phases may differ in length, and noise may lie over all of it.

The paper's library was traced on a cluster, and is not to be had. Ours is a model of it that keeps every number which
the paper states (`PhaseParams`, `NoiseParams`); what it leaves open is ours, and said there. A process's phase is
`piece_count` requests of varied rates instead of 3,500 of 1 MB each, of which a hundred traces would have 224 million.
At an instant the sum over the processes is spread as it would be with small requests of as varied rates; they are
about as long as a sample at the paper's 1 Hz, so that what is averaged within a sample varies no less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from iosig.transforms.arrays import Ints, Ragged, Reals
from iosig.transforms.throughput.even_values import Grid, Instants, bin_requests, sample_at
from iosig.transforms.throughput.requests import Requests, Steps, step_function

#: how much of a noise there is: none, or the paper's two configurations
NoiseLevel = Literal["none", "low", "high"]
NOISE_LEVELS: tuple[NoiseLevel, ...] = ("none", "low", "high")


# ---- libraries


@dataclass(frozen=True, slots=True)
class PhaseParams:
    """The library of single I/O phases (section III-A).

    The paper's: phase_count; process_count, with process_bytes each; the durations' least, mean and greatest,
    shortest_s, mean_s and longest_s. Ours: uneven_ratio, by which share of the phase the first process is done before
    the last at most; piece_count, requests of a process's phase; piece_cov, the coefficient of variation of their
    durations.
    """

    phase_count: int = 99
    process_count: int = 32
    process_bytes: float = 3.5e9
    shortest_s: float = 10.22
    mean_s: float = 10.4
    longest_s: float = 13.34
    uneven_ratio: float = 0.1
    piece_count: int = 10
    piece_cov: float = 0.25

    def __post_init__(self) -> None:
        if not 0 < self.shortest_s < self.mean_s < (self.shortest_s + self.longest_s) / 2:
            raise ValueError("the phases' durations need a mean between the least and the middle")
        if self.phase_count < 3 or self.process_count < 1 or self.piece_count < 1:
            raise ValueError("a library needs three phases, a process and a piece")


@dataclass(frozen=True, slots=True)
class NoiseParams:
    """The libraries of noise, one for each level (section III-A).

    The paper's: trace_count of each level (200 in all); period_count periods in each trace, of period_s; low and high
    rates of the one process. Ours: active_ratio, the share of a period in which it writes: at a half, what repeats is
    strongest; cv, the coefficient of variation of periods and rates.
    """

    trace_count: int = 100
    period_count: int = 10
    period_s: float = 2.2
    low_bytes_per_s: float = 5e8
    high_bytes_per_s: float = 1e9
    active_ratio: float = 0.5
    cv: float = 0.05

    def bytes_per_s(self, level: NoiseLevel) -> float:
        """Return the rate of a level's bursts."""
        return {"none": 0.0, "low": self.low_bytes_per_s, "high": self.high_bytes_per_s}[level]


@dataclass(frozen=True, slots=True)
class Phases:
    """Single I/O phases: when each process's requests begin and are over, from the process's own start on.

    edges_s (phases, processes, pieces + 1): a request from each edge to the next. piece_bytes: of each request.
    """

    edges_s: Reals
    piece_bytes: float

    @property
    def durations_s(self) -> Reals:
        """How long each phase lasts if all processes begin at once (phases)."""
        found: Reals = self.edges_s[:, :, -1].max(axis=1)
        return found


@dataclass(frozen=True, slots=True)
class NoiseTraces:
    """Traces of one process that writes periodically, of one level.

    period_s (traces, periods): from the start of a burst to the next one's. active_s, bytes_per_s: of each burst.
    """

    period_s: Reals
    active_s: Reals
    bytes_per_s: Reals


@dataclass(frozen=True, slots=True)
class Library:
    """What applications are made of; noise: the traces of each level that has any."""

    phases: Phases
    noise: Mapping[NoiseLevel, NoiseTraces]


def library(
    rng: np.random.Generator, phase_params: PhaseParams | None = None, noise_params: NoiseParams | None = None
) -> Library:
    """Draw a library: phases whose durations are as the paper states them, and noise."""
    phase_params, noise_params = phase_params or PhaseParams(), noise_params or NoiseParams()
    found = phases(phase_params, rng)
    return Library(found, {level: noise_traces(noise_params, level, rng) for level in NOISE_LEVELS if level != "none"})


def phases(params: PhaseParams, rng: np.random.Generator) -> Phases:
    """Draw single I/O phases."""
    duration = rng.permutation(phase_durations(params))
    early = rng.uniform(0.0, params.uneven_ratio, (params.phase_count, params.process_count))
    # the last process is done when the phase is over
    early -= early.min(axis=1, keepdims=True)
    shape = (params.phase_count, params.process_count, params.piece_count)
    share = _varied(rng, shape, params.piece_cov)
    share /= share.sum(axis=2, keepdims=True)
    edges = np.zeros((*shape[:2], params.piece_count + 1))
    np.cumsum(share, axis=2, out=edges[:, :, 1:])
    edges[:, :, -1] = 1.0
    edges *= (duration[:, None] * (1.0 - early))[:, :, None]
    return Phases(edges, params.process_bytes / params.piece_count)


def noise_traces(params: NoiseParams, level: NoiseLevel, rng: np.random.Generator) -> NoiseTraces:
    """Draw noise traces of a level."""
    shape = (params.trace_count, params.period_count)
    period = params.period_s * _varied(rng, shape, params.cv)
    rate = params.bytes_per_s(level) * _varied(rng, shape, params.cv)
    return NoiseTraces(period, params.active_ratio * period, rate)


def phase_durations(params: PhaseParams) -> Reals:
    """Return durations (phases) in order, whose least, mean and greatest are the stated ones.

    Most of the paper's phases are close to the shortest and few are long, as contention makes them: the excess over
    the shortest has a Pareto distribution (Lomax's, its quantiles evenly taken), with the shape that makes the mean
    right.
    """
    depth = -np.log1p(-np.arange(params.phase_count) / params.phase_count)
    wanted = (params.mean_s - params.shortest_s) / (params.longest_s - params.shortest_s)
    # Even with all others at the least, the longest one has its share of the mean.
    if wanted <= 1.01 / params.phase_count:
        raise ValueError("the mean is too low for the longest phase")
    heaviness = brentq(lambda heaviness: float(_excesses(depth, heaviness).mean()) - wanted, -1.0, 100.0)
    return params.shortest_s + (params.longest_s - params.shortest_s) * _excesses(depth, heaviness)


def _excesses(depth: Reals, heaviness: float) -> Reals:
    """Return quantiles of a generalized Pareto distribution from 0 to 1; depth: -log of the share above each."""
    if abs(heaviness) < 1e-9:
        exponential: Reals = depth / depth[-1]
        return exponential
    # of the greatest, so that nothing overflows
    top = depth[-1]
    scaled = np.exp(heaviness * (depth - top)) - np.exp(-heaviness * top)
    found: Reals = scaled / -np.expm1(-heaviness * top)
    return found


def _varied(rng: np.random.Generator, shape: tuple[int, ...], cv: float) -> Reals:
    """Draw positive values of mean 1 and a coefficient of variation (gamma: it can have any)."""
    if cv <= 0:
        return np.ones(shape)
    return rng.gamma(cv**-2, cv**2, shape)


# ---- applications


@dataclass(frozen=True, slots=True)
class ApplicationParams:
    """One setting: what its traces have in common (section III-A).

    iteration_count: J. compute_mean_s, compute_deviation_s: mu and sigma of the normal distribution, cut to positive
    values, from which the length of a compute phase t_cpu is drawn. delay_mean_s: phi, the mean of the exponential
    distribution of a process's delay delta_k; that of process 0 is 0.
    """

    iteration_count: int = 20
    compute_mean_s: float = 11.0
    compute_deviation_s: float = 0.0
    delay_mean_s: float = 0.0
    noise_level: NoiseLevel = "none"

    def __post_init__(self) -> None:
        if self.iteration_count < 1 or not self.compute_mean_s >= 0:
            raise ValueError("an application needs an iteration, and no negative time to compute")
        if not (self.compute_deviation_s >= 0 and self.delay_mean_s >= 0):
            raise ValueError("a deviation or a mean delay is negative")


@dataclass(frozen=True, slots=True)
class Applications:
    """Traces (n), and the truth about them.

    Time 0 is when the first compute phase begins. requests: of all traces, noise included. phase_start_s,
    phase_end_s (n, iterations): the boundaries of the I/O phases, from process 0's start to the end of the last
    process. window_start_s, window_end_s (n): what is seen of each trace.
    """

    requests: Requests
    phase_start_s: Reals
    phase_end_s: Reals
    window_start_s: Reals
    window_end_s: Reals

    @property
    def duration_s(self) -> Reals:
        """How much is seen of each trace (n)."""
        found: Reals = self.window_end_s - self.window_start_s
        return found

    @property
    def period_s(self) -> Reals:
        """The average period (n), that of an iteration: the mean distance from the end of a phase to the next one's.

        The trace's start counts as the end of the phase before: compute phase and I/O phase make an iteration.
        """
        found: Reals = self.phase_end_s[:, -1] / self.phase_end_s.shape[1]
        return found

    @property
    def io_ratio(self) -> Reals:
        """The share of what is seen that lies within I/O phases (n): what R_IO should find."""
        began, ceased = (
            np.clip(time, self.window_start_s[:, None], self.window_end_s[:, None])
            for time in (self.phase_start_s, self.phase_end_s)
        )
        found: Reals = (ceased - began).sum(axis=1) / self.duration_s
        return found

    def cut(self, rng: np.random.Generator) -> Applications:
        """Return the traces seen from any time within the first period on, and to any time within the last one."""
        early, late = rng.uniform(0.0, 1.0, (2, len(self.period_s))) * self.period_s
        return replace(self, window_start_s=early, window_end_s=self.phase_end_s[:, -1] - late)

    def sample_counts(self, sampling_hz: float) -> Ints:
        """Return how many whole samples are seen of each trace: N = floor(dt * f_s) (n)."""
        return np.floor(self.duration_s * sampling_hz).astype(np.int64)

    def steps(self) -> Steps:
        """Return the throughput of each trace, all of it, as a step function."""
        return step_function(self.requests)

    def bins(self, sampling_hz: float) -> Ragged:
        """Return the mean rate in each whole sample interval, in bytes per second."""
        counts = self.sample_counts(sampling_hz)
        grid = Grid(self.window_start_s, np.full(len(counts), 1.0 / sampling_hz), counts)
        return Ragged(bin_requests(self.requests, grid).bytes_per_s, grid.offsets)

    def instants(self, sampling_hz: float, steps: Steps | None = None) -> Ragged:
        """Return the rate at each sample's left edge, as FTIO samples (II-B), in bytes per second."""
        counts = self.sample_counts(sampling_hz)
        sampling = Instants(self.window_start_s, np.full(len(counts), float(sampling_hz)), counts)
        return sample_at(self.steps() if steps is None else steps, sampling)


def applications(
    params: ApplicationParams, trace_count: int, rng: np.random.Generator, library: Library
) -> Applications:
    """Draw traces of one setting, seen from 0 to the end of the last I/O phase: whole periods, as in the paper.

    Takes about 200 bytes of memory for each of iterations * processes * pieces requests (6,400 a trace).
    """
    edges = library.phases.edges_s
    shape = (trace_count, params.iteration_count)
    picked = rng.integers(len(edges), size=shape)
    computing = _truncated_normal(rng, shape, params.compute_mean_s, params.compute_deviation_s)
    delay = rng.exponential(1.0, (*shape, edges.shape[1])) * params.delay_mean_s
    delay[:, :, 0] = 0.0
    lasting = (delay + edges[picked, :, -1]).max(axis=2)
    ended = np.cumsum(computing + lasting, axis=1)
    started = ended - lasting
    found = _phase_requests(library.phases, picked, started[:, :, None] + delay)
    if params.noise_level != "none":
        found = _joined(found, _noise(library.noise[params.noise_level], ended[:, -1], rng))
    return Applications(found, started, ended, np.zeros(trace_count), ended[:, -1])


def _truncated_normal(rng: np.random.Generator, shape: tuple[int, ...], mean: float, deviation: float) -> Reals:
    """Draw from a normal distribution cut to positive values, by its inverse."""
    if deviation == 0:
        return np.full(shape, mean)
    lowest = ndtr(-mean / deviation)
    # in the upper tail's terms: near 1 a float has no room left
    drawn: Reals = np.maximum(mean - deviation * ndtri(rng.uniform(0.0, 1.0 - lowest, shape)), 0.0)
    return drawn


def _phase_requests(library: Phases, picked: Ints, start_s: Reals) -> Requests:
    """Return the requests of phases; start_s (n, iterations, processes): each process's start in each."""
    edges = start_s[..., None] + library.edges_s[picked]
    began, ceased = edges[..., :-1].reshape(-1), edges[..., 1:].reshape(-1)
    count = len(picked)
    subject = np.repeat(np.arange(count), len(began) // max(count, 1))
    return Requests(began, ceased, np.full(len(began), library.piece_bytes), subject, count)


def _noise(traces: NoiseTraces, duration_s: Reals, rng: np.random.Generator) -> Requests:
    """Return a random sequence of noise traces that covers each application (n), a request for each burst."""
    count, longest = len(duration_s), float(duration_s.max(initial=0.0))
    length = int(np.ceil(longest / traces.period_s.sum(axis=1).min()))
    picked = rng.integers(len(traces.period_s), size=(count, length))
    period, active, rate = (
        column[picked].reshape(count, length * column.shape[1])
        for column in (traces.period_s, traces.active_s, traces.bytes_per_s)
    )
    began = np.cumsum(period, axis=1) - period
    ceased = np.minimum(began + active, duration_s[:, None])
    is_within = began < ceased
    lasting = (ceased - began)[is_within]
    subject = np.nonzero(is_within)[0]
    return Requests(began[is_within], ceased[is_within], lasting * rate[is_within], subject, count)


def _joined(first: Requests, second: Requests) -> Requests:
    """Return the requests of both, of the same subjects."""
    return Requests(
        np.concatenate([first.start_s, second.start_s]),
        np.concatenate([first.end_s, second.end_s]),
        np.concatenate([first.volume_bytes, second.volume_bytes]),
        np.concatenate([first.subject, second.subject]),
        first.subject_count,
    )

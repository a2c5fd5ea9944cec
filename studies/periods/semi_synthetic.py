"""Draw traces with a known period from a seed: FTIO's "semi-synthetic" traces.

Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section III-A: an application is J
iterations of a compute phase followed by an I/O phase picked from a library of traced phases. Processes may start late,
compute phases may vary, and noise may be added.

The paper's library was traced on a cluster and is not available. Ours is a model that keeps all numbers the paper
states (`PhaseParams`, `NoiseParams`); our additions are marked there. A process's phase is `piece_count` requests of
varying rates instead of 3,500 of 1 MB, since a hundred traces would have 224 million of those. The sum over processes
varies as with small requests of equally varied rates: requests are about as long as a sample at 1 Hz, so averaging
within a sample does not reduce the variation.
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

#: noise level: none, or one of the paper's two configurations
NoiseLevel = Literal["none", "low", "high"]
NOISE_LEVELS: tuple[NoiseLevel, ...] = ("none", "low", "high")


# ---- libraries


@dataclass(frozen=True, slots=True)
class PhaseParams:
    """The library of I/O phases (section III-A).

    From the paper: phase_count; process_count, with process_bytes each; minimum, mean and maximum duration shortest_s,
    mean_s and longest_s. Ours: uneven_ratio, the maximum lead of the first process over the last, relative to the
    phase; piece_count, requests per process and phase; piece_cov, the coefficient of variation of their durations.
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
            raise ValueError("mean_s must lie between shortest_s and the midpoint of shortest_s and longest_s")
        if self.phase_count < 3 or self.process_count < 1 or self.piece_count < 1:
            raise ValueError("a library needs at least three phases, one process and one piece")


@dataclass(frozen=True, slots=True)
class NoiseParams:
    """The libraries of noise, one per level (section III-A).

    From the paper: trace_count per level (200 in total); period_count periods of period_s per trace; low and high rates
    of the single process. Ours: active_ratio, the fraction of a period in which it writes (one half maximizes the
    fundamental); cv, the coefficient of variation of periods and rates.
    """

    trace_count: int = 100
    period_count: int = 10
    period_s: float = 2.2
    low_bytes_per_s: float = 5e8
    high_bytes_per_s: float = 1e9
    active_ratio: float = 0.5
    cv: float = 0.05

    def bytes_per_s(self, level: NoiseLevel) -> float:
        """Return the burst rate of a noise level [B/s]."""
        return {"none": 0.0, "low": self.low_bytes_per_s, "high": self.high_bytes_per_s}[level]


@dataclass(frozen=True, slots=True)
class Phases:
    """I/O phases: request edges of each process, relative to the process's start.

    edges_s (phases, processes, pieces + 1): a request lasts from each edge to the next. piece_bytes: bytes per request.
    """

    edges_s: Reals
    piece_bytes: float

    @property
    def durations_s(self) -> Reals:
        """Duration of each phase if all processes start together (phases)."""
        durations: Reals = self.edges_s[:, :, -1].max(axis=1)
        return durations


@dataclass(frozen=True, slots=True)
class NoiseTraces:
    """Periodic write traces of one process, for one noise level.

    period_s (traces, periods): distance of burst starts. active_s, bytes_per_s: duration and rate of each burst.
    """

    period_s: Reals
    active_s: Reals
    bytes_per_s: Reals


@dataclass(frozen=True, slots=True)
class Library:
    """Phases, and noise traces by level, from which applications are composed."""

    phases: Phases
    noise: Mapping[NoiseLevel, NoiseTraces]


def draw_library(
    rng: np.random.Generator, phase_params: PhaseParams | None = None, noise_params: NoiseParams | None = None
) -> Library:
    """Draw the phases of `phase_params`, and the noise traces of each level."""
    phase_params, noise_params = phase_params or PhaseParams(), noise_params or NoiseParams()
    phases = draw_phases(phase_params, rng)
    return Library(
        phases, {level: draw_noise_traces(noise_params, level, rng) for level in NOISE_LEVELS if level != "none"}
    )


def draw_phases(params: PhaseParams, rng: np.random.Generator) -> Phases:
    """Draw I/O phases: per process, requests with gamma-distributed durations."""
    duration = rng.permutation(compute_phase_durations(params))
    early_ratio = rng.uniform(0.0, params.uneven_ratio, (params.phase_count, params.process_count))
    # the phase ends with its last process
    early_ratio -= early_ratio.min(axis=1, keepdims=True)
    shape = (params.phase_count, params.process_count, params.piece_count)
    share = _draw_gamma(rng, shape, params.piece_cov)
    share /= share.sum(axis=2, keepdims=True)
    edges = np.zeros((*shape[:2], params.piece_count + 1))
    np.cumsum(share, axis=2, out=edges[:, :, 1:])
    edges[:, :, -1] = 1.0
    edges *= (duration[:, None] * (1.0 - early_ratio))[:, :, None]
    return Phases(edges, params.process_bytes / params.piece_count)


def draw_noise_traces(params: NoiseParams, level: NoiseLevel, rng: np.random.Generator) -> NoiseTraces:
    """Draw noise traces whose periods and rates are gamma-distributed around the means of a level."""
    shape = (params.trace_count, params.period_count)
    period = params.period_s * _draw_gamma(rng, shape, params.cv)
    rate = params.bytes_per_s(level) * _draw_gamma(rng, shape, params.cv)
    return NoiseTraces(period, params.active_ratio * period, rate)


def compute_phase_durations(params: PhaseParams) -> Reals:
    """Return durations (phases) in order, with the stated minimum, mean and maximum.

    Most of the paper's phases are close to the shortest and few are long, as contention produces: the excess over the
    shortest follows a Pareto (Lomax) distribution, sampled at even quantiles; its shape gives the stated mean.
    """
    depth = -np.log1p(-np.arange(params.phase_count) / params.phase_count)
    target_mean = (params.mean_s - params.shortest_s) / (params.longest_s - params.shortest_s)
    # The longest phase alone contributes 1 / phase_count of the range to the mean.
    if target_mean <= 1.01 / params.phase_count:
        raise ValueError("the mean is too low for the longest phase")
    heaviness = brentq(
        lambda heaviness: float(_compute_pareto_quantiles(depth, heaviness).mean()) - target_mean, -1.0, 100.0
    )
    return params.shortest_s + (params.longest_s - params.shortest_s) * _compute_pareto_quantiles(depth, heaviness)


def _compute_pareto_quantiles(depth: Reals, heaviness: float) -> Reals:
    """Return quantiles of a generalized Pareto distribution scaled to [0, 1]; depth: -log of the survival function."""
    if abs(heaviness) < 1e-9:
        exponential: Reals = depth / depth[-1]
        return exponential
    # relative to the largest value, to avoid overflow
    top = depth[-1]
    scaled = np.exp(heaviness * (depth - top)) - np.exp(-heaviness * top)
    quantiles: Reals = scaled / -np.expm1(-heaviness * top)
    return quantiles


def _draw_gamma(rng: np.random.Generator, shape: tuple[int, ...], cv: float) -> Reals:
    """Draw gamma-distributed values with mean 1 and the given coefficient of variation."""
    if cv <= 0:
        return np.ones(shape)
    return rng.gamma(cv**-2, cv**2, shape)


# ---- applications


@dataclass(frozen=True, slots=True)
class ApplicationParams:
    """Parameters of an application's traces (section III-A).

    iteration_count: J. compute_mean_s, compute_deviation_s: mu and sigma of the normal distribution of t_cpu, truncated
    to positive values. delay_mean_s: phi, the mean of the exponential delay delta_k of a process; process 0 has none.
    """

    iteration_count: int = 20
    compute_mean_s: float = 11.0
    compute_deviation_s: float = 0.0
    delay_mean_s: float = 0.0
    noise_level: NoiseLevel = "none"

    def __post_init__(self) -> None:
        if self.iteration_count < 1 or not self.compute_mean_s >= 0:
            raise ValueError("iteration_count must be at least 1 and compute_mean_s must not be negative")
        if not (self.compute_deviation_s >= 0 and self.delay_mean_s >= 0):
            raise ValueError("compute_deviation_s and delay_mean_s must not be negative")


@dataclass(frozen=True, slots=True)
class Applications:
    """Traces (n) and their ground truth; time 0 is the start of the first compute phase.

    requests: of all traces, noise included. phase_start_s, phase_end_s (n, iterations): I/O phases, from the start of
    process 0 to the end of the last process. window_start_s, window_end_s (n): observed window of each trace.
    """

    requests: Requests
    phase_start_s: Reals
    phase_end_s: Reals
    window_start_s: Reals
    window_end_s: Reals

    @property
    def duration_s(self) -> Reals:
        """Length of the observed window (n)."""
        duration: Reals = self.window_end_s - self.window_start_s
        return duration

    @property
    def period_s(self) -> Reals:
        """Mean period of each trace (n): duration of the trace divided by its iterations.

        An iteration is a compute phase and an I/O phase, so the start of the trace counts as the end of a phase.
        """
        period: Reals = self.phase_end_s[:, -1] / self.phase_end_s.shape[1]
        return period

    @property
    def io_ratio(self) -> Reals:
        """Fraction of the observed window within I/O phases (n): the true R_IO."""
        start_s, end_s = (
            np.clip(time, self.window_start_s[:, None], self.window_end_s[:, None])
            for time in (self.phase_start_s, self.phase_end_s)
        )
        ratio: Reals = (end_s - start_s).sum(axis=1) / self.duration_s
        return ratio

    def crop(self, rng: np.random.Generator) -> Applications:
        """Restrict the window: it starts at a random time in the first period, and ends at one in the last period."""
        start_cut_s, end_cut_s = rng.uniform(0.0, 1.0, (2, len(self.period_s))) * self.period_s
        return replace(self, window_start_s=start_cut_s, window_end_s=self.phase_end_s[:, -1] - end_cut_s)

    def narrow_to_io(self) -> Applications:
        """Restrict the window to the time from the first to the last request, as FTIO does."""
        return replace(self, window_start_s=self.phase_start_s[:, 0], window_end_s=self.phase_end_s[:, -1])

    def sample_counts(self, sampling_hz: float) -> Ints:
        """Return the number of complete samples in each window, N = floor(dt * f_s) (n)."""
        return np.floor(self.duration_s * sampling_hz).astype(np.int64)

    def steps(self) -> Steps:
        """Return the throughput of each complete trace as a step function."""
        return step_function(self.requests)

    def bins(self, sampling_hz: float) -> Ragged:
        """Return the mean rate in each complete sample interval [B/s]."""
        counts = self.sample_counts(sampling_hz)
        grid = Grid(self.window_start_s, np.full(len(counts), 1.0 / sampling_hz), counts)
        return Ragged(bin_requests(self.requests, grid).bytes_per_s, grid.offsets)

    def instants(self, sampling_hz: float, steps: Steps | None = None) -> Ragged:
        """Return the rate at each sample's left edge, as FTIO samples (II-B) [B/s]."""
        counts = self.sample_counts(sampling_hz)
        sampling = Instants(self.window_start_s, np.full(len(counts), float(sampling_hz)), counts)
        return sample_at(self.steps() if steps is None else steps, sampling)


def draw_applications(
    params: ApplicationParams, trace_count: int, rng: np.random.Generator, library: Library
) -> Applications:
    """Draw traces of one setting, observed from 0 to the end of the last I/O phase, as in the paper.

    Needs about 200 bytes of memory per request: iterations * processes * pieces (6,400 per trace).
    """
    edges = library.phases.edges_s
    shape = (trace_count, params.iteration_count)
    phase_index = rng.integers(len(edges), size=shape)
    computing = _draw_positive_normal(rng, shape, params.compute_mean_s, params.compute_deviation_s)
    delay = rng.exponential(1.0, (*shape, edges.shape[1])) * params.delay_mean_s
    delay[:, :, 0] = 0.0
    duration = (delay + edges[phase_index, :, -1]).max(axis=2)
    ended = np.cumsum(computing + duration, axis=1)
    started = ended - duration
    requests = _build_phase_requests(library.phases, phase_index, started[:, :, None] + delay)
    if params.noise_level != "none":
        requests = _concat_requests(requests, _draw_noise(library.noise[params.noise_level], ended[:, -1], rng))
    return Applications(requests, started, ended, np.zeros(trace_count), ended[:, -1])


def _draw_positive_normal(rng: np.random.Generator, shape: tuple[int, ...], mean: float, deviation: float) -> Reals:
    """Draw from a normal distribution truncated to positive values, by inversion."""
    if deviation == 0:
        return np.full(shape, mean)
    lowest = ndtr(-mean / deviation)
    # use the survival function: floats lose precision near 1
    values: Reals = np.maximum(mean - deviation * ndtri(rng.uniform(0.0, 1.0 - lowest, shape)), 0.0)
    return values


def _build_phase_requests(library: Phases, phase_index: Ints, start_s: Reals) -> Requests:
    """Return the requests of phases; start_s (n, iterations, processes): start of each process."""
    edges = start_s[..., None] + library.edges_s[phase_index]
    request_start_s, request_end_s = edges[..., :-1].reshape(-1), edges[..., 1:].reshape(-1)
    count = len(phase_index)
    subject = np.repeat(np.arange(count), len(request_start_s) // max(count, 1))
    return Requests(request_start_s, request_end_s, np.full(len(request_start_s), library.piece_bytes), subject, count)


def _draw_noise(traces: NoiseTraces, duration_s: Reals, rng: np.random.Generator) -> Requests:
    """Draw a random sequence of noise traces that covers each application (n), one request per burst."""
    count, longest = len(duration_s), float(duration_s.max(initial=0.0))
    length = int(np.ceil(longest / traces.period_s.sum(axis=1).min()))
    trace_index = rng.integers(len(traces.period_s), size=(count, length))
    period, active, rate = (
        column[trace_index].reshape(count, length * column.shape[1])
        for column in (traces.period_s, traces.active_s, traces.bytes_per_s)
    )
    start_s = np.cumsum(period, axis=1) - period
    end_s = np.minimum(start_s + active, duration_s[:, None])
    is_within = start_s < end_s
    burst_s = (end_s - start_s)[is_within]
    subject = np.nonzero(is_within)[0]
    return Requests(start_s[is_within], end_s[is_within], burst_s * rate[is_within], subject, count)


def _concat_requests(first: Requests, second: Requests) -> Requests:
    """Concatenate two sets of requests of the same subjects."""
    return Requests(
        np.concatenate([first.start_s, second.start_s]),
        np.concatenate([first.end_s, second.end_s]),
        np.concatenate([first.volume_bytes, second.volume_bytes]),
        np.concatenate([first.subject, second.subject]),
        first.subject_count,
    )

"""Draw signals without a period: white noise, red noise (AR(1)), and bursts at random times.

All are non-negative rates in bytes per second, drawn from the given generator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

from iosig.transforms.arrays import Reals
from iosig.transforms.throughput.even_values import Grid, Instants, bin_requests, sample_at
from iosig.transforms.throughput.requests import Requests, step_function


@dataclass(frozen=True, slots=True)
class LevelParams:
    """Distribution of noise that is always present.

    mean_bytes_per_s, relative_spread: mean, and standard deviation relative to it. is_skewed: log-normal instead of
    normal. Normal values below 0 are set to 0: one in 3.5 million at a spread of 0.2, one in 6 at 1.
    """

    mean_bytes_per_s: float = 1e9
    relative_spread: float = 0.2
    is_skewed: bool = False


@dataclass(frozen=True, slots=True)
class BurstParams:
    """Distribution of bursts at random times.

    count: bursts per signal. duty: mean duration relative to the mean interval between starts; overlapping bursts cover
    at most 1 - exp(-duty) of the time. duration_log_spread, volume_log_spread: standard deviations of the log durations
    and log volumes, which are normal; 0 makes them constant. mean_volume_bytes: mean volume of a burst. may_overlap:
    starts are a Poisson process (uniform, given the count); otherwise bursts follow one another with exponential idle
    times, which makes the intervals between starts less random. is_binned: samples are means over bins; otherwise rates
    at their left edges.
    """

    count: int = 20
    duty: float = 0.1
    duration_log_spread: float = 0.0
    volume_log_spread: float = 0.0
    mean_volume_bytes: float = 1e10
    may_overlap: bool = True
    is_binned: bool = True


_LEVEL = LevelParams()
_BURSTS = BurstParams()


def draw_white(
    generator: np.random.Generator, signal_count: int, sample_count: int, params: LevelParams = _LEVEL
) -> Reals:
    """Draw white noise (signals, samples), in bytes per second."""
    return _scale_levels(generator.standard_normal((signal_count, sample_count)), params)


def draw_ar1(
    generator: np.random.Generator,
    signal_count: int,
    sample_count: int,
    correlation: npt.ArrayLike,
    params: LevelParams = _LEVEL,
) -> Reals:
    """Draw stationary AR(1) noise (signals, samples), in bytes per second.

    correlation: correlation of neighboring samples, in (-1, 1); scalar or one per signal.
    """
    rho = np.broadcast_to(np.asarray(correlation, dtype=np.float64), signal_count)
    if not (np.abs(rho) < 1).all():
        raise ValueError("correlation must lie in (-1, 1)")
    noise = generator.standard_normal((signal_count, sample_count))
    noise[:, 1:] *= np.sqrt(1.0 - rho**2)[:, None]
    for value in np.unique(rho):
        rows = rho == value
        noise[rows] = lfilter([1.0], [1.0, -value], noise[rows], axis=1)
    return _scale_levels(noise, params)


def draw_bursts(
    generator: np.random.Generator,
    signal_count: int,
    sample_count: int,
    params: BurstParams = _BURSTS,
    sampling_hz: float = 1.0,
) -> Reals:
    """Draw bursts at random times (signals, samples), in bytes per second.

    The first burst may start at any time; the last one is truncated at the end of the signal.
    """
    starts, durations = _draw_times(generator, signal_count, sample_count / sampling_hz, params)
    volumes = params.mean_volume_bytes * _draw_log_normal(generator, starts.shape, params.volume_log_spread)
    subject = np.repeat(np.arange(signal_count), starts.shape[1])
    requests = Requests(starts.ravel(), (starts + durations).ravel(), volumes.ravel(), subject, signal_count)
    return sample_rates(requests, sample_count, sampling_hz, is_binned=params.is_binned)


def sample_rates(requests: Requests, sample_count: int, sampling_hz: float, *, is_binned: bool = True) -> Reals:
    """Sample the rates of requests from 0 s on (subjects, samples): bin means, or values at left edges."""
    started = np.zeros(requests.subject_count)
    counts = np.full(requests.subject_count, sample_count)
    if is_binned:
        rates = bin_requests(requests, Grid(started, np.full(len(started), 1.0 / sampling_hz), counts)).bytes_per_s
    else:
        grid = Instants(started, np.full(len(started), float(sampling_hz)), counts)
        rates = sample_at(step_function(requests), grid).values
    return rates.reshape(requests.subject_count, sample_count)


def _scale_levels(normal: Reals, params: LevelParams) -> Reals:
    """Transform standard normal values to rates, in place."""
    if params.is_skewed:
        log_spread = math.sqrt(math.log1p(params.relative_spread**2))
        normal *= log_spread
        normal -= log_spread**2 / 2
        np.exp(normal, out=normal)
    else:
        normal *= params.relative_spread
        normal += 1.0
        np.maximum(normal, 0.0, out=normal)
    normal *= params.mean_bytes_per_s
    return normal


def _draw_times(
    generator: np.random.Generator, signal_count: int, span_s: float, params: BurstParams
) -> tuple[Reals, Reals]:
    """Draw starts and durations of bursts (signals, bursts)."""
    gaps = generator.standard_exponential((signal_count, params.count + 1))
    share = params.duty * span_s / max(params.count, 1)
    durations = share * _draw_log_normal(generator, (signal_count, params.count), params.duration_log_spread)
    if params.may_overlap:
        starts = span_s * np.cumsum(gaps, axis=1)[:, :-1] / gaps.sum(axis=1, keepdims=True)
        return starts, durations
    idle_s = np.maximum(span_s - durations.sum(axis=1, keepdims=True), 0.0)
    idle = np.cumsum(gaps * (idle_s / gaps.sum(axis=1, keepdims=True)), axis=1)[:, :-1]
    busy = np.cumsum(durations, axis=1) - durations
    return idle + busy, durations


def _draw_log_normal(generator: np.random.Generator, shape: tuple[int, ...], log_spread: float) -> Reals:
    """Draw log-normal values with mean 1."""
    if not log_spread:
        return np.ones(shape)
    values: Reals = np.exp(log_spread * generator.standard_normal(shape) - log_spread**2 / 2)
    return values

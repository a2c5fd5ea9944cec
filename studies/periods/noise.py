"""Noise of the kinds that I/O has: what a search for periods must not take for a period.

White noise, red noise (a first-order autoregression, AR(1)), and bursts at random times. All are rates in bytes per
second, so never negative, and all are drawn from the generator that is given: the same seed, the same noise.
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
    """How high noise is that is always there.

    mean_bytes_per_s: its mean. relative_spread: its standard deviation as a multiple of the mean. is_skewed: values
    are log-normal instead of normal ones (skewed as rates are); normal ones below 0 are 0, which is one in 3.5 million
    at a spread of 0.2 and one in 6 at 1.
    """

    mean_bytes_per_s: float = 1e9
    relative_spread: float = 0.2
    is_skewed: bool = False


@dataclass(frozen=True, slots=True)
class BurstParams:
    """Bursts at random times.

    count: bursts of each signal. duty: their mean duration as a multiple of the mean distance of their starts; where
    they may overlap, the share of time that is busy is 1 - exp(-duty) at most. duration_log_spread,
    volume_log_spread: standard deviations of the logarithms of durations and volumes, which are log-normal; 0: all
    are the same. mean_volume_bytes: a burst's. may_overlap: starts are a Poisson process (given its number of
    events, starts are uniform); if not, bursts follow one another and it is the idle time between them that is
    exponential, shorter than the distances of starts by the bursts (which makes those distances less random).
    is_binned: a sample is the mean rate over its bin; if not, it is the rate at the left edge of it.
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


def white(generator: np.random.Generator, signal_count: int, sample_count: int, params: LevelParams = _LEVEL) -> Reals:
    """Return white noise, every sample independent of all others (signals, samples), in bytes per second."""
    return _levels(generator.standard_normal((signal_count, sample_count)), params)


def red(
    generator: np.random.Generator,
    signal_count: int,
    sample_count: int,
    correlation: npt.ArrayLike,
    params: LevelParams = _LEVEL,
) -> Reals:
    """Return stationary AR(1) noise (signals, samples), in bytes per second.

    correlation: of a sample and the next one, from -1 to 1, excluded; one for all signals or one for each.
    """
    rho = np.broadcast_to(np.asarray(correlation, dtype=np.float64), signal_count)
    if not (np.abs(rho) < 1).all():
        raise ValueError("a correlation of neighbouring samples lies between -1 and 1")
    drawn = generator.standard_normal((signal_count, sample_count))
    drawn[:, 1:] *= np.sqrt(1.0 - rho**2)[:, None]
    for value in np.unique(rho):
        rows = rho == value
        drawn[rows] = lfilter([1.0], [1.0, -value], drawn[rows], axis=1)
    return _levels(drawn, params)


def bursts(
    generator: np.random.Generator,
    signal_count: int,
    sample_count: int,
    params: BurstParams = _BURSTS,
    sampling_hz: float = 1.0,
) -> Reals:
    """Return bursts at random times (signals, samples), in bytes per second.

    The first burst may start at any time, and the last one reach beyond the end, where it is cut off.
    """
    starts, durations = _times(generator, signal_count, sample_count / sampling_hz, params)
    volumes = params.mean_volume_bytes * _log_normal(generator, starts.shape, params.volume_log_spread)
    subject = np.repeat(np.arange(signal_count), starts.shape[1])
    requests = Requests(starts.ravel(), (starts + durations).ravel(), volumes.ravel(), subject, signal_count)
    return sampled(requests, sample_count, sampling_hz, is_binned=params.is_binned)


def sampled(requests: Requests, sample_count: int, sampling_hz: float, *, is_binned: bool = True) -> Reals:
    """Return the rates of requests from 0 s on (subjects, samples): means over bins, or values at their left edges."""
    started = np.zeros(requests.subject_count)
    counts = np.full(requests.subject_count, sample_count)
    if is_binned:
        found = bin_requests(requests, Grid(started, np.full(len(started), 1.0 / sampling_hz), counts)).bytes_per_s
    else:
        grid = Instants(started, np.full(len(started), float(sampling_hz)), counts)
        found = sample_at(step_function(requests), grid).values
    return found.reshape(requests.subject_count, sample_count)


def _levels(normal: Reals, params: LevelParams) -> Reals:
    """Return levels from values that are normal with a mean of 0 and a standard deviation of 1, in place."""
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


def _times(
    generator: np.random.Generator, signal_count: int, span_s: float, params: BurstParams
) -> tuple[Reals, Reals]:
    """Return when bursts start, and how long they are (signals, bursts)."""
    gaps = generator.standard_exponential((signal_count, params.count + 1))
    share = params.duty * span_s / max(params.count, 1)
    durations = share * _log_normal(generator, (signal_count, params.count), params.duration_log_spread)
    if params.may_overlap:
        starts = span_s * np.cumsum(gaps, axis=1)[:, :-1] / gaps.sum(axis=1, keepdims=True)
        return starts, durations
    idle_s = np.maximum(span_s - durations.sum(axis=1, keepdims=True), 0.0)
    idle = np.cumsum(gaps * (idle_s / gaps.sum(axis=1, keepdims=True)), axis=1)[:, :-1]
    busy = np.cumsum(durations, axis=1) - durations
    return idle + busy, durations


def _log_normal(generator: np.random.Generator, shape: tuple[int, ...], log_spread: float) -> Reals:
    """Return log-normal values with a mean of 1."""
    if not log_spread:
        return np.ones(shape)
    found: Reals = np.exp(log_spread * generator.standard_normal(shape) - log_spread**2 / 2)
    return found

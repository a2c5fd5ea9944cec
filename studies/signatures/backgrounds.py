"""What others do while runs are under way: rates in seconds, in units of an application's peak.

Each kind has the mean that is asked for. All are drawn at once for all windows (runs, seconds), each window by itself:
runs of one application are hours apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from iosig.studies.signatures.families import Foreign
from iosig.transforms.arrays import Bools, Reals

#: transfers that come and go: their length (median [s], and sigma of the logarithm), and their rate over the peak
_LENGTH_S, _LENGTH_SIGMA, _HEIGHT, _HEIGHT_SIGMA = 20.0, 0.8, 0.7, 0.4
#: many streams at once: their length, and their rate over the peak
_STREAM_S, _STREAM_HEIGHT, _STREAM_FLOOR = 60.0, 0.1, 0.2
#: heavy tails: Pareto's exponent, and the least and the most [s, over the peak]
_TAIL_LENGTH, _TAIL_HEIGHT = (1.3, 4.0, 2000.0), (1.8, 0.3, 6.0)
#: traffic that never rests: its floor over the mean (0.6 of 2.4 GB/s), the shape of the gamma-distributed rest, with
#: which a tenth of the time is above 5 of 2.4 GB/s, and how long it remembers [s]
_FLOOR, _SHAPE, _MEMORY_S = 0.25, 0.77, 15.0
#: one big periodic neighbour: its step [s], the share of it in which it moves, how evenly, and its share of the bytes
_STEP_S, _DUTY, _UNEVEN, _NEIGHBOURS_SHARE = (150.0, 500.0), 0.2, 0.02, 0.85
#: how much a day's hours differ
_DAY_SWING = 0.9


def traffic(kind: Foreign, level: float, run_count: int, seconds: int, rng: np.random.Generator) -> Reals:
    """Return what others do in windows of so many seconds (runs, seconds), with this mean, in units of the peak."""
    return _MAKERS[kind](level, run_count, seconds, rng)


@dataclass(frozen=True, slots=True)
class _Transfers:
    """Transfers that come independently: how long they take [s], how fast they are, and the means of both."""

    length_s: Callable[[np.random.Generator, int], Reals]
    height: Callable[[np.random.Generator, int], Reals]
    mean_length_s: float
    mean_height: float
    longest_s: float

    def drawn(self, level: Reals, seconds: int, rng: np.random.Generator) -> Reals:
        """Return the traffic of windows (runs, seconds), each with a mean of its own (runs)."""
        run_count, before_s = len(level), self.longest_s
        rate = level / (self.mean_length_s * self.mean_height)
        counts = rng.poisson(rate * (seconds + before_s))
        run = np.repeat(np.arange(run_count), counts)
        begin = rng.random(len(run)) * (seconds + before_s) - before_s
        end = begin + self.length_s(rng, len(run))
        height = self.height(rng, len(run))
        change = np.zeros((run_count, seconds + 2))
        for at, by in ((begin, height), (end, -height)):
            second, rest = np.divmod(np.clip(at, 0.0, seconds), 1.0)
            place = run * (seconds + 2) + second.astype(np.int64)
            change += np.bincount(place, by * (1.0 - rest), change.size).reshape(change.shape)
            change += np.bincount(place + 1, by * rest, change.size).reshape(change.shape)
        return np.maximum(np.cumsum(change, axis=1)[:, :seconds], 0.0)


def _log_normal(median: float, sigma: float) -> tuple[Callable[[np.random.Generator, int], Reals], float]:
    return lambda rng, count: rng.lognormal(np.log(median), sigma, count), median * float(np.exp(sigma**2 / 2))


def _pareto(exponent: float, least: float, most: float) -> tuple[Callable[[np.random.Generator, int], Reals], float]:
    """Return how to draw from a Pareto distribution that is cut at the most, and its mean."""
    share = 1.0 - (least / most) ** exponent

    def drawn(rng: np.random.Generator, count: int) -> Reals:
        found: Reals = least * (1.0 - share * rng.random(count)) ** (-1.0 / exponent)
        return found

    over = exponent / (exponent - 1.0)
    return drawn, over * least**exponent / share * (least ** (1.0 - exponent) - most ** (1.0 - exponent))


def _transfers(lengths: tuple[object, float], heights: tuple[object, float], longest_s: float) -> _Transfers:
    return _Transfers(lengths[0], heights[0], lengths[1], heights[1], longest_s)  # type: ignore[arg-type]


_USUAL = _transfers(_log_normal(_LENGTH_S, _LENGTH_SIGMA), _log_normal(_HEIGHT, _HEIGHT_SIGMA), 300.0)
_STREAMS = _transfers(_log_normal(_STREAM_S, 0.5), _log_normal(_STREAM_HEIGHT, 0.3), 400.0)
_TAILS = _transfers(_pareto(*_TAIL_LENGTH), _pareto(*_TAIL_HEIGHT), _TAIL_LENGTH[2])


def _rests(level: float, run_count: int, seconds: int, rng: np.random.Generator) -> Reals:
    return _USUAL.drawn(np.full(run_count, level), seconds, rng)


def _tails(level: float, run_count: int, seconds: int, rng: np.random.Generator) -> Reals:
    return _TAILS.drawn(np.full(run_count, level), seconds, rng)


def _streams(level: float, run_count: int, seconds: int, rng: np.random.Generator) -> Reals:
    floor = _STREAM_FLOOR * level
    return floor + _STREAMS.drawn(np.full(run_count, level - floor), seconds, rng)


def _diurnal(level: float, run_count: int, seconds: int, rng: np.random.Generator) -> Reals:
    hour = rng.random(run_count)
    return _USUAL.drawn(level * (1.0 + _DAY_SWING * np.sin(2 * np.pi * hour)), seconds, rng)


def _never_rests(level: float, run_count: int, seconds: int, rng: np.random.Generator) -> Reals:
    """Return a floor and, above it, a rate that is gamma-distributed, with a memory: a Gaussian copula."""
    from scipy.signal import lfilter
    from scipy.special import gammaincinv, ndtr

    keeps = float(np.exp(-1.0 / _MEMORY_S))
    noise = rng.standard_normal((run_count, seconds)) * np.sqrt(1.0 - keeps**2)
    noise[:, 0] = rng.standard_normal(run_count)
    normal = lfilter([1.0], [1.0, -keeps], noise, axis=1)
    knots = np.linspace(-5.0, 5.0, 1001)
    above = np.interp(normal, knots, gammaincinv(_SHAPE, ndtr(knots)) / _SHAPE)
    found: Reals = level * (_FLOOR + (1.0 - _FLOOR) * above)
    return found


def _neighbour(level: float, run_count: int, seconds: int, rng: np.random.Generator) -> Reals:
    step_s = rng.uniform(*_STEP_S)
    count = int(seconds / step_s) + 3
    begin = (np.arange(count) - 1.0 - rng.random((run_count, 1))) * step_s
    begin += rng.normal(0.0, _UNEVEN * step_s, begin.shape)
    is_at_work: Bools = np.zeros((run_count, seconds), dtype=np.bool_)
    second = np.arange(seconds) + 0.5
    for own, starts in zip(is_at_work, np.sort(begin, axis=1), strict=True):
        place = np.searchsorted(starts, second) - 1
        own[:] = (place >= 0) & (second - starts[np.maximum(place, 0)] < _DUTY * step_s)
    own_level = _NEIGHBOURS_SHARE * level
    return is_at_work * (own_level / _DUTY) + _rests(level - own_level, run_count, seconds, rng)


_MAKERS: dict[Foreign, Callable[[float, int, int, np.random.Generator], Reals]] = {
    "rests": _rests,
    "never_rests": _never_rests,
    "streams": _streams,
    "tails": _tails,
    "neighbour": _neighbour,
    "diurnal": _diurnal,
}

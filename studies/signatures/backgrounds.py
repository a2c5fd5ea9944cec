"""Draw background traffic during runs: rates per second, relative to an application's peak.

Each kind has the requested mean. All windows (runs, seconds) are drawn independently, since an application's runs are
hours apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from iosig.studies.signatures.families import Foreign
from iosig.transforms.arrays import Bools, Reals

#: default transfers: median length [s] and log sigma, median relative rate and log sigma
_LENGTH_S, _LENGTH_SIGMA, _HEIGHT, _HEIGHT_SIGMA = 20.0, 0.8, 0.7, 0.4
#: many concurrent streams: length [s], relative rate, and floor
_STREAM_S, _STREAM_HEIGHT, _STREAM_FLOOR = 60.0, 0.1, 0.2
#: heavy tails: Pareto exponent, minimum and maximum [s, relative rate]
_TAIL_LENGTH, _TAIL_HEIGHT = (1.3, 4.0, 2000.0), (1.8, 0.3, 6.0)
#: traffic that never rests: floor relative to the mean (0.6 of 2.4 GB/s); shape of the gamma-distributed rest, which
#: puts a tenth of the time above 5 GB/s at a mean of 2.4 GB/s; correlation time [s]
_FLOOR, _SHAPE, _MEMORY_S = 0.25, 0.77, 15.0
#: relative amplitude of the daily cycle
_DAY_SWING = 0.9


def draw_traffic(kind: Foreign, level: float, run_count: int, seconds: int, rng: np.random.Generator) -> Reals:
    """Draw background traffic (runs, seconds) of a kind with mean `level`, relative to the peak."""
    return _MAKERS[kind](level, run_count, seconds, rng)


@dataclass(frozen=True, slots=True)
class _Transfers:
    """A Poisson process of transfers with random length [s] and rate, and the means of both."""

    length_s: Callable[[np.random.Generator, int], Reals]
    height: Callable[[np.random.Generator, int], Reals]
    mean_length_s: float
    mean_height: float
    longest_s: float

    def draw(self, level: Reals, seconds: int, rng: np.random.Generator) -> Reals:
        """Draw the traffic of windows (runs, seconds) with the given means (runs)."""
        run_count, before_s = len(level), self.longest_s
        rate = level / (self.mean_length_s * self.mean_height)
        counts = rng.poisson(rate * (seconds + before_s))
        run = np.repeat(np.arange(run_count), counts)
        begin = rng.random(len(run)) * (seconds + before_s) - before_s
        end = begin + self.length_s(rng, len(run))
        height = self.height(rng, len(run))
        change = np.zeros((run_count, seconds + 2))
        for at_s, height_change in ((begin, height), (end, -height)):
            second, fraction = np.divmod(np.clip(at_s, 0.0, seconds), 1.0)
            place = run * (seconds + 2) + second.astype(np.int64)
            change += np.bincount(place, height_change * (1.0 - fraction), change.size).reshape(change.shape)
            change += np.bincount(place + 1, height_change * fraction, change.size).reshape(change.shape)
        return np.maximum(np.cumsum(change, axis=1)[:, :seconds], 0.0)


def _make_log_normal(median: float, sigma: float) -> tuple[Callable[[np.random.Generator, int], Reals], float]:
    return lambda rng, count: rng.lognormal(np.log(median), sigma, count), median * float(np.exp(sigma**2 / 2))


def _make_pareto(exponent: float, low: float, high: float) -> tuple[Callable[[np.random.Generator, int], Reals], float]:
    """Return the sampler and the mean of a truncated Pareto distribution."""
    share = 1.0 - (low / high) ** exponent

    def drawn(rng: np.random.Generator, count: int) -> Reals:
        values: Reals = low * (1.0 - share * rng.random(count)) ** (-1.0 / exponent)
        return values

    mean_factor = exponent / (exponent - 1.0)
    return drawn, mean_factor * low**exponent / share * (low ** (1.0 - exponent) - high ** (1.0 - exponent))


def _make_transfers(lengths: tuple[object, float], heights: tuple[object, float], longest_s: float) -> _Transfers:
    return _Transfers(lengths[0], heights[0], lengths[1], heights[1], longest_s)  # type: ignore[arg-type]


_USUAL = _make_transfers(_make_log_normal(_LENGTH_S, _LENGTH_SIGMA), _make_log_normal(_HEIGHT, _HEIGHT_SIGMA), 300.0)
_STREAMS = _make_transfers(_make_log_normal(_STREAM_S, 0.5), _make_log_normal(_STREAM_HEIGHT, 0.3), 400.0)
_TAILS = _make_transfers(_make_pareto(*_TAIL_LENGTH), _make_pareto(*_TAIL_HEIGHT), _TAIL_LENGTH[2])


def _draw_resting(level: float, run_count: int, seconds: int, rng: np.random.Generator) -> Reals:
    return _USUAL.draw(np.full(run_count, level), seconds, rng)


def _draw_heavy_tails(level: float, run_count: int, seconds: int, rng: np.random.Generator) -> Reals:
    return _TAILS.draw(np.full(run_count, level), seconds, rng)


def _draw_streams(level: float, run_count: int, seconds: int, rng: np.random.Generator) -> Reals:
    floor = _STREAM_FLOOR * level
    return floor + _STREAMS.draw(np.full(run_count, level - floor), seconds, rng)


def _draw_diurnal(level: float, run_count: int, seconds: int, rng: np.random.Generator) -> Reals:
    hour = rng.random(run_count)
    return _USUAL.draw(level * (1.0 + _DAY_SWING * np.sin(2 * np.pi * hour)), seconds, rng)


def _draw_unresting(level: float, run_count: int, seconds: int, rng: np.random.Generator) -> Reals:
    """Draw a floor plus a gamma-distributed rate with autocorrelation (a Gaussian copula)."""
    from scipy.signal import lfilter
    from scipy.special import gammaincinv, ndtr

    keeps = float(np.exp(-1.0 / _MEMORY_S))
    noise = rng.standard_normal((run_count, seconds)) * np.sqrt(1.0 - keeps**2)
    noise[:, 0] = rng.standard_normal(run_count)
    normal = lfilter([1.0], [1.0, -keeps], noise, axis=1)
    knots = np.linspace(-5.0, 5.0, 1001)
    above = np.interp(normal, knots, gammaincinv(_SHAPE, ndtr(knots)) / _SHAPE)
    rates: Reals = level * (_FLOOR + (1.0 - _FLOOR) * above)
    return rates


@dataclass(frozen=True, slots=True)
class _Neighbor:
    """One large periodic neighbor besides other transfers.

    period_s: range of its period [s]. duty: fraction of the period that a burst takes. jitter: standard deviation of
    burst starts, relative to the period. share: fraction of all background bytes.
    """

    period_s: tuple[float, float]
    duty: float
    jitter: float
    share: float

    def draw(self, level: float, run_count: int, seconds: int, rng: np.random.Generator) -> Reals:
        """Draw its traffic and that of others in windows (runs, seconds) with mean `level`."""
        period_s = rng.uniform(*self.period_s)
        count = int(seconds / period_s) + 3
        begin = (np.arange(count) - 1.0 - rng.random((run_count, 1))) * period_s
        begin += rng.normal(0.0, self.jitter * period_s, begin.shape)
        is_at_work: Bools = np.zeros((run_count, seconds), dtype=np.bool_)
        second = np.arange(seconds) + 0.5
        for row, starts in zip(is_at_work, np.sort(begin, axis=1), strict=True):
            place = np.searchsorted(starts, second) - 1
            row[:] = (place >= 0) & (second - starts[np.maximum(place, 0)] < self.duty * period_s)
        own_level = self.share * level
        return is_at_work * (own_level / self.duty) + _draw_resting(level - own_level, run_count, seconds, rng)


_MAKERS: dict[Foreign, Callable[[float, int, int, np.random.Generator], Reals]] = {
    "rests": _draw_resting,
    "never_rests": _draw_unresting,
    "streams": _draw_streams,
    "tails": _draw_heavy_tails,
    "neighbour": _Neighbor((150.0, 500.0), 0.2, 0.02, 0.85).draw,
    "short_neighbour": _Neighbor((60.0, 60.0), 0.15, 0.0, 0.95).draw,
    "long_neighbour": _Neighbor((900.0, 900.0), 0.1, 0.005, 0.95).draw,
    "diurnal": _draw_diurnal,
}

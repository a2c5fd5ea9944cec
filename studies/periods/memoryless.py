"""Draw memoryless random signals, in which a period detector must find no period.

These are many forms of the default detector's null hypothesis: the future does not depend on the time since the last
burst (idle times are exponential or geometric), or depends only on the last sample. They are drawn from a seed, and
were committed before any method was tuned. Two kinds of traps are not noise: regular gaps in the measurements
(`HOLES`), and regular ticks with negligible bytes (`TICKS`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtr, ndtri

from iosig.studies.periods import noise
from iosig.transforms.arrays import Reals

#: lengths of the signals, in samples
SAMPLE_COUNTS = (60, 200, 600, 1500, 4000)
_LEVEL = 1e9


@dataclass(frozen=True, slots=True)
class Generator:
    """A family of aperiodic signals; `draw(rng, signals, samples)` returns rates (signals, samples)."""

    kind: str
    label: str
    draw: Callable[[np.random.Generator, int, int], Reals]


def list_generators() -> Iterator[Generator]:
    """Yield the generators of bursts, of independent or AR(1) samples, and of random states."""
    yield from _list_burst_generators()
    yield from _list_sample_generators()
    yield from _list_state_generators()


# ---- bursts at random times


def _list_burst_generators() -> Iterator[Generator]:
    for distance, duty, overlap in product((6, 15, 40, 100), (0.05, 0.2, 0.5), (True, False)):
        params = noise.BurstParams(duty=duty, may_overlap=overlap)
        word = "overlapping" if overlap else "one by one"
        label = f"bursts each {distance}, duty {duty:.0%}, {word}"
        yield Generator("bursts", label, partial(_draw_bursts, distance=distance, params=params))
    for distance, duty in product((6, 15, 40, 100), (0.1, 0.3)):
        params = noise.BurstParams(duty=duty, duration_log_spread=0.5, volume_log_spread=1.0)
        label = f"uneven bursts each {distance}, duty {duty:.0%}"
        yield Generator("bursts", label, partial(_draw_bursts, distance=distance, params=params))
    for distance in (6, 15, 40, 100):
        params = noise.BurstParams(duty=0.1, volume_log_spread=2.0)
        yield Generator(
            "bursts", f"very uneven each {distance}", partial(_draw_bursts, distance=distance, params=params)
        )
    for distance, share in product((15, 40), (0.1, 0.5)):
        label = f"bursts each {distance} on noise of {share:g}"
        yield Generator("bursts", label, partial(_draw_noisy_bursts, distance=distance, share=share))
    for distance in (15, 40):
        label = f"bursts each {distance}, 30 % missing"
        yield Generator("bursts", label, partial(_draw_gappy_bursts, distance=distance, share=0.3))
    for before, after in ((60, 15), (15, 60)):
        label = f"bursts each {before}, later each {after}"
        yield Generator("bursts", label, partial(_draw_rate_change, before=before, after=after))
    for distance, size in product((60, 150), (4, 10)):
        label = f"clusters of {size} each {distance}"
        yield Generator("bursts", label, partial(_draw_clusters, distance=distance, size=size))


def _draw_bursts(
    generator: np.random.Generator, count: int, samples: int, distance: float, params: noise.BurstParams
) -> Reals:
    """Draw bursts with a mean distance in samples; their number is Poisson-distributed, but 3 or more."""
    number = max(int(generator.poisson(samples / distance)), 3)
    burst_params = noise.BurstParams(
        number, params.duty, params.duration_log_spread, params.volume_log_spread, may_overlap=params.may_overlap
    )
    return noise.draw_bursts(generator, count, samples, burst_params)


def _draw_noisy_bursts(
    generator: np.random.Generator, count: int, samples: int, distance: float, share: float
) -> Reals:
    rates = _draw_bursts(generator, count, samples, distance, noise.BurstParams(duty=0.15))
    high = rates.max(axis=1, keepdims=True)
    result: Reals = rates + high * share * np.abs(generator.standard_normal(rates.shape))
    return result


def _draw_gappy_bursts(
    generator: np.random.Generator, count: int, samples: int, distance: float, share: float
) -> Reals:
    rates = _draw_bursts(generator, count, samples, distance, noise.BurstParams(duty=0.2))
    rates[generator.random(rates.shape) < share] = np.nan
    return rates


def _draw_rate_change(generator: np.random.Generator, count: int, samples: int, before: float, after: float) -> Reals:
    half = samples // 2
    first = _draw_bursts(generator, count, half, before, noise.BurstParams(duty=0.1))
    last = _draw_bursts(generator, count, samples - half, after, noise.BurstParams(duty=0.1))
    return np.concatenate([first, last], axis=1)


def _draw_clusters(generator: np.random.Generator, count: int, samples: int, distance: float, size: int) -> Reals:
    """Draw clusters at random times; within a cluster, bursts are spread over a third of the mean distance."""
    number = max(round(samples / distance), 3)
    starts = generator.uniform(0, samples, (count, number, 1)) + generator.exponential(
        distance / 3, (count, number, size)
    )
    rates = np.zeros((count, samples))
    row, _, _ = np.indices(starts.shape)
    place = np.minimum(starts.astype(np.int64), samples - 1)
    np.add.at(rates, (row, place), _LEVEL)
    return rates


# ---- each sample by itself, or with the last one


def _list_sample_generators() -> Iterator[Generator]:
    for name in _LEVELS:
        yield Generator("white", name, partial(_draw_white, name=name))
    for share, spread in product((0.02, 0.1, 0.3, 0.5), (0.0, 1.0)):
        label = f"active {share:.0%} of samples, spread {spread:g}"
        yield Generator("white", label, partial(_draw_sparse, share=share, spread=spread))
    for correlation, is_skewed in product((0.3, 0.6, 0.9, 0.98, 0.995), (False, True)):
        label = f"AR(1), {correlation:g}{', log-normal' if is_skewed else ''}"
        yield Generator("red", label, partial(_draw_ar1, correlation=correlation, is_skewed=is_skewed))


_LEVELS: dict[str, Callable[[Reals], Reals]] = {
    "normal, 10 %": lambda u: np.maximum(1 + 0.1 * _to_normal(u), 0.0),
    "normal, 50 %": lambda u: np.maximum(1 + 0.5 * _to_normal(u), 0.0),
    "log-normal, 0.5": lambda u: np.exp(0.5 * _to_normal(u)),
    "log-normal, 1": lambda u: np.exp(_to_normal(u)),
    "log-normal, 2": lambda u: np.exp(2 * _to_normal(u)),
    "uniform": lambda u: u,
    "exponential": lambda u: -np.log1p(-u),
    "Pareto, 1.5": lambda u: (1 - u) ** (-1 / 1.5),
}


def _to_normal(uniform: Reals) -> Reals:
    normal: Reals = ndtri(np.maximum(uniform, 1e-300))
    return normal


def _draw_white(generator: np.random.Generator, count: int, samples: int, name: str) -> Reals:
    return _LEVEL * _LEVELS[name](generator.random((count, samples)))


def _draw_sparse(generator: np.random.Generator, count: int, samples: int, share: float, spread: float) -> Reals:
    is_active = generator.random((count, samples)) < share
    sizes = np.exp(spread * generator.standard_normal((count, samples)))
    return np.where(is_active, _LEVEL * sizes, 0.0)


def _draw_ar1(generator: np.random.Generator, count: int, samples: int, correlation: float, is_skewed: bool) -> Reals:
    innovations = generator.standard_normal((count, samples))
    innovations[:, 1:] *= np.sqrt(1 - correlation**2)
    values = lfilter([1.0], [1.0, -correlation], innovations, axis=1)
    rates: Reals = np.exp(values) if is_skewed else ndtr(values)
    return _LEVEL * rates


# ---- states that are left at random times


def _list_state_generators() -> Iterator[Generator]:
    for on, off in ((2, 6), (5, 15), (10, 10), (20, 80), (50, 50), (3, 60), (1.5, 30), (30, 5)):
        yield Generator("states", f"on for {on:g}, off for {off:g}", partial(_draw_on_off, on=on, off=off))
    for mean in (5, 20, 60):
        yield Generator("states", f"levels for {mean:g}", partial(_draw_levels, mean=mean))
    for distance, decay in ((10, 5), (40, 10), (40, 3), (100, 30)):
        label = f"impulses each {distance} that fade in {decay}"
        yield Generator("states", label, partial(_draw_decaying, distance=distance, decay=decay))


def _draw_on_off(generator: np.random.Generator, count: int, samples: int, on: float, off: float) -> Reals:
    """Draw signals with geometric on and off times."""
    number = int(2 * samples / (on + off) + 8 * np.sqrt(samples / (on + off)) + 20)
    times = np.empty((count, 2 * number), dtype=np.int64)
    times[:, ::2] = generator.geometric(1 / off, (count, number))
    times[:, 1::2] = generator.geometric(1 / on, (count, number))
    edges = np.cumsum(times, axis=1)
    changes = np.zeros((count, samples + 1), dtype=np.int64)
    np.add.at(changes, (np.arange(count)[:, None], np.minimum(edges, samples)), 1)
    return np.where(np.cumsum(changes[:, :-1], axis=1) % 2, _LEVEL, 0.0)


def _draw_levels(generator: np.random.Generator, count: int, samples: int, mean: float) -> Reals:
    """Draw log-normal levels with geometric durations."""
    is_new = generator.random((count, samples)) < 1 / mean
    is_new[:, 0] = True
    values = np.exp(generator.standard_normal((count, samples)))
    last = np.maximum.accumulate(np.where(is_new, np.arange(samples), 0), axis=1)
    return _LEVEL * np.take_along_axis(values, last, axis=1)


def _draw_decaying(generator: np.random.Generator, count: int, samples: int, distance: float, decay: float) -> Reals:
    impulses = (generator.random((count, samples)) < 1 / distance).astype(np.float64)
    rates = np.asarray(_LEVEL * lfilter([1.0], [1.0, -np.exp(-1 / decay)], impulses, axis=1), dtype=np.float64)
    # cut the exponential tail, which would count as activity
    return np.where(rates < 1e-3 * _LEVEL, 0.0, rates)


# ---- traps


@dataclass(frozen=True, slots=True)
class Trap:
    """Random bursts with a regular component that is not a period of the I/O.

    hole_ratio: unmeasured fraction of each cycle. tick_ratio: bytes of one tick per cycle, relative to a burst. cycle:
    in samples.
    """

    label: str
    distance: float = 8.0
    duty: float = 0.4
    hole_ratio: float = 0.0
    tick_ratio: float = 0.0
    cycle: int = 40
    sample_count: int = 1200

    def draw(self, generator: np.random.Generator, count: int) -> Reals:
        """Draw rates (signals, samples); NaN in the holes."""
        rates = _draw_bursts(generator, count, self.sample_count, self.distance, noise.BurstParams(duty=self.duty))
        place = np.arange(self.sample_count)
        if self.tick_ratio:
            volume = np.nansum(rates, axis=1, keepdims=True) / (self.sample_count / self.distance)
            rates = rates + (place % self.cycle == 0) * volume * self.tick_ratio
        if self.hole_ratio:
            rates[:, place % self.cycle < self.hole_ratio * self.cycle] = np.nan
        return rates


HOLES: tuple[Trap, ...] = tuple(
    Trap(
        f"bursts each {distance:g}, duty {duty:.0%}, {hole:.0%} of each {cycle} of {samples} unmeasured",
        distance, duty, hole, 0.0, cycle, samples,
    )
    for distance, duty in ((4.0, 0.3), (8.0, 0.15), (20.0, 0.3), (60.0, 0.1))
    for hole, cycle in ((0.25, 40), (0.25, 100), (0.4, 160))
    for samples in (1200, 4000)
)  # fmt: skip
TICKS: tuple[Trap, ...] = tuple(
    Trap(f"ticks of {ratio:g} of a burst, bursts each {distance:g}", distance, 0.1, 0.0, ratio)
    for distance in (60.0, 300.0)
    for ratio in (1e-15, 1e-9, 1e-6)
)

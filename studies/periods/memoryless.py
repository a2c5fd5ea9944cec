"""Signals in which nothing knows when anything happened before: a search for periods must find none in them.

The null hypothesis of the default search, in many shapes: what comes next does not depend on how long ago the last
burst was (idle times are exponential, or in samples geometric), or only on the last sample. Drawn from a seed, and
committed before any method was changed for them. Beside them stand two traps that are no noise: holes in
what was measured that come regularly (`HOLES`), and ticks that move next to nothing (`TICKS`).
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
    """Signals without a period: draw(random numbers, signals, samples) returns rates (signals, samples)."""

    kind: str
    label: str
    draw: Callable[[np.random.Generator, int, int], Reals]


def generators() -> Iterator[Generator]:
    """Yield all generators."""
    yield from _of_bursts()
    yield from _of_samples()
    yield from _of_states()


# ---- bursts at random times


def _of_bursts() -> Iterator[Generator]:
    for distance, duty, overlap in product((6, 15, 40, 100), (0.05, 0.2, 0.5), (True, False)):
        params = noise.BurstParams(duty=duty, may_overlap=overlap)
        word = "overlapping" if overlap else "one by one"
        label = f"bursts each {distance}, duty {duty:.0%}, {word}"
        yield Generator("bursts", label, partial(_bursts, distance=distance, params=params))
    for distance, duty in product((6, 15, 40, 100), (0.1, 0.3)):
        params = noise.BurstParams(duty=duty, duration_log_spread=0.5, volume_log_spread=1.0)
        label = f"uneven bursts each {distance}, duty {duty:.0%}"
        yield Generator("bursts", label, partial(_bursts, distance=distance, params=params))
    for distance in (6, 15, 40, 100):
        params = noise.BurstParams(duty=0.1, volume_log_spread=2.0)
        yield Generator("bursts", f"very uneven each {distance}", partial(_bursts, distance=distance, params=params))
    for distance, share in product((15, 40), (0.1, 0.5)):
        label = f"bursts each {distance} on noise of {share:g}"
        yield Generator("bursts", label, partial(_on_noise, distance=distance, share=share))
    for distance in (15, 40):
        label = f"bursts each {distance}, 30 % missing"
        yield Generator("bursts", label, partial(_missing, distance=distance, share=0.3))
    for before, after in ((60, 15), (15, 60)):
        label = f"bursts each {before}, later each {after}"
        yield Generator("bursts", label, partial(_changing, before=before, after=after))
    for distance, size in product((60, 150), (4, 10)):
        label = f"clusters of {size} each {distance}"
        yield Generator("bursts", label, partial(_clusters, distance=distance, size=size))


def _bursts(
    generator: np.random.Generator, count: int, samples: int, distance: float, params: noise.BurstParams
) -> Reals:
    """Return bursts that come each so many samples in the mean; their number is random, too, but for its floor."""
    number = max(int(generator.poisson(samples / distance)), 3)
    own = noise.BurstParams(
        number, params.duty, params.duration_log_spread, params.volume_log_spread, may_overlap=params.may_overlap
    )
    return noise.bursts(generator, count, samples, own)


def _on_noise(generator: np.random.Generator, count: int, samples: int, distance: float, share: float) -> Reals:
    found = _bursts(generator, count, samples, distance, noise.BurstParams(duty=0.15))
    high = found.max(axis=1, keepdims=True)
    added: Reals = found + high * share * np.abs(generator.standard_normal(found.shape))
    return added


def _missing(generator: np.random.Generator, count: int, samples: int, distance: float, share: float) -> Reals:
    found = _bursts(generator, count, samples, distance, noise.BurstParams(duty=0.2))
    found[generator.random(found.shape) < share] = np.nan
    return found


def _changing(generator: np.random.Generator, count: int, samples: int, before: float, after: float) -> Reals:
    half = samples // 2
    first = _bursts(generator, count, half, before, noise.BurstParams(duty=0.1))
    last = _bursts(generator, count, samples - half, after, noise.BurstParams(duty=0.1))
    return np.concatenate([first, last], axis=1)


def _clusters(generator: np.random.Generator, count: int, samples: int, distance: float, size: int) -> Reals:
    """Return clusters at random times, each of bursts at random times within a third of their mean distance."""
    number = max(round(samples / distance), 3)
    starts = generator.uniform(0, samples, (count, number, 1)) + generator.exponential(
        distance / 3, (count, number, size)
    )
    found = np.zeros((count, samples))
    row, _, _ = np.indices(starts.shape)
    place = np.minimum(starts.astype(np.int64), samples - 1)
    np.add.at(found, (row, place), _LEVEL)
    return found


# ---- each sample by itself, or with the last one


def _of_samples() -> Iterator[Generator]:
    for name in _LEVELS:
        yield Generator("white", name, partial(_white, name=name))
    for share, spread in product((0.02, 0.1, 0.3, 0.5), (0.0, 1.0)):
        label = f"active {share:.0%} of samples, spread {spread:g}"
        yield Generator("white", label, partial(_sparse, share=share, spread=spread))
    for correlation, is_skewed in product((0.3, 0.6, 0.9, 0.98, 0.995), (False, True)):
        label = f"AR(1), {correlation:g}{', log-normal' if is_skewed else ''}"
        yield Generator("red", label, partial(_red, correlation=correlation, is_skewed=is_skewed))


_LEVELS: dict[str, Callable[[Reals], Reals]] = {
    "normal, 10 %": lambda u: np.maximum(1 + 0.1 * _normal(u), 0.0),
    "normal, 50 %": lambda u: np.maximum(1 + 0.5 * _normal(u), 0.0),
    "log-normal, 0.5": lambda u: np.exp(0.5 * _normal(u)),
    "log-normal, 1": lambda u: np.exp(_normal(u)),
    "log-normal, 2": lambda u: np.exp(2 * _normal(u)),
    "uniform": lambda u: u,
    "exponential": lambda u: -np.log1p(-u),
    "Pareto, 1.5": lambda u: (1 - u) ** (-1 / 1.5),
}


def _normal(uniform: Reals) -> Reals:
    found: Reals = ndtri(np.maximum(uniform, 1e-300))
    return found


def _white(generator: np.random.Generator, count: int, samples: int, name: str) -> Reals:
    return _LEVEL * _LEVELS[name](generator.random((count, samples)))


def _sparse(generator: np.random.Generator, count: int, samples: int, share: float, spread: float) -> Reals:
    is_active = generator.random((count, samples)) < share
    sizes = np.exp(spread * generator.standard_normal((count, samples)))
    return np.where(is_active, _LEVEL * sizes, 0.0)


def _red(generator: np.random.Generator, count: int, samples: int, correlation: float, is_skewed: bool) -> Reals:
    drawn = generator.standard_normal((count, samples))
    drawn[:, 1:] *= np.sqrt(1 - correlation**2)
    values = lfilter([1.0], [1.0, -correlation], drawn, axis=1)
    found: Reals = np.exp(values) if is_skewed else ndtr(values)
    return _LEVEL * found


# ---- states that are left at random times


def _of_states() -> Iterator[Generator]:
    for on, off in ((2, 6), (5, 15), (10, 10), (20, 80), (50, 50), (3, 60), (1.5, 30), (30, 5)):
        yield Generator("states", f"on for {on:g}, off for {off:g}", partial(_switching, on=on, off=off))
    for mean in (5, 20, 60):
        yield Generator("states", f"levels for {mean:g}", partial(_levels, mean=mean))
    for distance, decay in ((10, 5), (40, 10), (40, 3), (100, 30)):
        label = f"impulses each {distance} that fade in {decay}"
        yield Generator("states", label, partial(_fading, distance=distance, decay=decay))


def _switching(generator: np.random.Generator, count: int, samples: int, on: float, off: float) -> Reals:
    """Return signals that are on and off for geometric times."""
    number = int(2 * samples / (on + off) + 8 * np.sqrt(samples / (on + off)) + 20)
    times = np.empty((count, 2 * number), dtype=np.int64)
    times[:, ::2] = generator.geometric(1 / off, (count, number))
    times[:, 1::2] = generator.geometric(1 / on, (count, number))
    edges = np.cumsum(times, axis=1)
    changes = np.zeros((count, samples + 1), dtype=np.int64)
    np.add.at(changes, (np.arange(count)[:, None], np.minimum(edges, samples)), 1)
    return np.where(np.cumsum(changes[:, :-1], axis=1) % 2, _LEVEL, 0.0)


def _levels(generator: np.random.Generator, count: int, samples: int, mean: float) -> Reals:
    """Return log-normal levels that hold for geometric times."""
    is_new = generator.random((count, samples)) < 1 / mean
    is_new[:, 0] = True
    values = np.exp(generator.standard_normal((count, samples)))
    last = np.maximum.accumulate(np.where(is_new, np.arange(samples), 0), axis=1)
    return _LEVEL * np.take_along_axis(values, last, axis=1)


def _fading(generator: np.random.Generator, count: int, samples: int, distance: float, decay: float) -> Reals:
    impulses = (generator.random((count, samples)) < 1 / distance).astype(np.float64)
    found = np.asarray(_LEVEL * lfilter([1.0], [1.0, -np.exp(-1 / decay)], impulses, axis=1), dtype=np.float64)
    # a tail of rounding is not activity
    return np.where(found < 1e-3 * _LEVEL, 0.0, found)


# ---- traps


@dataclass(frozen=True, slots=True)
class Trap:
    """Random bursts, and beside them something regular that is no period of the I/O.

    hole_ratio: the share of each cycle that was not measured. tick_ratio: the bytes of a tick that comes each cycle
    over those of a burst. cycle: in samples.
    """

    label: str
    distance: float = 8.0
    duty: float = 0.4
    hole_ratio: float = 0.0
    tick_ratio: float = 0.0
    cycle: int = 40
    sample_count: int = 1200

    def draw(self, generator: np.random.Generator, count: int) -> Reals:
        """Return rates (signals, samples), NaN in the holes."""
        found = _bursts(generator, count, self.sample_count, self.distance, noise.BurstParams(duty=self.duty))
        place = np.arange(self.sample_count)
        if self.tick_ratio:
            volume = np.nansum(found, axis=1, keepdims=True) / (self.sample_count / self.distance)
            found = found + (place % self.cycle == 0) * volume * self.tick_ratio
        if self.hole_ratio:
            found[:, place % self.cycle < self.hole_ratio * self.cycle] = np.nan
        return found


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

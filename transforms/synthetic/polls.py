"""Simulate the polls of storage controllers: bytes per controller, and arrival with faults."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.synthetic.workload import DAY_S


@dataclass(frozen=True, slots=True)
class Faults:
    """Faults of a site's polls; the orders of magnitude are ours.

    Attributes
    ----------
    lost_ratio
        Fraction of polls that never arrive.
    late_ratio, late_s
        Fraction of polls that arrive late, and the maximum delay [s].
    repeated_ratio
        Fraction of polls that arrive twice.
    block_s
        Duration of a daily block of polls of one controller that arrive together at its end [s].
    controller_outage_s
        Minimum and maximum duration of an outage of one controller's polls, on even days [s].
    outage_s
        Minimum and maximum duration of an outage of all polls, on odd days [s].
    """

    lost_ratio: float = 3e-4
    late_ratio: float = 5e-4
    late_s: float = 600.0
    repeated_ratio: float = 1e-4
    block_s: float = 300.0
    controller_outage_s: tuple[float, float] = (1200.0, 7200.0)
    outage_s: tuple[float, float] = (60.0, 300.0)

    def scale(self, level: float) -> Faults:
        """Multiply frequencies and durations; outages are limited to a quarter of a day."""

        def length(seconds: float) -> float:
            return min(DAY_S / 4, seconds * level)

        return replace(
            self,
            lost_ratio=min(1.0, self.lost_ratio * level),
            late_ratio=min(1.0, self.late_ratio * level),
            repeated_ratio=min(1.0, self.repeated_ratio * level),
            block_s=length(self.block_s),
            controller_outage_s=(length(self.controller_outage_s[0]), length(self.controller_outage_s[1])),
            outage_s=(length(self.outage_s[0]), length(self.outage_s[1])),
        )


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Tick and controller of each poll, in order of arrival."""

    tick: Ints
    controller: Ints


def split_polls(volume_bytes: Reals, controller_count: int, interval_s: float, rng: np.random.Generator) -> Reals:
    """Split the bytes of each tick over controllers, as integers.

    Parameters
    ----------
    volume_bytes : (ticks,)
        Bytes of each tick.
    controller_count
        Number of controllers.
    interval_s
        Interval between ticks [s].
    rng
        Random generator.

    Returns
    -------
    (ticks, controllers)
        Bytes of each controller. The fractions vary by controller, by minute (as the stripes of active files do) and
        by tick. Sums over any period are exact to a byte per controller.
    """
    ticks = len(volume_bytes)
    minutes = max(1, round(60.0 / interval_s))
    permanent = rng.lognormal(0.0, 0.1, controller_count)
    stripes = rng.standard_gamma(6.0, (ticks // minutes + 1, controller_count)) * permanent
    shares = rng.standard_gamma(20.0, (ticks, controller_count))
    shares *= np.repeat(stripes, minutes, axis=0)[:ticks]
    shares *= (volume_bytes / shares.sum(axis=1))[:, None]
    counters = np.floor(np.cumsum(shares, axis=0, out=shares), out=shares)
    counters[1:] -= counters[:-1].copy()
    return counters


def arrive_in_order(tick_count: int, controller_count: int) -> Arrivals:
    """Create arrivals without faults: every controller at every tick, in order."""
    places = np.arange(tick_count * controller_count)
    return Arrivals(places // controller_count, places % controller_count)


def simulate_arrivals(
    tick_count: int, controller_count: int, interval_s: float, faults: Faults, rng: np.random.Generator
) -> Arrivals:
    """Simulate the arrival of polls; some polls are lost, late or repeated.

    Parameters
    ----------
    tick_count, controller_count
        Numbers of ticks and controllers.
    interval_s
        Interval between ticks [s].
    faults
        Faults of the polls.
    rng
        Random generator.

    Returns
    -------
    Arrivals
        Polls in order of arrival.
    """
    is_kept = np.ones((tick_count, controller_count), dtype=np.bool_)
    delay = np.zeros((tick_count, controller_count))
    for day in range(int(np.ceil(tick_count * interval_s / DAY_S))):
        _add_outages(is_kept, delay, day, interval_s, faults, rng)
    is_kept &= rng.random(is_kept.shape) >= faults.lost_ratio
    is_late = rng.random(is_kept.shape) < faults.late_ratio
    delay[is_late] += rng.uniform(interval_s, faults.late_s, int(is_late.sum()))
    place = np.flatnonzero(is_kept)
    repeated = place[rng.random(place.size) < faults.repeated_ratio]
    arrival_s = (place // controller_count) * interval_s + delay.ravel()[place]
    repeat_s = (repeated // controller_count) * interval_s + rng.uniform(0.0, faults.late_s, repeated.size)
    order = np.argsort(np.concatenate([arrival_s, repeat_s]), kind="stable")
    place = np.concatenate([place, repeated])[order]
    return Arrivals(place // controller_count, place % controller_count)


def _add_outages(
    is_kept: Bools, delay: Reals, day: int, interval_s: float, faults: Faults, rng: np.random.Generator
) -> None:
    """Add a day's outage, and its block of delayed polls."""
    low, high = faults.outage_s if day % 2 else faults.controller_outage_s
    outage_s, outage_at, block_at = rng.uniform(low, high), rng.random(), rng.random()
    silent_column, delayed_column = rng.integers(is_kept.shape[1], size=2)
    per_day = DAY_S / interval_s

    def span(at: float, duration_s: float) -> slice:
        first = int((day + at * (1.0 - duration_s / DAY_S)) * per_day)
        return slice(first, first + int(duration_s / interval_s))

    is_kept[span(outage_at, outage_s), slice(None) if day % 2 else silent_column] = False
    block = span(block_at, faults.block_s)
    waits = (block.stop - np.arange(len(delay))[block]) * interval_s
    delay[block, delayed_column] = waits

"""How a poll daemon sees a file system's traffic: split over controllers, in whole bytes, and with faults.

As on Spider (Liu et al., FAST'14, section 2.2): every controller is asked at a fixed interval, 2 s, and
each answer is one row. Rows come in the order in which they arrive, which is not always that of their
time stamps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transforms.arrays import Bools, Ints, Reals

_DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Faults:
    """How a site's polls go wrong; ratios of all polls, lengths in seconds. All are ours, by order of size.

    lost_ratio: single polls that never arrive. late_ratio: polls that arrive up to late_s after their
    time. repeated_ratio: polls that arrive twice. block_s: once a day the polls of one controller are
    held back that long and arrive together. controller_outage_s: every even day one controller is silent,
    from the lower to the upper length. outage_s: every odd day nothing is polled at all.
    """

    lost_ratio: float = 3e-4
    late_ratio: float = 5e-4
    late_s: float = 600.0
    repeated_ratio: float = 1e-4
    block_s: float = 300.0
    controller_outage_s: tuple[float, float] = (1200.0, 7200.0)
    outage_s: tuple[float, float] = (60.0, 300.0)

    def scaled(self, level: float) -> Faults:
        """Return faults that are so many times as frequent, or as long; no outage takes more than a quarter day."""

        def length(seconds: float) -> float:
            return min(_DAY_S / 4, seconds * level)

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
    """Polls in the order in which they arrived: which tick and which controller each is of."""

    tick: Ints
    controller: Ints


def split(volume_bytes: Reals, controller_count: int, interval_s: float, rng: np.random.Generator) -> Reals:
    """Split each tick's bytes over controllers in whole bytes (ticks, controllers).

    No controller has quite its even share, nor the same from minute to minute (the stripes of what is
    active) or tick to tick. Counters count whole bytes: over any span the sum is true to a byte per
    controller.
    """
    ticks = len(volume_bytes)
    minutes = max(1, round(60.0 / interval_s))
    standing = rng.lognormal(0.0, 0.1, controller_count)
    stripes = rng.standard_gamma(6.0, (ticks // minutes + 1, controller_count)) * standing
    shares = rng.standard_gamma(20.0, (ticks, controller_count))
    shares *= np.repeat(stripes, minutes, axis=0)[:ticks]
    shares *= (volume_bytes / shares.sum(axis=1))[:, None]
    counters = np.floor(np.cumsum(shares, axis=0, out=shares), out=shares)
    counters[1:] -= counters[:-1].copy()
    return counters


def perfect(tick_count: int, controller_count: int) -> Arrivals:
    """Return polls as they ought to come: every controller at every tick, in order."""
    places = np.arange(tick_count * controller_count)
    return Arrivals(places // controller_count, places % controller_count)


def arrivals(
    tick_count: int, controller_count: int, interval_s: float, faults: Faults, rng: np.random.Generator
) -> Arrivals:
    """Return polls as they do come: some lost, some late, some twice."""
    keeps = np.ones((tick_count, controller_count), dtype=np.bool_)
    delay = np.zeros((tick_count, controller_count))
    for day in range(int(np.ceil(tick_count * interval_s / _DAY_S))):
        _spoil_day(keeps, delay, day, interval_s, faults, rng)
    keeps &= rng.random(keeps.shape) >= faults.lost_ratio
    is_late = rng.random(keeps.shape) < faults.late_ratio
    delay[is_late] += rng.uniform(interval_s, faults.late_s, int(is_late.sum()))
    place = np.flatnonzero(keeps)
    again = place[rng.random(place.size) < faults.repeated_ratio]
    arrived = (place // controller_count) * interval_s + delay.ravel()[place]
    arrived_again = (again // controller_count) * interval_s + rng.uniform(0.0, faults.late_s, again.size)
    order = np.argsort(np.concatenate([arrived, arrived_again]), kind="stable")
    place = np.concatenate([place, again])[order]
    return Arrivals(place // controller_count, place % controller_count)


def _spoil_day(
    keeps: Bools, delay: Reals, day: int, interval_s: float, faults: Faults, rng: np.random.Generator
) -> None:
    """Mark a day's outage, and the block of polls that comes late."""
    low, high = faults.outage_s if day % 2 else faults.controller_outage_s
    outage_s, outage_at, block_at = rng.uniform(low, high), rng.random(), rng.random()
    silent, held = rng.integers(keeps.shape[1], size=2)
    per_day = _DAY_S / interval_s

    def span(at: float, lasting_s: float) -> slice:
        first = int((day + at * (1.0 - lasting_s / _DAY_S)) * per_day)
        return slice(first, first + int(lasting_s / interval_s))

    keeps[span(outage_at, outage_s), slice(None) if day % 2 else silent] = False
    block = span(block_at, faults.block_s)
    waits = (block.stop - np.arange(len(delay))[block]) * interval_s
    delay[block, held] = waits

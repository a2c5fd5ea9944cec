"""Draw periodic signals as in real runs, from a seed: short, noisy, uneven, or with gaps.

They were committed before any method was tuned for them, so no default was chosen by their results.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from iosig.studies.periods.noise import sample_rates
from iosig.transforms.arrays import Reals
from iosig.transforms.throughput.requests import Requests

#: mean rate of a burst [B/s]
_HEIGHT_BYTES_PER_S = 1e9
#: duration of a stray burst [samples]
_STRAY_SAMPLES = 2.0
#: mean of the noise, in standard deviations above zero
_FLOOR_SPREADS = 3.0


@dataclass(frozen=True, slots=True)
class Rhythm:
    """A kind of periodic signal.

    group: the question it answers. cycle_count: complete cycles per signal. shortest, longest: range of the period in
    samples. duty: fraction of the cycle that a burst takes. noise_ratio: standard deviation of normal noise relative to
    a burst's rate; its mean is three standard deviations. jitter_ratio: standard deviation of each burst's start, in
    cycles. wander_ratio: the same for each distance, which shifts all later bursts. drift_ratio: relative growth of the
    cycle from first to last. size_log_spread: standard deviation of the logarithm of a burst's rate. missing_ratio:
    fraction of randomly missing samples. stray_count: additional random bursts per cycle, with a fifth of the bytes.
    tick_lead_cycles: distance of a tiny request before the first burst, in cycles; 0: none.
    """

    group: str
    name: str
    cycle_count: int
    shortest: float = 40.0
    longest: float = 140.0
    duty: float = 0.15
    noise_ratio: float = 0.0
    jitter_ratio: float = 0.0
    wander_ratio: float = 0.0
    drift_ratio: float = 0.0
    size_log_spread: float = 0.0
    missing_ratio: float = 0.0
    stray_count: float = 0.0
    tick_lead_cycles: float = 0.0

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Reals, Reals]:
        """Draw signals (count, samples) in bytes per second at 1 Hz, and their periods in samples (count).

        The period of a wandering signal is its mean distance of bursts.
        """
        period, starts = self.draw_starts(generator, count)
        rates = self.render(generator, starts, period)
        own_period = np.full(count, period)
        if self.wander_ratio:
            own_period = (starts[:, -1] - starts[:, 0]) / (self.cycle_count - 1)
        return rates, own_period

    def draw_starts(self, generator: np.random.Generator, count: int) -> tuple[float, Reals]:
        """Draw a period, and the starts of bursts in `count` signals (count, bursts), in samples."""
        period = float(generator.uniform(self.shortest, self.longest))
        return period, self._draw_cycle_starts(generator, count) * period + self.tick_lead_cycles * period

    def render(self, generator: np.random.Generator, starts: Reals, period: float) -> Reals:
        """Render signals (count, samples) with bursts at these starts (count, bursts), and all disturbances."""
        count = len(starts)
        sample_count = round((self.cycle_count + self.tick_lead_cycles) * period)
        lengths = np.full(starts.shape, self.duty * period)
        rates = _HEIGHT_BYTES_PER_S * np.exp(self.size_log_spread * generator.standard_normal(starts.shape))
        pieces = [(starts, lengths, rates * lengths)]
        if self.stray_count:
            shape = (count, max(round(self.stray_count * self.cycle_count), 1))
            volume = np.full(shape, 0.2 * _HEIGHT_BYTES_PER_S * self.duty * period)
            pieces.append((generator.uniform(0, sample_count, shape), np.full(shape, _STRAY_SAMPLES), volume))
        if self.tick_lead_cycles:
            pieces.append((np.zeros((count, 1)), np.full((count, 1), 0.01), np.full((count, 1), 1e3)))
        rates = sample_rates(_requests(pieces), sample_count, 1.0)
        if self.noise_ratio:
            noise = self.noise_ratio * (generator.standard_normal(rates.shape) + _FLOOR_SPREADS)
            rates = np.maximum(rates + _HEIGHT_BYTES_PER_S * noise, 0.0)
        rates[generator.random(rates.shape) < self.missing_ratio] = np.nan
        return rates

    def _draw_cycle_starts(self, generator: np.random.Generator, count: int) -> Reals:
        """Draw starts of bursts in cycles (count, bursts), with mean distance 1."""
        steps = np.linspace(1 - self.drift_ratio / 2, 1 + self.drift_ratio / 2, self.cycle_count)
        steps = steps + self.wander_ratio * generator.standard_normal((count, self.cycle_count))
        starts = np.cumsum(np.maximum(steps, 1.1 * self.duty), axis=1) - steps[:, :1]
        first = generator.uniform(0.0, 1.0 - self.duty, (count, 1)) if not self.tick_lead_cycles else 0.0
        jitter = self.jitter_ratio * generator.standard_normal(starts.shape)
        result: Reals = np.maximum(starts + first + jitter, 0.0)
        return result


def _requests(pieces: list[tuple[Reals, Reals, Reals]]) -> Requests:
    """Build requests from starts, lengths and volumes (signals, bursts each)."""
    count = len(pieces[0][0])
    starts, lengths, volumes = (np.concatenate([piece[at] for piece in pieces], axis=1) for at in range(3))
    subject = np.repeat(np.arange(count), starts.shape[1])
    return Requests(starts.ravel(), (starts + lengths).ravel(), volumes.ravel(), subject, count)


RHYTHMS: tuple[Rhythm, ...] = (
    # claims: is the reported period right within 3 %?
    Rhythm("claim", "clean", 20),
    Rhythm("claim", "noise of 5 bursts", 200, 20.0, 60.0, noise_ratio=1.5),
    Rhythm("claim", "noise of half a burst", 20, noise_ratio=0.5),
    Rhythm("claim", "duty 40 %", 20, duty=0.4, noise_ratio=0.6),
    Rhythm("claim", "duty 60 %", 20, duty=0.6, noise_ratio=0.6),
    Rhythm("claim", "8 samples a cycle", 40, 7.0, 9.0, 0.25, noise_ratio=0.5),
    Rhythm("claim", "drift of 10 %", 20, drift_ratio=0.1, noise_ratio=0.2),
    Rhythm("claim", "distances wander by 10 %", 20, wander_ratio=0.1),
    # detection power with few cycles and disturbances (`oracles` gives upper bounds)
    Rhythm("power", "6 cycles in little noise", 6, noise_ratio=0.5),
    Rhythm("power", "4 cycles in noise", 4, noise_ratio=1.0),
    Rhythm("power", "6 cycles in noise", 6, noise_ratio=1.0),
    Rhythm("power", "8 cycles in noise", 8, noise_ratio=1.0),
    Rhythm("power", "uneven sizes", 15, size_log_spread=1.0, noise_ratio=0.1),
    Rhythm("power", "45 % missing", 15, missing_ratio=0.45, noise_ratio=0.3),
    Rhythm("power", "a stray burst a cycle", 15, stray_count=1.0),
    Rhythm("power", "jitter of 15 %", 15, jitter_ratio=0.15),
    Rhythm("power", "jitter of 15 % in noise", 15, jitter_ratio=0.15, noise_ratio=0.3),
    # few clean cycles, obvious to the eye
    Rhythm("plain", "5 bursts after a tick", 5, duty=0.2, jitter_ratio=0.02, tick_lead_cycles=0.6),
    Rhythm("plain", "10 bursts", 10, 5.0, 8.0, 0.3, jitter_ratio=0.03),
    Rhythm("plain", "3 cycles of 37 bins", 3, 36.0, 38.0, 0.3, size_log_spread=0.2),
    Rhythm("plain", "5 cycles of 23 bins", 5, 22.0, 24.0, 0.3, size_log_spread=0.2),
)

#: disturbances by number of cycles, to test whether the reported error covers the truth
ERRORS: tuple[Rhythm, ...] = tuple(
    replace(each, group="errors", name=f"{each.name}, {count} cycles", cycle_count=count)
    for each in (
        Rhythm("", "jitter of 2 %", 0, jitter_ratio=0.02),
        Rhythm("", "jitter of 5 %", 0, jitter_ratio=0.05),
        Rhythm("", "jitter of 10 %", 0, jitter_ratio=0.1),
        Rhythm("", "jitter of 5 % in noise", 0, jitter_ratio=0.05, noise_ratio=0.3),
        Rhythm("", "uneven sizes, jitter of 5 %", 0, jitter_ratio=0.05, size_log_spread=1.0),
        Rhythm("", "a stray burst a cycle", 0, stray_count=1.0),
        Rhythm("", "noise of half a burst", 0, noise_ratio=0.5),
        Rhythm("", "distances wander by 10 %", 0, wander_ratio=0.1),
    )
    for count in (4, 6, 8, 10, 15, 20, 30)
)

"""What who knows more than a search may know finds: the bound beside what a search finds.

A matched filter knows how long a burst is, as a share of its cycle, and that it is square; it seeks period and phase.
Its level is set against one sort of signals by simulation, which no search can do that does not know its noise.
"""

from __future__ import annotations

import numpy as np
from scipy import fft

from iosig.studies.periods.rhythms import Rhythm
from iosig.transforms.arrays import Bools, Reals

#: what the matched filter's level is set against
NULLS = ("shape known, against the noise alone", "shape known, against bursts at random times")
#: who knows when each burst began and which one of them it is
BURSTS = "bursts' times known"
#: signals of each null, and the share of them that may be called periodic
_NULL_COUNT, _LEVEL = 200, 0.01
#: harmonics of the filter, phases that are tried, how much finer frequencies are than by one transform
_HARMONICS, _PHASES, _FINER = 6, 24, 8
#: a period has so many samples at least, and so many cycles
_LEAST_SAMPLES, _LEAST_CYCLES = 16.0, 2.5


def has_noise_alone(rhythm: Rhythm) -> bool:
    """Return whether nothing but noise hides a rhythm, as high as its bursts: then the matched filter is the bound."""
    return rhythm.noise_ratio >= 1.0 and rhythm.jitter_ratio == rhythm.wander_ratio == 0.0


def by_shape(rhythm: Rhythm, rates: Reals, generator: np.random.Generator) -> tuple[Reals, dict[str, Bools]]:
    """Return what the matched filter says of signals of a rhythm (n, samples) of one period.

    The periods that fit best, in samples (n), and by null whether they are claimed.
    """
    height, period = _matched(rates, rhythm.duty)
    sample_count = rates.shape[1]
    cycle = sample_count / rhythm.cycle_count
    none = rhythm.with_bursts(generator, np.full((_NULL_COUNT, 1), 2.0 * sample_count), cycle)
    latest = sample_count - rhythm.duty * cycle
    random = generator.uniform(0.0, latest, (_NULL_COUNT, rhythm.cycle_count))
    scattered = rhythm.with_bursts(generator, random, cycle)
    claims = {}
    for name, null in zip(NULLS, (none, scattered), strict=True):
        highest, _ = _matched(null, rhythm.duty)
        claims[name] = height > np.quantile(highest, 1.0 - _LEVEL)
    return period, claims


def _matched(rates: Reals, duty: float) -> tuple[Reals, Reals]:
    """Return the highest answer of the matched filter, and the period that has it in samples (n)."""
    values = rates - rates.mean(axis=1, keepdims=True)
    values /= values.std(axis=1, keepdims=True)
    size = _FINER * values.shape[1]
    spectrum = fft.rfft(values, n=size, axis=1)
    first, last = round(_LEAST_CYCLES * _FINER), int(size / _LEAST_SAMPLES)
    bins = np.arange(first, last)
    phases = np.exp(2j * np.pi * np.arange(_PHASES) / _PHASES)
    answers = np.zeros((len(values), len(bins), _PHASES))
    for line in range(1, _HARMONICS + 1):
        place = np.minimum(line * bins, spectrum.shape[1] - 1)
        lines = np.where(line * bins < spectrum.shape[1], spectrum[:, place], 0.0) * np.sinc(line * duty)
        answers += (lines[:, :, None] * phases**line).real
    best = answers.max(axis=2)
    at = best.argmax(axis=1)
    return best[np.arange(len(best)), at], size / bins[at]


def by_bursts(starts: Reals) -> Reals:
    """Return the slopes of the straight lines through starts over their numbers (n, bursts): periods in samples (n).

    Where each lies beside its time by chance, as normal as it may be, no estimate is nearer: it reaches the Cramer-Rao
    bound, 12 s^2 / (m (m^2 - 1)) for m bursts.
    """
    number = np.arange(starts.shape[1]) - 0.5 * (starts.shape[1] - 1)
    found: Reals = starts @ number / (number @ number)
    return found

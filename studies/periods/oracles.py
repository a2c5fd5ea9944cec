"""Estimate periods with extra knowledge, which bounds the performance of period detectors.

The matched filter knows that bursts are rectangular, and which fraction of the cycle they take; it searches period and
phase. Its threshold is set by simulating one kind of noise, which a detector cannot do without knowing the noise.
"""

from __future__ import annotations

import numpy as np
from scipy import fft

from iosig.studies.periods.rhythms import Rhythm
from iosig.transforms.arrays import Bools, Reals

#: names of the null models that set the threshold of the matched filter
NULLS = ("shape known, against the noise alone", "shape known, against bursts at random times")
#: name of the estimator that knows the time and number of every burst
BURSTS = "bursts' times known"
#: number of simulated null signals, and false-alarm rate
_NULL_COUNT, _LEVEL = 200, 0.01
#: harmonics of the filter, number of phases, and oversampling of the frequencies
_HARMONICS, _PHASES, _FINER = 6, 24, 8
#: minimum samples per period, and minimum cycles per signal
_MIN_SAMPLES, _MIN_CYCLES = 16.0, 2.5


def is_noise_only(rhythm: Rhythm) -> bool:
    """Return whether only noise that is as high as the bursts hides a rhythm; then the matched filter is the bound."""
    return rhythm.noise_ratio >= 1.0 and rhythm.jitter_ratio == rhythm.wander_ratio == 0.0


def match_burst_shape(rhythm: Rhythm, rates: Reals, generator: np.random.Generator) -> tuple[Reals, dict[str, Bools]]:
    """Apply the matched filter to signals of a rhythm (n, samples) with one period.

    Returns the best period in samples (n), and for each null model whether it is significant (n).
    """
    height, period = _find_filter_peak(rates, rhythm.duty)
    sample_count = rates.shape[1]
    cycle = sample_count / rhythm.cycle_count
    noise_only = rhythm.render(generator, np.full((_NULL_COUNT, 1), 2.0 * sample_count), cycle)
    latest = sample_count - rhythm.duty * cycle
    random = generator.uniform(0.0, latest, (_NULL_COUNT, rhythm.cycle_count))
    scattered = rhythm.render(generator, random, cycle)
    claims = {}
    for name, null in zip(NULLS, (noise_only, scattered), strict=True):
        highest, _ = _find_filter_peak(null, rhythm.duty)
        claims[name] = height > np.quantile(highest, 1.0 - _LEVEL)
    return period, claims


def _find_filter_peak(rates: Reals, duty: float) -> tuple[Reals, Reals]:
    """Return the maximum output of the matched filter, and its period in samples (n)."""
    values = rates - rates.mean(axis=1, keepdims=True)
    values /= values.std(axis=1, keepdims=True)
    size = _FINER * values.shape[1]
    spectrum = fft.rfft(values, n=size, axis=1)
    first, last = round(_MIN_CYCLES * _FINER), int(size / _MIN_SAMPLES)
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


def fit_burst_times(starts: Reals) -> Reals:
    """Fit periods in samples (n) as slopes of burst starts over their numbers (n, bursts).

    With independent normal jitter this estimator is efficient: it attains the Cramer-Rao bound, 12 s^2 / (m (m^2 - 1))
    for m bursts.
    """
    number = np.arange(starts.shape[1]) - 0.5 * (starts.shape[1] - 1)
    slopes: Reals = starts @ number / (number @ number)
    return slopes

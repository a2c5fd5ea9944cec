"""The period of many signals by their discrete Fourier transform, as FTIO states it (sections II-B and II-C).

Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24. What differs from the paper, or what it
leaves open: an answer has at least two cycles in the window, harmonics are all integer multiples, and what varies no
more than rounding has no spectrum. `iosig.transforms.periods.ftio_0_0_9` is what the tool of the paper computes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, rows_of
from iosig.transforms.periods.answers import Candidates, Detections, gathered
from iosig.transforms.periods.even_signals import EvenSignals
from iosig.transforms.periods.ftio_outliers import Method, OutlierParams, Outliers, fewest_bins, outliers
from iosig.transforms.periods.ftio_spectra import Spectra, spectra

Texts = npt.NDArray[np.str_]

#: as long as the longest outcome
_OUTCOME = np.dtype("<U13")


@dataclass(frozen=True, slots=True)
class DftParams:
    """When a frequency is a signal's own.

    method: how outliers are found (section II-B2: the Z-score is the plain one). outliers: its thresholds.
    most_candidates: with more candidates there is no dominant frequency (section II-B2: two). least_cycle_count: how
    often a period is in the window at least (ours: the paper accepts one cycle, which is the window, not a period).
    max_missing_ratio: the share of samples that may not have been measured (ours, as of the classes).
    """

    method: Method = "z_score"
    outliers: OutlierParams = field(default_factory=OutlierParams)
    most_candidates: int = 2
    least_cycle_count: int = 2
    max_missing_ratio: float = 0.5


def detect(signals: EvenSignals, params: DftParams | None = None) -> Detections:
    """Return each signal's dominant frequency, if it has one, with FTIO's confidence.

    Candidates are what is left without harmonics and without what has too few cycles, by power; their confidence is
    NaN where there are more of them than a dominant frequency may have.
    """
    params = params or DftParams()
    places, parts = [], []
    for place, part in signals.chunks():
        places.append(np.arange(place.start, place.stop))
        parts.append(_detect(part, params))
    return gathered(parts, places)


# ---- one chunk


def _detect(signals: EvenSignals, params: DftParams) -> Detections:
    found = spectra(signals)
    outcome = _unjudged(found, params)
    standing = outliers(found.power, params.method, params.outliers)
    is_judged = outcome == ""
    if not is_judged.all():
        standing = rows_of(standing, is_judged[standing.signal])
    is_harmonic = harmonics(standing, found.signal_count, found.bin_count, params.least_cycle_count)
    is_candidate = standing.is_candidate & ~is_harmonic
    confidence = _confidences(standing, is_harmonic, found.signal_count, params.method)
    counts = np.bincount(standing.signal[is_candidate], minlength=found.signal_count)
    confidence[counts[standing.signal] > params.most_candidates] = np.nan
    best = _by_power(standing, is_candidate, found)
    signal, first = np.unique(standing.signal[best], return_index=True)
    # what has too few cycles counts as a candidate, and where it is the strongest there is no answer
    is_answer = (standing.bin[best[first]] >= params.least_cycle_count) & (counts[signal] <= params.most_candidates)
    signal, top = signal[is_answer], best[first[is_answer]]
    outcome[is_judged] = "aperiodic"
    outcome[signal] = "periodic"
    frequency, sure, false_alarm = np.full((3, found.signal_count), np.nan)
    frequency[signal], sure[signal] = found.frequencies_of(signal, standing.bin[top]), confidence[top]
    listed = best[standing.bin[best] >= params.least_cycle_count]
    hz, amplitude, phase = found.cosines_of(standing.signal[listed], standing.bin[listed])
    offsets = offsets_of(np.bincount(standing.signal[listed], minlength=found.signal_count))
    candidates = Candidates(hz, confidence[listed], amplitude, phase, offsets)
    return Detections(outcome, frequency, sure, signals.started_s, signals.ended_s, false_alarm, candidates)


def _unjudged(found: Spectra, params: DftParams) -> Texts:
    """Return why there is nothing to judge of each signal (n), or nothing."""
    outcome = np.zeros(found.signal_count, dtype=_OUTCOME)
    outcome[found.is_constant] = "aperiodic"
    outcome[(found.total_power == 0) & (found.mean_bytes_per_s == 0)] = "no_io"
    outcome[found.missing_ratio > params.max_missing_ratio] = "too_many_gaps"
    if found.bin_count < max(fewest_bins(params.method, params.outliers), params.least_cycle_count):
        outcome[:] = "too_short"
    outcome[found.missing_ratio >= 1.0] = "no_data"
    return outcome


def harmonics(standing: Outliers, signal_count: int, bin_count: int, least_cycle_count: int) -> Bools:
    """Return which candidates are integer multiples of a lower candidate of the same signal (m).

    Multiples are told by whole bins: frequencies divided as floats miss half of them. What has fewer than so many
    cycles has no harmonics: every frequency is a multiple of the window's own.
    """
    is_candidate = standing.is_candidate
    counts = np.bincount(standing.signal[is_candidate], minlength=signal_count)
    at = np.flatnonzero(is_candidate & (standing.bin >= least_cycle_count) & (counts[standing.signal] > 1))
    if not len(at):
        return np.zeros(len(standing.bin), dtype=np.bool_)
    at = at[standing.bin[at] <= bin_count // 2]
    cells, base = standing.signal * (bin_count + 1), standing.bin[at]
    # All multiples of each, from twice it to the highest bin: sums of steps, of which a first one leads on from the
    # last multiple of the one before.
    lengths = bin_count // base - 1
    starts = np.cumsum(lengths) - lengths
    first = cells[at] + 2 * base
    multiples = np.repeat(base, lengths)
    multiples[starts] = first
    multiples[starts[1:]] -= (first + (lengths - 1) * base)[:-1]
    is_multiple = np.zeros(signal_count * (bin_count + 1), dtype=np.bool_)
    is_multiple[np.cumsum(multiples)] = True
    found: Bools = is_candidate & is_multiple[cells + standing.bin]
    return found


def _confidences(standing: Outliers, is_harmonic: Bools, signal_count: int, method: Method) -> Reals:
    """Return c_k of section II-C (m); for other methods than the Z-score, what the method says itself.

    Harmonics among the candidates are in neither sum: so the paper's example gains from 60.5 % to 62.5 % when a
    lower tolerance makes a harmonic a candidate.
    """
    if method != "z_score":
        return standing.score.copy()
    found = np.zeros(len(standing.score))
    for is_in in (standing.is_outlier, standing.is_near):
        weights = np.where(is_in & ~is_harmonic, standing.score, 0.0)
        sums = np.bincount(standing.signal, weights, signal_count)[standing.signal]
        found += 0.5 * standing.score / np.where(sums > 0, sums, np.inf)
    return found


def _by_power(standing: Outliers, rows: Bools, found: Spectra) -> Ints:
    """Return chosen rows in order of signals, then from high power to low; of two alike, the lower frequency first."""
    at = np.flatnonzero(rows)
    power = found.power[standing.signal[at], standing.bin[at] - 1]
    return at[np.lexsort((standing.bin[at], -power, standing.signal[at]))]

"""Find dominant frequencies by the discrete Fourier transform, as FTIO defines them (sections II-B and II-C).

The caller prepares the signals: in the paper, rates at instants from the first to the last request
(`iosig.transforms.periods.windows`). Differences from the paper, or details that it leaves open: a period has two
cycles or more in the window, all integer multiples are harmonics, and a signal that varies only by rounding errors
has no spectrum.
`iosig.transforms.periods.ftio_0_0_9` reproduces the paper's tool.

References
----------
A. Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, doi:10.1109/IPDPS57955.2024.00048
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of, rows_of
from iosig.transforms.periods.ftio_outliers import (
    Merge,
    Method,
    OutlierParams,
    Outliers,
    align_outliers,
    count_min_bins,
    find_outliers,
    merge_outliers,
)
from iosig.transforms.periods.ftio_spectra import Spectra, compute_spectra
from iosig.transforms.periods.interface.detections import Candidates, Detections, gather
from iosig.transforms.periods.interface.even_signals import EvenSignals

Texts = npt.NDArray[np.str_]

#: wide enough for the longest outcome
_OUTCOME = np.dtype("<U13")


@dataclass(frozen=True, slots=True)
class DftParams:
    """Conditions under which a frequency is the dominant frequency of a signal.

    Attributes
    ----------
    method : str
        How outliers are found (section II-B2: the Z-score by default).
    outliers : OutlierParams
        Thresholds of the methods.
    merge : str
        Whether the outliers of another method are merged with those of the Z-score (section II-B2: "either alone or by
        merging their result with the Z-score"; the paper has no rule for the merge).
    max_candidates : int
        Maximum number of candidates; with more, no frequency is dominant (section II-B2: two).
    min_cycle_count : int
        Minimum number of periods in the window (ours: the paper accepts one, which is the window itself).
    max_missing_ratio : float
        Maximum fraction of unmeasured samples (ours, as for classes).
    """

    method: Method = "z_score"
    outliers: OutlierParams = field(default_factory=OutlierParams)
    merge: Merge = "none"
    max_candidates: int = 2
    min_cycle_count: int = 2
    max_missing_ratio: float = 0.5

    @property
    def outlier_methods(self) -> tuple[Method, ...]:
        """Methods whose outliers are merged."""
        return (self.method,) if self.merge == "none" or self.method == "z_score" else (self.method, "z_score")

    @property
    def min_bin_count(self) -> int:
        """Minimum number of bins in which an outlier is possible."""
        counts = [count_min_bins(method, self.outliers) for method in self.outlier_methods]
        return min(counts) if self.merge == "union" else max(counts)


def detect(signals: EvenSignals, params: DftParams | None = None) -> Detections:
    """Detect each signal's dominant frequency, with FTIO's confidence.

    Parameters
    ----------
    signals : EvenSignals
        n signals.
    params : DftParams, optional

    Returns
    -------
    Detections
        Candidates are sorted by power, without harmonics and frequencies of too few cycles. Their confidence is NaN if
        there are more than `max_candidates`. That of merged methods is the mean of both, as in the paper's refined
        confidence (ours); a method for which the frequency is no outlier counts as 0.
    """
    params = params or DftParams()
    rows, parts = [], []
    for chunk, part in signals.iter_chunks():
        rows.append(np.arange(chunk.start, chunk.stop))
        parts.append(_detect(part, params))
    return gather(parts, rows)


# ---- one chunk


def _detect(signals: EvenSignals, params: DftParams) -> Detections:
    spectra = compute_spectra(signals)
    outcome = _classify_untestable(spectra, params)
    is_testable = outcome == ""
    parts = _find_outliers(spectra, is_testable, params)
    outliers = merge_outliers(parts, params.merge)
    is_harmonic = find_harmonics(outliers, spectra.signal_count, spectra.bin_count, params.min_cycle_count)
    is_candidate = outliers.is_candidate & ~is_harmonic
    confidence = _average_confidence(parts, is_harmonic, spectra.signal_count, params)
    counts = np.bincount(outliers.signal[is_candidate], minlength=spectra.signal_count)
    confidence[counts[outliers.signal] > params.max_candidates] = np.nan
    ranked = _sort_by_power(outliers, is_candidate, spectra)
    signal, first = np.unique(outliers.signal[ranked], return_index=True)
    # frequencies of too few cycles count as candidates; if the strongest candidate is one, the signal is aperiodic
    is_answer = (outliers.bin[ranked[first]] >= params.min_cycle_count) & (counts[signal] <= params.max_candidates)
    signal, top = signal[is_answer], ranked[first[is_answer]]
    outcome[is_testable] = "aperiodic"
    outcome[signal] = "periodic"
    frequency, sureness, false_alarm = np.full((3, spectra.signal_count), np.nan)
    frequency[signal], sureness[signal] = spectra.get_frequencies(signal, outliers.bin[top]), confidence[top]
    listed = ranked[outliers.bin[ranked] >= params.min_cycle_count]
    hz, amplitude, phase = spectra.get_cosines(outliers.signal[listed], outliers.bin[listed])
    offsets = offsets_of(np.bincount(outliers.signal[listed], minlength=spectra.signal_count))
    candidates = Candidates(hz, confidence[listed], amplitude, phase, offsets)
    return Detections(outcome, frequency, sureness, signals.start_s, signals.end_s, false_alarm, candidates)


def _classify_untestable(spectra: Spectra, params: DftParams) -> Texts:
    """Return why each signal cannot be tested (n); empty if it can."""
    outcome = np.zeros(spectra.signal_count, dtype=_OUTCOME)
    outcome[spectra.is_constant] = "aperiodic"
    outcome[(spectra.total_power == 0) & (spectra.mean_bytes_per_s == 0)] = "no_io"
    outcome[spectra.missing_ratio > params.max_missing_ratio] = "too_many_gaps"
    if spectra.bin_count < max(params.min_bin_count, params.min_cycle_count):
        outcome[:] = "too_short"
    outcome[spectra.missing_ratio >= 1.0] = "no_data"
    return outcome


def _find_outliers(spectra: Spectra, is_testable: Bools, params: DftParams) -> list[Outliers]:
    """Outliers of testable signals by each method, at the same bins."""
    parts = [find_outliers(spectra.power, method, params.outliers) for method in params.outlier_methods]
    if not is_testable.all():
        parts = [rows_of(part, is_testable[part.signal]) for part in parts]
    return align_outliers(parts, spectra.bin_count) if len(parts) > 1 else parts


def find_harmonics(outliers: Outliers, signal_count: int, bin_count: int, min_cycle_count: int) -> Bools:
    """Mark candidates that are integer multiples of a lower candidate of the same signal.

    Parameters
    ----------
    outliers : Outliers
        m bins.
    signal_count, bin_count : int
    min_cycle_count : int
        Frequencies with fewer cycles have no harmonics: every frequency is a multiple of that of the window itself.

    Returns
    -------
    (m,)

    Notes
    -----
    Multiples are determined from integer bins; dividing frequencies as floats misses half of the multiples.
    """
    is_candidate = outliers.is_candidate
    counts = np.bincount(outliers.signal[is_candidate], minlength=signal_count)
    base_rows = np.flatnonzero(is_candidate & (outliers.bin >= min_cycle_count) & (counts[outliers.signal] > 1))
    if not len(base_rows):
        return np.zeros(len(outliers.bin), dtype=np.bool_)
    base_rows = base_rows[outliers.bin[base_rows] <= bin_count // 2]
    cells, base = outliers.signal * (bin_count + 1), outliers.bin[base_rows]
    # All multiples of each base, from its double to the highest bin, are one cumulative sum: the first step of each
    # base leads on from the last multiple of the previous one.
    lengths = bin_count // base - 1
    starts = np.cumsum(lengths) - lengths
    first = cells[base_rows] + 2 * base
    multiples = np.repeat(base, lengths)
    multiples[starts] = first
    multiples[starts[1:]] -= (first + (lengths - 1) * base)[:-1]
    is_multiple = np.zeros(signal_count * (bin_count + 1), dtype=np.bool_)
    is_multiple[np.cumsum(multiples)] = True
    is_harmonic: Bools = is_candidate & is_multiple[cells + outliers.bin]
    return is_harmonic


def _average_confidence(parts: Sequence[Outliers], is_harmonic: Bools, signal_count: int, params: DftParams) -> Reals:
    """Mean confidence of the methods (m); 0 where a method has no outlier."""
    confidence = [
        np.where(part.is_outlier, _compute_confidence(part, is_harmonic, signal_count, method), 0.0)
        for part, method in zip(parts, params.outlier_methods, strict=True)
    ]
    mean: Reals = np.mean(confidence, axis=0)
    return mean


def _compute_confidence(outliers: Outliers, is_harmonic: Bools, signal_count: int, method: Method) -> Reals:
    """Confidence c_k of section II-C (m); for methods other than the Z-score, their own score.

    Harmonic candidates are excluded from both sums. So the confidence in the paper's example rises from 60.5 % to 62.5
    % when a lower tolerance makes a harmonic a candidate.
    """
    if method != "z_score":
        return outliers.score.copy()
    confidence = np.zeros(len(outliers.score))
    for is_member in (outliers.is_outlier, outliers.is_near):
        weights = np.where(is_member & ~is_harmonic, outliers.score, 0.0)
        sums = np.bincount(outliers.signal, weights, signal_count)[outliers.signal]
        confidence += 0.5 * outliers.score / np.where(sums > 0, sums, np.inf)
    return confidence


def _sort_by_power(outliers: Outliers, rows: Bools, spectra: Spectra) -> Ints:
    """Sort selected rows by signal, then by descending power; equal powers are sorted by ascending frequency."""
    selected = np.flatnonzero(rows)
    power = spectra.power[outliers.signal[selected], outliers.bin[selected] - 1]
    return selected[np.lexsort((outliers.bin[selected], -power, outliers.signal[selected]))]

"""Define the results of a period search for many signals, in one form for all methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import (
    Bools,
    InPieces,
    Ints,
    Reals,
    concatenate_pieces,
    concatenate_rows,
    pieces_of,
    rows_of,
)

Texts = npt.NDArray[np.str_]

#: outcomes of a search: `periodic`, or why no period is reported
OUTCOMES = ("periodic", "aperiodic", "too_short", "no_io", "no_data", "too_many_gaps")


@dataclass(frozen=True, slots=True)
class Candidates(InPieces):
    """Candidate frequencies of n signals, best first; those of signal i are ``offsets[i]`` to ``offsets[i + 1]``.

    Attributes
    ----------
    frequency_hz, confidence : (candidates,)
        The confidence is NaN where the method has none.
    amplitude_bytes_per_s, phase_rad : (candidates,)
        Amplitude and phase of the cosine ``amplitude * cos(2 pi frequency (t - start_s) + phase)``, where `start_s` is
        the start of the signal; NaN where the method has none.
    offsets : (n + 1,)
        Number of each signal's first candidate, then the number of all candidates.
    """

    frequency_hz: Reals
    confidence: Reals
    amplitude_bytes_per_s: Reals
    phase_rad: Reals
    offsets: Ints

    @classmethod
    def empty(cls, signal_count: int) -> Candidates:
        """Return no candidates for `signal_count` signals."""
        empty = np.zeros(0)
        return cls(empty, empty, empty, empty, np.zeros(signal_count + 1, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class PeriodDetails:
    """Additional results of some methods for n signals; NaN where missing.

    Attributes
    ----------
    period_error_s : (n,)
        Standard error of the period.
    window_bytes_ratio : (n,)
        Bytes inside the window of the period, as a fraction of the signal's bytes.
    """

    period_error_s: Reals
    window_bytes_ratio: Reals

    @classmethod
    def all_nan(cls, signal_count: int) -> PeriodDetails:
        """Create the details of signals for which nothing is known: NaN everywhere."""
        return cls(np.full(signal_count, np.nan), np.full(signal_count, np.nan))


@dataclass(frozen=True, slots=True)
class Segments(InPieces):
    """Periodic segments of n signals by time; those of signal i are ``offsets[i]`` to ``offsets[i + 1]``.

    Attributes
    ----------
    start_s, end_s : (segments,)
        Segments overlap where several periods hold at once.
    frequency_hz, period_error_s, confidence, false_alarm_probability : (segments,)
        As in `Detections`.
    volume_bytes : (segments,)
        Volume inside the segment, without bursts of periods that were found there before and removed.
    burst_width_s : (segments,)
        Width of a burst.
    is_main : (segments,)
        Whether this segment, the one with the largest volume, determines the signal's detection.
    offsets : (n + 1,)
        Number of each signal's first segment, then the number of all segments.
    """

    start_s: Reals
    end_s: Reals
    frequency_hz: Reals
    period_error_s: Reals
    confidence: Reals
    volume_bytes: Reals
    burst_width_s: Reals
    false_alarm_probability: Reals
    is_main: Bools
    offsets: Ints

    def select_signal(self, signal: int, shift_s: float = 0.0) -> Segments:
        """Select the segments of one signal, and shift them by `shift_s`."""
        segments = pieces_of(self, np.array([signal]))
        return replace(segments, start_s=segments.start_s + shift_s, end_s=segments.end_s + shift_s)


@dataclass(frozen=True, slots=True)
class Detections:
    """Result of one method for n signals.

    Attributes
    ----------
    outcome : (n,)
        One of `OUTCOMES`.
    frequency_hz, confidence : (n,)
        NaN unless periodic.
    window_start_s, window_end_s : (n,)
        Time in which the period holds, if the method locates it; otherwise the time that was searched.
    false_alarm_probability : (n,)
        Probability that noise looks equally or more periodic; NaN if the method does not compute it.
    candidates : Candidates
        Candidate frequencies.
    details : PeriodDetails or None
        Additional results; None if the method has none.
    """

    outcome: Texts
    frequency_hz: Reals
    confidence: Reals
    window_start_s: Reals
    window_end_s: Reals
    false_alarm_probability: Reals
    candidates: Candidates
    details: PeriodDetails | None = None

    @property
    def details_or_nan(self) -> PeriodDetails:
        """Return the additional results; NaN if the method has none."""
        return PeriodDetails.all_nan(self.signal_count) if self.details is None else self.details

    @property
    def signal_count(self) -> int:
        """Number of signals in this batch."""
        return len(self.outcome)

    @property
    def is_periodic(self) -> Bools:
        """Whether each signal is periodic (n)."""
        is_periodic: Bools = self.outcome == "periodic"
        return is_periodic

    @property
    def period_s(self) -> Reals:
        """Period of each signal (n); NaN unless periodic."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.is_periodic, 1.0 / self.frequency_hz, np.nan)

    def select(self, signals: Ints) -> Detections:
        """Select signals by number, in the given order."""
        columns = {name: getattr(self, name)[signals] for name in _columns()}
        details = None if self.details is None else rows_of(self.details, signals)
        return Detections(**columns, candidates=pieces_of(self.candidates, signals), details=details)

    def reject(self, is_rejected: Bools, outcome: str) -> Detections:
        """Set the outcome of the signals in the mask (n), and remove their periods."""
        mask = np.where(is_rejected, np.nan, 1.0)
        return replace(
            self,
            outcome=np.where(is_rejected, outcome, self.outcome),
            frequency_hz=self.frequency_hz * mask,
            confidence=self.confidence * mask,
            details=PeriodDetails(
                self.details_or_nan.period_error_s * mask, self.details_or_nan.window_bytes_ratio * mask
            ),
        )


def gather(parts: Sequence[Detections], places: Sequence[Ints]) -> Detections:
    """Concatenate the detections of parts of n signals, and restore the order of the signals.

    Parameters
    ----------
    parts : sequence of Detections
    places : sequence of int arrays
        For each part, the numbers of its signals; together a permutation of 0 to n - 1.

    Returns
    -------
    Detections
    """
    if not parts:
        empty = np.zeros(0)
        return Detections(np.zeros(0, np.str_), empty, empty, empty, empty, empty, Candidates.empty(0))
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _columns()}
    has_details = any(part.details is not None for part in parts)
    details = concatenate_rows([part.details_or_nan for part in parts]) if has_details else None
    candidates = concatenate_pieces([part.candidates for part in parts])
    concatenated = Detections(**columns, candidates=candidates, details=details)
    return concatenated.select(np.argsort(np.concatenate(list(places)), kind="stable"))


def _columns() -> list[str]:
    """Names of the array fields with one value per signal."""
    return [column.name for column in fields(Detections)[:-2]]

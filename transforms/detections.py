"""What a search for periods says of many signals: one form for all methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Texts = npt.NDArray[np.str_]

#: why there is a period, or is none
OUTCOMES = ("periodic", "aperiodic", "too_short", "no_io", "no_data", "too_many_gaps")


@dataclass(frozen=True, slots=True)
class Candidates:
    """Frequencies that may be a signal's own, best first: those of signal i are from offsets[i] to offsets[i + 1].

    frequency_hz, confidence (candidates): confidence is NaN where the method gives none. amplitude_bytes_per_s,
    phase_rad: of the cosine amplitude * cos(2 pi frequency (t - started_s) + phase), started_s being the signal's own
    start; NaN where the method gives none.
    """

    frequency_hz: Reals
    confidence: Reals
    amplitude_bytes_per_s: Reals
    phase_rad: Reals
    offsets: Ints

    @classmethod
    def none(cls, signal_count: int) -> Candidates:
        """Return no candidates for so many signals."""
        empty = np.zeros(0)
        return cls(empty, empty, empty, empty, np.zeros(signal_count + 1, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Detections:
    """One method's answer for n signals.

    outcome (n): one of `OUTCOMES`. frequency_hz, confidence (n): NaN unless periodic. window_start_s, window_end_s
    (n): the time that was judged; where a method finds where the period begins and ends, that.
    false_alarm_probability (n): how probable it is that noise of the kinds that were tried looks so periodic; NaN
    where the method has none.
    """

    outcome: Texts
    frequency_hz: Reals
    confidence: Reals
    window_start_s: Reals
    window_end_s: Reals
    false_alarm_probability: Reals
    candidates: Candidates

    @property
    def signal_count(self) -> int:
        """The number of signals."""
        return len(self.outcome)

    @property
    def is_periodic(self) -> npt.NDArray[np.bool_]:
        """Whether each signal is periodic (n)."""
        found: npt.NDArray[np.bool_] = self.outcome == "periodic"
        return found

    @property
    def period_s(self) -> Reals:
        """The period of each signal (n); NaN unless periodic."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.is_periodic, 1.0 / self.frequency_hz, np.nan)

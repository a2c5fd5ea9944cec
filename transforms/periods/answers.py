"""What a search for periods says of many signals: one form for all methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Bools, InPieces, Ints, Reals, beside, joined, pieces_of, rows_of

Texts = npt.NDArray[np.str_]

#: why there is a period, or is none
OUTCOMES = ("periodic", "aperiodic", "too_short", "no_io", "no_data", "too_many_gaps")


@dataclass(frozen=True, slots=True)
class Candidates(InPieces):
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
class Claims:
    """What else some methods know of the periods of n signals; NaN where there is none.

    period_error_s (n): the standard error of the period. window_bytes_ratio (n): the share of the signal's bytes that
    is within the window of the period.
    """

    period_error_s: Reals
    window_bytes_ratio: Reals

    @classmethod
    def none(cls, signal_count: int) -> Claims:
        """Return nothing of so many signals."""
        return cls(np.full(signal_count, np.nan), np.full(signal_count, np.nan))


@dataclass(frozen=True, slots=True)
class Segments(InPieces):
    """Stretches of signals in which a period holds, in order of time: signal i's are from offsets[i] to offsets[i + 1].

    started_s, ended_s (segments): they may overlap, if there are several periods at once. period_error_s, confidence,
    false_alarm_probability: as of `Detections`. volume_bytes: what moves in them, but for the bursts of rhythms that
    were found there before. burst_width_s: how long a burst is. is_main: whether a signal's own answer is that of the
    segment: the one with most bytes.
    """

    started_s: Reals
    ended_s: Reals
    frequency_hz: Reals
    period_error_s: Reals
    confidence: Reals
    volume_bytes: Reals
    burst_width_s: Reals
    false_alarm_probability: Reals
    is_main: Bools
    offsets: Ints

    def of_one(self, signal: int, shift_s: float = 0.0) -> Segments:
        """Return the segments of one signal as of the only one, so many seconds later."""
        own = pieces_of(self, np.array([signal]))
        return replace(own, started_s=own.started_s + shift_s, ended_s=own.ended_s + shift_s)


@dataclass(frozen=True, slots=True)
class Detections:
    """One method's answer for n signals.

    outcome (n): one of `OUTCOMES`. frequency_hz, confidence (n): NaN unless periodic. window_start_s, window_end_s
    (n): the time that was judged; where a method finds where the period begins and ends, that.
    false_alarm_probability (n): how probable it is that noise of the kinds that were tried looks so periodic; NaN
    where the method has none. claims: None where the method knows no more.
    """

    outcome: Texts
    frequency_hz: Reals
    confidence: Reals
    window_start_s: Reals
    window_end_s: Reals
    false_alarm_probability: Reals
    candidates: Candidates
    claims: Claims | None = None

    @property
    def told(self) -> Claims:
        """What else is known."""
        return Claims.none(self.signal_count) if self.claims is None else self.claims

    @property
    def signal_count(self) -> int:
        """The number of signals."""
        return len(self.outcome)

    @property
    def is_periodic(self) -> Bools:
        """Whether each signal is periodic (n)."""
        found: Bools = self.outcome == "periodic"
        return found

    @property
    def period_s(self) -> Reals:
        """The period of each signal (n); NaN unless periodic."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.is_periodic, 1.0 / self.frequency_hz, np.nan)

    def chosen(self, signals: Ints) -> Detections:
        """Return the answers for some signals (k), in the order in which these are given."""
        columns = {name: getattr(self, name)[signals] for name in _columns()}
        claims = None if self.claims is None else rows_of(self.claims, signals)
        return Detections(**columns, candidates=pieces_of(self.candidates, signals), claims=claims)

    def denied(self, is_denied: Bools, outcome: str) -> Detections:
        """Return the answers with another outcome, and no period, for some signals (n)."""
        none = np.where(is_denied, np.nan, 1.0)
        return replace(
            self,
            outcome=np.where(is_denied, outcome, self.outcome),
            frequency_hz=self.frequency_hz * none,
            confidence=self.confidence * none,
            claims=Claims(self.told.period_error_s * none, self.told.window_bytes_ratio * none),
        )


def gathered(parts: Sequence[Detections], places: Sequence[Ints]) -> Detections:
    """Return the answers for parts of n signals as one, each at the place of its signal.

    places: for each part the numbers of its signals; together 0 to n - 1, each once.
    """
    if not parts:
        none = np.zeros(0)
        return Detections(np.zeros(0, np.str_), none, none, none, none, none, Candidates.none(0))
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _columns()}
    is_told = any(part.claims is not None for part in parts)
    claims = joined([part.told for part in parts]) if is_told else None
    candidates = beside([part.candidates for part in parts])
    one_after_another = Detections(**columns, candidates=candidates, claims=claims)
    return one_after_another.chosen(np.argsort(np.concatenate(list(places)), kind="stable"))


def _columns() -> list[str]:
    """Return the names of what is an array with a value of each signal."""
    return [each.name for each in fields(Detections)[:-2]]

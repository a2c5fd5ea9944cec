"""Signatures: what a method makes of one sample set, in one form for all methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.bursts import Bursts

#: whether there is a signature, or why there is none
Outcome = Literal["extracted", "too_few_samples", "no_io", "no_common_bursts"]


@dataclass(frozen=True, slots=True)
class Signature:
    """One method's answer for one sample set.

    bytes_per_s (seconds): the mean rate in each second of the application's run alone; empty unless extracted.
    low_bytes_per_s, high_bytes_per_s (seconds): a band around it; NaN where the method gives none.
    background_bytes_per_s: the rate of what others do all the time, which is left out; NaN where the method does not
    estimate it.
    """

    outcome: Outcome
    bytes_per_s: Reals
    low_bytes_per_s: Reals
    high_bytes_per_s: Reals
    bursts: Bursts
    background_bytes_per_s: float

    @property
    def duration_s(self) -> float:
        """How long a run alone takes [s]: as many seconds as there are points."""
        return float(len(self.bytes_per_s))

    @property
    def volume_bytes(self) -> float:
        """What a run alone moves; infinite if that is more than a float holds."""
        with np.errstate(over="ignore"):
            return float(self.bytes_per_s.sum())

    @classmethod
    def curve(cls, bytes_per_s: Reals, bursts: Bursts, background_bytes_per_s: float = float("nan")) -> Signature:
        """Return a signature of a method that gives no band."""
        none = np.full(len(bytes_per_s), np.nan)
        return cls("extracted", bytes_per_s, none, none, bursts, background_bytes_per_s)

    @classmethod
    def nothing(cls, outcome: Outcome, background_bytes_per_s: float = float("nan")) -> Signature:
        """Return that there is no signature, and why."""
        empty = np.zeros(0)
        return cls(outcome, empty, empty, empty, Bursts.none(), background_bytes_per_s)

"""Define signatures: the result of an extraction method for one sample set, in one form for all methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.bursts import Bursts

#: `extracted`, or the reason for a missing signature
Outcome = Literal["extracted", "too_few_samples", "no_io", "no_common_bursts"]


@dataclass(frozen=True, slots=True)
class Signature:
    """One method's estimate of the I/O of an application that runs alone.

    Attributes
    ----------
    bytes_per_s : (seconds,)
        Mean rate in each second since the start of the run; empty unless the outcome is `extracted`.
    low_bytes_per_s, high_bytes_per_s : (seconds,)
        Band around that rate; NaN if the method has none.
    background_bytes_per_s
        Constant rate of other traffic that was subtracted; NaN if the method does not estimate it.
    """

    outcome: Outcome
    bytes_per_s: Reals
    low_bytes_per_s: Reals
    high_bytes_per_s: Reals
    bursts: Bursts
    background_bytes_per_s: float

    @property
    def duration_s(self) -> float:
        """Duration of a run without interference [s]: one second per point."""
        return float(len(self.bytes_per_s))

    @property
    def volume_bytes(self) -> float:
        """Volume of a run; infinite if it exceeds the range of a float."""
        with np.errstate(over="ignore"):
            return float(self.bytes_per_s.sum())

    @classmethod
    def from_curve(cls, bytes_per_s: Reals, bursts: Bursts, background_bytes_per_s: float = float("nan")) -> Signature:
        """Create an extracted signature whose lower and upper curves are unknown (NaN)."""
        unknown = np.full(len(bytes_per_s), np.nan)
        return cls("extracted", bytes_per_s, unknown, unknown, bursts, background_bytes_per_s)

    @classmethod
    def missing(cls, outcome: Outcome, background_bytes_per_s: float = float("nan")) -> Signature:
        """Create the result of a method that found no signature, with the reason."""
        empty = np.zeros(0)
        return cls(outcome, empty, empty, empty, Bursts.empty(), background_bytes_per_s)

"""Demands: what runs ask of storage from their start on, and what they have moved when they have come so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from iosig.transforms.arrays import InPieces, Ints, Reals, offsets_of


@dataclass(frozen=True, slots=True)
class Demand:
    """A signature as it would run alone: bytes_per_s (n), one value for each step of step_s seconds."""

    bytes_per_s: Reals
    step_s: float

    @property
    def duration_s(self) -> float:
        """How long a run alone takes."""
        return len(self.bytes_per_s) * self.step_s

    @property
    def volume_bytes(self) -> float:
        """What a run alone moves."""
        return float(self.bytes_per_s.sum()) * self.step_s


@dataclass(frozen=True, slots=True)
class Demands(InPieces):
    """m demands: that of number i has the rates bytes_per_s[offsets[i]:offsets[i + 1]], in steps of step_s[i]."""

    bytes_per_s: Reals
    offsets: Ints
    step_s: Reals

    @classmethod
    def of(cls, demands: Sequence[Demand]) -> Demands:
        """Return some demands, at least one, each with at least one step."""
        rates = np.concatenate([one.bytes_per_s for one in demands])
        offsets = offsets_of([len(one.bytes_per_s) for one in demands])
        return cls(rates, offsets, np.array([one.step_s for one in demands], np.float64))

    @property
    def duration_s(self) -> Reals:
        """How long a run of each alone takes (m)."""
        found: Reals = self.counts * self.step_s
        return found

    @property
    def peak_bytes_per_s(self) -> Reals:
        """The highest rate of each (m)."""
        found: Reals = np.maximum.reduceat(self.bytes_per_s, self.offsets[:-1])
        return found

    def moved_bytes(self, of: Ints, positions_s: Reals) -> Reals:
        """Return what runs (n, ...) of some demands (n) have moved that have come so far; nothing lies beyond ends."""
        apart = (slice(None), *[None] * (positions_s.ndim - 1))
        volumes = self.bytes_per_s * self.step_s[self.owner]
        by_then = np.concatenate([[0.0], np.cumsum(volumes)])
        counts, first = self.counts[of][apart], self.offsets[of][apart]
        place = np.clip(positions_s / self.step_s[of][apart], 0.0, counts)
        whole = np.minimum(place.astype(np.int64), counts - 1)
        at = first + whole
        moved: Reals = by_then[at] - by_then[first] + (place - whole) * volumes[at]
        return moved

    def rates(self, of: Ints, positions_s: Reals, step_s: float) -> Reals:
        """Return mean rates (n, ..., steps) between instants step_s apart, by positions (n, ..., steps + 1) at them.

        No byte is lost: rates times step_s add up to what lies between the first and the last position.
        """
        rates: Reals = np.maximum(np.diff(self.moved_bytes(of, positions_s), axis=-1), 0.0) / step_s
        return rates


def standard_errors(sample_count: int, dimension_count: int, seed: int) -> Reals:
    """Return standard normal errors (samples, dimensions), each dimension's evenly spread: a Latin hypercube.

    One sample is none at all: 0.
    """
    return np.asarray(ndtri(even_shares(sample_count, dimension_count, seed)), dtype=float)


def even_shares(sample_count: int, dimension_count: int, seed: int) -> Reals:
    """Return numbers between 0 and 1 (samples, dimensions), each dimension's evenly spread, in an order of its own."""
    generator = np.random.default_rng(seed)
    ranks = np.tile(np.arange(sample_count), (dimension_count, 1))
    shares: Reals = (generator.permuted(ranks, axis=1).T + 0.5) / sample_count
    return shares

"""Represent the I/O demands of runs, and compute the bytes that a run has moved at a position in its signature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from iosig.transforms.arrays import InPieces, Ints, Reals, offsets_of


@dataclass(frozen=True, slots=True)
class Demand:
    """A signature without contention: rates [B/s] in n steps of step_s seconds."""

    bytes_per_s: Reals
    step_s: float

    @property
    def duration_s(self) -> float:
        """Length of a run without contention [s]."""
        return len(self.bytes_per_s) * self.step_s

    @property
    def volume_bytes(self) -> float:
        """Total bytes of a run."""
        return float(self.bytes_per_s.sum()) * self.step_s


@dataclass(frozen=True, slots=True)
class Demands(InPieces):
    """Ragged array of m demands [B/s]: demand i is ``bytes_per_s[offsets[i]:offsets[i + 1]]``, with step_s[i]."""

    bytes_per_s: Reals
    offsets: Ints
    step_s: Reals

    @classmethod
    def from_list(cls, demands: Sequence[Demand]) -> Demands:
        """Combine one or more demands, each with one step or more."""
        rates = np.concatenate([demand.bytes_per_s for demand in demands])
        offsets = offsets_of([len(demand.bytes_per_s) for demand in demands])
        return cls(rates, offsets, np.array([demand.step_s for demand in demands], np.float64))

    @property
    def duration_s(self) -> Reals:
        """Length of a run of each demand without contention [s], shape (m,)."""
        duration_s: Reals = self.counts * self.step_s
        return duration_s

    @property
    def peak_bytes_per_s(self) -> Reals:
        """Highest rate of each demand [B/s], shape (m,)."""
        peaks: Reals = np.maximum.reduceat(self.bytes_per_s, self.offsets[:-1])
        return peaks

    def cumulative_bytes(self, demand: Ints, positions_s: Reals) -> Reals:
        """Compute the bytes that runs have moved at positions in their signatures.

        Parameters
        ----------
        demand : Ints, shape (n,)
            Demand of each run.
        positions_s : Reals, shape (n, ...)
            Positions [s]; limited to the length of the demand.

        Returns
        -------
        Reals, shape (n, ...)

        """
        expand = (slice(None), *[None] * (positions_s.ndim - 1))
        volumes = self.bytes_per_s * self.step_s[self.owner]
        cumulative = np.concatenate([[0.0], np.cumsum(volumes)])
        counts, first = self.counts[demand][expand], self.offsets[demand][expand]
        steps = np.clip(positions_s / self.step_s[demand][expand], 0.0, counts)
        whole_steps = np.minimum(steps.astype(np.int64), counts - 1)
        at = first + whole_steps
        moved: Reals = cumulative[at] - cumulative[first] + (steps - whole_steps) * volumes[at]
        return moved

    def rates(self, demand: Ints, positions_s: Reals, step_s: float) -> Reals:
        """Compute mean rates between consecutive positions; their integral is exact.

        Parameters
        ----------
        demand : Ints, shape (n,)
            Demand of each run.
        positions_s : Reals, shape (n, ..., steps + 1)
            Positions in the signature [s] at the edges of the steps.
        step_s : float
            Length of a step in elapsed time [s].

        Returns
        -------
        Reals, shape (n, ..., steps)
            Rates [B/s].

        """
        rates: Reals = np.maximum(np.diff(self.cumulative_bytes(demand, positions_s), axis=-1), 0.0) / step_s
        return rates


def draw_standard_normal(sample_count: int, dimension_count: int, seed: int) -> Reals:
    """Draw a Latin hypercube of standard normal numbers, shape (samples, dimensions); a single sample is 0."""
    return np.asarray(ndtri(draw_stratified(sample_count, dimension_count, seed)), dtype=float)


def draw_stratified(sample_count: int, dimension_count: int, seed: int) -> Reals:
    """Draw a Latin hypercube of uniform numbers in (0, 1) at the centers of strata, shape (samples, dimensions)."""
    generator = np.random.default_rng(seed)
    ranks = np.tile(np.arange(sample_count), (dimension_count, 1))
    shares: Reals = (generator.permuted(ranks, axis=1).T + 0.5) / sample_count
    return shares

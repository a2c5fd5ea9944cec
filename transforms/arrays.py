"""Arrays of many pieces at once: what every room of transforms writes them with, and samples cut out of series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def offsets_of(counts: Ints | Bools | Sequence[int]) -> Ints:
    """Return where each of many pieces of these lengths begins, and where the last one ends: shape (n + 1,)."""
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))


def owners(offsets: Ints) -> Ints:
    """Return the number of the piece to which each value belongs: shape (`offsets[-1]`,)."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def places_within(counts: Ints) -> Ints:
    """Return each value's place within its own piece, from 0, for pieces of these lengths: shape (sum of counts,)."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


@dataclass(frozen=True, slots=True)
class Ragged:
    """Many arrays in one: piece i is `values[offsets[i]:offsets[i + 1]]`; NaN means not measured."""

    values: Reals
    offsets: Ints


def cut(series: Reals, first: Ints, last: Ints) -> Ragged:
    """Cut pieces out of a series.

    Parameters
    ----------
    series : shape (n,), any unit
    first, last : shape (m,), indices into the series, both inclusive; a last before its first is an empty piece

    Returns
    -------
    Ragged : m pieces, in order; pieces may overlap

    Raises
    ------
    IndexError : a piece reaches beyond the series

    """
    lengths = np.maximum(last - first + 1, 0)
    occupied = lengths > 0
    if occupied.any() and (first[occupied].min() < 0 or last[occupied].max() >= len(series)):
        raise IndexError("a piece reaches beyond the series")
    offsets = offsets_of(lengths)
    # The index of each value is its place in the output, shifted by a constant for each piece.
    index = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], lengths)
    return Ragged(series[index], offsets)

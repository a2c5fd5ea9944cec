"""Samples: each run's piece cut out of its file system's traffic, all runs at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]


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
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    # The index of each value is its place in the output, shifted by a constant for each piece.
    index = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], lengths)
    return Ragged(series[index], offsets)

"""Define ragged arrays: many pieces of different lengths in one flat array with offsets, as in Arrow lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Table = TypeVar("Table")
Pieces = TypeVar("Pieces", bound="InPieces")

Reals = NDArray[np.float64]
AnyReals = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: standard deviation of a normal distribution divided by its median absolute deviation (MAD)
SIGMAS_PER_MAD = 1.4826


def offsets_of(counts: Ints | Bools | Sequence[int]) -> Ints:
    """Accumulate piece lengths, with a leading 0, shape (n + 1,): piece i spans offsets[i] to offsets[i + 1]."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, dtype=np.int64, out=offsets[1:])
    return offsets


def split_into_chunks(sizes: Ints | Sequence[int], max_size: int, max_count: int | None = None) -> list[slice]:
    """Divide consecutive items of given sizes into slices with a bounded total size and number of items.

    An item that exceeds the bound forms a slice of its own. An empty sequence yields no slices.
    """
    totals, count, first = offsets_of(sizes), len(sizes), 0
    chunks = []
    while first < count:
        last = int(np.searchsorted(totals, totals[first] + max_size, side="right")) - 1
        last = min(max(last, first + 1), first + (max_count or count))
        chunks.append(slice(first, last))
        first = last
    return chunks


def owners(offsets: Ints) -> Ints:
    """Find the index of the piece to which each value belongs, shape (`offsets[-1]`,)."""
    # faster than `numpy.diff` on short arrays, and this runs very often
    return np.arange(len(offsets) - 1).repeat(offsets[1:] - offsets[:-1])


def places_within(counts: Ints) -> Ints:
    """Index the values within each piece from 0, for pieces of the given lengths: shape (sum of counts,)."""
    total = counts.cumsum()
    return np.arange(int(total[-1]) if len(total) else 0) - (total - counts).repeat(counts)


def places_of(first: Ints, counts: Ints) -> Ints:
    """Concatenate the index ranges first[i], ..., first[i] + counts[i] - 1: shape (sum of counts,)."""
    offsets = offsets_of(counts)
    return np.arange(int(offsets[-1])) + (first - offsets[:-1]).repeat(counts)


def clip(values: Reals, low: Any, high: Any) -> Reals:
    """Limit values to a range; several times faster than `numpy.clip` on short arrays."""
    clipped: Reals = np.minimum(np.maximum(values, low), high)
    return clipped


class InPieces:
    """Mixin for column tables with rows that are grouped in pieces: piece i has rows offsets[i] to offsets[i + 1]."""

    __slots__ = ()
    offsets: Ints

    @property
    def counts(self) -> Ints:
        """Number of rows of each piece: shape (pieces,)."""
        return self.offsets[1:] - self.offsets[:-1]

    @property
    def owner(self) -> Ints:
        """Index of the piece to which each row belongs, shape (`offsets[-1]`,)."""
        return owners(self.offsets)

    def places_in(self, pieces: Ints | Bools) -> Ints:
        """Row indices of the selected pieces, piece by piece."""
        return places_of(self.offsets[:-1][pieces], self.counts[pieces])


def rows_of(table: Table, at: Ints | Bools | slice) -> Table:
    """Select rows of a dataclass that has arrays of equal length as fields."""
    return type(table)(*(getattr(table, name)[at] for name in _names(table)))


def concatenate_rows(tables: Sequence[Table]) -> Table:
    """Concatenate one or more dataclasses of equal-length arrays, field by field."""
    columns = [[getattr(table, name) for table in tables] for name in _names(tables[0])]
    return type(tables[0])(*map(np.concatenate, columns))


def pieces_of(table: Pieces, at: Ints | Bools) -> Pieces:
    """Select pieces of an `InPieces` dataclass; all fields except `offsets` have one value per row."""
    rows = table.places_in(at)
    columns = {name: getattr(table, name)[rows] for name in _names(table) if name != "offsets"}
    columns["offsets"] = offsets_of(table.counts[at])
    return type(table)(**columns)


def concatenate_pieces(tables: Sequence[Pieces]) -> Pieces:
    """Concatenate one or more `InPieces` dataclasses, and shift their offsets accordingly."""
    columns = {name: [getattr(table, name) for table in tables] for name in _names(tables[0])}
    columns["offsets"] = [offsets_of(np.concatenate([table.counts for table in tables]))]
    return type(tables[0])(**{name: np.concatenate(parts) for name, parts in columns.items()})


def _names(table: Any) -> list[str]:
    return [column.name for column in fields(table)]


@dataclass(frozen=True, slots=True)
class Ragged(InPieces):
    """Ragged array of floats: piece i is `values[offsets[i]:offsets[i + 1]]`; NaN marks missing measurements."""

    values: Reals
    offsets: Ints


def cut(series: Reals, first: Ints, last: Ints) -> Ragged:
    """Slice a series at inclusive bounds into a ragged array.

    Parameters
    ----------
    series : Reals, shape (n,)
        Values in any unit.
    first, last : Ints, shape (m,)
        Inclusive bounds of each piece; if the last is before the first, the piece is empty. Pieces may overlap.

    Returns
    -------
    Ragged
        m pieces, in order; a copy of the data.

    Raises
    ------
    IndexError
        If a piece extends beyond the series.

    """
    lengths = np.maximum(last - first + 1, 0)
    occupied = lengths > 0
    if occupied.any() and (first[occupied].min() < 0 or last[occupied].max() >= len(series)):
        raise IndexError("a piece extends beyond the series")
    offsets = offsets_of(lengths)
    return Ragged(series[places_of(first, lengths)], offsets)

"""Arrays of many pieces at once: what every room of transforms writes them with, and samples cut out of series."""

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

#: the standard deviation of normal numbers over the median of their distances from the middle
SIGMAS_PER_MAD = 1.4826


def offsets_of(counts: Ints | Bools | Sequence[int]) -> Ints:
    """Return where each of many pieces of these lengths begins, and where the last one ends: shape (n + 1,)."""
    found = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, dtype=np.int64, out=found[1:])
    return found


def chunks_of(sizes: Ints | Sequence[int], max_size: int, max_count: int | None = None) -> list[slice]:
    """Divide consecutive things of these sizes into slices of a bounded total size and number.

    A thing that exceeds the bound is a slice of its own. An empty sequence gives no slices.
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
    """Return the number of the piece to which each value belongs: shape (`offsets[-1]`,)."""
    # `numpy.diff` takes several times as long for few
    return np.arange(len(offsets) - 1).repeat(offsets[1:] - offsets[:-1])


def places_within(counts: Ints) -> Ints:
    """Return each value's place within its own piece, from 0, for pieces of these lengths: shape (sum of counts,)."""
    total = counts.cumsum()
    return np.arange(int(total[-1]) if len(total) else 0) - (total - counts).repeat(counts)


def places_of(first: Ints, counts: Ints) -> Ints:
    """Return first[i], first[i] + 1 and so on for so many places of each piece i: shape (sum of counts,)."""
    offsets = offsets_of(counts)
    return np.arange(int(offsets[-1])) + (first - offsets[:-1]).repeat(counts)


def clipped(values: Reals, low: Any, high: Any) -> Reals:
    """Return numbers as `numpy.clip` does, which takes several times as long for few."""
    found: Reals = np.minimum(np.maximum(values, low), high)
    return found


class InPieces:
    """What all tables have whose rows belong to pieces: those of piece i are from offsets[i] to offsets[i + 1]."""

    __slots__ = ()
    offsets: Ints

    @property
    def counts(self) -> Ints:
        """How many rows each piece has: shape (pieces,)."""
        return self.offsets[1:] - self.offsets[:-1]

    @property
    def owner(self) -> Ints:
        """The number of the piece to which each row belongs: shape (`offsets[-1]`,)."""
        return owners(self.offsets)

    def places_in(self, pieces: Ints | Bools) -> Ints:
        """Return the places of the rows of some pieces, piece after piece."""
        return places_of(self.offsets[:-1][pieces], self.counts[pieces])


def rows_of(table: Table, at: Ints | Bools | slice) -> Table:
    """Return some rows of a dataclass whose fields are arrays of one length."""
    return type(table)(*(getattr(table, name)[at] for name in _names(table)))


def joined(tables: Sequence[Table]) -> Table:
    """Return the rows of such tables, at least one, as one."""
    columns = [[getattr(table, name) for table in tables] for name in _names(tables[0])]
    return type(tables[0])(*map(np.concatenate, columns))


def pieces_of(table: Pieces, at: Ints | Bools) -> Pieces:
    """Return some pieces of a dataclass whose fields, but for the offsets, have a value for each row of a piece."""
    rows = table.places_in(at)
    columns = {name: getattr(table, name)[rows] for name in _names(table) if name != "offsets"}
    columns["offsets"] = offsets_of(table.counts[at])
    return type(table)(**columns)


def beside(tables: Sequence[Pieces]) -> Pieces:
    """Return the pieces of such tables, at least one, as one: dataclasses whose rows belong to pieces."""
    columns = {name: [getattr(table, name) for table in tables] for name in _names(tables[0])}
    columns["offsets"] = [offsets_of(np.concatenate([table.counts for table in tables]))]
    return type(tables[0])(**{name: np.concatenate(parts) for name, parts in columns.items()})


def _names(table: Any) -> list[str]:
    return [column.name for column in fields(table)]


@dataclass(frozen=True, slots=True)
class Ragged(InPieces):
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
    return Ragged(series[places_of(first, lengths)], offsets)

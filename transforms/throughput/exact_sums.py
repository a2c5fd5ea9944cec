"""Compute sums without rounding errors: split floats into multiples of fixed powers of two, and add these exactly.

A running sum of floating-point rates that start and end leaves a residue, and a large rate that lasts a microsecond
cancels a small one. Here each float is split exactly into limbs of 32 bits at fixed positions (Kulisch's long
accumulator, in pieces), which are added as integers. Subtraction is exact, and a sum does not depend on the order, the
grouping or the chunks of its terms, to the last bit.

Values below 2**-992 (1e-299) are outside the limbs and count as 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from iosig.transforms.arrays import Ints, Reals

_LIMB_BITS = 32
_LIMB_MASK = (1 << _LIMB_BITS) - 1
#: limb k counts multiples of 2**(32 k); range of limbs of a float
_HIGHEST, _LOWEST = 31, -31
#: number of values per chunk, which fits into the processor's cache
_CHUNK = 1 << 15
#: maximum number of 32-bit limbs that can be added in 64 bits without a carry
_MAX_TERMS = 1 << 30


def _unit(limb: int) -> float:
    return math.ldexp(1.0, _LIMB_BITS * limb)


def split_into_limbs(values: Reals) -> Iterator[tuple[int, Ints]]:
    """Split finite values into limbs, from high to low; yield (limb, multiples) of limbs that are not all 0."""
    remaining = np.array(values, dtype=np.float64)
    while (largest := float(max(remaining.max(initial=0.0), -remaining.min(initial=0.0)))) > 0:
        place = (math.frexp(largest)[1] - 1) // _LIMB_BITS
        if place < _LOWEST:
            return
        place = min(place, _HIGHEST)
        # scaling by a power of two, and the subtraction of the integer part, are exact
        multiples = np.trunc(remaining * _unit(-place))
        remaining -= multiples * _unit(place)
        yield place, multiples.astype(np.int64)


def running_sums(changes: Reals) -> Reals:
    """Compute running sums exactly, except for the final rounding.

    Parameters
    ----------
    changes : (n,)
        Each negative change must cancel an earlier positive one.

    Returns
    -------
    (n,)
        Exactly 0 after all changes are cancelled.
    """
    result = np.zeros(len(changes))
    carry_by_place: dict[int, int] = {}
    for start in range(0, len(changes), _CHUNK):
        sums = result[start : start + _CHUNK]
        added = dict(split_into_limbs(changes[start : start + _CHUNK]))
        for place in sorted({*carry_by_place, *added}):
            before = carry_by_place.get(place, 0)
            if place in added:
                line = np.cumsum(added[place])
                line += before
                carry_by_place[place] = int(line[-1])
                sums += line * _unit(place)
            elif before:
                sums += before * _unit(place)
    return result


def segment_sums(values: Reals, offsets: Ints) -> Reals:
    """Sum segments of nonnegative values exactly.

    Parameters
    ----------
    values
        Nonnegative values.
    offsets : (n + 1,)
        Segment i is values[offsets[i]:offsets[i+1]].

    Returns
    -------
    (n,)
        Sums.
    """
    sums = ExactSums(len(offsets) - 1)
    for start in range(0, len(values), _CHUNK):
        stop = min(start + _CHUNK, len(values))
        # only segments that overlap the chunk
        first = int(np.searchsorted(offsets, start, side="right")) - 1
        last = int(np.searchsorted(offsets, stop, side="left"))
        edges = np.clip(offsets[first : last + 1], start, stop) - start
        for place, multiples in split_into_limbs(values[start:stop]):
            line = np.concatenate(([0], np.cumsum(multiples)))
            sums.add_limb(place, slice(first, last), np.diff(line[edges]), stop - start)
    return sums.totals()


class ExactSums:
    """Array of exact accumulators; it needs 8 bytes per sum and used limb."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._limbs: dict[int, Ints] = {}
        self._term_count = 0
        self._buffer: list[tuple[Ints, Reals]] = []
        self._buffered_count = 0

    def add(self, cells: Ints, values: Reals) -> None:
        """Add finite values (n) to the sums with the given indices (n), which may repeat."""
        self._count_terms(len(values))
        _add_at(self._limbs, cells, values, self._size)

    def add_few(self, cells: Ints, values: Reals) -> None:
        """Add values as `add` does, but buffered, which is faster if few sums have terms.

        The arrays are kept until the number of terms reaches the number of sums, and must not be changed.
        """
        if len(values):
            self._buffer.append((cells, values))
            self._buffered_count += len(values)
        if self._buffered_count > max(self._size, _CHUNK):
            self._flush()

    def add_limb(self, place: int, cells: slice, multiples: Ints, term_count: int) -> None:
        """Add partial sums of `term_count` terms of one limb to consecutive sums."""
        self._count_terms(term_count)
        _get_limb(self._limbs, place, self._size)[cells] += multiples

    def totals(self) -> Reals:
        """Return the rounded sums (size), which must not be negative."""
        result = np.zeros(self._size)
        for cells, cell_limbs in self._chunks():
            _join(_carry(cell_limbs), result[cells])
        at, cell_limbs = self._merge_buffered()
        result[at] = _join(_carry(cell_limbs), np.zeros(len(at)))
        return result

    def running(self) -> Reals:
        """Compute running sums over the accumulators (size); no running sum may be negative."""
        result = np.zeros(self._size)
        if not self._limbs:
            at, cell_limbs = self._merge_buffered()
            lines = {place: np.cumsum(limb) for place, limb in cell_limbs.items()}
            levels = _join(_carry(lines), np.zeros(len(at)))
            # the running sum is constant between accumulators that have terms
            if len(at):
                result[at[0] :] = np.repeat(levels, np.diff(at, append=self._size))
            return result
        self._flush()
        before = dict.fromkeys(self._limbs, np.int64(0))
        for cells, cell_limbs in self._chunks():
            # intermediate integers may wrap around; the result is correct nevertheless
            lines = {place: np.cumsum(limb) + before[place] for place, limb in cell_limbs.items()}
            before = {place: line[-1] for place, line in lines.items()}
            _join(_carry(lines), result[cells])
        return result

    def _chunks(self) -> Iterator[tuple[slice, dict[int, Ints]]]:
        for start in range(0, self._size if self._limbs else 0, _CHUNK):
            cells = slice(start, start + _CHUNK)
            yield cells, {place: limb[cells] for place, limb in self._limbs.items()}

    def _merge_buffered(self) -> tuple[Ints, dict[int, Ints]]:
        """Find the sums with buffered terms, and their limbs including these terms."""
        if not self._buffer:
            return np.zeros(0, dtype=np.int64), {}
        cells, values = (np.concatenate(column) for column in zip(*self._buffer, strict=True))
        is_touched = np.zeros(self._size, dtype=np.bool_)
        is_touched[cells] = True
        at = np.flatnonzero(is_touched)
        rank = np.empty(self._size, dtype=np.int64)
        rank[at] = np.arange(len(at))
        cell_limbs = {place: limb[at] for place, limb in self._limbs.items()}
        _add_at(cell_limbs, rank[cells], values, len(at))
        return at, cell_limbs

    def _flush(self) -> None:
        """Add the buffered terms to the limbs."""
        buffered, self._buffer, self._buffered_count = self._buffer, [], 0
        for cells, values in buffered:
            self.add(cells, values)

    def _count_terms(self, term_count: int) -> None:
        self._term_count += term_count
        if self._term_count > _MAX_TERMS:
            self._limbs = _carry(self._limbs)
            self._term_count = term_count


def _add_at(limbs: dict[int, Ints], cells: Ints, values: Reals, size: int) -> None:
    for start in range(0, len(values), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        for place, multiples in split_into_limbs(values[chunk]):
            np.add.at(_get_limb(limbs, place, size), cells[chunk], multiples)


def _get_limb(limbs: dict[int, Ints], place: int, size: int) -> Ints:
    if place not in limbs:
        limbs[place] = np.zeros(size, dtype=np.int64)
    return limbs[place]


def _carry(limbs: dict[int, Ints]) -> dict[int, Ints]:
    """Normalize limbs to the range from 0 to 2**32 - 1, so that equal sums have equal limbs.

    If any sum is negative, the highest limb carries the sign and is not normalized.
    """
    if not limbs:
        return {}
    normalized: dict[int, Ints] = {}
    highest = max(limbs)
    excess = np.zeros_like(limbs[highest])
    for place in range(min(limbs), highest):
        limb = limbs[place] + excess if place in limbs else excess
        excess = limb >> _LIMB_BITS
        if limb.any():
            normalized[place] = limb & _LIMB_MASK
    limb = limbs[highest] + excess
    excess = limb >> _LIMB_BITS
    if highest < _HIGHEST and excess.any() and excess.min() >= 0:
        normalized[highest + 1] = excess
        limb &= _LIMB_MASK
    normalized[highest] = limb
    return normalized


def _join(limbs: dict[int, Ints], sums: Reals) -> Reals:
    """Add the values of limbs to sums, lowest limb first, and return the sums."""
    for place in sorted(limbs):
        part = limbs[place].astype(np.float64)
        part *= _unit(place)
        sums += part
    return sums

"""Sums without rounding: floats are taken apart into whole multiples of fixed powers of two, and those are added.

A running sum of rates that come and go, added as floats, keeps a residue after the last has gone; a large rate
that was there for a microsecond wipes out a small one for good. Here a float is split, exactly, into limbs of 32
bits at fixed places (Kulisch's long accumulator, in pieces), and the limbs are added as integers. What is taken
away again leaves nothing, and a sum does not depend on the order, the grouping or the chunks of its terms, to
the last bit.

Values below 2**-992 (1e-299) are outside the limbs and count as 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from iosig.transforms.arrays import Ints, Reals

_LIMB_BITS = 32
_LIMB_MASK = (1 << _LIMB_BITS) - 1
#: limb k counts multiples of 2**(32 k); the highest and the lowest that a float has room for
_HIGHEST, _LOWEST = 31, -31
#: values that are worked on at a time: they stay in the cache
_CHUNK = 1 << 15
#: so many limbs of 32 bits can be added to one of 64 before its excess has to be carried
_MOST_ADDED = 1 << 30


def _unit(limb: int) -> float:
    return math.ldexp(1.0, _LIMB_BITS * limb)


def limbs(values: Reals) -> Iterator[tuple[int, Ints]]:
    """Yield finite values' limbs from high to low, those that are 0 for all left out: (place, multiples)."""
    rest = np.array(values, dtype=np.float64)
    while (largest := float(max(rest.max(initial=0.0), -rest.min(initial=0.0)))) > 0:
        place = (math.frexp(largest)[1] - 1) // _LIMB_BITS
        if place < _LOWEST:
            return
        place = min(place, _HIGHEST)
        # A power of two scales without rounding, and what is cut off fits the float that it is cut from.
        multiples = np.trunc(rest * _unit(-place))
        rest -= multiples * _unit(place)
        yield place, multiples.astype(np.int64)


def running_sums(changes: Reals) -> Reals:
    """Return the running sums of changes (n), each exact but for the rounding of its at most few limbs.

    Each change below 0 must take back one above 0 that stands before it: then a sum from which all is taken back
    is exactly 0, and none suffers from what was there before.
    """
    found = np.zeros(len(changes))
    carried: dict[int, int] = {}
    for start in range(0, len(changes), _CHUNK):
        sums = found[start : start + _CHUNK]
        added = dict(limbs(changes[start : start + _CHUNK]))
        for place in sorted({*carried, *added}):
            before = carried.get(place, 0)
            if place in added:
                line = np.cumsum(added[place])
                line += before
                carried[place] = int(line[-1])
                sums += line * _unit(place)
            elif before:
                sums += before * _unit(place)
    return found


def segment_sums(values: Reals, offsets: Ints) -> Reals:
    """Return the sums of segments (n) of values that are not negative; segment i is values[offsets[i]:offsets[i+1]]."""
    sums = ExactSums(len(offsets) - 1)
    for start in range(0, len(values), _CHUNK):
        stop = min(start + _CHUNK, len(values))
        # Only segments that reach into the chunk are looked at.
        first = int(np.searchsorted(offsets, start, side="right")) - 1
        last = int(np.searchsorted(offsets, stop, side="left"))
        within = np.clip(offsets[first : last + 1], start, stop) - start
        for place, multiples in limbs(values[start:stop]):
            line = np.concatenate(([0], np.cumsum(multiples)))
            sums.add_limb(place, slice(first, last), np.diff(line[within]), stop - start)
    return sums.totals()


class ExactSums:
    """Many sums that grow: memory is 8 bytes per sum and limb in use, however much is added."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._limbs: dict[int, Ints] = {}
        self._added = 0
        self._kept: list[tuple[Ints, Reals]] = []
        self._kept_count = 0

    def add(self, cells: Ints, values: Reals) -> None:
        """Add finite values (n) to the sums with the given numbers (n); a number may come more than once."""
        self._make_room(len(values))
        _add_at(self._limbs, cells, values, self._size)

    def add_few(self, cells: Ints, values: Reals) -> None:
        """Do as `add` does, later: the quicker way while few of the sums have such terms.

        The arrays are kept until there are as many terms as sums: they must not be changed.
        """
        if len(values):
            self._kept.append((cells, values))
            self._kept_count += len(values)
        if self._kept_count > max(self._size, _CHUNK):
            self._settle()

    def add_limb(self, place: int, cells: slice, multiples: Ints, term_count: int) -> None:
        """Add sums of so many limbs to consecutive sums."""
        self._make_room(term_count)
        _limb_of(self._limbs, place, self._size)[cells] += multiples

    def totals(self) -> Reals:
        """Return the sums (size); their terms must add up to nothing below 0."""
        found = np.zeros(self._size)
        for cells, limbs_of in self._chunks():
            _join(_carried(limbs_of), found[cells])
        at, limbs_of = self._touched()
        found[at] = _join(_carried(limbs_of), np.zeros(len(at)))
        return found

    def running(self) -> Reals:
        """Return the running sums over the sums (size); none of them may be below 0."""
        found = np.zeros(self._size)
        if not self._limbs:
            at, limbs_of = self._touched()
            lines = {place: np.cumsum(limb) for place, limb in limbs_of.items()}
            levels = _join(_carried(lines), np.zeros(len(at)))
            # From one sum that has terms to the next one nothing changes.
            if len(at):
                found[at[0] :] = np.repeat(levels, np.diff(at, append=self._size))
            return found
        self._settle()
        before = dict.fromkeys(self._limbs, np.int64(0))
        for cells, limbs_of in self._chunks():
            # Whole numbers may wrap around on the way: what they come to at last is right all the same.
            lines = {place: np.cumsum(limb) + before[place] for place, limb in limbs_of.items()}
            before = {place: line[-1] for place, line in lines.items()}
            _join(_carried(lines), found[cells])
        return found

    def _chunks(self) -> Iterator[tuple[slice, dict[int, Ints]]]:
        for start in range(0, self._size if self._limbs else 0, _CHUNK):
            cells = slice(start, start + _CHUNK)
            yield cells, {place: limb[cells] for place, limb in self._limbs.items()}

    def _touched(self) -> tuple[Ints, dict[int, Ints]]:
        """Return which sums have terms that are kept, and these sums' limbs, kept terms included."""
        if not self._kept:
            return np.zeros(0, dtype=np.int64), {}
        cells, values = (np.concatenate(column) for column in zip(*self._kept, strict=True))
        is_touched = np.zeros(self._size, dtype=np.bool_)
        is_touched[cells] = True
        at = np.flatnonzero(is_touched)
        rank = np.empty(self._size, dtype=np.int64)
        rank[at] = np.arange(len(at))
        limbs_of = {place: limb[at] for place, limb in self._limbs.items()}
        _add_at(limbs_of, rank[cells], values, len(at))
        return at, limbs_of

    def _settle(self) -> None:
        """Add the terms that are kept to the limbs."""
        kept, self._kept, self._kept_count = self._kept, [], 0
        for cells, values in kept:
            self.add(cells, values)

    def _make_room(self, term_count: int) -> None:
        self._added += term_count
        if self._added > _MOST_ADDED:
            self._limbs = _carried(self._limbs)
            self._added = term_count


def _add_at(found: dict[int, Ints], cells: Ints, values: Reals, size: int) -> None:
    for start in range(0, len(values), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        for place, multiples in limbs(values[chunk]):
            np.add.at(_limb_of(found, place, size), cells[chunk], multiples)


def _limb_of(found: dict[int, Ints], place: int, size: int) -> Ints:
    if place not in found:
        found[place] = np.zeros(size, dtype=np.int64)
    return found[place]


def _carried(found: dict[int, Ints]) -> dict[int, Ints]:
    """Return the same sums with limbs from 0 to 2**32 - 1, which are the same however a sum came about.

    Where any sum is below 0, the highest limb has the sign and is left as large as it is.
    """
    if not found:
        return {}
    carried: dict[int, Ints] = {}
    highest = max(found)
    excess = np.zeros_like(found[highest])
    for place in range(min(found), highest):
        limb = found[place] + excess if place in found else excess
        excess = limb >> _LIMB_BITS
        if limb.any():
            carried[place] = limb & _LIMB_MASK
    limb = found[highest] + excess
    excess = limb >> _LIMB_BITS
    if highest < _HIGHEST and excess.any() and excess.min() >= 0:
        carried[highest + 1] = excess
        limb &= _LIMB_MASK
    carried[highest] = limb
    return carried


def _join(found: dict[int, Ints], sums: Reals) -> Reals:
    """Add what limbs come to, from the smallest on, to sums, and return these."""
    for place in sorted(found):
        part = found[place].astype(np.float64)
        part *= _unit(place)
        sums += part
    return sums

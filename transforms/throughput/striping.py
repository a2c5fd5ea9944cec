"""Where the bytes of a striped file lie: the storage target of a request, and its pieces on several.

A file of Lustre is cut into stripes of equal size, dealt round its storage targets (OSTs) in their order: the byte
at an offset is on target (offset // stripe size) % targets. Where the layout is not known, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, InPieces, Ints, Reals, offsets_of, places_within

#: the target of what is on no target that is known; as a subject of requests it is none (`NO_SUBJECT`)
NO_OST = -1
#: pieces that are made at a time
_CHUNK_PIECES = 1 << 18
#: A request in more pieces is not believed: one call of Linux moves less than 2 GiB, and a stripe of Lustre has
#: 64 KiB at the least, which makes 32,769 at the most.
_MOST_PIECES = 1 << 16


@dataclass(frozen=True, slots=True)
class Layouts(InPieces):
    """How files (m) are striped.

    stripe_bytes (m). osts: the targets of file i, in the order of its stripes, are osts[offsets[i]:offsets[i + 1]].
    A stripe below 1 byte and a file without targets are layouts that are not known.
    """

    stripe_bytes: Ints
    osts: Ints
    offsets: Ints

    def __post_init__(self) -> None:
        if len(self.offsets) != len(self.stripe_bytes) + 1:
            raise ValueError("stripe sizes and lists of targets are not of one length")

    @property
    def is_known(self) -> Bools:
        """Whether each layout says where bytes lie (m)."""
        found: Bools = (self.stripe_bytes > 0) & (self.counts > 0)
        return found

    def has(self, layout: Ints, offset_bytes: Ints) -> Bools:
        """Return whether it is known where each byte lies (n): not so for a layout that is none of these."""
        found = (layout >= 0) & (layout < len(self.stripe_bytes)) & (offset_bytes >= 0)
        found[found] = self.is_known[layout[found]]
        return found


def osts_of(offset_bytes: Ints, layout: Ints, layouts: Layouts) -> Ints:
    """Return the target that holds each request's first byte (n); NO_OST where that is not known.

    offset_bytes, layout (n): where in its file the request begins, and the file's place among the layouts;
    negative where either is not known.
    """
    found = np.full(len(offset_bytes), NO_OST, dtype=np.int64)
    at = np.flatnonzero(layouts.has(layout, offset_bytes))
    files = layout[at]
    stripe = offset_bytes[at] // layouts.stripe_bytes[files]
    found[at] = _osts(stripe, files, layouts)
    return found


def _osts(stripe: Ints, layout: Ints, layouts: Layouts) -> Ints:
    first = layouts.offsets[layout]
    return layouts.osts[first + stripe % (layouts.offsets[layout + 1] - first)]


@dataclass(frozen=True, slots=True)
class Extents:
    """Requests (n): where in a file, how much, when, and the file's place among the layouts.

    An offset, a length or a layout that is not known is negative.
    """

    offset_bytes: Ints
    length_bytes: Ints
    start_s: Reals
    end_s: Reals
    layout: Ints


@dataclass(frozen=True, slots=True)
class Pieces:
    """Requests cut where their stripes end (pieces), in order of requests, then of offsets.

    request: whose piece it is. offset_bytes, length_bytes, ost: NO_OST where that is not known. start_s,
    end_s: its share of the request's time, in proportion to its bytes; one piece ends where the next begins.
    """

    request: Ints
    offset_bytes: Ints
    length_bytes: Ints
    ost: Ints
    start_s: Reals
    end_s: Reals


def split(extents: Extents, layouts: Layouts) -> Iterator[Pieces]:
    """Cut requests (n) where their stripes end; yield the pieces of some requests at a time.

    The pieces of a request are moved one after the other, as its bytes are: together they make its signal. What
    cannot be cut stays whole. Without a known layout it has no target; nor has it when it would reach beyond
    2**63 bytes, or be more pieces than a call can make: then offset or length are wrong. A request of no bytes,
    or of a number that is not known, is on the target of its first byte.
    """
    ost, counts = _counted(extents, layouts)
    bounds = offsets_of(counts)
    start = 0
    while start < len(counts):
        stop = max(int(np.searchsorted(bounds, bounds[start] + _CHUNK_PIECES, side="right")) - 1, start + 1)
        yield _cut(slice(start, stop), counts[start:stop], ost, extents, layouts)
        start = stop


def _counted(extents: Extents, layouts: Layouts) -> tuple[Ints, Ints]:
    """Return the target of each request's first byte, and in how many pieces it is (n)."""
    ost = osts_of(extents.offset_bytes, extents.layout, layouts)
    counts = np.ones(len(ost), dtype=np.int64)
    at = np.flatnonzero((ost != NO_OST) & (extents.length_bytes > 0))
    offset, stripe = extents.offset_bytes[at], layouts.stripe_bytes[extents.layout[at]]
    last = offset + (extents.length_bytes[at] - 1)
    counts[at] = last // stripe - offset // stripe + 1
    # beyond 2**63 the last byte's offset is negative
    is_wrong = (last < offset) | (counts[at] > _MOST_PIECES)
    counts[at[is_wrong]], ost[at[is_wrong]] = 1, NO_OST
    return ost, counts


def _cut(rows: slice, counts: Ints, ost: Ints, extents: Extents, layouts: Layouts) -> Pieces:
    """Return the pieces of consecutive requests, of which each is in so many."""
    request = np.repeat(np.arange(rows.start, rows.stop), counts)
    number = places_within(counts)
    offset, length, target = extents.offset_bytes[request], extents.length_bytes[request], ost[request]
    began, ceased = extents.start_s[request], extents.end_s[request]
    low, high = np.zeros(len(request), dtype=np.int64), length.copy()
    count = np.repeat(counts, counts)
    cut = np.flatnonzero(count > 1)
    layout, whole = extents.layout[request[cut]], length[cut]
    size = layouts.stripe_bytes[layout]
    stripe = offset[cut] // size + number[cut]
    into = offset[cut] % size
    low[cut] = np.maximum(number[cut] * size - into, 0)
    is_last = number[cut] + 1 == count[cut]
    high[cut] = np.where(is_last, whole, (number[cut] + 1) * size - into)
    target[cut] = _osts(stripe, layout, layouts)
    times = began[cut], ceased[cut], whole
    began[cut], ceased[cut] = _reached(*times, low[cut]), _reached(*times, high[cut])
    return Pieces(request, offset + low, high - low, target, began, ceased)


def _reached(start_s: Reals, end_s: Reals, length_bytes: Ints, moved_bytes: Ints) -> Reals:
    """Return when so many of a request's bytes have been moved (n)."""
    inner = np.minimum(start_s + (end_s - start_s) * (moved_bytes / length_bytes), end_s)
    # the end as it is, whatever rounding would make of it
    found: Reals = np.where(moved_bytes == length_bytes, end_s, inner)
    return found

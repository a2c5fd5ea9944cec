"""Find the storage targets of requests to striped files, and split requests into the pieces on each target.

A Lustre file is divided into stripes of equal size, which are distributed round-robin over its storage targets (OSTs):
the byte at an offset is on target (offset // stripe size) % number of targets. Without a known layout, the target is
unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, InPieces, Ints, Reals, offsets_of, places_within

#: unknown target; equal to `NO_SUBJECT`
NO_OST = -1
#: number of pieces per chunk
_CHUNK_PIECES = 1 << 18
#: maximum number of pieces of a valid request: a Linux call moves less than 2 GiB, and Lustre stripes have 64 KiB or
#: more, which gives 32,769
_MAX_PIECES = 1 << 16


@dataclass(frozen=True, slots=True)
class Layouts(InPieces):
    """Striping layouts of m files.

    Attributes
    ----------
    stripe_bytes : (m,)
        Stripe size; the layout is unknown if it is not positive.
    osts
        Targets of file i, in order of its stripes, are osts[offsets[i]:offsets[i + 1]]; a layout without targets is
        unknown.
    """

    stripe_bytes: Ints
    osts: Ints
    offsets: Ints

    def __post_init__(self) -> None:
        if len(self.offsets) != len(self.stripe_bytes) + 1:
            raise ValueError("stripe sizes and lists of targets must have equal lengths")

    @property
    def is_known(self) -> Bools:
        """Whether the target of each byte is known (m)."""
        is_known: Bools = (self.stripe_bytes > 0) & (self.counts > 0)
        return is_known

    def has(self, layout: Ints, offset_bytes: Ints) -> Bools:
        """Whether the target of each byte is known (n); invalid layouts are unknown."""
        has_target = (layout >= 0) & (layout < len(self.stripe_bytes)) & (offset_bytes >= 0)
        has_target[has_target] = self.is_known[layout[has_target]]
        return has_target


def find_osts(offset_bytes: Ints, layout: Ints, layouts: Layouts) -> Ints:
    """Find the target of each request's first byte.

    Parameters
    ----------
    offset_bytes, layout : (n,)
        Offset of the request in its file, and index of the file's layout; negative if unknown.
    layouts
        Striping of files.

    Returns
    -------
    (n,)
        NO_OST if unknown.
    """
    osts = np.full(len(offset_bytes), NO_OST, dtype=np.int64)
    at = np.flatnonzero(layouts.has(layout, offset_bytes))
    files = layout[at]
    stripe = offset_bytes[at] // layouts.stripe_bytes[files]
    osts[at] = _stripe_osts(stripe, files, layouts)
    return osts


def _stripe_osts(stripe: Ints, layout: Ints, layouts: Layouts) -> Ints:
    first = layouts.offsets[layout]
    return layouts.osts[first + stripe % (layouts.offsets[layout + 1] - first)]


@dataclass(frozen=True, slots=True)
class Extents:
    """Requests (n): offset, length, start, end, and index of the file's layout.

    An unknown offset, length or layout is negative.
    """

    offset_bytes: Ints
    length_bytes: Ints
    start_s: Reals
    end_s: Reals
    layout: Ints


@dataclass(frozen=True, slots=True)
class Pieces:
    """Requests split at stripe boundaries (pieces), sorted by request and offset.

    request: index of the request. offset_bytes, length_bytes: location in the file. ost: target, NO_OST if unknown.
    start_s, end_s: time of the piece; its duration is proportional to its bytes, and pieces are consecutive.
    """

    request: Ints
    offset_bytes: Ints
    length_bytes: Ints
    ost: Ints
    start_s: Reals
    end_s: Reals


def split_requests(extents: Extents, layouts: Layouts) -> Iterator[Pieces]:
    """Split requests (n) at stripe boundaries; yield the pieces in chunks.

    Parameters
    ----------
    extents
        Requests.
    layouts
        Striping of files.

    Yields
    ------
    Pieces
        Pieces of a request are consecutive in time, so that together they have the same signal. Requests without a
        known layout, beyond 2**63 bytes, or with more pieces than a call can have, remain whole and have no target. A
        request of no bytes, or of unknown length, belongs to the target of its first byte.
    """
    ost, counts = _count_pieces(extents, layouts)
    bounds = offsets_of(counts)
    start = 0
    while start < len(counts):
        stop = max(int(np.searchsorted(bounds, bounds[start] + _CHUNK_PIECES, side="right")) - 1, start + 1)
        yield _make_pieces(slice(start, stop), counts[start:stop], ost, extents, layouts)
        start = stop


def _count_pieces(extents: Extents, layouts: Layouts) -> tuple[Ints, Ints]:
    """Target of each request's first byte, and number of its pieces (n)."""
    ost = find_osts(extents.offset_bytes, extents.layout, layouts)
    counts = np.ones(len(ost), dtype=np.int64)
    at = np.flatnonzero((ost != NO_OST) & (extents.length_bytes > 0))
    offset, stripe = extents.offset_bytes[at], layouts.stripe_bytes[extents.layout[at]]
    last = offset + (extents.length_bytes[at] - 1)
    counts[at] = last // stripe - offset // stripe + 1
    # offsets beyond 2**63 overflow to negative numbers
    is_wrong = (last < offset) | (counts[at] > _MAX_PIECES)
    counts[at[is_wrong]], ost[at[is_wrong]] = 1, NO_OST
    return ost, counts


def _make_pieces(rows: slice, counts: Ints, ost: Ints, extents: Extents, layouts: Layouts) -> Pieces:
    """Create the pieces of consecutive requests."""
    request = np.repeat(np.arange(rows.start, rows.stop), counts)
    number = places_within(counts)
    offset, length, target = extents.offset_bytes[request], extents.length_bytes[request], ost[request]
    start_s, end_s = extents.start_s[request], extents.end_s[request]
    low, high = np.zeros(len(request), dtype=np.int64), length.copy()
    count = np.repeat(counts, counts)
    cut = np.flatnonzero(count > 1)
    layout, request_bytes = extents.layout[request[cut]], length[cut]
    size = layouts.stripe_bytes[layout]
    stripe = offset[cut] // size + number[cut]
    into = offset[cut] % size
    low[cut] = np.maximum(number[cut] * size - into, 0)
    is_last = number[cut] + 1 == count[cut]
    high[cut] = np.where(is_last, request_bytes, (number[cut] + 1) * size - into)
    target[cut] = _stripe_osts(stripe, layout, layouts)
    times = start_s[cut], end_s[cut], request_bytes
    start_s[cut], end_s[cut] = _time_at_bytes(*times, low[cut]), _time_at_bytes(*times, high[cut])
    return Pieces(request, offset + low, high - low, target, start_s, end_s)


def _time_at_bytes(start_s: Reals, end_s: Reals, length_bytes: Ints, moved_bytes: Ints) -> Reals:
    """Time at which a number of each request's bytes has been moved (n)."""
    interpolated_s = np.minimum(start_s + (end_s - start_s) * (moved_bytes / length_bytes), end_s)
    # the exact end of the last piece, without rounding error
    times_s: Reals = np.where(moved_bytes == length_bytes, end_s, interpolated_s)
    return times_s

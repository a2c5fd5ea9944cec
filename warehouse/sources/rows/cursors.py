"""Places in many lines that move on together: over a text that all have, and over numbers of any length.

Lines that one program writes have the same names in the same order, and between them numbers that are longer in one
line than in another. To move a place in each line over a name is one comparison of all, and to move it over a number
are some operations on words of eight bytes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from iosig.warehouse.sources.rows.digits import Bytes, Ints, Words, eight_digits

Flags = npt.NDArray[np.bool_]

_WORD_BYTES: Final = 8
_ZEROS, _LOW, _ABOVE_NINE, _HIGH = (np.uint64(0x0101010101010101 * byte) for byte in (0x30, 0x7F, 0x76, 0x80))
_TENS: Final = np.array([10**power for power in range(9)], np.uint64)
#: bytes that are looked at before they leave the processor's cache
_STRIP_BYTES: Final = 1 << 17
#: a text of up to so many bytes is no place in a content to Arrow
_SHORT_BYTES: Final = 12


class Cursors:
    """A place in each of some lines of a content of eight bytes at least."""

    def __init__(self, content: bytes, at: Ints) -> None:
        self.at = at
        self._content = content
        self._words: Words = np.ndarray((len(content) - _WORD_BYTES + 1,), "<u8", content, strides=(1,))

    def only(self, chosen: Ints) -> Cursors:
        """Return the places in some of the lines."""
        return Cursors(self._content, self.at[chosen])

    def passes(self, text: bytes) -> Flags:
        """Move all places by the length of a text; return where it stands. It has no NUL."""
        at, length = self.at, len(text)
        self.at = at + length
        if length <= _SHORT_BYTES:
            return self._has_short(at, text)
        last = len(self._content) - length
        if last < 0 or int(at.max(initial=0)) > last:
            is_there = at <= last
            found = np.zeros(len(at), np.bool_)
            found[is_there] = self._has_long(at[is_there], text)
            return found
        return self._has_long(at, text)

    def _has_long(self, at: Ints, text: bytes) -> Flags:
        found: Flags = (between(self._content, at, at + len(text)) == pl.Series([text])).to_numpy()
        return found

    def _has_short(self, at: Ints, text: bytes) -> Flags:
        """Return where a text stands: in one word, or in two that may overlap."""
        first = text[:_WORD_BYTES].rjust(_WORD_BYTES, b"\0")
        stands: Flags = self.words(at) << np.uint64(8 * first.count(0)) == np.frombuffer(first, "<u8")
        if len(text) > _WORD_BYTES:
            rest = len(text) - _WORD_BYTES
            stands &= self.words(at + rest) == np.frombuffer(text[rest:], "<u8")
        return stands

    def number(self) -> tuple[Words, Ints]:
        """Move all places over digits; return the number that they are, of up to 19, and how many there are."""
        values, lengths = _leading_number(self.words(self.at))
        done = np.flatnonzero(lengths == _WORD_BYTES)
        while len(done):
            # all of them are not to be picked one by one
            chosen = slice(None) if len(done) == len(values) else done
            more, digits = _leading_number(self.words((self.at + lengths)[chosen]))
            values[chosen] = values[chosen] * _TENS.take(digits) + more
            lengths[chosen] += digits
            done = done[digits == _WORD_BYTES]
        self.at = self.at + lengths
        return values, lengths

    def skip(self, letters: bytes) -> None:
        """Move those places by one that have one of some letters."""
        last = len(self._content) - 1
        own = np.frombuffer(self._content, np.uint8)[np.minimum(self.at, last)]
        is_one = own == letters[0]
        for letter in letters[1:]:
            is_one |= own == letter
        self.at = self.at + is_one

    def words(self, at: Ints) -> Words:
        """Return the eight bytes from each of some places on, with NULs behind the content's end."""
        last = len(self._words) - 1
        if int(at.max(initial=0)) <= last:
            return self._words[at]
        place = np.minimum(at, last)
        return self._words[place] >> (np.minimum(at - place, _WORD_BYTES) << 3).astype(np.uint64)


def _leading_number(words: Words) -> tuple[Words, Ints]:
    """Return the number that the first bytes of words are, as far as they are digits, and how many these are."""
    digits = words ^ _ZEROS
    others = (((digits & _LOW) + _ABOVE_NINE) | digits) & _HIGH
    # the bits below the first byte that is no digit
    lengths = np.bitwise_count((others - np.uint64(1)) & ~others) >> 3
    # digits that are not there are zeros before the others
    return eight_digits(digits << ((np.uint8(8) - lengths).astype(np.uint64) << np.uint64(3))), lengths.astype(np.int64)


def marks(content: bytes) -> Ints:
    """Return where a content has blanks, line ends, and other bytes that are no letters of a text."""
    given = np.frombuffer(content, np.uint8)
    is_found = np.empty(_STRIP_BYTES, np.bool_)
    found = []
    for first in range(0, len(given), _STRIP_BYTES):
        strip = given[first : first + _STRIP_BYTES]
        found.append(np.flatnonzero(np.less_equal(strip, 32, out=is_found[: len(strip)])) + first)
    return np.concatenate([np.zeros(0, np.int64), *found])


def between(content: bytes, starts: Ints, ends: Ints) -> pl.Series:
    """Return the parts of a content between places, as binary; each longer than 12 bytes."""
    lengths = ends - starts
    if len(lengths) and int(lengths.min()) <= _SHORT_BYTES:
        raise ValueError("A part is too short.")
    views = np.zeros((len(starts), 4), "<u4")
    first: npt.NDArray[np.uint32] = np.ndarray((max(len(content) - 3, 0),), "<u4", content, strides=(1,))
    views[:, 0], views[:, 1], views[:, 3] = lengths, first[starts], starts
    held = [None, pa.py_buffer(views), pa.py_buffer(content)]
    return pl.Series(pa.Array.from_buffers(pa.binary_view(), len(starts), held))


def is_again(content: bytes, starts: Ints, ends: Ints) -> Flags:
    """Return which parts of a content, of those of up to 24 bytes, are the same text as the part before."""
    lengths, at = ends - starts, Cursors(content, starts)
    found = np.zeros(len(starts), np.bool_)
    found[1:] = (lengths[1:] == lengths[:-1]) & (lengths[1:] <= 3 * _WORD_BYTES)
    for place in (starts, starts + _WORD_BYTES, np.maximum(ends - _WORD_BYTES, 0)):
        words = at.words(place)
        found[1:] &= words[1:] == words[:-1]
    return found


def bytes_at(content: bytes, at: Ints) -> Bytes:
    """Return the byte in each place."""
    return np.frombuffer(content, np.uint8)[at]

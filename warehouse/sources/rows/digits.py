"""Digits in the lines of a text, and what lines are but for them.

Lines that one program writes differ in their digits alone, mostly. What a line is but for them is found by looking at
bytes, many at a time, and a number in a known place is made of its digits without splitting the line.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

#: digits of a number that always fits
MOST_DIGITS: Final = 18
#: stands for the digits in one place of a line that is `marked`: to it, the place's number is added
MARK: Final = 7_000_000
MARKED: Final = re.compile(r"7[0-9]{6}")
_DIGITS = re.compile(rb"[0-9]+")
#: bytes that are looked at before they leave the processor's cache
_STRIP_BYTES = 1 << 18
_ZERO, _LINE_END, _WORD_BYTES = 48, 10, 8


def marked(line: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """Return a line with a number of its own in each place that has digits, and where these places begin and end."""
    places = [found.span() for found in _DIGITS.finditer(line)]
    number = iter(range(MARK, MARK + len(places)))
    return _DIGITS.sub(lambda _: b"%d" % next(number), line), places


class Digits:
    """Bytes of a block: `alike` has zeros for all digits, and the words are what numbers are made of.

    The arrays are used again for the next block: to ask the system for as many costs more than to fill them.
    """

    def __init__(self) -> None:
        self.alike, self._bytes = np.zeros(0, np.uint8), np.zeros(0, np.uint8)
        self._values, self._flags = np.zeros(_STRIP_BYTES, np.uint8), np.zeros((2, _STRIP_BYTES), np.bool_)

    def take(self, content: bytes) -> tuple[Ints, Ints]:
        """Look at a content; return where its lines end, and zeros that other digits follow and none precedes."""
        given = np.frombuffer(content, np.uint8)
        if len(self.alike) < len(given):
            self.alike = np.zeros(len(given), np.uint8)
            self._bytes = np.zeros((len(given) // _WORD_BYTES + 4) * _WORD_BYTES, np.uint8)
        found = [self._strip(given, first) for first in range(0, len(given), _STRIP_BYTES)]
        ends, zeros = (np.concatenate(places) for places in zip(*found, strict=True))
        return ends, zeros

    def _strip(self, given: Bytes, first: int) -> tuple[Ints, Ints]:
        strip = given[first : first + _STRIP_BYTES]
        last = first + len(strip)
        values, (is_digit, is_found) = self._values[: len(strip)], self._flags[:, : len(strip)]
        self._bytes[_WORD_BYTES + first : _WORD_BYTES + last] = strip
        np.subtract(strip, _ZERO, out=values)
        np.less(values, 10, out=is_digit)
        np.equal(values, 0, out=is_found)
        is_found[1:] &= ~is_digit[:-1]
        is_found[:-1] &= is_digit[1:]
        zeros = np.flatnonzero(is_found) + first
        np.multiply(values, is_digit.view(np.uint8), out=values)
        np.subtract(strip, values, out=self.alike[first:last])
        np.equal(strip, _LINE_END, out=is_found)
        return np.flatnonzero(is_found) + first, zeros

    def numbers(self, ends: Ints, lengths: npt.NDArray[np.uint8]) -> Ints:
        """Return numbers of up to 18 digits by where each ends, and how many digits it has; 0 where it has none."""
        words = self._bytes.view("<u8")
        most = int(lengths.max(initial=0))
        found = _value(_word(words, ends), np.minimum(lengths, 8))
        for done in range(8, most, 8):
            more = _value(_word(words, ends - done), np.clip(lengths, done, done + 8) - np.uint8(done))
            found += np.uint64(10**done) * more
        return found.view(np.int64)


def _word(words: Words, ends: Ints) -> Words:
    """Return the eight bytes before each end; `words` begins with eight that are no content's."""
    place, shift = ends >> 3, ((ends & 7) << 3).astype(np.uint64)
    # to shift by 64 has no meaning
    return (words.take(place) >> shift) | ((words.take(place + 1) << np.uint64(1)) << (np.uint64(63) - shift))


_LAST_BYTES = np.array([(~0 << 8 * (8 - count)) & ~(~0 << 64) if count else 0 for count in range(9)], np.uint64)


def _value(words: Words, lengths: npt.NDArray[np.uint8]) -> Words:
    """Return the number that the last so many of eight bytes are, all of them digits."""
    is_own = _LAST_BYTES.take(lengths)
    return eight_digits((words & is_own) - (np.uint64(0x3030303030303030) & is_own))


def eight_digits(own: Words) -> Words:
    """Return the number of eight digits, each a byte from 0 to 9, the first one lowest.

    Digits are added up in pairs, in fours and in eights (Lemire 2018, "Quickly parsing eight digits").
    """
    pairs = own * np.uint64(10) + (own >> np.uint64(8))
    low = np.uint64(0x000000FF000000FF)
    fours = (pairs & low) * np.uint64(100 + (1_000_000 << 32))
    return (fours + ((pairs >> np.uint64(16)) & low) * np.uint64(1 + (10_000 << 32))) >> np.uint64(32)


def parts(content: Bytes, edges: Ints) -> pl.Series:
    """Return the parts of a content between edges that follow each other."""
    found = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(edges) - 1, [None, pa.py_buffer(edges), pa.py_buffer(content)]
    )
    return pl.Series(found)

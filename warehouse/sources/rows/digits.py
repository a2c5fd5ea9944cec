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
#: lines whose numbers are made at once, for the same reason
_STRIP_LINES = 1 << 14
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
        places = np.concatenate([self._strip(given, first) for first in range(0, len(given), _STRIP_BYTES)])
        is_end = given[places] == _LINE_END
        return places[is_end], places[~is_end]

    def _strip(self, given: Bytes, first: int) -> Ints:
        strip = given[first : first + _STRIP_BYTES]
        last = first + len(strip)
        values, (is_digit, is_found) = self._values[: len(strip)], self._flags[:, : len(strip)]
        self._bytes[_WORD_BYTES + first : _WORD_BYTES + last] = strip
        np.subtract(strip, _ZERO, out=values)
        np.less(values, 10, out=is_digit)
        np.equal(values, 0, out=is_found)
        is_found[1:] &= ~is_digit[:-1]
        is_found[:-1] &= is_digit[1:]
        np.multiply(values, is_digit.view(np.uint8), out=values)
        np.subtract(strip, values, out=self.alike[first:last])
        is_found |= np.equal(strip, _LINE_END, out=is_digit)
        return np.flatnonzero(is_found) + first

    def numbers(self, starts: Ints, form: Ints, ends: Ints, lengths: Ints) -> Ints:
        """Return numbers of up to 18 digits in lines that start somewhere and have forms; 0 where one has none.

        ends, lengths: where in the lines of each form the number ends, and how many digits it has.
        """
        found = np.zeros(len(form), np.uint64)
        places = range(0, int(lengths.max(initial=0)), _WORD_BYTES)
        of_words = [_LAST_DIGITS.take(np.clip(lengths - done, 0, _WORD_BYTES)) for done in places]
        for first in range(0, len(form), _STRIP_LINES):
            own = slice(first, first + _STRIP_LINES)
            at = starts[own] + ends.take(form[own])
            for done, last_digits in zip(places, of_words, strict=True):
                number = eight_digits(self._words(at - done) & last_digits.take(form[own]))
                number *= np.uint64(10**done)
                found[own] += number
        return found.view(np.int64)

    def _words(self, ends: Ints) -> Words:
        """Return the eight bytes before each end, as a word; before the content there are eight zeros."""
        words = self._bytes.view("<u8")
        place, shift = ends >> 3, ((ends & 7) << 3).astype(np.uint64)
        found = words.take(place)
        found >>= shift
        place += 1
        more = words.take(place)
        # to shift by all 64 bits leaves none
        more <<= np.uint64(64) - shift
        found |= more
        return found


#: of a word, the bits that make numbers of its last so many bytes
_LAST_DIGITS = np.array([0x0F0F0F0F0F0F0F0F >> 8 * (8 - count) << 8 * (8 - count) for count in range(9)], np.uint64)


def eight_digits(own: Words) -> Words:
    """Return the number of eight digits, each a byte from 0 to 9, the first one lowest.

    Digits are added up in pairs, in fours and in eights (Lemire 2018, "Quickly parsing eight digits").
    """
    # in one array: twelve of them would leave the processor's cache
    found = own * np.uint64(10 * (1 << 8) + 1)
    found >>= np.uint64(8)
    found &= np.uint64(0x00FF00FF00FF00FF)
    found *= np.uint64(100 * (1 << 16) + 1)
    found >>= np.uint64(16)
    found &= np.uint64(0x0000FFFF0000FFFF)
    found *= np.uint64(10_000 * (1 << 32) + 1)
    found >>= np.uint64(32)
    return found


def parts(content: Bytes, edges: Ints) -> pl.Series:
    """Return the parts of a content between edges that follow each other."""
    found = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(edges) - 1, [None, pa.py_buffer(edges), pa.py_buffer(content)]
    )
    return pl.Series(found)

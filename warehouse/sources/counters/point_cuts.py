"""Points of line protocol, cut out of the bytes of a block: those whose fields are all whole numbers.

What is before the first blank of a line, its head, is the same for all points of one counter: of a block, each head is
read once. What is behind it are names that all points of a collector have in one order, and numbers: a place in each
line moves over them. All other lines are left to be read as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from iosig.warehouse.sources.counters.line_protocol import MOST_NAMES, UNITS, Points, Shape, names_of, points
from iosig.warehouse.sources.rows.cursors import Cursors, Flags, between, bytes_at, is_again, marks
from iosig.warehouse.sources.rows.digits import MOST_DIGITS, Ints
from iosig.warehouse.sources.rows.text_blocks import Block

#: so many shapes of fields a block may have, and so many lines that are the first of none
_MOST_BODIES, _MOST_ODD = 100, 8
#: a point has more
_FEWEST_BYTES = 16
#: a head has more bytes
_SHORT_BYTES = 12
#: so many lines are looked at for what they say alike
_SAMPLE = 32
_PLAIN = re.compile(rb"[!#-\[\]-~]+")
_COUNT = re.compile(rb"[0-9]{1,%d}[iu]?" % MOST_DIGITS)
_BLANK, _LINE_END, _COMMENT, _ZERO, _DELETE = b" \n#0\x7f"
_LATEST: Final = np.uint64(2**63 - 1)
_ALL: Final = np.uint64(2**64 - 1)


@dataclass(frozen=True, slots=True)
class Cut:
    """Points of one shape; what several say alike, times apart, is there once.

    heads: points with the same heads, and no fields that say anything; places: where the head of each is among them.
    counts: the fields. times: `line` and `at_us` of all lines; said: which of the points each says.
    """

    shape: Shape
    heads: Points
    places: Ints
    counts: pl.DataFrame
    times: pl.DataFrame
    said: Ints


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines of a head, a body and a time, a blank between them; `number` is that in the block."""

    content: bytes
    number: Ints
    #: where they start, and where the blanks are
    start: Ints
    blank: Ints
    last: Ints
    at_us: Ints

    def only(self, chosen: Ints | Flags) -> _Lines:
        own = (self.number, self.start, self.blank, self.last, self.at_us)
        return _Lines(self.content, *(array[chosen] for array in own))


def cut(
    block: Block, measurements: Collection[str] | None, is_wanted: Callable[[Shape], bool]
) -> tuple[list[Cut], Flags]:
    """Return points of some measurements (None: of all) and shapes, and which lines are left to be read as text."""
    is_other = np.ones(block.line_count, np.bool_)
    if len(block.content) < _FEWEST_BYTES:
        return [], is_other
    lines = _split(block.content)
    own = lines.only(_is_meant(lines, measurements))
    if not len(own.number):
        return [], is_other
    said, place = _distinct(between(own.content, own.start, own.last))
    cuts = []
    for heads, places, parts in _with_heads(own.only(said)):
        for found, chosen, counts in _bodies(parts, heads.shape):
            if not is_wanted(found):
                continue
            ordinal = np.full(len(said), -1)
            ordinal[np.searchsorted(own.number[said], parts.number[chosen])] = np.arange(len(chosen))
            told = ordinal.take(place)
            is_told = told >= 0
            is_other[own.number[is_told]] = False
            times = pl.DataFrame({"line": own.number[is_told] + block.first_line, "at_us": own.at_us[is_told]})
            cuts.append(Cut(found, heads, places[chosen], counts, times, told[is_told]))
    return cuts, is_other


def _distinct(texts: pl.Series) -> tuple[Ints, Ints]:
    """Return which of some texts are the first of their kind, and for each the place of its kind among these.

    A kind may be there twice, if rarely.
    """
    code = texts.to_frame().hash_rows().to_numpy()
    count = np.uint64(len(code).bit_length())
    # words are sorted in less time than places by them: those of a kind, all but the lowest bits, in their order
    order = np.sort(code >> count << count | np.arange(len(code), dtype=np.uint64)) & ~(_ALL << count)
    told = code[order]
    starts = np.flatnonzero(np.concatenate([np.ones(1, np.bool_), told[1:] != told[:-1]])[: len(told)])
    is_first = np.zeros(len(code), np.bool_)
    is_first[order[starts]] = True
    rank = np.cumsum(is_first) - 1
    place = np.empty(len(code), np.int64)
    place[order] = np.repeat(rank[order[starts]], np.diff(starts, append=len(code)))
    return np.flatnonzero(is_first), place


def _split(content: bytes) -> _Lines:
    """Return the lines that end with a time, and have one blank more."""
    at = marks(content)
    own = bytes_at(content, at)
    ends = np.flatnonzero(own == _LINE_END)
    starts = np.concatenate([np.zeros(1, np.int64), at[ends[:-1]] + 1])
    number = np.flatnonzero(np.diff(ends, prepend=-1) == 3)
    end = ends[number]
    has_blanks = (own[end - 1] == _BLANK) & (own[end - 2] == _BLANK)
    number, end = number[has_blanks], end[has_blanks]
    at_us = _instants(content, at[end - 1] + 1, at[end])
    return _Lines(content, number, starts[number], at[end - 2], at[end - 1], at_us).only(at_us >= 0)


def _instants(content: bytes, starts: Ints, ends: Ints) -> Ints:
    """Return times as microseconds since 1970, -1 where a text is none; the number of digits tells the unit."""
    # points of a batch have one time
    is_first = ~is_again(content, starts, ends)
    starts, ends = starts[is_first], ends[is_first]
    places = Cursors(content, starts)
    number, digits = places.number()
    is_time = (places.at == ends) & (number <= _LATEST) & (bytes_at(content, starts) != _ZERO)
    at_us = np.full(len(digits), -1)
    for length, factor in UNITS.items():
        own = is_time & (digits == length)
        if own.any():
            told = number[own].view(np.int64)
            at_us[own] = told * factor if factor else told // 1_000
    return at_us.take(np.cumsum(is_first) - 1)


def _is_meant(lines: _Lines, measurements: Collection[str] | None) -> Flags:
    is_long = lines.blank - lines.start > _SHORT_BYTES
    if measurements is None:
        first = bytes_at(lines.content, lines.start)
        is_long &= (first > _BLANK) & (first != _COMMENT) & (first < _DELETE)
        return is_long
    found = np.zeros(len(lines.number), np.bool_)
    for name in measurements:
        found |= Cursors(lines.content, lines.start).passes(f"{name},".encode())
    return is_long & found


def _with_heads(lines: _Lines) -> Iterator[tuple[Points, Ints, _Lines]]:
    """Yield the heads of one shape, for lines that have one of them its place there, and these lines."""
    texts = between(lines.content, lines.start, lines.blank)
    first, head = _distinct(texts)
    try:
        told = texts.gather(first).cast(pl.String)
    except pl.exceptions.ComputeError:
        # they are no text
        return
    heads = pl.DataFrame({"line": pl.int_range(len(told), dtype=pl.Int64, eager=True), "text": told + " _=1"})
    for found in points(heads)[0]:
        place = np.full(len(told), -1)
        place[found.lines["line"].to_numpy()] = np.arange(found.lines.height)
        places = place.take(head)
        own = np.flatnonzero(places >= 0)
        is_all = len(own) == len(places)
        yield found, places if is_all else places[own], lines if is_all else lines.only(own)


def _bodies(lines: _Lines, head: Shape) -> Iterator[tuple[Shape, Ints, pl.DataFrame]]:
    """Yield shapes of points, which lines have them, and their fields."""
    rest, odd_count = np.arange(len(lines.number)), 0
    for _ in range(_MOST_BODIES):
        if not len(rest) or odd_count == _MOST_ODD:
            return
        first = rest[0]
        fields = _fields(lines.content[lines.blank[first] + 1 : lines.last[first]], head)
        own, counts = _counts(lines, rest, fields) if fields else (rest[:0], {})
        if not len(own) or own[0] != first:
            rest, odd_count = rest[1:], odd_count + 1
            continue
        yield Shape(head.measurement, head.tags, fields), own, pl.DataFrame(counts)
        rest = np.setdiff1d(rest, own, assume_unique=True)


def _fields(body: bytes, head: Shape) -> tuple[str, ...]:
    """Return the names of fields; none where they are not to be cut."""
    found = names_of(f"_ {body.decode()}") if _PLAIN.fullmatch(body) else None
    if found is None:
        return ()
    count = len(head.tags) + len(found[2])
    return found[2] if count == len({*head.tags, *found[2]}) <= MOST_NAMES else ()


def _counts(lines: _Lines, chosen: Ints, fields: tuple[str, ...]) -> tuple[Ints, Mapping[str, pl.Series]]:
    """Return which of some lines have these fields, all of them whole numbers, and their values."""
    usual = _usual(lines, chosen, fields)
    own, counts = _moved_over(lines, chosen, fields, usual)
    if usual and len(own) < len(chosen):
        more, others = _moved_over(lines, np.setdiff1d(chosen, own, assume_unique=True), fields, {})
        own = np.concatenate([own, more])
        order = np.argsort(own)
        own, counts = own[order], {name: np.concatenate([counts[name], others[name]])[order] for name in fields}
    return own, {name: pl.Series(counts[name]) for name in fields}


def _usual(lines: _Lines, chosen: Ints, fields: tuple[str, ...]) -> Mapping[str, bytes]:
    """Return fields that say the same in some of the lines, each with what it says: most others will say so, too."""
    some = chosen[:: len(chosen) // _SAMPLE + 1].tolist()
    bodies = {lines.content[lines.blank[place] + 1 : lines.last[place]] for place in some}
    told = [[field.partition(b"=")[::2] for field in body.split(b",")] for body in bodies]
    names = [name.encode() for name in fields]
    said = zip(*([value for _, value in each] for each in told if [name for name, _ in each] == names), strict=True)
    known = {name: set(values) for name, values in zip(fields, said, strict=False)}
    return {name: value for name, (value, *more) in known.items() if not more and _COUNT.fullmatch(value)}


def _moved_over(
    lines: _Lines, chosen: Ints, fields: tuple[str, ...], usual: Mapping[str, bytes]
) -> tuple[Ints, dict[str, Ints]]:
    """Return which of some lines have these fields, all of them whole numbers or what is usual, and their values."""
    places, own = Cursors(lines.content, lines.blank[chosen]), chosen
    counts, text = dict[str, Ints](), b" "
    is_own = np.ones(len(own), np.bool_)
    for name in fields:
        text += f"{name}=".encode()
        if name in usual:
            text += usual[name] + b","
            continue
        is_own = is_own & places.passes(text)
        if not counts and not is_own.all():
            # lines of other fields
            own, places = own[is_own], places.only(np.flatnonzero(is_own))
            is_own = is_own[is_own]
        values, digits = places.number()
        is_own &= (digits > 0) & (digits <= MOST_DIGITS)
        places.skip(b"iu")
        counts[name], text = values.view(np.int64), b","
    if text != b",":
        is_own &= places.passes(text[:-1])
    is_own &= places.at == lines.last[own]
    counts |= {name: np.full(len(own), int(value.rstrip(b"iu"))) for name, value in usual.items()}
    return own[is_own], {name: values[is_own] for name, values in counts.items()}

"""Names that differ in numbers only, as one pattern: `/scratch/f.{00000000..00999999}`, and how many there are.

The numbers of a name are one number each, written in the base of what they reach: so the names of all ranks are a
set of numbers in progressions, distinct ones are counted as `progressions` does, and none is listed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from iosig.transforms.traces.expansion import Rows, row_values
from iosig.transforms.traces.progressions import Progression, distinct, extremes, progressions_of, reach
from iosig.transforms.traces.rank_blocks import Block, block_of, divided, is_one, of_share, rows_first
from iosig.transforms.traces.requests import Field, Number, vectors_of

#: executions of one call by one rank whose names are looked at one by one
_MOST_EXECUTED = 1 << 22
#: distinct ways in which the names of one call grow from rank to rank
_MOST_GROWTHS = 1 << 16
_LONGS = np.iinfo(np.int64)


@dataclass(frozen=True, eq=False, slots=True)
class Member:
    """Names that the calls of one node give."""

    name: Field


@dataclass(frozen=True, slots=True)
class Pattern:
    """Members whose names differ in numbers only; how many distinct names they have, None where that is not known."""

    text: str
    file_count: int | None
    members: tuple[Member, ...]


def patterns(members: Sequence[Member]) -> list[Pattern]:
    """Return the members by pattern: a name that is always the same is its own, unless others differ from rank to rank.

    Numbers that are filled up with zeros and others are not taken for the same.
    """
    families: defaultdict[tuple[str, ...], list[Member]] = defaultdict(list)
    for member in members:
        families[member.name.texts].append(member)
    return [_pattern(own) for family in families.values() for own in _of_one_kind(family)]


def _of_one_kind(family: Sequence[Member]) -> list[list[Member]]:
    """Return members of the same texts apart by the widths of their numbers; constant ones apart if none differs."""
    shown = [[_shown(number) for number in member.name.numbers] for member in family]
    places = range(len(family[0].name.numbers))
    filled = [sorted({own[place][0] for own in shown if own[place][0] > 1}) for place in places]
    kinds: defaultdict[tuple[int, ...], list[Member]] = defaultdict(list)
    for member, own in zip(family, shown, strict=True):
        # what has enough digits by itself may be of any of the widths
        fits = [
            max(
                (width for width in filled[place] if own[place][0] == 1 and own[place][1] >= width),
                default=own[place][0],
            )
            for place in places
        ]
        kinds[tuple(fits)].append(member)
    found: list[list[Member]] = []
    for kind in kinds.values():
        if any(vectors_of(member.name) for member in kind):
            found.append(kind)
            continue
        same: defaultdict[str | None, list[Member]] = defaultdict(list)
        for member in kind:
            same[member.name.constant].append(member)
        found += same.values()
    return found


def _shown(number: Number) -> tuple[int, int]:
    """Return the width to which a number is filled up, 1 if it is not, and the fewest digits that it has."""
    if isinstance(number.values, int):
        least = number.values
    else:
        least = min((block.least() for block in map(of_share, number.values) if block.executed), default=0)
    digits = len(str(least))
    return (number.width if number.width > digits else 1), digits


def _pattern(members: list[Member]) -> Pattern:
    name = members[0].name
    places = range(len(name.numbers))
    reached = [_distinct([_parts(member.name, {place: 1}) for member in members]) for place in places]
    spans = [_span([member.name.numbers[place] for member in members]) for place in places]
    times: dict[int, int] = {}
    factor = 1
    for place in reversed(places):
        times[place] = factor
        factor *= spans[place][1] - spans[place][0] + 1
    differing = [place for place in places if spans[place][0] < spans[place][1]]
    if len(differing) == 1:
        found = reached[differing[0]]
    else:
        found = _distinct([_parts(member.name, times) for member in members])
    widths = [max(_shown(member.name.numbers[place])[0] for member in members) for place in places]
    texts = [_braces(reached[place], spans[place], widths[place]) for place in places]
    text = "".join(chain.from_iterable(zip(name.texts, [*texts, ""], strict=True)))
    return Pattern(text, None if found is None else sum(part.size for part in found), tuple(members))


def _braces(reached: tuple[Progression, ...] | None, span: tuple[int, int], width: int) -> str:
    """Return numbers as a shell would write them: `{0..96..8}`; one that is always the same as it is."""
    if reached:
        span = reached[0].start, max(part.start + reach(part) for part in reached)
    low, high = (str(end).zfill(width) for end in span)
    if low == high:
        return low
    is_even = reached is not None and len(reached) == 1 and len(reached[0].strides) == 1
    stride = reached[0].strides[0] if reached and is_even else 1
    return f"{{{low}..{high}}}" if stride == 1 else f"{{{low}..{high}..{stride}}}"


def _span(numbers: Sequence[Number]) -> tuple[int, int]:
    """Return numbers between which all values lie."""
    ends: list[int] = []
    for number in numbers:
        if isinstance(number.values, int):
            ends.append(number.values)
            continue
        for block in map(of_share, number.values):
            low, high = extremes(block.values[0][1])
            for shift, count in zip(block.shifts, block.ranks.counts, strict=True):
                reach = [end * (count - 1) for end in extremes(shift[0][1])]
                low, high = low + min(0, *reach), high + max(0, *reach)
            ends += [low, high]
    return min(ends, default=0), max(ends, default=0)


def _distinct(parts: Sequence[list[Progression] | None]) -> tuple[Progression, ...] | None:
    known = [part for own in parts if own is not None for part in own]
    return None if None in parts else distinct(known)


# ---- numbers of names


def _parts(name: Field, times: dict[int, int]) -> list[Progression] | None:
    """Return the numbers of all names: the sum of those at some places, each so many times; None if not to be had."""
    base = 0
    vectors = []
    for place, factor in times.items():
        values = name.numbers[place].values
        if isinstance(values, int):
            base += factor * values
        else:
            vectors.append((factor, values))
    if not vectors:
        return [Progression(base)]
    ranks = divided([vector for _, vector in vectors])
    if ranks is None:
        return None
    found: list[Progression] = []
    for block in ranks:
        own = _block_parts([(factor, block_of(vector, block)) for factor, vector in vectors], block, base)
        if own is None:
            return None
        found += own
    return found


def _block_parts(blocks: Sequence[tuple[int, Block]], ranks: Progression, base: int) -> list[Progression] | None:
    executed = blocks[0][1].executed
    if not executed:
        return []
    values = _added([(factor, block.values) for factor, block in blocks])
    shifts = [_added([(factor, block.shifts[dim]) for factor, block in blocks]) for dim in range(len(ranks.counts))]
    if all(map(is_one, shifts)):
        growth = tuple(rows_first(rows) for rows in shifts)
        own = _row_parts(values, executed)
        return None if own is None else [_grown(part, base, growth, ranks.counts) for part in own]
    return _listed_parts([values, *shifts], ranks.counts, base, executed)


def _added(rows: Sequence[tuple[int, Rows]]) -> Rows:
    return tuple((factor * times, row) for factor, own in rows for times, row in own)


def _grown(part: Progression, base: int, growth: tuple[int, ...], counts: tuple[int, ...]) -> Progression:
    return Progression(part.start + base, (*part.strides, *growth), (*part.counts, *counts))


def _row_parts(rows: Rows, executed: int) -> list[Progression] | None:
    """Return the numbers of rows that are added up."""
    moving = [(times, row) for times, row in rows if times and extremes(row)[0] < extremes(row)[1]]
    still = rows_first(tuple(pair for pair in rows if pair not in moving))
    if not moving:
        return [Progression(still)]
    if len(moving) == 1 and all(isinstance(stretch, Progression) for stretch in moving[0][1]):
        times, row = moving[0]
        return [
            Progression(
                still + times * stretch.start, tuple(times * stride for stride in stretch.strides), stretch.counts
            )
            for stretch in row
            if isinstance(stretch, Progression)
        ]
    if executed > _MOST_EXECUTED or not _is_small(rows):
        return None
    return progressions_of(np.unique(row_values(rows)))


def _is_small(rows: Rows) -> bool:
    """Return whether rows and their sums stay within 62 bits."""
    return sum(max(abs(times * end) for end in extremes(row)) for times, row in rows) < 1 << 62


def _listed_parts(rows: Sequence[Rows], counts: tuple[int, ...], base: int, executed: int) -> list[Progression] | None:
    """Return the numbers of names that grow differently from rank to rank from one execution to the next."""
    if executed > _MOST_EXECUTED or not all(map(_is_small, rows)):
        return None
    found = np.unique(np.array([row_values(own) for own in rows]), axis=1)
    growths, which = np.unique(found[1:], axis=1, return_inverse=True)
    if growths.shape[1] > _MOST_GROWTHS:
        return None
    return [
        _grown(part, base, tuple(growths[:, place].tolist()), counts)
        for place in range(growths.shape[1])
        for part in progressions_of(np.unique(found[0, which.reshape(-1) == place]))
    ]

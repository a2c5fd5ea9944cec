"""Find patterns of file names that differ only in numbers, `/scratch/f.{00000000..00999999}`, and count the names.

The numbers of a name are combined into a single mixed-radix number. The names of all ranks are then a set of
progressions. Distinct values are counted without expansion.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from iosig.transforms.traces.expansion import Rows, expand_rows
from iosig.transforms.traces.progressions import Progression, find_distinct, fold_ascending, row_bounds, value_span
from iosig.transforms.traces.rank_blocks import (
    Block,
    block_from_share,
    divide_ranks,
    find_block,
    is_constant_row,
    rows_first,
)
from iosig.transforms.traces.requests import Argument, Number, varying_vectors

#: maximum number of executions of a call by a rank for which names are expanded
_MAX_EXPANDED = 1 << 22
#: maximum number of distinct increments from rank to rank of the names of a call
_MAX_INCREMENTS = 1 << 16
_LONGS = np.iinfo(np.int64)


@dataclass(frozen=True, eq=False, slots=True)
class Member:
    """Names used by the calls of one node."""

    name: Argument


@dataclass(frozen=True, slots=True)
class Pattern:
    """Members with names that differ only in numbers, and the number of distinct names; None if unknown."""

    text: str
    file_count: int | None
    members: tuple[Member, ...]


def group_by_pattern(members: Sequence[Member]) -> list[Pattern]:
    """Group names by pattern.

    Parameters
    ----------
    members
        Names of calls.

    Returns
    -------
    list[Pattern]
        A constant name is a pattern of its own, unless other names with the same text vary. Padded and unpadded numbers
        are different patterns.
    """
    families: defaultdict[tuple[str, ...], list[Member]] = defaultdict(list)
    for member in members:
        families[member.name.texts].append(member)
    return [_make_pattern(group) for family in families.values() for group in _split_by_widths(family)]


def _split_by_widths(family: Sequence[Member]) -> list[list[Member]]:
    """Split members with equal text by the widths of their numbers.

    If no number varies within such a group, the group is also split by the members' constant names.
    """
    number_formats = [[_number_format(number) for number in member.name.numbers] for member in family]
    places = range(len(family[0].name.numbers))
    padded = [sorted({formats[place][0] for formats in number_formats if formats[place][0] > 1}) for place in places]
    by_widths: defaultdict[tuple[int, ...], list[Member]] = defaultdict(list)
    for member, formats in zip(family, number_formats, strict=True):
        # a number with enough digits is consistent with every width
        widths = [
            max(
                (width for width in padded[place] if formats[place][0] == 1 and formats[place][1] >= width),
                default=formats[place][0],
            )
            for place in places
        ]
        by_widths[tuple(widths)].append(member)
    groups: list[list[Member]] = []
    for group in by_widths.values():
        if any(varying_vectors(member.name) for member in group):
            groups.append(group)
            continue
        by_name: defaultdict[str | None, list[Member]] = defaultdict(list)
        for member in group:
            by_name[member.name.constant].append(member)
        groups += by_name.values()
    return groups


def _number_format(number: Number) -> tuple[int, int]:
    """Width to which a number is padded (1 if it is not), and its minimum number of digits."""
    if isinstance(number.values, int):
        minimum = number.values
    else:
        minimum = min(
            (block.lower_bound() for block in map(block_from_share, number.values) if block.execution_count), default=0
        )
    digits = len(str(minimum))
    return (number.width if number.width > digits else 1), digits


def _make_pattern(members: list[Member]) -> Pattern:
    name = members[0].name
    places = range(len(name.numbers))
    distinct_values = [
        _find_distinct([_combine_numbers(member.name, {place: 1}) for member in members]) for place in places
    ]
    ranges = [_value_range([member.name.numbers[place] for member in members]) for place in places]
    factors: dict[int, int] = {}
    factor = 1
    for place in reversed(places):
        factors[place] = factor
        factor *= ranges[place][1] - ranges[place][0] + 1
    varying_places = [place for place in places if ranges[place][0] < ranges[place][1]]
    if len(varying_places) == 1:
        names = distinct_values[varying_places[0]]
    else:
        names = _find_distinct([_combine_numbers(member.name, factors) for member in members])
    widths = [max(_number_format(member.name.numbers[place])[0] for member in members) for place in places]
    texts = [_format_braces(distinct_values[place], ranges[place], widths[place]) for place in places]
    text = "".join(chain.from_iterable(zip(name.texts, [*texts, ""], strict=True)))
    return Pattern(text, None if names is None else sum(part.size for part in names), tuple(members))


def _format_braces(distinct_values: tuple[Progression, ...] | None, span: tuple[int, int], width: int) -> str:
    """Format numbers as a shell brace expansion such as `{0..96..8}`; a constant without braces."""
    if distinct_values:
        span = distinct_values[0].start, max(part.start + value_span(part) for part in distinct_values)
    low, high = (str(end).zfill(width) for end in span)
    if low == high:
        return low
    is_even = distinct_values is not None and len(distinct_values) == 1 and len(distinct_values[0].strides) == 1
    stride = distinct_values[0].strides[0] if distinct_values and is_even else 1
    return f"{{{low}..{high}}}" if stride == 1 else f"{{{low}..{high}..{stride}}}"


def _value_range(numbers: Sequence[Number]) -> tuple[int, int]:
    """Return bounds that contain every value of the numbers; (0, 0) if there are none."""
    ends: list[int] = []
    for number in numbers:
        if isinstance(number.values, int):
            ends.append(number.values)
            continue
        for block in map(block_from_share, number.values):
            low, high = row_bounds(block.values[0][1])
            for shift, count in zip(block.shifts, block.ranks.counts, strict=True):
                value_span = [end * (count - 1) for end in row_bounds(shift[0][1])]
                low, high = low + min(0, *value_span), high + max(0, *value_span)
            ends += [low, high]
    return min(ends, default=0), max(ends, default=0)


def _find_distinct(parts: Sequence[list[Progression] | None]) -> tuple[Progression, ...] | None:
    progressions = [part for group in parts if group is not None for part in group]
    return None if None in parts else find_distinct(progressions)


# ---- numbers of names


def _combine_numbers(name: Argument, weights: dict[int, int]) -> list[Progression] | None:
    """Combine a name's numbers linearly, for all ranks and executions, to progressions; None if unknown."""
    base = 0
    vectors = []
    for place, factor in weights.items():
        values = name.numbers[place].values
        if isinstance(values, int):
            base += factor * values
        else:
            vectors.append((factor, values))
    if not vectors:
        return [Progression(base)]
    ranks = divide_ranks([vector for _, vector in vectors])
    if ranks is None:
        return None
    parts: list[Progression] = []
    for block in ranks:
        block_parts = _fold_block([(factor, find_block(vector, block)) for factor, vector in vectors], block, base)
        if block_parts is None:
            return None
        parts += block_parts
    return parts


def _fold_block(blocks: Sequence[tuple[int, Block]], ranks: Progression, base: int) -> list[Progression] | None:
    executed = blocks[0][1].execution_count
    if not executed:
        return []
    values = _multiply_out([(factor, block.values) for factor, block in blocks])
    shifts = [
        _multiply_out([(factor, block.shifts[dim]) for factor, block in blocks]) for dim in range(len(ranks.counts))
    ]
    if all(map(is_constant_row, shifts)):
        increments = tuple(rows_first(rows) for rows in shifts)
        parts = _fold_rows(values, executed)
        return None if parts is None else [_extend_ranks(part, base, increments, ranks.counts) for part in parts]
    return _fold_irregular([values, *shifts], ranks.counts, base, executed)


def _multiply_out(rows: Sequence[tuple[int, Rows]]) -> Rows:
    return tuple((factor * weight, row) for factor, combination in rows for weight, row in combination)


def _extend_ranks(part: Progression, base: int, increments: tuple[int, ...], counts: tuple[int, ...]) -> Progression:
    return Progression(part.start + base, (*part.strides, *increments), (*part.counts, *counts))


def _fold_rows(rows: Rows, executed: int) -> list[Progression] | None:
    """Fold the values of a linear combination of rows into progressions."""
    varying_rows = [(weight, row) for weight, row in rows if weight and row_bounds(row)[0] < row_bounds(row)[1]]
    constant = rows_first(tuple(pair for pair in rows if pair not in varying_rows))
    if not varying_rows:
        return [Progression(constant)]
    if len(varying_rows) == 1 and all(isinstance(stretch, Progression) for stretch in varying_rows[0][1]):
        weight, row = varying_rows[0]
        return [
            Progression(
                constant + weight * stretch.start, tuple(weight * stride for stride in stretch.strides), stretch.counts
            )
            for stretch in row
            if isinstance(stretch, Progression)
        ]
    if executed > _MAX_EXPANDED or not _is_small(rows):
        return None
    return fold_ascending(np.unique(expand_rows(rows)))


def _is_small(rows: Rows) -> bool:
    """Whether rows and their sums fit into 62 bits."""
    return sum(max(abs(weight * end) for end in row_bounds(row)) for weight, row in rows) < 1 << 62


def _fold_irregular(
    rows: Sequence[Rows], counts: tuple[int, ...], base: int, executed: int
) -> list[Progression] | None:
    """Fold the values of names with different increments per execution."""
    if executed > _MAX_EXPANDED or not all(map(_is_small, rows)):
        return None
    columns = np.unique(np.array([expand_rows(combination) for combination in rows]), axis=1)
    increment_columns, indexes = np.unique(columns[1:], axis=1, return_inverse=True)
    if increment_columns.shape[1] > _MAX_INCREMENTS:
        return None
    return [
        _extend_ranks(part, base, tuple(increment_columns[:, place].tolist()), counts)
        for place in range(increment_columns.shape[1])
        for part in fold_ascending(np.unique(columns[0, indexes.reshape(-1) == place]))
    ]

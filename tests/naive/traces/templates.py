"""Naive implementation of `iosig.transforms.traces.templates`: call by call, number by number."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

#: Level, module, function and arguments.
Signature = tuple[int, str, str, str]
#: Common part of calls: module, function, level, the texts around the numbers, and the widths of the numbers.
Key = tuple[str, str, int, tuple[str, ...], tuple[int, ...]]

_DIGITS = "0123456789"
_MOST_DIGITS = 18


def split(arguments: str) -> tuple[list[str], list[str]]:
    """Return the texts around numbers, and the numbers as written."""
    texts, numbers = [""], []
    is_in_number = False
    for character in arguments:
        if character not in _DIGITS:
            texts[-1] += character
        elif is_in_number and len(numbers[-1]) < _MOST_DIGITS:
            numbers[-1] += character
            continue
        else:
            numbers.append(character)
            texts.append("")
        is_in_number = character in _DIGITS
    return texts, numbers


def signed(module: str, texts: list[str], numbers: list[str]) -> tuple[list[str], list[str]]:
    """Move the signs of statuses from the texts to the numbers, unless a number of the call has a leading 0."""
    if module not in ("MPI", "MPIIO"):
        return texts, numbers
    moved = [
        place
        for first in range(len(numbers) - 1)
        if re.search(r"(^| )\[-?$", texts[first] if first == 0 else "x" + texts[first])
        and texts[first + 1] in ("_", "_-")
        and texts[first + 2].startswith("]")
        for place in (first, first + 1)
        if texts[place].endswith("-")
    ]
    if any(numbers[place].startswith("0") for place in moved):
        return texts, numbers
    for place in moved:
        texts, numbers = [*texts], [*numbers]
        texts[place] = texts[place][:-1]
        numbers[place] = "-" + numbers[place]
    return texts, numbers


def keys(signatures: Sequence[Signature]) -> list[tuple[Key, list[int]]]:
    """Return the template of each signature, and the numbers in its slots."""
    parts = [
        (module, function, level, *signed(module, *split(arguments)))
        for level, module, function, arguments in signatures
    ]
    alike = defaultdict(list)
    for module, function, level, texts, numbers in parts:
        alike[module, function, level, tuple(texts)].append(numbers)
    found = []
    for module, function, level, texts, numbers in parts:
        common = _widths(alike[module, function, level, tuple(texts)])
        widths = [_own(text) for text in numbers] if common is None else common
        found.append(((module, function, level, tuple(texts), tuple(widths)), [int(text) for text in numbers]))
    return found


def _own(text: str) -> int:
    return len(text) if text.startswith("0") else 1


def _widths(rows: list[list[str]]) -> list[int] | None:
    """Return a width for each number of equal calls, or None if a number cannot be restored from it."""
    widths = [max(map(_own, column)) for column in zip(*rows, strict=True)]
    is_sound = all(str(int(text)).zfill(width) == text for row in rows for text, width in zip(row, widths, strict=True))
    return widths if is_sound else None

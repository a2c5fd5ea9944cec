"""Expand lists of hosts as schedulers write them: Slurm's `cn[01-04,07]` and PBS's `cn01/0*8+cn02/0-7`."""

from __future__ import annotations

import re
from itertools import product

#: maximum number of hosts in an expanded list
MAX_HOSTS = 20_000
#: pattern of an entry, which ends at a comma or plus outside brackets
_ENTRY = re.compile(r"(?:[^\[\],+]|\[[^\]]*\])+")
_PARTS = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")


def expand(hosts: str) -> list[str] | None:
    """Expand a list to its distinct hosts, in order; None if it is malformed or exceeds MAX_HOSTS."""
    if _ENTRY.sub("", hosts).strip(",+ "):
        # the brackets are unbalanced
        return None
    expanded: dict[str, None] = {}
    for entry in _ENTRY.findall(hosts):
        # drop PBS's processor numbers, which follow a slash
        names = _names(entry.partition("/")[0].strip(), MAX_HOSTS - len(expanded))
        if names is None:
            return None
        expanded |= dict.fromkeys(names)
    return list(expanded) or None


def _names(entry: str, room: int) -> list[str] | None:
    """Expand the brackets of one entry, which contain numbers and ranges."""
    parts: list[list[str]] = []
    count = 1
    for numbers, plain in _PARTS.findall(entry):
        alternatives = [plain] if plain else _numbers(numbers, room)
        if alternatives is None or (count := count * len(alternatives)) > room:
            return None
        parts.append(alternatives)
    return ["".join(name) for name in product(*parts)]


def _numbers(text: str, room: int) -> list[str] | None:
    numbers: list[str] = []
    for piece in text.split(","):
        match = _RANGE.fullmatch(piece.strip())
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if not 0 <= last - first < room - len(numbers):
            return None
        numbers += [str(number).zfill(len(match[1])) for number in range(first, last + 1)]
    return numbers

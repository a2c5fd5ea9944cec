"""Naive implementation of `iosig.warehouse.sources.polls.mmperfmon`: query by query, cell by cell."""

from __future__ import annotations

import re
from collections.abc import Iterator

NAMES = {
    "gpfs_nsdds_bytes_read": "read",
    "gpfs_nsdds_bytes_written": "write",
    "gpfs_fs_bytes_read": "read",
    "gpfs_fs_bytes_written": "write",
}


def moved(text: str) -> Iterator[tuple[str, str, str, float | None]]:
    """Yield the key without its metric, the direction, the unparsed time and the bytes of each cell."""
    for query in re.split(r"(?m)^\s*Legend:\s*$", text)[1:]:
        keys: list[str] = []
        place, width = 0, 0
        for line in query.split("\n"):
            words = line.split()
            if not words:
                continue
            if re.fullmatch(r"[0-9]+:", words[0]) and len(words) == 2:
                keys.append(words[1])
            elif words[0] == "Row":
                place, width = place + width, len(words) - 2
            elif len(words) == width + 2:
                for key, cell in zip(keys[place : place + width], words[2:], strict=False):
                    whose, _, metric = key.rpartition("|")
                    if metric in NAMES and re.fullmatch(r"[0-9]+(\.[0-9]+)?|null", cell):
                        yield whose, NAMES[metric], words[1], None if cell == "null" else float(cell)

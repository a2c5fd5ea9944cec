"""Ranks as people write them: 0-7,12."""

from __future__ import annotations

import re

from warehouse.errors import UsageError

_SPAN = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?")


def spans(text: str, process_count: int) -> tuple[range, ...]:
    """Return the spans of ranks that a list such as `0-31,100` names, in its order.

    Raises UsageError where it is no such list, or names ranks beyond those of so many processes.
    """
    found: list[range] = []
    for part in text.split(","):
        match = _SPAN.fullmatch(part.strip())
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise UsageError(f"--ranks {text}: {part!r} names no ranks; write 0-7 or 0-7,12.")
        found.append(range(int(match[1]), int(match[2] or match[1]) + 1))
    if beyond := [span[-1] for span in found if span.stop > process_count]:
        raise UsageError(f"The trace has the ranks 0 to {process_count - 1:,}; {beyond[0]:,} is none of them.")
    return tuple(found)

"""Read predictions, the lines that `iosig predict` prints, with one evaluation each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source

_MARK = re.compile(rb'"format"\s*:\s*"iosig-prediction/')


def sniff(head: Head) -> bool:
    """Recognize an object with the format of a prediction in the first lines."""
    return any(line.lstrip().startswith(b"{") and _MARK.search(line) for line in head.start.splitlines())


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read one file; an invalid or truncated line is refused with its reason."""
    from iosig.warehouse.sources.predictions import lines

    return lines.read_batches(path)


SOURCE = Source(
    name="predictions",
    doc="Predictions as JSON Lines, as `iosig predict` prints them.",
    kind="predictions",
    sniff=sniff,
    read=read,
    precedence=10,
)

"""Darshan logs: counters of a run's I/O layers, heat maps, and, with DXT, every read and write.

Formats 3.00 to 3.41, read by the library of the `darshan` wheel in a child process, after a check of the log's
structure without the library: see `layout`, `reading` and `rows`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source

_MAGIC = (6567223).to_bytes(8, "little")
_START = re.compile(rb"\d\.\d\d\0{4}")


def sniff(head: Head) -> bool:
    """Recognize a log by its version, or by the magic number in either byte order."""
    return head.start[8:16] in (_MAGIC, _MAGIC[::-1]) or _START.match(head.start) is not None


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read a log, optionally compressed once more; it needs no further settings."""
    from iosig.warehouse.sources.darshan.rows import read_batches
    from iosig.warehouse.sources.files.opening import plain_file

    with plain_file(path) as plain:
        yield from read_batches(plain, path.name)


SOURCE = Source(
    name="darshan",
    doc="Darshan log: counters per module and file, heat maps, DXT segments, Lustre stripes.",
    kind="traces",
    sniff=sniff,
    read=read,
    # its first bytes are unambiguous, and nights have thousands of these logs
    precedence=20,
)

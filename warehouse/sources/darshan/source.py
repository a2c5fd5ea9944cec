"""Read Darshan logs: counters of a run's I/O layers, heat maps, and, with DXT, every read and write.

Supported are formats 3.00 to 3.41. The structure of a log is checked first (`layout`). Then the library from the
`darshan` wheel reads the log in a child process (`reading`), and the result is converted to rows (`rows`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source, build_near_miss

_MAGIC = (6567223).to_bytes(8, "little")
_START = re.compile(rb"\d\.\d\d\0{4}")


def sniff(head: Head) -> bool:
    """Recognize a log by its version, or by the magic number in either byte order."""
    return head.start[8:16] in (_MAGIC, _MAGIC[::-1]) or _START.match(head.start) is not None


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read a log, optionally compressed once more; no further settings are needed."""
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
    # the first bytes are unambiguous, and a night may have thousands of these logs
    precedence=20,
    find_near_miss=build_near_miss(
        r"^# darshan log version: ",
        "This is printed by darshan-parser or darshan-dxt-parser, not a log.",
        "Land the log itself.",
    ),
)

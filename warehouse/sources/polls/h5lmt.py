"""Read pyLMT archives (`.h5lmt`): server-side throughput of a Lustre file system, one file per day.

Times are RIGHT edges in epoch seconds. If a day is unfinished, the arrays are filled with unmarked zeros after its last
poll. Therefore steps after the last one with traffic or a working server count as not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from iosig.warehouse.sources.polls import hdf5
from iosig.warehouse.sources.polls.grids import read_grid
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


# HDF5 stores names anywhere in the file, so the start of a day's archive contains only some names.
_NAMES = (b"FSStepsDataSet", b"FSStepsGroup", b"FSMissingDataSet", b"OSTReadGroup", b"OSTBulkReadDataSet")


def sniff(head: Head) -> bool:
    """Recognize HDF5 with names that only pyLMT uses."""
    return head.start.startswith(HDF5_MAGIC) and any(name in head.start for name in _NAMES)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read a pyLMT archive; the file system is the command's, else the archive's `fs`, else the targets' prefix."""
    return read_grid(hdf5.pylmt, path, reading, "right")


SOURCE = Source(
    name="h5lmt",
    doc="pyLMT archive (HDF5) of Lustre throughput; its times are right edges.",
    kind="polls",
    sniff=sniff,
    read=read,
)

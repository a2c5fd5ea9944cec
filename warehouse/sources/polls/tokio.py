"""Read TOKIO time series archives (`.hdf5`): throughput per storage target; times are LEFT edges, -0.0 is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from iosig.warehouse.sources.polls import hdf5
from iosig.warehouse.sources.polls.grids import read_grid
from iosig.warehouse.sources.polls.h5lmt import HDF5_MAGIC
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source


def sniff(head: Head) -> bool:
    """Recognize HDF5 that contains TOKIO's group with throughput."""
    return head.start.startswith(HDF5_MAGIC) and b"datatargets" in head.start


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read a TOKIO archive; polls get right edges, one step after the archive's times."""
    return read_grid(hdf5.tokio, path, reading, "left")


SOURCE = Source(
    name="tokio",
    doc="TOKIO time series archive (HDF5) of throughput per target; its times are left edges.",
    kind="polls",
    sniff=sniff,
    read=read,
)

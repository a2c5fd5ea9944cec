"""Read Darshan logs completely, as landing does, and provide a child that crashes on some files."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from iosig.warehouse.sources.darshan import reading
from iosig.warehouse.sources.files.child import Arrays

if TYPE_CHECKING:
    import polars as pl

SHIPPED = Path(str(files("darshan")))


def tables_of(path: Path) -> dict[str, pl.DataFrame]:
    """Return all rows of a log by table; fail on duplicate keys."""
    from iosig.warehouse.contracts import TABLES
    from iosig.warehouse.sources.darshan.source import SOURCE
    from iosig.warehouse.sources.protocol import Reading
    from tests.warehouse.sources import batch_reading

    tables = batch_reading.tables_of(SOURCE.read(path, Reading()))
    for table in TABLES:
        if table.name in tables and table.key:
            assert not tables[table.name].select(table.key).is_duplicated().any(), table.name
    return tables


def read_log_batched(path: str, parts: str) -> Iterator[list[Arrays]]:
    """Read a log; crash or hang if the name of the log says so."""
    if "crashing" in path:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "hanging" in path:
        time.sleep(60)
    yield from reading.read_log_batched(path, parts)

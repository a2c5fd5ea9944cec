"""Many small traces, each of another content, and what is landed of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from iosig.streams.landing import Arrival
from iosig.warehouse.contracts import Table
from iosig.warehouse.store import landing, models
from iosig.warehouse.store.store import Store
from tests.flushed_traces import IO_TIME, line_of
from tests.nights import land_files

#: a job log that is as small
JOBS = "JobID|User|JobName|NNodes|Start|End|State\n1|ann|x|1|2026-03-03T00:00:00Z|2026-03-03T01:00:00Z|COMPLETED\n"
#: what cannot be read of it is the second phase; the rest can
TORN = b'{"write_sync": {"bandwidth": {"b_rank_avr": [1.0\n'


def write(folder: Path, count: int, first: int = 0) -> list[str]:
    """Write so many traces of a few phases, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"run{number:03}.jsonl" for number in range(first, first + count)]
    for number, path in enumerate(paths, first):
        phases = [(1e9 + number, 10.0 * step, 2.0) for step in range(6 + number % 3)]
        path.write_bytes(line_of(("write_sync", phases), ("read_sync", [(5e8, 0.0, 1.0)])) + IO_TIME)
    return [str(path) for path in paths]


def land(store: Store, paths: Iterable[str], **options: bool) -> list[Arrival]:
    """Land paths in one call; `options` are those of `land_files`."""
    return land_files(store, *paths, **options)


def rows(store: Store, table: Table) -> pl.DataFrame:
    """Return the landed rows of a table that count, with their landing and their place in it."""
    parts = [(lot, part) for lot in landing.ledger(store) for part in lot.parts]
    with models.engine(store.root / "spill", "1GB") as connection:
        models.expose_parts(store, connection, table, parts)
        found: pl.DataFrame = connection.sql(f'from landed."{table.name}"').pl()
    return found.sort("part_order", "part_row")

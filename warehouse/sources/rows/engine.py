"""DuckDB for one input: it reads many lines at once, and sorts what exceeds the memory on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import polars as pl

from iosig.warehouse.engine_paths import duckdb_paths
from iosig.warehouse.sources.rows import traced

if TYPE_CHECKING:
    import duckdb

#: what sorting may take before it goes to disk
_SORT_MEMORY = "1GiB"


class Engine:
    """A DuckDB of its own, opened on first use: opening takes longer than reading a small input."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "connection" in self.__dict__:
            self.connection.close()

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The connection, which spills into the scratch folder."""
        import duckdb

        spill = str(self.scratch / "spill")
        connection = duckdb.connect(config={"memory_limit": _SORT_MEMORY, "temp_directory": spill})
        connection.execute("set enable_progress_bar = false")
        connection.execute("set produce_arrow_string_view = true")
        return connection

    def rows(self, query: str, paths: Sequence[Path]) -> Iterator[pl.DataFrame]:
        """Yield the result of a query about the Parquet files `$paths`, a batch of rows at a time."""
        found = self.connection.sql(query, params={"paths": duckdb_paths(paths)})
        for batch in found.to_arrow_reader(traced.BATCH_ROWS):
            rows = pl.DataFrame(pl.from_arrow(batch))
            if not rows.is_empty():
                yield rows

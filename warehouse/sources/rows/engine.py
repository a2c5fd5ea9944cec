"""Provide a DuckDB connection for one input, to parse many lines at once and sort data larger than memory."""

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

#: memory that a sort may use before it spills to disk
_SORT_MEMORY = "1GiB"


class InputDatabase:
    """A private DuckDB connection, opened on first use because opening takes longer than reading a small input."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "connection" in self.__dict__:
            self.connection.close()

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """Connection that spills into the scratch folder."""
        import duckdb

        spill = str(self.scratch / "spill")
        connection = duckdb.connect(config={"memory_limit": _SORT_MEMORY, "temp_directory": spill})
        connection.execute("set enable_progress_bar = false")
        connection.execute("set produce_arrow_string_view = true")
        return connection

    def rows(self, query: str, paths: Sequence[Path]) -> Iterator[pl.DataFrame]:
        """Yield the result of a query on the Parquet files `$paths`, in batches."""
        result = self.connection.sql(query, params={"paths": duckdb_paths(paths)})
        for batch in result.to_arrow_reader(traced.BATCH_ROWS):
            rows = pl.DataFrame(pl.from_arrow(batch))
            if not rows.is_empty():
                yield rows

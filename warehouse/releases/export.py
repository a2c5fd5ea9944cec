"""Plain files out of a release: Parquet that carries units and docs, or CSV."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from warehouse.contracts import Table, arrow
from warehouse.errors import UsageError
from warehouse.placing import moved_into_place
from warehouse.releases.reading import opened, published
from warehouse.releases.releases import Release
from warehouse.store.store import Store

_BATCH_ROWS = 100_000


def export_table(store: Store, release: Release, table_name: str, target: Path) -> int:
    """Write one table of a release to a file and return its rows; the ending `.csv` makes it CSV.

    Raises UsageError if no published table has that name.
    """
    table = _published(table_name)
    with opened(store, release, table.name) as connection:
        names = ", ".join(f'"{name}"' for name in table.column_names)
        reader = connection.sql(f'select {names} from "{table.name}"').to_arrow_reader(_BATCH_ROWS)
        with moved_into_place(target.absolute()) as temporary:
            if target.suffix.lower() == ".csv":
                with temporary.open("wb") as file:
                    return write_csv(reader, file)
            return _write_parquet(reader, table, temporary)


def _published(name: str) -> Table:
    tables = {table.name: table for table in published()}
    if name not in tables:
        raise UsageError(f"No table is called {name!r}; a release holds {', '.join(sorted(tables))}.")
    return tables[name]


def _write_parquet(reader: pa.RecordBatchReader, table: Table, path: Path) -> int:
    contract = arrow.schema(table)
    # A release that is older than a column has NULL there, whatever the contract says by now.
    schema = pa.schema([field.with_nullable(True) for field in contract], contract.metadata)
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_table(pa.Table.from_batches([batch]).cast(schema))
            count += batch.num_rows
    return count


def write_csv(reader: pa.RecordBatchReader, file: IO[bytes]) -> int:
    """Write record batches as CSV with a header, lists as JSON texts; returns the rows."""
    lists = [place for place, kind in enumerate(reader.schema.types) if pa.types.is_nested(kind)]
    schema = reader.schema
    for place in lists:
        schema = schema.set(place, pa.field(schema.field(place).name, pa.string()))
    count = 0
    with csv.CSVWriter(file, schema) as writer:
        for batch in reader:
            columns = [_texts(column) if place in lists else column for place, column in enumerate(batch.columns)]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            count += batch.num_rows
    return count


def _texts(column: pa.Array) -> pa.Array:
    return pa.array([None if value is None else json.dumps(value) for value in column.to_pylist()], pa.string())

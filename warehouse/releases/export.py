"""Export tables of a release to plain files: Parquet with units and docs in its metadata, or CSV."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from iosig.warehouse.contracts import Table, arrow
from iosig.warehouse.errors import UsageError, meant
from iosig.warehouse.placing import atomic_write
from iosig.warehouse.releases.reading import open_duckdb, open_release, scan_rows
from iosig.warehouse.releases.releases import Release, list_published_tables
from iosig.warehouse.store.store import Store

_BATCH_ROWS = 100_000


#: supported file name extensions
ENDINGS = (".parquet", ".csv")
#: characters at which spreadsheets start a formula
_FORMULA = r"^[=+\-@\t\r]"


def export_table(store: Store, release: Release, table_name: str, target: Path, *, is_raw: bool = False) -> int:
    """Write one table of a release to a Parquet or CSV file, by its extension; return the number of rows.

    Raises UsageError if no published table has that name, or the extension is not supported.
    """
    ending = target.suffix.lower()
    if ending not in ENDINGS:
        raise UsageError(
            f"A table is written as Parquet or CSV: the file's name must end in .parquet or .csv, not {target.name!r}. "
            "A whole release (--all) goes to .duckdb or a folder, a feed (--feed) to .json or .parquet."
        )
    table = require_published(table_name)
    with atomic_write(target.absolute()) as temporary, temporary.open("wb") as file:
        return write_table(store, release, table, file, ending[1:], is_raw=is_raw)


def write_table(
    store: Store, release: Release, table: Table, file: IO[bytes], format_name: str, *, is_raw: bool = False
) -> int:
    """Write one table of a release as `parquet` or `csv` to an open file; return the number of rows."""
    with open_release(store, release, table.name, metric=None) as connection:
        names = ", ".join(f'"{name}"' for name in table.column_names)
        reader = connection.sql(f'select {names} from "{table.name}"').to_arrow_reader(_BATCH_ROWS)
        if format_name == "csv":
            return write_csv(reader, file, is_raw=is_raw)
        return _write_parquet(reader, table, file)


def join_files(table: Table, files: Sequence[Path], target: Path) -> int:
    """Concatenate a table's files, which may lack columns, into one file; return the number of rows."""
    with open_duckdb() as connection:
        columns = ", ".join(f'"{name}"' for name in table.column_names)
        rows = scan_rows(connection, table, files).select(columns)
        with target.open("wb") as file:
            return _write_parquet(rows.to_arrow_reader(_BATCH_ROWS), table, file)


def require_published(name: str) -> Table:
    """Return the published table of that name. Raises UsageError, with the available names, if no such table exists."""
    tables = {table.name: table for table in list_published_tables()}
    if name not in tables:
        names = ", ".join(sorted(tables))
        raise UsageError(f"No table is called {name!r}.{meant(name, tables)} A release has the tables {names}.")
    return tables[name]


def _write_parquet(reader: pa.RecordBatchReader, table: Table, file: IO[bytes]) -> int:
    contract = arrow.schema(table)
    # A release that is older than a column has NULL there, even if the current contract forbids it.
    schema = pa.schema([field.with_nullable(True) for field in contract], contract.metadata)
    count = 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_table(pa.Table.from_batches([batch]).cast(schema))
            count += batch.num_rows
    return count


def write_csv(reader: pa.RecordBatchReader, file: IO[bytes], *, is_raw: bool = False) -> int:
    """Write record batches as CSV with a header, with lists as JSON; return the number of rows.

    Unless raw output is requested, a string that a spreadsheet would interpret as a formula gets a leading apostrophe.
    """
    schema = pa.schema([_csv_field(field, is_raw) for field in reader.schema])
    count = 0
    with csv.CSVWriter(file, schema) as writer:
        for batch in reader:
            columns = [_csv_cells(column, is_raw) for column in batch.columns]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            count += batch.num_rows
    return count


def _csv_field(field: pa.Field, is_raw: bool) -> pa.Field:
    name = field.name if is_raw or not re.match(_FORMULA, field.name) else f"'{field.name}"
    return pa.field(name, pa.string() if pa.types.is_nested(field.type) else field.type)


def _csv_cells(column: pa.Array, is_raw: bool) -> pa.Array:
    if pa.types.is_nested(column.type):
        return pa.array([None if value is None else json_text(value) for value in column.to_pylist()], pa.string())
    if is_raw or not pa.types.is_string(column.type):
        return column
    return pc.if_else(pc.match_substring_regex(column, _FORMULA), pc.binary_join_element_wise("'", column, ""), column)


def json_text(value: Any) -> str:
    """Serialize a value as JSON, with null for NaN and infinities."""
    return json.dumps(_finite(value), default=_plain, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)

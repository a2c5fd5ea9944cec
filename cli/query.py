"""`iosig sql`: query a release in SQL."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.options import GlobalOptions, json_option, raw_csv_option, release_option, select_release
from iosig.cli.printing import binary_stdout, say, show, show_records
from iosig.cli.query_limits import batches, limit_memory
from iosig.warehouse.errors import MachineFault, UsageError

if TYPE_CHECKING:
    import duckdb

_ROW_LIMIT = 500
#: the exit code after Ctrl-C
_INTERRUPTED = 130


@click.command("sql")
@click.argument("query")
@release_option
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["table", "records", "csv", "json", "jsonl", "parquet"]),
    default="table",
    show_default=True,
    help=(
        "Output format. records: one column per line; json: one array; jsonl: one row per line; parquet: for pipes "
        "and files."
    ),
)
@raw_csv_option
@json_option
@click.pass_obj
def sql_command(
    warehouse: GlobalOptions, query: str, release_id: str | None, format_name: str, is_raw: bool, as_json: bool
) -> int:
    """Query a release in SQL (DuckDB), read-only; list its tables with `iosig sql "show tables"`.

    `describe TABLE` shows its columns with units and docs, and an example; `summarize TABLE` their statistics. A query
    names tables, never files. Limits: 100 levels of brackets, 2,000 keywords and operators, 1 MB of text; a result of
    1,000 columns and 64 MiB per row; 2 GB of memory and 16 GB of temporary files.
    """
    import duckdb

    from iosig.flows.faults import machine_fault
    from iosig.warehouse.interrupts import forward_interrupts
    from iosig.warehouse.releases.reading import MEMORY_LIMIT, SPILL_LIMIT, open_release, spill_folder
    from iosig.warehouse.releases.sentences import sentence
    from iosig.warehouse.releases.statements import find_described_table, require_reading

    with (
        limit_memory(),
        open_release(warehouse.store, select_release(warehouse.store, release_id), query, metric=None) as connection,
    ):
        require_reading(connection, query)
        described = find_described_table(connection, query)
        try:
            with forward_interrupts(connection.interrupt, partial(_end, spill_folder(connection))):
                relation = _run_query(connection, query, described)
                if relation is not None:
                    _print(relation, "document" if as_json else format_name, is_raw)
            if described and format_name == "table" and not as_json:
                _print_example(described)
        except (duckdb.OutOfMemoryException, MemoryError) as error:
            raise MachineFault(
                f"Out of memory: the query needs more than {MEMORY_LIMIT} and {SPILL_LIMIT} of temporary files. "
                "Select fewer rows or columns, or export the tables."
            ) from error
        except (duckdb.ProgrammingError, duckdb.DataError, duckdb.PermissionException) as error:
            raise UsageError(sentence(error, query)) from error
        except duckdb.Error as error:
            raise machine_fault(error, warehouse.store.root) or UsageError(sentence(error, query)) from error
        except (ArithmeticError, ValueError, RuntimeError) as error:
            raise UsageError(f"A value of the result cannot be shown as {format_name}: {error}.") from error
    return 0


def _end(spill: str) -> None:
    """End this process if a query ignores Ctrl-C: some DuckDB functions run for hours on one value."""
    if spill:
        shutil.rmtree(spill, ignore_errors=True)
    os._exit(_INTERRUPTED)


def _run_query(connection: duckdb.DuckDBPyConnection, query: str, name: str | None) -> duckdb.DuckDBPyRelation | None:
    """Run a query and return its relation; `describe` results include units and docs."""
    from iosig.warehouse.releases.sentences import description

    if name is None:
        return connection.sql(query)
    table = connection.table(name)
    docs = description(name, dict(zip(table.columns, map(str, table.types), strict=True)))
    if docs is None:
        return connection.sql(query)
    import pyarrow as pa

    return connection.from_arrow(pa.table({column: pa.array(cells, pa.string()) for column, cells in docs.items()}))


def _print(relation: duckdb.DuckDBPyRelation, format_name: str, is_raw: bool) -> None:
    if format_name == "csv":
        from iosig.warehouse.releases.export import write_csv

        write_csv(batches(relation), binary_stdout("csv"), is_raw=is_raw)
    else:
        _PRINTERS[format_name](relation)


def _print_table(relation: duckdb.DuckDBPyRelation) -> None:
    rows = _first_rows(relation)
    title = f"The first {_ROW_LIMIT} rows; --format csv prints all" if len(rows) > _ROW_LIMIT else ""
    cells = [[_shown(value) for value in row.values()] for row in rows[:_ROW_LIMIT]]
    show(title, relation.columns, cells, alternatives="--wide, --format records")


def _print_example(name: str) -> None:
    from iosig.warehouse.releases.views import find_example

    example = find_example(name.lower())
    if example is not None:
        say(f"Example: {example.question}")
        click.echo(example.query)


def _first_rows(relation: duckdb.DuckDBPyRelation) -> list[dict[str, Any]]:
    """Return the displayed rows, and one more to detect omitted rows."""
    return [row for batch in batches(relation.limit(_ROW_LIMIT + 1)) for row in batch.to_pylist()]


def _print_records(relation: duckdb.DuckDBPyRelation) -> None:
    rows = _first_rows(relation)
    show_records(relation.columns, [[_shown(value) for value in row.values()] for row in rows[:_ROW_LIMIT]])
    if len(rows) > _ROW_LIMIT:
        click.echo(f"These are the first {_ROW_LIMIT} rows; --format csv prints all.", err=True)


def _shown(value: Any) -> Any:
    """Format a value as a cell: instants to the second, long lists by their ends."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ").removesuffix("+00:00").removesuffix(".000000")
    if isinstance(value, list):
        texts = [_shown_number(item) for item in (value if len(value) <= 6 else [*value[:3], "…", *value[-2:]])]
        return "[" + ", ".join(texts) + (f"] ({len(value)})" if len(value) > 6 else "]")
    return value


def _shown_number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "NULL" if value is None else str(value)


def _print_document(relation: duckdb.DuckDBPyRelation) -> None:
    """Print the result with the types of its columns, a `RowsDocument` written row by row."""
    types = zip(relation.columns, map(str, relation.types), strict=True)
    columns = json.dumps([{"name": name, "type": kind} for name, kind in types])
    click.echo(f'{{"format": "iosig-rows/1",\n"columns": {columns},\n"rows": ', nl=False)
    _print_json(relation)
    click.echo("}")


def _print_json(relation: duckdb.DuckDBPyRelation) -> None:
    """Print one JSON array, with one line per row."""
    before = "[\n"
    for line in _lines(relation):
        click.echo(before + line, nl=False)
        before = ",\n"
    click.echo("[]" if before == "[\n" else "\n]")


def _print_jsonl(relation: duckdb.DuckDBPyRelation) -> None:
    for line in _lines(relation):
        click.echo(line)


def _lines(relation: duckdb.DuckDBPyRelation) -> Iterator[str]:
    from iosig.warehouse.releases.export import json_text

    return (json_text(row) for batch in batches(relation) for row in batch.to_pylist())


def _print_parquet(relation: duckdb.DuckDBPyRelation) -> None:
    import pyarrow.parquet as pq

    reader = batches(relation)
    with pq.ParquetWriter(binary_stdout("parquet"), reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)


_PRINTERS: dict[str, Callable[[duckdb.DuckDBPyRelation], None]] = {
    "table": _print_table,
    "records": _print_records,
    "document": _print_document,
    "json": _print_json,
    "jsonl": _print_jsonl,
    "parquet": _print_parquet,
}

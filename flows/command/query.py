"""`iosig sql` and `iosig export`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.command.options import release_option
from warehouse.errors import UsageError
from warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

_ROW_LIMIT = 500
_BATCH_ROWS = 100_000


@click.command("sql")
@click.argument("query")
@release_option
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    default="table",
    show_default=True,
    help="How to print the result; parquet is for a pipe or a file.",
)
@click.pass_obj
def sql_command(obj: tuple[Store, Path | None], query: str, release_id: str | None, format_name: str) -> int:
    """Query a release in SQL (DuckDB), read-only; `iosig sql "show tables"` lists what there is."""
    import duckdb

    from warehouse.releases.reading import opened, require_reading
    from warehouse.releases.releases import find

    with opened(obj[0], find(obj[0], release_id), query) as connection:
        require_reading(connection, query)
        try:
            relation = connection.sql(query)
            if relation is not None:
                _PRINTERS[format_name](relation)
        except duckdb.Error as error:
            raise UsageError(str(error)) from error
    return 0


def _print_table(relation: duckdb.DuckDBPyRelation) -> None:
    from flows.command.printing import show

    rows = relation.limit(_ROW_LIMIT + 1).to_arrow_table().to_pylist()
    title = f"The first {_ROW_LIMIT} rows; --format csv prints all" if len(rows) > _ROW_LIMIT else ""
    show(title, relation.columns, [[_shown(value) for value in row.values()] for row in rows[:_ROW_LIMIT]])


def _shown(value: Any) -> Any:
    """Return a value as a cell: instants to the second, long lists by their ends."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ").removesuffix("+00:00").removesuffix(".000000")
    if isinstance(value, list):
        texts = [_shown_number(item) for item in (value if len(value) <= 6 else [*value[:3], "…", *value[-2:]])]
        return "[" + ", ".join(texts) + (f"] ({len(value)})" if len(value) > 6 else "]")
    return value


def _shown_number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "NULL" if value is None else str(value)


def _print_csv(relation: duckdb.DuckDBPyRelation) -> None:
    from warehouse.releases.export import write_csv

    write_csv(relation.to_arrow_reader(_BATCH_ROWS), sys.stdout.buffer)


def _print_json(relation: duckdb.DuckDBPyRelation) -> None:
    for row in relation.to_arrow_table().to_pylist():
        click.echo(json.dumps(row, default=_plain))


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


def _print_parquet(relation: duckdb.DuckDBPyRelation) -> None:
    import pyarrow.parquet as pq

    if sys.stdout.isatty():
        raise UsageError(
            "Parquet is no text: send it to a file or a pipe, as `iosig sql … --format parquet > x.parquet`."
        )
    pq.write_table(relation.to_arrow_table(), sys.stdout.buffer, compression="zstd")


_PRINTERS: dict[str, Callable[[duckdb.DuckDBPyRelation], None]] = {
    "table": _print_table,
    "csv": _print_csv,
    "json": _print_json,
    "parquet": _print_parquet,
}


@click.command("export")
@click.argument("table_name", metavar="TABLE")
@click.option(
    "--to", "target", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file to write."
)
@release_option
@click.option(
    "--feed",
    "is_feed",
    is_flag=True,
    help="Of signatures or periods: what a scheduler needs of them, as JSON or Parquet by the file's ending.",
)
@click.option(
    "--valid-days",
    type=click.FloatRange(0, 36525, min_open=True),
    help="Of a feed: how long to trust an application's entry after its last run; 90 if not given.",
)
@click.pass_obj
def export_command(
    obj: tuple[Store, Path | None],
    table_name: str,
    target: Path,
    release_id: str | None,
    is_feed: bool,
    valid_days: float | None,
) -> int:
    """Write one table of a release as a plain Parquet file, or as CSV if the name ends in .csv.

    The Parquet file carries each column's unit and doc as field metadata. docs/scheduler-feed.md describes feeds.
    """
    from warehouse.releases.export import export_table
    from warehouse.releases.releases import find

    if is_feed:
        return _export_feed(obj[0], table_name, target, release_id, valid_days)
    if valid_days is not None:
        raise UsageError("--valid-days is about a feed: give --feed too.")
    if target.suffix.lower() == ".json":
        raise UsageError("A table is written as Parquet or CSV; JSON is for feeds (--feed) and `iosig sql`.")
    count = export_table(obj[0], find(obj[0], release_id), table_name, target)
    click.echo(f"{target}: {count:,} rows of {table_name}")
    return 0


def _export_feed(store: Store, kind: str, target: Path, release_id: str | None, valid_days: float | None) -> int:
    """Write a feed for schedulers and say what is in it, and what is not."""
    from flows.advice.feed import VALID_DAYS, export_feed
    from warehouse.releases.releases import find

    days = VALID_DAYS if valid_days is None else valid_days
    header = export_feed(store, find(store, release_id), kind, target, days).header
    click.echo(f"{target}: {header['entry_count']:,} applications' {kind}")
    reasons = {
        "expired": f"without a run in the {days:g} days before the release",
        "undated": "whose last run has no time",
        "unnamed": "traced runs that belong to no job",
    }
    for name, reason in reasons.items():
        if count := header[f"{name}_count"]:
            click.echo(f"left out: {count:,} {reason}", err=True)
    return 0

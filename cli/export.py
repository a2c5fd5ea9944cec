"""`iosig export`: write tables, a whole release, or a feed to files."""

from __future__ import annotations

from pathlib import Path

import click

from iosig.cli.completion import quietly, tables
from iosig.cli.options import GlobalOptions, raw_csv_option, release_option, select_release
from iosig.cli.printing import binary_stdout, say
from iosig.warehouse.errors import UsageError
from iosig.warehouse.store.store import Store

_STDOUT = Path("-")


@click.command("export")
@click.argument("table_name", metavar="[TABLE]", required=False, shell_complete=quietly(tables))
@click.option("--all", "is_all", is_flag=True, help="The whole release: a folder of Parquet files, or a DuckDB file.")
@click.option(
    "--output",
    "target",
    metavar="PATH",
    type=click.Path(path_type=Path, allow_dash=True),
    help="The file to write: .parquet or .csv, or .json or .parquet with --feed; - is stdout. With --all: a file that "
    "ends in .duckdb, else a folder that is new or empty.",
)
@click.option(
    "--copy",
    "is_copied",
    is_flag=True,
    help="With --all: copy the rows. Default: a folder links the release's files where possible, and a DuckDB file has "
    "views.",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["parquet", "csv"]),
    help="Format on stdout (--output -). Default: parquet.",
)
@raw_csv_option
@release_option
@click.option(
    "--feed",
    "is_feed",
    is_flag=True,
    help="Write a feed for schedulers, of signatures or periods. The file's suffix selects JSON or Parquet.",
)
@click.option(
    "--valid-days",
    type=click.FloatRange(0, 36525, min_open=True),
    help="With --feed: days after its last run for which an application's entry is valid. Default: 90.",
)
@click.pass_obj
def export_command(
    warehouse: GlobalOptions,
    table_name: str | None,
    is_all: bool,
    target: Path | None,
    is_copied: bool,
    format_name: str | None,
    is_raw: bool,
    release_id: str | None,
    is_feed: bool,
    valid_days: float | None,
) -> int:
    """Write one table of a release as a plain Parquet or CSV file, or with --all the whole release.

    Parquet files carry each column's unit and doc as field metadata; a DuckDB file has them as comments.
    docs/reading.md shows how to read all of these; docs/scheduler-feed.md describes feeds.
    """
    if is_all:
        _leave_out(
            "with --all", TABLE=table_name, feed=is_feed, valid_days=valid_days, format=format_name, raw_csv=is_raw
        )
        return _export_all(warehouse.store, target, release_id, is_copied)
    _leave_out("without --all", copy=is_copied)
    if table_name is None or target is None:
        raise UsageError(
            "Name a TABLE and a file (--output), or the whole release (--all) and a folder or .duckdb file (--output)."
        )
    if is_feed:
        _leave_out("with --feed", format=format_name, raw_csv=is_raw)
        return _export_feed(warehouse.store, table_name, target, release_id, valid_days)
    _leave_out("without --feed", valid_days=valid_days)
    if target == _STDOUT:
        return _print_table(warehouse.store, table_name, release_id, format_name or "parquet", is_raw)
    _leave_out("because the file's suffix selects the format", format=format_name)
    return _export_table(warehouse.store, table_name, target, release_id, is_raw)


def _leave_out(reason: str, **options: object) -> None:
    """Raise UsageError if options are given that do not apply to this kind of export, with the reason."""
    named = [name if name.isupper() else f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if named:
        raise UsageError(f"{' and '.join(named)} cannot be used {reason}.")


def _export_table(store: Store, table_name: str, target: Path, release_id: str | None, is_raw: bool) -> int:
    from iosig.warehouse.releases.export import export_table

    count = export_table(store, select_release(store, release_id), table_name, target, is_raw=is_raw)
    say(f"{target}: {count:,} rows of {table_name}")
    return 0


def _print_table(store: Store, table_name: str, release_id: str | None, format_name: str, is_raw: bool) -> int:
    from iosig.warehouse.releases.export import require_published, write_table

    table, release = require_published(table_name), select_release(store, release_id)
    write_table(store, release, table, binary_stdout(format_name), format_name, is_raw=is_raw)
    return 0


def _export_all(store: Store, target: Path | None, release_id: str | None, is_copied: bool) -> int:
    """Write a whole release to a folder or archive, and print its contents."""
    from iosig.warehouse.releases.whole_release import export_database, export_folder

    if target is None or target == _STDOUT or target.suffix in (".parquet", ".csv", ".json"):
        raise UsageError("A whole release needs a folder, or a file that ends in .duckdb (--output).")
    release = select_release(store, release_id)
    if target.suffix == ".duckdb":
        counts = export_database(store, release, target, is_copied=is_copied)
    else:
        counts = export_folder(store, release, target, is_copied=is_copied)
    filled = sum(count > 0 for count in counts.values())
    rows = f"{sum(counts.values()):,} rows in {filled} of {len(counts)} tables"
    say(f"{target}: release {release.release_id}, {rows}")
    return 0


def _export_feed(store: Store, kind: str, target: Path, release_id: str | None, valid_days: float | None) -> int:
    """Write a feed for schedulers, and print the included and the excluded entries."""
    from iosig.answers.advice.feed import VALID_DAYS, export_feed

    days = VALID_DAYS if valid_days is None else valid_days
    header = export_feed(store, select_release(store, release_id), kind, target, days).header
    say(f"{target}: {header['entry_count']:,} applications' {kind}")
    reasons = {
        "expired": f"without a run in the last {days:g} days before the release",
        "undated": "because the last run has no time",
        "unnamed": "traced runs without a job",
    }
    for name, reason in reasons.items():
        if count := header[f"{name}_count"]:
            click.echo(f"excluded: {count:,} {reason}", err=True)
    return 0

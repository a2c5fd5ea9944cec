"""Complete names of a warehouse in the shell, read directly from the warehouse's files.

Completion runs at every key press, so it opens no catalogue, writes nothing and ignores files that it cannot read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import click

#: folder in which readers cache the list of releases
_INDEX_FILE = "release_index"
#: maximum number of suggested names
_MAX_SUGGESTIONS = 200

Completing = Callable[[click.Context, click.Parameter, str], list[str]]


def tables(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the published tables with this prefix."""
    from iosig.warehouse.contracts import TABLES

    return _beginning(sorted(table.name for table in TABLES if table.is_published), incomplete)


def releases(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the release ids with this prefix, newest first."""
    index = max((_root(context) / _INDEX_FILE).glob("*.json"), key=lambda path: path.stat().st_mtime, default=None)
    entries = json.loads(index.read_text(encoding="utf-8"))["releases"] if index else []
    return _beginning((release["release_id"] for release in reversed(entries)), incomplete)


def applications(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the application ids that contain the text, because commands accept a part of an id."""
    return _read_latest_values(context, "applications", "application_id", incomplete, is_part=True)


def jobs(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the job ids with this prefix."""
    return _read_latest_values(context, "jobs", "job_id", incomplete)


def filesystems(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the file systems with this prefix."""
    return _read_latest_values(context, "polls_daily", "filesystem", incomplete)


def users(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the users of applications with this prefix."""
    return _read_latest_values(context, "applications", "user", incomplete)


def quietly(completing: Completing) -> Completing:
    """Wrap a completion function so that errors yield no suggestions: a traceback would disturb typing."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        try:
            return completing(context, parameter, incomplete)
        except Exception:
            return []

    return complete


def _read_latest_values(
    context: click.Context, table: str, column: str, incomplete: str, *, is_part: bool = False
) -> list[str]:
    """Return the values of a column in a local warehouse's current release that match the text.

    is_part: the text may occur anywhere in a value, not only at its start.
    """
    folder = _root(context) / "latest" / table
    if not folder.is_dir():
        return []
    import duckdb

    from iosig.warehouse.engine_paths import duckdb_paths

    test = "contains" if is_part else "starts_with"
    query = (
        f'select distinct "{column}" from read_parquet($files, union_by_name = true, hive_partitioning = false) '
        f'where {test}("{column}", $begun) order by all limit {_MAX_SUGGESTIONS}'
    )
    with duckdb.connect() as connection:
        rows = connection.execute(
            query, {"files": duckdb_paths(folder.rglob("*.parquet")), "begun": incomplete}
        ).fetchall()
    return [str(name) for (name,) in rows]


def _root(context: click.Context) -> Path:
    return Path(context.find_root().params["warehouse"])


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)][:_MAX_SUGGESTIONS]

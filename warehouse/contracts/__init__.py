"""Contracts: each column once, each table once; schemas, checks, comments and the dictionary derive from them.

- `types`: `Column` and `Table`, the two declarations.
- `columns`: the columns that several nouns share.
- a module a noun, such as `jobs` or `signatures`: its tables, with the columns that no other noun has.
- `rules`: what the columns imply for each row.
- `frames`: the dialect of Polars.
- `files`: Parquet files, validated by DuckDB.
- `arrow`: the dialect of Arrow. The dialects are not imported with the package, so that it costs nothing.
"""

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

from iosig.warehouse.contracts.types import Column, Dtype, Layer, Table

__all__ = ["TABLES", "Column", "Dtype", "Layer", "Table", "table"]

_NOT_NOUNS = ("arrow", "columns", "files", "frames", "rules", "types")
#: order of the nouns in the dictionary; unlisted nouns come in between
_FIRST = (
    "jobs",
    "series",
    "polls",
    "traces",
    "extrapolations",
    "networks",
    "job_io",
    "samples",
    "signatures",
    "classes",
)
_LAST = ("periods", "predictions", "quality", "releases")


def _list_nouns() -> list[str]:
    found = sorted(module.name for module in iter_modules(__path__) if module.name not in _NOT_NOUNS)
    return [*_FIRST, *(noun for noun in found if noun not in _FIRST + _LAST), *_LAST]


def _load_tables(nouns: Iterable[str]) -> list[Table]:
    modules = [import_module(f"{__name__}.{noun}") for noun in nouns]
    return [value for module in modules for value in vars(module).values() if isinstance(value, Table)]


#: every table: landed ones, sorted by noun, and then derived ones
TABLES = (
    *(table for table in _load_tables(sorted(_list_nouns())) if table.layer == "landed"),
    *(table for table in _load_tables(_list_nouns()) if table.layer != "landed"),
)


def table(name: str) -> Table:
    """Look up a table by name, or raise KeyError."""
    for candidate in TABLES:
        if candidate.name == name:
            return candidate
    raise KeyError(f"unknown table {name}")

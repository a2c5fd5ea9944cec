"""Declare each column and each table once (contracts); schemas, checks and the data dictionary derive from them.

- `types`: `Column` and `Table`, the classes of the declarations.
- `columns`: the columns that several subjects share.
- one module per subject, such as `jobs` or `signatures`: the subject's tables, with their own columns.
- `metrics`: columns of tables whose rows count bytes or operations.
- `rules`: the rules that a table's columns imply for each row.
- `frames`: contracts as Polars schemas and expressions.
- `files`: validation of Parquet files by DuckDB.
- `arrow`: contracts as Arrow schemas. The package does not import `frames`, `files` and `arrow`, so its import is fast.
"""

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

from iosig.warehouse.contracts.types import Column, Dtype, Layer, Table

__all__ = ["TABLES", "Column", "Dtype", "Layer", "Table", "table"]

_NOT_NOUNS = ("arrow", "columns", "files", "frames", "metrics", "rules", "types")
#: order of the modules in the dictionary; unlisted modules come in between
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
    module_names = sorted(module.name for module in iter_modules(__path__) if module.name not in _NOT_NOUNS)
    return [*_FIRST, *(noun for noun in module_names if noun not in _FIRST + _LAST), *_LAST]


def _load_tables(nouns: Iterable[str]) -> list[Table]:
    modules = [import_module(f"{__name__}.{noun}") for noun in nouns]
    return [value for module in modules for value in vars(module).values() if isinstance(value, Table)]


#: every table: landed ones, ordered by module, and then derived ones
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

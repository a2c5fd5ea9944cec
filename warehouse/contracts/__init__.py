"""Contracts: each column once, each table once; schemas, checks, comments and the dictionary derive from them.

- `types`: `Column` and `Table`, the two declarations.
- `columns`: the columns that several nouns share.
- a module a noun, such as `jobs` or `signatures`: its tables, with the columns that no other noun has.
- `frames`: the dialect of Polars.
- `arrow`: the dialect of Arrow and DuckDB. The dialects are not imported with the package, so that it costs nothing.
"""

from importlib import import_module
from pkgutil import iter_modules

from warehouse.contracts.types import Column, Dtype, Layer, Table

__all__ = ["TABLES", "Column", "Dtype", "Layer", "Table", "table"]

_LAYERS: tuple[Layer, ...] = ("landed", "stage", "samples", "transforms", "quality")
_NO_NOUNS = ("arrow", "columns", "frames", "types")


def _declared() -> list[Table]:
    nouns = sorted(found.name for found in iter_modules(__path__) if found.name not in _NO_NOUNS)
    modules = [import_module(f"{__name__}.{noun}") for noun in nouns]
    return [value for module in modules for value in vars(module).values() if isinstance(value, Table)]


#: every table, in the order of the layers
TABLES = tuple(sorted(_declared(), key=lambda table: _LAYERS.index(table.layer)))


def table(name: str) -> Table:
    """Return the table of that name, or raise KeyError."""
    for candidate in TABLES:
        if candidate.name == name:
            return candidate
    raise KeyError(f"no table is called {name}")

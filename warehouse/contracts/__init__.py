"""Contracts: each column once, each table once; schemas, checks, comments and the dictionary derive from them.

Importing this package costs nothing: the dialects (`frames` for Polars, `arrow` for Arrow and DuckDB)
are modules of their own.
"""

from warehouse.contracts.tables import TABLES, table
from warehouse.contracts.types import Column, Dtype, Layer, Table

__all__ = ["TABLES", "Column", "Dtype", "Layer", "Table", "table"]

"""Columns of tables whose rows count bytes or operations, as their column `metric` states.

A number of bytes and its counterpart in operations have columns of their own, and the other is NULL. So a query that
does not select a metric never adds bytes to operations.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

Metric = Literal["bytes", "operations"]
#: columns of bytes, and those with the same quantity of rows with metric `operations`
OPERATIONS_OF = {
    "b_io_bytes_per_s": "b_io_operations_per_s",
    "background_bytes_per_s": "background_operations_per_s",
    "bytes_per_period": "operations_per_period",
    "bytes_per_s": "operations_per_s",
    "candidate_amplitudes_bytes_per_s": "candidate_amplitudes_operations_per_s",
    "high_bytes_per_s": "high_operations_per_s",
    "low_bytes_per_s": "low_operations_per_s",
    "mean_bytes_per_s": "mean_operations_per_s",
    "peak_bytes_per_s": "peak_operations_per_s",
    "sample_bytes": "volume_operations",
    "section_bytes": "section_operations",
    "segment_bytes": "segment_operations",
    "volume_bytes": "volume_operations",
    "window_bytes_ratio": "window_operations_ratio",
}
_SHARED = {
    column.name: column
    for column in (c.MEAN_OPERATIONS_PER_S, c.PEAK_OPERATIONS_PER_S, c.SECTION_OPERATIONS, c.VOLUME_OPERATIONS)
}


def has_metrics(table: Table) -> bool:
    """Return whether rows of a table count bytes or operations."""
    return c.METRIC in table.columns


def find_counterparts(names: Collection[str]) -> dict[str, str]:
    """Map columns of bytes to their counterparts in operations, where both are among the names of a table's columns."""
    return {name: other for name, other in OPERATIONS_OF.items() if name in names and other in names}


def add_operations(*columns: Column) -> tuple[Column, ...]:
    """Return columns with numbers of bytes made nullable, followed by their counterparts in operations."""
    is_counted = [column.name in OPERATIONS_OF for column in columns]
    own = [column.optional() if counts else column for column, counts in zip(columns, is_counted, strict=True)]
    return (*own, *(_make_counterpart(column) for column, counts in zip(columns, is_counted, strict=True) if counts))


def _make_counterpart(column: Column) -> Column:
    name = OPERATIONS_OF[column.name]
    text = f"As `{column.name}`, in rows with metric `operations`."
    unit = "operations" if column.unit == "B" else None
    counterpart = Column(name, column.dtype, text, unit=unit, low=column.low, high=column.high)
    return _SHARED.get(name, counterpart).optional()

"""Numbers of bytes and of operations have columns of their own, and the other is NULL."""

from __future__ import annotations

import polars as pl
import pytest

from iosig.warehouse.contracts import TABLES, Table, frames
from iosig.warehouse.contracts.metrics import OPERATIONS_OF, has_metrics
from iosig.warehouse.contracts.signatures import SIGNATURE_BURSTS
from tests.sql.given import filled

PER_METRIC = [table for table in TABLES if has_metrics(table) and table.is_published]


def test_tables_per_metric_are_known() -> None:
    names = "signatures signature_points signature_bursts sample_sets classes periods period_segments"
    assert {table.name for table in PER_METRIC} == set(names.split())


@pytest.mark.parametrize("table", PER_METRIC, ids=lambda table: table.name)
def test_each_number_of_bytes_has_a_counterpart(table: Table) -> None:
    assert "metric" in table.key
    of_bytes = {column.name for column in table.columns if column.unit in ("B", "B/s")}
    assert of_bytes <= {*OPERATIONS_OF}
    for name in of_bytes:
        own, other = table.column(name), table.column(OPERATIONS_OF[name])
        assert (own.dtype, own.nullable, own.low) == (other.dtype, True, other.low)
        assert other.unit in ("operations", "1/s")


def test_numbers_are_moved_by_metric() -> None:
    rows = filled("transforms.signature_bursts", pl.DataFrame({"metric": ["bytes", "operations"]}))
    computed = rows.with_columns(volume_bytes=pl.Series([5.0, 9.0])).drop("volume_operations")
    separate = frames.separate_metrics(computed, SIGNATURE_BURSTS)
    assert separate.select("volume_bytes", "volume_operations").rows() == [(5.0, None), (None, 9.0)]
    assert separate.columns == list(SIGNATURE_BURSTS.column_names)


def test_rows_older_than_the_column_are_of_bytes() -> None:
    old = filled("transforms.signature_bursts", pl.DataFrame({"burst": [0]})).drop("metric", "volume_operations")
    added = frames.add_missing_columns(old, SIGNATURE_BURSTS)
    assert added.select("metric", "volume_operations").rows() == [("bytes", None)]

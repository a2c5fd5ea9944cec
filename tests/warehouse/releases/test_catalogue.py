"""Test that columns of Iceberg tables have consecutive ids."""

from __future__ import annotations

import pytest
from pyiceberg.types import ListType

from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.releases import catalogue, releases


@pytest.mark.parametrize("table", [*releases.list_published_tables(), RELEASES], ids=lambda table: table.name)
def test_columns_and_elements_have_consecutive_ids(table: Table) -> None:
    schema = catalogue._iceberg_schema(table)
    count = len(table.columns)
    assert [field.field_id for field in schema.fields] == list(range(1, count + 1))
    elements = [field.field_type.element_id for field in schema.fields if isinstance(field.field_type, ListType)]
    assert elements == list(range(count + 1, count + 1 + len(elements)))
    assert [(field.name, field.required) for field in schema.fields] == [
        (column.name, not column.nullable) for column in table.columns
    ]

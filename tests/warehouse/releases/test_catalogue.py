"""Test that columns of Iceberg tables have consecutive ids."""

from __future__ import annotations

from pyiceberg.types import ListType

from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.releases import catalogue, releases


def test_columns_and_elements_have_consecutive_ids() -> None:
    for table in (*releases.list_published_tables(), RELEASES):
        fields = catalogue._iceberg_schema(table).fields
        count = len(table.columns)
        assert [field.field_id for field in fields] == list(range(1, count + 1)), table.name
        elements = [field.field_type.element_id for field in fields if isinstance(field.field_type, ListType)]
        assert elements == list(range(count + 1, count + 1 + len(elements))), table.name
        assert [(field.name, field.required) for field in fields] == [
            (column.name, not column.nullable) for column in table.columns
        ]

"""Convert contracts to Arrow schemas, which every Parquet file carries, with units and docs as field metadata."""

from __future__ import annotations

import base64

import pyarrow as pa

from iosig.warehouse.contracts.types import Column, Dtype, Table

ARROW_TYPES: dict[Dtype, pa.DataType] = {
    "text": pa.string(),
    "int": pa.int64(),
    "real": pa.float64(),
    "bool": pa.bool_(),
    "instant": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
    "reals": pa.list_(pa.field("element", pa.float64())),
    "ints": pa.list_(pa.field("element", pa.int64())),
}


def field(column: Column) -> pa.Field:
    """Return a column's Arrow field, with unit and doc in its metadata."""
    metadata = {"doc": column.doc} | ({"unit": column.unit} if column.unit else {})
    return pa.field(column.name, ARROW_TYPES[column.dtype], column.nullable, metadata)


def schema(table: Table) -> pa.Schema:
    """Return a table's Arrow schema, with grain and key in its metadata."""
    metadata = {"table": table.name, "grain": table.grain, "key": ",".join(table.key)}
    return pa.schema([field(column) for column in table.columns], metadata)


def encode_schema(table: Table) -> str:
    """Serialize a table's Arrow schema as Arrow stores it in a Parquet file, under `ARROW:schema`."""
    return base64.b64encode(schema(table).serialize().to_pybytes()).decode()

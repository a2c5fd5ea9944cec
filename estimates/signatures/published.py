"""Read published signatures into the types that extraction returns."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.signature import Signature
from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.metrics import find_counterparts
from iosig.warehouse.contracts.signatures import SIGNATURE_BURSTS, SIGNATURE_POINTS

if TYPE_CHECKING:
    import duckdb


#: key columns of an application's I/O, of a subject, and of a signature
PLACE = ("application_id", "filesystem", "direction")
SUBJECT = (*PLACE, "metric")
KEY = (*SUBJECT, "method")
#: tables of signatures, for `iosig.warehouse.releases.reading.opened`
TABLES = "signatures signature_points signature_bursts"
#: name of the temporary relation with the selected signatures
_WANTED = "wanted_signatures"


def defaults(connection: duckdb.DuckDBPyConnection, method: str | None = None) -> pl.DataFrame:
    """Query the rows of `signatures` of one method, or of each subject's default, sorted by key."""
    query = """
        select *
        from signatures
        where case when $method is null then is_default else method = $method end
        order by application_id, filesystem, direction, method
    """
    rows: pl.DataFrame = connection.sql(query, params={"method": method}).pl()
    return rows


def select_by_keys(connection: duckdb.DuckDBPyConnection, keys: pl.DataFrame) -> pl.DataFrame:
    """Query the rows of `signatures` with some keys, sorted by key."""
    rows: pl.DataFrame = connection.sql("select * from signatures").pl()
    return rows.join(keys.select(KEY), on=KEY, how="semi").sort(KEY)


def contents(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """Hash each curve; return the key columns and the hash, `content`."""
    query = """
        select application_id, filesystem, direction, metric, method,
            sum(hash(offset_s, coalesce(bytes_per_s, operations_per_s)))::varchar as content
        from signature_points
        group by all
    """
    rows: pl.DataFrame = connection.sql(query).pl()
    return rows


def read_signatures(connection: duckdb.DuckDBPyConnection, rows: pl.DataFrame) -> list[Signature]:
    """Read the signatures of rows of `signatures` with curves and bursts, in the order of the rows."""
    if rows.is_empty():
        return []
    connection.register(_WANTED, rows.select(*KEY).with_columns(place=pl.int_range(rows.height)).to_arrow())
    try:
        parts = _parts(connection, SIGNATURE_POINTS, rows.height)
        parts |= _parts(connection, SIGNATURE_BURSTS, rows.height)
    finally:
        connection.unregister(_WANTED)
    return [
        _build_signature(row, {name: values[place] for name, values in parts.items()})
        for place, row in enumerate(rows.to_dicts())
    ]


def _parts(connection: duckdb.DuckDBPyConnection, table: Table, count: int) -> dict[str, list[Reals]]:
    """Read a table, and split each column by signature (`count` pieces); NULL becomes NaN.

    Columns of bytes have the operations of signatures of operations.
    """
    key, position = ", ".join(KEY), table.key[-1]
    names = find_counterparts(table.column_names)
    amounts = ", ".join(f"coalesce({name}, {other}) as {name}" for name, other in names.items())
    query = f"""
        select wanted.place, parts.* exclude ({key}, {", ".join(names.values())}) replace ({amounts})
        from {table.name} as parts
        inner join {_WANTED} as wanted using ({key})
    """
    rows: pl.DataFrame = connection.sql(query).pl()
    place = rows["place"].to_numpy()
    # sorted by NumPy, which takes half as long as DuckDB
    order = np.lexsort((rows[position].to_numpy(), place))
    edges = np.cumsum(np.bincount(place, minlength=count))[:-1]
    columns = rows.drop("place", position)
    return {column.name: np.split(column.cast(pl.Float64).to_numpy()[order], edges) for column in columns}


def _build_signature(row: dict[str, Any], parts: dict[str, Reals]) -> Signature:
    """Build a signature from its row, curve and bursts."""
    rates = (row["background_bytes_per_s"], row.get("background_operations_per_s"))
    background = next((rate for rate in rates if rate is not None), math.nan)
    if row["outcome"] != "extracted":
        return Signature.missing(row["outcome"], background)
    return Signature(
        outcome="extracted",
        bytes_per_s=parts["bytes_per_s"],
        low_bytes_per_s=parts["low_bytes_per_s"],
        high_bytes_per_s=parts["high_bytes_per_s"],
        bursts=Bursts(**{field.name: parts[field.name] for field in fields(Bursts)}),
        background_bytes_per_s=background,
    )

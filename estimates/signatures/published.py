"""Signatures as a release has them, read back into the form in which methods return them."""

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
from iosig.warehouse.contracts.signatures import SIGNATURE_BURSTS, SIGNATURE_POINTS

if TYPE_CHECKING:
    import duckdb


#: what names one signature
SUBJECT = ("application_id", "filesystem", "direction")
KEY = (*SUBJECT, "method")
#: the tables that hold signatures, for `iosig.warehouse.releases.reading.opened`
TABLES = "signatures signature_points signature_bursts"
#: the relation of a connection that says which signatures are asked for
_WANTED = "wanted_signatures"


def defaults(connection: duckdb.DuckDBPyConnection, method: str | None = None) -> pl.DataFrame:
    """Return the rows of `signatures` of one method, or of each subject's default, in order of their keys."""
    query = """
        select *
        from signatures
        where case when $method is null then is_default else method = $method end
        order by application_id, filesystem, direction, method
    """
    found: pl.DataFrame = connection.sql(query, params={"method": method}).pl()
    return found


def of_keys(connection: duckdb.DuckDBPyConnection, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `signatures` that have one of some keys, in order of their keys."""
    found: pl.DataFrame = connection.sql("select * from signatures").pl()
    return found.join(keys.select(KEY), on=KEY, how="semi").sort(KEY)


def contents(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """Return what each curve holds, as a number that differs where curves do: a key and `content`."""
    query = """
        select application_id, filesystem, direction, method,
            sum(hash(offset_s, bytes_per_s))::varchar as content
        from signature_points
        group by all
    """
    found: pl.DataFrame = connection.sql(query).pl()
    return found


def read_signatures(connection: duckdb.DuckDBPyConnection, rows: pl.DataFrame) -> list[Signature]:
    """Return what each row of `signatures` stands for, with its curve and its bursts, in the order of the rows."""
    if rows.is_empty():
        return []
    connection.register(_WANTED, rows.select(*KEY).with_columns(place=pl.int_range(rows.height)).to_arrow())
    try:
        parts = _parts(connection, SIGNATURE_POINTS, rows.height)
        parts |= _parts(connection, SIGNATURE_BURSTS, rows.height)
    finally:
        connection.unregister(_WANTED)
    return [_one(row, {name: of[place] for name, of in parts.items()}) for place, row in enumerate(rows.to_dicts())]


def _parts(connection: duckdb.DuckDBPyConnection, table: Table, count: int) -> dict[str, list[Reals]]:
    """Return each column of a table cut into a piece for each of so many signatures, NaN for NULL."""
    key, position = ", ".join(KEY), table.key[-1]
    query = f"""
        select wanted.place, parts.* exclude ({key})
        from {table.name} as parts
        inner join {_WANTED} as wanted using ({key})
    """
    found: pl.DataFrame = connection.sql(query).pl()
    place = found["place"].to_numpy()
    # sorted here: DuckDB takes twice as long for it
    order = np.lexsort((found[position].to_numpy(), place))
    edges = np.cumsum(np.bincount(place, minlength=count))[:-1]
    columns = found.drop("place", position)
    return {column.name: np.split(column.cast(pl.Float64).to_numpy()[order], edges) for column in columns}


def _one(row: dict[str, Any], parts: dict[str, Reals]) -> Signature:
    """Return one signature from its row, its curve and its bursts."""
    background = math.nan if row["background_bytes_per_s"] is None else row["background_bytes_per_s"]
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

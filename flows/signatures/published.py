"""Signatures as a release has them, read back into the form in which methods return them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from transforms.arrays import Reals
from transforms.signatures.bursts import Bursts
from transforms.signatures.signature import Signature

if TYPE_CHECKING:
    import duckdb


#: what names one signature
SUBJECT = ("application_id", "filesystem", "direction")
KEY = (*SUBJECT, "method")
#: the tables that hold signatures, for `warehouse.releases.reading.opened`
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
        parts = _parts(connection, _POINTS, rows.height) | _parts(connection, _BURSTS, rows.height)
    finally:
        connection.unregister(_WANTED)
    return [_one(row, {name: of[place] for name, of in parts.items()}) for place, row in enumerate(rows.to_dicts())]


_POINTS = f"""
    select wanted.place, offset_s as position, bytes_per_s, low_bytes_per_s, high_bytes_per_s
    from signature_points
    inner join {_WANTED} as wanted using (application_id, filesystem, direction, method)
"""
_BURSTS = f"""
    select wanted.place, burst as position, started_s, peaked_s, ended_s, volume_bytes, support_ratio
    from signature_bursts
    inner join {_WANTED} as wanted using (application_id, filesystem, direction, method)
"""


def _parts(connection: duckdb.DuckDBPyConnection, query: str, count: int) -> dict[str, list[Reals]]:
    """Return each column of a query cut into a piece for each of so many signatures, NaN for NULL."""
    found: pl.DataFrame = connection.sql(query).pl()
    place = found["place"].to_numpy()
    # sorted here: DuckDB takes twice as long for it
    order = np.lexsort((found["position"].to_numpy(), place))
    edges = np.cumsum(np.bincount(place, minlength=count))[:-1]
    columns = found.drop("place", "position")
    return {column.name: np.split(column.cast(pl.Float64).to_numpy()[order], edges) for column in columns}


def _one(row: dict[str, Any], parts: dict[str, Reals]) -> Signature:
    """Return one signature from its row, its curve and its bursts."""
    background = math.nan if row["background_bytes_per_s"] is None else row["background_bytes_per_s"]
    if row["outcome"] != "extracted":
        return Signature.nothing(row["outcome"], background)
    names = ("started_s", "peaked_s", "ended_s", "volume_bytes", "support_ratio")
    return Signature(
        outcome="extracted",
        bytes_per_s=parts["bytes_per_s"],
        low_bytes_per_s=parts["low_bytes_per_s"],
        high_bytes_per_s=parts["high_bytes_per_s"],
        bursts=Bursts(*(parts[name] for name in names)),
        background_bytes_per_s=background,
    )

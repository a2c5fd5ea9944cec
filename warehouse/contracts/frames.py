"""Contracts on Polars frames: the schema, the rules, and the two ways to hold a frame to them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts.types import Column, Dtype, Table
from iosig.warehouse.engine_paths import scan_parquet
from iosig.warehouse.errors import ContractError

POLARS_DTYPES: dict[Dtype, pl.DataType] = {
    "text": pl.String(),
    "int": pl.Int64(),
    "real": pl.Float64(),
    "bool": pl.Boolean(),
    "instant": pl.Datetime("us", "UTC"),
    "date": pl.Date(),
    "reals": pl.List(pl.Float64),
    "ints": pl.List(pl.Int64),
}


@cache
def schema(table: Table) -> pl.Schema:
    """Return the Polars schema of a table."""
    return pl.Schema({column.name: POLARS_DTYPES[column.dtype] for column in table.columns})


def empty(table: Table) -> pl.DataFrame:
    """Return a frame of the table's schema without rows."""
    return pl.DataFrame(schema=schema(table))


def widened(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Return rows that may be older than some of the table's columns: they have NULL there."""
    young = {name: dtype for name, dtype in schema(table).items() if name not in frame.columns}
    return frame.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in young.items()).select(
        table.column_names
    )


def _bounds(column: Column) -> list[tuple[str, pl.Expr]]:
    value = pl.col(column.name)
    if column.dtype in ("reals", "ints"):
        low, high = value.list.min(), value.list.max()
    else:
        low = high = value
    rules = []
    if column.low is not None:
        rules.append((f"{column.name}_at_least_{column.low:g}", low >= column.low))
    if column.high is not None:
        rules.append((f"{column.name}_at_most_{column.high:g}", high <= column.high))
    return rules


def rules(table: Table) -> dict[str, pl.Expr]:
    """Return the row rules that a table's columns imply: the rule's name, and what holds in a good row.

    NaN and infinities break a rule of their own wherever a column holds real numbers: no answer is NULL.
    """
    found: dict[str, pl.Expr] = {}
    for column in table.columns:
        value = pl.col(column.name)
        if not column.nullable:
            found[f"{column.name}_not_null"] = value.is_not_null()
        if column.dtype == "real":
            found[f"{column.name}_finite"] = value.is_finite().fill_null(True)
        if column.dtype == "reals":
            found[f"{column.name}_finite"] = value.list.eval(pl.element().is_finite()).list.all().fill_null(True)
        if column.choices:
            found[f"{column.name}_known"] = value.is_in(column.choices).fill_null(True)
        found |= {name: rule.fill_null(True) for name, rule in _bounds(column)}
    return found


def require_schema(found: pl.Schema, table: Table) -> None:
    """Raise ContractError unless there are the table's columns, in order and of the declared types."""
    expected = schema(table)
    if found == expected:
        return
    missing = [name for name in expected if name not in found]
    extra = [name for name in found if name not in expected]
    wrong = [
        f"{name} is {found[name]}, not {dtype}"
        for name, dtype in expected.items()
        if name in found and found[name] != dtype
    ]
    parts = [f"missing {missing}"] * bool(missing) + [f"unknown {extra}"] * bool(extra) + wrong
    raise ContractError(f"{table.name}: " + ("; ".join(parts) or f"columns out of order: {list(found)}"))


def split(frame: pl.DataFrame, table: Table) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split a frame of the right schema into its good rows and its faults.

    Returns the good rows, and the bad ones with one more column, `rule`: the first rule that each breaks.
    """
    require_schema(frame.schema, table)
    broken = pl.coalesce(
        *(pl.when(~rule).then(pl.lit(name)) for name, rule in rules(table).items()), pl.lit(None, pl.String)
    )
    marked = frame.with_columns(rule=broken)
    good = marked.filter(pl.col("rule").is_null()).drop("rule")
    return good, marked.filter(pl.col("rule").is_not_null())


def require(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Return the frame as it is, or raise ContractError naming the first rule that a row breaks."""
    require_schema(frame.schema, table)
    _require_rules(frame.lazy(), table)
    return frame


def require_file(path: Path, table: Table) -> None:
    """Raise ContractError unless a Parquet file, which may be larger than memory, meets the table's contract."""
    rows = scan_parquet(path)
    require_schema(rows.collect_schema(), table)
    _require_rules(rows, table)


def _require_rules(rows: pl.LazyFrame, table: Table) -> None:
    counts = rows.select((~rule).sum().alias(name) for name, rule in rules(table).items())
    broken = counts.collect(engine="streaming").to_dicts()
    faults = [f"{name} in {count} rows" for name, count in broken[0].items() if count] if broken else []
    if faults:
        raise ContractError(f"{table.name}: rows break {', '.join(faults)}")

"""Contracts on Polars frames: the schema, the rules, and the two ways to hold a frame to them."""

from __future__ import annotations

from functools import cache

import polars as pl

from warehouse.contracts.types import Column, Dtype, Table
from warehouse.errors import ContractError

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


def require_schema(frame: pl.DataFrame, table: Table) -> None:
    """Raise ContractError unless the frame has the table's columns, in order and of the declared types."""
    expected = schema(table)
    if frame.schema == expected:
        return
    missing = [name for name in expected if name not in frame.schema]
    extra = [name for name in frame.schema if name not in expected]
    wrong = [
        f"{name} is {frame.schema[name]}, not {dtype}"
        for name, dtype in expected.items()
        if name in frame.schema and frame.schema[name] != dtype
    ]
    parts = [f"missing {missing}"] * bool(missing) + [f"unknown {extra}"] * bool(extra) + wrong
    raise ContractError(f"{table.name}: " + ("; ".join(parts) or f"columns out of order: {list(frame.schema)}"))


def split(frame: pl.DataFrame, table: Table) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split a frame of the right schema into its good rows and its faults.

    Returns the good rows, and the bad ones with one more column, `rule`: the first rule that each breaks.
    """
    require_schema(frame, table)
    broken = pl.coalesce(
        *(pl.when(~rule).then(pl.lit(name)) for name, rule in rules(table).items()), pl.lit(None, pl.String)
    )
    marked = frame.with_columns(rule=broken)
    good = marked.filter(pl.col("rule").is_null()).drop("rule")
    return good, marked.filter(pl.col("rule").is_not_null())


def require(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Return the frame as it is, or raise ContractError naming the first rule that a row breaks."""
    require_schema(frame, table)
    names = list(rules(table))
    if not names or frame.is_empty():
        return frame
    broken = frame.select((~rule).sum().alias(name) for name, rule in rules(table).items()).row(0)
    faults = [f"{name} in {count} rows" for name, count in zip(names, broken, strict=True) if count]
    if faults:
        raise ContractError(f"{table.name}: rows break {', '.join(faults)}")
    return frame

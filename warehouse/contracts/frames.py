"""Validate Polars frames against contracts, by their schemas and row rules."""

from __future__ import annotations

from functools import cache

import polars as pl

from iosig.warehouse.contracts.metrics import find_counterparts
from iosig.warehouse.contracts.rules import RowRule, require_columns, require_no_faults, row_rules
from iosig.warehouse.contracts.types import Dtype, Table

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
    """Return a frame with the table's schema and no rows."""
    return pl.DataFrame(schema=schema(table))


def add_missing_columns(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Add the columns that older rows lack, with their initial values."""
    missing = [column for column in table.columns if column.name not in frame.columns]
    return frame.with_columns(
        pl.lit(column.initial, POLARS_DTYPES[column.dtype]).alias(column.name) for column in missing
    ).select(table.column_names)


def separate_metrics(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Move the numbers of rows with metric `operations` from columns of bytes to their counterparts.

    Extraction, classification and period search do not depend on the unit, and name all amounts as bytes.
    """
    names = find_counterparts(table.column_names)
    is_bytes = pl.col("metric") == "bytes"
    return frame.with_columns(
        *(pl.when(~is_bytes).then(name).alias(other) for name, other in names.items()),
        *(pl.when(is_bytes).then(name).alias(name) for name in names),
    ).select(table.column_names)


def rules(table: Table) -> dict[str, pl.Expr]:
    """Build the row rules of a table's columns as expressions that are true for good rows."""
    return {rule.name: _expression(rule).fill_null(True) for rule in row_rules(table)}


def _expression(rule: RowRule) -> pl.Expr:
    column = rule.column
    value, is_list = pl.col(column.name), column.dtype in ("reals", "ints")
    match rule.kind:
        case "not_null":
            return value.is_not_null()
        case "finite":
            return value.list.eval(pl.element().is_finite()).list.all() if is_list else value.is_finite()
        case "known":
            return value.is_in(column.choices)
        case "at_least":
            return (value.list.min() if is_list else value) >= rule.limit
        case "at_most":
            return (value.list.max() if is_list else value) <= rule.limit


def require_schema(actual: pl.Schema, table: Table) -> None:
    """Raise ContractError unless the columns match the table's in order and type."""
    require_columns(actual, schema(table), table)


def split(frame: pl.DataFrame, table: Table) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split a frame with the right schema into good and bad rows.

    The bad rows have an additional column `rule` with the first rule that each row breaks.
    """
    require_schema(frame.schema, table)
    broken = pl.coalesce(
        *(pl.when(~rule).then(pl.lit(name)) for name, rule in rules(table).items()), pl.lit(None, pl.String)
    )
    marked = frame.with_columns(rule=broken)
    good = marked.filter(pl.col("rule").is_null()).drop("rule")
    return good, marked.filter(pl.col("rule").is_not_null())


def require(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Return the frame unchanged, or raise ContractError naming the rules that rows break."""
    require_schema(frame.schema, table)
    counts = frame.select((~rule).sum().alias(name) for name, rule in rules(table).items())
    require_no_faults(counts.to_dicts()[0] if counts.width else {}, table)
    return frame

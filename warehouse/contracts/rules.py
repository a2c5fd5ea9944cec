"""Derive the row rules and the schema that a table's columns imply; `frames` and `files` evaluate them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from iosig.warehouse.contracts.types import Column, Table
from iosig.warehouse.errors import ContractError

Kind = Literal["not_null", "finite", "known", "at_least", "at_most"]
#: name of the rule that keys are unique
KEY_RULE = "key_unique"


@dataclass(frozen=True, slots=True)
class RowRule:
    """A rule about one column; NULL breaks only `not_null`. limit: the bound for `at_least` and `at_most`.

    In lists, bounds and `finite` apply to each element. NaN and infinities break `finite`; a missing value must be
    NULL.
    """

    name: str
    column: Column
    kind: Kind
    limit: float = 0.0


@cache
def row_rules(table: Table) -> tuple[RowRule, ...]:
    """Return the rules that each row of a table must meet."""
    return tuple(rule for column in table.columns for rule in _list_rules(column))


def _list_rules(column: Column) -> Iterator[RowRule]:
    if not column.nullable:
        yield RowRule(f"{column.name}_not_null", column, "not_null")
    if column.dtype in ("real", "reals"):
        yield RowRule(f"{column.name}_finite", column, "finite")
    if column.choices:
        yield RowRule(f"{column.name}_known", column, "known")
    if column.low is not None:
        yield RowRule(f"{column.name}_at_least_{column.low:g}", column, "at_least", column.low)
    if column.high is not None:
        yield RowRule(f"{column.name}_at_most_{column.high:g}", column, "at_most", column.high)


def require_columns(actual: Mapping[str, object], expected: Mapping[str, object], table: Table) -> None:
    """Raise ContractError unless the columns match in order and type."""
    if list(actual.items()) == list(expected.items()):
        return
    missing = [name for name in expected if name not in actual]
    extra = [name for name in actual if name not in expected]
    mismatches = [
        f"{name} is {actual[name]}, not {dtype}"
        for name, dtype in expected.items()
        if name in actual and actual[name] != dtype
    ]
    parts = [f"missing {missing}"] * bool(missing) + [f"unknown {extra}"] * bool(extra) + mismatches
    raise ContractError(f"{table.name}: " + ("; ".join(parts) or f"columns out of order: {list(actual)}"))


def require_no_faults(counts: Mapping[str, int], table: Table) -> None:
    """Raise ContractError, naming the broken rules, if any. counts: rule -> number of rows that break it."""
    faults = [f"{name} in {count} rows" for name, count in counts.items() if count]
    if faults:
        raise ContractError(f"{table.name}: rows break {', '.join(faults)}")

"""Define the expectation suite of each table.

`derive_contract_rules` derives rules from a contract. `load_suite_rules` loads domain rules from `<table>.json` in this
folder, in Great Expectations' format. Its `meta` adds each rule's name, a one-sentence description, the remedy, the
failure message (`failure`), whether violating rows are quarantined, and the column that identifies violating rows
(`examples`) where the compared values do not. It also declares each parameter that rules refer to, with its default.

Tables are checked as their days are computed, and a release contains days of many runs. Each rule therefore defines how
daily results are combined for the release (`Judged`).

Among the contract's rules, Great Expectations checks only key uniqueness, which involves several rows. All other
contract rules (`is_held`) are enforced when a table is written, and again when a release takes the file in, so they are
only recorded here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from iosig.warehouse.contracts import TABLES, Column, Table, table

Severity = Literal["critical", "warning", "info"]

#: how a rule is judged for a release; `rows`: each row separately, so on every day; `share`: by the fraction of
#: violating rows; `count`: by the number of rows; `values`: by the set of all values; `together`: among the rows that
#: one run recomputes, on every day (days from different runs are not compared, because old days are not read again)
Judged = Literal["rows", "share", "count", "values", "together"]

#: folder of the JSON suites
FOLDER = Path(__file__).parent

#: rule types that involve more than one row, and how their daily results are combined
_JUDGED: dict[str, Judged] = {
    "expect_table_row_count_to_be_between": "count",
    "expect_column_distinct_values_to_contain_set": "values",
    "expect_column_values_to_be_unique": "together",
    "expect_compound_columns_to_be_unique": "together",
}
#: columns that checks of a landed table read in addition to its own
_LANDING_COLUMNS = (
    Column("landing_id", "text", "The landing of the row."),
    Column("landed_at", "instant", "When the input landed."),
)
_CONTRACT_REMEDY = "This is an error in iosig: report it with the inputs of the run."


@dataclass(frozen=True, slots=True)
class Parameter:
    """Parameter of rules, set in the settings or by an optional default."""

    name: str
    doc: str
    unit: str
    default: float | None


@dataclass(frozen=True, slots=True)
class Rule:
    """Expectation with severity, remedy and failure message, based on Great Expectations' `type` and `kwargs`.

    `is_quarantine` rules are about single rows: violating rows are removed from the table. `is_held` rules are enforced
    by the table's contract. `failure` is the failure message (`sentences` inserts the numbers), and `sums` are columns
    with sums in this message. `example_column` identifies violating rows; without one, the compared values are the
    examples.
    """

    name: str
    type: str
    kwargs: Mapping[str, Any]
    severity: Severity
    doc: str
    remedy: str
    is_quarantine: bool = False
    is_held: bool = False
    judged: Judged = "rows"
    failure: str = ""
    sums: tuple[str, ...] = ()
    example_column: str = ""

    def holds(self, row_count: int, unexpected_count: int, distinct_values: Iterable[Any] = ()) -> bool:
        """Return whether the rule passes, given the numbers of rows and violations and the distinct values.

        The numbers cover one day, or all days of a release.
        """
        if self.judged == "count":
            low, high = self.kwargs.get("min_value"), self.kwargs.get("max_value")
            return (low is None or row_count >= low) and (high is None or row_count <= high)
        if self.judged == "values":
            return set(self.kwargs["value_set"]) <= set(distinct_values)
        if self.judged == "share" and row_count:
            # as Great Expectations counts it
            return bool((row_count - unexpected_count) / row_count >= self.kwargs["mostly"])
        return not unexpected_count

    @property
    def counted_columns(self) -> tuple[str, ...]:
        """Columns that must be non-NULL for a row to count, in a rule that is judged by share."""
        if self.judged != "share" or self.type == "expect_column_values_to_not_be_null":
            return ()
        return tuple(self.kwargs[name] for name in ("column", "column_A", "column_B") if name in self.kwargs)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Columns that the rule reads, including those of its row condition, examples and sums."""
        pairs = (self.kwargs[name] for name in ("column", "column_A", "column_B") if name in self.kwargs)
        conditions = _list_condition_columns(self.kwargs.get("row_condition", {}))
        examples = (self.example_column,) if self.example_column else ()
        return (*pairs, *self.kwargs.get("column_list", ()), *conditions, *examples, *self.sums)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Parameters without which the rule cannot be checked."""
        values = (value for value in self.kwargs.values() if isinstance(value, dict))
        return tuple(value["$PARAMETER"] for value in values if "$PARAMETER" in value)

    def configuration(self) -> dict[str, Any]:
        """Return the rule as a configuration of Great Expectations."""
        return {
            "type": self.type,
            "kwargs": dict(self.kwargs),
            "severity": self.severity,
            "meta": {"name": self.name, "doc": self.doc, "remedy": self.remedy},
        }


def derive_contract_rules(table: Table) -> tuple[Rule, ...]:
    """Return the rules that a table's contract implies, all critical."""
    return (
        _columns(table),
        replace(_key(table), is_held=False),
        *(rule for column in table.columns for rule in (*_presence(column), *_bounds(column), *_choices(column))),
    )


def load_suite_rules(table: Table) -> tuple[Rule, ...]:
    """Return the rules of a table's JSON suite; empty if it has none."""
    return tuple(_rule(expectation) for expectation in _suite(table.name).get("expectations", ()))


def is_landed_only(table: Table) -> bool:
    """Return whether a table is landed but not part of a release; DuckDB validates its rows (`landed`)."""
    return table.layer == "landed" and not table.is_published


def add_landing_columns(table: Table) -> Table:
    """Return a landed table with the columns of its landing that rules may name."""
    return replace(table, columns=(*table.columns, *_LANDING_COLUMNS))


def list_checked_tables() -> tuple[Table, ...]:
    """Return the tables to be validated: published tables outside the quality layer, and landed tables."""
    published = (table for table in TABLES if table.is_published and table.layer != "quality")
    return (*published, *(add_landing_columns(table) for table in TABLES if is_landed_only(table)))


def rules(table: Table) -> tuple[Rule, ...]:
    """Return contract rules followed by domain rules of a table.

    Landed tables have domain rules only: rows that violate their contract are refused when an input lands.
    """
    return (() if is_landed_only(table) else derive_contract_rules(table)) + load_suite_rules(table)


def list_checked_columns(table: Table) -> tuple[str, ...]:
    """Return the columns needed to check the rules that the table's contract does not enforce."""
    read = {name for rule in rules(table) if not rule.is_held for name in rule.column_names}
    return tuple(name for name in table.column_names if name in read or name == table.partition)


def rule(table_name: str, name: str) -> Rule:
    """Return the rule of that table and name, or raise KeyError."""
    try:
        return _by_name(table_name)[name]
    except KeyError:
        raise KeyError(f"{table_name} has no rule {name}") from None


def look_up_rule(table_name: str, name: str, severity: Severity) -> Rule:
    """Look up a rule by table and name, or build a placeholder for a rule that only an older release has."""
    try:
        return rule(table_name, name)
    except KeyError:
        doc = "An expectation of an older release, which is no longer in the suite."
        return Rule(name, "", {}, severity, doc, "Recompute its days.")


@cache
def _by_name(table_name: str) -> dict[str, Rule]:
    return {rule.name: rule for rule in rules(table(table_name))}


def parameters(table: Table) -> tuple[Parameter, ...]:
    """Return the parameters to which a table's rules refer."""
    definitions = _suite(table.name).get("meta", {}).get("parameters", {})
    return tuple(Parameter(name=name, **described) for name, described in definitions.items())


def values(table: Table, settings: Mapping[str, float]) -> dict[str, float]:
    """Return the known values of a table's parameters, from the settings or else the defaults."""
    defaults = {parameter.name: parameter.default for parameter in parameters(table)}
    resolved = {name: settings.get(name, default) for name, default in defaults.items()}
    return {name: value for name, value in resolved.items() if value is not None}


def _list_condition_columns(condition: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of a row condition, which may join several conditions."""
    if "column" in condition:
        return (condition["column"]["name"],)
    return tuple(name for part in condition.get("conditions", ()) for name in _list_condition_columns(part))


def _columns(table: Table) -> Rule:
    return _make_contract_rule(
        "columns_as_declared",
        "expect_table_columns_to_match_ordered_list",
        "The table has the columns of its contract, in order.",
        column_list=list(table.column_names),
    )


def _key(table: Table) -> Rule:
    doc = f"No two rows have the same {', '.join(table.key)}."
    if len(table.key) == 1:
        return _make_contract_rule("key_unique", "expect_column_values_to_be_unique", doc, column=table.key[0])
    return _make_contract_rule(
        "key_unique",
        "expect_compound_columns_to_be_unique",
        doc,
        column_list=list(table.key),
        ignore_row_if="never",
    )


def _presence(column: Column) -> list[Rule]:
    if column.nullable:
        return []
    doc = f"{column.name} is never NULL."
    return [
        _make_contract_rule(f"{column.name}_not_null", "expect_column_values_to_not_be_null", doc, column=column.name)
    ]


def _bounds(column: Column) -> list[Rule]:
    limits = {"min_value": column.low, "max_value": column.high}
    stated = {name: limit for name, limit in limits.items() if limit is not None}
    if not stated or column.dtype in ("reals", "ints"):
        return []
    words = [f"at least {column.low:g}"] if column.low is not None else []
    words += [f"at most {column.high:g}"] if column.high is not None else []
    doc = f"{column.name} is {' and '.join(words)}."
    kwargs = {"column": column.name, **stated}
    return [_make_contract_rule(f"{column.name}_in_bounds", "expect_column_values_to_be_between", doc, **kwargs)]


def _choices(column: Column) -> list[Rule]:
    if not column.choices:
        return []
    doc = f"{column.name} is one of {', '.join(column.choices)}."
    kwargs = {"column": column.name, "value_set": list(column.choices)}
    return [_make_contract_rule(f"{column.name}_known", "expect_column_values_to_be_in_set", doc, **kwargs)]


def _make_contract_rule(name: str, type_: str, doc: str, **kwargs: Any) -> Rule:
    return Rule(
        name,
        type_,
        kwargs,
        "critical",
        doc,
        _CONTRACT_REMEDY,
        is_held=True,
        judged=_classify_expectation(type_, kwargs),
    )


def _rule(expectation: Mapping[str, Any]) -> Rule:
    meta = expectation["meta"]
    return Rule(
        name=meta["name"],
        type=expectation["type"],
        kwargs=expectation["kwargs"],
        severity=expectation["severity"],
        doc=meta["doc"],
        remedy=meta["remedy"],
        is_quarantine=meta.get("quarantine", False),
        judged=meta.get("judged") or _classify_expectation(expectation["type"], expectation["kwargs"]),
        failure=meta.get("failure", ""),
        sums=tuple(meta.get("sums", ())),
        example_column=meta.get("examples", ""),
    )


def _classify_expectation(type_: str, kwargs: Mapping[str, Any]) -> Judged:
    return _JUDGED.get(type_, "share" if kwargs.get("mostly", 1) < 1 else "rows")


@cache
def _suite(table_name: str) -> dict[str, Any]:
    path = FOLDER / f"{table_name}.json"
    if not path.is_file():
        return {}
    return cast(dict[str, Any], json.loads(path.read_text(encoding="utf-8")))

"""The JSON suites and the rules that contracts imply are consistent, without Great Expectations."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from iosig.expectations import suites
from iosig.expectations.suites import Judged, Rule
from iosig.warehouse.contracts import Column, Table, frames, table
from tests.expectations.cases import CHECKED

DECLARED = [(found, rule) for found in CHECKED for rule in suites.load_suite_rules(found)]

EXAMPLE = Table(
    name="example",
    layer="stage",
    grain="one row per thing",
    key=("name", "side"),
    columns=(
        Column("name", "text", "Its name."),
        Column("side", "text", "Its side.", choices=("left", "right")),
        Column("share", "real", "Its share.", nullable=True, low=0, high=1),
        Column("steps", "reals", "Its steps.", low=0),
    ),
)


def conditions(condition: dict[str, Any]) -> list[dict[str, Any]]:
    """The single conditions of a row condition."""
    if not condition:
        return []
    return [single for part in condition.get("conditions", ()) for single in conditions(part)] or [condition]


def columns_named(rule: Rule) -> set[str]:
    """The columns that a rule names, including its row condition and examples."""
    named = {value for name in ("column", "column_A", "column_B") if (value := rule.kwargs.get(name))}
    named |= {condition["column"]["name"] for condition in conditions(rule.kwargs.get("row_condition", {}))}
    return named | set(rule.kwargs.get("column_list", ())) | ({rule.example_column} - {""})


def test_every_suite_belongs_to_a_checked_table() -> None:
    names = {path.stem for path in suites.FOLDER.glob("*.json")}

    assert names <= {found.name for found in CHECKED}
    assert names == {json.loads((suites.FOLDER / f"{name}.json").read_text())["name"] for name in names}


def test_names_are_unique_in_a_suite() -> None:
    for found in CHECKED:
        names = [rule.name for rule in suites.rules(found)]
        assert sorted(set(names)) == sorted(names), found.name


def rules_without(holds: Callable[[Table, Rule], bool]) -> list[str]:
    """The declared rules that lack a property."""
    return [f"{found.name}.{rule.name}" for found, rule in DECLARED if not holds(found, rule)]


def test_rules_name_only_columns_of_the_contract() -> None:
    assert rules_without(lambda found, rule: columns_named(rule) <= set(found.column_names)) == []


def test_rules_have_a_description_and_a_remedy() -> None:
    assert rules_without(lambda _, rule: rule.name == rule.name.lower().replace("-", "_")) == []
    assert rules_without(lambda _, rule: rule.doc.endswith(".") and rule.remedy.endswith(".")) == []
    assert {rule.severity for _, rule in DECLARED} <= {"critical", "warning", "info"}


def test_rules_have_no_pandas_query() -> None:
    kinds = {part["type"] for _, rule in DECLARED for part in conditions(rule.kwargs.get("row_condition", {}))}

    assert kinds <= {"comparison", "nullity"}


def test_example_columns_are_never_null() -> None:
    assert (
        rules_without(lambda found, rule: not (rule.example_column and found.column(rule.example_column).nullable))
        == []
    )


def test_quarantine_rules_are_only_warnings() -> None:
    assert rules_without(lambda _, rule: not rule.is_quarantine or rule.severity == "warning") == []


def test_used_parameters_are_declared() -> None:
    for found in CHECKED:
        used = {name for rule in suites.load_suite_rules(found) for name in rule.parameter_names}
        assert used == {parameter.name for parameter in suites.parameters(found)}, found.name


def test_parameter_value_comes_from_settings_or_its_default() -> None:
    jobs = table("jobs")

    assert suites.values(jobs, {}) == {"max_job_duration_s": 60 * 86400}
    assert suites.values(jobs, {"max_job_duration_s": 5.0, "machine_node_count": 9, "unknown": 1}) == {
        "max_job_duration_s": 5.0,
        "machine_node_count": 9,
    }


def test_contract_implies_rules_for_columns_key_nulls_bounds_and_choices() -> None:
    implied = {rule.name: (rule.type, dict(rule.kwargs)) for rule in suites.derive_contract_rules(EXAMPLE)}

    not_null = "expect_column_values_to_not_be_null"
    assert implied == {
        "columns_as_declared": (
            "expect_table_columns_to_match_ordered_list",
            {"column_list": ["name", "side", "share", "steps"]},
        ),
        "key_unique": (
            "expect_compound_columns_to_be_unique",
            {"column_list": ["name", "side"], "ignore_row_if": "never"},
        ),
        "name_not_null": (not_null, {"column": "name"}),
        "side_not_null": (not_null, {"column": "side"}),
        "side_known": ("expect_column_values_to_be_in_set", {"column": "side", "value_set": ["left", "right"]}),
        "share_in_bounds": (
            "expect_column_values_to_be_between",
            {"column": "share", "min_value": 0, "max_value": 1},
        ),
        "steps_not_null": (not_null, {"column": "steps"}),
    }
    assert {rule.severity for rule in suites.derive_contract_rules(EXAMPLE)} == {"critical"}
    assert [rule.name for rule in suites.derive_contract_rules(EXAMPLE) if not rule.is_held] == ["key_unique"]


def test_implied_rules_equal_the_rules_of_frames() -> None:
    """Except for rules implied by a type, and bounds of lists, which reach the suite as lengths."""
    for found in CHECKED:
        lists = {column.name for column in found.columns if column.dtype in ("reals", "ints")}
        held = {
            name.replace("_at_least_", "_in_bounds ").replace("_at_most_", "_in_bounds ").split()[0]
            for name in frames.rules(found)
            if not name.endswith("_finite")
        } - {f"{name}_in_bounds" for name in lists}
        implied = {rule.name for rule in suites.derive_contract_rules(found)}
        assert implied == held | {"columns_as_declared", "key_unique"}, found.name


def test_rule_is_found_by_table_and_name() -> None:
    assert suites.rule("jobs", "ends_after_start").is_quarantine
    with pytest.raises(KeyError, match="jobs has no rule nothing"):
        suites.rule("jobs", "nothing")


def test_rules_judged_by_daily_numbers_have_no_row_condition() -> None:
    """Counts and values cover whole days; rules that compare rows cannot be judged per row."""
    daily = [(rule, rule.kwargs) for _, rule in DECLARED if rule.judged in ("share", "count", "values")]
    assert daily
    for rule, kwargs in daily:
        assert "row_condition" not in kwargs, rule
        assert not rule.parameter_names
        assert kwargs.get("ignore_row_if", "either_value_is_missing") == "either_value_is_missing"
    compares_rows = re.compile("unique|median").search
    assert rules_without(lambda _, rule: (rule.judged == "together") == bool(compares_rows(rule.type))) == []


@pytest.mark.parametrize(
    ("kind", "kwargs", "judged"),
    [
        ("expect_column_values_to_be_between", {"column": "share"}, "rows"),
        ("expect_column_values_to_be_between", {"column": "share", "mostly": 0.5}, "share"),
        ("expect_column_values_to_be_between", {"column": "share", "mostly": 1}, "rows"),
        ("expect_table_row_count_to_be_between", {"max_value": 1}, "count"),
        ("expect_column_distinct_values_to_contain_set", {"column": "side", "value_set": ["left"]}, "values"),
        ("expect_column_values_to_be_unique", {"column": "name"}, "together"),
    ],
)
def test_judgment_is_derived_from_the_expectation(kind: str, kwargs: dict[str, Any], judged: str) -> None:
    meta = {"name": "it", "doc": "It.", "remedy": "No."}
    expectation = {"type": kind, "kwargs": kwargs, "severity": "info", "meta": meta}

    assert suites._rule(expectation).judged == judged
    assert suites._rule(expectation | {"meta": meta | {"judged": "together"}}).judged == "together"


@pytest.mark.parametrize(
    ("judged", "kwargs", "rows", "broken", "seen", "holds"),
    [
        ("rows", {}, 9, 0, (), True),
        ("together", {}, 9, 1, (), False),
        ("share", {"mostly": 0.5}, 4, 2, (), True),
        ("share", {"mostly": 0.5}, 4, 3, (), False),
        ("share", {"mostly": 0.5}, 0, 0, (), True),
        ("count", {"min_value": 1}, 0, 0, (), False),
        ("count", {"max_value": 3}, 3, 0, (), True),
        ("count", {"max_value": 3}, 4, 0, (), False),
        ("values", {"value_set": ["x"]}, 4, 0, ("x", "y"), True),
        ("values", {"value_set": ["x"]}, 4, 0, ("x",), True),
        ("values", {"value_set": ["x"]}, 4, 0, ("y",), False),
    ],
)
def test_rule_holds_depending_on_its_numbers(
    judged: Judged, kwargs: dict[str, Any], rows: int, broken: int, seen: tuple[str, ...], holds: bool
) -> None:
    assert Rule("it", "", kwargs, "info", "It.", "No.", judged=judged).holds(rows, broken, seen) == holds


def test_only_columns_of_evaluated_rules_are_read() -> None:
    for found in CHECKED:
        evaluated = [rule for rule in suites.rules(found) if not rule.is_held]
        named = {name for rule in evaluated for name in (*columns_named(rule), *rule.sums)}
        assert set(suites.list_checked_columns(found)) == named | ({found.partition} - {None}), found.name

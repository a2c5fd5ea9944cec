"""What the JSON suites say, and what the contracts imply: all without Great Expectations."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from expectations import suites
from expectations.suites import Rule
from tests.expectations.cases import CHECKED
from warehouse.contracts import Column, Table, frames, table

DECLARED = [(found, rule) for found in CHECKED for rule in suites.declared(found)]
by_rule = pytest.mark.parametrize(
    ("found", "rule"), [pytest.param(found, rule, id=f"{found.name}.{rule.name}") for found, rule in DECLARED]
)
by_table = pytest.mark.parametrize("found", CHECKED, ids=[found.name for found in CHECKED])

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


def columns_named(kwargs: dict[str, Any]) -> set[str]:
    """The columns that an expectation names, those of its row condition too."""
    named = {value for name in ("column", "column_A", "column_B") if (value := kwargs.get(name))}
    named |= set(kwargs.get("column_list", ()))
    condition = kwargs.get("row_condition", {})
    if "column" in condition:
        named.add(condition["column"]["name"])
    tree = ast.walk(ast.parse(condition.get("pass_through_filter", "0"), mode="eval"))
    return named | {node.id for node in tree if isinstance(node, ast.Name)} - {"abs"}


def test_every_suite_is_of_a_published_table() -> None:
    names = {path.stem for path in suites.FOLDER.glob("*.json")}

    assert names <= {found.name for found in CHECKED}
    assert names == {json.loads((suites.FOLDER / f"{name}.json").read_text())["name"] for name in names}


@by_table
def test_names_are_unique_in_a_suite(found: Table) -> None:
    names = [rule.name for rule in suites.rules(found)]

    assert sorted(set(names)) == sorted(names)


@by_rule
def test_a_rule_names_only_columns_of_the_contract(found: Table, rule: Rule) -> None:
    assert columns_named(dict(rule.kwargs)) <= set(found.column_names)


@by_rule
def test_a_rule_says_what_it_is_about_and_what_to_do(found: Table, rule: Rule) -> None:
    assert rule.name == rule.name.lower().replace("-", "_")
    assert rule.doc.endswith(".")
    assert rule.remedy.endswith(".")
    assert rule.severity in ("critical", "warning", "info")


@by_rule
def test_a_rule_of_forbidden_rows_looks_at_a_column_that_is_never_null(found: Table, rule: Rule) -> None:
    if "pass_through_filter" in rule.kwargs.get("row_condition", {}):
        assert rule.type == "expect_column_values_to_be_null"
        assert not found.column(rule.kwargs["column"]).nullable


@by_rule
def test_a_rule_that_takes_rows_out_does_not_stop_the_release_as_well(found: Table, rule: Rule) -> None:
    assert not rule.is_quarantine or rule.severity == "warning"


@by_table
def test_parameters_are_declared_where_they_are_used(found: Table) -> None:
    used = {name for rule in suites.declared(found) for name in rule.parameter_names}

    assert used == {parameter.name for parameter in suites.parameters(found)}


def test_a_parameter_has_the_value_of_the_settings_else_its_default_else_none() -> None:
    jobs = table("jobs")

    assert suites.values(jobs, {}) == {"max_job_duration_s": 60 * 86400}
    assert suites.values(jobs, {"max_job_duration_s": 5.0, "machine_node_count": 9, "unknown": 1}) == {
        "max_job_duration_s": 5.0,
        "machine_node_count": 9,
    }


def test_a_contract_implies_its_columns_key_presence_bounds_and_choices() -> None:
    implied = {rule.name: (rule.type, dict(rule.kwargs)) for rule in suites.implied(EXAMPLE)}

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
    assert {rule.severity for rule in suites.implied(EXAMPLE)} == {"critical"}
    assert [rule.name for rule in suites.implied(EXAMPLE) if not rule.is_held] == ["key_unique"]


@by_table
def test_what_a_contract_implies_is_what_its_own_rules_hold(found: Table) -> None:
    """All but what a type implies, and the bounds of lists, which reach the suite as lengths."""
    lists = {column.name for column in found.columns if column.dtype in ("reals", "ints")}
    held = {
        name.replace("_at_least_", "_in_bounds ").replace("_at_most_", "_in_bounds ").split()[0]
        for name in frames.rules(found)
        if not name.endswith("_finite")
    } - {f"{name}_in_bounds" for name in lists}

    assert {rule.name for rule in suites.implied(found)} == held | {"columns_as_declared", "key_unique"}


def test_a_rule_is_found_by_its_table_and_name() -> None:
    assert suites.rule("jobs", "ends_after_start").is_quarantine
    with pytest.raises(KeyError, match="jobs has no rule nothing"):
        suites.rule("jobs", "nothing")

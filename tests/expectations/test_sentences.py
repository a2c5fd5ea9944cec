"""Failures are described in grammatical sentences with existing numbers."""

from __future__ import annotations

from itertools import product
from string import Formatter

import pytest

from iosig.expectations import sentences, suites
from iosig.expectations.suites import Rule

RULES = [(table, rule) for table in suites.list_checked_tables() for rule in suites.load_suite_rules(table)]


def test_failure_sentences_use_only_available_numbers() -> None:
    """Sentences name only recorded numbers, and columns that can be summed."""
    for table, rule in RULES:
        assert rule.failure or rule.severity == "critical", rule
        named = {name for _, name, _, _ in Formatter().parse(rule.failure) if name}
        assert named <= {"count", "rows", *rule.sums}, rule
        assert not named & {"count"} or rule.judged not in ("count", "values"), rule
        assert all(table.column(name).dtype == "int" for name in rule.sums), rule


def test_sentences_are_complete_in_singular_and_plural() -> None:
    for (_, rule), count in product(RULES, (1, 2)):
        rows = {"observed_value": 1200} if rule.judged == "count" else {"row_count": 1200}
        told = sentences.describe_failure(rule, count, rows | {"sums": dict.fromkeys(rule.sums, count)})
        assert told.endswith(".")
        assert not {"{", "}", "|"} & set(told), told


def rule_of(failure: str) -> Rule:
    return Rule("bound", "", {}, "warning", "It is bound.", "Bind it.", failure=failure, sums=("poll_count",))


@pytest.mark.parametrize(
    ("failure", "observed", "told"),
    [
        ("{rows:row was|rows were} lost", {"row_count": 1}, "row was lost"),
        ("{rows} {rows:row|rows}", {"row_count": 1234567}, "1,234,567 rows"),
        ("{rows} {rows:row|rows}", {"observed_value": 0}, "0 rows"),
        ("{poll_count} of them", {"row_count": 9, "sums": {"poll_count": 4}}, "4 of them"),
        ("{poll_count} of them", {"row_count": 9}, "3 rows break this: It is bound."),
        ("", {"row_count": 9}, "3 of 9 rows break this: It is bound."),
        ("", {"error": "{x}"}, "This could not be checked ({x}): It is bound."),
    ],
)
def test_numbers_are_inserted_into_sentences(failure: str, observed: dict[str, object], told: str) -> None:
    assert sentences.describe_failure(rule_of(failure), 3, observed) == told


def test_unchecked_rule_asks_for_its_setting() -> None:
    observed = {"not_configured": ["least"]}
    assert sentences.describe_failure(rule_of(""), 0, observed).startswith("Not checked: no value is set for least")
    assert "settings" in sentences.what_to_do(rule_of(""), observed)
    assert sentences.what_to_do(rule_of(""), {}) == "Bind it."
    assert sentences.what_to_do(rule_of(""), {"error": "?"}) == sentences.ERROR_REMEDY

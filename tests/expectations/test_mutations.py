"""Each rule fails on a mutated row, and only the expected rules fail."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from iosig.expectations import gate, suites
from iosig.expectations.suites import Rule
from iosig.warehouse.contracts import Table
from tests.budget import one_in
from tests.expectations.cases import BROKEN, CHECKED, NOTED, SETTINGS, identify, rows_of

# Great Expectations reads pandas values in a way that pandas 4 will change.
pytestmark = pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning")

#: enough rows that the mutated row neither moves their median nor is a third of all
GOOD_ROW_COUNT = 3
#: rules about the whole table, which no single row violates
OF_TABLE = {"expect_table_row_count_to_be_between", "expect_column_distinct_values_to_contain_set"}
#: informational rules that any row violates
RULES = [
    (found, rule)
    for found in CHECKED
    for rule in suites.load_suite_rules(found)
    if rule.type not in OF_TABLE and rule.name not in NOTED.get(found.name, ())
]


def mutations(found: Table, rule: Rule) -> tuple[set[str], list[dict[str, Any]]]:
    """Return the changes to rows that violate a rule and as few others as possible, and the violated rules."""
    cases = [(rules, change) for of, rules, change in BROKEN if of == found.name and rule.name in rules]
    fewest = min((rules for rules, _ in cases), key=len)
    changes = [change for rules, change in cases if rules == fewest]
    # it takes two rows to violate a key
    return fewest, changes if "unique" in rule.type else changes[:1]


@pytest.mark.parametrize(
    ("found", "rule"), one_in(12, RULES), ids=[f"{found.name}.{rule.name}" for found, rule in RULES]
)
def test_mutated_row_fails_its_rule(found: Table, rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "rules", suites.load_suite_rules)
    rules, changes = mutations(found, rule)
    good = [identify(found, place) for place in range(GOOD_ROW_COUNT)]

    verdicts = gate.check(found, rows_of(found, *good, *changes), SETTINGS).verdicts

    broken = verdicts.filter(pl.col("unexpected_count") > 0)
    # a quarantined row is not checked against the other rules
    first = {name for name in rules if suites.rule(found.name, name).is_quarantine}
    assert set(broken["expectation"]) - NOTED.get(found.name, set()) == (first or rules)
    # the rule fails on one of the days of the rows
    of_rule = broken.filter(expectation=rule.name)
    assert of_rule["severity"].to_list() == [rule.severity]
    assert of_rule["unexpected_count"].to_list() == [len(changes)]
    good_ratio = 1 - len(changes) / of_rule["row_count"].item()
    assert of_rule["success"].to_list() == [rule.judged == "share" and good_ratio >= rule.kwargs["mostly"]]


def test_every_rule_has_a_mutation() -> None:
    broken = {(name, rule) for name, rules, _ in BROKEN for rule in rules}

    assert {(found.name, rule.name) for found, rule in RULES} == broken

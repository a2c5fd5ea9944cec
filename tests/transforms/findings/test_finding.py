"""Findings are ranked by severity, and findings of small impact are notes."""

from __future__ import annotations

from iosig.transforms.findings.finding import apply_rules
from iosig.transforms.findings.thresholds import Thresholds
from tests.transforms.findings.made_traces import facts, many_facts

THRESHOLDS = Thresholds()
SMALL = {"read_small_count": 5000, "read_count": 5000}
RANDOM = {"write_count": 5000, "write_sequential_count": 0}


def test_findings_are_sorted_by_severity_and_impact() -> None:
    run_facts = SMALL | RANDOM | {"doubtful_module_count": 1, "module_count": 2, "read_time_ratio": 0.2}
    findings = apply_rules(facts(**run_facts, write_time_ratio=0.5), THRESHOLDS).filter(outcome="found")
    assert findings["rule"].to_list() == ["random_access", "small_requests", "trace_not_whole"]
    assert findings["severity"].to_list() == ["critical", "critical", "warning"]
    assert findings["place"].to_list() == [1, 2, 3]


def test_finding_with_small_impact_is_a_note() -> None:
    for ratio, severity in ((0.0099, "note"), (0.01, "critical"), (None, "critical")):
        findings = apply_rules(facts(**SMALL, read_time_ratio=ratio), THRESHOLDS).filter(outcome="found")
        assert findings["severity"].to_list() == [severity]


def test_evidence_has_values_and_units() -> None:
    row = apply_rules(facts(**SMALL), THRESHOLDS).filter(outcome="found").row(0, named=True)
    assert row["evidence"] == [
        {"name": "small_count", "value": 5000.0, "unit": "requests"},
        {"name": "request_count", "value": 5000.0, "unit": "requests"},
        {"name": "small_ratio", "value": 1.0, "unit": "1"},
    ]


def test_only_unknown_outcomes_list_missing_facts() -> None:
    findings = apply_rules(facts(read_small_count=0, read_count=5), THRESHOLDS)
    row = findings.filter(rule="small_requests", direction="read").row(0, named=True)
    assert (row["outcome"], row["severity"], row["sentence"], row["missing"]) == ("not_found", None, None, None)
    row = findings.filter(rule="small_requests", direction="write").row(0, named=True)
    assert (row["outcome"], row["evidence"], row["missing"]) == ("unknown", None, "write_small_count write_count")


def test_places_are_counted_per_run() -> None:
    findings = apply_rules(many_facts([SMALL, {}, SMALL | RANDOM]), THRESHOLDS)
    assert findings.group_by("trace_id").len()["len"].n_unique() == 1
    assert findings.filter(outcome="found").group_by("trace_id", maintain_order=True).len().rows() == [
        ("0", 1),
        ("2", 2),
    ]
    assert findings.filter(place=1)["trace_id"].to_list() == ["0", "1", "2"]

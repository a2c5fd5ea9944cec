"""What is found, ranked: the worst first, and what hardly concerns the run as a note."""

from __future__ import annotations

from iosig.transforms.findings.finding import of_facts
from iosig.transforms.findings.thresholds import Thresholds
from tests.transforms.findings.made_traces import facts, many_facts

MOST = Thresholds()
SMALL = {"read_small_count": 5000, "read_count": 5000}
RANDOM = {"write_count": 5000, "write_sequential_count": 0}


def test_the_worst_is_first_and_what_takes_longest_before_its_like() -> None:
    told = SMALL | RANDOM | {"doubtful_module_count": 1, "module_count": 2, "read_time_ratio": 0.2}
    found = of_facts(facts(**told, write_time_ratio=0.5), MOST).filter(outcome="found")
    assert found["rule"].to_list() == ["random_access", "small_requests", "trace_not_whole"]
    assert found["severity"].to_list() == ["critical", "critical", "warning"]
    assert found["place"].to_list() == [1, 2, 3]


def test_what_takes_less_than_a_hundredth_of_the_run_is_a_note() -> None:
    for ratio, severity in ((0.0099, "note"), (0.01, "critical"), (None, "critical")):
        found = of_facts(facts(**SMALL, read_time_ratio=ratio), MOST).filter(outcome="found")
        assert found["severity"].to_list() == [severity]


def test_evidence_says_numbers_and_units() -> None:
    row = of_facts(facts(**SMALL), MOST).filter(outcome="found").row(0, named=True)
    assert row["evidence"] == [
        {"name": "small_count", "value": 5000.0, "unit": "requests"},
        {"name": "request_count", "value": 5000.0, "unit": "requests"},
        {"name": "small_ratio", "value": 1.0, "unit": "1"},
    ]


def test_what_is_not_found_says_nothing_and_what_is_not_known_says_why() -> None:
    found = of_facts(facts(read_small_count=0, read_count=5), MOST)
    row = found.filter(rule="small_requests", direction="read").row(0, named=True)
    assert (row["outcome"], row["severity"], row["sentence"], row["missing"]) == ("not_found", None, None, None)
    row = found.filter(rule="small_requests", direction="write").row(0, named=True)
    assert (row["outcome"], row["evidence"], row["missing"]) == ("unknown", None, "write_small_count write_count")


def test_many_runs_are_asked_at_once_and_each_has_its_own_places() -> None:
    found = of_facts(many_facts([SMALL, {}, SMALL | RANDOM]), MOST)
    assert found.group_by("trace_id").len()["len"].n_unique() == 1
    assert found.filter(outcome="found").group_by("trace_id", maintain_order=True).len().rows() == [("0", 1), ("2", 2)]
    assert found.filter(place=1)["trace_id"].to_list() == ["0", "1", "2"]

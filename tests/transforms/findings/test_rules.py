"""Each rule applies to its facts, and not if a fact is slightly below its threshold."""

from __future__ import annotations

from typing import Any

import pytest

from iosig.transforms.findings.finding import apply_rules
from iosig.transforms.findings.rules import SEVERITIES, make_rules
from iosig.transforms.findings.thresholds import Thresholds
from tests.transforms.findings.made_traces import facts, many_facts

THRESHOLDS = Thresholds()
MIB = 1 << 20
_MPIIO = {"modules": ["MPIIO", "POSIX"]}
#: By rule and direction: facts with which the rule fires, and changes with which it just does not.
CASES: dict[tuple[str, str | None], tuple[dict[str, Any], list[dict[str, Any]]]] = {
    ("small_requests", "read"): (
        {"read_small_count": 1001, "read_count": 10_009},
        [{"read_small_count": 1000}, {"read_count": 10_010}],
    ),
    ("random_access", "write"): (
        {"write_count": 5004, "write_sequential_count": 4003},
        [{"write_count": 5003}, {"write_count": 5005.0, "write_sequential_count": 4004.5}],
    ),
    ("unbalanced_ranks", "read"): (
        {
            "read_bytes": 9e9, "process_count": 8, "read_imbalance_ratio": 0.31, "read_top_bytes": MIB,
            "read_rank_bytes": 3 * MIB,
        },
        [{"read_imbalance_ratio": 0.3}, {"read_top_bytes": MIB - 1}, {"read_rank_bytes": MIB}, {"process_count": 1}],
    ),
    ("one_rank_does_all", "write"): (
        {"write_bytes": 9e9, "process_count": 2, "write_top_bytes": 9 * MIB, "write_rank_bytes": 10 * MIB},
        [{"write_rank_bytes": 10 * MIB + 1}, {"process_count": 1}, {"write_top_bytes": 1.0, "write_rank_bytes": 1.0}],
    ),
    ("redundant_reads", "read"): (
        {"read_again_bytes": MIB, "posix_read_bytes": 10 * MIB - 1},
        [{"posix_read_bytes": 10 * MIB}, {"read_again_bytes": MIB - 1}],
    ),
    ("redundant_writes", "write"): (
        {"write_again_bytes": MIB, "posix_write_bytes": 10 * MIB - 1},
        [{"posix_write_bytes": 10 * MIB}],
    ),
    ("collective_not_used", "write"): (
        _MPIIO | {"write_independent_count": 1001, "write_collective_count": 0, "process_count": 2},
        [{"write_independent_count": 1000}, {"write_collective_count": 1}, {"process_count": 1}],
    ),
    ("waiting_in_collectives", "write"): (
        _MPIIO | {"write_waiting_ratio": 0.11, "write_collective_count": 1},
        [{"write_waiting_ratio": 0.1}, {"write_collective_count": 0}],
    ),
    ("amplified_by_mpiio", "read"): (
        _MPIIO | {"mpiio_read_bytes": 2 * MIB, "posix_read_bytes": 3 * MIB + 1},
        [{"posix_read_bytes": 3 * MIB}, {"mpiio_read_bytes": 1, "posix_read_bytes": MIB}],
    ),
    ("blocking_io", "read"): (
        _MPIIO
        | {
            "read_nonblocking_count": 0, "read_independent_count": 1, "read_collective_count": 0,
            "mpiio_read_time_ratio": 0.1,
        },
        [{"mpiio_read_time_ratio": 0.099}, {"read_nonblocking_count": 1}, {"read_independent_count": 0}],
    ),
    ("misaligned_requests", None): (
        {"file_misaligned_count": 1001, "read_count": 10_000, "write_count": 9},
        [{"write_count": 10}, {"file_misaligned_count": 1000, "read_count": 5000}],
    ),
    ("misaligned_memory", None): (
        {"memory_misaligned_count": 1001, "read_count": 10_000, "write_count": 9},
        [{"write_count": 10}],
    ),
    ("stdio_used", None): (
        {"stdio_bytes": MIB, "read_bytes": 10 * MIB - 1, "write_bytes": 0},
        [{"read_bytes": 10 * MIB}, {"stdio_bytes": MIB - 1}],
    ),
    ("stragglers", None): (
        {
            "process_count": 9, "slowest_s": 11.0, "mean_s": 10.0, "straggling_ratio": 0.16,
            "straggling_time_ratio": 0.01,
        },
        [{"straggling_ratio": 0.15}, {"straggling_time_ratio": 0.009}, {"mean_s": 10.1}, {"process_count": 1}],
    ),
    ("metadata_time", None): (
        {"all_metadata_time_s": 60.1, "process_count": 2},
        [{"all_metadata_time_s": 60.0}, {"process_count": 3}],
    ),
    ("metadata_storm", None): (
        {"metadata_count": 1001, "data_count": 1000},
        [{"data_count": 1001}, {"metadata_count": 1000, "data_count": 1}],
    ),
    ("shared_file_without_mpiio", None): (
        {"bare_shared_bytes": MIB, "process_count": 2, "read_bytes": 10 * MIB - 1, "write_bytes": 0},
        [{"read_bytes": 10 * MIB}, {"bare_shared_bytes": MIB - 1}, {"process_count": 1}],
    ),
    ("stripes_too_few", None): (
        {"wanted_count": 8, "target_count": 3, "striped_file_count": 1},
        [{"target_count": 4}, {"striped_file_count": 0}],
    ),
    ("stripes_too_many", None): (
        {"wide_file_count": 2, "striped_file_count": 19},
        [{"striped_file_count": 20}, {"wide_file_count": 1, "striped_file_count": 1}],
    ),
    ("stripes_crossed", None): (
        {"crossing_count": 1001, "striped_count": 10_009, "striped_file_count": 1},
        [{"striped_count": 10_010}, {"crossing_count": 1000}],
    ),
    ("aggregators_share_nodes", None): (
        _MPIIO
        | {
            "mover_count": 9, "host_count": 8, "read_collective_count": 1, "write_collective_count": 0,
            "process_count": 16,
        },
        [{"mover_count": 8}, {"read_collective_count": 0}, {"process_count": 9}, {"host_count": 0}],
    ),
    ("trace_not_whole", None): ({"doubtful_module_count": 1, "module_count": 3}, [{"doubtful_module_count": 0}]),
}  # fmt: skip


def find_needs(rule: str, direction: str | None) -> set[str]:
    # a run with an unknown number of processes is treated as parallel
    return {
        name for one in make_rules(THRESHOLDS) if (one.name, one.direction) == (rule, direction) for name in one.needs
    } - {"process_count"}


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[Any, ...], str]:
    """Outcomes of each rule for its facts and for slightly changed facts, evaluated together."""
    variants: dict[tuple[Any, ...], dict[str, Any]] = {}
    for case, (fires, changes) in CASES.items():
        variants[(*case, "fires")] = fires
        variants |= {(*case, number): fires | change for number, change in enumerate(changes)}
        variants |= {(*case, name): fires | {name: None} for name in find_needs(*case)}
    found = apply_rules(many_facts(list(variants.values())), THRESHOLDS)
    told = {
        (int(trace), rule, way): outcome
        for trace, rule, way, outcome in found.select("trace_id", "rule", "direction", "outcome").iter_rows()
    }
    return {variant: told[place, variant[0], variant[1]] for place, variant in enumerate(variants)}


def test_every_rule_has_a_case() -> None:
    assert {rule for rule, _ in CASES} == {rule.name for rule in make_rules(THRESHOLDS)}


@pytest.mark.parametrize("case", CASES, ids=[rule for rule, _ in CASES])
def test_rule_fires_at_its_threshold_only(case: tuple[str, str | None], outcomes: dict[tuple[Any, ...], str]) -> None:
    assert outcomes[(*case, "fires")] == "found"
    for number, change in enumerate(CASES[case][1]):
        assert outcomes[(*case, number)] in ("not_found", "not_applicable"), change


@pytest.mark.parametrize("case", CASES, ids=[rule for rule, _ in CASES])
def test_outcome_is_unknown_without_facts(case: tuple[str, str | None], outcomes: dict[tuple[Any, ...], str]) -> None:
    assert {outcomes[(*case, name)] for name in find_needs(*case)} == {"unknown"}


def test_rules_for_unused_layers_are_not_applicable() -> None:
    told = {"modules": ["POSIX"], "process_count": 1, "striped_file_count": 0}
    found = apply_rules(facts(**told), THRESHOLDS).filter(outcome="not_applicable")
    assert {"collective_not_used", "stragglers", "stripes_too_few", "blocking_io"} <= set(found["rule"])


def test_rules_have_anchor_and_remedy() -> None:
    for rule in make_rules(THRESHOLDS):
        assert rule.anchor.startswith(("Drishti", "ours"))
        assert rule.severity in SEVERITIES
        assert rule.remedy.endswith((".", "?"))
        # each number in the sentence is part of the evidence
        told = {number.name: "1" for number in rule.evidence}
        assert "{" not in rule.sentence.format_map(told)

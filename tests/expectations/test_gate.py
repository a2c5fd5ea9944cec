"""The quality gate on frames that violate one rule each, and its summaries by day.

All tests that need Great Expectations are in this module, because its import takes seconds.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import socket
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings as bounded, strategies as st

from iosig.expectations import daily_summary, gate, suites
from iosig.expectations.gate import CheckResult
from iosig.warehouse.contracts import Column, Table, frames, table
from iosig.warehouse.contracts.job_io import JOB_IO_SOURCES
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.polls import POLLS_DAILY, TICKS
from iosig.warehouse.contracts.quality import QUALITY, QUALITY_DAILY, QUARANTINE
from iosig.warehouse.contracts.samples import APPLICATIONS, SAMPLES
from iosig.warehouse.contracts.series import SERIES_INTERVALS
from iosig.warehouse.contracts.signatures import SIGNATURE_POINTS
from iosig.warehouse.errors import GateFailed
from tests.budget import examples, one_in
from tests.expectations.cases import (
    BROKEN,
    CHECKED,
    EMPTY,
    GOOD,
    NO_POLLS,
    NO_VALUES,
    NOTED,
    SETTINGS,
    identify,
    row_of,
    rows_of,
    some,
)
from tests.expectations.landed_cases import DAY, HOUR, NOON

# Great Expectations reads pandas values in a way that pandas 4 will change.
pytestmark = pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning")

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> &amp; \"'$styling ${x}"

BY_NAME = {found.name: found for found in CHECKED}
#: rules about the whole table, which name no rows
OF_TABLE = {"expect_table_row_count_to_be_between", "expect_column_distinct_values_to_contain_set"}


@pytest.fixture(scope="module", autouse=True)
def connections() -> Iterator[list[Any]]:
    """Record every attempt to connect while Great Expectations is imported, checks and draws."""
    attempts: list[Any] = []

    def refuse(_: socket.socket, address: Any) -> None:
        attempts.append(address)
        raise ConnectionRefusedError(address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket.socket, "connect_ex", refuse)
        gate.preload()
        yield attempts


@pytest.fixture
def only_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the rules that contracts imply: they are tested separately, and cost time."""
    monkeypatch.setattr(suites, "rules", suites.load_suite_rules)


def failed(checked: CheckResult) -> set[str]:
    return set(checked.verdicts.filter(~pl.col("success"))["expectation"])


def verdict(checked: CheckResult, name: str) -> dict[str, Any]:
    (found,) = checked.verdicts.filter(expectation=name).iter_rows(named=True)
    return found


def whole(checked: CheckResult, found: Table, parameters: dict[str, float]) -> pl.DataFrame:
    """Return the published results of a table that consists of the checked rows."""
    return daily_summary.aggregate_days(checked.verdicts, parameters).filter(table_name=found.name)


def kind_of(found: Table, rule: suites.Rule) -> str:
    """Return a rule's signature with the types of its columns instead of their names."""
    types = {column.name: column.dtype for column in found.columns}
    told = json.dumps({name: value for name, value in rule.configuration().items() if name in {"type", "kwargs"}})
    return re.sub(r'"(\w+)"', lambda name: f'"{types.get(name[1], name[1])}"', told)


@pytest.fixture(scope="module")
def of_each_kind() -> dict[str, list[suites.Rule]]:
    """Rules by table, one of each kind: the same rule on other columns of the type is no new case."""
    first: dict[str, tuple[str, suites.Rule]] = {}
    for found in CHECKED:
        for rule in suites.rules(found):
            if not rule.parameter_names:
                first.setdefault(kind_of(found, rule), (found.name, rule))
    return {name: [rule for of, rule in first.values() if of == name] for name, _ in first.values()}


# ---- domain rules


@pytest.mark.parametrize("name", one_in(3, sorted(GOOD)))
def test_valid_row_violates_no_rule(name: str) -> None:
    found = BY_NAME[name]
    frame = rows_of(found, {})

    checked = gate.check(found, frame, SETTINGS)

    frames.require(frame, found)
    assert failed(checked) == NOTED.get(name, set())
    assert checked.good.equals(frame)
    assert checked.quarantined.is_empty()
    frames.require(checked.verdicts, QUALITY_DAILY)
    frames.require(checked.quarantined, QUARANTINE)
    known = suites.values(found, SETTINGS).keys()
    noted = [rule.name for rule in suites.rules(found) if known >= set(rule.parameter_names)]
    assert checked.verdicts["expectation"].sort().to_list() == sorted(noted)


@pytest.mark.parametrize("name", one_in(3, sorted(GOOD)))
def test_changed_row_violates_exactly_the_expected_rules(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row rule quarantines here, so that the quarantine shows which rows violate it."""
    found = BY_NAME[name]
    about_rows = [
        replace(rule, is_quarantine=True) for rule in suites.load_suite_rules(found) if rule.type not in OF_TABLE
    ]
    monkeypatch.setattr(suites, "rules", lambda _: about_rows)
    cases = [(set(), {}), *((rules, change) for of, rules, change in BROKEN if of == name)]
    told_apart = [identify(found, place) for place in range(len(cases))]
    frame = rows_of(found, *(own | change for own, (_, change) in zip(told_apart, cases, strict=True)))
    encoded = frame.select(pl.struct(pl.all()).struct.json_encode()).to_series().to_list()

    checked = gate.check(found, frame, SETTINGS)

    taken = sorted(checked.quarantined.select("rule", "row_json").rows())
    assert taken == sorted((rule, encoded[place]) for place, (rules, _) in enumerate(cases) for rule in rules)
    assert set(checked.quarantined["rule"]) == {rule.name for rule in about_rows}
    violations = checked.verdicts.group_by("expectation", "severity").agg(pl.sum("unexpected_count")).rows()
    counts = Counter(rule for rule, _ in taken)
    assert sorted(violations) == sorted((rule.name, rule.severity, counts[rule.name]) for rule in about_rows)
    assert checked.good.equals(frame[[place for place, (rules, _) in enumerate(cases) if not rules]])


@pytest.mark.usefixtures("only_declared")
@pytest.mark.parametrize(("incomplete", "broken"), [(1, set()), (2, {"controllers_mostly_complete"})])
def test_one_instant_in_ten_may_be_incomplete(incomplete: int, broken: set[str]) -> None:
    frame = rows_of(TICKS, *[{"controller_count": 1}] * incomplete, *[{}] * (10 - incomplete))

    assert failed(gate.check(TICKS, frame, {})) == broken


@pytest.mark.usefixtures("only_declared")
def test_violations_are_reported_per_day() -> None:
    days = [DAY, DAY + timedelta(days=1)]
    frame = pl.concat(
        rows_of(TICKS, *[{"controller_count": 1}] * 300, {}).with_columns(polled_on=pl.lit(day)) for day in days
    )
    verdicts = gate.check(TICKS, frame, {}).verdicts.filter(expectation="controllers_mostly_complete")
    assert verdicts.select("day", "success", "unexpected_count", "row_count").rows() == [
        (day, False, 300, 301) for day in days
    ]
    assert all(json.loads(observed)["examples"] for observed in verdicts["observed"])


@pytest.mark.usefixtures("only_declared")
@pytest.mark.parametrize(("gaps", "broken"), [(1, set()), (2, {"half_of_intervals_measured"})])
def test_half_of_a_series_may_be_gaps(gaps: int, broken: set[str]) -> None:
    frame = rows_of(SERIES_INTERVALS, {}, *[{"bytes_per_s": None, "flag": "missing"}] * gaps)

    assert failed(gate.check(SERIES_INTERVALS, frame, {})) == broken


@pytest.mark.usefixtures("only_declared")
def test_night_without_measured_runs_is_noted() -> None:
    checked = gate.check(JOB_IO_SOURCES, rows_of(JOB_IO_SOURCES, NO_POLLS | NO_VALUES), {})

    assert failed(checked) == {"some_runs_measured"}
    assert gate.decide(checked.verdicts) == "passed"


# ---- rules implied by contracts


def test_duplicate_key_is_critical_and_shown() -> None:
    other = {"user": "y", "application_id": "b"}
    checked = gate.check(APPLICATIONS, rows_of(APPLICATIONS, {}, {"user": HOSTILE}, other), {})

    (key,) = {row["application_id"] for row in rows_of(APPLICATIONS, {}).to_dicts()}
    assert failed(checked) - {"has_samples"} == {"key_unique"}
    found = verdict(checked, "key_unique")
    assert (found["severity"], found["unexpected_count"]) == ("critical", 2)
    assert (found["row_count"], json.loads(found["observed"])) == (3, {"examples": [key, key]})
    (told,) = whole(checked, APPLICATIONS, {}).filter(expectation="key_unique")["observed"]
    observed = json.loads(told)
    assert (observed["row_count"], observed["examples"]) == (3, [key, key])
    assert observed["unexpected_percent"] == pytest.approx(200 / 3)


@pytest.mark.parametrize(
    ("rows", "is_asked"),
    [
        ([("a", 1), ("a", 2), ("b", 1)], False),
        ([("a", 1)], False),
        ([("b", 1), ("a", 1)], True),
        ([("a", 1), ("a", 1)], True),
        ([("a", None), ("a", 1)], True),
    ],
)
def test_sorted_keys_are_known_to_be_unique_without_a_check(rows: list[tuple[str, int | None]], is_asked: bool) -> None:
    frame = pl.DataFrame(rows, schema={"filesystem": pl.String, "step": pl.Int64}, orient="row")
    kwargs = {"column_list": ["filesystem", "step"], "ignore_row_if": "never"}
    rule = replace(suites.rule("jobs", "key_unique"), type="expect_compound_columns_to_be_unique", kwargs=kwargs)
    assert (gate._decide_without_validation(rule, frame, {}) is None) == is_asked


_BYTES = {"metric": "bytes", **dict.fromkeys(("operations_per_s", "low_operations_per_s", "high_operations_per_s"))}
_POINTS = {
    "bytes alone": [_BYTES, _BYTES],
    "bytes without a band": [_BYTES | {"low_bytes_per_s": None, "high_bytes_per_s": None}],
    "one edge": [_BYTES, _BYTES | {"low_bytes_per_s": None}],
    "no bytes": [_BYTES, _BYTES | {"bytes_per_s": None}],
    "not a number": [_BYTES, _BYTES | {"bytes_per_s": math.nan}],
    "bytes of operations": [_BYTES | {"metric": "operations"}],
    "operations of bytes": [_BYTES, _BYTES | {"operations_per_s": 1.0}],
}


@pytest.mark.parametrize("name", _POINTS)
def test_rules_that_follow_from_nulls_have_no_violation(name: str) -> None:
    frame = rows_of(SIGNATURE_POINTS, *_POINTS[name])
    rules = suites.load_suite_rules(SIGNATURE_POINTS)
    decided = [rule for rule in rules if gate._decide_without_validation(rule, frame, {})]
    findings = gate._validate_frame("signature_points", frame, decided, {})
    assert {rule.name for rule in decided if findings[rule.name].unexpected_count} == set()
    if name == "bytes alone":
        assert {rule.name for rule in rules if "operations" in rule.name} <= set(findings)


def test_key_with_null_is_checked_for_uniqueness() -> None:
    pending = {"state": "PENDING", "started_at": None, "ended_at": None, "ended_on": None, "duration_s": None}

    checked = gate.check(JOBS, rows_of(JOBS, pending, pending), SETTINGS)

    assert failed(checked) == {"key_unique"}


def test_expectation_that_fails_to_evaluate_is_critical() -> None:
    frame = rows_of(POLLS_DAILY, {}).drop("missing_ratio")

    checked = gate.check(POLLS_DAILY, frame, SETTINGS)

    assert failed(checked) == {"enough_polls"}
    found = verdict(checked, "enough_polls")
    assert found["severity"] == "critical"
    assert "missing_ratio" in json.loads(found["observed"])["error"]
    with pytest.raises(GateFailed, match=r"polls_daily.enough_polls could not be checked \(.*missing_ratio"):
        gate.decide(checked.verdicts)


def test_quarantine_rule_that_fails_to_evaluate_removes_no_row() -> None:
    frame = rows_of(JOBS, {}).with_columns(node_count=pl.lit("many"))

    checked = gate.check(JOBS, frame, SETTINGS)

    assert verdict(checked, "nodes_within_machine")["severity"] == "critical"
    assert checked.good.equals(frame)
    assert checked.quarantined.is_empty()


def test_table_without_a_suite_is_validated_against_its_contract() -> None:
    row = ("jobs", "key_unique", "critical", True, "{}", 0)
    checked = gate.check(QUALITY, pl.DataFrame([row], schema=frames.schema(QUALITY), orient="row"), {})

    assert set(checked.verdicts["expectation"]) == {rule.name for rule in suites.derive_contract_rules(QUALITY)}
    assert failed(checked) == set()


# ---- kinds of frames


@pytest.mark.parametrize("found", CHECKED, ids=lambda found: found.name)
def test_empty_frame_is_checked(found: Table) -> None:
    checked = gate.check(found, frames.empty(found), {})

    assert checked.verdicts.is_empty()
    quality = whole(checked, found, {})
    assert set(quality.filter(~pl.col("success"))["expectation"]) == EMPTY.get(found.name, set())
    assert quality["expectation"].sort().to_list() == sorted(rule.name for rule in suites.rules(found))
    assert gate.decide(quality) == "passed"


@pytest.mark.usefixtures("only_declared")
@pytest.mark.parametrize("found", one_in(9, CHECKED), ids=lambda found: found.name)
def test_allowed_nulls_raise_no_error(found: Table) -> None:
    blank = {column.name: some(column) for column in found.columns}
    frame = pl.DataFrame([blank], schema=frames.schema(found), orient="row")

    checked = gate.check(found, frame, SETTINGS)

    assert checked.verdicts.filter(pl.col("observed").str.contains('"error"')).is_empty()


@pytest.mark.usefixtures("only_declared")
def test_lists_may_be_given_by_their_lengths() -> None:
    frame = rows_of(SAMPLES, {}, {"job_id": "2", "reported_ratios": [1.0]})
    lengths = frame.with_columns(pl.col("sample_bytes_per_s", "reported_ratios").list.len().cast(pl.Int64))

    checked = gate.check(SAMPLES, lengths, {})

    assert checked.verdicts.equals(gate.check(SAMPLES, frame, {}).verdicts)
    assert failed(checked) == {"steps_match_ratios"}


@pytest.mark.usefixtures("only_declared")
def test_check_is_deterministic() -> None:
    frame = rows_of(JOBS, {}, {"job_id": "2", "ended_at": NOON - HOUR, "duration_s": None})

    first, second = (gate.check(JOBS, frame, SETTINGS) for _ in range(2))

    assert first.verdicts.equals(second.verdicts)
    assert first.quarantined.equals(second.quarantined)


@pytest.mark.slow
@pytest.mark.usefixtures("only_declared")
def test_checks_in_several_threads_do_not_interfere() -> None:
    names = ["jobs", "filesystem_rates", "applications", "classes"]

    def answer(name: str) -> pl.DataFrame:
        return gate.check(table(name), rows_of(table(name), *[{}] * (1 + names.index(name))), SETTINGS).verdicts

    with ThreadPoolExecutor(len(names)) as pool:
        together = list(pool.map(answer, names))

    assert all(mixed.equals(answer(name)) for name, mixed in zip(names, together, strict=True))


def test_day_checked_in_batches_equals_the_whole_day() -> None:
    instants: list[dict[str, Any]] = [{"polled_at": NOON + timedelta(seconds=2 * at)} for at in range(20)]
    # a controller is silent at one instant of twenty, which is one of five of its batch
    instants[17] |= {"controller_count": 1}
    frame = rows_of(TICKS, *instants)
    pieces = pl.concat(gate.check(TICKS, piece, SETTINGS).verdicts for piece in (frame[:15], frame[15:]))
    whole = gate.check(TICKS, frame, SETTINGS).verdicts

    found = daily_summary.by_day(TICKS, pieces, SETTINGS)

    told = ["expectation", "day", "severity", "success", "unexpected_count", "row_count"]
    assert found.select(told).sort("expectation").equals(whole.select(told).sort("expectation"))
    assert daily_summary.aggregate_days(found, SETTINGS).equals(daily_summary.aggregate_days(whole, SETTINGS))


@pytest.mark.usefixtures("only_declared")
def test_rule_without_its_parameter_is_skipped_and_reported() -> None:
    frame = rows_of(JOBS, {"node_count": 10**6})

    checked = gate.check(JOBS, frame, {})

    assert failed(checked) == {"nodes_within_machine"}
    found = verdict(checked, "nodes_within_machine")
    assert (found["severity"], found["unexpected_count"]) == ("info", 0)
    assert json.loads(found["observed"]) == {"not_configured": ["machine_node_count"]}
    assert gate.decide(checked.verdicts) == "passed"
    assert checked.good.equals(frame)


# ---- quarantine


@pytest.mark.usefixtures("only_declared")
def test_row_that_violates_two_rules_is_removed_once_and_recorded_twice() -> None:
    both = {"job_id": HOSTILE, "node_count": 11, "ended_at": NOON - HOUR, "duration_s": None}
    frame = rows_of(JOBS, {}, both, {"job_id": "3"})

    checked = gate.check(JOBS, frame, SETTINGS)

    assert checked.good.equals(frame[[0, 2]])
    assert checked.quarantined.schema == frames.schema(QUARANTINE)
    assert checked.quarantined["rule"].to_list() == ["ends_after_start", "nodes_within_machine"]
    assert checked.quarantined["row_json"].n_unique() == 1
    assert checked.quarantined["day"].to_list() == [DAY, DAY]
    taken = json.loads(checked.quarantined["row_json"][0])
    assert list(taken) == list(JOBS.column_names)
    assert (taken["job_id"], taken["node_count"], taken["account"]) == (HOSTILE, 11, None)
    assert datetime.fromisoformat(taken["ended_at"]) == NOON - HOUR
    assert verdict(checked, "ends_after_start")["unexpected_count"] == 1
    assert gate.decide(checked.verdicts) == "passed with warnings"


@pytest.mark.usefixtures("only_declared")
def test_all_bad_rows_are_quarantined() -> None:
    changes = [{"job_id": str(place), "node_count": 5 + place % 7} for place in range(700)]
    frame = rows_of(JOBS, *changes)

    checked = gate.check(JOBS, frame, SETTINGS)

    assert checked.good.equals(frame.filter(pl.col("node_count") <= 10))
    assert checked.quarantined.height == verdict(checked, "nodes_within_machine")["unexpected_count"] == 100


instants = st.none() | st.integers(0, 5).map(lambda hour: NOON + hour * HOUR)
runs = st.lists(st.tuples(instants, instants, st.none() | st.integers(8, 12)), max_size=12)


@given(runs)
@bounded(max_examples=examples(15), deadline=None)
def test_rows_are_kept_or_quarantined_and_never_lost(found: list[tuple[Any, Any, Any]]) -> None:
    """The reference checks each row separately."""
    changes = [
        {"job_id": str(place), "started_at": start, "ended_at": end, "node_count": nodes}
        for place, (start, end, nodes) in enumerate(found)
    ]
    frame = pl.DataFrame([row_of(JOBS, **change) for change in changes], schema=frames.schema(JOBS))
    inverted = [n for n, (start, end, _) in enumerate(found) if start and end and end < start]
    too_large = [n for n, (_, _, nodes) in enumerate(found) if nodes and nodes > 10]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            suites, "rules", lambda jobs: [rule for rule in suites.load_suite_rules(jobs) if rule.is_quarantine]
        )
        checked = gate.check(JOBS, frame, SETTINGS)

    assert checked.good.equals(frame[[n for n in range(len(found)) if n not in {*inverted, *too_large}]])
    taken = [(rule, int(json.loads(row)["job_id"])) for _, _, rule, row in checked.quarantined.iter_rows()]
    assert taken == [("ends_after_start", n) for n in inverted] + [("nodes_within_machine", n) for n in too_large]


# ---- the decision


def verdicts(*rows: tuple[str, str, str, bool, int]) -> pl.DataFrame:
    full = [(name, rule, severity, success, "{}", count) for name, rule, severity, success, count in rows]
    return pl.DataFrame(full, schema=frames.schema(QUALITY), orient="row")


@pytest.mark.parametrize(
    ("severity", "success", "decision"),
    [
        ("info", False, "passed"),
        ("warning", True, "passed"),
        ("critical", True, "passed"),
        ("warning", False, "passed with warnings"),
    ],
)
def test_decision_follows_the_worst_failure(severity: str, success: bool, decision: str) -> None:
    held = ("filesystem_rates", "has_rows", "info", True, 0)

    assert gate.decide(verdicts(held, ("jobs", "key_unique", severity, success, 1))) == decision


def test_no_verdicts_pass() -> None:
    assert gate.decide(verdicts()) == "passed"


def test_critical_failure_blocks_the_release_with_remedies() -> None:
    found = verdicts(
        ("filesystem_rates", "controllers_within_expected", "critical", False, 1),
        ("jobs", "key_unique", "critical", False, 1200),
        ("jobs", "columns_as_declared", "critical", False, 0),
        ("jobs", "ends_after_start", "warning", False, 7),
    )

    with pytest.raises(GateFailed) as refused:
        gate.decide(found)

    report = "report it with the inputs of the run."
    assert str(refused.value).splitlines() == [
        "No release was published: 3 critical checks failed.",
        "- filesystem_rates.controllers_within_expected in 1 row: "
        "At no instant do more controllers report than on the whole day. "
        f"This is an error in iosig: {report}",
        "- jobs.columns_as_declared: The table has the columns of its contract, in order. "
        f"This is an error in iosig: {report}",
        "- jobs.key_unique in 1,200 rows: No two rows have the same cluster, job_id, started_at. "
        f"This is an error in iosig: {report}",
    ]
    assert refused.value.exit_code == 4


# ---- Great Expectations itself


@pytest.mark.parametrize("path", sorted(suites.FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_suite_file_is_a_valid_great_expectations_suite(path: Path) -> None:
    from great_expectations import ExpectationSuite

    stored = json.loads(path.read_text())
    loaded: Any = ExpectationSuite(**stored).to_json_dict()

    assert loaded["expectations"] == stored["expectations"]
    assert loaded["meta"]["parameters"] == stored["meta"]["parameters"]


def test_quarantine_rules_are_about_rows() -> None:
    from great_expectations import expectations
    from great_expectations.expectations import expectation as kinds

    rows = (kinds.ColumnMapExpectation, kinds.ColumnPairMapExpectation, kinds.MulticolumnMapExpectation)
    for found in CHECKED:
        for rule in suites.load_suite_rules(found):
            name = "".join(part.capitalize() for part in rule.type.split("_"))
            assert not rule.is_quarantine or issubclass(getattr(expectations, name), rows)


def test_gate_makes_no_network_connections(connections: list[Any]) -> None:
    gate.check(TICKS, rows_of(TICKS, {}), {})

    assert os.environ["GX_ANALYTICS_ENABLED"] == "false"
    assert connections == []


# ---- days and the whole table


def told_by_great_expectations(frame: pl.DataFrame, rules: Sequence[suites.Rule]) -> dict[str, tuple[bool, int]]:
    """The reference for daily summaries: all rules evaluated on all rows at once."""
    from great_expectations import ExpectationSuite

    suite = ExpectationSuite(name="all", expectations=[rule.configuration() for rule in rules])
    outcome = gate._frames().get_batch({"dataframe": gate._pandas(frame)}).validate(suite)
    return {
        result.expectation_config.meta["name"]: (bool(result.success), result.result.get("unexpected_count") or 0)
        for result in outcome.results
    }


def summed_up(quality: pl.DataFrame) -> dict[str, tuple[bool, int]]:
    columns = quality.select("expectation", "success", "unexpected_count")
    return {name: (success, count) for name, success, count in columns.iter_rows()}


@pytest.mark.parametrize("found", one_in(9, CHECKED, slow=3), ids=lambda found: found.name)
def test_shortcuts_equal_great_expectations(
    found: Table, of_each_kind: dict[str, list[suites.Rule]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = of_each_kind.get(found.name, [])
    monkeypatch.setattr(suites, "rules", lambda _: ready)
    for frame in (frames.empty(found), rows_of(found, {})):
        told = told_by_great_expectations(frame, ready) if ready else {}
        assert summed_up(whole(gate.check(found, frame, {}), found, {})) == told


def test_every_kind_of_rule_is_represented(of_each_kind: dict[str, list[suites.Rule]]) -> None:
    chosen = [rule for rules in of_each_kind.values() for rule in rules]
    every = [rule for found in CHECKED for rule in suites.rules(found) if not rule.parameter_names]
    assert {rule.type for rule in chosen} == {rule.type for rule in every}


DAYS_APART = Table(
    name="jobs",
    layer="stage",
    grain="one row per thing",
    key=("name",),
    columns=(
        Column("day", "date", "Its day.", nullable=True),
        Column("name", "text", "Its name."),
        Column("a", "int", "A number.", nullable=True),
        Column("b", "int", "Another one.", nullable=True),
    ),
    partition="day",
)
_PAIR = {"column_A": "a", "column_B": "b", "ignore_row_if": "either_value_is_missing"}
_SMALL = {"type": "comparison", "column": {"name": "b"}, "operator": "<", "parameter": 3}
#: an expectation of each type that is judged by day, as suites declare them
BY_DAY: dict[str, tuple[str, dict[str, Any]]] = {
    "between": ("expect_column_values_to_be_between", {"column": "a", "min_value": 1, "max_value": 3}),
    "there": ("expect_column_values_to_not_be_null", {"column": "a"}),
    "mostly_there": ("expect_column_values_to_not_be_null", {"column": "a", "mostly": 0.5}),
    "mostly_small": ("expect_column_values_to_be_between", {"column": "a", "max_value": 1, "mostly": 0.5}),
    "no_excess": ("expect_multicolumn_first_to_be_at_most_second", {"column_list": ["a", "b"]}),
    "not_small": (
        "expect_column_values_to_not_be_in_set",
        {"column": "a", "value_set": [1], "row_condition": _SMALL},
    ),
    "empty": ("expect_column_values_to_be_null", {"column": "a", "row_condition": _SMALL}),
    "not_long": ("expect_column_values_to_not_match_regex", {"column": "name", "regex": "zz|xx"}),
    "same": ("expect_multicolumn_values_to_be_equal", {"column_list": ["a", "b"], "ignore_row_if": "never"}),
    "known": ("expect_column_values_to_be_in_set", {"column": "name", "value_set": ["x", "yy"]}),
    "mostly_known": ("expect_column_values_to_be_in_set", {"column": "a", "value_set": [1, 2], "mostly": 0.5}),
    "long": ("expect_column_value_lengths_to_be_between", {"column": "name", "max_value": 2}),
    "in_order": ("expect_column_pair_values_a_to_be_greater_than_b", _PAIR | {"or_equal": True}),
    "equal": ("expect_column_pair_values_to_be_equal", _PAIR | {"ignore_row_if": "neither"}),
    "mostly_equal": ("expect_column_pair_values_to_be_equal", _PAIR | {"mostly": 0.5}),
    "some": ("expect_table_row_count_to_be_between", {"min_value": 2}),
    "not_many": ("expect_table_row_count_to_be_between", {"max_value": 5}),
    "both": ("expect_column_distinct_values_to_contain_set", {"column": "name", "value_set": ["x", "yy"]}),
    "columns": ("expect_table_columns_to_match_ordered_list", {"column_list": list(DAYS_APART.column_names)}),
}
RULES_BY_DAY = [
    suites._rule(
        {"type": kind, "kwargs": kwargs, "severity": "warning", "meta": {"name": name, "doc": "So.", "remedy": "No."}}
    )
    for name, (kind, kwargs) in BY_DAY.items()
]


def test_every_type_that_is_judged_by_day_is_tested() -> None:
    """A single custom expectation represents all of them, which differ only in their condition."""
    from iosig.expectations import custom

    own = {vars(custom)[name].expectation_type for name in vars(custom) if name.startswith(("ExpectC", "ExpectM"))}
    judged = {(rule.type, rule.judged) for found in CHECKED for rule in suites.rules(found)}
    tried = {(rule.type, rule.judged) for rule in RULES_BY_DAY}
    assert {(kind, how) for kind, how in judged if how != "together" and kind not in own} <= tried
    assert {kind for kind, _ in tried} & own
    assert {judged for _, judged in tried} == {"rows", "share", "count", "values"}


numbers = st.none() | st.integers(0, 4)
#: rows with the day of each, and the days that are checked together
rows_with_days = st.lists(
    st.tuples(st.sampled_from([None, 0, 1, 2]), st.sampled_from(["x", "yy", "zzz"]), numbers, numbers), max_size=10
)


@pytest.mark.long
@given(rows_with_days, st.sets(st.sampled_from([None, 0, 1, 2])))
@bounded(max_examples=examples(15), deadline=None)
def test_daily_summaries_equal_a_check_of_all_rows(
    rows: list[tuple[int | None, str, int | None, int | None]], first_run: set[int | None]
) -> None:
    told = [(DAY if day is None else DAY.replace(day=day + 1), *rest) for day, *rest in rows]
    frame = pl.DataFrame(told, schema=frames.schema(DAYS_APART), orient="row").with_columns(
        day=pl.when(pl.col("day") != DAY).then("day")
    )
    is_first = pl.Series([day in first_run for day, *_ in rows], dtype=pl.Boolean)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suites, "rules", lambda _: RULES_BY_DAY)
        runs = [gate.check(DAYS_APART, part, {}) for part in (frame.filter(is_first), frame.filter(~is_first))]
        by_day = pl.concat(run.verdicts for run in runs)
        quality = daily_summary.aggregate_days(by_day, {}).filter(table_name=DAYS_APART.name)

    assert summed_up(quality) == told_by_great_expectations(frame, RULES_BY_DAY)
    frames.require(by_day, QUALITY_DAILY)
    assert by_day.select(QUALITY_DAILY.key).is_unique().all()
    assert set(by_day["day"]) == set(frame["day"])


# ---- deferred imports


def test_deferred_module_is_imported_on_first_attribute_access(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    gate._defer("colorsys", "colorsys", "no_such_module_at_all")
    stands = importlib.import_module("colorsys")
    assert sys.modules["colorsys"] is stands
    assert "rgb_to_hls" not in vars(stands)
    from colorsys import rgb_to_hls

    real = sys.modules["colorsys"]
    assert real is not stands
    assert real.rgb_to_hls is stands.rgb_to_hls is rgb_to_hls
    assert "no_such_module_at_all" not in sys.modules
    with pytest.raises(AttributeError):
        _ = stands.nothing_of_the_kind


def test_loaded_module_is_not_deferred() -> None:
    gate._defer("json")
    assert sys.modules["json"].loads("[7]") == [7]


@bounded(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from([None, 0, 1, 2]), st.sampled_from([None, "a", "b"])), min_size=1, max_size=6))
def test_strictly_increasing_keys_are_recognized_as_unique(keys: list[tuple[int | None, str | None]]) -> None:
    """Frames recognized as sorted have no duplicate key; all strictly increasing keys without NULL are recognized."""
    frame = pl.DataFrame(keys, schema={"one": pl.Int64, "other": pl.String}, orient="row")
    columns = {"column_list": ["one", "other"]}
    rule = suites.Rule("keys", "expect_compound_columns_to_be_unique", columns, "critical", "It.", "No.")
    known = [key for key in keys if None not in key]
    if gate._is_in_order(rule, frame):
        assert len(set(keys)) == len(keys)
    if len(known) == len(keys):
        assert gate._is_in_order(rule, frame) == (known == sorted(set(known)))
    conditioned = replace(rule, kwargs=columns | {"row_condition": "one > 0"})
    assert not gate._is_in_order(conditioned, frame)

"""The SQL of landed suites counts the same violations as Great Expectations, and names the rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from iosig.expectations import docs, gate, landed, suites
from iosig.expectations.landed import LandedRows
from iosig.expectations.suites import Rule
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.contracts.quality import QUALITY_DAILY
from iosig.warehouse.store import models
from tests.expectations.cases import BROKEN, CHECKED, identify, rows_of
from tests.expectations.landed_cases import DAY, NOON

# Great Expectations reads pandas values in a way that pandas 4 will change.
pytestmark = pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning")

LANDED = [found for found in CHECKED if suites.is_landed_only(found)]
by_table = pytest.mark.parametrize("found", LANDED, ids=lambda found: found.name)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with models.engine(tmp_path_factory.mktemp("spill"), "200MB") as opened:
        yield opened


def check(
    connection: duckdb.DuckDBPyConnection,
    found: Table,
    rows: pl.DataFrame,
    days: tuple[date | None, ...] = (DAY,),
    checked_on: str = f"date '{DAY}'",
) -> pl.DataFrame:
    """Validate rows that come from `input.txt`, in order."""
    models.expose_frame(connection, "given", found.name, rows)
    query = f"""
        select
            *, 'input.txt' as input_file, {checked_on} as checked_on, 0 as part_order, row_number() over () as part_row
        from given.{found.name}
    """
    return landed.check(connection, LandedRows(found, query, days))


def counts(verdicts: pl.DataFrame) -> dict[str, tuple[bool, int, int]]:
    columns = verdicts.select("expectation", "success", "unexpected_count", "row_count")
    return {name: (success, count, row_count) for name, success, count, row_count in columns.iter_rows()}


def examples(verdicts: pl.DataFrame, name: str) -> list[dict[str, Any]]:
    (observed,) = verdicts.filter(expectation=name)["observed"]
    found: list[dict[str, Any]] = json.loads(observed).get("examples", [])
    return found


@by_table
def test_counts_equal_great_expectations(found: Table, connection: duckdb.DuckDBPyConnection) -> None:
    changes = [{}, *(change for of, _, change in BROKEN if of == found.name)]
    rows = rows_of(found, *(identify(found, place) | change for place, change in enumerate(changes)))

    verdicts = check(connection, found, rows)

    frames.require(verdicts, QUALITY_DAILY)
    assert counts(verdicts) == counts(gate.check(found, rows, {}).verdicts)
    assert set(verdicts["day"]) == {DAY}


@by_table
def test_each_rule_names_the_file_and_the_row(found: Table, connection: duckdb.DuckDBPyConnection) -> None:
    """A rule on several rows names all of them."""
    cases = [(rules, change) for of, rules, change in BROKEN if of == found.name]
    own = [identify(found, place) | change for place, (_, change) in enumerate(cases)]
    has_lines = "line" in found.column_names
    rows = rows_of(found, *({"line": 11 + place} | row if has_lines else row for place, row in enumerate(own)))

    verdicts = check(connection, found, rows)

    for rule in suites.rules(found):
        broken = [place for place, (rules, _) in enumerate(cases) if rule.name in rules]
        named = examples(verdicts, rule.name)
        assert [example.pop("source_file") for example in named] == ["input.txt"] * len(broken), rule.name
        if has_lines:
            assert [example["line"] for example in named] == [11 + place for place in broken]
        else:
            assert all(set(found.key) <= example.keys() | {"source_file"} for example in named)
        assert all({*rule.column_names} <= example.keys() for example in named)


def test_every_type_of_landed_expectations_has_a_condition() -> None:
    types = {rule.type for found in LANDED for rule in suites.rules(found)}

    assert types == landed._CONDITIONS.keys() | {landed._UNIQUE}


@by_table
def test_landed_rules_are_about_rows(found: Table) -> None:
    """Landed rows stay where they are, and no parameter is set for them."""
    rules: tuple[Rule, ...] = suites.rules(found)

    assert rules
    assert {rule.judged for rule in rules} <= {"rows", "together"}
    assert not any(rule.is_quarantine or rule.parameter_names or rule.is_held for rule in rules)
    assert {rule.severity for rule in rules} <= {"warning", "info"}


def test_rows_are_counted_by_day(connection: duckdb.DuckDBPyConnection) -> None:
    other, undated = DAY + timedelta(days=1), {"ended_at": None, "state": "PENDING"}
    late = {"ended_at": NOON + timedelta(days=1), "landed_at": NOON + timedelta(days=1)}
    found = suites.add_landing_columns(JOB_RECORDS)
    given: list[dict[str, Any]] = [{}, late, late, undated]
    rows = rows_of(found, *(identify(found, place) | row for place, row in enumerate(given)))
    wrong = rows.with_columns(task_count=pl.lit(0, pl.Int64))
    by_end = "(ended_at at time zone 'UTC')::date"

    for days, row_counts in (((DAY, None), [(DAY, 1), (None, 1)]), ((other,), [(other, 2)]), ((), [])):
        verdicts = check(connection, found, wrong, days, by_end).filter(expectation="tasks_cover_nodes")
        assert verdicts.select("day", "row_count").rows() == row_counts
        assert verdicts["row_count"].equals(verdicts["unexpected_count"])


def test_examples_are_few_and_truncated(connection: duckdb.DuckDBPyConnection) -> None:
    found = suites.add_landing_columns(POLLS)
    rows = rows_of(found, *[{"interval_s": 1e5, "controller": "c" * 500}] * 9)

    named = examples(check(connection, found, rows), "interval_plausible")

    assert [len(example["controller"]) for example in named] == [200] * 5


def test_pages_show_the_line_in_the_file() -> None:
    assert docs._shown({"source_file": "jobs.txt", "line": 7, "node_count": 0}) == "jobs.txt:7, 0"
    assert docs._shown({"source_file": "polls.csv", "controller": "c1"}) == "polls.csv, c1"
    assert docs._shown({"a": 1, "b": 2}) == "1, 2"


def test_memory_is_bounded_for_a_large_day(tmp_path: Path) -> None:
    """Three million polls of a day, 300 MB as a frame, are validated in less memory than their rows need."""
    columns = {
        "polled_at": "timestamptz '2018-02-09 00:00:00+00' + to_seconds(range % 86400)",
        "interval_s": "case when range = 7 then 1e6 else 1.0 end",
        "controller": "concat('controller ', range // 86400)",
        "read_bytes_per_s": "range::double",
        "landed_at": "timestamptz '2018-02-10 00:00:00+00'",
    }
    found = suites.add_landing_columns(POLLS)
    types = {column.name: "varchar" if column.dtype == "text" else "double" for column in found.columns}
    given = ", ".join(f"{columns.get(name, f'null::{dtype}')} as {name}" for name, dtype in types.items())
    query = f"""
        select {given}, 'input.txt' as input_file, date '{DAY}' as checked_on, 0 as part_order, range as part_row
        from range(3000000)
    """
    with models.engine(tmp_path / "spill", "60MB") as connection:
        verdicts = landed.check(connection, LandedRows(found, query, (DAY,)))

    assert counts(verdicts)["polled_before_landing"] == (True, 0, 3_000_000)
    assert counts(verdicts)["interval_plausible"] == (False, 1, 3_000_000)

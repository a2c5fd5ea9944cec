"""Test contracts: each column is declared once, its name implies its unit, and the Polars and Arrow schemas agree."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import polars as pl
import pytest

from iosig.warehouse import contracts
from iosig.warehouse.contracts import TABLES, Column, Table, arrow, columns, files, frames, table
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.contracts.rules import RowRule, row_rules
from iosig.warehouse.contracts.samples import SAMPLES
from iosig.warehouse.errors import ContractError

#: distinct columns, regardless of nullability
#: columns without what differs between tables: whether NULL occurs, and how names become pseudonyms
DECLARED = {replace(column, nullable=False, hides=None) for made in TABLES for column in made.columns}
#: names with table-specific meaning: categories; samples, as runs of a set or values of a signal; clock times of the
#: row's subject; confidences of a table's method
OF_THEIR_TABLE = {"outcome", "kind", "method", "flag", "basis", "estimate_source", "sample_count"}
OF_THEIR_TABLE |= {"start_s", "end_s", "confidence", "metric"}


# ---- declarations


def test_name_stands_for_a_single_quantity() -> None:
    names = [column.name for column in DECLARED]
    assert {name for name in names if names.count(name) > 1} <= OF_THEIR_TABLE


def test_only_columns_of_several_nouns_are_shared() -> None:
    users: dict[Column, set[str]] = defaultdict(set)
    for noun in (value for value in vars(contracts).values() if isinstance(value, ModuleType)):
        for made in (value for value in vars(noun).values() if isinstance(value, Table)):
            for column in made.columns:
                users[replace(column, nullable=False)].add(noun.__name__)
    shared = {value for value in vars(columns).values() if isinstance(value, Column)}
    assert shared == {column for column, nouns in users.items() if len(nouns) > 1}


#: identifying numbers, and numbers with their unit in another column
NUMBERED = {
    "sequence",
    *(
        "line",
        "burst",
        "uid",
        "rank",
        "level",
        "call",
        "metadata_call",
        "call_step",
        "request",
        "file_number",
        "ost",
        "osts",
        "module_version",
    ),
    *("event", "layer_number", "hop", "time_window", "time_bins", "size_bins", "bandwidth_bins", "bottleneck"),
    *("value", "median_value", "run_number", "evaluation", "segment", "first_place", "poll_place"),
}


def test_name_implies_unit() -> None:
    # The unit of a count may differ from its name: reads are operations.
    told = [column for column in DECLARED if not column.name.endswith("_count")]
    promised = {column.name: Column(column.name, column.dtype, column.doc).unit for column in told}
    assert {name: unit for name, unit in promised.items() if unit} == {
        column.name: column.unit for column in told if promised[column.name]
    }
    assert [Column(name, "int", "").unit for name in ("gap_poll_count", "process_count")] == ["polls", "processes"]
    counts = [column for column in DECLARED if column.name.endswith("_count")]
    assert [column.name for column in counts if not column.unit or (column.dtype, column.low) != ("int", 0)] == []
    ratios = [column for column in DECLARED if column.unit == "1" and "ratio" in column.name]
    assert [column.name for column in ratios if (column.low, column.high) != (0, 1)] == []


def test_name_implies_type() -> None:
    columns_ = DECLARED
    instants = {column.name for column in columns_ if column.dtype == "instant"}
    assert instants == {column.name for column in columns_ if column.name.endswith("_at")}
    dates = {column.name for column in columns_ if column.dtype == "date"}
    assert dates == {column.name for column in columns_ if column.name.endswith("_on")} | {"day"}
    flags = {column.name for column in columns_ if column.dtype == "bool"}
    assert flags == {column.name for column in columns_ if column.name.startswith(("is_", "has_"))} | {"success"}
    assert {column.dtype for column in columns_ if column.name.endswith("_id")} == {"text"}


def test_numbers_and_times_have_units_and_texts_have_none() -> None:
    with_unit = {column.name for column in DECLARED if column.unit}
    measured = {column.name for column in DECLARED if column.dtype not in ("text", "bool")}
    assert with_unit == measured - NUMBERED


def test_docs_are_sentences() -> None:
    docs = {column.name: column.doc for column in DECLARED}
    assert [name for name, doc in docs.items() if not re.fullmatch(r"[A-Z][^\n]*[.]", doc)] == []
    assert [name for name, doc in docs.items() if re.search(r"  |\bTODO\b|\bTBD\b", doc)] == []


def test_names_are_snake_case() -> None:
    plain = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
    assert [column.name for column in DECLARED if not plain.fullmatch(column.name)] == []


def test_bounds_and_choices_fit_the_type() -> None:
    for column in DECLARED:
        bounds = [bound for bound in (column.low, column.high) if bound is not None]
        assert not bounds or column.dtype in ("int", "real", "reals", "ints"), column.name
        assert bounds == sorted(set(bounds)), column.name
        assert not column.choices or column.dtype == "text", column.name
        assert len(set(column.choices)) == len(column.choices), column.name


def test_tables_have_valid_keys_grains_and_partitions() -> None:
    for made in TABLES:
        assert len(set(made.column_names)) == len(made.columns), made.name
        assert set(made.key) <= set(made.column_names), made.name
        assert re.fullmatch(r"one row per [^\n]*[^.\n]", made.grain), made.name
        assert made.partition is None or made.column(made.partition).dtype == "date", made.name


def test_table_names_are_unique_and_found() -> None:
    assert len({made.name for made in TABLES}) == len(TABLES)
    assert all(table(made.name) is made for made in TABLES)
    with pytest.raises(KeyError, match="unknown table nothing"):
        table("nothing")
    with pytest.raises(KeyError, match="jobs has no column nothing"):
        JOBS.column("nothing")
    assert JOBS.column("job_id") is columns.JOB_ID


# ---- dialects


def test_polars_and_arrow_schemas_agree() -> None:
    for made in TABLES:
        as_arrow = arrow.schema(made)
        assert as_arrow.names == list(frames.schema(made)) == list(made.column_names), made.name
        assert pl.DataFrame(as_arrow.empty_table()).schema == frames.schema(made), made.name
        assert frames.empty(made).to_arrow().cast(as_arrow).schema.equals(as_arrow, check_metadata=True), made.name


def test_arrow_fields_have_units_and_docs() -> None:
    for made in TABLES:
        as_arrow = arrow.schema(made)
        assert as_arrow.metadata[b"grain"].decode() == made.grain
        assert as_arrow.metadata[b"key"].decode().split(",") == list(made.key)
        for column, field in zip(made.columns, as_arrow, strict=True):
            assert field.nullable == column.nullable
            assert field.metadata[b"doc"].decode() == column.doc
            assert (field.metadata.get(b"unit") or b"").decode() == (column.unit or "")


# ---- rules

NOON = datetime(2018, 2, 9, 12, tzinfo=UTC)
SMALL = Table(
    name="small",
    layer="stage",
    grain="one row per case",
    key=("job_id",),
    columns=(
        columns.JOB_ID,
        JOBS.column("state").optional(),
        columns.INTERVAL_S.optional(),
        columns.NODE_COUNT.optional(),
        SAMPLES.column("reported_ratios"),
        POLLS.column("polled_at").optional(),
    ),
)
GOOD: dict[str, Any] = {
    "job_id": "7",
    "state": "COMPLETED",
    "interval_s": 2.0,
    "node_count": 3,
    "reported_ratios": [0.0, None, 1.0],
    "polled_at": NOON,
}


def frame(*changes: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([GOOD | change for change in changes], schema=frames.schema(SMALL), orient="row")


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"job_id": None}, "job_id_not_null"),
        ({"state": "RUNNING "}, "state_known"),
        ({"interval_s": 0.0}, "interval_s_at_least_1e-06"),
        ({"interval_s": -2.0}, "interval_s_at_least_1e-06"),
        ({"interval_s": float("nan")}, "interval_s_finite"),
        ({"interval_s": float("inf")}, "interval_s_finite"),
        ({"node_count": -1}, "node_count_at_least_0"),
        ({"reported_ratios": [0.5, 1.01]}, "reported_ratios_at_most_1"),
        ({"reported_ratios": [-0.1, None]}, "reported_ratios_at_least_0"),
        ({"reported_ratios": [None, float("nan")]}, "reported_ratios_finite"),
    ],
)
def test_row_that_violates_a_rule_is_split_off(change: dict[str, Any], rule: str) -> None:
    mixed = frame({}, change, {})
    good, bad = frames.split(mixed, SMALL)
    assert good.height == 2
    assert good.schema == frames.schema(SMALL)
    assert bad.schema == frames.schema(SMALL) | {"rule": pl.String()}
    assert bad["rule"].to_list() == [rule]
    with pytest.raises(ContractError, match=rf"small: rows break .*{re.escape(rule)} in 1 rows"):
        frames.require(mixed, SMALL)


@pytest.mark.parametrize(
    "change",
    [
        dict.fromkeys(name for name in GOOD if name != "job_id"),
        {"interval_s": 1e-6},
        {"node_count": 0},
        {"reported_ratios": []},
        {"reported_ratios": [None]},
        {"job_id": ""},
    ],
    ids=str,
)
def test_row_at_limits_of_rules_is_valid(change: dict[str, Any]) -> None:
    found = frame(change)
    assert frames.require(found, SMALL) is found
    good, bad = frames.split(found, SMALL)
    assert good.equals(found)
    assert bad.is_empty()


@pytest.mark.parametrize("made", [made for made in TABLES if row_rules(made)], ids=lambda made: made.name)
def test_duckdb_detects_violations_of_every_rule(made: Table, tmp_path: Path) -> None:
    good = {column.name: _good(column) for column in made.columns}
    broken = [good | {rule.column.name: _broken(rule)} for rule in row_rules(made)]
    for rows, path in (([good], tmp_path / "good.parquet"), ([good, *broken], tmp_path / "broken.parquet")):
        pl.DataFrame(rows, schema=frames.schema(made), orient="row").write_parquet(path)
    files.require_file(tmp_path / "good.parquet", made)
    with pytest.raises(ContractError) as of_frame:
        frames.require(pl.read_parquet(tmp_path / "broken.parquet"), made)
    with pytest.raises(ContractError) as of_file:
        files.require_file(tmp_path / "broken.parquet", made)
    assert str(of_file.value) == str(of_frame.value)
    assert [rule.name for rule in row_rules(made) if f"{rule.name} in " not in str(of_file.value)] == []


def _good(column: Column) -> Any:
    bound = next((limit for limit in (column.low, column.high) if limit is not None), 0)
    values = {"text": "x", "instant": NOON, "date": NOON.date(), "bool": True, "int": int(bound), "real": float(bound)}
    values |= {"reals": [float(bound), None], "ints": [int(bound)]}
    return column.choices[0] if column.choices else values[column.dtype]


def _broken(rule: RowRule) -> Any:
    if rule.kind == "not_null":
        return None
    value = {
        "finite": float("inf") if rule.column.high is None else float("nan"),
        "known": "'; no choice",
        "at_least": math.floor(rule.limit) - 1,
        "at_most": math.ceil(rule.limit) + 1,
    }[rule.kind]
    return [None, value] if rule.column.dtype in ("reals", "ints") else value


def test_row_that_violates_several_rules_is_named_after_first() -> None:
    _, bad = frames.split(frame({"state": "?", "node_count": -1}), SMALL)
    assert bad["rule"].to_list() == ["state_known"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("* exclude (state)", r"missing \['state'\]"),
        ("*, 1 as more", r"unknown \['more'\]"),
        ("* exclude (job_id), job_id", "columns out of order"),
        ("* replace (node_count::int as node_count)", "node_count is INTEGER, not BIGINT"),
        ("* replace (polled_at::timestamp as polled_at)", "polled_at is TIMESTAMP, not TIMESTAMP WITH TIME ZONE"),
    ],
)
def test_columns_of_file_must_match_contract(change: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    frame({}).write_parquet(path)
    duckdb.sql(f"select {change} from read_parquet('{path}')").write_parquet(str(tmp_path / "other.parquet"))
    files.require_file(path, SMALL)
    with pytest.raises(ContractError, match=f"small: .*{message}"):
        files.require_file(tmp_path / "other.parquet", SMALL)


def test_empty_frame_satisfies_every_contract() -> None:
    for made in TABLES:
        assert frames.require(frames.empty(made), made).is_empty()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (pl.all().exclude("state"), r"missing \['state'\]"),
        (pl.col("*"), None),
        ([pl.all(), pl.lit(1).alias("more")], r"unknown \['more'\]"),
        ([pl.all().exclude("job_id"), "job_id"], "columns out of order"),
        ([pl.all().exclude("node_count"), pl.col("node_count").cast(pl.String)], "node_count is String, not Int64"),
    ],
)
def test_columns_of_frame_must_match_contract(change: Any, message: str | None) -> None:
    selected = frame({}).with_columns(reported_ratios=pl.lit(None, pl.List(pl.Float64))).select(change)
    if message is None:
        frames.require_schema(selected.schema, SMALL)
        return
    with pytest.raises(ContractError, match=f"small: .*{message}"):
        frames.require_schema(selected.schema, SMALL)
    for hold in (frames.require, frames.split):
        with pytest.raises(ContractError, match=f"small: .*{message}"):
            hold(selected, SMALL)


def test_types_are_not_cast_implicitly() -> None:
    narrow = frame({}).with_columns(pl.col("node_count").cast(pl.Int32))
    naive = frame({}).with_columns(pl.col("polled_at").dt.replace_time_zone(None))
    coarse = frame({}).with_columns(pl.col("polled_at").dt.cast_time_unit("ms"))
    for wrong in (narrow, naive, coarse):
        with pytest.raises(ContractError, match=r"is .*, not "):
            frames.require(wrong, SMALL)

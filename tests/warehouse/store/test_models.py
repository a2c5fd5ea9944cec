"""Test SQL models: the tables that they read, and the files that DuckDB writes from their results."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import get_args

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest

from iosig.warehouse.contracts import Column, Table, frames
from iosig.warehouse.contracts.polls import COUNTER_POLLS, POLLS
from iosig.warehouse.contracts.predictions import PREDICTION_RECORDS
from iosig.warehouse.contracts.rules import Kind, row_rules
from iosig.warehouse.errors import ContractError
from iosig.warehouse.store import models
from iosig.warehouse.store.models import engine, expose, expose_frame, expose_landed
from iosig.warehouse.store.store import write_parquet


def test_column_missing_in_older_landing_is_null(tmp_path: Path) -> None:
    row = dict.fromkeys(PREDICTION_RECORDS.column_names) | {"predicted_on": date(2026, 1, 1), "probability": 0.5}
    old = pl.DataFrame([row], schema=frames.schema(PREDICTION_RECORDS)).drop("hit_probability", "is_final")
    old.write_parquet(tmp_path / "old.parquet")
    with duckdb.connect() as connection:
        expose_landed(connection, PREDICTION_RECORDS, [tmp_path / "old.parquet"], ["a"])
        found = connection.sql(
            "select probability, hit_probability, is_final, landing_id from landed.prediction_records"
        )
        assert found.fetchall() == [(0.5, None, None, "a")]
        assert [str(each) for each in found.types[1:3]] == ["DOUBLE", "BOOLEAN"]


def test_built_rows_extend_a_table_without_landed_rows(tmp_path: Path) -> None:
    row = dict.fromkeys(POLLS.column_names) | {"filesystem": "scratch", "written_bytes": 1.0}
    polls = pl.DataFrame([row], schema=frames.schema(POLLS))
    with engine(tmp_path, "1GB") as connection:
        expose_landed(connection, POLLS, [], [])
        expose_frame(connection, COUNTER_POLLS.layer, COUNTER_POLLS.name, polls)
        models.extend_landed(connection, POLLS, COUNTER_POLLS, unless_in="filesystem")
        rows = connection.sql("select filesystem, part_row, landing_id from landed.polls").fetchall()
    assert rows == [("scratch", 1, "")]


def _told(connection: duckdb.DuckDBPyConnection) -> list[tuple[int]]:
    return connection.sql("select number from samples.runs").fetchall()


def test_engines_do_not_share_tables(tmp_path: Path) -> None:
    with engine(tmp_path, "1GB") as first:
        expose_frame(first, "samples", "runs", pl.DataFrame({"number": [1]}))
        with engine(tmp_path, "1GB") as beside:
            expose_frame(beside, "samples", "runs", pl.DataFrame({"number": [2]}))
            assert (_told(first), _told(beside)) == ([(1,)], [(2,)])
        assert _told(first) == [(1,)]
    with engine(tmp_path, "1GB") as later, pytest.raises(duckdb.CatalogException):
        _told(later)


def test_engine_works_in_utc_after_another_engine_failed(tmp_path: Path) -> None:
    with pytest.raises(duckdb.ConversionException), engine(tmp_path, "1GB") as failing:
        failing.execute("set TimeZone = 'Asia/Tokyo'; select 'no number'::int")
    with engine(tmp_path, "1GB") as connection:
        zone, threads = "current_setting('TimeZone')", "current_setting('threads')"
        assert connection.sql(f"select {zone}, {threads}").fetchall() == [("UTC", pl.thread_pool_size())]


# ---- results

#: a column of each type and for each kind of rule; the second column is nullable
SMALL = Table(
    name="small",
    layer="stage",
    grain="one row per case",
    key=("job_id", "day"),
    columns=(
        Column("job_id", "text", "A job."),
        Column("day", "date", "A day.", nullable=True),
        Column("state", "text", "A state.", choices=("done", "it's")),
        Column("node_count", "int", "Nodes."),
        Column("reported_ratio", "real", "A share."),
        Column("rates", "reals", "Rates.", "B/s", low=0, nullable=True),
        Column("is_done", "bool", "Whether.", nullable=True),
        Column("polled_at", "instant", "When.", nullable=True),
    ),
    partition="day",
)
GOOD = {
    "job_id": "'7'",
    "day": "date '2018-02-09'",
    "state": "'it''s'",
    "node_count": "3::bigint",
    "reported_ratio": "0.5::double",
    "rates": "[1, null]::double[]",
    "is_done": "true",
    "polled_at": "timestamptz '2018-02-09 12:00:00+00'",
}


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[duckdb.DuckDBPyConnection]:
    monkeypatch.setattr(models, "SQL_ROOT", tmp_path / "sql")
    (tmp_path / "sql" / "stage").mkdir(parents=True)
    with engine(tmp_path / "spill", "1GB") as opened:
        yield opened


def model(tmp_path: Path, *changes: dict[str, str], then: str = "", of: Table = SMALL) -> None:
    """Write a model that returns a good row with each of these changes."""
    rows = (", ".join(f"{value} as {name}" for name, value in (GOOD | change).items()) for change in changes)
    text = f"select * from ({' union all '.join('select ' + row for row in rows)}) {then}"
    (tmp_path / "sql" / "stage" / f"{of.name}.sql").write_text(f"-- one row per case\n{text}\n")


def test_duckdb_writes_same_file_as_polars(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    model(tmp_path, {"job_id": "'8'"}, {}, {"day": "null", "rates": "null", "polled_at": "null"}, then="order by all")
    assert models.write(connection, SMALL, tmp_path / "duckdb.parquet") == 3
    write_parquet(models.select(connection, SMALL), SMALL, tmp_path / "polars.parquet")
    made, expected = (tmp_path / f"{name}.parquet" for name in ("duckdb", "polars"))
    assert pl.read_parquet(made).equals(pl.read_parquet(expected))
    # names, types, nullability, units and docs
    assert pq.read_schema(made).equals(pq.read_schema(expected), check_metadata=True)
    assert made.stat().st_mode & 0o222 == 0
    assert {path.name for path in tmp_path.iterdir()} == {"duckdb.parquet", "polars.parquet", "sql", "spill"}


def test_later_models_read_written_table_from_engine(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    model(tmp_path, {})
    models.write(connection, SMALL, tmp_path / "a.parquet")
    (tmp_path / "a.parquet").unlink()
    assert connection.sql("select job_id from stage.small").fetchall() == [("7",)]


def test_nullable_columns_are_declared_independently_of_rows(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    # DuckDB cannot prove that a sum is not NULL
    model(tmp_path, {}, then="where job_id = (select max(job_id) from (values ('7')) as t(job_id))")
    models.write(connection, SMALL, tmp_path / "a.parquet")
    found = {field.name: field.nullable for field in pq.read_schema(tmp_path / "a.parquet")}
    assert found == {column.name: column.nullable for column in SMALL.columns}


@pytest.mark.parametrize(
    ("changes", "rule", "count"),
    [
        ([{"job_id": "null"}, {}], "job_id_not_null", 1),
        ([{"state": "'DONE'"}, {}], "state_known", 1),
        ([{"node_count": "-1::bigint"}, {}], "node_count_at_least_0", 1),
        ([{"reported_ratio": "1.5::double"}, {}], "reported_ratio_at_most_1", 1),
        ([{"reported_ratio": "'nan'::double"}, {}], "reported_ratio_finite", 1),
        ([{"reported_ratio": "'-inf'::double"}, {}], "reported_ratio_finite", 1),
        ([{"rates": "[null, 1, 'nan'::double]"}, {}], "rates_finite", 1),
        ([{"rates": "[null, -1]::double[]"}, {}], "rates_at_least_0", 1),
        ([{}, {"job_id": "'8'"}, {}], "key_unique", 2),
        ([{"day": "null::date"}, {"day": "null::date"}, {"day": "null::date"}], "key_unique", 3),
    ],
)
def test_result_that_violates_a_rule_is_not_written(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, changes: list[dict[str, str]], rule: str, count: int
) -> None:
    model(tmp_path, *changes)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    for write in (
        lambda: models.write(connection, SMALL, tmp_path / "a.parquet"),
        lambda: models.write_days(
            connection, SMALL, {day: tmp_path / f"{day}.parquet" for day in (date(2018, 2, 9), None)}
        ),
    ):
        with pytest.raises(ContractError, match=rf"small: rows break .*{rule} in {count} rows"):
            write()
        assert {path for path in tmp_path.rglob("*") if path.is_file()} == before


def test_kinds_of_rules_are_complete() -> None:
    """The previous test has a row for each kind."""
    assert {rule.kind for rule in row_rules(SMALL)} == set(get_args(Kind))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"node_count": "3"}, "node_count is INTEGER, not BIGINT"),
        ({"polled_at": "timestamp '2018-02-09 12:00:00'"}, "polled_at is TIMESTAMP, not TIMESTAMP WITH TIME ZONE"),
        ({"more": "1"}, r"unknown \['more'\]"),
    ],
)
def test_result_is_not_cast_to_its_contract(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, change: dict[str, str], message: str
) -> None:
    model(tmp_path, change)
    with pytest.raises(ContractError, match=message):
        models.write(connection, SMALL, tmp_path / "a.parquet")
    assert not (tmp_path / "a.parquet").exists()


@pytest.mark.parametrize("is_sparse", [True, False])
def test_days_are_written_to_separate_files(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, *, is_sparse: bool
) -> None:
    days = [date(2018, 2, 9), date(2018, 2, 10), None]
    model(tmp_path, {}, {"day": "null"}, {"job_id": "'8'"}, {"day": "date '2018-02-11'"}, then="order by all")
    paths = {day: tmp_path / f"{day}.parquet" for day in days}
    row_counts = {days[0]: 2, None: 1} if is_sparse else {days[0]: 2, days[1]: 0, None: 1}
    assert models.write_days(connection, SMALL, paths, is_sparse=is_sparse) == row_counts
    found = {day: pl.read_parquet(path)["job_id"].to_list() for day, path in paths.items() if path.exists()}
    assert found == {days[0]: ["7", "8"], None: ["7"]} | ({} if is_sparse else {days[1]: []})


@pytest.mark.parametrize(
    "name", ["a'b", 'a"b', "~", "a*?[1]", "a\\b", "$path", "{x}", "ü\U0001f600", "\udcff", "a%20b#c"]
)
def test_folder_may_have_any_name(connection: duckdb.DuckDBPyConnection, tmp_path: Path, name: str) -> None:
    model(tmp_path, {})
    path = tmp_path / name / "a.parquet"
    assert models.write(connection, SMALL, path) == 1
    assert [file.name for file in path.parent.iterdir()] == ["a.parquet"]
    expose(connection, SMALL.layer, SMALL, [path])
    assert connection.sql("select job_id from stage.small").fetchall() == [("7",)]


def test_number_of_threads_does_not_change_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "SQL_ROOT", tmp_path / "sql")
    (tmp_path / "sql" / "stage").mkdir(parents=True)
    values = GOOD | {"job_id": "(i * 7919 % 500009)::varchar", "reported_ratio": "sqrt(i / 300000)"}
    columns = ", ".join(f"{value} as {name}" for name, value in values.items())
    (tmp_path / "sql" / "stage" / "small.sql").write_text(
        f"select {columns} from range(300000) as numbers (i) order by job_id"
    )
    found = []
    for threads in (1, 2, 4):
        with duckdb.connect(config={"threads": threads}) as connection:
            models.write(connection, SMALL, tmp_path / f"{threads}.parquet")
        found.append((tmp_path / f"{threads}.parquet").read_bytes())
    assert found[0] == found[1] == found[2]

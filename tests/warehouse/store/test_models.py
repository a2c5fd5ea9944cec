"""Landed files of before a column came are read with it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb
import polars as pl
import pytest

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.predictions import PREDICTION_RECORDS
from iosig.warehouse.store.models import engine, expose_frame, expose_landed


def test_what_was_landed_before_a_column_came_has_none_of_it(tmp_path: Path) -> None:
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


def _told(connection: duckdb.DuckDBPyConnection) -> list[tuple[int]]:
    return connection.sql("select number from samples.runs").fetchall()


def test_what_was_made_in_one_engine_is_in_no_other(tmp_path: Path) -> None:
    with engine(tmp_path, "1GB") as first:
        expose_frame(first, "samples", "runs", pl.DataFrame({"number": [1]}))
        with engine(tmp_path, "1GB") as beside:
            expose_frame(beside, "samples", "runs", pl.DataFrame({"number": [2]}))
            assert (_told(first), _told(beside)) == ([(1,)], [(2,)])
        assert _told(first) == [(1,)]
    with engine(tmp_path, "1GB") as later, pytest.raises(duckdb.CatalogException):
        _told(later)


def test_an_engine_answers_after_one_that_failed_and_in_utc(tmp_path: Path) -> None:
    with pytest.raises(duckdb.ConversionException), engine(tmp_path, "1GB") as failing:
        failing.execute("set TimeZone = 'Asia/Tokyo'; select 'no number'::int")
    with engine(tmp_path, "1GB") as connection:
        zone, threads = "current_setting('TimeZone')", "current_setting('threads')"
        assert connection.sql(f"select {zone}, {threads}").fetchall() == [("UTC", pl.thread_pool_size())]

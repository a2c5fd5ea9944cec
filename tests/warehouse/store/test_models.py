"""Landed files of before a column came are read with it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb
import polars as pl

from warehouse.contracts import frames
from warehouse.contracts.predictions import PREDICTION_RECORDS
from warehouse.store.models import expose_landed


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

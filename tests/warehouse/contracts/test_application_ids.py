"""Test application ids: equal from values, in frames, in SQL and in the model that publishes them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl

from iosig.warehouse.contracts.application_ids import (
    APPLICATION_ID_SQL,
    all_node_counts,
    application_ids,
    make_application_id,
    user_prefix,
    without_node_count,
)
from iosig.warehouse.contracts.samples import APPLICATIONS
from iosig.warehouse.store import models
from tests.sql.given import select

ROWS = [("ann", "ior", 4), ("site/bob", "a/b", 1), (None, "ior", 4), ("ann", None, 4), ("ann", "ior", None)]
IDS = ["ann/ior/4", "site%2Fbob/a/b/1", None, None, None]


def test_ids_from_values_frames_and_sql_are_equal() -> None:
    schema = {"user": pl.String, "application": pl.String, "node_count": pl.Int64}
    frame = pl.DataFrame(ROWS, schema=schema, orient="row")
    assert [make_application_id(*row) for row in ROWS] == IDS
    assert frame.select(application_ids()).to_series().to_list() == IDS
    with duckdb.connect() as connection:
        connection.register("runs", frame.to_arrow())
        assert connection.sql(f"select {APPLICATION_ID_SQL} from runs").fetchall() == [(each,) for each in IDS]


def test_ids_equal_published_ids(tmp_path: Path) -> None:
    jobs = "user application node_count \n site/bob a/b 1"
    with models.engine(tmp_path, "1GB") as connection:
        rows = select(connection, APPLICATIONS, {"stage.jobs": jobs}, {})
    assert rows["application_id"].to_list() == [make_application_id("site/bob", "a/b", 1)]


def test_parts_of_an_id_are_extracted() -> None:
    assert "site%2Fbob/a/b/1".startswith(user_prefix("site/bob"))
    assert without_node_count("site%2Fbob/a/b/1") == "site%2Fbob/a/b"
    assert all_node_counts("ann/ior/4") == all_node_counts("ann/ior/*") == "ann/ior/*"

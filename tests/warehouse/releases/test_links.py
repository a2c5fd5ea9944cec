"""Test `latest/`: it always shows exactly the current release, to any reader."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pytest

from iosig.warehouse.contracts import table
from iosig.warehouse.contracts.signatures import SIGNATURE_POINTS as POINTS
from iosig.warehouse.releases import holds, links, publishing, releases
from iosig.warehouse.store import files
from iosig.warehouse.store.store import Store, write_parquet
from tests.sql.given import rows
from tests.warehouse.releasing import draft, publish, read

pytestmark = pytest.mark.slow

READERS: dict[str, Callable[[Path], list[str]]] = {
    "pandas": lambda folder: pd.read_parquet(folder)["job_id"].tolist(),
    "polars": lambda folder: pl.read_parquet(folder)["job_id"].to_list(),
    "duckdb": lambda folder: [
        str(row[0]) for row in duckdb.sql(f"select job_id from read_parquet('{folder}/**/*.parquet')").fetchall()
    ],
    "arrow": lambda folder: ds.dataset(folder, partitioning="hive").to_table()["job_id"].to_pylist(),
}


@pytest.mark.parametrize("reader", READERS)
def test_every_file_reader_reads_current_release(two: Store, reader: str) -> None:
    jobs = two.root / "latest" / "jobs"
    assert sorted(READERS[reader](jobs)) == ["100", "80", "81", "91", "run"]
    publish(two, "third", {"jobs": {8: "", 10: "job_id \n 101"}})
    assert sorted(READERS[reader](jobs)) == ["101", "91", "run"]
    holds.roll_back(two, "2018-02-09-first")
    assert sorted(READERS[reader](jobs)) == ["80", "81", "90", "run"]


def test_days_are_folders_and_every_table_exists(two: Store) -> None:
    latest = two.root / "latest"
    days = sorted(path.name for path in (latest / "jobs").iterdir())
    assert days == ["day=2018-02-08", "day=2018-02-09", "day=2018-02-10", "day=undated"]
    assert sorted(path.name for path in latest.iterdir()) == sorted(
        each.name for each in releases.list_published_tables()
    )
    assert pd.read_parquet(latest / "rejects").empty
    assert set(pd.read_parquet(latest / "rejects").columns) == set(table("rejects").column_names)
    seen = duckdb.sql(f"select distinct day from read_parquet('{latest}/jobs/**/*.parquet')")
    assert {str(row[0]) for row in seen.fetchall()} == {"2018-02-08", "2018-02-09", "2018-02-10", "undated"}


def test_table_with_a_day_column_keeps_it(two: Store) -> None:
    rows = {9: "table_name \n jobs", None: "table_name \n polls"}
    release = publish(two, "third", {"quarantine": rows})
    folder = two.root / "latest" / "quarantine"
    expected = sorted(map(str, read(two, release, "quarantine")["day"].to_list()))
    assert sorted(map(str, pl.read_parquet(folder / "**/*.parquet")["day"].to_list())) == expected
    assert sorted(str(day) for day in pd.read_parquet(folder)["day"]) == expected


def test_buckets_are_folders(two: Store, tmp_path: Path) -> None:
    points = {
        bucket: write_parquet(rows("transforms.signature_points", f"offset_s \n {bucket}.0"), POINTS, tmp_path / name)
        for bucket, name in ((3, "a"), (12, "b"))
    }
    release = publishing.publish(
        two, draft("third", on=releases.current(two)), {POINTS.name: points | {5: tmp_path / "no rows"}}
    )
    folder = two.root / "latest" / POINTS.name
    assert sorted(path.name for path in folder.iterdir()) == ["application_bucket=12", "application_bucket=3"]
    found = pl.read_parquet(folder).sort("offset_s")
    assert found.select("offset_s", "application_bucket").rows() == [(3.0, 3), (12.0, 12)]
    assert pd.read_parquet(folder)["offset_s"].sum() == ds.dataset(folder).to_table()["offset_s"].to_numpy().sum() == 15
    assert read(two, release, POINTS.name).height == 2
    fourth = publishing.publish(two, draft("fourth", on=releases.current(two)), {POINTS.name: {12: points[12]}})
    assert read(two, fourth, POINTS.name)["offset_s"].to_list() == [12.0], "all buckets are made anew"


def test_files_are_hard_links_with_units_and_docs(two: Store) -> None:
    publish(two, "third", {"rejects": {None: ""}})
    (linked,) = (two.root / "latest" / "jobs" / "day=2018-02-10").iterdir()
    (own,) = (path for path in releases.files_of(two, releases.find(two, None))["jobs"] if "2018-02-10" in path.name)
    assert linked.stat().st_ino == own.stat().st_ino
    field = ds.dataset(linked).schema.field("duration_s")
    assert field.metadata[b"unit"] == b"s"
    assert field.metadata[b"doc"]


def test_only_current_and_previous_views_exist(two: Store) -> None:
    for number in range(3):
        publish(two, f"more{number}", {"jobs": {9: f"job_id \n {number}"}})
    assert sorted(glob.glob("*/jobs", root_dir=two.root)) == ["latest/jobs", "tables/jobs"]
    assert len(list(two.root.glob(".latest-*"))) == 2, "the one before stays for whoever reads it just now"


def test_current_release_is_switched_atomically(two: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = READERS["polars"](two.root / "latest" / "jobs")

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(files, "lay_out", fail)
        with pytest.raises(KeyboardInterrupt):
            publish(two, "third", {"jobs": {9: ""}})
    assert READERS["polars"](two.root / "latest" / "jobs") == before
    publishing.complete(two)
    assert "91" not in READERS["polars"](two.root / "latest" / "jobs")


def test_files_are_copied_where_hard_links_fail(two: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError

    release = releases.find(two, None)
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", refuse)
        files.lay_out(two.root / "elsewhere", links.members(two, release))
    assert sorted(READERS["pandas"](two.root / "elsewhere" / "jobs")) == ["100", "80", "81", "91", "run"]

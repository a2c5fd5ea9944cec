"""Test exports of a complete release: as files, hard-linked where possible, and as a DuckDB file."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from iosig.warehouse.contracts import Table, arrow, frames, table
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases import releases, whole_release
from iosig.warehouse.releases.releases import Release, list_published_tables
from iosig.warehouse.releases.whole_release import export_database, export_folder
from iosig.warehouse.store.store import Store
from tests.budget import one_in
from tests.warehouse.releasing import publish, publish_older_jobs, read

CONTENT: dict[str, Any] = {
    "jobs": {
        8: "job_id user \n 0 ann",
        9: "job_id user \n 1 ann \n 2 bob",
        None: "job_id ended_at \n run .",
    },
    "quarantine": {
        9: "table_name rule row_json \n jobs known {}",
        None: "table_name rule row_json \n jobs unknown {}",
    },
    "applications": {None: "application_id \n ann/x/1 \n bob/x/1"},
}
COUNTS = {"jobs": 4, "quarantine": 2, "applications": 2}


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Skip syncs: the thirty files of a release need safety from killed processes only."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Create a warehouse with two releases in a folder with special characters in its name."""
    store = Store(tmp_path_factory.mktemp("it's day=1") / "warehouse")
    publish(store, "first", CONTENT)
    publish(store, "second", {"applications": {None: "application_id \n eve/x/1"}})
    return store


@pytest.fixture(scope="module")
def first(store: Store) -> Release:
    return releases.history(store)[0]


@pytest.fixture(scope="module")
def exported(store: Store, first: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "new" / "first"
    counts = export_folder(store, first, folder)
    assert counts == {made.name: COUNTS.get(made.name, 0) for made in list_published_tables()}
    return folder


def quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def files_in(folder: Path, made: Table) -> list[Path]:
    return sorted((folder / made.name).rglob("*.parquet"))


# ---- files


@pytest.mark.slow
def test_every_table_is_exported_with_rows_and_schema(store: Store, first: Release, exported: Path) -> None:
    for made in list_published_tables():
        files = files_in(exported, made)
        assert files, made.name
        found = pl.read_parquet(files, hive_partitioning=False)
        assert found.schema == frames.schema(made)
        assert found.sort(made.key).equals(read(store, first, made.name))
        for path in files:
            fields = {field.name: field for field in pq.read_schema(path)}
            for column in made.columns:
                assert fields[column.name].type == arrow.ARROW_TYPES[column.dtype]
                assert fields[column.name].metadata.get(b"unit", b"").decode() == (column.unit or "")
                assert fields[column.name].metadata[b"doc"].decode() == column.doc
    names = {path.name for path in exported.iterdir()}
    assert names == {"README.txt", "release.json", *(made.name for made in list_published_tables())}


def test_folders_of_days_do_not_shadow_a_column(exported: Path) -> None:
    days = ["2018-02-08", "2018-02-09", "undated"]
    assert sorted(path.name for path in (exported / "jobs").iterdir()) == [f"day={day}" for day in days]
    assert sorted(path.name for path in (exported / "quarantine").iterdir()) == days[1:]
    assert [path.parent.name for path in files_in(exported, table("applications"))] == ["applications"]
    assert [path.name for path in (exported / "samples").iterdir()] == ["empty.parquet"]


@pytest.mark.parametrize("name", one_in(4, ["jobs", "quarantine", "applications", "samples"]))
def test_every_reader_reads_an_exported_folder(store: Store, first: Release, exported: Path, name: str) -> None:
    made, folder = table(name), exported / name
    count = read(store, first, name).height
    names = list(made.column_names)
    day = ["day"] if name == "jobs" else []
    for found in (pl.read_parquet(folder), duckdb.sql(f"from '{quoted(folder)}/**/*.parquet'").pl()):
        assert (found.columns, found.height) == (names + day, count)
    assert list(pd.read_parquet(folder).columns) == names + day
    assert len(pd.read_parquet(folder)) == count
    for arranged in (ds.dataset(folder), ds.dataset(folder, partitioning="hive")):
        assert (arranged.count_rows(), arranged.schema.names[: len(names)]) == (count, names)


def test_exported_files_are_hard_links_unless_copied(
    store: Store, first: Release, exported: Path, tmp_path: Path
) -> None:
    export_folder(store, first, tmp_path / "copy", is_copied=True)
    for name in COUNTS:
        own = {path.stat().st_ino for path in releases.files_of(store, first)[name]}
        assert {path.stat().st_ino for path in files_in(exported, table(name))} == own
        copies = files_in(tmp_path / "copy", table(name))
        assert not {path.stat().st_ino for path in copies} & own
        assert all(path.stat().st_mode & stat.S_IWUSR for path in copies)


@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK])
def test_files_that_cannot_be_linked_are_copied(
    store: Store, first: Release, tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, "refused")

    monkeypatch.setattr(os, "link", refuse)
    counts = export_folder(store, first, tmp_path / "out")
    assert counts["jobs"] == pl.read_parquet(files_in(tmp_path / "out", JOBS)).height == COUNTS["jobs"]


def test_export_names_its_release(first: Release, exported: Path) -> None:
    words = (exported / "README.txt").read_text()
    assert words.startswith(f"Release {first.release_id} of iosig")
    assert all(made.grain in words for made in list_published_tables())
    told = json.loads((exported / "release.json").read_text())
    assert told["release"]["release_id"] == first.release_id
    assert told["tables"]["jobs"]["row_count"] == COUNTS["jobs"]
    for name, known in told["tables"].items():
        assert (exported / name).is_dir()
        assert [column["name"] for column in known["columns"]] == list(table(name).column_names)


@pytest.mark.slow
def test_existing_target_is_refused_unless_an_empty_folder(store: Store, first: Release, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    export_folder(store, first, tmp_path / "empty")
    assert (tmp_path / "empty" / "README.txt").is_file()
    (tmp_path / "file").write_text("mine")
    for name in ("empty", "file"):
        with pytest.raises(UsageError, match="already exists"):
            export_folder(store, first, tmp_path / name)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.slow
def test_failed_export_leaves_no_files(
    store: Store, first: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(*_: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(whole_release, "_words", break_off)
    monkeypatch.setattr(whole_release, "_name_itself", break_off)
    (tmp_path / "out.duckdb").write_bytes(b"old")
    with pytest.raises(ZeroDivisionError):
        export_folder(store, first, tmp_path / "out")
    with pytest.raises(ZeroDivisionError):
        export_database(store, first, tmp_path / "out.duckdb")
    assert [path.name for path in tmp_path.iterdir()] == ["out.duckdb"]
    assert (tmp_path / "out.duckdb").read_bytes() == b"old"


@pytest.mark.slow
@pytest.mark.long
def test_files_older_than_a_column_are_rewritten(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    publish_older_jobs(store, ["line"], {8: "job_id \n 1"})
    release = publish(store, "new", {"jobs": {9: "job_id \n 2"}})
    export_folder(store, release, tmp_path / "out")
    found = pl.read_parquet(tmp_path / "out" / "jobs").sort("job_id")
    assert found.select("job_id", "line").rows() == [("1", None), ("2", 1)]
    assert pq.read_table(tmp_path / "out" / "jobs", partitioning=None).num_rows == 2
    latest = ds.dataset(store.root / "latest" / "jobs").to_table().sort_by("job_id")
    assert latest.select(["job_id", "line"]).to_pylist() == [{"job_id": "1", "line": None}, {"job_id": "2", "line": 1}]
    older, newer = sorted((store.root / "latest" / "jobs").rglob("*.parquet"))
    assert (older.stat().st_nlink, newer.stat().st_nlink) == (2, 4), "made anew, and the release's own"
    export_database(store, release, tmp_path / "out.duckdb")
    with duckdb.connect(tmp_path / "out.duckdb", read_only=True) as connection:
        assert connection.sql("select job_id, line from jobs order by all").fetchall() == [("1", None), ("2", 1)]


# ---- DuckDB file


@pytest.mark.parametrize("is_copied", one_in(2, [False, True]))
def test_database_has_all_tables_of_release(store: Store, first: Release, tmp_path: Path, is_copied: bool) -> None:
    path = tmp_path / "new" / "ALL.DUCKDB"
    counts = export_database(store, first, path, is_copied=is_copied)
    assert [found.name for found in path.parent.iterdir()] == [path.name]
    with duckdb.connect(path, read_only=True) as connection:
        connection.execute("set TimeZone = 'UTC'")
        for made in list_published_tables():
            found = connection.sql(f'from "{made.name}"').pl()
            assert found.sort(made.key).equals(read(store, first, made.name)), made.name
            assert found.height == counts[made.name] == COUNTS.get(made.name, 0)
        kinds = dict(connection.sql("select table_name, table_type from information_schema.tables").fetchall())
        assert kinds.pop("release") == kinds.pop("releases") == "BASE TABLE"
        assert kinds == dict.fromkeys(counts, "BASE TABLE" if is_copied else "VIEW")
        assert connection.sql("select release_id from release").fetchall() == [(first.release_id,)]
        assert len(connection.sql("from releases").fetchall()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("is_copied", [False, True])
def test_database_is_documented(store: Store, first: Release, tmp_path: Path, is_copied: bool) -> None:
    export_database(store, first, tmp_path / "all.duckdb", is_copied=is_copied)
    with duckdb.connect(tmp_path / "all.duckdb", read_only=True) as connection:
        query = "select table_name, column_name, comment from duckdb_columns() where not internal"
        comments = {(name, column): comment for name, column, comment in connection.sql(query).fetchall()}
        source = "table_name, comment from duckdb_tables()" if is_copied else "view_name, comment from duckdb_views()"
        grains = dict(connection.sql(f"select {source} where not internal").fetchall())
    for made in list_published_tables():
        assert grains[made.name] == made.grain
        for column in made.columns:
            assert comments[made.name, column.name] == column.doc + (f" [{column.unit}]" if column.unit else "")


@pytest.mark.slow
def test_only_copies_are_independent_of_the_warehouse(store: Store, first: Release, tmp_path: Path) -> None:
    for is_copied in (False, True):
        export_database(store, first, tmp_path / "all.duckdb", is_copied=is_copied)
        with duckdb.connect(tmp_path / "all.duckdb", read_only=True) as connection:
            connection.execute("set enable_external_access = false")
            if is_copied:
                assert connection.sql("select count(*) from jobs").fetchall() == [(COUNTS["jobs"],)]
            else:
                with pytest.raises(duckdb.PermissionException):
                    connection.sql("select count(*) from jobs").fetchall()


@pytest.mark.parametrize("name", ["all.parquet", "all.db", "all", "-"])
def test_unknown_suffix_of_database_is_refused(store: Store, first: Release, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"\.duckdb.*--output FOLDER"):
        export_database(store, first, tmp_path / name)
    assert list(tmp_path.iterdir()) == []

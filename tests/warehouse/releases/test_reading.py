"""Test reading: a release is a set of documented, read-only views."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from iosig.warehouse.contracts import columns
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.metrics import Metric
from iosig.warehouse.contracts.releases import RELEASES, STALE_DAYS
from iosig.warehouse.releases import catalogue, reading, releases
from iosig.warehouse.releases.reading import count_differences, open_release
from iosig.warehouse.releases.releases import Release, list_published_tables
from iosig.warehouse.releases.views import VIEWS
from iosig.warehouse.store.store import Store
from tests.warehouse.releasing import publish, publish_older_jobs

FIRST: dict[str, Any] = {
    "jobs": {9: "job_id user \n 1 ann \n 2 bob \n 3 .", None: "job_id ended_at \n run ."},
    "samples": {9: "job_id sample_bytes_per_s \n 1 0,.,2.5"},
    "applications": {None: "application_id \n ann/x/1"},
    "rejects": {None: "line reason raw \n . same a"},
}
SECOND: dict[str, Any] = {
    "jobs": {9: "job_id user \n 1 ann \n 2 eve \n 4 .", None: "job_id ended_at \n run ."},
    "rejects": {None: "line reason raw \n . same b \n . new a"},
    "applications": {None: ""},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Create a warehouse with two releases, which no test changes."""
    store = Store(tmp_path_factory.mktemp("reading") / "warehouse")
    publish(store, "first", FIRST)
    publish(store, "second", SECOND)
    return store


@pytest.fixture(scope="module")
def first(store: Store) -> Release:
    return releases.history(store)[0]


@pytest.fixture(scope="module")
def connection(store: Store, first: Release) -> Iterator[duckdb.DuckDBPyConnection]:
    with open_release(store, first) as found:
        yield found


# ---- contents


@pytest.mark.slow
def test_every_published_table_exists_even_without_rows(connection: duckdb.DuckDBPyConnection) -> None:
    names = {row[0] for row in connection.sql("show tables").fetchall()}
    views = {view.name for view in VIEWS}
    assert names == {table.name for table in list_published_tables()} | views | {"releases"}
    assert connection.sql("select count(*) from quarantine").fetchall() == [(0,)]
    for table in list_published_tables():
        relation = connection.table(table.name)
        assert relation.columns == list(table.column_names)
    assert connection.sql("from jobs").pl().height == 4


def test_columns_have_types_of_contract_with_and_without_rows(connection: duckdb.DuckDBPyConnection) -> None:
    types: dict[str, dict[str, str]] = {}
    for table in list_published_tables():
        types[table.name] = dict(zip(table.column_names, map(str, connection.table(table.name).types), strict=True))
    assert types["jobs"]["started_at"] == "TIMESTAMP WITH TIME ZONE"
    assert types["samples"]["sample_bytes_per_s"] == types["classes"]["section_bytes"] == "DOUBLE[]"
    assert types["job_io_sources"]["poll_count"] == types["jobs"]["line"] == "BIGINT"
    assert types["jobs"]["ended_on"] == types["job_io"]["ended_on"] == "DATE"


def test_tables_and_columns_are_documented(connection: duckdb.DuckDBPyConnection) -> None:
    views = dict(connection.sql("select view_name, comment from duckdb_views() where not internal").fetchall())
    found = connection.sql(
        "select table_name, column_name, comment from duckdb_columns() where not internal"
    ).fetchall()
    comments = {(table, column): comment for table, column, comment in found}
    for table in list_published_tables():
        assert views[table.name] == table.grain
        for column in table.columns:
            unit = f" [{column.unit}]" if column.unit else ""
            assert comments[table.name, column.name] == column.doc + unit
    assert comments["releases", "verdict"] == RELEASES.column("verdict").doc
    assert comments["job_io", "estimated_bytes"].endswith("[B]")


def test_times_are_shown_in_utc(connection: duckdb.DuckDBPyConnection) -> None:
    shown = connection.sql("select ended_at::varchar from jobs where job_id = '1'").fetchall()
    assert shown == [("2018-02-09 12:00:00+00",)]


def test_releases_are_a_table(store: Store, connection: duckdb.DuckDBPyConnection) -> None:
    found = connection.sql("select release_id, kind, snapshots->>'jobs', dates from releases order by created_at")
    assert found.fetchall() == [
        (release.release_id, "run", str(release.snapshots["jobs"]), '["2018-02-09", null]')
        for release in releases.history(store)
    ]


def test_earlier_release_is_unchanged(store: Store, first: Release) -> None:
    for release, users in ((first, ["ann", "bob"]), (releases.find(store, None), ["ann", "eve"])):
        with open_release(store, release) as connection:
            found = connection.sql("select user from jobs where user is not null order by job_id").fetchall()
            assert [row[0] for row in found] == users


@pytest.mark.parametrize(
    "query",
    ["select * from JOBS", 'select * from "jobs"', "from jobs join samples using (job_id)", "describe jobs"],
)
def test_only_tables_named_in_query_are_opened(store: Store, first: Release, query: str) -> None:
    with open_release(store, first, query) as connection:
        assert connection.sql(query).fetchall()


@pytest.mark.parametrize(
    "query",
    [
        "show tables",
        "select table_name from information_schema.tables",
        "select table_name from duckdb_tables() union select view_name from duckdb_views()",
        "show all tables",
    ],
)
def test_query_for_table_names_sees_all_tables(store: Store, first: Release, query: str) -> None:
    with open_release(store, first, query) as connection:
        found = str(connection.sql(query).fetchall())
    assert all(f"'{table.name}'" in found for table in list_published_tables())


# ---- isolation


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_text('{file}')",
        "select * from read_csv('{file}')",
        "select * from '{file}'",
        "select * from read_blob('{folder}/*')",
        "select * from glob('{folder}/*')",
        "select * from parquet_metadata('{file}')",
        "select * from sniff_csv('{file}')",
        "copy (select 1) to '{folder}/new.csv'",
        "attach '{folder}/new.db'",
        "install sqlite",
        "set enable_external_access = true",
        "set allowed_paths = ['{file}']",
        "set lock_configuration = false",
        "pragma enable_profiling",
        "pragma profiling_output = '{folder}/new'",
        "pragma import_database('{folder}')",
        "select * from secret_frame",
        "select getenv('HOME')",
        "from sqlite_scan('{file}', 'a')",
    ],
)
def test_queries_cannot_access_the_file_system(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, query: str
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    secret_frame = pl.DataFrame({"a": [1]})
    with pytest.raises(duckdb.Error):
        connection.sql(query.format(file=secret, folder=tmp_path)).fetchall()
    assert secret_frame.height == 1
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


# ---- releases older than the contract


@pytest.mark.slow
def test_column_missing_in_older_file_is_null(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    later = ("account", "is_application_run", "line")
    publish_older_jobs(store, later, {8: "job_id user \n 1 ann"})
    release = publish(store, "new", {"jobs": {9: "job_id user account \n 2 bob physics"}})
    with open_release(store, release) as connection:
        found = connection.sql("from jobs order by job_id").pl()
    assert found.columns == list(JOBS.column_names)
    assert found.select("job_id", "user", "account", "is_application_run", "line").rows() == [
        ("1", "ann", None, None, None),
        ("2", "bob", "physics", True, 1),
    ]
    iceberg = catalogue.open_catalogue(store).load_table((catalogue.NAMESPACE, "jobs"))
    assert {field.name for field in iceberg.schema().fields if not field.required} >= set(later)


# ---- differences


def test_differences_are_counted_by_key(store: Store, first: Release) -> None:
    second = releases.find(store, None)
    assert count_differences(store, first, second) == [
        ("rejects", 1, 1, 0, 1),
        ("jobs", 4, 1, 1, 1),
        ("applications", 1, 0, 1, 0),
    ]
    assert count_differences(store, second, first) == [
        ("rejects", 2, 0, 1, 1),
        ("jobs", 4, 1, 1, 1),
        ("applications", 0, 1, 0, 0),
    ]
    assert count_differences(store, first, first) == []


def test_comments_may_contain_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    quoted = replace(STALE_DAYS, grain="one row per 'day'; drop", columns=(columns.CLUSTER,))
    with duckdb.connect() as connection:
        reading.scan_rows(connection, quoted, []).create_view(quoted.name)
        reading.comment(connection, "view", quoted)
        found = connection.sql("select comment from duckdb_views() where view_name = 'stale_days'").fetchall()
    assert found == [("one row per 'day'; drop",)]


MUCH = (
    "select max(h) from (select hash(i) as h, row_number() over (order by hash(i)) as n from range(3_000_000) as t(i))"
)


@pytest.mark.slow
def test_query_larger_than_memory_spills_to_a_private_folder(
    store: Store, first: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MEMORY_LIMIT", "60MB")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "other.csv").write_text("a\n1\n")
    query = f"select n % 2, count(*), max(h) from ({MUCH.replace('max(h)', 'h, n')}) group by 1 order by 1"
    with open_release(store, first) as connection:
        (folder,) = tmp_path.glob("iosig-query-*")
        assert folder.stat().st_mode & 0o077 == 0
        assert len(connection.sql(query).fetchall()) == 2
        for text in (f"from '{tmp_path}/other.csv'", f"from '{folder}/../other.csv'", f"from glob('{tmp_path}/*')"):
            with pytest.raises(duckdb.PermissionException):
                connection.sql(text).fetchall()
        with pytest.raises(duckdb.Error):
            connection.execute("set temp_directory = '/tmp'")
    assert [path.name for path in tmp_path.iterdir()] == ["other.csv"]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with open_release(store, first) as connection:
        assert connection.sql("select count(*) from jobs").fetchall() == [(4,)]
        with pytest.raises(duckdb.OutOfMemoryException):
            connection.sql(query).fetchall()


@pytest.mark.slow
def test_rows_of_one_metric_are_opened_as_default_results(tmp_path: Path) -> None:
    signatures = """
        application_id metric     is_default outcome   volume_bytes volume_operations
        a              bytes      yes        extracted 7            .
        a              operations no         extracted .            9
        """
    patterns = "trace_id metric outcome \n t time matched"
    tables: dict[str, Any] = {"signatures": {None: signatures}, "network_patterns": {None: patterns}}
    store = Store(tmp_path / "warehouse")
    release = publish(store, "metrics", tables)
    query = "select metric, is_default, volume_bytes, volume_operations from signatures order by metric"
    of_bytes, of_operations = ("bytes", True, 7.0, None), ("operations", False, None, 9.0)
    expected: dict[Metric | None, list[tuple[object, ...]]] = {
        "bytes": [of_bytes],
        "operations": [("operations", True, 9.0, 9.0)],
        None: [of_bytes, of_operations],
    }
    for metric, selected in expected.items():
        with open_release(store, release, metric=metric) as connection:
            assert connection.sql(query).fetchall() == selected
            assert connection.sql("select count(*) from network_patterns").fetchall() == [(1,)]

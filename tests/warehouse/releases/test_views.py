"""Views of a release equal queries of its tables, and each table has an example query that DuckDB accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
import pytest

from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.releases.reading import INPUTS, open_duckdb, scan_rows
from iosig.warehouse.releases.releases import list_published_tables
from iosig.warehouse.releases.sentences import description
from iosig.warehouse.releases.views import VIEWS, View, find_example, list_views
from iosig.warehouse.store.models import SQL_ROOT
from tests.warehouse.releasing import Content, opened_tables

_TABLES: dict[str, Content] = {
    "signatures": {
        None: """
            application_id filesystem direction metric     method  is_default outcome   expected_correlation
            ann/ior/8      lake       write     bytes      elastic yes        extracted 0.9
            ann/ior/8      lake       write     bytes      iosi    no         extracted .
            ann/ior/8      lake       write     operations elastic no         extracted 0.8
            bob/s3d/8      lake       write     bytes      elastic yes        no_io     .
            """
    },
    "signature_points": {
        None: """
            application_id filesystem direction metric     method  offset_s bytes_per_s
            ann/ior/8      lake       write     bytes      elastic 0        5
            ann/ior/8      lake       write     bytes      iosi    0        7
            ann/ior/8      lake       write     operations elastic 0        .
            """
    },
    "signature_bursts": {
        None: """
            application_id filesystem direction metric     method  burst volume_bytes
            ann/ior/8      lake       write     bytes      elastic 0     100
            ann/ior/8      lake       write     bytes      iosi    0     300
            ann/ior/8      lake       write     operations elastic 0     .
            """
    },
    "periods": {
        9: """
            subject_kind subject_id method      is_default period_s
            job          1          null_tested yes        60
            job          1          dft         no         30
            """
    },
    "classes": {
        9: """
            subject_kind cluster subject_id started_at direction metric     label
            job          titan   1          09:00:00   write     bytes      START
            job          titan   1          09:00:00   write     operations HILL
            job          titan   2          09:00:00   write     bytes      END
            application  .       ann/ior/8  .          write     bytes      HILL
            """
    },
    "samples": {
        9: """
            cluster job_id started_at sample_bytes_per_s sample_operations_per_s
            titan   1      09:00:00   5                  2
            titan   2      09:00:00   9                  .
            """
    },
    "exact_samples": {
        9: """
            cluster job_id started_at sample_bytes_per_s outcome
            titan   1      09:00:00   3                  measured
            """
    },
    "trace_samples": {
        9: """
            cluster job_id started_at sample_bytes_per_s outcome
            titan   1      09:00:00   4                  differs
            """
    },
    "jobs": {
        9: """
            cluster job_id started_at user account application
            titan   1      09:00:00   ann  p1      ior
            titan   1      10:00:00   eve  p2      s3d
            eos     1      09:00:00   bob  p3      enzo
            """
    },
}


@pytest.fixture(scope="module")
def site() -> Iterator[duckdb.DuckDBPyConnection]:
    with opened_tables(_TABLES) as connection:
        yield connection


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "select application_id, outcome from default_signatures order by all",
            [("ann/ior/8", "extracted"), ("bob/s3d/8", "no_io")],
        ),
        ("select method, bytes_per_s from default_signature_points", [("elastic", 5)]),
        ("select volume_bytes, expected_correlation from default_signature_bursts", [(100, 0.9)]),
        ("select method, period_s from default_periods", [("null_tested", 60)]),
        (
            "select job_id, user, account, application, label from job_classes order by all",
            [("1", "ann", "p1", "ior", "START"), ("2", None, None, None, "END")],
        ),
        (
            "select job_id, source, sample_bytes_per_s, sample_operations_per_s, outcome from run_samples order by all",
            [
                ("1", "client", [4], None, "differs"),
                ("1", "jobstats", [3], None, "measured"),
                ("1", "server", [5], [2], "measured"),
                ("2", "server", [9], None, "measured"),
            ],
        ),
    ],
)
def test_views_have_one_row_per_answer(
    site: duckdb.DuckDBPyConnection, query: str, expected: list[tuple[object, ...]]
) -> None:
    assert site.sql(query).fetchall() == expected


def test_views_are_listed_with_those_they_build_on() -> None:
    assert [view.name for view in list_views("select * from DEFAULT_SIGNATURE_BURSTS")] == [
        "default_signatures",
        "default_signature_bursts",
    ]
    assert [*list_views("select * from signatures, periods")] == []
    assert [*list_views(None)] == [*VIEWS]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_views_name_their_tables_and_describe_each_column(site: duckdb.DuckDBPyConnection, view: View) -> None:
    relation = site.table(view.name)
    docs = description(view.name, dict.fromkeys(relation.columns, "VARCHAR"))
    assert docs is not None
    assert docs["column_name"] == relation.columns
    assert all(docs["doc"])
    sources = set(re.findall(r"(?:from|join) (\w+)", view.select))
    bases = {base for each in VIEWS if each.name in sources for base in each.tables}
    assert (sources - {each.name for each in VIEWS}) | bases == set(view.tables)


_QUERIED = [*list_published_tables(), *INPUTS, RELEASES]


@pytest.fixture
def empty_release() -> Iterator[duckdb.DuckDBPyConnection]:
    with open_duckdb() as connection:
        for table in _QUERIED:
            scan_rows(connection, table, []).create_view(table.name)
        for view in VIEWS:
            connection.execute(f"create view {view.name} as {view.select}")
        yield connection


def test_each_table_has_an_example_that_reads_it(empty_release: duckdb.DuckDBPyConnection) -> None:
    for name in (table.name for table in _QUERIED):
        example = find_example(name)
        assert example is not None, f"write sql/examples/{name}.sql"
        assert empty_release.sql(example.query).fetchall() == [], name
        views = [view for view in VIEWS if view.name in example.query]
        assert name in example.query or name in {base for view in views for base in view.tables}


def test_examples_belong_to_tables() -> None:
    stems = {path.stem for path in (SQL_ROOT / "examples").glob("*.sql")}
    assert stems == {table.name for table in _QUERIED}

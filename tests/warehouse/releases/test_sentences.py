"""Test error messages of queries: they use the names of the release."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from iosig.warehouse.contracts import table
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.sentences import description, sentence, tables
from iosig.warehouse.store.store import Store
from tests.warehouse.releasing import publish


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    store = Store(tmp_path_factory.mktemp("sentences") / "warehouse")
    with open_release(store, publish(store, "first", {"jobs": {9: "job_id \n 1"}})) as found:
        yield found


@pytest.mark.parametrize(
    ("query", "told", "untold"),
    [
        ("from job", "This release has no table 'job'. Did you mean jobs", "pg_"),
        ("from pg_table", "This release has no table 'pg_table'. `show tables` lists them.", "mean"),
        ("from JOBIO", "Did you mean job_io", "sqlite"),
        ("describe sample", "Did you mean samples", "pg_"),
        ("select usr from jobs", "No column 'usr' in jobs. Did you mean user", "Candidate"),
        ("select j.usr from jobs as j", "Did you mean user", "Values list"),
        ("select own_bytes from jobs", "job_io", "Did you mean"),
        ("select volume_bytes", "No column 'volume_bytes'", "Referenced"),
        ("select lenght('a')", "Scalar Function with name lenght does not exist!", "LINE"),
        ("select 'a'::int", "Could not convert string 'a' to INT32.", "LINE"),
        ("from '/etc/passwd'", "", "LINE"),
        ("from read_text('/etc/passwd')", "/etc/passwd is not accessible", "Permission"),
    ],
)
def test_error_message_explains_the_query_error(
    connection: duckdb.DuckDBPyConnection, query: str, told: str, untold: str
) -> None:
    with pytest.raises(duckdb.Error) as raised:
        connection.sql(query).fetchall()
    found = sentence(raised.value, query)
    assert told in found, str(raised.value)
    assert untold not in found
    assert "\n" not in found
    assert found.endswith((".", "!", "?"))


def test_internal_error_of_duckdb_is_reported_as_such() -> None:
    error = duckdb.InternalException("INTERNAL Error: Attempted to access index 1\n\nStack Trace:\n\n0 x")
    assert sentence(error, "select 1") == ("DuckDB failed with an internal error: Attempted to access index 1.")


def test_description_of_table_equals_contract() -> None:
    for made in tables():
        found = description(made.name.upper(), dict.fromkeys(made.column_names, "VARCHAR"))
        assert found is not None
        assert found["column_name"] == list(made.column_names)
        assert found["doc"] == [column.doc for column in made.columns]
        assert found["unit"] == [column.unit for column in made.columns]
        assert found["null"] == ["YES" if column.nullable else "NO" for column in made.columns]
        keys = [name for name, key in zip(found["column_name"], found["key"], strict=True) if key]
        assert sorted(map(str, keys)) == sorted(table(made.name).key)
    assert description("nothing", {}) is None

"""Test the check of SQL statements: only reading statements are accepted, others are refused before they run."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
import pytest

from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases.statements import (
    CHANGING_FUNCTIONS,
    FILE_FUNCTIONS,
    MAX_NESTING,
    MAX_OPERATORS,
    MAX_QUERY_BYTES,
    READING_FUNCTIONS,
    find_described_table,
    require_reading,
)

#: table functions that have side effects, run hidden statements, or read from a memory address
NOT_READING = frozenset(
    """
    arrow_scan arrow_scan_dumb checkpoint create_external_resource deregister_external_resource
    destroy_external_resource disable_logging disable_profiling enable_logging enable_profiling force_checkpoint
    json_execute_serialized_sql pandas_scan python_arrow_scan python_map_function query query_table
    register_external_resource register_external_resource_type seq_scan truncate_duckdb_logs which_secret
    """.split()  # noqa: SIM905
)
#: functions that are volatile but have no side effects
VARYING = frozenset(
    """
    current_connection_id current_query current_query_id current_transaction_id error gen_random_uuid random sleep_ms
    stats uuid uuidv4 uuidv7 vector_type
    """.split()  # noqa: SIM905
)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Create two views and a table without rows."""
    with duckdb.connect() as found:
        found.execute("create view jobs as select 'a' as job_id, 'b' as user where false")
        found.execute("create view samples as select 'a' as job_id where false")
        found.execute("create table releases as select 'a' as release_id, 'b' as verdict where false")
        yield found


def ask(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.DuckDBPyRelation:
    """Run a query as the command does."""
    require_reading(connection, query)
    return connection.sql(query)


@pytest.mark.parametrize(
    "query",
    [
        "select 1",
        "from jobs",
        "with a as (select 1 as x) select * from a",
        "values (1)",
        "show tables",
        "describe jobs",
        "summarize jobs",
        "select 1;",
        "-- a comment\nselect 1",
        "explain select * from jobs",
        "EXPLAIN ANALYZE\n select * from jobs",
        "explain from jobs",
        "pragma table_info('jobs')",
        "select 'insert into jobs'",
        "with recursive n(n) as (select 1 union all select n + 1 from n where n < 3) from n",
        "select case when a.job_id in ('1') then 1 end, a.* exclude (user) from jobs as a join samples using (job_id)",
        "select list_transform([1], lambda x: x + 1), {'a': 1}, map {'a': 1}, [x * 2 for x in [1, 2] if x > 1]",
        "select distinct on (user) user, row_number() over w from jobs window w as (order by job_id) limit 10%",
        "pivot jobs on user in ('ann') using count(*)",
        "unpivot (select 1 as a) on a",
        "select user, count(*) filter (where true) from jobs group by cube(user) having true order by all",
        "select 1 as a union by name select 2 as a except select 3",
        "from range(3) as t(i), lateral (select i + 1)",
        "from (describe jobs)",
        "from duckdb_columns()",
        "from histogram(jobs, user)",
        "pragma show_tables",
        "select * from jobs tablesample 10%",
        "select (select 1), exists (from jobs), 1 = any (select 1), random(), now()",
    ],
)
def test_reading_statement_is_accepted_and_runs(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    assert ask(connection, query).fetchall() is not None


@pytest.mark.parametrize(
    "query",
    [
        "insert into releases select * from releases",
        "update releases set verdict = 'passed'",
        "delete from releases",
        "drop view jobs",
        "create table a as select 1",
        "create or replace view jobs as select 1",
        "alter table releases add column a int",
        "comment on table releases is 'x'",
        "copy jobs to 'jobs.csv'",
        "copy (select 1) to '/tmp/x'",
        "export database 'x'",
        "attach 'x.db'",
        "install httpfs",
        "load httpfs",
        "set memory_limit = '1GB'",
        "reset memory_limit",
        "use memory",
        "begin",
        "call pragma_version()",
        "prepare a as select 1",
        "vacuum",
        "checkpoint",
        "explain insert into releases select * from releases",
        "explain analyze delete from releases",
        "explain analyze create table a as select 1",
        "explain /**/ analyze copy (select 1) to '/tmp/x'",
        "explain analyze /**/ copy (select 1) to '/tmp/x'",
        "explain (analyze) copy (select 1) to '/tmp/x'",
        "explain (format json) select 1",
        "select 1; select 2",
        "select 1; drop view jobs",
        "",
        "  -- nothing",
        "selec 1",
        "update extensions",
        "pivot jobs on user",
        "with x as (copy (select 1) to '/tmp/x' (format parquet, use_tmp_file false)) select 1",
        "with x as (insert into releases from releases returning *) from x",
        "with x as (update releases set verdict = 'passed' returning *) from x",
        "with x as (delete from releases returning *) from x",
        "select (select a from (with x as (delete from releases returning 1 as a) from x))",
        "describe with x as (delete from releases returning 1) from x",
        "from query('select 1')",
        "from query_table('jobs')",
        "from json_execute_serialized_sql('{}')",
        "from checkpoint()",
        "from jobs, enable_logging()",
        "select 1 where (select true from truncate_duckdb_logs())",
        "from arrow_scan(1, 1, 1)",
        "select write_log('x')",
        "select [nextval('x')]",
        "pragma import_database('x')",
        "pragma profiling_output = 'x'",
        "pragma table_info('jobs') = 1",
    ],
)
def test_other_statements_are_refused_before_they_run(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    with pytest.raises(UsageError):
        require_reading(connection, query)


def test_every_function_of_duckdb_is_classified(connection: duckdb.DuckDBPyConnection) -> None:
    """Functions of a new DuckDB version must be classified as accepted or refused."""
    query = "select distinct function_name from duckdb_functions() where function_type in ('table', 'table_macro')"
    names = {name for (name,) in connection.sql(query).fetchall()}
    assert names == READING_FUNCTIONS | FILE_FUNCTIONS | NOT_READING
    assert len(names) == len(READING_FUNCTIONS) + len(FILE_FUNCTIONS) + len(NOT_READING)
    query = "select distinct function_name from duckdb_functions() where stability = 'VOLATILE'"
    assert {name for (name,) in connection.sql(query).fetchall()} == CHANGING_FUNCTIONS | VARYING


@pytest.mark.parametrize(
    ("query", "table"),
    [
        ("describe jobs", "jobs"),
        ("show jobs", "jobs"),
        ('desc "JOBS";', "JOBS"),
        ("describe select job_id from jobs", None),
        ("describe select 1", None),
        ("summarize jobs", None),
        ("show tables", None),
        ("from jobs", None),
        ("explain from jobs", None),
        ("pragma table_info('jobs')", None),
    ],
)
def test_described_table_is_found(connection: duckdb.DuckDBPyConnection, query: str, table: str | None) -> None:
    assert find_described_table(connection, query) == table


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("insert into releases from releases", "this is a INSERT statement"),
        ("with x as (copy (select 1) to 'x') select 1", "the query contains a COPY"),
        ("from checkpoint()", r"checkpoint\(\) is not a read-only table function"),
        ("select write_log('x')", r"write_log\(\) has side effects"),
        ("pivot jobs on user", "on COLUMN in"),
        ("selec 1", '^syntax error at or near "selec"\\.$'),
        ("select 1; select 2", "one SQL statement"),
        ("update extensions", "is not a query"),
        ("from glob('/*')", r"glob\(\) reads files: a query can only read tables of its release, by name"),
        ("from jobs where job_id in (select file from glob('*'))", r"glob\(\) reads files"),
        ("describe from read_parquet('x')", r"read_parquet\(\) reads files"),
        ("from '/etc/passwd.csv'", "/etc/passwd.csv is a file"),
    ],
)
def test_refusals_are_sentences(connection: duckdb.DuckDBPyConnection, query: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        require_reading(connection, query)


LEVELS = 50_000
DEEP = {
    "brackets": ("(", "1", ")"),
    "lists": ("[", "1", "]"),
    "structs": ("{'a': ", "1", "}"),
    "cases": ("case when true then ", "1", " end"),
    "functions": ("abs(", "1", ")"),
    "subqueries": ("(select ", "1", ")"),
    "minus": ("- ", "1", ""),
    "not": ("not ", "true", ""),
    "types": ("null::int", "", "[]"),
    "sums": ("", "1", " + 1"),
    "unions": ("", "1", " union all select 1"),
    "joins": ("", "1 from jobs", ", jobs"),
    "names": ("", "jobs", ".jobs"),
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("levels", [300, 900, LEVELS])
def test_deeply_nested_query_runs_or_is_refused(connection: duckdb.DuckDBPyConnection, name: str, levels: int) -> None:
    before, middle, after = DEEP[name]
    query = f"select {before * levels}{middle}{after * levels}"
    refusals = []
    try:
        require_reading(connection, query)
    except UsageError as error:
        refusals = [str(error)]
    assert refusals or levels < LEVELS
    for refusal in refusals:
        assert re.search(r"^This query is too (deeply nested|long)|Max expression depth|syntax error", refusal)
        assert len(refusal) < 200


def test_query_limits_match_their_messages(connection: duckdb.DuckDBPyConnection) -> None:
    require_reading(connection, f"select {'(' * MAX_NESTING}1{')' * MAX_NESTING}")
    require_reading(connection, f"select 1 in (1{', 1' * 20_000})")
    require_reading(connection, f"select '{'(' * 10_000}' -- {'(' * 10_000}")
    for query, sentence in (
        (f"select {'(' * (MAX_NESTING + 1)}1{')' * (MAX_NESTING + 1)}", "the maximum is 100 levels"),
        (f"select true{' or true' * MAX_OPERATORS}", "the maximum is 2,000 keywords"),
        (f"select '{'x' * MAX_QUERY_BYTES}'", "the maximum is 1,000,000 bytes"),
    ):
        with pytest.raises(UsageError, match=sentence):
            require_reading(connection, query)

"""`iosig sql` never changes anything, limits its resources, and prints results for people and programs."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import polars as pl
import pytest

from iosig.cli import query_limits
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.store import landing
from iosig.warehouse.store.store import Store
from tests.budget import one_in
from tests.cli.hostile_queries import QUERIES
from tests.nights import Cli
from tests.warehouse.releasing import publish

SERIES = "time_s,write_bytes_per_s\n0,0\n60,1e6\n120,2e6\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A warehouse with a landing and a release, which no query changes."""
    folder = tmp_path_factory.mktemp("query")
    store = Store(folder / "warehouse")
    (folder / "series.csv").write_text(SERIES)
    landed = landing.land(store, folder / "series.csv", lambda _: Reading()).landing
    content = {"jobs": {9: "job_id user \n 1 =1+1 \n 2 -bob"}, "samples": {9: "job_id sample_bytes_per_s \n 1 0,.,2.5"}}
    with open_release(store, publish(store, "first", content, inputs=(landed.landing_id,))):
        # the first read of a file verifies its checksum and records that
        return store


def contents(*folders: Path) -> dict[str, str]:
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# ---- a release is read-only


@pytest.mark.parametrize("query", one_in(50, QUERIES, slow=5))
def test_no_query_changes_a_file_or_ends_in_a_traceback(
    query: str, store: Store, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    other = tmp_path / "other.csv"
    other.write_text("secret\n1\n")
    secret_frame = pl.DataFrame({"secret": [1]})
    places = {
        "{file}": str(releases.files_of(store, releases.find(store, None))["jobs"][0]),
        "{landed}": str(next(store.landed.glob("*/*.parquet"))),
        "{new}": str(tmp_path / "new"),
        "{other}": str(other),
        "{root}": str(store.root),
    }
    for name, place in places.items():
        query = query.replace(name, place)
    before = contents(store.root, tmp_path)
    code, out, err = cli("--warehouse", store.root, "sql", query)
    assert contents(store.root, tmp_path) == before
    assert code in (0, 2)
    assert "Traceback" not in err
    assert "secret" not in out.replace("secret_", "")
    if code:
        assert err.startswith(("iosig: ", "Usage: ")), err
    assert secret_frame.height == 1


def test_changing_statement_is_refused_in_any_context(store: Store, cli: Cli) -> None:
    """DuckDB would execute it: the CTE that overwrites a release is part of a SELECT."""
    path = releases.files_of(store, releases.find(store, None))["jobs"][0]
    query = f"with x as (copy (select 1) to '{path}' (format parquet, use_tmp_file false)) select 1"
    code, out, err = cli("--warehouse", store.root, "sql", query)
    assert (code, out) == (2, "")
    assert err == "iosig: A release is read-only: the query contains a COPY.\n"


def test_data_files_are_read_only(store: Store) -> None:
    """The second barrier: a query that passes the first one lacks the permission to write."""
    files = [*store.landed.glob("*/*.parquet"), *store.tables.glob("*/data/*.parquet")]
    assert {path.parent.parent.name for path in files} >= {"jobs", "samples", "landed"}
    assert [path for path in files if stat.S_IMODE(path.stat().st_mode) & 0o222] == []


# ---- output


def test_describe_includes_documentation_and_units(store: Store, cli: Cli) -> None:
    code, out, _ = cli("--warehouse", store.root, "sql", "describe job_io", "--format", "json")
    assert code == 0
    told = {row["column_name"]: row for row in json.loads(out)}
    assert told["estimated_bytes"]["unit"] == "B"
    assert told["estimated_bytes"]["doc"].startswith("Best estimate of the bytes")
    assert (told["job_id"]["column_type"], told["job_id"]["key"], told["job_id"]["null"]) == ("VARCHAR", "PRI", "NO")
    for query in ("describe JOB_IO", "show job_io"):
        assert cli("--warehouse", store.root, "sql", query, "--format", "json")[1] == out
    assert "Best estimate of the bytes" in cli("--warehouse", store.root, "sql", "describe job_io")[1]


@pytest.mark.parametrize("query", ["summarize jobs", "show tables", "describe select 1 as a", "show all tables"])
def test_statements_that_show_the_release_work(query: str, store: Store, cli: Cli) -> None:
    code, out, _ = cli("--warehouse", store.root, "sql", query)
    assert (code, bool(out)) == (0, True)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("from job", "This release has no table 'job'. Did you mean jobs"),
        ("select usr from jobs", "No column 'usr' in jobs. Did you mean user"),
        ("selec 1", 'syntax error at or near "selec"'),
        ("from test_all_types()", "A value of the result cannot be shown as table"),
        ("update extensions", "A release is read-only"),
    ],
)
def test_invalid_query_is_reported_in_one_sentence(query: str, told: str, store: Store, cli: Cli) -> None:
    code, out, err = cli("--warehouse", store.root, "sql", query)
    assert (code, out) == (2, "")
    assert err.startswith(f"iosig: {told}")
    assert err.count("\n") == 1


def test_damaged_file_and_exhausted_memory_are_machine_faults(
    store: Store, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Store(tmp_path / "copy")
    shutil.copytree(store.root, copy.root, symlinks=True)
    (path,) = releases.files_of(copy, releases.find(copy, None))["jobs"]
    content = bytearray(path.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[4:footer] = bytes(footer - 4)
    path.unlink()
    path.write_bytes(content)
    code, out, err = cli("--warehouse", copy.root, "sql", "select job_id, user from jobs")
    assert (code, out) == (6, ""), err
    assert str(copy.root) in err
    assert f"`iosig --warehouse {copy.root} verify`" in err

    def fill_memory(*_: object) -> None:
        raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data of size 2.0 GiB")

    monkeypatch.setattr("iosig.cli.query._run_query", fill_memory)
    code, out, err = cli("--warehouse", store.root, "sql", "from jobs")
    assert (code, out) == (6, "")
    assert err.startswith("iosig: Out of memory")


NUMBERS = "select * from (values (1, 'nan'::double, ['inf'::double, 2]), (2, 0.5, null)) as t(n, x, l) order by n"


def test_json_is_one_array_without_nan(store: Store, cli: Cli) -> None:
    out = cli("--warehouse", store.root, "sql", NUMBERS, "--format", "json")[1]
    expected = [{"n": 1, "x": None, "l": [None, 2.0]}, {"n": 2, "x": 0.5, "l": None}]
    assert json.loads(out, parse_constant=lambda name: pytest.fail(name)) == expected
    assert len(out.splitlines()) == len(expected) + 2
    lines = cli("--warehouse", store.root, "sql", NUMBERS, "--format", "jsonl")[1].splitlines()
    assert [json.loads(line) for line in lines] == expected


def test_empty_result_is_an_empty_array(store: Store, cli: Cli) -> None:
    assert cli("--warehouse", store.root, "sql", "from rejects", "--format", "json")[1] == "[]\n"
    assert cli("--warehouse", store.root, "sql", "from rejects", "--format", "jsonl")[1] == ""


CELLS = ("=1+1", "+1", "-1", "@x", "\tx", "\rx", "plain", "a=1", "")


def test_csv_formulas_are_escaped_unless_raw(store: Store, cli: Cli) -> None:
    values = ", ".join(f"('{cell}', -1, -0.5)" for cell in CELLS)
    query = ["sql", f'select * from (values {values}) as t("=a", n, x)', "--format", "csv"]
    header, *rows = csv.reader(io.StringIO(cli("--warehouse", store.root, *query)[1], newline=""))
    assert header == ["'=a", "n", "x"]
    assert [row[0] for row in rows] == [f"'{cell}" if place < 6 else cell for place, cell in enumerate(CELLS)]
    assert {(row[1], row[2]) for row in rows} == {("-1", "-0.5")}
    raw = csv.reader(io.StringIO(cli("--warehouse", store.root, *query, "--raw-csv")[1], newline=""))
    assert [row[0] for row in raw] == ["=a", *CELLS]


# ---- limits


def test_deeply_nested_query_is_refused(store: Store, cli: Cli) -> None:
    for query in (f"select {'(' * 50_000}1{')' * 50_000}", f"select {'case when true then ' * 900}1{' end' * 900}"):
        code, out, err = cli("--warehouse", store.root, "sql", query)
        assert (code, out) == (2, "")
        assert err == "iosig: This query is too deeply nested: the maximum is 100 levels of brackets and CASE.\n"


@pytest.mark.parametrize("form", ["table", "json", "csv", "parquet"])
def test_oversized_row_is_refused(store: Store, form: str) -> None:
    size = query_limits.MAX_ROW_BYTES
    done = run(store, f"select repeat('x', {size}) as a", "--format", form)
    assert done.returncode == 2, done.stderr
    assert f"more than the maximum of {size:,}" in done.stderr
    assert "Traceback" not in done.stderr


def test_large_result_of_small_rows_is_printed(store: Store) -> None:
    done = run(store, "select repeat('x', 1000000) as a from range(80)", "--format", "csv")
    assert (done.returncode, len(done.stdout)) == (0, len('"a"\n') + 80 * (1_000_000 + len('""\n')))


def test_result_has_a_maximum_number_of_columns(store: Store, cli: Cli) -> None:
    for count, code in ((query_limits.MAX_COLUMNS, 0), (query_limits.MAX_COLUMNS + 1, 2)):
        columns = ", ".join(f"1 as c{number}" for number in range(count))
        found, _, err = cli("--warehouse", store.root, "sql", f"select {columns}", "--format", "json")
        assert found == code, err
    assert err == "iosig: The result has 1,001 columns, more than the maximum of 1,000.\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts all private memory to RLIMIT_DATA")
def test_memory_of_a_query_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB's memory limit does not cover texts that its functions create."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with (
        pytest.raises((duckdb.OutOfMemoryException, MemoryError)),
        query_limits.limit_memory(200 << 20),
        duckdb.connect(config={"memory_limit": "8GB"}) as connection,
    ):
        connection.sql("select repeat('x', 1000000000) as a").to_arrow_table()
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.slow
def test_cell_larger_than_memory_is_reported_in_one_sentence(store: Store) -> None:
    done = run(store, "select repeat('x', 1500000000) as a")
    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr.startswith("iosig: Out of memory")


@pytest.mark.parametrize(
    "query",
    [
        # checks for interrupts; the other query does not for minutes
        "select count(*) from range(100000000000), range(10) where 1 = random()",
        "select levenshtein(repeat('a', 800000), repeat('b', 800000))",
    ],
)
def test_interrupt_ends_every_query(store: Store, query: str, tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command(store, query), env=environment, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("iosig-query-*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(2)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert time.monotonic() - begun < 10
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    assert list(tmp_path.iterdir()) == []


def command(store: Store, query: str, *options: str) -> list[str]:
    program = "from iosig.cli import main; main()"
    return [sys.executable, "-c", program, "--warehouse", str(store.root), "sql", query, *options]


def run(store: Store, query: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(store, query, *options), capture_output=True, text=True, errors="replace")

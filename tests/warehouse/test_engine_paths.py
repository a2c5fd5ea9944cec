"""Test that each engine reads exactly the named file, for any characters in the path and any neighboring files."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import polars as pl
import pytest
import sqlalchemy as sa
from hypothesis import given, strategies as st

from bench import house
from iosig.warehouse import engine_paths
from iosig.warehouse.releases.catalogue import WarehouseFileIO

NAMES = (
    "a[1]",
    "a*",
    "a?b",
    "**",
    "a\\b",
    "a\\[1]",
    "[!a]",
    "a[",
    "[]]",
    "~",
    "file:",
    "x=1",
    "a#b",
    "a%20b",
    "a\nb",
    "é",
)
#: names that a pattern would match, or that break DuckDB's listing of the folder
NEIGHBORS = ("a1", "ab", "axb", "\\*", "b")
READ = "from read_parquet($path, hive_partitioning = false)"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("paths")
    for number, name in enumerate((*NAMES, *NEIGHBORS)):
        (base / name).mkdir()
        pl.DataFrame({"number": [number]}).write_parquet((base / name / "rows.parquet").open("wb"))
        pl.DataFrame({"number": [number]}).write_ipc((base / name / "rows.arrow").open("wb"))
    os.mkdir(os.fsencode(base) + b"/\xff")
    return base


@pytest.mark.parametrize("name", NAMES)
def test_duckdb_and_polars_read_the_named_file(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number = NAMES.index(name)
    monkeypatch.chdir(folder)
    # also relative paths: `~` and `file:` are special at the start
    for path in (folder / name / "rows.parquet", Path(name, "rows.parquet")):
        rows = duckdb.execute(READ, {"path": engine_paths.duckdb_path(path)}).fetchall()
        assert rows == [(number,)]
        assert engine_paths.read_parquet(path).rows() == [(number,)]
        assert engine_paths.scan_parquet([path], path_column="path").collect().columns == ["number", "path"]
    assert engine_paths.read_ipc(folder / name / "rows.arrow").rows() == [(number,)]


@pytest.mark.parametrize("name", NAMES)
def test_stored_pattern_matches_only_the_named_file(name: str, tmp_path: Path) -> None:
    for number, folder in enumerate((name, "a1", "ab", "axb")):
        (tmp_path / folder).mkdir()
        pl.DataFrame({"number": [number]}).write_parquet((tmp_path / folder / "rows.parquet").open("wb"))
    pattern = engine_paths.duckdb_pattern(tmp_path / name / "rows.parquet")
    assert (pattern is None) == (name == "a\\[1]")
    if pattern is not None:
        assert duckdb.execute(READ, {"path": pattern}).fetchall() == [(0,)]


def test_no_duckdb_query_uses_hive_partitioning() -> None:
    """A warehouse may lie in a folder such as `day=1`, which DuckDB takes for a Hive partition column."""
    texts = (path.read_text() for room in (*house.ROOMS, "sql") for path in (ROOT / room).rglob("*.*[ly]"))
    calls = [call for text in texts for call in re.findall(r"(?<![.\w])read_parquet\([${][^)]*\)", text)]
    assert len(calls) >= 7
    assert [call for call in calls if "hive_partitioning = false" not in call] == []


def test_path_that_is_not_utf8_is_read_through_a_link(folder: Path) -> None:
    path = folder / "\udcff" / "rows.parquet"
    pl.DataFrame({"number": [1]}).write_parquet(path.open("wb"))
    assert not engine_paths.is_utf8(path)
    assert duckdb.execute("from read_parquet($path)", {"path": engine_paths.duckdb_path(path)}).fetchall() == [(1,)]
    assert engine_paths.read_parquet(path).rows() == [(1,)]


def test_error_messages_have_the_original_path(folder: Path) -> None:
    path = folder / "a[1]" / "missing.parquet"
    with pytest.raises(duckdb.Error) as raised:
        duckdb.execute("from read_parquet($path)", {"path": engine_paths.duckdb_path(path)})
    assert str(path) not in str(raised.value)
    assert str(path) in engine_paths.original_paths(str(raised.value))


def test_links_are_removed_when_the_process_exits(tmp_path: Path) -> None:
    code = "from iosig.warehouse.engine_paths import duckdb_path; print(duckdb_path('/x/a[1]/b.parquet'))"
    run = [sys.executable, "-c", code]
    link = subprocess.run(run, env=os.environ | {"TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert link.stdout.startswith(str(tmp_path))
    assert link.stdout.endswith("/b.parquet\n")
    assert list(tmp_path.iterdir()) == []


def test_temporary_folder_with_special_characters_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "t[1]").mkdir()
    code = "from iosig.warehouse.engine_paths import duckdb_path; print(duckdb_path('/x/a[1]/b.parquet'))"
    environment = os.environ | {"TMPDIR": str(tmp_path / "t[1]")}
    link = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "[" not in link.stdout


@pytest.mark.parametrize("name", NAMES)
def test_sqlite_and_sqlalchemy_open_the_named_file(name: str, folder: Path) -> None:
    path = folder / name / "rows.sqlite"
    engine = sa.create_engine(engine_paths.sqlalchemy_uri(path))
    with engine.begin() as connection:
        connection.execute(sa.text("create table if not exists rows (number integer)"))
    engine.dispose()
    assert path.is_file()
    with closing(sqlite3.connect(engine_paths.sqlite_uri(path, mode="ro"), uri=True)) as connection:
        assert connection.execute("select count(*) from rows").fetchall() == [(0,)]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("create table other (number integer)")


@given(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1))
def test_iceberg_location_round_trips(name: str) -> None:
    location = engine_paths.iceberg_location(Path("/warehouse") / name.lstrip("/"))
    scheme, host, path = WarehouseFileIO.parse_location(location)
    assert (scheme, host, path) == ("file", "", str(Path("/warehouse") / name.lstrip("/")))


@pytest.mark.parametrize(
    ("text", "is_url"), [("s3://bucket/a", True), ("S3://bucket", True), ("a/b://c", False), ("/a/s3://c", False)]
)
def test_url_starts_with_its_scheme(text: str, is_url: bool) -> None:
    assert engine_paths.is_url(text) is is_url

"""`iosig export` writes a table or a whole release into a file, a folder or a pipe."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest

from iosig.warehouse.releases import releases
from iosig.warehouse.releases.releases import list_published_tables
from iosig.warehouse.store.store import Store
from tests.nights import Cli
from tests.warehouse.releasing import publish


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A warehouse with one release, which no export changes."""
    store = Store(tmp_path_factory.mktemp("export") / "warehouse")
    publish(
        store,
        "first",
        {"jobs": {9: "job_id user \n 1 =1+1 \n 2 bob"}, "applications": {None: "application_id \n a/b/1"}},
    )
    return store


@pytest.mark.slow
def test_whole_release_is_exported_to_a_folder(store: Store, cli: Cli, tmp_path: Path) -> None:
    code, out, err = cli("--warehouse", store.root, "export", "--all", "--output", tmp_path / "out")
    assert (code, err) == (0, "")
    assert (
        out == f"{tmp_path / 'out'}: release 2018-02-09-first, 3 rows in 2 of {len(list_published_tables())} tables\n"
    )
    assert pl.read_parquet(tmp_path / "out" / "jobs").height == 2
    (own,) = releases.files_of(store, releases.find(store, None))["jobs"]
    assert own.stat().st_nlink > 1


@pytest.mark.slow
def test_whole_release_is_exported_to_a_database(store: Store, cli: Cli, tmp_path: Path) -> None:
    for option in ([], ["--copy"]):
        code, out, _ = cli("--warehouse", store.root, "export", "--all", "--output", tmp_path / "all.duckdb", *option)
        assert (code, "3 rows in 2 of" in out) == (0, True)
        with duckdb.connect(tmp_path / "all.duckdb", read_only=True) as connection:
            assert connection.sql("select count(*) from jobs").fetchall() == [(2,)]


def test_table_is_exported_to_stdout(store: Store, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def piped(*arguments: str) -> bytes:
        out = io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", io.TextIOWrapper(out))
            assert cli("--warehouse", store.root, "export", "jobs", "--output", "-", *arguments)[0] == 0
            return out.getvalue()

    assert pl.read_parquet(io.BytesIO(piped()))["user"].to_list() == ["=1+1", "bob"]
    assert pl.read_csv(piped("--format", "csv"))["user"].to_list() == ["'=1+1", "bob"]


def test_csv_formulas_are_escaped_unless_raw(store: Store, cli: Cli, tmp_path: Path) -> None:
    for option, user in (([], "'=1+1"), (["--raw-csv"], "=1+1")):
        cli("--warehouse", store.root, "export", "jobs", "--output", tmp_path / "jobs.csv", *option)
        assert pl.read_csv(tmp_path / "jobs.csv")["user"].to_list() == [user, "bob"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["jobs", "--output", "x.json"], ".parquet or .csv"),
        (["jobs", "--output", "x.duckdb"], "--all"),
        (["jobs"], "--output"),
        (["--output", "x.parquet"], "TABLE"),
        ([], "--all"),
        (["--all"], "a folder, or a file"),
        (["--all", "--output", "x.parquet"], ".duckdb"),
        (["--all", "--output", "-"], ".duckdb"),
        (["--all", "jobs", "--output", "x"], "TABLE cannot be used with --all"),
        (["--all", "--feed", "--output", "x"], "--feed cannot"),
        (["--all", "--output", "x", "--format", "csv"], "--format cannot"),
        (["--all", "--output", "x", "--raw-csv"], "--raw-csv cannot"),
        (["jobs", "--output", "x"], ".parquet or .csv"),
        (["jobs", "--output", "x.csv", "--copy"], "--copy cannot be used without --all"),
        (["jobs", "--output", "x.csv", "--format", "csv"], "--format cannot"),
        (["jobs", "--output", "x.csv", "--valid-days", "3"], "--valid-days cannot be used without --feed"),
        (["signatures", "--feed", "--output", "-"], "ends in .json or .parquet"),
        (["nothing", "--output", "-"], "No table is called 'nothing'"),
        (["jobs", "--output", "-", "--format", "json"], "'parquet', 'csv'"),
    ],
)
def test_invalid_arguments_are_refused_and_write_nothing(
    arguments: list[str], told: str, store: Store, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = cli("--warehouse", store.root, "export", *arguments)
    assert (code, out) == (2, "")
    assert told in err
    assert list(tmp_path.iterdir()) == []

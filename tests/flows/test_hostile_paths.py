"""A night in folders with names that are special to a glob, a shell, a URL, SQL or Hive."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import duckdb
import polars as pl
import pytest

from iosig.warehouse.releases import releases
from iosig.warehouse.store.store import Store
from tests.nights import Cli, Night, write_small_site

#: a folder's name, and the name of a neighbor that it could match or be mistaken for
NAMES = {
    "w[1]*? #%41;\\$HOME'\"=~\n": "w1x",
    "a[1]": "a1",
    "a*": "ab",
    "**": "a",
    "a?b": "axb",
    "a\\[1]": "a[1]",
    "a#b": "a",
    "a%20b": "a b",
    "a b": "a",
    "it's": "its",
    'say "a"': "say a",
    "$HOME": "HOME",
    "a;b": "a",
    "a\nb": "ab",
    "{a,b}": "a",
    "~": "home",
    "-rf": "rf",
    "hive=1": "hive",
    "file:": "file",
    "s3:": "s3",
    "%s{0}": "%s0",
    "cafe\u0301": "caf\u00e9",
}


def _tier(place: int) -> pytest.MarkDecorator:
    return pytest.mark.long if place else pytest.mark.slow


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def tables(root: Path) -> dict[str, pl.DataFrame]:
    """Return the rows of the current release's tables, in an order that depends on the rows alone."""
    store = Store(root)
    files = releases.files_of(store, releases.find(store, None))
    frames = {
        name: pl.concat([pl.read_parquet(path.read_bytes()) for path in paths])
        for name, paths in files.items()
        if paths
    }
    return {name: frame[frame.hash_rows().arg_sort()] for name, frame in frames.items()}


def run_nights(cli: Cli, folder: Path, tmp: Path) -> dict[str, dict[str, pl.DataFrame]]:
    """Land and run two nights in a folder, given by its relative path; use every command that reads a release."""
    warehouse = f"--warehouse={folder}/warehouse"

    def iosig(*arguments: object) -> str:
        code, out, err = cli(warehouse, *arguments)
        assert code == 0, err
        assert "Traceback" not in err
        return out

    found = {}
    iosig("land", "--", f"{folder}/in")
    iosig("run", "--inline")
    first_id = releases.find(Store(folder / "warehouse"), None).release_id
    found["first"] = tables(folder / "warehouse")
    (folder / "in" / "more.sacct").write_text(
        "JobID|User|JobName|Partition|NNodes|Start|End|State\n"
        "900|bob|vasp|batch|8|2026-03-03T01:00:00Z|2026-03-03T01:20:00Z|COMPLETED\n"
    )
    iosig("land", "--", f"{folder}/in")
    iosig("run", "--inline")
    found["second"] = tables(folder / "warehouse")
    jobs = iosig("sql", "select job_id from jobs order by all", "--format", "csv")
    assert jobs.split() == ['"job_id"', '"100"', '"101"', '"102"', '"103"', '"900"']
    (folder / "out").mkdir()
    iosig("export", "jobs", f"--output={folder}/out/jobs.parquet")
    iosig("export", "--all", f"--output={folder}/out/plain")
    has_no_pattern = "\\" in str(folder) and set("*?[").intersection(str(folder))
    for name in ("copies",) if has_no_pattern else ("views", "copies"):
        iosig("export", "--all", f"--output={folder}/out/{name}.duckdb", *(["--copy"] if name == "copies" else []))
        # DuckDB itself opens no database in a folder with both a backslash and a question mark
        opened = shutil.copy(folder / "out" / f"{name}.duckdb", tmp / f"{name}.duckdb")
        with duckdb.connect(opened, read_only=True) as connection:
            assert connection.sql("select count(*) from jobs").fetchall() == [(5,)]
    iosig("report", f"--output={folder}/out/report")
    assert (folder / "out" / "report" / "index.html").is_file()
    assert pl.read_parquet((folder / "out" / "jobs.parquet").read_bytes()).height == 5
    iosig("verify")
    iosig("status", "--json")
    iosig("releases", "--json")
    iosig("rollback", first_id)
    iosig("sql", "select count(*) from jobs", "--format", "csv")
    return found


@pytest.fixture
def plain(
    cli: Cli, tmp_path: Path, quick_checks: None, monkeypatch: pytest.MonkeyPatch
) -> dict[str, dict[str, pl.DataFrame]]:
    (tmp_path / "plain").mkdir()
    monkeypatch.chdir(tmp_path / "plain")
    write_small_site(Path("folder/in"))
    return run_nights(cli, Path("folder"), tmp_path)


@pytest.mark.slow
def test_folder_name_with_special_characters_does_not_change_tables(
    checked_night: Night,
    landed_site: Store,
    cli: Cli,
    tmp_path: Path,
    checks_here: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The quick case: all characters in one name, one night."""
    name, neighbor = next(iter(NAMES.items()))
    shutil.copytree(landed_site.root, tmp_path / name / "warehouse")
    shutil.copytree(checked_night.store.root, tmp_path / neighbor / "warehouse")
    before = digests(tmp_path / neighbor)
    monkeypatch.chdir(tmp_path)
    for command in (["run", "--inline"], ["verify"], ["export", "--all", "--copy", f"--output={name}/all.duckdb"]):
        code, _, err = cli(f"--warehouse={name}/warehouse", *command)
        assert code == 0, err
    assert tables(tmp_path / name / "warehouse").keys() == tables(checked_night.store.root).keys()
    for table, rows in tables(checked_night.store.root).items():
        assert tables(tmp_path / name / "warehouse")[table].equals(rows), table
    assert digests(tmp_path / neighbor) == before
    assert {path.name for path in tmp_path.iterdir()} == {name, neighbor}


@pytest.mark.parametrize("name", [pytest.param(name, marks=_tier(place)) for place, name in enumerate(NAMES)])
def test_hostile_folder_names_do_not_change_tables(
    name: str,
    cli: Cli,
    plain: dict[str, dict[str, pl.DataFrame]],
    tmp_path: Path,
    quick_checks: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = tmp_path / "hostile"
    write_small_site(base / name / "in")
    decoy = base / NAMES[name]
    shutil.copytree(tmp_path / "plain" / "folder", decoy)
    # a table that included the neighbor's rows would fail on these files
    for path in decoy.rglob("*.parquet"):
        path.chmod(0o644)
        path.write_bytes(b"not a Parquet file")
    before = digests(decoy)
    monkeypatch.chdir(base)
    found = run_nights(cli, Path(name), tmp_path)
    assert digests(decoy) == before
    assert {path.name for path in base.iterdir()} == {name, decoy.name}
    for night, of_night in plain.items():
        assert found[night].keys() == of_night.keys()
        for table, rows in of_night.items():
            assert found[night][table].equals(rows), table

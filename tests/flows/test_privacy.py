"""A site that wants no names: after landing, following and a night none is in any byte of the warehouse."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from flows.landing import Told, land_paths, names_in
from flows.settings import Settings
from tests.flows import growing_traces
from tests.flows.conftest import Cli, write_small_site
from warehouse.errors import UsageError
from warehouse.store.store import Store

KEY = "0123456789abcdef0123456789abcdef"
#: who and what must not be found: user, account, job, comment, who cancelled, in an id, in a file's name and in a row
CLEAR = ("quillzoe", "grantx77", "secretjob", "wordsofhers", "killroyq", "pbsofzoe", "zoesfile", "brokenzoe")


def write_site(folder: Path) -> None:
    """Write the small site with jobs whose rows name people, one of them refused, and a series of somebody's."""
    write_small_site(folder)
    jobs = folder / "jobs.sacct"
    jobs.rename(folder / "zoesfile.sacct")
    lines = (folder / "zoesfile.sacct").read_text().splitlines()
    head, *rows = lines
    named = [f"{head}|Account|Comment"]
    for row in rows:
        named.append(
            row.replace("|ann|", "|quillzoe|").replace("|ior|", "|secretjob|") + "|grantx77|wordsofhers fs=lake"
        )
    cells = named[-1].split("|")
    named += ["|".join(["104", *cells[1:4], "brokenzoe", *cells[5:]])]
    named += ["|".join(["105.pbsofzoe", *cells[1:7], "CANCELLED by killroyq", *cells[8:]])]
    (folder / "zoesfile.sacct").write_text("\n".join(named) + "\n")
    (folder / "quillzoe.csv").write_text("time_s,write_bytes\n" + "".join(f"{n},{n * 10}\n" for n in range(50)))


def texts_of(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of every file of a warehouse, its bytes as text, and the cells of those that are packed."""
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        yield name, name
        if not path.is_file():
            continue
        yield name, path.read_bytes().decode("latin-1")
        if path.suffix == ".parquet":
            yield name, pl.read_parquet(path).write_json()
        if path.suffix == ".sqlite":
            connection = sqlite3.connect(path)
            yield name, "\n".join(connection.iterdump())
            connection.close()


@pytest.mark.usefixtures("checks_here")
@pytest.mark.slow
def test_no_name_is_in_any_byte_of_a_private_warehouse(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_site(tmp_path / "site")
    (tmp_path / "quillzoe").mkdir()
    trace = growing_traces.trace(tmp_path / "quillzoe" / "zoesfile.jsonl", 4)
    (tmp_path / "iosig.toml").write_text("[privacy]\nis_pseudonymized = true\n")
    monkeypatch.setenv("IOSIG_PRIVACY_KEY", KEY)
    ours = ("--settings", tmp_path / "iosig.toml", "--warehouse", tmp_path / "warehouse")
    code, out, err = cli(*ours, "land", tmp_path / "site", trace)
    assert code == 3
    assert KEY not in out + err
    assert cli(*ours, "predict", "--follow", "--idle-end", "0.1", "--interval", "0.05", trace)[0] == 0
    code, out, err = cli(*ours, "run", "--inline")
    assert code == 0, err
    found = {(name, word) for name, text in texts_of(tmp_path / "warehouse") for word in (*CLEAR, KEY) if word in text}
    assert found == set()
    assert KEY not in cli(*ours, "settings")[1] + out + err
    query = "select user, count(*) as n from jobs group by all"
    code, out, _ = cli(*ours, "sql", "--format", "csv", query)
    names = names_in(Store(tmp_path / "warehouse"), Settings.model_validate({"privacy": {"is_pseudonymized": True}}))
    assert names
    assert out.splitlines()[1:] == [f'"{names.name("quillzoe")}",5']
    assert cli(*ours, "sql", "--format", "csv", "select distinct filesystem from jobs")[1].splitlines()[1:] == [
        '"lake"'
    ]
    assert cli(*ours, "sql", "--format", "csv", "select count(*) as n from predictions")[1].splitlines()[1] > "0"


def test_a_clear_warehouse_would_have_been_found_out(tmp_path: Path) -> None:
    write_site(tmp_path / "site")
    list(land_paths(Store(tmp_path / "warehouse"), Settings(), [str(tmp_path / "site")], Told()))
    found = {word for _, text in texts_of(tmp_path / "warehouse") for word in CLEAR if word in text}
    assert found == set(CLEAR)


def test_the_key_is_asked_for_and_must_be_its_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def key_of(**said: object) -> bytes | None:
        return Settings.model_validate({"privacy": {"is_pseudonymized": True} | said}).privacy.key()

    monkeypatch.delenv("IOSIG_PRIVACY_KEY", raising=False)
    with pytest.raises(UsageError, match="IOSIG_PRIVACY_KEY"):
        key_of()
    file = tmp_path / "key"
    file.write_text(KEY + "\n")
    file.chmod(0o640)
    with pytest.raises(UsageError, match="its owner alone"):
        key_of(key_file=str(file))
    file.chmod(0o600)
    assert key_of(key_file=str(file)) == KEY.encode()
    with pytest.raises(UsageError, match="cannot be read"):
        key_of(key_file=str(tmp_path / "none"))

"""Report folders are updated incrementally: equal files are linked, expired pages are removed, other files are kept."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from iosig.answers.report import writing
from iosig.answers.report.existing import Page
from iosig.warehouse.errors import UsageError

_FIRST = (Page("index.html", b"one"), Page("data/a.js", b"a"), Page("data/b.js", b"b"))


def marks(folder: Path) -> dict[str, int]:
    return {path.relative_to(folder).as_posix(): path.stat().st_mtime_ns for path in folder.rglob("*.js")}


def test_unchanged_pages_are_not_rewritten(tmp_path: Path) -> None:
    assert writing.write(tmp_path, "r1", _FIRST) == (3, 5, 3)
    before = marks(tmp_path)
    assert writing.write(tmp_path, "r1", _FIRST) == (3, 5, 0)
    assert marks(tmp_path) == before
    assert writing.write(tmp_path, "r1", (*_FIRST[:2], Page("data/b.js", b"c"))) == (3, 5, 1)
    assert [name for name, at in marks(tmp_path).items() if at != before[name]] == ["r1/data/b.js"]


def test_equal_pages_of_another_release_are_linked(tmp_path: Path) -> None:
    writing.write(tmp_path, "r1", _FIRST)
    assert writing.write(tmp_path, "r2", (Page("index.html", b"two"), *_FIRST[1:])) == (3, 5, 1)
    assert (tmp_path / "r1/data/a.js").samefile(tmp_path / "r2/data/a.js")
    assert writing.write(tmp_path, "r2", (Page("index.html", b"two"), Page("data/a.js", b"A"))) == (2, 4, 1)
    assert (tmp_path / "r1/data/a.js").read_bytes() == b"a"
    assert not (tmp_path / "r2/data/b.js").exists()
    assert (tmp_path / "r1/data/b.js").read_bytes() == b"b"


def test_latest_points_to_a_release_and_expired_pages_are_removed(tmp_path: Path) -> None:
    for name in ("r1", "r2"):
        writing.write(tmp_path, name, (Page("index.html", name.encode()),))
        writing.set_latest(tmp_path, name)
        assert (tmp_path / "latest/index.html").read_text() == name
    (tmp_path / "mine").mkdir()
    assert writing.remove_all_but(tmp_path, ["r2"]) == ("r1",)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["latest", "mine", "r2"]


def test_pages_with_names_are_removed_when_hiding_begins(tmp_path: Path) -> None:
    assert writing.begin(tmp_path, is_hiding=False) == ()
    writing.write(tmp_path, "r1", _FIRST)
    assert writing.begin(tmp_path, is_hiding=False) == ()
    assert writing.begin(tmp_path, is_hiding=True) == ("r1",)
    writing.write(tmp_path, "r2", _FIRST)
    assert writing.begin(tmp_path, is_hiding=True) == ()
    assert writing.begin(tmp_path, is_hiding=False) == ()
    assert [path.name for path in writing.folders(tmp_path)] == ["r2"]


def test_latest_is_a_copy_where_links_are_impossible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "symlink_to", refuse)
    for name in ("r1", "r2"):
        writing.write(tmp_path, name, (Page("index.html", name.encode()), Page(f"data/{name}.js", b"")))
        writing.set_latest(tmp_path, name)
        assert [path.name for path in (tmp_path / "latest").rglob("*.js")] == [f"{name}.js"]
        assert (tmp_path / "latest/index.html").read_text() == name


def test_folder_with_other_content_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(UsageError, match="other content"):
        writing.require_own(tmp_path)
    with pytest.raises(UsageError, match="is a file"):
        writing.require_own(tmp_path / "thesis.tex")
    writing.require_own(tmp_path / "new")
    writing.begin(tmp_path / "new", is_hiding=False)
    writing.write(tmp_path / "new", "r1", _FIRST)
    writing.require_own(tmp_path / "new")


def test_failed_write_keeps_the_existing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writing.write(tmp_path, "r1", _FIRST)
    monkeypatch.setattr(Path, "write_bytes", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        writing.write(tmp_path, "r1", (Page("index.html", b"new"),))
    assert (tmp_path / "r1/index.html").read_bytes() == b"one"
    assert not list(tmp_path.rglob("*.tmp"))


def test_lock_is_exclusive_and_names_its_holder(tmp_path: Path) -> None:
    with writing.lock(tmp_path / "pages"):
        told = f"Another report is writing to .*pages \\(process {os.getpid()} on .*Wait for it, or pass --output"
        with pytest.raises(UsageError, match=told), writing.lock(tmp_path / "pages"):
            pass
    with writing.lock(tmp_path / "pages"):
        writing.begin(tmp_path / "pages", is_hiding=False)
    assert not [path for path in (tmp_path / "pages").iterdir() if path.suffix == ".json"]


def test_lock_of_a_dead_process_is_released(tmp_path: Path) -> None:
    # left by a process that was killed before it had marked the folder as a report
    (tmp_path / ".iosig-lock").touch()
    (tmp_path / ".iosig-lock.json").write_text('{"host": "here", "process": 1, "since": "2026-03-04"}')
    with writing.lock(tmp_path):
        assert json.loads((tmp_path / ".iosig-lock.json").read_text())["process"] == os.getpid()

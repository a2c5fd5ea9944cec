"""Existing pages are reused if their inputs and their content are unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from iosig.answers.report.existing import MANIFEST, Page, PageCache, digest, write_manifest
from iosig.answers.report.writing import open_cache, write
from iosig.reports.site.packing import pack_document

_LIST = pack_document("list", {"spark": ["0z"]})
_PAGES = (Page("index.html", b"one"), Page("data/a.js", b"a", "of a"), Page.from_content(_LIST, "of all"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "r1", _PAGES)
    return tmp_path


def test_page_is_found_by_its_fingerprint(folder: Path) -> None:
    known = open_cache(folder, "r2")
    page = known.page("data/a.js", "of a")
    assert page is not None
    assert (page.byte_count, page.digest, page.existing) == (1, digest(b"a"), folder / "r1/data/a.js")
    assert known.page("data/a.js", "of b") is None
    assert known.page("data/b.js", "of a") is None
    assert known.page("index.html", "") is None, "what is made each time is never taken"


def test_modified_or_missing_page_is_rebuilt(folder: Path) -> None:
    (folder / "r1/data/a.js").write_bytes(b"b")
    assert open_cache(folder, "r1").page("data/a.js", "of a") is None
    (folder / "r1/data/a.js").unlink()
    assert open_cache(folder, "r1").page("data/a.js", "of a") is None


@pytest.mark.parametrize("torn", ["", "{", "[]", '{"pages": 3}', '{"pages": {"data/a.js": ["of a"]}}', "null"])
def test_damaged_manifest_is_ignored(folder: Path, torn: str) -> None:
    (folder / "r1" / MANIFEST).write_text(torn)
    assert open_cache(folder, "r1").page("data/a.js", "of a") is None


def test_page_and_its_document_come_from_the_same_folder(folder: Path) -> None:
    found = open_cache(folder, "r2").page_with_document("data/a.js", "of a", "data/list.js")
    assert found is not None
    assert found[1] == {"spark": ["0z"]}
    (folder / "r1/data/list.js").write_bytes(b"x")
    assert open_cache(folder, "r2").page_with_document("data/a.js", "of a", "data/list.js") is None


def test_first_folder_takes_precedence(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_bytes(b"1")
        write_manifest(tmp_path / name, {"x": ("f", digest(b"1"))})
    page = PageCache.in_folders([tmp_path / "b", tmp_path / "a"]).page("x", "f")
    assert page is not None
    assert page.existing == tmp_path / "b/x"


def test_cached_pages_are_linked_or_kept(folder: Path) -> None:
    for name in ("r2", "r2", "r1"):
        page = open_cache(folder, name).page("data/a.js", "of a")
        assert page is not None
        assert write(folder, name, (Page("index.html", b"one"), page)) == (2, 4, 0)
        assert (folder / "r1/data/a.js").samefile(folder / name / "data/a.js")
        assert open_cache(folder, name).page("data/a.js", "of a") == Page(
            "data/a.js", b"", "of a", folder / name / "data/a.js", (1, digest(b"a"))
        )

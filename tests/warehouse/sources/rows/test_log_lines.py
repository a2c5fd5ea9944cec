from __future__ import annotations

import bz2
from pathlib import Path

import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.rows import log_lines
from iosig.warehouse.sources.rows.log_lines import blocks
from iosig.warehouse.sources.rows.rejects import REJECT_SCHEMA, ParsedRows

HEADERS = {"H0": 0, "H1": 1}


def written(folder: Path, content: bytes) -> Path:
    path = folder / "log"
    path.write_bytes(content)
    return path


def rows(found: list[ParsedRows]) -> list[tuple[object, ...]]:
    return [row for block in found for row in block.rows.rows()]


def test_each_line_has_its_number_and_preceding_header(tmp_path: Path) -> None:
    content = b"early\nH0\na\nH1\nb\nH0\n\n  \nc\n"
    (block,) = blocks(written(tmp_path, content), HEADERS.get)
    assert block.rows.columns == ["line", "header", "raw"]
    assert block.rows.rows() == [(1, None, "early"), (3, 0, "a"), (5, 1, "b"), (9, 0, "c")]
    assert block.refused.is_empty()


def test_without_headers_every_line_is_returned(tmp_path: Path) -> None:
    (block,) = blocks(written(tmp_path, b" H0 \r\n\x0b\nx\n"))
    assert block.rows.rows() == [(1, None, " H0 "), (3, None, "x")]
    assert block.refused.is_empty()


@pytest.mark.parametrize("content", [b"a\nb", b"a\nH0", b"a\n "])
def test_last_line_without_end_is_refused(tmp_path: Path, content: bytes) -> None:
    (block,) = blocks(written(tmp_path, content), HEADERS.get)
    assert block.rows["raw"].to_list() == ["a"]
    assert block.refused.select("line", "raw").rows() == ([(2, "b")] if b"b" in content else [])


def test_lines_that_are_not_utf8_are_refused_with_number(tmp_path: Path) -> None:
    (block,) = blocks(written(tmp_path, b"a\n\xff\nb\x00\nH0\n"), HEADERS.get)
    assert block.rows.rows() == [(1, None, "a")]
    assert block.refused.schema == REJECT_SCHEMA
    assert block.refused.select("line", "raw").rows() == [(2, "\\xff"), (3, "b\x00")]


@pytest.mark.parametrize("content", [b"", b"\n \n", b"H0\nH1\n"])
def test_log_without_lines_has_no_blocks(tmp_path: Path, content: bytes) -> None:
    assert list(blocks(written(tmp_path, content), HEADERS.get)) == []


@pytest.mark.parametrize("size", [1, 2, 3])
def test_blocks_are_bounded_and_header_applies_across_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    path = written(tmp_path, b"a\nH1\nb\n\xff\n\nc\n\xfe\nd\nH0\ne\n")
    whole = list(blocks(path, HEADERS.get))
    monkeypatch.setattr(log_lines, "BLOCK_LINES", size)
    pieces = list(blocks(path, HEADERS.get))
    assert {block.rows.height + block.refused.height for block in pieces[:-1]} == {size}
    assert rows(pieces) == rows(whole) == [(1, None, "a"), (3, 1, "b"), (6, 1, "c"), (8, 1, "d"), (10, 0, "e")]
    assert [line for block in pieces for line in block.refused["line"]] == [4, 7]


def test_damage_is_refused_after_blocks_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "BLOCK_LINES", 2)
    found = blocks(written(tmp_path, bz2.compress(b"a\nb\nc\n") + b"BZh9"))
    assert rows([next(found)]) == [(1, None, "a"), (2, None, "b")]
    with pytest.raises(InputRefused, match="after line 3"):
        list(found)

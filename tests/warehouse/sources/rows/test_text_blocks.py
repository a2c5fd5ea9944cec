"""Test blocks of delimited text: they end with lines and keep the file's line numbers."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import current_limits
from iosig.warehouse.sources.rows.delimited import Header
from iosig.warehouse.sources.rows.text_blocks import (
    Block,
    blocks,
    cells,
    lines,
    read_header,
    split_at,
)

COLUMNS = {"ours": "b", "other": "a"}


def write(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "table"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("block_bytes", [1, 2, 5, 7, 1000])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_blocks_end_with_lines(tmp_path: Path, block_bytes: int, end: bytes) -> None:
    lines = [b"1,2", b"", b"3,4", b"55,66"]
    found = list(blocks(write(tmp_path, b"a,b\n" + b"\n".join(lines) + end), block_bytes, skipped_line_count=1))
    assert b"".join(block.content for block in found) == b"\n".join(lines) + end
    first = 2
    for block in found:
        assert block.first_line == first
        first += block.line_count
    assert first == 2 + len(lines)


def test_header_only_file_has_no_blocks(tmp_path: Path) -> None:
    assert list(blocks(write(tmp_path, b"a,b"), skipped_line_count=1)) == []


def test_header_of_compressed_file_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(b"\xef\xbb\xbfa,b\n1,2\n"))
    assert read_header(path, lambda _: True) == (1, Header(("a", "b"), ","))


@pytest.mark.parametrize(
    ("content", "number"),
    [
        (b"a,b\n", 1),
        (b"# a comment\n\nexported by x\na,b\n1,2\n", 4),
        # without a header, the message is about the first line with content
        (b"# a comment\n\nc,d\n1,2\n", 3),
        (b"\n" * 30 + b"a,b\n", 1),
        (b"", 1),
    ],
)
def test_header_is_found_behind_comments_and_foreign_lines(tmp_path: Path, content: bytes, number: int) -> None:
    assert read_header(write(tmp_path, content), lambda header: "a" in header.names)[0] == number


@pytest.mark.parametrize("content", [b"1,2\na,b\n3,4\n", b"a,b\n1,2", b"xa\n1\n\nb,a\na,b\n", b"1,2\n", b"a,b"])
def test_block_is_split_at_headers(content: bytes) -> None:
    whole = content.split(b"\n")
    block = Block(7, content.count(b"\n") + (not content.endswith(b"\n")), content)
    for part, header in split_at(block, [b"a", b"b"], lambda line: "," in line):
        assert part.content == b"" or header is None
        assert header is None or header.rstrip().encode() == whole[part.first_line - 7]
        assert part.content.splitlines() == whole[part.first_line - 7 :][: part.line_count]
    headers = [line for _, line in split_at(block, [b"a", b"b"], lambda line: "," in line) if line]
    assert [line.rstrip().encode() for line in headers] == [
        line for line in whole if b"a" in line and b"b" in line and b"," in line
    ]


def test_truncated_compressed_file_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(b"a,b\n" + bytes(range(48, 58)) * 9999)
    with pytest.raises(InputRefused, match="damaged"):
        list(blocks(write(tmp_path, packed[: len(packed) // 2])))
    with pytest.raises(InputRefused, match="damaged"):
        read_header(write(tmp_path, packed[:12]), lambda _: True)


def test_endless_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match=r"longer than 1,048,576 bytes \(limits\.max_line_bytes"):
        list(blocks(write(tmp_path, b"a,b\n" + b"x" * (3 << 20)), 1000))


def test_cells_are_numbered_and_invalid_lines_are_refused() -> None:
    content = b'1,2\n3\n\n5,"6,6"\n7,\xff\n8,\x00\n,x\n'
    found = cells(Block(10, 7, content), Header(("a", "b"), ","), COLUMNS)
    assert found.rows.rows() == [("2", "1", 10, "1,2"), ("6,6", "5", 13, '5,"6,6"'), ("x", None, 16, ",x")]
    assert found.refused["line"].to_list() == [11, 14, 15]


def test_overlong_line_is_refused_individually() -> None:
    content = b"1,2\n3," + b"x" * (2 << 20) + b"\n4,5\n"
    found = cells(Block(2, 3, content), Header(("a", "b"), ","), COLUMNS)
    assert (found.rows["line"].to_list(), found.refused["line"].to_list()) == ([2, 4], [3])
    assert "limits.max_line_bytes" in found.refused["reason"][0]


def test_block_of_mostly_empty_lines_is_refused() -> None:
    count = current_limits().max_refused_count + 2
    with pytest.raises(InputRefused, match="are empty"):
        cells(Block(2, count, b"\n" * count), Header(("a", "b"), ","), COLUMNS)


@pytest.mark.parametrize(
    "content", [b"a,b\nc\n", b"a,b\nc", b"a\n\nc\n", b"\n", b"a\r\nb\r\n", b"a\x01b\nc\xff\n", b"a b\n\n\n"]
)
def test_lines_of_block_are_numbered_without_line_ends(content: bytes) -> None:
    (block,) = [Block(1, content.count(b"\n") + (not content.endswith(b"\n")), content)]
    expected = content.decode("utf-8", "replace").replace("\r", "").removesuffix("\n").split("\n")
    assert lines(block).rows() == list(enumerate(expected, start=1))

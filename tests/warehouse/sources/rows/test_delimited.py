from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.rows import delimited
from iosig.warehouse.sources.rows.delimited import read_cells
from iosig.warehouse.sources.rows.rejects import SCHEMA, Sifted

NAMES = ["a", "b", "c"]


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "input"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(folder: Path, content: str | bytes, delimiter: str = ",", *, skip: int = 0, quoted: bool = True) -> Sifted:
    (cells,) = read_cells(written(folder, content), NAMES, delimiter, skip_lines=skip, quoted=quoted)
    return cells


def values(cells: Sifted) -> list[tuple[object, ...]]:
    return cells.rows.select(NAMES).rows()


def test_cells_are_text_beside_their_line_and_its_raw_text(tmp_path: Path) -> None:
    cells = read(tmp_path, "1,two,3.0\r\n\r\n \t\n,  x  ,\n")
    assert cells.rows.schema == {"a": pl.String, "b": pl.String, "c": pl.String, "line": pl.Int64, "raw": pl.String}
    assert cells.rows.rows() == [("1", "two", "3.0", 1, "1,two,3.0"), (None, "x", None, 4, ",  x  ,")]
    assert cells.refused.is_empty()


def test_lines_of_another_width_are_refused_and_the_rest_is_read(tmp_path: Path) -> None:
    cells = read(tmp_path, "1,2\n1,2,3\n1,2,3,4\n1\n4,5,6\n")
    assert cells.rows.select("a", "line").rows() == [("1", 2), ("4", 5)]
    assert cells.refused.schema == SCHEMA
    assert cells.refused.select("line", "reason", "raw").rows() == [
        (1, "The line has 2 fields where 3 are expected.", "1,2"),
        (3, "The line has 4 fields where 3 are expected.", "1,2,3,4"),
        (4, "The line has 1 fields where 3 are expected.", "1"),
    ]
    assert cells.refused["remedy"].str.len_chars().min() > 0


@pytest.mark.parametrize(
    ("line", "is_read"), [("1,2,3,", True), ("1,2,3, ", True), ("1,2,3,,", False), ("1,2,", True), (",,,", True)]
)
def test_one_delimiter_may_close_the_line(tmp_path: Path, line: str, is_read: bool) -> None:
    cells = read(tmp_path, line)
    assert (cells.rows.height, cells.refused.height) == (is_read, not is_read)


@pytest.mark.parametrize("line", ["1 2 3", "  1\t 2   3  ", "1\u00a02 3"])
def test_a_blank_delimiter_splits_at_runs_of_white_space(tmp_path: Path, line: str) -> None:
    assert values(read(tmp_path, line, " ")) == [("1", "2", "3")]
    assert read(tmp_path, '"1 2" 3', " ").rows["a"].to_list() == ['"1']


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('1,"2,5",3', ("1", "2,5", "3")),
        ('1,"say ""no""",3', ("1", 'say "no"', "3")),
        ('"","2"," "', (None, "2", None)),
        ('1,6" pipe,3', ("1", '6" pipe', "3")),
    ],
)
def test_quotes_hold_delimiters(tmp_path: Path, line: str, expected: tuple[str | None, ...]) -> None:
    assert values(read(tmp_path, line)) == [expected]


@pytest.mark.parametrize("line", ['1,"2,3', '1,"2"x,3', '"', '1,"' + "x" * 200_000 + '",3', '1,"2"\r,3'])
def test_quotes_that_do_not_match_are_refused_and_nothing_runs_into_the_next_line(tmp_path: Path, line: str) -> None:
    cells = read(tmp_path, f'{line}\n4,"5",6\n')
    assert values(cells) == [("4", "5", "6")]
    assert cells.refused["line"].to_list() == [1]
    assert cells.refused["reason"].str.contains("quotes").all()


def test_without_quoting_a_quote_is_a_character(tmp_path: Path) -> None:
    assert values(read(tmp_path, '1|"2|3"', "|", quoted=False)) == [("1", '"2', '3"')]


def test_skipped_lines_are_counted(tmp_path: Path) -> None:
    cells = read(tmp_path, b"a,b,c\nnot \xff text\n1,2,3\n\xff\n", skip=2)
    assert cells.rows["line"].to_list() == [3]
    assert cells.refused.select("line", "reason", "raw").rows() == [(4, "The line is not UTF-8 text.", "\\xff")]


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_nothing_is_no_rows_of_the_same_columns(tmp_path: Path, content: str) -> None:
    cells = read(tmp_path, content)
    assert cells.rows.columns == [*NAMES, "line", "raw"]
    assert cells.rows.is_empty()
    assert cells.refused.is_empty()


def test_pieces_hold_every_line_once_with_its_own_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = "".join(f"{number},x,\n" if number % 3 else "bad\n" for number in range(1, 12))
    whole = read(tmp_path, content)
    monkeypatch.setattr(delimited, "_CHUNK_ROWS", 3)
    pieces = list(read_cells(written(tmp_path, content), NAMES, ","))
    assert [piece.rows.height for piece in pieces] == [3, 3, 2]
    assert pl.concat([piece.rows for piece in pieces]).equals(whole.rows)
    assert pl.concat([piece.refused for piece in pieces]).equals(whole.refused)
    assert whole.refused["line"].to_list() == [3, 6, 9]


def test_damage_is_refused_after_the_pieces_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "_CHUNK_ROWS", 2)
    pieces = read_cells(written(tmp_path, gzip.compress(b"1,2,3\n" * 5)[:-3]), NAMES, ",")
    assert next(pieces).rows.height == 2
    with pytest.raises(InputRefused, match="damaged"):
        list(pieces)

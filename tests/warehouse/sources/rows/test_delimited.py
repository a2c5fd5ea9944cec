"""Test cells of delimited text: every line is split or refused individually, wherever blocks end."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.rows.delimited import DELIMITERS, Header, parse_header, require_single, split_lines
from iosig.warehouse.sources.rows.rejects import REJECT_SCHEMA, ParsedRows
from iosig.warehouse.sources.rows.text_blocks import Block, cells
from tests.budget import examples
from tests.naive.sources.rows import delimited as naive

NAMES = ("a", "b", "c")


def read(content: str | bytes, delimiter: str = ",", *, first_line: int = 1) -> ParsedRows:
    content = content.encode() if isinstance(content, str) else content
    count = content.count(b"\n") + (bool(content) and not content.endswith(b"\n"))
    return cells(Block(first_line, count, content), Header(NAMES, delimiter), {name: name for name in NAMES})


def values(found: ParsedRows) -> list[tuple[object, ...]]:
    return found.rows.select(NAMES).rows()


def test_cells_have_line_number_and_raw_text() -> None:
    found = read("1,two,3.0\r\n\r\n \t\n,  x  ,\n")
    assert found.rows.schema == {"a": pl.String, "b": pl.String, "c": pl.String, "line": pl.Int64, "raw": pl.String}
    assert found.rows.rows() == [("1", "two", "3.0", 1, "1,two,3.0"), (None, "x", None, 4, ",  x  ,")]
    assert found.refused.is_empty()


def test_lines_of_wrong_width_are_refused_and_others_are_read() -> None:
    found = read("1,2\n1,2,3\n1,2,3,4\n1\n4,5,6\n")
    assert found.rows.select("a", "line").rows() == [("1", 2), ("4", 5)]
    assert found.refused.schema == REJECT_SCHEMA
    assert found.refused.select("line", "reason", "raw").rows() == [
        (1, "The line has 2 fields where 3 are expected.", "1,2"),
        (3, "The line has 4 fields where 3 are expected.", "1,2,3,4"),
        (4, "The line has 1 fields where 3 are expected.", "1"),
    ]
    assert found.refused["remedy"].str.len_chars().min() > 0


@pytest.mark.parametrize(
    ("line", "is_read"), [("1,2,3,", True), ("1,2,3, ", True), ("1,2,3,,", False), ("1,2,", True), (",,,", True)]
)
def test_line_may_end_with_an_extra_delimiter(line: str, is_read: bool) -> None:
    found = read(line)
    assert (found.rows.height, found.refused.height) == (is_read, not is_read)


@pytest.mark.parametrize("line", ["1 2 3", "  1\t 2   3  ", "1\u00a02 3"])
def test_blank_delimiter_splits_at_runs_of_whitespace(line: str) -> None:
    assert values(read(line, " ")) == [("1", "2", "3")]
    assert read('"1 2" 3', " ").rows["a"].to_list() == ['"1']


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('1,"2,5",3', ("1", "2,5", "3")),
        ('1,"say ""no""",3', ("1", 'say "no"', "3")),
        ('"","2"," "', (None, "2", None)),
        ('1,6" pipe,3', ("1", '6" pipe', "3")),
    ],
)
def test_quotes_may_enclose_delimiters(line: str, expected: tuple[str | None, ...]) -> None:
    assert values(read(line)) == [expected]


@pytest.mark.parametrize("line", ['1,"2,3', '1,"2"x,3', '"', '1,"2"\r,3'])
def test_unbalanced_quotes_are_refused_without_affecting_next_line(line: str) -> None:
    found = read(f'{line}\n4,"5",6\n')
    assert values(found) == [("4", "5", "6")]
    assert found.refused["line"].to_list() == [1]
    assert found.refused["reason"].str.contains("quotes").all()


def test_quoted_cell_may_be_long() -> None:
    assert values(read('1,"' + "x" * 200_000 + '",3')) == [("1", "x" * 200_000, "3")]


def test_quoted_cells_of_wrong_width_are_refused() -> None:
    found = read('"1","2","3"\n"1","2"\n1;"2,3"\n')
    assert values(found) == [("1", "2", "3")]
    assert found.refused["line"].to_list() == [2, 3]


def test_lines_that_are_not_utf8_are_refused_with_number() -> None:
    found = read(b"not \xff text\n1,2,3\n\xff\n1,\x00,3\n", first_line=2)
    assert found.rows["line"].to_list() == [3]
    assert found.refused.select("line", "reason").rows() == [
        (number, "The line is not UTF-8 text.") for number in (2, 4, 5)
    ]
    assert found.refused["raw"][1] == "\\xff"


@pytest.mark.parametrize("content", ["", "\n\n", "# a comment"])
def test_empty_content_yields_no_rows_with_all_columns(content: str) -> None:
    found = read(content)
    assert found.rows.columns == [*NAMES, "line", "raw"]
    assert found.rows.is_empty()
    assert found.refused.is_empty()


@pytest.mark.parametrize(
    ("line", "header"),
    [
        ("a,b", Header(("a", "b"), ",")),
        ("a; b ;c,d\r\n", Header(("a", "b", "c,d"), ";")),
        ("a\tb", Header(("a", "b"), "\t")),
        ('"a,x"|b', Header(("a,x", "b"), "|")),
        ("", Header((), ",")),
        ("a", Header(("a",), ",")),
    ],
)
def test_delimiter_is_inferred_from_header(line: str, header: Header) -> None:
    assert parse_header(line) == header


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_every_delimiter_works_with_and_without_quotes(delimiter: str) -> None:
    rows = [("1", "2"), ('"3"', "4"), ('"a', 'b"', "5")]
    lines = pl.DataFrame({"line": [1, 2, 3], "raw": [delimiter.join(row) for row in rows]})
    found = split_lines(lines, Header(("a", "b"), delimiter), {"second": "b", "first": "a"})
    assert found.rows.select("first", "second").rows() == [("1", "2"), ("3", "4"), (f"a{delimiter}b", "5")]


_TEXT = st.text(alphabet='ab1.é" ,;|\t\\', max_size=12).filter(str.strip)


@given(raw=st.lists(_TEXT, max_size=8), delimiter=st.sampled_from([*DELIMITERS, " "]), width=st.integers(1, 4))
@settings(max_examples=examples(100), deadline=None)
def test_splitting_matches_naive_implementation(raw: list[str], delimiter: str, width: int) -> None:
    lines = pl.DataFrame({"line": range(2, 2 + len(raw)), "raw": raw}, schema={"line": pl.Int64, "raw": pl.String})
    header = Header(tuple("abcd"[:width]), delimiter)
    columns = {name.upper(): name for name in reversed(header.names)}
    found, expected = (split(lines, header, columns) for split in (split_lines, naive.split_lines))
    assert found.rows.equals(expected.rows)
    assert found.refused.equals(expected.refused)


def test_ambiguous_column_is_refused() -> None:
    require_single(Header(("a", "x", "x"), ","), {"ours": "a", "other": "b"})
    with pytest.raises(InputRefused, match="names a more than once"):
        require_single(Header(("a", "a"), ","), {"ours": "a"})

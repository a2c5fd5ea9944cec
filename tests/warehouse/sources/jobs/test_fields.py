"""Test the separator and fields of lines of Slurm's commands."""

from __future__ import annotations

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.jobs.fields import Layout, find_failure


def lines(*texts: str) -> pl.DataFrame:
    return pl.DataFrame({"line": range(1, len(texts) + 1), "raw": texts})


@pytest.mark.parametrize(
    ("header", "fields", "separator", "is_closed"),
    [
        ("JobID|User|End\n", ("jobid", "user", "end"), "|", False),
        ("JobID|User|End|", ("jobid", "user", "end"), "|", True),
        ("JobID^|^User^|^End", ("jobid", "user", "end"), "^|^", False),
        (" JobID , User", ("jobid", "user"), ",", False),
        ("JobID\tUser\r\n", ("jobid", "user"), "\t", False),
        ("JobID:User", ("jobid", "user"), ":", False),
    ],
)
def test_separator_is_the_text_between_the_first_names(
    header: str, fields: tuple[str, ...], separator: str, is_closed: bool
) -> None:
    assert Layout.parse(header) == Layout(fields, separator, is_closed)


@pytest.mark.parametrize("line", ["", "JobID", "JobID User  End", "12|ann", "------- ----", "|JobID|User"])
def test_line_without_separated_names_is_no_header(line: str) -> None:
    assert Layout.parse(line) is None


def test_lines_are_split_or_refused_by_their_number_of_fields() -> None:
    split = Layout(("a", "b"), "|", is_closed=False).split(lines("1|2", "1|2|", "1", "|"))
    assert split.rows.rows() == [(1, "1|2", "1", "2"), (4, "|", "", "")]
    assert split.refused["reason"].to_list() == [
        "The line has 3 fields; the header has 2.",
        "The line has 1 fields; the header has 2.",
    ]
    closed = Layout(("a", "b"), "|", is_closed=True).split(lines("1|2", "1|2|", "1|2|3|"))
    assert closed.rows["field_1"].to_list() == ["2", "2"]


@pytest.mark.parametrize(
    ("fields", "separator", "expected"),
    [
        (("jobid", "user", "comment"), "|", True),
        (("jobid", "jobname", "comment"), "|", False),
        (("jobid", "comment", "user"), "|", False),
        (("jobid", "nodelist", "jobname"), "|", True),
        (("jobid", "nodelist", "jobname"), ",", False),
        (("jobid", "user", "nodelist"), ",", True),
    ],
)
def test_surplus_belongs_to_last_field_only_if_no_other_may_have_it(
    fields: tuple[str, ...], separator: str, expected: bool
) -> None:
    layout = Layout(fields, separator, is_closed=False)
    assert layout.has_free_end is expected
    (row,) = layout.split(lines(separator.join("wxyz"))).rows["field_2"].to_list() or [None]
    assert row == (f"y{separator}z" if expected else None)


def test_error_message_among_lines_is_quoted() -> None:
    with pytest.raises(InputRefused, match="incomplete: no database"):
        Layout(("a", "b")).split(lines("1|2", "sacct: error: no database."))
    assert find_failure(pl.Series(["1|2", "sacct: warning: x"])) is None

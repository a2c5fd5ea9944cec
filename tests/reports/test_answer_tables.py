"""Results of queries as HTML tables: text from inputs stays text, and a shortened table says so."""

from __future__ import annotations

from html.parser import HTMLParser

from iosig.reports.answer_tables import bytes_cell, bytes_range_cell, render_table


class Cells(HTMLParser):
    """Collect the tags and the texts of a table."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_names_from_inputs_are_text() -> None:
    cells = Cells(render_table("<b>", ("job",), [("<script>alert(1)</script>",), ("a\x1b[2Jb",)], 2))
    assert cells.texts == ["<b>", "job", "<script>alert(1)</script>", "a\ufffd[2Jb"]
    assert not {"script", "b"} & set(cells.tags)


def test_rows_that_are_left_out_are_counted() -> None:
    assert Cells(render_table("c", ("a",), [(1,)], 3)).texts[-1] == "and 2 more rows"
    assert Cells(render_table("c", ("a",), [(1234,), (None,)], 2)).texts == ["c", "a", "1,234", "-"]
    assert Cells(render_table("nothing", ("a",), [], 0)).texts == ["nothing"]


def test_bytes_have_a_unit_and_a_range() -> None:
    assert (bytes_cell(2.2489e12), bytes_cell(None)) == ("2.25 TB", None)
    assert bytes_range_cell(2e12, 1.5e12, 2.5e12) == "2 TB (1.5-2.5)"
    assert bytes_range_cell(2e12, 2e12, 2e12) == "2 TB"
    assert bytes_range_cell(None, None, None) is None

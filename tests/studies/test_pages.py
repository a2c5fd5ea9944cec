"""Tables and figures of a study's page."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from iosig.studies.pages import Figure, Table, percent, tabled, written


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(None, "-"), (0.0, "0 %"), (1.0, "100 %"), (0.1234, "12 %"), (0.0123, "1.2 %"), (0.000456, "0.046 %")],
)
def test_percent(ratio: float | None, shown: str) -> None:
    assert percent(ratio) == shown


def test_percent_with_decimals() -> None:
    assert (percent(0.1234, 1), percent(None, 1)) == ("12.3 %", "-")


def test_cells_are_formats_of_a_frames_rows() -> None:
    frame = pl.DataFrame({"name": ["a", "b"], "ratio": [0.1234, None], "count": [1234, 0]})
    found = Table.of(frame, ("who", "{name}"), ("both", "{count:,} of {ratio:%1}"), ("ratio", "{ratio:%}"))
    assert found.columns == ["who", "both", "ratio"]
    assert found.rows == [("a", "1,234 of 12.3 %", "12 %"), ("b", "0 of -", "-")]


def test_rows_of_a_function_become_its_table() -> None:
    @tabled("one", "two")
    def doubled(*values: int) -> list[tuple[str, str]]:
        return [(str(value), str(2 * value)) for value in values]

    assert doubled(1, 2) == Table(("one", "two"), [("1", "2"), ("2", "4")])


def test_a_page_has_its_blocks_with_figures_beside_it(tmp_path: Path) -> None:
    figure = Figure("A dot", "dot", lambda path: path.write_bytes(b"."))
    page = written(tmp_path / "new" / "some-study.md", ["# Title", Table(("a|b",), [("c",)]), figure])
    table = "| a\\|b |\n| --- |\n| c |"
    assert page.read_text() == f"# Title\n\n{table}\n\n![A dot](figures/some-study-dot.png)\n"
    assert (tmp_path / "new" / "figures" / "some-study-dot.png").read_bytes() == b"."

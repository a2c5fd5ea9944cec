"""References lead to one row of a page, or to one subject of the measures of a study."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iosig.studies.measured import read_row, read_tables

PAGE = """# Study

## First

| name | value |
| --- | --- |
| a | 1 |
| b \\| c | 2 |

### Second

| name | kind | right |
| --- | --- | --- |
| a | x | 98 % |
| a | y | 97 % |
"""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "some-study.md").write_text(PAGE, encoding="utf-8")
    (tmp_path / "measures").mkdir()
    content = {"command": "iosig study some", "measures": {"error": {"ratio": 0.25}}}
    (tmp_path / "measures" / "some.json").write_text(json.dumps(content), encoding="utf-8")
    return tmp_path


def test_tables_have_their_headings_and_cells(docs: Path) -> None:
    first, second = read_tables(docs / "some-study.md")
    assert (first.headings, second.headings) == (("Study", "First"), ("Study", "First", "Second"))
    assert first.rows == (("a", "1"), ("b | c", "2"))
    assert list(second.records())[1] == {"name": "a", "kind": "y", "right": "97 %"}


def test_references_lead_to_values(docs: Path) -> None:
    assert read_row(docs, "some/error") == {"ratio": 0.25}
    assert read_row(docs, "some-study.md#a | y")["right"] == "97 %"
    assert read_row(docs, "some-study.md#a @ value") == {"name": "a", "value": "1"}


@pytest.mark.parametrize("reference", ["some/none", "some-study.md#a", "some-study.md#z", "some-study.md#a @ right"])
def test_reference_to_nothing_or_to_several_rows_is_refused(docs: Path, reference: str) -> None:
    with pytest.raises(LookupError, match="some"):
        read_row(docs, reference)

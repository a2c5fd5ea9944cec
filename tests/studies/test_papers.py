"""The page that compares the papers: it is current, complete, and each number is in the file of its source."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from iosig.studies import papers
from iosig.studies.measured import read_tables
from iosig.studies.papers import DOCS, PAGE, compare, parse_number, write

ROWS: list[tuple[str, dict[str, Any]]] = [
    (paper["key"], row)
    for paper in tomllib.loads(Path(papers.__file__).with_name("papers.toml").read_text(encoding="utf-8"))["paper"]
    for row in paper["row"]
]
#: figures and tables with a result, by paper; the notes of the page name the others
RESULTS = {
    "IOSI": ({1, 2, 4, *range(7, 10), *range(11, 21)}, set()),
    "FTIO": ({2, 3, 4, *range(6, 18)}, set()),
    "Networks": ({2, *range(4, 16)}, set()),
    "ScalaIOExtrap": ({2, 3, 4, 5, 6}, {1}),
    "PEARC'18": (set(range(1, 10)), {1, 2}),
}
_NUMBER = re.compile(r"(?<![\w.])-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?: %)?")


def list_page_rows() -> list[dict[str, str]]:
    """Return the rows of the page's comparisons."""
    return [record for table in read_tables(PAGE) if "verdict" in table.header for record in table.records()]


def find_numbers(words: str, kind: str) -> set[int]:
    """Return the numbers of the figures (`Figure`) or tables named in a place: `Figures 9 to 11` names three."""
    numbers: set[int] = set()
    for group in re.findall(rf"{kind}s? ((?:\d+(?:\([a-c]\))?(?:, | and | to )?)+)", words):
        plain = re.sub(r"\([a-c]\)", "", group)
        for part in re.split(r", | and ", plain.strip(", ")):
            ends = [int(number) for number in part.split(" to ") if number.strip()]
            numbers |= set(range(ends[0], ends[-1] + 1)) if ends else set()
    return numbers


def test_page_is_current(tmp_path: Path) -> None:
    text = write(tmp_path).read_text(encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "docs/papers.md is stale: run `python -m iosig.studies.papers`"


def test_page_has_a_row_for_each_statement() -> None:
    assert [row["place"] for row in list_page_rows()] == [row["place"] for _, row in ROWS]


@pytest.mark.parametrize("paper", list(RESULTS))
def test_every_figure_and_table_with_a_result_has_a_row(paper: str) -> None:
    places = " ; ".join(row["place"] for key, row in ROWS if key == paper)
    figures, tables = RESULTS[paper]
    assert find_numbers(places, "Figure") >= figures
    assert find_numbers(places, "Table") >= tables


def test_every_number_of_ours_is_in_the_file_of_its_source() -> None:
    """Read the linked file without the code of the page, and find each shown number in the row or subject named."""
    traced = 0
    for shown, (_, row) in zip(list_page_rows(), ROWS, strict=True):
        if "source" not in row:
            assert (shown["ours"], shown["source"], shown["verdict"]) == ("", "", "not comparable")
            continue
        (link,) = re.findall(r"\]\(([^)]+)\)", shown["source"])
        text = (DOCS / link).read_text(encoding="utf-8")
        for number in _NUMBER.findall(shown["ours"]):
            if link.endswith(".json"):
                subject = row["source"].partition("/")[2]
                assert is_rounded_from(number, json.loads(text)["measures"][subject].values()), (shown, number)
            else:
                cells = row["source"].partition("#")[2].partition(" @ ")[0]
                lines = [line for line in text.splitlines() if line.startswith(f"| {cells} |")]
                assert any(number in line for line in lines), (shown, number)
            traced += 1
    assert traced > 50


def is_rounded_from(shown: str, values: Any) -> bool:
    """Whether a number, as shown, is one of the values, rounded to the digits that are shown."""
    number, percent = shown.removesuffix(" %").replace(",", ""), shown.endswith("%")
    half_digit = 0.501 * 10.0 ** -len(number.partition(".")[2])
    # the paper's S3D has eight bursts
    numbers = [*values, 8]
    return any(abs((100 * value if percent else value) - float(number)) <= half_digit for value in numbers)


def test_numbers_of_ours_are_not_typed() -> None:
    """Formats of our numbers have no digits outside of their fields, except the number of bursts in S3D."""
    for _, row in ROWS:
        outside = re.sub(r"\{[^}]*\}", "", row.get("ours", ""))
        assert set(re.findall(r"\d+", outside)) <= {"8"}, row["ours"]


# ---- verdicts

ROW = {"place": "Figure 1", "subject": "", "paper": "2", "reason": "", "source": "some/it", "ours": "{low:.1f}"}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "measures").mkdir()
    content = {"command": "", "measures": {"it": {"low": 2.04, "high": 3.0, "name": "yes", "none": None}}}
    (tmp_path / "measures" / "some.json").write_text(json.dumps(content), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("bounds", "verdict"),
    [
        ({"low": [2.0, 2.1]}, "same"),
        ({"low": [2.1, 3.0]}, "different"),
        ({"low": [2.0, 2.1], "high": [3.1, 4.0]}, "different"),
        ({"low": 2.0}, "same"),
        ({"high": 2.0}, "different"),
        ({"name": "yes"}, "same"),
        ({"name": "no"}, "different"),
        ({"none": [0, 1]}, "different"),
        ({}, "not comparable"),
    ],
)
def test_verdict_follows_from_the_bounds(docs: Path, bounds: dict[str, Any], verdict: str) -> None:
    comparison = compare(ROW | {"bounds": bounds}, docs)
    assert (comparison.verdict, comparison.ours) == (verdict, "2.0")
    assert comparison.source == "[some](measures/some.json) `it`"


def test_commands_of_the_measures_are_listed() -> None:
    (commands,) = [table for table in read_tables(PAGE) if table.header == ("measures", "command")]
    files = sorted(path.name for path in (DOCS / "measures").iterdir())
    assert [row[0].partition("]")[0].lstrip("[") for row in commands.rows] == files
    assert all(row[1].startswith("`iosig study ") for row in commands.rows)


def test_statement_without_a_source_has_no_number_of_ours(docs: Path) -> None:
    comparison = compare({"place": "Figure 2", "subject": "", "paper": "", "reason": "no data"}, docs)
    assert (comparison.ours, comparison.source, comparison.verdict) == ("", "", "not comparable")


def test_first_number_of_a_cell_counts() -> None:
    assert [parse_number(text) for text in ("8.23 s (8 to 9)", "1,024 of 2", "-11 %", ".85")] == [8.23, 1024, -11, 0.85]
    with pytest.raises(ValueError, match="no number"):
        parse_number("none")

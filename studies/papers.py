"""Compare the evaluations of the papers with the measures of the studies: `python -m iosig.studies.papers`.

`papers.toml` has each paper's tables, figures and numbers, and where our number is. The page is `docs/papers.md`. The
command also fills the tables of `docs/methods.md` (`choices`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from iosig.studies.choices import fill_blocks
from iosig.studies.measured import Value, get_path, read_command, read_row
from iosig.studies.pages import Template, format_cell, write_page
from iosig.studies.study import MEASURES_FOLDER

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "papers.md"
#: page with tables from the pages of the studies
METHODS = DOCS / "methods.md"
_DATA = Path(__file__).with_name("papers.toml")
_TEMPLATE = Path(__file__).with_name("papers.md")
_MARK = "<!-- Made by `python -m iosig.studies.papers`: edit `studies/papers.toml`, not this page. -->"
#: largest relative difference of numbers that count as the same
TOLERANCE_RATIO = 0.05
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?|-?\.\d+")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A statement of a paper next to ours.

    place: figure, table or section. subject: the quantity. stated: the paper's number. ours: our number, empty if there
    is none. verdict: `same`, `different` or `not comparable`. source: where our number is, as a link. reason: why they
    agree, differ or cannot be compared.
    """

    place: str
    subject: str
    stated: str
    ours: str
    verdict: str
    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper with its comparisons, in the order of its figures."""

    key: str
    title: str
    note: str
    comparisons: tuple[Comparison, ...]

    @property
    def rows(self) -> list[dict[str, str]]:
        """The comparisons as rows of a table."""
        return [asdict(comparison) for comparison in self.comparisons]


def read_papers(docs: Path = DOCS) -> list[Paper]:
    """Read the papers' statements, and compare each with our number."""
    data = tomllib.loads(_DATA.read_text(encoding="utf-8"))
    return [
        Paper(paper["key"], paper["title"], paper["note"], tuple(compare(row, docs) for row in paper["row"]))
        for paper in data["paper"]
    ]


def compare(row: Mapping[str, Any], docs: Path = DOCS) -> Comparison:
    """Compare one statement: it is the same if each of our numbers is within the paper's bounds.

    row: `place`, `subject`, `paper`, `reason`; with our number also `source`, a reference of `measured`, and `ours`, a
    format of its values; `bounds`: by name, what agrees with the paper: the lowest and highest number, a number up to a
    tolerance, or a text. Without bounds, the statement is not comparable.
    """
    values = read_row(docs, row["source"]) if "source" in row else {}
    bounds: Mapping[str, Any] = row.get("bounds", {})
    verdict = "not comparable"
    if bounds:
        verdict = "same" if all(_is_within(values[name], limit) for name, limit in bounds.items()) else "different"
    return Comparison(
        row["place"],
        row["subject"],
        row["paper"],
        format_cell(row["ours"], values) if "ours" in row else "",
        verdict,
        _format_link(docs, row["source"]) if "source" in row else "",
        row["reason"],
    )


def _is_within(value: Value, limit: Any) -> bool:
    """Compare a number, or the first number of a cell, with two limits or with one number; or a text with a text."""
    if isinstance(limit, str) or value is None:
        return bool(value == limit)
    if isinstance(limit, int | float):
        return abs(parse_number(value) / limit - 1.0) <= TOLERANCE_RATIO
    low, high = limit
    return bool(low <= parse_number(value) <= high)


def parse_number(value: float | str) -> float:
    """Return a number, or the first number in a text."""
    if not isinstance(value, str):
        return float(value)
    match = _NUMBER.search(value)
    if match is None:
        raise ValueError(f"There is no number in {value!r}.")
    return float(match.group().replace(",", ""))


def _format_link(docs: Path, reference: str) -> str:
    path = get_path(docs, reference)
    link = f"[{path.stem.removesuffix('-study')}]({path.relative_to(docs).as_posix()})"
    return link if "#" in reference else f"{link} `{reference.partition('/')[2]}`"


def list_commands(docs: Path) -> list[dict[str, str]]:
    """List the files of measures with the commands that wrote them."""
    return [
        {"file": f"[{path.name}]({path.relative_to(docs).as_posix()})", "command": f"`{read_command(path)}`"}
        for path in sorted((docs / MEASURES_FOLDER).glob("*.json"))
    ]


def count_verdicts(papers: list[Paper]) -> Iterator[dict[str, object]]:
    """Count the verdicts of each paper."""
    for paper in papers:
        verdicts = [comparison.verdict for comparison in paper.comparisons]
        names = {"same": "same", "different": "different", "not_comparable": "not comparable"}
        yield {"title": paper.title} | {key: verdicts.count(verdict) for key, verdict in names.items()}


def write(folder: Path = DOCS, docs: Path = DOCS) -> Path:
    """Write the page into a folder, from the measures and pages in `docs`, and return its path."""
    papers = read_papers(docs)
    values = {
        "papers": papers,
        "counts": list(count_verdicts(papers)),
        "commands": list_commands(docs),
        "TOLERANCE_RATIO": TOLERANCE_RATIO,
    }
    return write_page(folder / PAGE.name, Template(_TEMPLATE, {}), values, _MARK)


if __name__ == "__main__":
    write()
    METHODS.write_text(fill_blocks(METHODS.read_text(encoding="utf-8"), DOCS), encoding="utf-8")

"""Tables of the page of methods are those of the pages of the studies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iosig.studies.choices import compare_alarms, compare_classes, compare_periods, compare_signatures, fill_blocks
from iosig.studies.papers import DOCS, METHODS

SIGNATURES = """# Study

## Accuracy

| level | method | ior_a | ior_b | ior_c | s3d | flash |
| --- | --- | --- | --- | --- | --- | --- |
{levels}

## Many sites

| family | runs drift by | others cost |
| --- | --- | --- |
| resting | scale, 0.3 % | seeks |

| family | level | method | ior_a | ior_b | ior_c | s3d | flash |
| --- | --- | --- | --- | --- | --- | --- | --- |
{families}
"""


def make_rows(start: str, cell: str, **correlations: float) -> str:
    """Return rows of methods at each level, with the same correlation of all programs."""
    return "\n".join(
        f"| {start}{level} | {method} | " + " | ".join([cell.format(number)] * 5) + " |"
        for level in ("calm", "busy", "stormy")
        for method, number in correlations.items()
    )


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    levels = make_rows("", ".99 ± .01, {:.2f} ± .02", chosen=0.55, robust=0.8, mean=0.6)
    families = make_rows("resting | ", ".99/{:.2f}", chosen=0.9, elastic=0.95, robust=0.7, quantile=0.8)
    text = SIGNATURES.format(levels=levels, families=families)
    (tmp_path / "signatures-study.md").write_text(text, encoding="utf-8")
    return tmp_path


def test_default_is_compared_with_the_best_other_method(docs: Path) -> None:
    resting, evaluation = compare_signatures(docs).rows
    assert resting == (
        *("resting", "0.3 %", ".90, .90, .90"),
        *("quantile .80, quantile .80, quantile .80", "+.10, +.10, +.10", "none"),
    )
    names = "ior_a, ior_b, ior_c, s3d, flash"
    assert evaluation[2:5] == (".55, .55, .55", "robust .80, robust .80, robust .80", "-.25, -.25, -.25")
    assert evaluation[5] == f"calm: {names}; busy: {names}; stormy: {names}"


def test_page_of_methods_has_the_tables_of_the_studies() -> None:
    text = METHODS.read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- measured: (\w+) -->", text)) == {"signatures", "alarms", "periods", "classes"}
    assert fill_blocks(text, DOCS) == text, "docs/methods.md is stale: run `python -m iosig.studies.papers`"


def test_stale_table_is_replaced() -> None:
    text = "a\n<!-- measured: classes -->\nold\n<!-- end -->\nb\n"
    assert fill_blocks(text, DOCS) == (
        f"a\n<!-- measured: classes -->\n\n{compare_classes(DOCS).markdown}\n\n<!-- end -->\nb\n"
    )


def test_real_pages_have_the_tables() -> None:
    assert len(compare_signatures(DOCS).rows) > 10
    assert {row[0] for row in compare_alarms(DOCS).rows} >= {"null_tested", "dft", "autoperiod"}
    assert all(float(row[1].rstrip(" %")) < 95 for row in compare_periods(DOCS).rows)
    assert [row[:2] for row in compare_classes(DOCS).rows] == [
        (level, direction) for level in ("calm", "busy", "stormy") for direction in ("read", "write")
    ]


def test_page_without_the_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "population-study.md").write_text("# Empty\n", encoding="utf-8")
    with pytest.raises(LookupError, match="no table"):
        compare_classes(tmp_path)


def test_accuracy_of_iosi_in_the_text_is_that_of_its_study() -> None:
    """The text names the cross-correlations of two methods at three levels."""
    text = METHODS.read_text(encoding="utf-8")
    study = (DOCS / "signatures-study.md").read_text(encoding="utf-8")
    published = re.search(r"`iosi` with the truth is (\.\d+) \(calm\), (\.\d+) \(busy\) and (\.\d+) \(stormy\)", text)
    filtered = re.search(r"That of `iosi_filtered` is (\.\d+), (\.\d+) and (\.\d+)", text)
    assert published
    assert filtered
    (row,) = re.findall(r"\| iosi_filtered \| (\.\d+)/.*?\| (\.\d+)/.*?\| (\.\d+)/.*?\|\n", study)[:1]
    assert filtered.groups() == row
    for number in published.groups():
        assert re.search(rf"(?<!\d){re.escape(number)}/", study)

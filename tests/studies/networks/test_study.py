"""The study of networks: answers compared with planted patterns, and the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from iosig.studies.networks import STUDY
from iosig.studies.networks.running import SKEW_SETTINGS, Results, StudyParams, study
from iosig.transforms.networks.patterns import OUTCOMES, PATTERNS
from tests.study_pages import page_of


@pytest.fixture(scope="module")
def results() -> Results:
    """Two systems of each pattern, and two sets of clocks of each setting."""
    return study(StudyParams(2, 7))


def test_results_have_a_row_per_planted_system_and_clock(results: Results) -> None:
    assert results.answers["planted"].to_list() == [pattern for pattern in PATTERNS for _ in range(2)]
    assert set(results.answers["matched"]) <= {*PATTERNS, *OUTCOMES}
    assert results.clocks.select("rank_count", "file_count", "jitter_s").rows() == list(SKEW_SETTINGS)


def test_clock_error_is_below_a_tenth_of_the_range(results: Results) -> None:
    assert results.clocks["error_ratio"].max() < 0.1  # type: ignore[operator]


def test_results_are_determined_by_the_seed(results: Results) -> None:
    again = study(StudyParams(2, 7))
    assert again.answers.equals(results.answers)
    assert again.clocks.equals(results.clocks)


def test_tables_count_every_answer(results: Results) -> None:
    answers = pl.DataFrame(
        {
            "planted": ["circular", "striped", "noisy", "noisy", "outlier"],
            "matched": ["circular", "noisy", "noisy", "no_match", "outlier"],
            "rank_count": [16, 64, 2000, 500, 40],
            "told_count": 0,
            "right_count": 0,
        }
    )
    confusion, sizes, _ = (table.rows for _, table in STUDY.tables(replace(results, answers=answers)))
    assert confusion == [
        ("circular", "1", "0", "0", "0", "0", "100 %"),
        ("striped", "0", "0", "1", "0", "0", "0 %"),
        ("noisy", "0", "0", "1", "0", "1", "50 %"),
        ("outlier", "0", "0", "0", "1", "0", "100 %"),
    ]
    assert sizes == [
        ("circular", "1 of 1", "-", "-", "-"),
        ("striped", "-", "0 of 1", "-", "-"),
        ("noisy", "-", "-", "0 of 1", "1 of 1"),
        ("outlier", "-", "1 of 1", "-", "-"),
    ]


def test_page_has_its_tables_and_figure(results: Results, tmp_path: Path) -> None:
    text = page_of(STUDY, results.params, results, tmp_path)
    assert text.startswith("<!-- Made by `iosig study networks --seeds 2 --seed 7 --output DIR`")
    assert text.count("| planted |") == 2
    (figure,) = (tmp_path / "figures").iterdir()
    assert figure.stat().st_size > 10_000

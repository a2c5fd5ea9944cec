"""The case studies: planted causes are measured, and the page lists what agrees with the paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import iosig.studies.cases.running
from iosig.studies.cases import STUDY
from iosig.studies.cases.page import list_claims
from iosig.studies.cases.planted import AGGREGATION, CASES, plant_chombo_large, plant_chombo_small
from iosig.studies.cases.running import Results, StudyParams, study
from tests.study_pages import page_of


@pytest.fixture(scope="module")
def results() -> Results:
    return study(StudyParams(3))


def test_shapes_are_those_of_the_paper(results: Results) -> None:
    assert results.runs.select("case", "rank_count").rows() == [
        ("chombo-r222", 1024),
        ("chombo-r444", 1024),
        ("flash-pnetcdf", 4096),
        ("flash-hdf5", 2048),
    ]
    layers = [[layer.node_count for layer in results.networks[case.name].layers] for case in CASES]
    assert layers == [[1024, 4, 2], [1024, 4, 2], [4096, 16, 4], [2048, 8, 2]]


def test_only_the_larger_chombo_run_has_a_huge_request(results: Results) -> None:
    ranks = dict(results.runs.select("case", "outlier_rank").rows())
    assert ranks["chombo-r444"] == 0
    assert ranks["chombo-r222"] is None
    small, large = (plant(np.random.default_rng(1)) for plant in (plant_chombo_small, plant_chombo_large))
    assert (small.huge_bytes, large.huge_bytes) == (0.0, float(1 << 30))
    assert small.is_cause.sum() == 1024 // AGGREGATION


def test_all_statements_of_the_paper_hold_on_planted_runs(results: Results) -> None:
    runs = {row["case"]: row for row in results.runs.iter_rows(named=True)}
    assert [claim["agrees"] for claim in list_claims(runs)] == ["yes"] * 6
    wrong = runs | {"flash-hdf5": runs["flash-hdf5"] | {"pattern": "circular"}}
    assert [claim["agrees"] for claim in list_claims(wrong)].count("**no**") == 1


@pytest.mark.slow
def test_page_has_its_tables_and_figures(results: Results, tmp_path: Path) -> None:
    text = page_of(STUDY, StudyParams(3), results, tmp_path)
    assert text.count("figures/") == 2
    assert "**no**" not in text


def test_same_seed_gives_the_same_results(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iosig.studies.cases.running, "CASES", CASES[:1])
    again = study(StudyParams(3))
    assert again.runs.equals(results.runs.head(1).cast(dict(again.runs.schema)))
    assert again.networks["chombo-r222"].counts.equals(results.networks["chombo-r222"].counts)

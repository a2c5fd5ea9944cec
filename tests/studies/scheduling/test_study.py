"""The study of scheduling: FTIO's Figure 17 by simulation, and its page."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from iosig.studies.command import study_command
from iosig.studies.scheduling import STUDY, running
from iosig.studies.scheduling.running import POLICIES, WORKLOADS, Results, StudyParams, study, summary
from tests.study_pages import page_of


@pytest.fixture(scope="module")
def results() -> Results:
    """Two draws of each workload, with few jobs in the mixed workload."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "MIXED_JOBS", 6)
        return study(StudyParams(2, 3, 1))


@pytest.mark.slow
def test_results_have_a_row_per_run(results: Results) -> None:
    assert results.runs.height == 2 * len(POLICIES) * len(WORKLOADS)
    assert results.runs.select(pl.col("stretch", "io_slowdown").min()).row(0) >= (1.0, 1.0)
    assert results.runs["utilization"].is_between(0, 1).all()


@pytest.mark.slow
def test_predicted_periods_are_nearly_as_good_as_clairvoyant_periods(results: Results) -> None:
    found = summary(results).filter(pl.col("workload") == "figure 17").rows_by_key("policy", named=True, unique=True)
    assert found["predicted"]["stretch_over_clairvoyant"] <= 1.05
    assert found["predicted"]["io_slowdown_over_original"] <= 0.6
    assert found["predicted"]["io_slowdown"] < found["error"]["io_slowdown"] < found["original"]["io_slowdown"]


@pytest.mark.slow
def test_page_lists_every_policy_and_its_figure(results: Results, tmp_path: Path) -> None:
    text = page_of(STUDY, results.params, results, tmp_path)
    assert all(f"| figure 17 | {policy} |" in text for policy in POLICIES)
    assert text.count("](figures/") == 1


def test_command_prints_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MIXED_JOBS", 3)
    told = CliRunner().invoke(study_command, ["scheduling", "--seeds", "1", "--workers", "1", "--json"])
    assert told.exit_code == 0, told.output
    assert len(json.loads(told.stdout)["results"]) == len(POLICIES) * len(WORKLOADS)

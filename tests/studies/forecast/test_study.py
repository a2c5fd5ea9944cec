"""The study of forecasts: observations at an instant, evaluation of ranges, and the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from iosig.studies import sites
from iosig.studies.forecast import STUDY, history, running
from iosig.studies.forecast.history import History, build_history, observe_at
from iosig.studies.forecast.running import Results, StudyParams, study, summarize_steps
from iosig.studies.forecast.ways import WAYS
from tests.study_pages import page_of

DAY_S = 86_400.0


@pytest.fixture(scope="module")
def site() -> History:
    """A site of half a day, with a quarter held out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "PAST_DAYS", 0.25)
        patch.setattr(history, "HELD_OUT_DAYS", 0.25)
        return build_history("coarse", "calm", 3)


@pytest.mark.slow
def test_observation_contains_no_later_data(site: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "PAST_DAYS", 0.25)
    monkeypatch.setattr(history, "HORIZON", 6)
    at_s = 0.3 * DAY_S
    known = observe_at(site, at_s)
    steps = int(at_s / site.interval_s)
    measured = known.whole_past.unattributed_bytes_per_s
    assert len(measured) == int(at_s / history.STEP_S)
    assert np.nansum(measured) * history.STEP_S == pytest.approx(site.total_bytes[:steps].sum(), rel=0.02)
    logged = site.seen["write"].logged
    assert len(known.coming) <= ((site.submitted_s <= at_s) & (logged.end_s > at_s)).sum()
    # Later traffic does not change the observation.
    later = {
        direction: replace(
            one, traffic_bytes=np.where(np.arange(len(one.traffic_bytes)) < steps, one.traffic_bytes, 9e9)
        )
        for direction, one in site.seen.items()
    }
    other = observe_at(replace(site, seen=later), at_s)
    np.testing.assert_array_equal(other.past.unattributed_bytes_per_s, known.past.unattributed_bytes_per_s)
    np.testing.assert_array_equal(other.coming.elapsed_s, known.coming.elapsed_s)


def test_coverage_and_score_of_ranges_follow_from_observed_rates() -> None:
    steps = pl.DataFrame(
        {"way": "x", "expected": 10.0, "low": [5.0] * 4, "high": [15.0] * 4, "came": [4.0, 5.0, 15.0, 16.0]}
    )
    found = summarize_steps(steps, "way").row(0, named=True)
    assert (found["held"], found["below"], found["above"], found["count"]) == (0.5, 0.25, 0.25, 4)
    assert found["width"] == pytest.approx(1.0)
    assert found["error"] == pytest.approx(0.55)
    assert found["score"] == pytest.approx((10 + 10 * 0.5) / 10)


@pytest.fixture(scope="module")
def results() -> Results:
    """A small site."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (history, running):
            patch.setattr(module, "PAST_DAYS", 0.5)
            patch.setattr(module, "HELD_OUT_DAYS", 0.25)
            patch.setattr(module, "HORIZON", 6)
        patch.setattr(running, "FAMILIES", {"coarse": sites.FAMILIES["coarse"]})
        patch.setattr(running, "LEVELS", ("calm",))
        return study(StudyParams(1, 5, 1))


@pytest.mark.slow
def test_every_method_forecasts_every_step(results: Results) -> None:
    counts = results.steps.group_by("way").len()
    assert set(counts["way"]) == set(WAYS)
    assert counts["len"].n_unique() == 1
    assert (results.steps["low"] <= results.steps["high"]).all()
    assert 0.4 < summarize_steps(results.steps, "way").filter(way="forecast")["held"].item() <= 1.0


@pytest.mark.slow
def test_page_contains_all_results(results: Results, tmp_path: Path) -> None:
    text = page_of(STUDY, results.params, results, tmp_path)
    assert "iosig study forecast --seeds 1 --seed 5" in text
    assert all(f"| {way} |" in text for way in WAYS)
    assert [title for title, _ in STUDY.tables(results)] == ["Coverage of the range", "By hour", "By family"]
    assert len(json.loads(json.dumps(STUDY.document(results)))["sites"]) == len(WAYS)

"""The study of populations: classes and periods by method, their summaries, and the page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from iosig.studies.population import STUDY, page, running
from iosig.studies.population.running import Results, StudyParams, study
from iosig.studies.population.ways import classify_attribution, classify_traffic, compute_truth, infer_from_signature
from iosig.studies.sites import LoggedJobs, SiteSignatures, SiteTraffic, Transfers
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.signature import Signature
from tests.study_pages import page_of

STEP_S = 10.0


def signature() -> Signature:
    """Return a signature of forty minutes with its bytes near the start."""
    rates = np.zeros(2400)
    rates[60:120] = 1e9
    one = np.array([6e10])
    return Signature.from_curve(rates, Bursts(np.array([60.0]), np.array([90.0]), np.array([120.0]), one, np.ones(1)))


def seen() -> tuple[SiteTraffic, Transfers]:
    """Return two jobs, which write early as in a signature and late, respectively, with background traffic."""
    moved = Transfers(np.array([0, 1]), np.array([60.0, 2100.0]), np.array([120.0, 2160.0]), np.array([6e10, 6e10]))
    steps = np.zeros(360)
    steps[6:12] = 1e10
    steps[210:216] = 1e10
    # An unlogged job.
    steps[130:136] = 5e10
    logged = LoggedJobs(np.array([0, 1]), np.ones(2), np.zeros(2), np.array([2400.0, 2400.0]), np.ones(2, bool))
    by_minute = moved.sum_in_steps(np.zeros(2, np.int64), np.full(2, 60), 60.0).reshape(2, -1)
    return SiteTraffic(steps, STEP_S, logged, by_minute), moved


def test_each_method_uses_only_its_evidence() -> None:
    site, moved = seen()
    known = SiteSignatures((signature(), None), np.array([0.9, 0.0]))
    assert compute_truth(site, moved).rows["label"].to_list() == ["START", "END"]
    assert classify_traffic(site, known).rows["label"].to_list() == ["HILL", "HILL"], "most of it is somebody's"
    for way in (infer_from_signature, classify_attribution):
        assert way(site, known).rows.select("job", "label").rows() == [(0, "START")], "of the other nothing is known"


def test_transfers_are_summed_in_the_steps_of_their_jobs() -> None:
    moved = Transfers(np.array([0, 1, 1]), np.array([5.0, 12.0, 30.0]), np.array([15.0, 14.0, 40.0]), np.ones(3))
    found = moved.sum_in_steps(np.array([0, 1]), np.array([2, 3]), 10.0)
    np.testing.assert_allclose(found, [0.5, 0.5, 1.0, 0.0, 1.0])


def results_of(*rows: tuple[str, str, str, float | None, float | None, bool]) -> Results:
    """Return results of a site: way, label, true_label, period_s, true_period_s, has_signature."""
    names = ("way", "label", "true_label", "period_s", "true_period_s", "has_signature")
    runs = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        family=pl.lit("usual"), level=pl.lit("calm"), seed=0, direction=pl.lit("write"), moved_bytes=1.0
    )
    return Results(StudyParams(1), runs)


def test_classes_and_periods_are_counted_by_method() -> None:
    results = results_of(
        ("traffic", "HILL", "START", 20.0, None, True),
        ("traffic", "START", "START", 20.0, 21.0, False),
        ("traffic", "END", "END", None, 50.0, True),
        ("signature", "START", "START", None, None, True),
        ("signature", "END", "END", 80.0, 50.0, True),
    )
    traffic, ours = page.summarize_classes(results, "level").rows(named=True)
    assert (traffic["run_count"], traffic["signed_count"], ours["signed_count"]) == (3, 2, 2)
    assert (traffic["right"], traffic["signed_right"], ours["right"]) == (pytest.approx(2 / 3), 0.5, 1.0)
    assert (traffic["off"], ours["off"]) == (pytest.approx(1 / 3), 0.0)
    traffic, ours = page.summarize_periods(results, "level").rows(named=True)
    assert [traffic[name] for name in ("said", "periodic", "of_said", "of_periodic")] == pytest.approx(
        [2 / 3, 2 / 3, 0.5, 0.5]
    )
    assert [ours[name] for name in ("said", "of_said")] == [0.5, 0.0]
    truth_first = page.compute_class_shares(results)
    assert truth_first["way"].unique(maintain_order=True).to_list() == ["truth", "traffic", "signature"]


@pytest.mark.slow
def test_signatures_classify_better_than_traffic(undrawn: None, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "FAMILIES", ("usual",))
        patch.setattr(running, "LEVELS", ("busy",))
        results = study(StudyParams(1, 60, 1))
    found = {row["way"]: row for row in page.summarize_classes(results, "level").iter_rows(named=True)}
    assert found["signature"]["signed_right"] > found["traffic"]["signed_right"] + 0.2
    assert found["signature"]["off"] < found["traffic"]["off"]
    text = page_of(STUDY, results.params, results, tmp_path)
    assert "iosig study population --seeds 1 --seed 60" in text
    assert json.loads(json.dumps(STUDY.document(results)))["classes"]

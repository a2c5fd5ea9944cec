"""The study of attribution: simulated sites, attribution methods, comparison with the truth, and the page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from iosig.studies import sites
from iosig.studies.attribution import STUDY, page, running
from iosig.studies.attribution.running import Results, StudyParams, compare_with_truth, study
from iosig.studies.attribution.ways import (
    WAYS,
    attribute_traffic,
    place_as_planned,
    select_known_jobs,
    share_by_nodes,
    share_equally,
    share_residual,
)
from iosig.studies.sites import LoggedJobs, SiteSignatures, SiteTraffic, draw_site, extract_site_signatures
from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.signature import Signature
from tests.study_pages import page_of

STEP_S = 10.0
MINUTES = 60


def signature(begun_s: float, volume: float) -> Signature:
    """Return a signature of one burst of a minute, in a run of twenty minutes."""
    one = np.array([volume])
    bursts = Bursts(np.array([begun_s]), np.array([begun_s + 30]), np.array([begun_s + 60]), one, np.ones(1))
    rates = np.zeros(1200)
    rates[int(begun_s) : int(begun_s) + 60] = volume / 60
    return Signature.from_curve(rates, bursts)


def seen(truth: dict[tuple[int, int], float], traffic: Reals | None = None) -> SiteTraffic:
    """Return three jobs of two applications with transfers in some minutes."""
    moved = np.zeros((3, MINUTES))
    for place, volume in truth.items():
        moved[place] = volume
    known = np.repeat(moved.sum(axis=0) / 6, 6) if traffic is None else traffic
    logged = LoggedJobs(
        np.array([0, 0, 1]),
        np.array([1.0, 1.0, 6.0]),
        np.array([0.0, 1500.0, 0.0]),
        np.array([1200.0, 2700.0, 3600.0]),
        np.ones(3, bool),
    )
    return SiteTraffic(known, STEP_S, logged, moved)


KNOWN = SiteSignatures((signature(300, 6e11), None), np.array([0.9, 0.0]))
TRUE = {(0, 5): 6e11, (1, 31): 6e11, (2, 10): 2e11, (2, 50): 4e11}


# ---- methods


def test_attribution_finds_delayed_bursts_and_leaves_unknown_bytes() -> None:
    site = seen(TRUE)
    given = attribute_traffic(site, KNOWN)
    np.testing.assert_allclose(given[:2], site.truth_bytes[:2], atol=1e6)
    assert not given[2].any(), "nothing is known of it"
    assert not attribute_traffic(site, KNOWN, 1.0).any(), "nobody is so certain"
    assert select_known_jobs(site.logged, KNOWN).tolist() == [True, True, False]


def test_residual_is_shared_among_jobs_without_signature() -> None:
    site = seen(TRUE)
    np.testing.assert_allclose(share_residual(site, KNOWN), site.truth_bytes, atol=1e6)


def test_planned_bytes_are_independent_of_the_traffic() -> None:
    given = place_as_planned(seen({}), KNOWN)
    assert {place: given[place] for place in zip(*np.nonzero(given), strict=True)} == {(0, 5): 6e11, (1, 30): 6e11}


def test_shares_go_to_active_jobs_in_proportion_to_their_time() -> None:
    site = seen(TRUE)
    equal, nodes = share_equally(site, KNOWN), share_by_nodes(site, KNOWN)
    for given in (equal, nodes):
        np.testing.assert_allclose(given.sum(axis=0), site.minutes_bytes)
    assert equal[:, 5] == pytest.approx([3e11, 0, 3e11])
    assert nodes[:, 5] == pytest.approx([6e11 / 7, 0, 36e11 / 7])
    assert equal[:, 50] == pytest.approx([0, 0, 4e11])


# ---- the truth


def test_comparison_counts_correct_and_attributed_bytes() -> None:
    site = seen(TRUE)
    is_known = np.array([True, True, False])
    perfect = compare_with_truth(site, site.truth_bytes, is_known)
    assert perfect["known_right_bytes"] == perfect["known_given_bytes"] == perfect["known_bytes"] == 12e11
    assert (perfect["other_right_bytes"], perfect["job_bytes"], perfect["measured_bytes"]) == (6e11, 18e11, 18e11)
    assert (perfect["hits"], perfect["asked"], perfect["known_hits"], perfect["known_asked"]) == (4, 4, 2, 2)
    given = np.zeros_like(site.truth_bytes)
    given[0, 5], given[2, 5], given[1, 6] = 4e11, 5e11, 1e11
    wrong = compare_with_truth(site, given, is_known)
    assert (wrong["known_right_bytes"], wrong["known_given_bytes"], wrong["other_right_bytes"]) == (4e11, 5e11, 0)
    assert (wrong["hits"], wrong["known_hits"]) == (1, 1), "who is given nothing is not named"


def test_jobs_with_equal_bytes_share_a_hit() -> None:
    moved = np.zeros((8, 1))
    moved[0] = 1e12
    logged = LoggedJobs(np.zeros(8, int), np.ones(8), np.zeros(8), np.full(8, 60.0), np.ones(8, bool))
    site = SiteTraffic(np.full(6, 1e12 / 6), STEP_S, logged, moved)
    found = compare_with_truth(site, np.ones((8, 1)), np.zeros(8, bool))
    assert (found["hits"], found["asked"], found["known_asked"]) == (3 / 8, 1, 0)


def test_quiet_minutes_are_not_evaluated() -> None:
    site = seen({(0, 5): 5e10})
    assert compare_with_truth(site, site.truth_bytes, np.ones(3, bool))["asked"] == 0


# ---- sites


def test_truth_of_a_site_is_contained_in_its_traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "DAYS", 0.4)
    for direction, site in draw_site("coarse", "calm", 3).items():
        minutes = site.minutes_bytes
        assert (site.interval_s, len(minutes), len(site.traffic_bytes)) == (10.0, 576, 3456)
        assert minutes.sum() == pytest.approx(site.traffic_bytes.sum())
        # Transfers are uneven, so some bytes may fall into an adjacent minute.
        jobs = site.truth_bytes.sum(axis=0)
        assert np.maximum(jobs - minutes, 0).sum() < 0.05 * jobs.sum(), direction
        assert site.truth_bytes.shape[0] == len(site.logged.start_s) == len(site.logged.application)


@pytest.mark.slow
def test_few_runs_give_no_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "DAYS", 0.1)
    known = extract_site_signatures(draw_site("usual", "calm", 3)["write"])
    assert not any(known.signatures)


# ---- the whole study


@pytest.fixture(scope="module")
def results() -> Results:
    """A small site of a single family at two levels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sites, "DAYS", 1.0)
        patch.setattr(running, "FAMILIES", {"usual": sites.FAMILIES["usual"]})
        patch.setattr(running, "LEVELS", ("calm", "busy"))
        return study(StudyParams(1, 5, 1))


@pytest.mark.slow
def test_attribution_beats_the_baselines(results: Results) -> None:
    found = {row["way"]: row for row in page.summarize_sites(results).filter(level="calm").iter_rows(named=True)}
    assert list(found) == list(WAYS)
    assert found["attribution"]["explained"] > 0.7
    for rival in ("as planned", "equal shares", "by nodes"):
        assert found["attribution"]["explained"] > found[rival]["explained"]
        assert found["attribution"]["wrong"] < 0.5 * found[rival]["wrong"]


@pytest.mark.slow
def test_page_contains_all_results(results: Results, tmp_path: Path) -> None:
    text = page_of(STUDY, results.params, results, tmp_path)
    assert "iosig study attribution --seeds 1 --seed 5" in text
    assert all(f"| {way} |" in text for way in WAYS)
    assert [title for title, _ in STUDY.tables(results)] == [
        "Attributed bytes by method",
        "Attribution by family",
        "Slowdowns by level",
        "Slowdowns by family",
    ]
    assert len(json.loads(json.dumps(STUDY.document(results)))["sites"]) == 2 * 2 * len(WAYS)

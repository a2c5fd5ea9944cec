"""The study of unattributed patterns: planted applications, comparison with the truth, a real day, and the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from iosig.studies.real_day import Day
from iosig.studies.sites import LoggedJobs, SiteTraffic, Transfers
from iosig.studies.unattributed import STUDY, page, planted, real, running
from iosig.studies.unattributed.running import Results, StudyParams, study
from iosig.transforms.arrays import Reals
from iosig.transforms.synthetic.workload import APPLICATIONS
from tests.study_pages import page_of


def test_five_applications_are_planted_deterministically() -> None:
    made = planted.plant_applications(7, 7.0)
    assert made == planted.plant_applications(7, 7.0) != planted.plant_applications(8, 7.0)
    assert len(made) == 5
    assert {application.user for application in made} == {planted.UNLOGGED_USER}
    assert [len(application.bursts) for application in made[3:]] == [1, 3]


def test_run_counts_scale_with_the_number_of_weeks() -> None:
    (one,) = APPLICATIONS[:1]
    assert planted.scale_run_count(one, 14.0).run_count == 2 * one.run_count
    # Less than a week has the runs of a week, because signatures need several runs.
    assert planted.scale_run_count(one, 3.0) == planted.scale_run_count(one, 7.0) == one
    singles = [planted.plant_applications(7, days)[3].run_count for days in (7.0, 14.0)]
    assert singles[1] == 2 * singles[0]


def test_oracle_residual_excludes_exactly_the_known_transfers() -> None:
    """Two jobs write next to unlogged traffic; the bytes of known jobs are removed exactly."""
    traffic: Reals = np.full(1440 * 12, 1e6)
    moved = Transfers(np.array([0, 1]), np.array([600.0, 1800.0]), np.array([660.0, 1830.0]), np.array([6e10, 9e10]))
    by_job = moved.sum_in_steps(np.zeros(2, np.int64), np.full(2, len(traffic)), 5.0).reshape(2, -1)
    traffic[1000:1004] += 5e9
    nowhere = np.zeros(2)
    logged = LoggedJobs(np.arange(2), nowhere, nowhere, nowhere, np.ones(2, np.bool_))
    one = SiteTraffic(traffic + by_job.sum(axis=0), 5.0, logged, np.zeros((2, 1440)))
    for known, left_bytes in (((True, False), 11e10), ((True, True), 2e10)):
        left, step_s = planted.compute_oracle_residual(one, moved, np.array(known))
        assert step_s == 5.0
        assert left.sum() == pytest.approx(left_bytes)
        assert left[1000:1004] == pytest.approx(5e9)


def test_appearance_belongs_to_the_owner_of_its_first_burst() -> None:
    """Two bursts with a pause, in which a train moves more bytes."""
    truth = planted._SiteTransfers(
        ["nobody/three", "nobody/train", "nobody/three"],
        np.full(3, -1),
        np.array([100.0, 150.0, 300.0]),
        np.array([120.0, 170.0, 320.0]),
        np.array([20e9, 50e9, 20e9]),
        {"nobody/three": 1, "nobody/train": 1},
    )
    begun, ceased = np.array([100.0]), np.array([320.0])
    assert truth.find_owner(begun, ceased, 12.0)[:2] == ("nobody/three", 1)
    # Without a burst at the start, the owner is the application with the most bytes.
    assert truth.find_owner(begun + 30.0, ceased, 12.0)[:2] == ("nobody/train", 1)
    assert truth.find_owner(np.array([500.0]), np.array([510.0]), 12.0)[:2] == ("background", 1)


@pytest.fixture(scope="module")
def results() -> Results:
    """A small calm site of a single family."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planted, "DAYS", 3.0)
        patch.setattr(running, "FAMILIES", ("usual",))
        patch.setattr(running, "LEVELS", ("calm",))
        return study(StudyParams(1, 5, 1))


@pytest.mark.slow
def test_unlogged_trains_are_found_with_few_other_patterns(results: Results) -> None:
    told = results.patterns
    assert told["known"].unique(maintain_order=True).to_list() == [running.ATTRIBUTED, running.SIGNED, running.LOGGED]
    trains = told.filter(pl.col("what") == "planted", pl.col("name").str.contains("train"))
    # Other trains ended before they had enough bursts.
    assert trains.height >= 1
    assert trains["outcome"].is_in(["unattributed", "ambiguous"]).all()
    others = told.filter(what="other", known=running.ATTRIBUTED)
    assert others.filter(outcome="unattributed").height <= 2
    assert others.filter(outcome="attributed")["is_right"].all()


@pytest.mark.slow
def test_likely_rates_attribute_more_than_signatures_alone(results: Results, tmp_path: Path) -> None:
    top = dict(page.summarize_tops(results).select("way", "top").iter_rows())
    assert top["signatures alone"] < top["rest by likely rates"]
    text = page_of(STUDY, results.params, results, tmp_path)
    assert "A real day" not in text
    assert f"| calm | {running.LOGGED} |" in text
    assert "iosig study unattributed --seeds 1 --seed 5" in text
    assert len(json.loads(json.dumps(STUDY.document(results)))["tops"]) == 2 * 3


# ---- a real day


def a_day() -> Day:
    """Return six hours in which two runs write, and two runs of another file system do not."""
    moved: Reals = np.full(6 * 720, 1e6)
    moved[720:732] += 5e10
    moved[2160:2172] += 6e10
    started = np.array([3600.0, 10800.0, 7200.0, 14400.0])
    is_own = np.array([True, True, False, False])
    return Day(
        {"read": np.zeros(6 * 720), "write": moved}, 5.0, ["a", "b", "a", "b"], np.array([0, 1, 0, 1]), started,
        started + 60.0, is_own,
    )  # fmt: skip


def test_writing_runs_get_the_bytes_that_they_wrote() -> None:
    told = real.summarize_real_runs(a_day())
    assert told["written_bytes"].to_list() == pytest.approx([6e11, 7.2e11], rel=0.01)
    assert told["likely_bytes"].to_list() == pytest.approx([6e11, 7.2e11], rel=0.05)


def test_true_runs_rank_above_decoys() -> None:
    (row,) = real.rank_among_decoys(a_day(), [3]).to_dicts()
    assert row["asked"] >= 2
    assert row["first"] == row["top"] == row["asked"]
    # Without traffic, no run is evaluated.
    quiet = replace(a_day(), moved={"read": np.zeros(6 * 720), "write": np.zeros(6 * 720)})
    assert real.rank_among_decoys(quiet, [3])["asked"].to_list() == [0]


@pytest.mark.long
def test_real_runs_of_edison_rank_above_decoys(shared_data: Path) -> None:
    day = Day.read(
        shared_data / "lmt" / "edison-snx11025_2018-02-09.h5lmt", shared_data / "jobs" / "edison-2018-02-09.sacct"
    )
    told = real.summarize_real_runs(day)
    golden = pl.read_csv(shared_data / "lmt" / "edison-join-golden.csv")
    for name, read, written in golden.select("app", "fs_tot_gibs_read", "fs_tot_gibs_written").iter_rows():
        same = told.filter(
            pl.col("run") == name,
            (pl.col("read_bytes") / 2**30 - read).abs() < 1e-6,
            (pl.col("written_bytes") / 2**30 - written).abs() < 1e-6,
        )
        assert same.height == 1
    tried = real.rank_among_decoys(day, range(300, 320))
    assert tried["first"].sum() >= 0.9 * tried["asked"].sum()
    assert tried["top"].sum() >= 0.98 * tried["asked"].sum()

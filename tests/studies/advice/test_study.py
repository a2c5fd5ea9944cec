"""The study of advice: simulated mixes, the judge of outcomes, results, and the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from iosig.studies.advice import STUDY, page, running
from iosig.studies.advice.running import (
    NOW_S,
    POLICIES,
    SETTINGS,
    Applications,
    Judge,
    Mix,
    Results,
    Run,
    Setting,
    StudyParams,
    choose_placements,
    compare_policies,
    draw_mix,
    observe_mix,
    study,
)
from iosig.transforms.advice import Advice, AdviceParams, Choice
from iosig.transforms.demands import Demand
from tests.study_pages import page_of

SHORT = Applications(run_s=(300.0, 600.0), period_s=(60.0, 200.0))
SMALL = {
    "usual": ("as it is", Setting(SHORT)),
    "unknown jobs": ("a half unknown", Setting(SHORT, unknown_ratio=0.5, is_followed=False)),
}

ADVICE = AdviceParams(step_s=4.0, max_delay_s=150.0)


@pytest.fixture(scope="module")
def results() -> Results:
    """Two mixes of short runs in two settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "SETTINGS", SMALL)
        patch.setattr(running, "ADVICE", ADVICE)
        return study(StudyParams(2, 3, 1))


def one_burst(start_s: float, wait_s: float, volume: float, peak: float) -> Run:
    """A run that waits, and then transfers."""
    demand = Demand(np.zeros(int(wait_s + volume / peak)), 1.0)
    arrays = (np.array([wait_s, 0.0]), np.array([volume, 0.0]), np.array([peak, 1.0]))
    return Run(demand, np.array([wait_s]), start_s, *arrays)


# ---- the judge


def test_simultaneous_bursts_contend_for_half_of_their_bytes() -> None:
    mix = Mix(10.0, ((one_burst(NOW_S - 50, 60, 1000, 10),), ()), one_burst(NOW_S, 10, 1000, 10))
    judge = Judge(replace(mix, partitions=mix.partitions[:1]), 0.0, 600.0)
    now = judge.outcome(0, 0.0)
    assert now["contended_ratio"] == pytest.approx(1.0), "half of either's"
    assert now["io_slowdown"] == pytest.approx(2.0)
    assert now["others_slowdown"] == pytest.approx(2.0)
    assert judge.outcome(0, 100.0) == pytest.approx(
        {"contended_ratio": 0.0, "io_slowdown": 1.0, "others_slowdown": 1.0}
    )
    # The first burst is delayed by a quarter, so it also overlaps the second half of the second burst.
    assert judge.outcome(0, 50.0)["contended_ratio"] == pytest.approx(0.75)


def test_contention_among_running_jobs_is_not_attributed_to_the_new_run() -> None:
    pair = (one_burst(NOW_S, 10, 1000, 10), one_burst(NOW_S, 10, 1000, 10))
    judge = Judge(Mix(10.0, (pair,), one_burst(NOW_S, 300, 1000, 10)), 0.0, 600.0)
    assert judge.outcome(0, 0.0)["contended_ratio"] == pytest.approx(0.0)


# ---- mixes and observations


def test_drawn_mixes_have_the_specified_load_and_runs() -> None:
    setting = Setting()
    for number in range(5):
        mix = draw_mix(setting, 1, number)
        assert 3 <= len(mix.partitions) <= 8
        for runs in mix.partitions:
            load = sum(run.demand.bytes_per_s.mean() for run in runs) / mix.capacity_bytes_per_s
            assert load > 0.29
            assert len(runs) >= 2
            assert all(NOW_S - 0.9 * run.duration_s - 1 <= run.start_s <= NOW_S for run in runs)
        assert mix.new.volume == pytest.approx(mix.new.demand.bytes_per_s.sum(), rel=1e-6)
        assert mix.new.start_s == NOW_S


def test_observed_positions_equal_the_true_positions_without_drift() -> None:
    setting = Setting(SHORT, drift_ratio=0.0)
    mix = draw_mix(setting, 1, 0)
    quiet = replace(mix, partitions=tuple(runs[:1] for runs in mix.partitions), capacity_bytes_per_s=1e12)
    without = Judge(quiet, 0.0, 60.0).without
    demand, partitions = observe_mix(quiet, without, setting, np.random.default_rng(0))
    assert demand is not mix.new.demand
    np.testing.assert_array_equal(demand.bytes_per_s, mix.new.demand.bytes_per_s)
    for partition, (run,) in zip(partitions, quiet.partitions, strict=True):
        (known,) = partition.running
        assert known.elapsed_s == pytest.approx(NOW_S - run.start_s, abs=0.01), "alone and without drift"
        assert known.tempo == pytest.approx(1.0, abs=1e-4)
        assert partition.background_bytes_per_s == pytest.approx(0.0, abs=1e7), "all of it is explained"


def test_unknown_jobs_count_as_background() -> None:
    setting = Setting(SHORT, unknown_ratio=1.0)
    mix = draw_mix(setting, 1, 1)
    _, partitions = observe_mix(mix, Judge(mix, 0.0, 60.0).without, setting, np.random.default_rng(0))
    assert all(not partition.running for partition in partitions)
    assert all(float(np.asarray(partition.background_bytes_per_s)) > 0 for partition in partitions)


# ---- results


def test_results_have_a_row_per_policy_and_mix(results: Results) -> None:
    counts = results.runs.group_by("setting", "policy").len()
    assert counts["len"].unique().to_list() == [2]
    assert counts.height == 2 * len(POLICIES) - 1, "the oracle with delays in the usual setting alone"
    assert results.runs.select("mix", "policy").filter(policy="oracle").height == 4
    assert results.runs["delay_s"].is_between(0, 150).all()
    assert results.runs["io_slowdown"].min() >= 0.99  # type: ignore[operator]


def test_short_delay_policy_limits_the_advised_delay() -> None:
    advice = Advice(
        (), (Choice("b", 1200.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),), ("a", "b"), np.array([0.0, 600.0, 1200.0]),
        np.array([[9.0, 3.0, 1.0], [5.0, 4.0, 0.0]]), np.array([[2.0, 2.0, 2.0], [1.0, 1.0, 1.0]]), 4.0,
        np.array([[1.0], [2.0]]), "contention",
    )  # fmt: skip
    choice = replace(advice.with_delay[0], delay_s=0.0)
    mix = draw_mix(Setting(SHORT), 1, 0)
    judge = Judge(replace(mix, partitions=mix.partitions[:2]), 0.0, 60.0)
    places = choose_placements(judge, replace(advice, without_delay=(choice,)), 1, np.random.default_rng(0))
    assert places["contention"] == (1, 0.0)
    assert places["contention, short delay"] == (0, 600.0)
    assert places["contention, delayed"] == (1, 1200.0)
    assert places["least loaded, delayed"] == (places["least loaded"][0], 1200.0)


def test_no_policy_without_delay_beats_the_oracle(results: Results) -> None:
    best = results.runs.filter(policy="oracle").select("setting", "mix", best="contended_ratio")
    rest = results.runs.filter(pl.col("delay_s") == 0).join(best, on=["setting", "mix"])
    assert (rest.filter(~pl.col("policy").str.starts_with("oracle"))["contended_ratio"] >= 0).any()
    without = rest.filter(pl.col("policy").is_in(["random", "least loaded", "least mean", "correlation", "contention"]))
    assert (without["contended_ratio"] >= without["best"]).all()


def test_comparisons_count_every_mix_once(results: Results) -> None:
    found = compare_policies(results, "least loaded")
    assert found.select(total=pl.col("wins") + pl.col("ties") + pl.col("losses"))["total"].unique().to_list() == [2]
    itself = found.filter(policy="least loaded")
    assert itself["ties"].to_list() == [2, 2]


def test_results_are_independent_of_the_number_of_processes(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SETTINGS", SMALL)
    monkeypatch.setattr(running, "ADVICE", ADVICE)
    again = running.evaluate_mix(results.params.seed, 1)
    assert again.equals(results.runs.filter(pl.col("mix") == 1))


def test_page_lists_every_policy_and_its_figures(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "SETTINGS", SMALL)
    text = page_of(STUDY, results.params, results, tmp_path)
    assert all(f"| {policy} |" in text for policy in POLICIES)
    assert all(f"| {setting} |" in text for setting in SMALL)
    assert text.count("](figures/") == 2


def test_document_has_every_policy(results: Results) -> None:
    document: Any = json.loads(json.dumps(STUDY.document(results)))
    assert {row["policy"] for row in document} == set(POLICIES)
    assert set(SETTINGS) >= {"usual", "job log", "unknown jobs"}

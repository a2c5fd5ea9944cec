"""The study of predictions: planted runs, results of each rule, summaries, and the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from iosig.studies.predictions import STUDY, planted, running, scenarios, summary
from iosig.studies.predictions.peer_rules import PeerAdwin, PeerCusum, PeerPageHinkley
from iosig.studies.predictions.running import RULES, Results, Rule, StudyParams, study
from iosig.studies.predictions.scenarios import BEFORE, EXPERIMENTS, Setting
from tests.study_pages import page_of

SEEDS = 2


def few_settings() -> tuple[Setting, ...]:
    """One setting of each experiment; for changes, a setting with short windows."""
    wanted = {"hacc": summary.USUAL, "changes": "5 Hz, jitter 5 %", "following": "adaptive", "bursts": "jitter 3 %"}
    hacc, changes, following, bursts = (
        one for one in scenarios.list_settings() if wanted.get(one.experiment) == one.name
    )
    none = next(one for one in scenarios.list_settings() if one.experiment == "none")
    moving = next(one for one in scenarios.list_settings() if one.experiment == "moving")
    ends = next(one for one in scenarios.list_settings() if one.experiment == "ends")
    return hacc, shortened(changes, BEFORE + 4), following, bursts, shortened(none, 6), moving, ends


def shortened(setting: Setting, phase_count: int) -> Setting:
    branches = {name: replace(branch, phase_count=phase_count) for name, branch in setting.branches.items()}
    return replace(setting, branches=branches)


@pytest.fixture(scope="module")
def results() -> Results:
    """Two runs of each of these settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "list_settings", few_settings)
        return study(StudyParams(SEEDS, 1, 1))


# ---- settings


def test_settings_cover_all_experiments() -> None:
    found = scenarios.list_settings()
    assert {one.experiment for one in found} == set(EXPERIMENTS)
    assert len({(one.experiment, one.name) for one in found}) == len(found)
    assert sum(one.experiment == "hacc" for one in found) == 9
    assert all(one.shared_count < min(each.phase_count for each in one.branches.values()) for one in found)


def test_settings_share_runs_only_to_compare_parameters() -> None:
    for experiment in ("changes", "bursts"):
        streams = [one.stream for one in scenarios.list_settings() if one.experiment == experiment]
        assert streams == list(range(8))
    assert {one.stream for one in scenarios.list_settings() if one.experiment in ("hacc", "following", "none")} == {0}


def test_branches_have_equal_runs_until_the_change() -> None:
    for setting in scenarios.list_settings():
        if setting.shared_count:
            runs = [running._draw_run(setting, branch, 3, 1) for branch in setting.branches.values()]
            ended = [run.phase_end_s[: setting.shared_count] for run in runs]
            assert all(np.array_equal(each, ended[0]) for each in ended)


# ---- results


@pytest.mark.slow
def test_results_have_a_row_per_evaluation(results: Results) -> None:
    rows = sum(sum(branch.phase_count for branch in one.branches.values()) for one in few_settings())
    assert results.evaluations.height == SEEDS * rows
    assert results.changes.height == SEEDS * 4 * len(RULES)


@pytest.mark.slow
def test_branches_start_with_equal_evaluations(results: Results) -> None:
    followed = results.evaluations.filter(experiment="following", run=0)
    one, other = (followed.filter(branch=name) for name in ("doubled", "halved"))
    same = ["now_s", "outcome", "period_s", "start_s"]
    assert one.head(BEFORE + 1).select(same).equals(other.head(BEFORE + 1).select(same))
    assert one["true_period_s"].to_list() == [20.0] * BEFORE + [40.0] * (one.height - BEFORE)
    assert other["true_period_s"].to_list() == [20.0] * BEFORE + [10.0] * (other.height - BEFORE)


@pytest.mark.slow
def test_default_detector_finds_changes_without_false_alarms(results: Results) -> None:
    found = results.changes.filter(rule="clipped_cusum")
    told = found.filter(pl.col("branch").is_in(("doubled", "halved")))
    assert told["lag"].is_between(1, 3).all()
    assert (told["point_error"].abs() < 0.25).all()
    assert found["false_count"].sum() == 0
    assert found.filter(branch="unchanged")["lag"].null_count() == SEEDS


@pytest.mark.slow
def test_hacc_like_runs_are_predicted_with_small_errors(results: Results) -> None:
    (row,) = summary.hacc_summary(results).to_dicts()
    assert row["told_ratio"] == 1
    assert 0 < row["next_error"] <= row["high_next_error"] < 0.05
    assert row["later_error"] < 0.05
    of_one = results.evaluations.filter(experiment="hacc", run=1)
    assert of_one["next_gap_s"].drop_nulls().mean() == pytest.approx(8.7)
    assert of_one["later_gap_s"].to_list() == pytest.approx([7.7] * 10)
    assert len(summary.hacc_phases(results)) == 10


def test_adaptive_window_follows_a_change(results: Results) -> None:
    found = summary.following_summary(results).filter(pl.col("since") >= 6)
    assert (found["error"] < 0.1).all()
    first = summary.following_summary(results).filter(since=0)
    assert first["error"].to_list() == pytest.approx([0.5, 1.0], abs=0.05), "nobody can know yet"


def test_summary_ratios_are_consistent(results: Results) -> None:
    (bursts,) = summary.burst_summary(results).to_dicts()
    assert 0.5 <= bursts["within_ratio"] <= 1
    assert bursts["error"] < 0.05
    none = summary.none_summary(results)
    assert none.height == 3
    assert (none["evaluation_count"] == SEEDS * 6).all()
    intervals = summary.interval_summary(results)
    assert (intervals["hold_ratio"] <= intervals["near_ratio"]).all()
    given = results.evaluations.filter(pl.col("experiment") == "bursts")["probability"].drop_nulls()
    assert intervals.filter(kind="steady")["evaluation_count"].sum() == len(given)


def test_probability_classes_contain_their_evaluations() -> None:
    row: dict[str, object] = dict.fromkeys(running._EVALUATIONS)
    steady = {"experiment": "bursts", "true_period_s": 10.0, "shortest_period_s": 9.0, "longest_period_s": 9.6}
    cases = [(0.25, 9.6), (0.26, 10.0), (0.9, 9.6), (1.0, 11.0)]
    rows = [row | steady | {"probability": chance, "longest_period_s": end} for chance, end in cases]
    frame = pl.DataFrame(rows, schema=running._EVALUATIONS)
    found = summary.interval_summary(Results(StudyParams(1), frame, pl.DataFrame()))
    assert found["up_to"].to_list() == [0.25, 0.5, 0.9, 1.0]
    assert found["above"].to_list() == [0.0, 0.25, 0.75, 0.9]
    assert found["hold_ratio"].to_list() == [0, 1, 0, 1]
    assert found["near_ratio"].to_list() == [1, 1, 1, 1]


def test_results_are_independent_of_the_chunk_size(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "list_settings", lambda: few_settings()[:1])
    monkeypatch.setattr(running, "CHUNK", 1)
    again = study(StudyParams(SEEDS, 1, 1))
    assert again.evaluations.equals(results.evaluations.filter(experiment="hacc"))


# ---- rules of the peer


def frequencies(before_hz: float, after_hz: float, noise: float = 0.0) -> list[float]:
    rng = np.random.default_rng(0)
    return (np.repeat([before_hz, after_hz], 20) * (1 + noise * rng.standard_normal(40))).tolist()


def told_at(rule: Rule, values_hz: list[float]) -> list[int]:
    return [place for place, value in enumerate(values_hz) if rule.add(1 / value) is not None]


@pytest.mark.parametrize("before_hz", [0.005, 0.05, 0.5])
def test_peer_adwin_misses_doubling_below_one_hertz(before_hz: float) -> None:
    assert told_at(PeerAdwin(), frequencies(before_hz, 2 * before_hz)) == []


def test_peer_rules_detect_large_changes_in_hertz() -> None:
    adwin = PeerAdwin()
    found = [adwin.add(1 / value) for value in frequencies(5.0, 10.0)]
    assert [place for place, each in enumerate(found) if each] == [20]
    assert (found[20].index, found[20].octaves) == (20, -1)  # type: ignore[union-attr]
    for rule in (PeerCusum(), PeerPageHinkley()):
        assert told_at(rule, frequencies(0.5, 0.25))[0] == 20


@pytest.mark.parametrize("made", [PeerCusum, PeerPageHinkley])
def test_peer_sums_have_an_absolute_threshold_in_hertz(made: type[Rule]) -> None:
    assert told_at(made(), frequencies(0.005, 0.01)) == []
    assert told_at(made(), frequencies(10.0, 10.0, 0.01)), "and none to speak of at 10 Hz"


# ---- page and command


@pytest.mark.slow
def test_page_has_every_table_and_figure(results: Results, tmp_path: Path) -> None:
    text = page_of(STUDY, results.params, results, tmp_path)
    assert "| 5 Hz, 5 % | doubled |" in text
    assert all(f"| {word} |" in text for word in ("jitter 3 %", "random gaps", "null_tested"))
    assert text.count("](figures/") == 4
    assert "| jitter | clipped_cusum | cusum |" in text, "changes by 20 %"
    assert "None" not in text


def test_document_has_changes_and_targets(results: Results) -> None:
    document: Any = json.loads(json.dumps(STUDY.document(results)))
    assert {row["rule"] for row in document["changes"]} == set(RULES)
    assert len(document["targets"]) == 6
    assert "Next bursts" in [title for title, _ in STUDY.tables(results)]


# ---- moving and ending rhythms


def told(**columns: list[object]) -> Results:
    """Results of evaluations with these columns, and defaults for all others."""
    rows = pl.DataFrame(columns).with_columns(method=pl.lit("null_tested"), strategy=pl.lit("adaptive"))
    full = pl.concat([pl.DataFrame(schema=running._EVALUATIONS), rows], how="diagonal")
    return Results(StudyParams(1, 0, 1), full, pl.DataFrame())


def test_hit_is_a_gap_within_the_interval() -> None:
    found = summary.hit_summary(
        told(
            experiment=["bursts", "ends", "moving", "hacc"],
            hit_probability=[0.85, 0.85, 0.15, 0.15],
            probability=[1.0, 0.5, 0.9, 0.9],
            shortest_period_s=[9.0, 9.0, 9.0, 9.0],
            longest_period_s=[11.0, 11.0, 11.0, 11.0],
            next_gap_s=[10.0, 12.0, 9.0, 10.0],
        )
    )
    assert found.rows() == [(0.1, 0.2, 1, 0.15, 1.0, 0.9), (0.8, 0.9, 2, 0.85, 0.5, 0.75)]


def test_evaluations_since_an_end_are_counted_by_run() -> None:
    before, _ = scenarios.END_COUNTS
    phases = [before, before + 1, before + 2, before + 1, before + 2]
    found = summary.end_summary(
        told(
            experiment=["ends"] * 5,
            setting=["a"] * 5,
            run=[0, 0, 0, 1, 1],
            phase=phases,
            outcome=["periodic", "periodic", "tentative", "aperiodic", "aperiodic"],
            period_s=[9.0, 9.0, 9.0, None, None],
        )
    )
    assert found.rows() == [("a", 2, 0.5, 1.0, 0.9)]


def test_range_summary_ignores_early_evaluations() -> None:
    found = summary.range_summary(
        told(
            experiment=["bursts", "bursts", "moving", "following"],
            setting=["steady", "steady", "grows", "adaptive"],
            branch=["regular", "regular", "moving", "doubled"],
            phase=[summary.FIFTH, summary.FIFTH - 1, summary.FIFTH, BEFORE + 2],
            next_onset_s=[100.0, 100.0, 100.0, 100.0],
            next_gap_s=[10.0, 10.0, 10.0, 10.0],
            earliest_s=[95.0, 95.0, 101.0, 99.0],
            latest_s=[105.0, 105.0, 103.0, 103.0],
        )
    )
    assert found.drop("kind").rows() == [("steady", 1, 1.0, 1.0), ("doubled", 1, 1.0, 0.4), ("grows", 1, 0.0, 0.2)]


def test_moving_and_ending_rhythms_have_the_planted_gaps() -> None:
    grows = planted.draw_moving_run(np.random.default_rng(0), 10.0, 30, 0.0, growth=0.03)
    np.testing.assert_allclose(grows.gaps_s[1:] / grows.gaps_s[:-1], 1.03)
    swings = planted.draw_moving_run(np.random.default_rng(0), 10.0, 33, 0.0, swing=0.3)
    assert swings.gaps_s.min() == pytest.approx(7, rel=0.02)
    assert swings.gaps_s.max() == pytest.approx(13, rel=0.02)
    for kind in scenarios.ENDS:
        gaps = np.concatenate(
            [
                planted.draw_ending_run(np.random.default_rng(seed), 10.0, (15, 9), 0.02, kind).gaps_s[:, None].T
                for seed in range(200)
            ]
        )
        assert gaps[:, :15].std() == pytest.approx(0.2, rel=0.1)
        assert gaps[:, 15:].mean() == pytest.approx(10.15, rel=0.1)
        assert gaps[:, 15:].std() > 3

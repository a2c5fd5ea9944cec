"""Pictures of the predictions study are deterministic and show the values of the results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from iosig.studies.predictions import figures as figures
from tests.budget import one_in
from tests.drawn_figures import assert_drawn_alike, figure_of

CHANGES = pl.DataFrame(
    [
        (hz, jitter, branch, rule, 10, 0.5 + 0.5 * place if branch != "unchanged" else 0.0, 3 * place)
        for hz in (0.01, 1.0)
        for jitter in (0.05, 0.1)
        for branch in ("doubled", "halved", "unchanged")
        for place, rule in enumerate(("$one_$", "two"))
    ],
    ["frequency_hz", "jitter", "branch", "rule", "run_count", "in_time_ratio", "false_count"],
    orient="row",
)
FOLLOWING = pl.DataFrame(
    [
        (strategy, branch, since, error, error, error, 0.0 if error is None else 1.0)
        for strategy in ("all", "adaptive")
        for branch in ("doubled", "halved")
        for since in range(-4, 4)
        for error in (None if since == 1 else 0.5,)
    ],
    ["strategy", "branch", "since", "error", "low_error", "high_error", "told_ratio"],
    orient="row",
)
BURSTS = pl.DataFrame(
    [("calm", 0.5, 0.8, 0.02, 0.05), ("wild", None, 0.7, 0.2, 0.4)],
    ["setting", "few_within_ratio", "within_ratio", "error", "high_error"],
    orient="row",
)
INTERVALS = pl.DataFrame(
    [("steady", 0.0, 0.5, 0.4, 0.9, 70), ("steady", 0.5, 1.0, 0.8, 1.0, 90), ("changed", 0.5, 1.0, 0.6, 0.9, 3)],
    ["kind", "above", "up_to", "hold_ratio", "near_ratio", "evaluation_count"],
    orient="row",
)
DRAWN = {
    "changes": figures.draw_changes(CHANGES),
    "following": figures.draw_following(FOLLOWING),
    "bursts": figures.draw_bursts(BURSTS, INTERVALS, 0.8),
}


@pytest.mark.parametrize("name", one_in(4, DRAWN))
def test_pictures_are_deterministic(name: str, tmp_path: Path) -> None:
    assert_drawn_alike(DRAWN[name], tmp_path)


def test_detections_are_from_changed_runs_and_false_alarms_from_unchanged() -> None:
    told, _, false, _ = figure_of(DRAWN["changes"]).axes
    lines = {str(line.get_label()): line for line in told.lines}
    assert np.asarray(lines["two"].get_ydata()).tolist() == [100.0, 100.0]
    assert np.asarray(lines["$one_$"].get_ydata()).tolist() == [50.0, 50.0]
    counts = {str(line.get_label()): line for line in false.lines}["two"]
    assert np.asarray(counts.get_ydata()).tolist() == [30.0, 30.0], "in 100 runs, where 10 had 3"
    assert [text.get_text() for text in false.get_xticklabels()] == ["0.01", "1"]


def test_evaluations_without_period_have_no_error() -> None:
    upper, _, lower, _ = figure_of(DRAWN["following"]).axes
    error = {str(line.get_label()): line for line in upper.lines}["adaptive"]
    assert np.asarray(error.get_xdata()).tolist() == list(range(-3, 4))
    assert np.isnan(np.asarray(error.get_ydata())).tolist() == [since == 1 for since in range(-3, 4)]
    without = np.asarray(lower.lines[0].get_ydata())
    assert without.tolist() == [100.0 if since == 1 else 0.0 for since in range(-3, 4)]


def test_dots_of_bursts_and_intervals_have_the_values_of_the_results() -> None:
    within, _, held = figure_of(DRAWN["bursts"]).axes
    many = {str(line.get_label()): line for line in within.lines}["10 or more"]
    assert np.asarray(many.get_xdata()).tolist() == pytest.approx([80.0, 70.0])
    steady = {str(line.get_label()): line for line in held.lines}["steady"]
    assert np.asarray(steady.get_xdata()).tolist() == [25.0, 75.0]
    assert np.asarray(steady.get_ydata()).tolist() == pytest.approx([40.0, 80.0])
    changed = {str(line.get_label()): line for line in held.lines}["changed"]
    assert not len(np.asarray(changed.get_xdata())), "three evaluations say too little"

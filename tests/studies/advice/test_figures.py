"""Pictures of the advice study are deterministic and show the values of the results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from iosig.studies.advice import figures as figures
from tests.budget import one_in
from tests.drawn_figures import assert_drawn_alike, figure_of

POLICIES = ("$one_$", "two")
RUNS = pl.DataFrame(
    [(policy, place + mix / 4, 1.0 + mix, 1.0) for place, policy in enumerate(POLICIES) for mix in range(5)],
    ["policy", "contended_ratio", "io_slowdown", "others_slowdown"],
    orient="row",
)
COMPARED = pl.DataFrame(
    [("usual", "$one_$", 1.0, 0, 0), ("usual", "two", 0.4, 9, 2), ("large", "two", 7.0, 1, 8)],
    ["setting", "policy", "to_rival", "wins", "losses"],
    orient="row",
)
DRAWN = {
    "policies": figures.draw_policies(RUNS),
    "settings": figures.draw_settings(COMPARED, ("usual", "large"), POLICIES),
}


@pytest.mark.parametrize("name", one_in(2, DRAWN))
def test_pictures_are_deterministic(name: str, tmp_path: Path) -> None:
    assert_drawn_alike(DRAWN[name], tmp_path)


def test_marks_have_the_values_of_the_results() -> None:
    left, right = figure_of(DRAWN["settings"]).axes
    marks = {str(line.get_label()): line for line in left.lines}
    assert np.asarray(marks["two"].get_xdata()).tolist() == [0.4, 1.25], "what is beyond the edge is at the edge"
    won = {str(line.get_label()): line for line in right.lines}["two"]
    assert np.asarray(won.get_xdata()).tolist() == [7, -7]
    assert [text.get_text() for text in left.get_yticklabels()] == ["usual", "large"]


def test_policies_are_listed_in_order_from_the_top() -> None:
    first = figure_of(DRAWN["policies"]).axes[0]
    assert [text.get_text() for text in first.get_yticklabels()] == list(POLICIES)
    assert first.yaxis_inverted()

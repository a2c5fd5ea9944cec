from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.polls.grids import Edge, find_edges
from tests.budget import examples


def intervals(times: list[float], edge: Edge) -> list[tuple[float, float] | None]:
    found = find_edges(np.array(times, np.float64), edge)
    return [
        (right / 1e6 - width / 1e6, right / 1e6) if good else None
        for right, width, good in zip(found.right_us, found.interval_us, found.good, strict=True)
    ]


@pytest.mark.parametrize(
    ("edge", "expected"),
    [
        ("right", [(95, 100), (100, 105), (120, 125), (125, 130), (130, 135)]),
        ("left", [(100, 105), (105, 110), (125, 130), (130, 135), (135, 140)]),
    ],
)
def test_interval_before_or_after_a_gap_has_the_usual_length(edge: Edge, expected: list[tuple[float, float]]) -> None:
    assert intervals([100, 105, 125, 130, 135], edge) == expected


def test_shorter_step_keeps_its_length() -> None:
    assert intervals([100, 105, 107, 112], "right") == [(95, 100), (100, 105), (105, 107), (107, 112)]
    assert intervals([100, 105, 107, 112], "left") == [(100, 105), (105, 107), (107, 112), (112, 117)]


def test_tie_between_distances_is_resolved_to_the_shorter() -> None:
    assert intervals([100, 105, 115], "left") == [(100, 105), (105, 110), (115, 120)]


@pytest.mark.parametrize("times", [[], [100.0], [100.0, 100.0], [float("nan"), 100.0]])
def test_fewer_than_two_times_are_refused(times: list[float]) -> None:
    with pytest.raises(InputRefused, match="fewer than two"):
        find_edges(np.array(times, np.float64), "left")


@given(st.lists(st.integers(-3, 40), max_size=15), st.sampled_from(["left", "right"]))
@settings(max_examples=examples(50), deadline=None)
def test_good_steps_increase_and_intervals_do_not_overlap(times: list[int], edge: Edge) -> None:
    kept: list[int] = []
    for time in times:
        if time > max(kept, default=-1):
            kept.append(time)
    assume(len(kept) > 1)
    found = [interval for interval in intervals([float(time) for time in times], edge) if interval]
    assert [interval[0 if edge == "left" else 1] for interval in found] == kept
    assert all(first[1] <= second[0] for first, second in pairwise(found))
    assert all(left < right for left, right in found)

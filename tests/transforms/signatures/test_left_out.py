"""Usual runs: those that take about as long as most, whatever a half of the set does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given, strategies as st

from transforms.signatures.left_out import UsualRunParams, are_usual, usual_duration_s

NAN = float("nan")


def usual(durations: list[float], params: UsualRunParams | None = None) -> npt.NDArray[np.bool_]:
    return are_usual(np.array(durations, dtype=float), np.array([0, len(durations)]), params)


def test_stopped_runs_do_not_set_the_pace() -> None:
    complete = [1000.0, 1003, 1010, 1002, 1020, 1008]
    others = [200.0, 550, 870, 920, 1150]
    assert usual(complete + others).tolist() == [True] * 6 + [False] * 5
    assert usual(others + complete).tolist() == [False] * 5 + [True] * 6


def test_limits_are_parameters_and_may_be_none() -> None:
    durations = [1000.0, 1001, 1002, 930, 1090]
    assert usual(durations).tolist() == [True, True, True, False, True]
    assert usual(durations, UsualRunParams(most_shorter_ratio=0.1)).all()
    assert not usual(durations, UsualRunParams(most_longer_ratio=0.05))[4]
    assert usual(durations, UsualRunParams(most_shorter_ratio=None, most_longer_ratio=None)).all()


def test_where_too_few_are_alike_all_stay() -> None:
    assert usual([100.0, 200, 400]).all()
    assert usual([100.0, 101, 400], UsualRunParams(least_count=2)).tolist() == [True, True, False]
    assert usual([NAN, 0.0, NAN]).all()
    assert usual([NAN, 10.0, 10.0, 10.0, 0.0, -10.0]).tolist() == [False, True, True, True, False, False]
    assert usual([]).tolist() == []


def test_a_run_may_stop_as_others_do_but_none_is_longer_than_whole() -> None:
    stopped = [610.0, 928, 845, 936, 857, 925, 1150, 625, 543]
    whole = [1513.0, 1518, 1526, 1522, 1557]
    assert usual(stopped + whole).tolist() == [False] * 9 + [True] * 5
    assert usual([*stopped, 1513.0]).tolist() == [False, True, False, True, False, True, False, False, False, False]


def test_the_usual_duration_of_few_runs() -> None:
    params = UsualRunParams()
    assert np.isnan(usual_duration_s(np.zeros(0), params))
    assert np.isnan(usual_duration_s(np.array([NAN, 0.0]), params))
    assert usual_duration_s(np.array([7.0]), params) == 7.0
    assert usual_duration_s(np.array([100.0, 103.0]), params) == 101.5
    assert usual_duration_s(np.array([1.0, 9.4, 9.5, 20.0]), params) == 9.45, "one run of 20 s is no group"


@given(st.lists(st.lists(st.floats(1.0, 1e6), max_size=12), max_size=6))
def test_each_set_is_judged_by_itself(sets: list[list[float]]) -> None:
    offsets = np.cumsum([0, *(len(one) for one in sets)])
    together = are_usual(np.array([value for one in sets for value in one]), offsets)
    assert together.tolist() == [mark for one in sets for mark in usual(one).tolist()]

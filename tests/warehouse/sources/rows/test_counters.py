from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.sources.rows import counters
from tests.budget import examples
from tests.naive.sources.rows import counters as naive

# Small values make decreases to equal values and exact recoveries common.
SMALL = st.lists(st.integers(0, 12), min_size=1, max_size=40)
LARGE = st.lists(st.integers(0, 2**62), min_size=1, max_size=20)


def polled(*groups: list[int]) -> list[str | None]:
    values = np.array([value for group in groups for value in group], np.int64)
    is_first = np.array([index == 0 for group in groups for index in range(len(group))], np.bool_)
    return counters.decode_flags(counters.flag_server_counters(values, is_first)).to_list()


def confirmed(values: list[int]) -> list[tuple[float, str | None]]:
    rises, flags = counters.confirm_increases(np.array(values, np.int64))
    return list(zip(rises.tolist(), counters.decode_flags(flags).to_list(), strict=True))


def test_increasing_counter_has_no_flags() -> None:
    assert polled([5, 5, 9, 2**60]) == [None] * 4
    assert confirmed([5, 5, 9]) == [(0, None), (0, None), (4, None)]


def test_restart_is_a_reset_and_later_increases_count() -> None:
    assert polled([438, 440, 0, 0, 62]) == [None, None, "reset", None, None]


def test_small_decrease_is_flagged() -> None:
    assert polled([100, 200, 150, 160]) == [None, None, "decrease", None]


def test_recovery_from_faulty_low_reading_is_flagged() -> None:
    assert polled([10**15, 10**15 + 7, 0, 0, 10**15 + 9, 10**15 + 12]) == [
        None,
        None,
        "reset",
        None,
        "decrease",
        None,
    ]


def test_slow_growth_past_value_before_reset_counts() -> None:
    assert polled([100, 110, 0, 50, 90, 120]) == [None, None, "reset", None, None, None]


def test_counters_are_independent() -> None:
    assert polled([500, 600], [3, 4], [1, 0, 900]) == [None, None, None, None, None, "reset", "decrease"]


@pytest.mark.parametrize("size", [0, 1])
def test_fewer_than_two_readings_have_no_increase(size: int) -> None:
    values = np.arange(size, dtype=np.int64)
    assert counters.flag_server_counters(values, values == 0).tolist() == [0] * size
    rises, flags = counters.confirm_increases(values)
    assert rises.tolist() == flags.tolist() == [0] * size
    assert counters.decode_flags(flags).to_list() == [None] * size


@given(st.lists(SMALL, min_size=1, max_size=4))
@settings(max_examples=examples(50), deadline=None)
def test_flags_match_naive_implementation(groups: list[list[int]]) -> None:
    assert polled(*groups) == [flag for group in groups for flag in naive.polled(group)]


@given(LARGE)
@settings(max_examples=examples(50), deadline=None)
def test_unflagged_deltas_are_not_negative(values: list[int]) -> None:
    flags = polled(values)
    rises = counters.compute_deltas(np.array(values, np.int64)).tolist()
    assert all(rise >= 0 for rise, flag in zip(rises, flags, strict=True) if flag is None)


def test_retracted_bytes_do_not_count() -> None:
    assert confirmed([0, 50, 0, 30, 20, 80]) == [
        (0, None),
        (0, "retracted"),
        (0, "retracted"),
        (20, "retracted"),
        (0, "retracted"),
        (60, None),
    ]


def test_decrease_below_all_previous_values_is_a_reset() -> None:
    assert confirmed([10, 30, 25, 5, 8]) == [(0, None), (15, "retracted"), (0, "retracted"), (0, "reset"), (3, None)]


@given(SMALL)
@settings(max_examples=examples(50), deadline=None)
def test_confirmed_increases_match_naive_implementation(values: list[int]) -> None:
    assert confirmed(values) == naive.confirmed(values)


@given(st.one_of(SMALL, LARGE))
@settings(max_examples=examples(50), deadline=None)
def test_confirmed_increases_sum_to_gain_of_each_segment(values: list[int]) -> None:
    found = confirmed(values)
    assert all(rise >= 0 for rise, _ in found)
    assert sum(int(rise) for rise, _ in found) == sum(part[-1] - part[0] for part in naive.segments(values))
    assert sum(flag == "reset" for _, flag in found) == len(naive.segments(values)) - 1

"""What is left of traffic: polls on even steps, without what is explained and what flows always."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.unnamed_patterns.leftover import left_over, on_steps, step_for


def test_polls_lie_on_steps_by_their_time() -> None:
    edges = np.array([2.0, 4.0, 6.0, 8.0, 10.0, 12.0])
    volumes = np.array([2.0, 2.0, 2.0, 10.0, 10.0, 10.0])
    found = on_steps(edges, np.full(6, 2.0), volumes, 0.0, 5.0)
    # of the third step two seconds were polled: less than half
    np.testing.assert_allclose(found, [5.0, 1.0 + 20.0, np.nan])


def test_a_gap_is_a_gap_and_what_was_polled_of_a_step_stands_for_it() -> None:
    edges, volumes = np.array([10.0, 20.0, 50.0, 56.0]), np.array([10.0, np.nan, 30.0, 12.0])
    found = on_steps(edges, np.array([10.0, 10.0, 10.0, 6.0]), volumes, 0.0, 10.0)
    np.testing.assert_allclose(found, [10.0, np.nan, np.nan, np.nan, 30.0, 20.0])
    assert not len(on_steps(np.zeros(0), np.zeros(0), np.zeros(0), 0.0, 5.0))


@given(st.integers(1, 60), st.sampled_from([1.0, 2.0, 5.0, 7.0]))
def test_no_byte_is_lost_where_all_is_polled(count: int, interval_s: float) -> None:
    edges = np.linspace(interval_s, count * interval_s, count)
    volumes = np.random.default_rng(count).uniform(0.0, 9.0, count)
    steps = on_steps(edges, np.full(count, interval_s), volumes, 0.0, interval_s * 3)
    assert np.nansum(steps[: count // 3]) == pytest.approx(volumes[: count // 3 * 3].sum())


def test_minutes_of_which_much_is_explained_are_not_known() -> None:
    traffic = np.array([1.0, 9.0, 1.0, 21.0, 1.0, 1.0, np.nan])
    left = left_over(traffic, np.array([0.5, 4.0, 0.0]), np.array([0, 0, 1, 1, 2, 2, 2]), 10.0)
    np.testing.assert_allclose(left, [0.0, 8.0, np.nan, np.nan, 0.0, 0.0, np.nan])


@pytest.mark.parametrize(
    ("interval_s", "step_s"), [(1, 5), (2, 5), (5, 5), (5.5, 6), (10, 10), (31, 60), (60, 60), (90, 120)]
)
def test_steps_are_whole_shares_of_a_minute_or_minutes(interval_s: float, step_s: float) -> None:
    assert step_for(interval_s) == step_s

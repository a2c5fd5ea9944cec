"""Placing: exact cases, and the dynamic programme and its costs against all ways there are."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.budget import examples
from transforms.arrays import Reals
from transforms.attribution.placing import PlacingParams, _best_path, _costs, _rests, moved, place
from transforms.attribution.runs import Run


def run_of(
    begun: list[float], *, lasting: float = 5.0, peak: float = 10.0, alone: float = 200.0, lasted: float = 200.0
) -> Run:
    count = len(begun)
    return Run(
        0.0,
        lasted,
        alone,
        np.array(begun),
        np.full(count, lasting),
        np.full(count, lasting * peak),
        np.full(count, peak),
    )


def room_of(count: int, *bursts: tuple[int, int, float]) -> Reals:
    """Return room with so many steps of bytes from a step on."""
    room = np.zeros(count)
    for first, length, volume in bursts:
        room[first : first + length] += volume
    return room


def test_bursts_are_found_where_they_came_late() -> None:
    room = room_of(220, (20, 5, 10.0), (93, 5, 10.0), (171, 5, 10.0))
    run = run_of([20, 90, 160], lasted=211)
    placed = place(run, room, 2.0)
    assert placed.step.tolist() == [20, 93, 171]
    np.testing.assert_array_equal(moved(run, placed, room).volume_bytes, room)


def test_a_burst_that_others_slow_keeps_its_volume() -> None:
    room = room_of(60, (10, 20, 2.5))
    run = run_of([10.0], lasted=60, alone=45)
    taken = moved(run, place(run, room, 2.0), room).volume_bytes
    assert taken.sum() == pytest.approx(50.0)
    assert (taken <= room).all()


def test_what_is_not_there_is_not_taken() -> None:
    run = run_of([20, 90])
    room = room_of(201, (20, 5, 10.0))
    taken = moved(run, place(run, room, 2.0), room).volume_bytes
    assert taken.sum() == 50
    assert not moved(run, place(run, np.zeros(201), 2.0), np.zeros(201)).volume_bytes.any()


def test_a_burst_is_over_where_it_rests_and_less_than_half_of_one_is_none() -> None:
    run = run_of([20.0])
    later = room_of(201, (20, 4, 10.0), (35, 1, 10.0))
    assert moved(run, place(run, later, 2.0), later).volume_bytes[30:].sum() == 0
    scraps = room_of(201, (20, 2, 10.0))
    found = moved(run, place(run, scraps, 2.0), scraps)
    assert found.filled.tolist() == [pytest.approx(0.4)]
    assert not found.volume_bytes.any()


def test_a_run_that_is_much_longer_than_one_alone_begins_as_that_does() -> None:
    room = room_of(401, (20, 5, 10.0), (40, 5, 10.0), (60, 5, 10.0), (80, 5, 10.0), (100, 5, 10.0))
    placed = place(run_of([20.0, 40.0, 60.0], lasted=400, alone=80), room, 2.0)
    assert placed.step.tolist() == [20, 40, 60]


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 12), st.integers(1, 4))
def test_rests_are_where_so_many_low_steps_begin(seed: int, rows: int, steps: int, count: int) -> None:
    is_low = np.random.default_rng(seed).random((rows, steps)) < 0.5
    found = _rests(is_low, count)
    for row, step in product(range(rows), range(steps)):
        begins = (at for at in range(step, steps - count + 1) if is_low[row, at : at + count].all())
        assert found[row, step] == next(begins, steps)


def test_a_run_that_was_stopped_and_the_rest_of_one_are_told_apart() -> None:
    begun = [20.0, 70.0, 90.0, 180.0]
    stopped = room_of(101, (20, 5, 10.0), (70, 5, 10.0), (90, 5, 10.0))
    assert place(run_of(begun, lasted=100), stopped, 2.0).burst.tolist() == [0, 1, 2]
    rest = room_of(91, (60 - 50, 5, 10.0), (70, 5, 10.0))
    placed = place(run_of([20.0, 70.0, 120.0, 180.0], lasted=90), rest, 2.0)
    assert (placed.burst.tolist(), placed.step.tolist()) == ([2, 3], [10, 70])


def test_a_burst_among_others_is_slower() -> None:
    run = run_of([10.0])
    room = room_of(201, (10, 20, 20.0))
    taken = moved(run, place(run, room, 2.0), room).volume_bytes
    assert taken.max() == pytest.approx(10 / 1.5)
    assert taken.sum() == pytest.approx(50)


def test_nobody_takes_from_before_or_after_the_run() -> None:
    run = run_of([0.0, 195.0])
    placed = place(run, room_of(201, (0, 5, 10.0), (195, 6, 10.0)), 2.0)
    assert placed.step.tolist() == [0, 195]


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 6), st.sampled_from([0.0, 0.3, 2.0]))
def test_the_best_path_is_the_best_of_all(seed: int, rows: int, places: int, change: float) -> None:
    costs = np.random.default_rng(seed).integers(0, 9, (rows, places)).astype(np.float64)

    def cost_of(path: tuple[int, ...]) -> float:
        return float(sum(costs[row, at] for row, at in enumerate(path)) + change * sum(abs(np.diff(path))))

    path, cost = _best_path(costs, change)
    assert cost == pytest.approx(min(map(cost_of, product(range(places), repeat=rows))))
    assert cost_of(tuple(path.tolist())) == pytest.approx(cost)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 8))
def test_costs_are_those_of_filling_step_by_step(seed: int, bursts: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    run = run_of([0.0] * bursts, lasting=3.0, peak=5.0)
    params = PlacingParams(crowding_ratio=0.0)
    reach = rng.integers(2, 9, bursts)
    there = rng.integers(0, 7, (bursts, count + int(reach.max()))).astype(np.float64)
    ends = np.arange(count) + rng.integers(0, reach[:, None] + 1, (bursts, count))
    found = _costs(run, np.arange(bursts), there, (reach, ends), params)
    for burst, place_ in product(range(bursts), range(count)):
        taken, steps = 0.0, 0
        for step in range(int(reach[burst])):
            if taken >= 0.95 * 15:
                break
            taken += min(there[burst, place_ + step], 5.0)
            steps += 1
        whole = np.minimum(there[burst, place_ : ends[burst, place_]], 5.0).sum()
        expected = max(np.log(max(steps, 1) / 3.0), 0.0) + params.empty_cost * max(0.0, 1 - whole / 15)
        assert found[burst, place_] == pytest.approx(expected)

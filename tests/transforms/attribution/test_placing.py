"""Placing: exact cases, the slow twin, and the dynamic programme and its costs against all ways there are."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Ragged, Reals, offsets_of
from iosig.transforms.attribution.placing import (
    Moved,
    Placed,
    PlacingParams,
    _best_paths,
    _costs,
    _rests,
    _Ways,
    disjoint_turns,
    moved,
    place,
)
from iosig.transforms.attribution.runs import InRooms
from tests.budget import examples
from tests.naive.attribution import placing as naive


def run_of(
    begun: list[float], *, lasting: float = 5.0, peak: float = 10.0, alone: float = 200.0, lasted: float = 200.0
) -> InRooms:
    count = len(begun)
    return InRooms(
        np.zeros(1),
        np.array([lasted]),
        np.array([alone]),
        np.array([0, count]),
        np.array(begun),
        np.full(count, lasting),
        np.full(count, lasting * peak),
        np.full(count, peak),
    )


def one_room(room: Reals) -> Ragged:
    """Return the room of one run."""
    return Ragged(room, np.array([0, len(room)]))


def placed_one(run: InRooms, room: Reals) -> Placed:
    return place(run, one_room(room), 2.0)


def moved_of_one(run: InRooms, placed: Placed, room: Reals) -> Moved:
    return moved(run, placed, one_room(room))


def room_of(count: int, *bursts: tuple[int, int, float]) -> Reals:
    """Return room with so many steps of bytes from a step on."""
    room = np.zeros(count)
    for first, length, volume in bursts:
        room[first : first + length] += volume
    return room


def test_bursts_are_found_where_they_came_late() -> None:
    room = room_of(220, (20, 5, 10.0), (93, 5, 10.0), (171, 5, 10.0))
    run = run_of([20, 90, 160], lasted=211)
    placed = placed_one(run, room)
    assert placed.step.tolist() == [20, 93, 171]
    np.testing.assert_array_equal(moved_of_one(run, placed, room).volume_bytes, room)


def test_a_burst_that_others_slow_keeps_its_volume() -> None:
    room = room_of(60, (10, 20, 2.5))
    run = run_of([10.0], lasted=60, alone=45)
    taken = moved_of_one(run, placed_one(run, room), room).volume_bytes
    assert taken.sum() == pytest.approx(50.0)
    assert (taken <= room).all()


def test_what_is_not_there_is_not_taken() -> None:
    run = run_of([20, 90])
    room = room_of(201, (20, 5, 10.0))
    taken = moved_of_one(run, placed_one(run, room), room).volume_bytes
    assert taken.sum() == 50
    assert not moved_of_one(run, placed_one(run, np.zeros(201)), np.zeros(201)).volume_bytes.any()


def test_a_burst_is_over_where_it_rests_and_less_than_half_of_one_is_none() -> None:
    run = run_of([20.0])
    later = room_of(201, (20, 4, 10.0), (35, 1, 10.0))
    assert moved_of_one(run, placed_one(run, later), later).volume_bytes[30:].sum() == 0
    scraps = room_of(201, (20, 2, 10.0))
    found = moved_of_one(run, placed_one(run, scraps), scraps)
    assert found.filled.tolist() == [pytest.approx(0.4)]
    assert not found.volume_bytes.any()


def test_a_run_that_is_much_longer_than_one_alone_begins_as_that_does() -> None:
    room = room_of(401, (20, 5, 10.0), (40, 5, 10.0), (60, 5, 10.0), (80, 5, 10.0), (100, 5, 10.0))
    placed = placed_one(run_of([20.0, 40.0, 60.0], lasted=400, alone=80), room)
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
    assert placed_one(run_of(begun, lasted=100), stopped).is_done.tolist() == [True, True, True, False]
    rest = room_of(91, (60 - 50, 5, 10.0), (70, 5, 10.0))
    placed = placed_one(run_of([20.0, 70.0, 120.0, 180.0], lasted=90), rest)
    assert placed.is_done.tolist() == [False, False, True, True]
    assert placed.step[placed.is_done].tolist() == [10, 70]


def test_a_burst_among_others_is_slower() -> None:
    run = run_of([10.0])
    room = room_of(201, (10, 20, 20.0))
    taken = moved_of_one(run, placed_one(run, room), room).volume_bytes
    assert taken.max() == pytest.approx(10 / 1.5)
    assert taken.sum() == pytest.approx(50)


def test_nobody_takes_from_before_or_after_the_run() -> None:
    run = run_of([0.0, 195.0])
    placed = placed_one(run, room_of(201, (0, 5, 10.0), (195, 6, 10.0)))
    assert placed.step.tolist() == [0, 195]


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 6), st.sampled_from([0.0, 0.3, 2.0]))
def test_the_best_path_is_the_best_of_all(seed: int, rows: int, places: int, change: float) -> None:
    costs = np.random.default_rng(seed).integers(0, 9, (rows, places)).astype(np.float64)

    def cost_of(path: tuple[int, ...]) -> float:
        return float(sum(costs[row, at] for row, at in enumerate(path)) + change * sum(abs(np.diff(path))))

    # beside others, of fewer places and rows
    beside = np.full((rows + 1, places + 2), np.inf)
    beside[:rows, :places], beside[rows] = costs, np.arange(places + 2)
    path, cost = _best_paths(beside, np.array([0, rows, rows + 1]), np.array([places - 1, places + 1]), change)
    assert cost[0] == pytest.approx(min(map(cost_of, product(range(places), repeat=rows))))
    assert cost_of(tuple(path[:rows].tolist())) == pytest.approx(cost[0])
    assert (path[rows], cost[1]) == (0, 0.0)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 8))
def test_costs_are_those_of_filling_step_by_step(seed: int, bursts: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    run = run_of([0.0] * bursts, lasting=3.0, peak=5.0)
    params = PlacingParams(crowding_ratio=0.0)
    reach = rng.integers(2, 9, bursts)
    there = rng.integers(0, 7, (bursts, count + int(reach.max()))).astype(np.float64)
    ends = np.arange(count) + rng.integers(0, reach[:, None] + 1, (bursts, count))
    none = np.zeros(1, np.int64)
    ways = _Ways(none, none, none, np.array([0, bursts]), np.arange(bursts), np.zeros(bursts, np.int64), reach)
    found = _costs(run, ways, there, ends, params)
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


# ---- many runs


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 12))
def test_runs_side_by_side_are_as_one_after_the_other(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    bursts, lasted = rng.integers(0, 9, count), np.round(rng.uniform(10, 900, count), 2)
    offsets, total = offsets_of(bursts), int(bursts.sum())
    lasting, volume = np.round(rng.uniform(1, 30, total), 1), rng.uniform(1, 50, total)
    duration = np.round(lasted * rng.choice([0.5, 0.97, 1.0, 1.3, 2.0], count), 2)
    begun = np.concatenate(
        [np.zeros(0), *(np.sort(rng.uniform(0, most, own)) for most, own in zip(duration, bursts, strict=True))]
    )
    runs = InRooms(rng.random(count), lasted, duration, offsets, begun, lasting, volume, 1.2 * volume / lasting)
    sizes = (lasted * rng.choice([0.7, 1.0], count)).astype(np.int64) + 1
    values = rng.exponential(4.0, int(sizes.sum())) * (rng.random(int(sizes.sum())) < 0.4)
    rooms, params = Ragged(values, offsets_of(sizes)), PlacingParams()
    is_given = rng.random(total) < 0.8
    placed = place(runs, rooms, 2.0, params)
    found, some = moved(runs, placed, rooms, params), moved(runs, placed, rooms, params, is_given)
    for run in range(count):
        own, room = slice(offsets[run], offsets[run + 1]), slice(rooms.offsets[run], rooms.offsets[run + 1])
        one = naive.Run(
            *(float(each[run]) for each in (runs.started, lasted, duration)),
            *(each[own] for each in (begun, lasting, volume, runs.peak_bytes)),
        )
        at = naive.place(one, values[room], 2.0, params)
        here = np.flatnonzero(placed.is_done[own]) + offsets[run]
        assert (here - offsets[run]).tolist() == at.burst.tolist()
        assert (placed.step[here].tolist(), placed.reach[here].tolist()) == (at.step.tolist(), at.reach.tolist())
        assert placed.cost[run] == at.cost
        for many, given_ in ((found, None), (some, is_given[here])):
            taken = naive.moved(one, at, values[room], params, given_)
            assert many.volume_bytes[room].tolist() == taken.volume_bytes.tolist()
            for name in ("began", "ended", "filled", "is_given"):
                assert getattr(many, name)[here].tolist() == getattr(taken, name).tolist()


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 30))
def test_who_shares_a_step_has_another_turn_in_the_order(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 40, count)
    after = first + rng.integers(1, 20, count)
    order = rng.permutation(count)[: count - count // 5]
    turns = disjoint_turns(first, after, order)
    turn = {piece: number for number, some in enumerate(turns) for piece in some.tolist()}
    assert sorted(turn) == sorted(order.tolist())
    for early, late in combinations(order.tolist(), 2):
        if first[early] < after[late] and first[late] < after[early]:
            assert turn[early] < turn[late]

"""Placement: exact cases, the naive implementation, and costs and paths against exhaustive search."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Ragged, Reals, offsets_of
from iosig.transforms.attribution.placement import (
    Placement,
    PlacementParams,
    TakenBytes,
    _best_paths,
    _next_pauses,
    _Scenarios,
    _step_costs,
    batch_disjoint,
    place_bursts,
    take_bytes,
)
from iosig.transforms.attribution.runs import WindowedRuns
from tests.budget import examples
from tests.naive.attribution import placement as naive


def run_of(
    burst_start: list[float],
    *,
    burst_duration: float = 5.0,
    peak: float = 10.0,
    duration: float = 200.0,
    elapsed: float = 200.0,
) -> WindowedRuns:
    count = len(burst_start)
    return WindowedRuns(
        np.zeros(1),
        np.array([elapsed]),
        np.array([duration]),
        np.array([0, count]),
        np.array(burst_start),
        np.full(count, burst_duration),
        np.full(count, burst_duration * peak),
        np.full(count, peak),
    )


def single_window(room: Reals) -> Ragged:
    """Wrap the available bytes of one run."""
    return Ragged(room, np.array([0, len(room)]))


def place_one(run: WindowedRuns, room: Reals) -> Placement:
    return place_bursts(run, single_window(room), 2.0)


def take_one(run: WindowedRuns, placed: Placement, room: Reals) -> TakenBytes:
    return take_bytes(run, placed, single_window(room))


def make_available(count: int, *bursts: tuple[int, int, float]) -> Reals:
    """Available bytes with bursts given by first step, number of steps, and bytes per step."""
    room = np.zeros(count)
    for first, length, volume in bursts:
        room[first : first + length] += volume
    return room


def test_late_bursts_are_found() -> None:
    room = make_available(220, (20, 5, 10.0), (93, 5, 10.0), (171, 5, 10.0))
    run = run_of([20, 90, 160], elapsed=211)
    placed = place_one(run, room)
    assert placed.step.tolist() == [20, 93, 171]
    np.testing.assert_array_equal(take_one(run, placed, room).volume_bytes, room)


def test_slow_burst_keeps_its_volume() -> None:
    room = make_available(60, (10, 20, 2.5))
    run = run_of([10.0], elapsed=60, duration=45)
    taken = take_one(run, place_one(run, room), room).volume_bytes
    assert taken.sum() == pytest.approx(50.0)
    assert (taken <= room).all()


def test_absent_bursts_take_nothing() -> None:
    run = run_of([20, 90])
    room = make_available(201, (20, 5, 10.0))
    taken = take_one(run, place_one(run, room), room).volume_bytes
    assert taken.sum() == 50
    assert not take_one(run, place_one(run, np.zeros(201)), np.zeros(201)).volume_bytes.any()


def test_burst_ends_at_a_pause_and_needs_half_of_its_volume() -> None:
    run = run_of([20.0])
    later = make_available(201, (20, 4, 10.0), (35, 1, 10.0))
    assert take_one(run, place_one(run, later), later).volume_bytes[30:].sum() == 0
    scraps = make_available(201, (20, 2, 10.0))
    result = take_one(run, place_one(run, scraps), scraps)
    assert result.filled_ratio.tolist() == [pytest.approx(0.4)]
    assert not result.volume_bytes.any()


def test_much_longer_run_begins_without_delay() -> None:
    room = make_available(401, (20, 5, 10.0), (40, 5, 10.0), (60, 5, 10.0), (80, 5, 10.0), (100, 5, 10.0))
    placed = place_one(run_of([20.0, 40.0, 60.0], elapsed=400, duration=80), room)
    assert placed.step.tolist() == [20, 40, 60]


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 12), st.integers(1, 4))
def test_pauses_match_exhaustive_search(seed: int, rows: int, steps: int, count: int) -> None:
    is_low = np.random.default_rng(seed).random((rows, steps)) < 0.5
    result = _next_pauses(is_low, count)
    for row, step in product(range(rows), range(steps)):
        begins = (at for at in range(step, steps - count + 1) if is_low[row, at : at + count].all())
        assert result[row, step] == next(begins, steps)


def test_stopped_and_continued_runs_are_distinguished() -> None:
    burst_start = [20.0, 70.0, 90.0, 180.0]
    stopped = make_available(101, (20, 5, 10.0), (70, 5, 10.0), (90, 5, 10.0))
    assert place_one(run_of(burst_start, elapsed=100), stopped).is_done.tolist() == [True, True, True, False]
    rest = make_available(91, (60 - 50, 5, 10.0), (70, 5, 10.0))
    placed = place_one(run_of([20.0, 70.0, 120.0, 180.0], elapsed=90), rest)
    assert placed.is_done.tolist() == [False, False, True, True]
    assert placed.step[placed.is_done].tolist() == [10, 70]


def test_contention_slows_a_burst() -> None:
    run = run_of([10.0])
    room = make_available(201, (10, 20, 20.0))
    taken = take_one(run, place_one(run, room), room).volume_bytes
    assert taken.max() == pytest.approx(10 / 1.5)
    assert taken.sum() == pytest.approx(50)


def test_bursts_stay_within_the_run() -> None:
    run = run_of([0.0, 195.0])
    placed = place_one(run, make_available(201, (0, 5, 10.0), (195, 6, 10.0)))
    assert placed.step.tolist() == [0, 195]


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 6), st.sampled_from([0.0, 0.3, 2.0]))
def test_best_path_matches_exhaustive_search(seed: int, rows: int, places: int, change: float) -> None:
    costs = np.random.default_rng(seed).integers(0, 9, (rows, places)).astype(np.float64)

    def cost_of(path: tuple[int, ...]) -> float:
        return float(sum(costs[row, at] for row, at in enumerate(path)) + change * sum(abs(np.diff(path))))

    # together with another scenario of fewer rows
    padded = np.full((rows + 1, places + 2), np.inf)
    padded[:rows, :places], padded[rows] = costs, np.arange(places + 2)
    path, cost = _best_paths(padded, np.array([0, rows, rows + 1]), np.array([places - 1, places + 1]), change)
    assert cost[0] == pytest.approx(min(map(cost_of, product(range(places), repeat=rows))))
    assert cost_of(tuple(path[:rows].tolist())) == pytest.approx(cost[0])
    assert (path[rows], cost[1]) == (0, 0.0)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 8))
def test_costs_match_filling_step_by_step(seed: int, bursts: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    run = run_of([0.0] * bursts, burst_duration=3.0, peak=5.0)
    params = PlacementParams(contention_ratio=0.0)
    max_steps = rng.integers(2, 9, bursts)
    present = rng.integers(0, 7, (bursts, count + int(max_steps.max()))).astype(np.float64)
    ends = np.arange(count) + rng.integers(0, max_steps[:, None] + 1, (bursts, count))
    zero, first = np.zeros(1, np.int64), np.zeros(bursts, np.int64)
    scenarios = _Scenarios(zero, zero, zero, np.array([0, bursts]), np.arange(bursts), first, max_steps)
    result = _step_costs(run, scenarios, present, ends, params)
    for burst, shift_ in product(range(bursts), range(count)):
        taken, steps = 0.0, 0
        for step in range(int(max_steps[burst])):
            if taken >= 0.95 * 15:
                break
            taken += min(present[burst, shift_ + step], 5.0)
            steps += 1
        whole = np.minimum(present[burst, shift_ : ends[burst, shift_]], 5.0).sum()
        expected = max(np.log(max(steps, 1) / 3.0), 0.0) + params.missing_cost * max(0.0, 1 - whole / 15)
        assert result[burst, shift_] == pytest.approx(expected)


# ---- many runs


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 12))
def test_batch_of_runs_matches_naive_implementation(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    bursts, elapsed = rng.integers(0, 9, count), np.round(rng.uniform(10, 900, count), 2)
    offsets, total = offsets_of(bursts), int(bursts.sum())
    burst_duration, volume = np.round(rng.uniform(1, 30, total), 1), rng.uniform(1, 50, total)
    duration = np.round(elapsed * rng.choice([0.5, 0.97, 1.0, 1.3, 2.0], count), 2)
    burst_start = np.concatenate(
        [np.zeros(0), *(np.sort(rng.uniform(0, most, own)) for most, own in zip(duration, bursts, strict=True))]
    )
    runs = WindowedRuns(
        rng.random(count),
        elapsed,
        duration,
        offsets,
        burst_start,
        burst_duration,
        volume,
        1.2 * volume / burst_duration,
    )
    sizes = (elapsed * rng.choice([0.7, 1.0], count)).astype(np.int64) + 1
    values = rng.exponential(4.0, int(sizes.sum())) * (rng.random(int(sizes.sum())) < 0.4)
    available, params = Ragged(values, offsets_of(sizes)), PlacementParams()
    is_attributed = rng.random(total) < 0.8
    placed = place_bursts(runs, available, 2.0, params)
    everything, partial = (
        take_bytes(runs, placed, available, params),
        take_bytes(runs, placed, available, params, is_attributed),
    )
    for run in range(count):
        own, room = slice(offsets[run], offsets[run + 1]), slice(available.offsets[run], available.offsets[run + 1])
        single = naive.Run(
            *(float(field[run]) for field in (runs.started, elapsed, duration)),
            *(field[own] for field in (burst_start, burst_duration, volume, runs.peak_bytes)),
        )
        expected = naive.place_bursts(single, values[room], 2.0, params)
        here = np.flatnonzero(placed.is_done[own]) + offsets[run]
        assert (here - offsets[run]).tolist() == expected.burst.tolist()
        assert (placed.step[here].tolist(), placed.max_steps[here].tolist()) == (
            expected.step.tolist(),
            expected.max_steps.tolist(),
        )
        assert placed.cost[run] == expected.cost
        for batched, mask in ((everything, None), (partial, is_attributed[here])):
            taken = naive.take_bytes(single, expected, values[room], params, mask)
            assert batched.volume_bytes[room].tolist() == taken.volume_bytes.tolist()
            for name in ("started", "ended", "filled_ratio", "is_attributed"):
                assert getattr(batched, name)[here].tolist() == getattr(taken, name).tolist()


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 30))
def test_overlapping_intervals_keep_their_order_across_batches(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 40, count)
    after = first + rng.integers(1, 20, count)
    order = rng.permutation(count)[: count - count // 5]
    batches = batch_disjoint(first, after, order)
    batch_of = {piece: number for number, batch in enumerate(batches) for piece in batch.tolist()}
    assert sorted(batch_of) == sorted(order.tolist())
    for early, late in combinations(order.tolist(), 2):
        if first[early] < after[late] and first[late] < after[early]:
            assert batch_of[early] < batch_of[late]

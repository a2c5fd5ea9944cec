"""Likely bytes: runs during which much flows time and again, runs that are there by chance, and what is nobody's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.attribution.likely import Likely, LikelyParams, likely, spread


def shares(count: int, run: Ints, volume: Reals) -> list[float]:
    return (np.bincount(run, volume, count) / volume.sum()).tolist()


def test_who_is_there_whenever_much_flows_is_likelier_than_who_is_always_there() -> None:
    left = np.zeros(1000)
    started = np.arange(50.0, 950.0, 100.0)
    for start in started.astype(int):
        left[start : start + 10] = 5.0
    every = np.append(started, 0.0)
    ends = np.append(started + 10, 1000.0)
    found = likely(left, every, ends, np.array([0] * 9 + [1]))
    moved = np.bincount(found.run, found.volume_bytes, 10)
    assert moved[:9].sum() > 0.95 * left.sum()
    assert moved[9] < 0.05 * left.sum()


def test_of_two_of_one_application_the_one_beside_whom_it_flows_moved_more() -> None:
    left = np.zeros(400)
    left[100:160] = 3.0
    found = likely(
        left, np.array([100.0, 300.0]), np.array([160.0, 360.0]), np.array([0, 0]), LikelyParams(own_steps=10.0)
    )
    assert shares(2, found.run, found.volume_bytes) == pytest.approx([1.0, 0.0], abs=1e-6)


def test_parts_of_a_step_count_as_such_and_gaps_as_nothing() -> None:
    left = np.array([4.0, np.nan, 4.0, 4.0])
    found = likely(left, np.array([0.5]), np.array([2.25]), np.array([0]), LikelyParams(round_count=1))
    assert found.step.tolist() == [0, 1, 2]
    assert found.volume_bytes[1] == 0
    assert found.volume_bytes[0] == pytest.approx(4 * 0.5 / 1.5, rel=0.2)
    none = likely(left, np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
    assert not len(none.run)


@given(st.integers(0, 10_000))
def test_together_they_have_no_more_than_is_left(seed: int) -> None:
    rng = np.random.default_rng(seed)
    left = rng.exponential(1.0, 60) * (rng.random(60) < 0.5)
    started = rng.uniform(-5, 60, 8)
    found = likely(left, started, started + rng.uniform(0, 30, 8), rng.integers(0, 3, 8))
    assert (found.volume_bytes >= 0).all()
    assert (np.bincount(found.step, found.volume_bytes, 60) <= left * (1 + 1e-9)).all()


def test_other_runs_tell_in_which_phase_an_application_moves_much() -> None:
    """Runs of two applications are there nearly all the time; each does its bytes in a phase of its own."""
    starts = np.append(np.arange(0.0, 2200.0, 110.0), np.arange(0.0, 2340.0, 130.0))
    application = np.repeat([0, 1], [20, 18])
    bursts = [(starts[application == of].astype(int) + at)[:, None] + np.arange(5) for of, at in ((0, 30), (1, 70))]
    left = np.zeros(2500)
    for steps in bursts:
        np.add.at(left, steps, 10.0)

    def told(params: LikelyParams) -> list[float]:
        """Return in how many steps of its bursts each application has twice what the other one has."""
        found = likely(left, starts, starts + 100, application, params)
        moved = np.zeros((2, 2500))
        np.add.at(moved, (application[found.run], found.step), found.volume_bytes)
        return [float((moved[of, steps] > 2 * moved[1 - of, steps]).mean()) for of, steps in enumerate(bursts)]

    assert min(told(LikelyParams())) > 0.9
    # by the rates of runs alone they cannot be told from each other
    assert max(told(LikelyParams(first_phased_round=99))) < 0.5


def test_a_run_alone_has_no_phases_of_its_own() -> None:
    left = np.zeros(300)
    left[40:50] = 8.0
    one = np.array([0.0]), np.array([300.0]), np.array([0])
    with_phases, without = (likely(left, *one, LikelyParams(first_phased_round=number)) for number in (5, 99))
    np.testing.assert_allclose(with_phases.volume_bytes, without.volume_bytes)


def test_what_is_explained_of_other_runs_tells_in_which_phase_the_rest_is() -> None:
    """Of a run whose burst no signature found, its application's other runs know when it comes."""
    starts = np.append(np.arange(0.0, 1000.0, 100.0), 900.0)
    ends = starts + 90
    application = np.repeat([0, 1], [10, 1])
    left = np.zeros(1000)
    left[930:940] = 10.0
    runs, begins = np.arange(9), starts[:9].astype(int) + 30
    of_step = np.arange(1000) // 10
    explained = spread(runs, of_step[begins], np.full(9, 100.0), of_step)
    assert explained.step.tolist() == (begins[:, None] + np.arange(10)).ravel().tolist()

    def of_the_last(told: Likely | None) -> float:
        found = likely(left, starts, ends, application, explained=told)
        return shares(11, found.run, found.volume_bytes)[9]

    # beside it is a run of which nobody knows anything, and those of its application leave nothing
    assert of_the_last(None) < 0.1
    assert of_the_last(explained) > 0.9


def test_what_is_explained_lies_evenly_in_its_stretch_and_beside_the_grid_nowhere() -> None:
    moved = spread(np.array([1, 0, 2]), np.array([0, 1, 7]), np.array([6.0, 4.0, 5.0]), np.repeat([0, 1], [3, 2]))
    assert moved.run.tolist() == [1, 1, 1, 0, 0]
    assert moved.step.tolist() == [0, 1, 2, 3, 4]
    assert moved.volume_bytes.tolist() == [2, 2, 2, 2, 2]

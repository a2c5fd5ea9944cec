"""Runs: whose room is where, and who comes first."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.attribution.runs import Runs

RUNS = Runs(
    started=np.array([3.5, -10.0, 90.0]),
    ended=np.array([20.2, 5.0, 400.0]),
    duration=np.array([16.0, 14.0, 300.0]),
    trust=np.array([0.5, 1.0, 1.0]),
    application=np.array([0, 0, 1]),
    offsets=np.array([0, 2, 2, 3]),
    begun=np.array([1.0, 9.0, 50.0]),
    lasting=np.array([2.0, 2.0, 4.0]),
    volume_bytes=np.array([4.0, 20.0, 12.0]),
    peak_bytes=np.array([2.0, 10.0, 6.0]),
)


def test_the_window_of_a_run_holds_the_step_in_which_it_ends() -> None:
    first, after = RUNS.windows(100)
    assert first.tolist() == [3, 0, 90]
    assert after.tolist() == [22, 6, 100]


def test_runs_are_told_from_the_first_steps_of_their_rooms() -> None:
    found = RUNS.in_rooms(np.array([0, 1]), np.array([3, 0]))
    assert (found.started.tolist(), found.lasted.tolist()) == ([0.5, -10.0], [pytest.approx(16.7), 15.0])
    assert (found.duration.tolist(), found.offsets.tolist(), found.begun.tolist()) == (
        [16.0, 14.0],
        [0, 2, 2],
        [1.0, 9.0],
    )


def test_tall_and_well_known_bursts_come_first_and_runs_without_any_last() -> None:
    assert RUNS.surest_first().tolist() == [2, 0, 1]

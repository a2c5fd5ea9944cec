"""Windows of runs, and their order of placement."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.attribution.runs import Runs

RUNS = Runs(
    started=np.array([3.5, -10.0, 90.0]),
    ended=np.array([20.2, 5.0, 400.0]),
    duration=np.array([16.0, 14.0, 300.0]),
    expected_correlation=np.array([0.5, 1.0, 1.0]),
    application=np.array([0, 0, 1]),
    offsets=np.array([0, 2, 2, 3]),
    burst_start=np.array([1.0, 9.0, 50.0]),
    burst_duration=np.array([2.0, 2.0, 4.0]),
    volume_bytes=np.array([4.0, 20.0, 12.0]),
    peak_bytes=np.array([2.0, 10.0, 6.0]),
)


def test_window_includes_the_last_step_of_a_run() -> None:
    first, after = RUNS.windows(100)
    assert first.tolist() == [3, 0, 90]
    assert after.tolist() == [22, 6, 100]


def test_times_are_relative_to_windows() -> None:
    windowed = RUNS.to_windows(np.array([0, 1]), np.array([3, 0]))
    assert (windowed.started.tolist(), windowed.elapsed.tolist()) == ([0.5, -10.0], [pytest.approx(16.7), 15.0])
    assert (windowed.duration.tolist(), windowed.offsets.tolist(), windowed.burst_start.tolist()) == (
        [16.0, 14.0],
        [0, 2, 2],
        [1.0, 9.0],
    )


def test_high_and_well_known_bursts_come_first() -> None:
    assert RUNS.rank_by_distinctness().tolist() == [2, 0, 1]

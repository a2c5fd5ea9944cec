"""Draws of jobs: start, length, pace, limits, volumes, and conditional draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.arrays import Ragged
from iosig.transforms.demands import draw_stratified
from iosig.transforms.forecast.upcoming_jobs import JobDrawParams, JobDraws, UpcomingJobs, draw_exceeding, draw_jobs
from tests.budget import examples

EXACT = JobDrawParams(delay_s=0.0, volume_error=0.0)
#: a job that has run for 100 s and one that waits, with constant durations and waits
JOBS = UpcomingJobs(
    demand=np.zeros(2, np.int64),
    elapsed_s=np.array([100.0, np.nan]),
    waiting_s=np.array([np.nan, 20.0]),
    min_wait_s=np.zeros(2),
    max_wait_s=np.full(2, np.inf),
    max_duration_s=np.full(2, np.inf),
    expected_correlation=np.ones(2),
    duration_piece=np.zeros(2, np.int64),
    wait_piece=np.zeros(2, np.int64),
    durations_s=Ragged(np.array([500.0]), np.array([0, 1])),
    waits_s=Ragged(np.array([80.0]), np.array([0, 1])),
)


def draws(jobs: UpcomingJobs, signature_s: float = 500.0, params: JobDrawParams = EXACT) -> JobDraws:
    return draw_jobs(jobs, np.full(len(jobs), signature_s), 40, 0, params)


def test_running_job_continues_and_waiting_job_starts_after_its_wait() -> None:
    result = draws(JOBS)
    assert set(result.start_s[0]) == {-100.0}
    assert set(result.start_s[1]) == {60.0}
    assert result.duration_s == pytest.approx(np.full((2, 40), 500.0))
    at = result.positions_s(slice(None), np.array([0.0, 100.0, 400.0, 1000.0]))
    assert at[0, 0].tolist() == [100.0, 200.0, 500.0, 500.0]
    assert at[1, 0].tolist() == [0.0, 40.0, 340.0, 500.0]


def test_slow_run_is_stretched_evenly() -> None:
    slow = replace(JOBS, durations_s=Ragged(np.array([1000.0]), np.array([0, 1])))
    at = draws(slow).positions_s(slice(0, 1), np.array([0.0, 900.0]))
    assert at[0, 0].tolist() == [50.0, 500.0]


def test_short_run_was_stopped_or_continues_a_stopped_run() -> None:
    short = replace(JOBS, durations_s=Ragged(np.array([200.0]), np.array([0, 1])))
    result = draws(short)
    assert set(result.pace.ravel()) == {1.0}
    assert sorted(set(result.signature_start_s.ravel())) == [0.0, 300.0]
    assert (result.signature_start_s == 0.0).mean() == pytest.approx(0.5)


def test_draws_respect_limits_of_duration_and_start() -> None:
    bound = replace(
        JOBS,
        max_duration_s=np.array([150.0, 300.0]),
        min_wait_s=np.array([0.0, 70.0]),
        max_wait_s=np.array([0.0, 200.0]),
    )
    result = draws(bound)
    assert set(result.duration_s[0]) == {150.0}
    assert set(result.duration_s[1]) == {300.0}
    assert set(result.start_s[1]) == {70.0}
    assert set(draws(replace(bound, max_wait_s=np.array([0.0, 30.0]))).start_s[1]) == {70.0}


def test_uncertain_signature_varies_volume_with_mean_one() -> None:
    uncertain = replace(JOBS, expected_correlation=np.array([1.0, 0.2]))
    ratios = draw_jobs(uncertain, np.full(2, 500.0), 2000, 0, JobDrawParams(volume_error=0.5)).volume_ratio
    assert set(ratios[0]) == {1.0}
    assert ratios[1].mean() == pytest.approx(1.0, abs=0.02)
    assert np.log(ratios[1]).std() == pytest.approx(0.4, rel=0.02)


def test_excess_over_all_samples_is_memoryless() -> None:
    samples = Ragged(np.array([1.0, 2.0]), np.array([0, 2]))
    result = draw_exceeding(samples, np.zeros(1, np.int64), np.array([10.0]), draw_stratified(4000, 1, 0).T, 0.1)
    assert result.min() >= 10.0
    assert result.mean() == pytest.approx(11.0, rel=0.01)


_values = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=6)


@settings(max_examples=examples(50))
@given(
    pieces=st.lists(_values, min_size=1, max_size=4),
    queries=st.lists(st.tuples(st.integers(0, 3), st.floats(0.0, 120.0)), min_size=1, max_size=5),
)
def test_draws_stay_within_exceeding_samples(pieces: list[list[float]], queries: list[tuple[int, float]]) -> None:
    samples = Ragged(np.concatenate(pieces).astype(np.float64), np.cumsum([0, *map(len, pieces)]))
    piece_index = np.array([piece % len(pieces) for piece, _ in queries])
    minimum = np.array([value for _, value in queries])
    result = draw_exceeding(samples, piece_index, minimum, np.tile([0.01, 0.5, 0.99], (len(queries), 1)), 0.1)
    for piece, low, drawn in zip(piece_index, minimum, result, strict=True):
        exceeding = [value for value in pieces[piece] if value > low]
        assert drawn.min() >= low
        assert (np.diff(drawn) >= 0).all()
        if exceeding:
            assert drawn[0] <= np.nextafter(min(exceeding), np.inf) or len(exceeding) > 1
            assert min(exceeding) <= drawn[0] + 1e-9
            assert drawn[-1] <= max(exceeding) + 1e-9

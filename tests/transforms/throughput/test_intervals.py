"""Resampled intervals: bytes are conserved, gaps remain, and invalid times are rejected."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.throughput.intervals import StepParams, median_lengths, resample_intervals
from tests.naive.throughput import intervals as naive

_EDGES = st.lists(st.tuples(st.integers(0, 40), st.integers(-1, 9), st.integers(0, 50) | st.none()), max_size=14)


def _columns(rows: list[tuple[int, int, int | None]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    left = np.array([row[0] for row in rows], dtype=np.float64)
    right = left + np.array([row[1] for row in rows], dtype=np.float64)
    volume = np.array([np.nan if row[2] is None else row[2] for row in rows], dtype=np.float64)
    return left, right, volume


@given(st.lists(_EDGES, max_size=4))
def test_steps_match_naive_implementation(subjects: list[list[tuple[int, int, int | None]]]) -> None:
    left, right, volume = _columns([row for rows in subjects for row in rows])
    offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in subjects], dtype=np.int64)]).astype(np.int64)
    found = resample_intervals(left, right, volume, offsets)
    for subject, rows in enumerate(subjects):
        own = found.bytes_per_s.values[found.bytes_per_s.offsets[subject] : found.bytes_per_s.offsets[subject + 1]]
        assert own == pytest.approx(naive.stepped(*_columns(rows)), rel=1e-9, nan_ok=True)


def test_jitter_adds_no_step_and_preserves_bytes() -> None:
    edges = np.arange(101) * 30.0 + np.tile([0.0, 0.0002], 51)[:101]
    volume = np.arange(100.0)
    found = resample_intervals(edges[:-1], edges[1:], volume, np.array([0, 100]))
    assert len(found.bytes_per_s.values) == 100
    assert found.bytes_per_s.values.sum() / found.sampling_hz[0] == pytest.approx(volume.sum(), rel=1e-4)


def test_given_interval_sets_the_steps() -> None:
    found = resample_intervals(
        np.arange(6.0), np.arange(1.0, 7.0), np.arange(6.0), np.array([0, 6]), StepParams(interval_s=2.0)
    )
    assert found.bytes_per_s.values.tolist() == [0.5, 2.5, 4.5]
    assert found.sampling_hz.tolist() == [0.5]


def test_gaps_remain_missing() -> None:
    found = resample_intervals(
        np.array([0.0, 1.0, 5.0]), np.array([1.0, 2.0, 6.0]), np.array([3.0, 4.0, 5.0]), np.array([0, 3])
    )
    assert found.bytes_per_s.values == pytest.approx([3.0, 4.0, np.nan, np.nan, np.nan, 5.0], nan_ok=True)


def test_number_of_steps_is_limited() -> None:
    found = resample_intervals(
        np.array([0.0, 1e6]), np.array([1e-3, 1e6 + 1]), np.ones(2), np.array([0, 2]), StepParams(max_step_count=1000)
    )
    assert len(found.bytes_per_s.values) == 1000


@pytest.mark.parametrize("late", [1e300, np.inf, np.nan])
def test_unresolvable_times_have_no_steps(late: float) -> None:
    found = resample_intervals(np.array([late]), np.array([late]), np.ones(1), np.array([0, 1]))
    assert found.bytes_per_s.offsets.tolist() == [0, 0]
    assert found.sampling_hz.tolist() == [1.0]


def test_median_of_an_even_count_is_the_lower_value() -> None:
    assert median_lengths(np.array([4.0, 1.0, 2.0, 3.0, -1.0, 5.0]), np.array([0, 4, 5, 6, 6])) == pytest.approx(
        [2.0, np.nan, 5.0, np.nan], nan_ok=True
    )

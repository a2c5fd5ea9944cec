"""Periods predicted from I/O phases when they end."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.studies.scheduling.observed_periods import PHASE_COUNT, ObservedPeriods


def told(period_s: float, count: int, io_s: float, jitter: float = 0.0, job: int = 0) -> tuple[ObservedPeriods, float]:
    """Return a source that has observed `count` phases, and the start of the next phase."""
    source, generator, now_s = ObservedPeriods(), np.random.default_rng(3), 5.0
    for _ in range(count):
        source.record_phase(job, now_s, now_s + io_s, 1e9)
        now_s += period_s * (1 + jitter * generator.uniform(-1, 1))
    return source, now_s


@pytest.mark.parametrize("period_s", [0.2, 19.2, 384.0, 2e5])
def test_regular_phases_have_their_period_at_any_scale(period_s: float) -> None:
    source, now_s = told(period_s, 6, period_s / 16)
    assert source.period_s(0, now_s) == pytest.approx(period_s, rel=1e-3)


def test_jitter_hardly_changes_the_period() -> None:
    source, now_s = told(100.0, 8, 6.0, jitter=0.1)
    assert source.period_s(0, now_s) == pytest.approx(100.0, rel=0.1)


def test_new_job_has_no_period() -> None:
    source, now_s = told(100.0, 6, 6.0)
    assert source.period_s(1, now_s) is None
    assert told(100.0, 1, 6.0)[0].period_s(0, 105.0) is None


def test_previous_prediction_is_kept_without_a_new_prediction() -> None:
    source, now_s = told(100.0, 6, 6.0)
    known = source.period_s(0, now_s)
    # A single long phase fills the window, so no period is found.
    for _ in range(8):
        source.record_phase(0, now_s, now_s + 1.0, 0.0)
        now_s += 1.0
    assert source.period_s(0, now_s) == known


def test_changed_period_is_followed_within_the_window() -> None:
    source, now_s = told(100.0, 8, 6.0)
    for _ in range(8):
        source.record_phase(0, now_s, now_s + 6.0, 1e9)
        now_s += 50.0
    assert source.period_s(0, now_s) == pytest.approx(50.0, rel=1e-3)


def test_memory_is_limited_to_the_window() -> None:
    source, _ = told(10.0, 1000, 1.0)
    assert len(source._phases[0]) == PHASE_COUNT

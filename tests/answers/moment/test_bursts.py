"""Next bursts are predicted from signatures of running jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, strategies as st

from iosig.answers.advice.inputs import KnownSignature, Rates, RunningJob
from iosig.answers.moment.bursts import next_burst, predict_bursts

_AT = datetime(2026, 3, 4, 12, tzinfo=UTC)


def rates_of(bytes_per_s: Sequence[float]) -> Rates:
    return Rates(np.arange(len(bytes_per_s) + 1, dtype=np.float64), np.array(bytes_per_s, dtype=np.float64))


def naive(bytes_per_s: Sequence[float], elapsed_s: int) -> tuple[float, float] | None:
    """The next burst of a curve, found by a loop over seconds."""
    least = 0.1 * max(bytes_per_s, default=0.0)
    for second in range(elapsed_s, len(bytes_per_s)):
        if bytes_per_s[second] > least:
            begin = end = second
            while begin > 0 and bytes_per_s[begin - 1] > least:
                begin -= 1
            while end < len(bytes_per_s) and bytes_per_s[end] > least:
                end += 1
            return float(begin), float(sum(bytes_per_s[second:end]))
    return None


@given(st.lists(st.sampled_from([0.0, 1.0, 15.0, 100.0]), min_size=1, max_size=12), st.integers(0, 14))
def test_next_burst_equals_a_loop_over_seconds(bytes_per_s: list[float], elapsed_s: int) -> None:
    assert next_burst(rates_of(bytes_per_s), float(elapsed_s)) == naive(bytes_per_s, elapsed_s)


def job(
    name: str, elapsed_s: float, bytes_per_s: Sequence[float] | None, ended_s_ago: float | None = None
) -> RunningJob:
    signature = None if bytes_per_s is None else KnownSignature("a/b/1", "lake", rates_of(bytes_per_s), "curve", {})
    return RunningJob(name, "a/b/1", elapsed_s, signature, ended_s_ago)


def test_next_bursts_of_running_jobs_are_ordered_by_start() -> None:
    curve = [0.0, 0.0, 5.0, 5.0, 0.0]
    running = (
        job("late", 0, curve),
        job("under way", 3, curve),
        job("over", 4, curve),
        job("ended", 1, curve, 1.0),
        job("unknown", 1, None),
    )
    found = predict_bursts(running, _AT)
    assert [(one.job_id, one.starts_at, one.expected_bytes) for one in found] == [
        ("under way", _AT - timedelta(seconds=1), pytest.approx(5.0)),
        ("late", _AT + timedelta(seconds=2), pytest.approx(10.0)),
    ]
    assert {one.basis for one in found} == {"signature"}

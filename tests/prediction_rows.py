"""Rows of predictions for tests: whole ones, of which a test changes what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

NOON = datetime(2026, 2, 9, 12, tzinfo=UTC)
TRACE = "/scratch/ior.jsonl"
INTERVALS = (
    '[{"shortest_period_s":8.5,"typical_period_s":8.75,"longest_period_s":9.0,"probability":0.75,"evaluation_count":3}]'
)


def prediction(evaluation: int = 1, followed_id: str = TRACE, **changes: Any) -> dict[str, Any]:
    """Return a whole row of `predictions`, made a second after the one before; predicted_on follows predicted_at."""
    predicted_at = changes.get("predicted_at", NOON + timedelta(seconds=evaluation, microseconds=125))
    row: Mapping[str, Any] = {
        "predicted_on": predicted_at.date(),
        "followed_id": followed_id,
        "subject_kind": "trace",
        "cluster": None,
        "subject_id": "ior.jsonl",
        "filesystem": None,
        "direction": "write",
        "source": "client",
        "is_shared_traffic": False,
        "run_number": 1,
        "evaluation": evaluation,
        "predicted_at": predicted_at,
        "window_strategy": "adaptive",
        "window_start_s": 0.0,
        "window_end_s": 30.1,
        "sampling_hz": 10.0,
        "sample_count": 301,
        "method": "null_tested",
        "method_parameters": '{"null_tested":{"false_alarm_probability":0.01}}',
        "outcome": "periodic",
        "frequency_hz": 0.1142857142857143,
        "period_s": 8.75,
        "confidence": 0.9,
        "false_alarm_probability": 0.001,
        "shortest_period_s": 8.5,
        "longest_period_s": 9.0,
        "probability": 0.75,
        "hit_probability": 0.5,
        "intervals": INTERVALS,
        "volume_bytes": 4.0e9,
        "request_count": 400,
        "phase_count": 4,
        "last_phase_start_s": 27.5,
        "next_burst_outcome": "expected",
        "next_burst_earliest_s": 35.0,
        "next_burst_start_s": 36.25,
        "next_burst_latest_s": 37.0,
        "next_burst_low_bytes": 0.9e9,
        "next_burst_bytes": 1.0e9,
        "next_burst_high_bytes": 1.1e9,
        "change": None,
        "change_s": None,
        "phase_state": "period_1",
        "transition_cause": None,
        "events": "",
        "is_final": False,
    }
    return {**row, **changes}


def job_prediction(evaluation: int = 1, job_id: str = "7", **changes: Any) -> dict[str, Any]:
    """Return a whole row of a job that polls tell of."""
    known = {
        "subject_kind": "job",
        "cluster": "edison",
        "subject_id": job_id,
        "filesystem": "snx11025",
        "source": "server",
        "is_shared_traffic": True,
    }
    return prediction(evaluation, f"edison/{job_id} on snx11025", **known | changes)


#: what a row says where nothing is known of the period, nor of the next burst
NO_PERIOD: dict[str, Any] = {
    "outcome": "too_short",
    "frequency_hz": None,
    "period_s": None,
    "confidence": None,
    "false_alarm_probability": None,
    "shortest_period_s": None,
    "longest_period_s": None,
    "probability": None,
    "hit_probability": None,
    "intervals": "[]",
    "next_burst_outcome": "no_period",
    "next_burst_earliest_s": None,
    "next_burst_start_s": None,
    "next_burst_latest_s": None,
    "phase_state": "start",
}

"""Convert evaluations of followed inputs to rows of `predictions`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from iosig.estimates.periods import serialize_params
from iosig.transforms.predictions.intervals import FrequencyIntervals
from iosig.transforms.predictions.predictor import Evaluation, OnlineParams, finite_or_none
from iosig.warehouse.sources.predictions.lines import format_intervals

Row = dict[str, Any]

#: method of a tentative period, which the last gaps between phases give
_PHASES = "phases"


@dataclass(frozen=True, slots=True)
class Identity:
    """Columns of `predictions` that are constant for a followed input."""

    followed_id: str
    subject_kind: str
    cluster: str | None
    subject_id: str
    filesystem: str | None
    source: str
    is_shared_traffic: bool


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Context of an evaluation, with the run's number, the prediction parameters and the input's events."""

    direction: str
    run_number: int
    params: OnlineParams
    events: Sequence[str] = ()
    is_final: bool = False


#: fields of an evaluation, by column name
_ANSWER = (
    *("window_start_s", "window_end_s", "sampling_hz", "sample_count", "method", "outcome", "frequency_hz", "period_s"),
    *("confidence", "false_alarm_probability"),
)


def format_row(identity: Identity, circumstances: Circumstances, predicted_at: datetime, evaluation: Evaluation) -> Row:
    """Format an evaluation as a row of `predictions`."""
    return {
        "predicted_on": predicted_at.date(),
        **asdict(identity),
        "direction": circumstances.direction,
        "run_number": circumstances.run_number,
        "evaluation": evaluation.number,
        "predicted_at": predicted_at,
        "window_strategy": circumstances.params.strategy,
        **{name: getattr(evaluation.answer, name) for name in _ANSWER},
        "method_parameters": _serialize_params(evaluation.answer.method, circumstances.params),
        "shortest_period_s": evaluation.periods and evaluation.periods.shortest_s,
        "longest_period_s": evaluation.periods and evaluation.periods.longest_s,
        "probability": evaluation.probability,
        "hit_probability": evaluation.hit_probability,
        "intervals": format_intervals(_intervals(evaluation.intervals)),
        "volume_bytes": evaluation.volume_bytes,
        "request_count": evaluation.request_count,
        "phase_count": evaluation.phase_count,
        "last_phase_start_s": evaluation.last_phase_start_s,
        **_next_burst(evaluation),
        "change": None if evaluation.change is None else "longer" if evaluation.change.octaves > 0 else "shorter",
        "change_s": evaluation.change_s,
        "phase_state": evaluation.state,
        "transition_cause": evaluation.transition and evaluation.transition.cause,
        "events": ",".join(circumstances.events),
        "is_final": circumstances.is_final,
    }


@lru_cache(maxsize=8)
def _serialize_params(method: str, params: OnlineParams) -> str | None:
    """Return the parameters of a method as JSON, as in `periods`; None for its defaults."""
    if method == _PHASES:
        return json.dumps({_PHASES: {"agreeing_gap_count": params.agreeing_gap_count}})
    return serialize_params(method, params.detection) if params.detection else None


def _next_burst(evaluation: Evaluation) -> Row:
    burst = evaluation.burst
    return {
        "next_burst_outcome": burst.outcome,
        "next_burst_earliest_s": finite_or_none(burst.earliest_start_s),
        "next_burst_start_s": finite_or_none(burst.start_s),
        "next_burst_latest_s": finite_or_none(burst.latest_start_s),
        "next_burst_low_bytes": finite_or_none(burst.low_volume_bytes),
        "next_burst_bytes": finite_or_none(burst.volume_bytes),
        "next_burst_high_bytes": finite_or_none(burst.high_volume_bytes),
    }


def _intervals(intervals: FrequencyIntervals) -> list[Row]:
    """Return the confidence intervals of the period, most probable first."""
    ranges = [(intervals.periods(place), place) for place in range(len(intervals.probability))]
    ranges.sort(key=lambda pair: -intervals.probability[pair[1]])
    return [
        {
            "shortest_period_s": period.shortest_s,
            "typical_period_s": period.typical_s,
            "longest_period_s": period.longest_s,
            "probability": float(intervals.probability[place]),
            "evaluation_count": int(intervals.evaluation_count[place]),
        }
        for period, place in ranges
    ]

"""Build the figure data of an answer: traffic by direction and application, in steps of whole minutes."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import polars as pl

from iosig.answers.attribution.query import Answer
from iosig.estimates.columns import floats
from iosig.reports.attribution import AttributionView, DrawnTraffic
from iosig.transforms.arrays import Ints, Reals

#: approximate number of steps in a panel: with more, colors cannot be distinguished
_MAX_STEPS = 400
_MINUTE_S = 60


def build_view(answer: Answer, max_steps: int = _MAX_STEPS) -> AttributionView:
    """Build the figure data of an answer with at most `max_steps` steps."""
    minute_count = round((answer.until - answer.query.since) / timedelta(seconds=_MINUTE_S))
    step_minutes = -(-minute_count // max_steps)
    directions = [name for name in ("write", "read") if name in answer.query.directions]
    return AttributionView(
        filesystem=answer.query.filesystem,
        began=f"{answer.query.since:%Y-%m-%d %H:%M} UTC",
        step_s=float(step_minutes * _MINUTE_S),
        measured_bytes=answer.measured_bytes,
        attributed_bytes=answer.attributed_bytes,
        traffic=tuple(_traffic(answer, name, step_minutes, -(-minute_count // step_minutes)) for name in directions),
    )


def _traffic(answer: Answer, direction: str, step_minutes: int, count: int) -> DrawnTraffic:
    """Return the rates of a direction in `count` steps of `step_minutes` each."""

    def rates(frame: pl.DataFrame, column: str) -> Reals:
        places = _places(answer, frame, step_minutes)
        means: Reals = np.bincount(places, floats(frame[column]), count) / (step_minutes * _MINUTE_S)
        return means

    measured = answer.minutes.filter(direction=direction)
    is_polled = np.bincount(_places(answer, measured, step_minutes), minlength=count) > 0
    parts = answer.parts.filter(direction=direction).partition_by("application_id", as_dict=True)
    return DrawnTraffic(
        direction=direction,
        measured_bytes_per_s=np.where(is_polled, rates(measured, "measured_bytes"), np.nan),
        layers=tuple((str(name), rates(part, "attributed_bytes")) for (name,), part in sorted(parts.items())),
    )


def _places(answer: Answer, frame: pl.DataFrame, step_minutes: int) -> Ints:
    """Return the step index of each row; `minute_at` is the right edge of its minute."""
    offsets = (frame["minute_at"] - answer.query.since).dt.total_seconds().to_numpy()
    places: Ints = (offsets // _MINUTE_S - 1) // step_minutes
    return places

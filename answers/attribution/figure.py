"""What the picture of an answer shows: the traffic of each direction, and whose it was, in steps of whole minutes."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import polars as pl

from iosig.answers.attribution.query import Answer
from iosig.estimates.columns import floats
from iosig.reports.attribution import AttributionView, DrawnTraffic
from iosig.transforms.arrays import Ints, Reals

#: steps of a panel, about: more are too thin to tell their colours
_MOST_STEPS = 400
_MINUTE_S = 60


def view_of(told: Answer, most_steps: int = _MOST_STEPS) -> AttributionView:
    """Return what there is to see, in so many steps at most."""
    minute_count = round((told.until - told.asked.since) / timedelta(seconds=_MINUTE_S))
    each = -(-minute_count // most_steps)
    directions = [name for name in ("write", "read") if name in told.asked.directions]
    return AttributionView(
        filesystem=told.asked.filesystem,
        began=f"{told.asked.since:%Y-%m-%d %H:%M} UTC",
        step_s=float(each * _MINUTE_S),
        measured_bytes=told.measured_bytes,
        attributed_bytes=told.attributed_bytes,
        traffic=tuple(_traffic(told, name, each, -(-minute_count // each)) for name in directions),
    )


def _traffic(told: Answer, direction: str, each: int, count: int) -> DrawnTraffic:
    """Return a direction's rates in so many steps of so many minutes each."""

    def rates(frame: pl.DataFrame, column: str) -> Reals:
        places = _places(told, frame, each)
        found: Reals = np.bincount(places, floats(frame[column]), count) / (each * _MINUTE_S)
        return found

    measured = told.minutes.filter(direction=direction)
    is_polled = np.bincount(_places(told, measured, each), minlength=count) > 0
    parts = told.parts.filter(direction=direction).partition_by("application_id", as_dict=True)
    return DrawnTraffic(
        direction=direction,
        measured_bytes_per_s=np.where(is_polled, rates(measured, "measured_bytes"), np.nan),
        layers=tuple((str(name), rates(part, "attributed_bytes")) for (name,), part in sorted(parts.items())),
    )


def _places(told: Answer, frame: pl.DataFrame, each: int) -> Ints:
    """Return the step of each row, which has the right edge of its minute."""
    offsets = (frame["minute_at"] - told.asked.since).dt.total_seconds().to_numpy()
    places: Ints = (offsets // _MINUTE_S - 1) // each
    return places

"""What to draw of predictions: the rows as they were told, the rate as far as it is kept, the automaton."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from flows.following.followed import Followed
from flows.following.rows import Row
from transforms.online_periods import Predictor
from warehouse.contracts import frames, tables
from warehouse.errors import UsageError

if TYPE_CHECKING:
    from reports.prediction_view import PredictionView

#: rows that are kept to be drawn, of each input and direction
_MOST_DRAWN = 100_000


@dataclass(slots=True)
class Drawable:
    """Keeps the last rows of each followed input and direction, to be drawn in the end."""

    rows: dict[tuple[str, str], deque[Row]] = field(default_factory=dict)

    def add(self, rows: Sequence[Row]) -> None:
        """Take rows as they are told."""
        for row in rows:
            self.rows.setdefault((row["followed_id"], row["direction"]), deque(maxlen=_MOST_DRAWN)).append(row)

    def busiest(self) -> tuple[str, str]:
        """Return the input and direction that moved most; UsageError if there is none."""
        if not self.rows:
            raise UsageError("There is nothing to draw: no prediction was made.")
        return max(self.rows, key=lambda key: float(self.rows[key][-1]["volume_bytes"]))


def view_of(rows: Sequence[Row], predictor: Predictor, *, has_utc_clock: bool = False) -> PredictionView:
    """Return what there is to see of one input and direction: its predictions, and the rate as far as it is kept."""
    from reports.prediction_view import PredictionView

    samples, tracker = predictor.samples, predictor.tracker
    window = samples.window(predictor.origin_s, samples.until_s)
    frame = pl.DataFrame(rows, schema=frames.schema(tables.PREDICTIONS), orient="row")
    return PredictionView(
        frame,
        window.started_s + np.arange(len(window.bytes_per_s)) / window.sampling_hz,
        window.bytes_per_s,
        tracker.onset_s,
        tracker.ended_s,
        has_utc_clock=has_utc_clock,
    )


def graph_of(followed: Followed, direction: str) -> Mapping[str, Any]:
    """Return the phase automaton of one input and direction, as plain values."""
    identity = followed.identity
    told = {"followed_id": identity.followed_id, "direction": direction, "run_number": followed.run_number}
    return {**told, **followed.predictors[direction].automaton.graph()}

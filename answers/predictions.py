"""What to draw of predictions: the rows as they were told, the rate as far as it is kept, the automaton."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from iosig.reports.predictions.evaluations import PredictionView
from iosig.streams.following.followed import Followed
from iosig.streams.following.rows import Row
from iosig.transforms.predictions.predictor import EPOCH_S, Predictor
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.predictions import PREDICTIONS
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.store.journal import Journal

#: rows that are kept to be drawn, of an input and direction
_MOST_DRAWN = 100_000


def busiest(inputs: Iterable[Followed]) -> tuple[Followed, str]:
    """Return the input and direction that moved most; NothingToDo if there is none of which anything was predicted."""
    predicted = [
        (predictor.pyramid.volume_bytes, followed, direction)
        for followed in inputs
        for direction, predictor in sorted(followed.predictors.items())
        if predictor.evaluation_count and not math.isnan(predictor.pyramid.until_s)
    ]
    if not predicted:
        raise NothingToDo("There is nothing to draw: no prediction was made.")
    _, followed, direction = max(predicted, key=lambda each: each[0])
    return followed, direction


def rows_of(journal: Journal, followed: Followed, direction: str) -> list[Row]:
    """Return the last rows of one input and direction that a journal has."""
    last = {name: max(0, one.evaluation_count - _MOST_DRAWN) for name, one in followed.predictors.items()}
    found = journal.evaluations_after(followed.identity.followed_id, last)
    return [row for row in found if row["direction"] == direction]


def view_of(rows: Sequence[Row], predictor: Predictor) -> PredictionView:
    """Return what there is to see of one input and direction: its predictions, and the rate as far as it is kept."""
    pyramid, tracker = predictor.pyramid, predictor.tracker
    window = pyramid.window(predictor.origin_s, pyramid.until_s)
    frame = pl.DataFrame(rows, schema=frames.schema(PREDICTIONS), orient="row")
    return PredictionView(
        frame,
        window.started_s + np.arange(len(window.bytes_per_s)) / window.sampling_hz,
        window.bytes_per_s,
        tracker.onset_s,
        tracker.ended_s,
        has_utc_clock=predictor.origin_s >= EPOCH_S,
        graph=predictor.automaton.graph(),
    )


def graph_of(followed: Followed, direction: str) -> Mapping[str, Any]:
    """Return the phase automaton of one input and direction, as plain values."""
    identity = followed.identity
    told = {"followed_id": identity.followed_id, "direction": direction, "run_number": followed.run_number}
    return {**told, **followed.predictors[direction].automaton.graph()}

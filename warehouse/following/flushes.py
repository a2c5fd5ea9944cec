"""What a followed input hands over at a time: the requests that are new, and up to when all is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

#: what may have happened to an input since the flush before; see `Flush`
EVENTS = ("replaced", "rotated", "truncated", "refused", "gap", "end")


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Requests (n) of one direction, in any order.

    start_s, end_s (n): on the run's own clock, finite, none ends before it begins. volume_bytes (n): NaN where
    the trace does not tell the size. Of polls, each interval of a controller is a request.
    """

    start_s: Reals
    end_s: Reals
    volume_bytes: Reals


@dataclass(frozen=True, slots=True, eq=False)
class Flush:
    """What is new in a followed input; one evaluation follows each flush, for each direction that has moves.

    moves: by direction (`read`, `write`, `unstated`); a direction without requests is not there. until_s: the latest
    time of the run's own clock that the flush tells of; NaN where it tells of none. measured: of polls, the intervals
    (k, 2) of the run's clock that were measured; None where, as in a trace, all time up to `until_s` is known.
    position: where to go on after this flush, plain values that JSON can hold. events: what happened to the input
    before it (`EVENTS`): it was `replaced` by another file, `rotated` (a file that goes on in a new one), `truncated`
    (what was not read is lost), lines were `refused`, polls have a `gap`, the run is at its `end`. refused: why lines
    were, as (line, reason).
    """

    moves: Mapping[str, Moves]
    until_s: float
    position: Mapping[str, Any]
    measured: Reals | None = None
    events: tuple[str, ...] = ()
    refused: tuple[tuple[int, str], ...] = field(default=())

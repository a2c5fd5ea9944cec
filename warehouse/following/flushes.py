"""Define flushes: the new requests of a followed input, and the time up to which the input is complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

#: events of an input since the previous flush; see `Flush`
EVENTS = ("replaced", "rotated", "truncated", "refused", "gap", "end")


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Requests (n) in one direction, in any order.

    start_s, end_s (n): finite, on the run's own clock, start_s <= end_s. volume_bytes (n): NaN if the trace has no
    size. In polls, each interval of a controller is a request.
    """

    start_s: Reals
    end_s: Reals
    volume_bytes: Reals


@dataclass(frozen=True, slots=True, eq=False)
class Flush:
    """New data of a followed input; each flush is evaluated once per direction with requests.

    moves: by direction (`read`, `write`, `unstated`); directions without requests are absent. until_s: the latest time
    in the flush on the run's own clock; NaN if it has none. measured: the measured intervals (k, 2) of polls on the
    run's clock; None for traces, which are complete up to `until_s`. position: where to resume after this flush, as
    JSON-compatible values. events: events of the input before this flush (`EVENTS`): it was `replaced` by another file,
    `rotated` (continues in a new file), `truncated` (unread data is lost), lines were `refused`, polls have a `gap`,
    the run is at its `end`. refused: refused lines, as (line, reason).
    """

    moves: Mapping[str, Moves]
    until_s: float
    position: Mapping[str, Any]
    measured: Reals | None = None
    events: tuple[str, ...] = ()
    refused: tuple[tuple[int, str], ...] = field(default=())

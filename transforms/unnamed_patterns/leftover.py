"""What is left of traffic when what is explained and what flows always are gone."""

from __future__ import annotations

import math

import numpy as np

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.attribution.explaining import ExplainParams, room_of

#: steps that last whole shares of a minute
_STEPS_S = (5.0, 6.0, 10.0, 12.0, 15.0, 20.0, 30.0)
_MINUTE_S = 60.0
#: of a step less than this share was polled: it counts as not measured
_LEAST_POLLED = 0.5
#: of a stretch so much may be explained, and the rest is still what it was
_MOST_EXPLAINED = 0.1


def left_over(
    traffic_bytes: Reals, explained_bytes: Reals, stretch: Ints, interval_s: float, params: ExplainParams | None = None
) -> Reals:
    """Return the bytes of each step that nobody explains and that do not flow always.

    NaN where nothing was measured, and in stretches of which much is explained: nobody knows which of their bytes are
    left. traffic_bytes (steps): NaN where nothing was measured. explained_bytes (stretches): what is explained of each
    stretch of steps, a minute for instance; stretch (steps): in which one each step lies.
    """
    room = room_of(traffic_bytes, interval_s, params)
    there = np.bincount(stretch, room, len(explained_bytes))
    is_left = explained_bytes <= _MOST_EXPLAINED * there
    return np.where(np.isfinite(traffic_bytes) & is_left[stretch], room, np.nan)


def left_in_proportion(
    traffic_bytes: Reals, explained_bytes: Reals, stretch: Ints, interval_s: float, params: ExplainParams | None = None
) -> Reals:
    """Return the same of all steps: what is explained of a stretch is taken from its steps by what flowed in them."""
    room = room_of(traffic_bytes, interval_s, params)
    there = np.bincount(stretch, room, len(explained_bytes))
    taken = np.divide(explained_bytes, there, out=np.ones_like(there), where=there > 0)
    return np.where(np.isfinite(traffic_bytes), room * np.maximum(1.0 - taken, 0.0)[stretch], np.nan)


def step_for(interval_s: float) -> float:
    """Return how long a step lasts in which polls that come so often are looked at: five seconds at least.

    Shorter ones show the restlessness of servers, and no more of bursts.
    """
    whole_minutes = _MINUTE_S * math.ceil(interval_s / _MINUTE_S - 1e-9)
    return next((each for each in _STEPS_S if each >= interval_s - 1e-6), whole_minutes)


def on_steps(edge_s: Reals, interval_s: Reals, volume_bytes: Reals, began_s: float, step_s: float) -> Reals:
    """Return the bytes of polls in steps on end, NaN where less than half of a step was polled.

    edge_s (polls): right edges, in order; interval_s (polls): how long each covers; volume_bytes (polls): NaN where
    nothing was counted. began_s: when the first step begins. Bytes of a poll that lies over several steps are shared by
    time.
    """
    is_known = np.isfinite(volume_bytes)
    edge_s, interval_s, volume_bytes = edge_s[is_known], interval_s[is_known], volume_bytes[is_known]
    if not len(edge_s):
        return np.zeros(0)
    count = int(np.ceil((edge_s[-1] - began_s) / step_s - 1e-9))
    edges = np.linspace(began_s, began_s + count * step_s, count + 1)
    # polls that overlap, as they should not, begin where the one before ended
    started_s: Reals = np.maximum(edge_s - interval_s, np.append(-np.inf, edge_s[:-1]))
    times = np.stack([started_s, edge_s], axis=1).ravel()
    polled, moved = (_passed(times, each, edges) for each in (edge_s - started_s, volume_bytes))
    return np.where(polled >= _LEAST_POLLED * step_s, moved * step_s / np.maximum(polled, 1e-9), np.nan)


def _passed(times: Reals, each: Reals, edges: Reals) -> Reals:
    """Return how much passes between edges, of which `each` passes between every second pair of times."""
    total = np.stack([np.cumsum(each) - each, np.cumsum(each)], axis=1).ravel()
    passed: Reals = np.diff(np.interp(edges, times, total))
    return passed

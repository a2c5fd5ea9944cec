"""What is left of traffic when what is explained and what flows always are gone."""

from __future__ import annotations

import numpy as np

from transforms.arrays import Ints, Reals
from transforms.attribution.explaining import ExplainParams, room_of

#: of a step less than this share was polled: it counts as not measured
_LEAST_POLLED = 0.5


def left_over(
    traffic_bytes: Reals, explained_bytes: Reals, stretch: Ints, interval_s: float, params: ExplainParams | None = None
) -> Reals:
    """Return the bytes of each step that nobody explains and that do not flow always; NaN where nothing was measured.

    traffic_bytes (steps): NaN where nothing was measured. explained_bytes (stretches): what is explained of each
    stretch of steps, a minute for instance; stretch (steps): in which one each step lies. Explained bytes are taken
    from the steps of their stretch in proportion to what these have, and never more than there is.
    """
    room = room_of(traffic_bytes, interval_s, params)
    there = np.bincount(stretch, room, len(explained_bytes))
    kept = 1.0 - np.minimum(np.divide(explained_bytes, there, out=np.ones_like(there), where=there > 0), 1.0)
    return np.where(np.isfinite(traffic_bytes), room * kept[stretch], np.nan)


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

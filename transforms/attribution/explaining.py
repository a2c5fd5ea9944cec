"""Explaining: what each run moved of a file system's traffic, by the signatures of all that were there.

Each run takes what its bursts find room for (see `placing`), tall and well known ones first; then each is placed anew
in what all others leave. So the runs together never have more than was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from transforms.arrays import Ints, Reals
from transforms.attribution.placing import Moved, Placed, PlacingParams, moved, place
from transforms.attribution.runs import Runs


@dataclass(frozen=True, slots=True)
class ExplainParams:
    """How traffic is explained; the values are ours.

    round_count: how often each run is placed. background_s, background_quantile: what flows all the time is this
    quantile of the traffic in stretches of that length, and nobody's burst.
    """

    placing: PlacingParams = field(default_factory=PlacingParams)
    round_count: int = 2
    background_s: float = 7200.0
    background_quantile: float = 0.05


@dataclass(frozen=True, slots=True)
class Placements:
    """Where runs did their bursts (m), by run and burst: the run, and which of its bursts it is.

    began, ended (m): when it had its bytes, in steps. filled (m): the share of its volume that it found.
    """

    run: Ints
    burst: Ints
    began: Reals
    ended: Reals
    filled: Reals

    @classmethod
    def of(cls, found: Mapping[int, tuple[Placed, Moved]], first: Ints) -> Placements:
        """Return what was found of some runs whose rooms begin with these steps."""
        runs = sorted(found)
        placed, done = [found[run][0] for run in runs], [found[run][1] for run in runs]
        run = np.repeat(np.array(runs, np.int64), [len(one.burst) for one in placed])
        burst = np.concatenate([np.zeros(0, np.int64), *(one.burst for one in placed)])
        began, ended, filled = (
            np.concatenate([np.zeros(0), *(getattr(one, name) for one in done)])
            for name in ("began", "ended", "filled")
        )
        return cls(run, burst, began + first[run], ended + first[run], filled)


@dataclass(frozen=True, slots=True)
class Explained:
    """What runs moved: the run, the step and the bytes of each row (k), by run and step.

    certainty (n): how sure each run's bytes are, 0 to 1: by its signature's trust, and by what its places cost.
    room_bytes (steps): the traffic without what flows all the time, 0 where nothing was measured. placements: where
    the runs' bursts lie.
    """

    run: Ints
    step: Ints
    volume_bytes: Reals
    certainty: Reals
    room_bytes: Reals
    placements: Placements


def explain(traffic_bytes: Reals, runs: Runs, interval_s: float, params: ExplainParams | None = None) -> Explained:
    """Explain traffic (bytes in each step of a file system and direction; NaN where nothing was measured) by runs."""
    params = params or ExplainParams()
    room = room_of(traffic_bytes, interval_s, params)
    left = room.copy()
    first, after = runs.windows(len(room))
    own = [left[start:end] for start, end in zip(first.tolist(), after.tolist(), strict=True)]
    taken = [np.zeros(len(each)) for each in own]
    cost = np.full(len(runs), np.inf)
    found: dict[int, tuple[Placed, Moved]] = {}
    # what one run takes the next one cannot: the order is the method's own
    order = runs.surest_first()
    for run in np.tile(order[after[order] > first[order]], params.round_count).tolist():
        own[run] += taken[run]
        meant = runs.one(run, int(first[run]))
        placed = place(meant, own[run], interval_s, params.placing)
        done = moved(meant, placed, own[run], params.placing)
        taken[run], cost[run], found[run] = done.volume_bytes, placed.cost, (placed, done)
        own[run] -= taken[run]
    return _rows(first, taken, runs.trust * np.exp(-cost), room, Placements.of(found, first))


def room_of(traffic_bytes: Reals, interval_s: float, params: ExplainParams | None = None) -> Reals:
    """Return what bursts may have of each step: the traffic without what flows all the time."""
    params = params or ExplainParams()
    count = max(1, round(params.background_s / interval_s))
    room = np.zeros(len(traffic_bytes))
    for start in range(0, len(room), count):
        here = traffic_bytes[start : start + count]
        known = here[np.isfinite(here)]
        level = np.quantile(known, params.background_quantile) if known.size else 0.0
        room[start : start + count] = np.maximum(np.nan_to_num(here - level), 0.0)
    return room


def _rows(first: Ints, taken: list[Reals], certainty: Reals, room: Reals, placements: Placements) -> Explained:
    counts = np.array([len(each) for each in taken], np.int64)
    values = np.concatenate([np.zeros(0), *taken])
    run = np.repeat(np.arange(len(taken)), counts)
    step = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts - first, counts)
    has = values > 0
    return Explained(run[has], step[has], values[has], certainty, room, placements)


def ranges(certainty: Reals) -> tuple[Reals, Reals]:
    """Return what the bytes of a run with some certainty (0 to 1) are to be multiplied by for a range that holds them.

    Of a quarter of an hour or more it holds them four times of five: measured on simulated sites (seeds 11 to 13, at
    half, the usual, three and six times the usual foreign traffic), with signatures found in the same traffic.
    """
    doubt = 1.0 - certainty
    return 0.9 - 0.1 * doubt, 1.0 + 1.1 * doubt**1.4

"""Explaining: what each run moved of a file system's traffic, by the signatures of all that were there.

Each run takes what its bursts find room for (see `placing`), tall and well known ones first. A burst loses no byte to
others, so a signature of whose bursts many are not there is not what its runs do: these have nothing. Then each is
placed anew in what all others leave. So the runs together never have more than was measured. In the end a burst that is
too doubtful has nothing: where its application's bursts fit badly, or as much flows just before and after it. Nobody
else is given that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from transforms.arrays import Bools, Ints, Reals, places_of
from transforms.attribution.placing import Moved, Placed, PlacingParams, moved, place
from transforms.attribution.runs import Runs


@dataclass(frozen=True, slots=True)
class ExplainParams:
    """How traffic is explained; the values are ours.

    round_count: how often each run is placed. background_s, background_quantile: what flows all the time is this
    quantile of the traffic in stretches of that length, and nobody's burst. least_found: a signature of whose bursts
    less than this share is found in all runs together is not what they do; prior_found: beside so many that count as
    found, for few bursts tell little. Both were chosen on simulated sites (seeds 1 and 2, stormy). most_doubt: a burst
    of more doubt has nothing; its doubt is what the places of its application's bursts cost in the mean, and
    beside_doubt times how much flows just before and after it, in multiples of its peak, twice at most: so far as a
    burst lasts, and least_beside_s at least. These were chosen on simulated sites (seeds 1 to 4, stormy).
    """

    placing: PlacingParams = field(default_factory=PlacingParams)
    round_count: int = 2
    background_s: float = 7200.0
    background_quantile: float = 0.05
    least_found: float = 0.7
    prior_found: float = 8.0
    most_doubt: float = 1.25
    beside_doubt: float = 0.8
    least_beside_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Placements:
    """Where runs did their bursts (m), by run and burst: the run, and which of its bursts it is.

    step (m): where it was placed. began, ended (m): when it had its bytes, in steps. filled (m): the share of its
    volume that it found; 0 where its application's signature is not borne out. is_given (m): whether the run has that:
    not where it is too little, or too doubtful.
    """

    run: Ints
    burst: Ints
    step: Ints
    began: Reals
    ended: Reals
    filled: Reals
    is_given: Bools

    @classmethod
    def of(cls, found: Mapping[int, tuple[Placed, Moved]], first: Ints) -> Placements:
        """Return what was found of some runs whose rooms begin with these steps."""
        runs = sorted(found)
        placed, done = [found[run][0] for run in runs], [found[run][1] for run in runs]
        run = np.repeat(np.array(runs, np.int64), [len(one.burst) for one in placed])
        burst, step = (
            np.concatenate([np.zeros(0, np.int64), *(getattr(one, name) for one in placed)])
            for name in ("burst", "step")
        )
        began, ended, filled = (
            np.concatenate([np.zeros(0), *(getattr(one, name) for one in done)])
            for name in ("began", "ended", "filled")
        )
        is_given = np.concatenate([np.zeros(0, np.bool_), *(one.is_given for one in done)])
        return cls(run, burst, step + first[run], began + first[run], ended + first[run], filled, is_given)


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
    laying = _Laying.of(room, runs, interval_s, params)
    # what one run takes the next one cannot: the order is the method's own
    order = runs.surest_first()
    order = order[laying.after[order] > laying.first[order]]
    for number in range(params.round_count):
        laying.lay(order)
        if not number:
            is_borne_out = laying.borne_out(np.isfinite(traffic_bytes))
            laying.withdraw(order[~is_borne_out[order]])
            order = order[is_borne_out[order]]
    laying.withhold(room, np.isfinite(traffic_bytes))
    return laying.explained(room)


@dataclass(slots=True)
class _Laying:
    """Runs that are laid on what is left of the room, one after the other.

    first, after (n): the steps of each run's room; own: the room of each that nobody has, a view of what all share;
    taken, cost, found: what each has of it, what its places cost, and where its bursts lie.
    """

    runs: Runs
    interval_s: float
    params: ExplainParams
    first: Ints
    after: Ints
    own: list[Reals]
    taken: list[Reals]
    cost: Reals
    found: dict[int, tuple[Placed, Moved]]

    @classmethod
    def of(cls, room: Reals, runs: Runs, interval_s: float, params: ExplainParams) -> _Laying:
        """Return runs of whom none is laid yet."""
        first, after = runs.windows(len(room))
        left = room.copy()
        own = [left[start:end] for start, end in zip(first.tolist(), after.tolist(), strict=True)]
        taken = [np.zeros(len(each)) for each in own]
        return cls(runs, interval_s, params, first, after, own, taken, np.full(len(runs), np.inf), {})

    def lay(self, order: Ints) -> None:
        """Lay runs in that order, each in what all others leave."""
        placing = self.params.placing
        for run in order.tolist():
            own = self.own[run]
            own += self.taken[run]
            meant = self.runs.one(run, int(self.first[run]))
            placed = place(meant, own, self.interval_s, placing)
            done = moved(meant, placed, own, placing)
            self.taken[run], self.cost[run], self.found[run] = done.volume_bytes, placed.cost, (placed, done)
            own -= done.volume_bytes

    def borne_out(self, is_known: Bools) -> Bools:
        """Return of which runs (n) the traffic bears the signature out: most bursts of its runs are there.

        is_known (steps): where something was measured: of a burst elsewhere nobody knows.
        """
        placed, runs = Placements.of(self.found, self.first), self.runs
        is_seen = self._is_seen(placed, is_known)
        application = runs.application[placed.run[is_seen]]
        is_there = placed.filled[is_seen] >= self.params.placing.least_filled
        count, prior = int(runs.application.max(initial=-1)) + 1, self.params.prior_found
        share = (np.bincount(application, is_there, count) + prior) / (np.bincount(application, None, count) + prior)
        found: Bools = share[runs.application] >= self.params.least_found
        return found

    def _is_seen(self, placed: Placements, is_known: Bools) -> Bools:
        """Return of which bursts (m) it was measured whether they are there."""
        lasting = self.runs.lasting[self.runs.offsets[placed.run] + placed.burst]
        known, steps = np.concatenate([[0.0], np.cumsum(is_known)]), np.arange(len(is_known) + 1)
        seen = np.interp(placed.step + lasting, steps, known) - np.interp(placed.step, steps, known)
        found: Bools = seen > lasting - 1e-6
        return found

    def withdraw(self, runs: Ints) -> None:
        """Take from runs what they have: their bursts are not there."""
        for run in runs.tolist():
            self.own[run] += self.taken[run]
            placed, done = self.found[run]
            nothing, count = np.zeros_like(done.volume_bytes), len(placed.burst)
            done = replace(done, volume_bytes=nothing, filled=np.zeros(count), is_given=np.zeros(count, np.bool_))
            self.taken[run], self.cost[run], self.found[run] = nothing, np.inf, (placed, done)

    def withhold(self, room: Reals, is_known: Bools) -> None:
        """Take from runs what bursts have of which it is too doubtful that they were there: nobody has it then."""
        placements = Placements.of(self.found, self.first)
        is_given = placements.is_given & (self._doubt(placements, room, is_known) <= self.params.most_doubt)
        for run in np.unique(placements.run[placements.is_given & ~is_given]).tolist():
            placed, _ = self.found[run]
            # what all others left stays as it is: nobody is given what is taken here
            there = self.own[run] + self.taken[run]
            meant = self.runs.one(run, int(self.first[run]))
            done = moved(meant, placed, there, self.params.placing, is_given[placements.run == run])
            self.taken[run], self.found[run] = done.volume_bytes, (placed, done)

    def _doubt(self, placed: Placements, room: Reals, is_known: Bools) -> Reals:
        """Return how doubtful it is that bursts were there (m): they fit badly, or much flows beside them, too."""
        runs, params = self.runs, self.params
        at, application = runs.offsets[placed.run] + placed.burst, runs.application[placed.run]
        # what a run's places cost tells nothing where part of it was not measured, or where it has nothing already
        is_told = np.isfinite(self.cost)
        is_told[placed.run[~self._is_seen(placed, is_known)]] = False
        count = np.bincount(application, is_told[placed.run]) + params.prior_found
        mean = np.bincount(application, np.where(is_told, self.cost, 0.0)[placed.run]) / count
        beside = np.maximum(runs.lasting[at], params.least_beside_s / self.interval_s)
        total, steps = np.concatenate([[0.0], np.cumsum(room)]), np.arange(len(room) + 1)
        before = np.interp(placed.began, steps, total) - np.interp(placed.began - beside, steps, total)
        after = np.interp(placed.ended + beside, steps, total) - np.interp(placed.ended, steps, total)
        height = (before + after) / (2 * beside * runs.peak_bytes[at])
        found: Reals = mean[application] + params.beside_doubt * np.minimum(height, 2.0)
        return found

    def explained(self, room: Reals) -> Explained:
        """Return what runs have, by run and step."""
        counts = np.array([len(each) for each in self.taken], np.int64)
        values = np.concatenate([np.zeros(0), *self.taken])
        run, step = np.repeat(np.arange(len(counts)), counts), places_of(self.first, counts)
        has = values > 0
        certainty = self.runs.trust * np.exp(-self.cost)
        placements = Placements.of(self.found, self.first)
        return Explained(run[has], step[has], values[has], certainty, room, placements)


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


def ranges(certainty: Reals) -> tuple[Reals, Reals]:
    """Return what the bytes of a run with some certainty (0 to 1) are to be multiplied by for a range that holds them.

    Of a quarter of an hour or more it holds them four times of five: measured on simulated sites (seeds 11 to 13, at
    half, the usual, three and six times the usual foreign traffic), with signatures found in the same traffic.
    """
    doubt = 1.0 - certainty
    return 0.9 - 0.1 * doubt, 1.0 + 1.1 * doubt**1.4

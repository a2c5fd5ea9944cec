"""Explaining: what each run moved of a file system's traffic, by the signatures of all that were there.

Each run takes what its bursts find room for (see `placing`), tall and well known ones first. A burst loses no byte to
others, so a signature of whose bursts many are not there is not what its runs do: these have nothing. Then each is
placed anew in what all others leave. So the runs together never have more than was measured. In the end a burst that is
too doubtful has nothing: where its application's bursts fit badly, or as much flows just before and after it. Nobody
else is given that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, concatenate_pieces, offsets_of, places_of
from iosig.transforms.attribution.placing import Moved, Placed, PlacingParams, disjoint_turns, moved, place
from iosig.transforms.attribution.runs import InRooms, Runs


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
    (found,) = explain_each([(traffic_bytes, runs)], interval_s, params)
    return found


def explain_each(
    traffics: Sequence[tuple[Reals, Runs]], interval_s: float, params: ExplainParams | None = None
) -> list[Explained]:
    """Explain several traffics of one grid, each by runs of its own, as `explain` does, side by side."""
    params = params or ExplainParams()
    layings = [_Laying.of(traffic_bytes, runs, interval_s, params) for traffic_bytes, runs in traffics]
    orders = [laying.order() for laying in layings]
    for number in range(params.round_count):
        _lay(layings, orders, interval_s, params.placing)
        if not number:
            orders = [laying.borne_out(order) for laying, order in zip(layings, orders, strict=True)]
    for laying in layings:
        laying.withhold()
    return [laying.explained() for laying in layings]


def _lay(layings: Sequence[_Laying], orders: Sequence[Ints], interval_s: float, placing: PlacingParams) -> None:
    """Lay the runs of several traffics in their orders, each in what all others of its traffic leave."""
    turns = [disjoint_turns(laying.first, laying.after, order) for laying, order in zip(layings, orders, strict=True)]
    for turn in zip_longest(*turns, fillvalue=np.zeros(0, np.int64)):
        some = list(zip(layings, turn, strict=True))
        meant = concatenate_pieces([laying.meant(runs) for laying, runs in some])
        rooms = concatenate_pieces([laying.rooms(runs) for laying, runs in some])
        placed = place(meant, rooms, interval_s, placing)
        done = moved(meant, placed, rooms, placing)
        edges = offsets_of([len(runs) for runs in turn])
        for (laying, runs), first, last in zip(some, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            bursts = slice(meant.offsets[first], meant.offsets[last])
            steps = slice(rooms.offsets[first], rooms.offsets[last])
            laying.put(runs, placed.part(slice(first, last), bursts))
            laying.have(runs, done.part(bursts, steps), rooms.values[steps])


@dataclass(frozen=True, slots=True)
class _Laying:
    """Runs that are laid on what is left of the room, one after the other; those that share no step side by side.

    is_known (steps): where something was measured; room (steps): as in `room_of`. first, after (n): the steps of each
    run's room; left (steps): what nobody has. taken: what each run has of each of its steps, run after run, offsets
    (n + 1) of them. placed: where their bursts lie; the cost is infinite of one that has nothing. Per burst (m): began,
    ended, filled, is_given: as in `Moved`.
    """

    runs: Runs
    interval_s: float
    params: ExplainParams
    is_known: Bools
    room: Reals
    first: Ints
    after: Ints
    left: Reals
    offsets: Ints
    taken: Reals
    placed: Placed
    began: Reals
    ended: Reals
    filled: Reals
    is_given: Bools

    @classmethod
    def of(cls, traffic_bytes: Reals, runs: Runs, interval_s: float, params: ExplainParams) -> _Laying:
        """Return runs of whom none is laid yet."""
        room = room_of(traffic_bytes, interval_s, params)
        first, after = runs.windows(len(room))
        offsets, count = offsets_of(after - first), len(runs.begun)
        placed, taken = Placed.none(count, np.full(len(runs), np.inf)), np.zeros(int(offsets[-1]))
        began, ended, filled = np.zeros((3, count))
        of_traffic = np.isfinite(traffic_bytes), room, first, after, room.copy()
        of_bursts = placed, began, ended, filled, np.zeros(count, np.bool_)
        return cls(runs, interval_s, params, *of_traffic, offsets, taken, *of_bursts)

    def order(self) -> Ints:
        """Return who is laid first: what one run takes the next one cannot, so the order is the method's own."""
        order = self.runs.surest_first()
        return order[self.after[order] > self.first[order]]

    def meant(self, runs: Ints) -> InRooms:
        """Return what some runs mean to do, in their rooms."""
        return self.runs.in_rooms(runs, self.first[runs])

    def rooms(self, runs: Ints) -> Ragged:
        """Return what some runs have, and what nobody has of their steps."""
        values = self.left[self._steps(runs)] + self.taken[self._places(runs)]
        return Ragged(values, offsets_of(self.after[runs] - self.first[runs]))

    def put(self, runs: Ints, placed: Placed) -> None:
        """Put the bursts of some runs where they are placed."""
        at = self.runs.places_in(runs)
        for name in ("is_done", "step", "reach"):
            getattr(self.placed, name)[at] = getattr(placed, name)
        self.placed.cost[runs] = placed.cost

    def have(self, runs: Ints, done: Moved, rooms: Reals | None = None) -> None:
        """Have some runs what their bursts took of their rooms, and nobody else; without rooms, others left that."""
        at = self.runs.places_in(runs)
        self.taken[self._places(runs)] = done.volume_bytes
        self.began[at], self.ended[at], self.filled[at] = done.began, done.ended, done.filled
        self.is_given[at] = done.is_given
        if rooms is not None:
            self.left[self._steps(runs)] = rooms - done.volume_bytes

    def _steps(self, runs: Ints) -> Ints:
        """Return the steps of some runs' rooms, run after run."""
        return places_of(self.first[runs], self.after[runs] - self.first[runs])

    def _places(self, runs: Ints) -> Ints:
        """Return where what some runs have is, run after run."""
        return places_of(self.offsets[:-1][runs], self.after[runs] - self.first[runs])

    def placements(self) -> Placements:
        """Return where the runs' bursts lie."""
        at = np.flatnonzero(self.placed.is_done)
        run = self.runs.owner[at]
        first = self.first[run]
        return Placements(
            run,
            at - self.runs.offsets[run],
            self.placed.step[at] + first,
            self.began[at] + first,
            self.ended[at] + first,
            self.filled[at],
            self.is_given[at],
        )

    def borne_out(self, order: Ints) -> Ints:
        """Return those of an order whose signatures the traffic bears out; others have nothing any more.

        Most bursts of an application's runs are there then; of a burst where nothing was measured nobody knows.
        """
        placed, runs = self.placements(), self.runs
        is_seen = self._is_seen(placed)
        application = runs.application[placed.run[is_seen]]
        is_there = placed.filled[is_seen] >= self.params.placing.least_filled
        count, prior = int(runs.application.max(initial=-1)) + 1, self.params.prior_found
        share = (np.bincount(application, is_there, count) + prior) / (np.bincount(application, None, count) + prior)
        is_borne_out = share[runs.application[order]] >= self.params.least_found
        self._withdraw(order[~is_borne_out])
        return order[is_borne_out]

    def _is_seen(self, placed: Placements) -> Bools:
        """Return of which bursts (m) it was measured whether they are there."""
        lasting = self.runs.lasting[self.runs.offsets[placed.run] + placed.burst]
        known, steps = np.concatenate([[0.0], np.cumsum(self.is_known)]), np.arange(len(self.is_known) + 1)
        seen = np.interp(placed.step + lasting, steps, known) - np.interp(placed.step, steps, known)
        found: Bools = seen > lasting - 1e-6
        return found

    def _withdraw(self, runs: Ints) -> None:
        """Take from runs what they have: their bursts are not there."""
        for run in runs.tolist():
            own = slice(self.offsets[run], self.offsets[run + 1])
            self.left[self.first[run] : self.after[run]] += self.taken[own]
            self.taken[own] = 0.0
        at = self.runs.places_in(runs)
        self.filled[at], self.is_given[at], self.placed.cost[runs] = 0.0, False, np.inf

    def withhold(self) -> None:
        """Take from runs what bursts have of which it is too doubtful that they were there: nobody has it then."""
        placements = self.placements()
        is_given = np.zeros(len(self.is_given), np.bool_)
        is_sure = placements.is_given & (self._doubt(placements) <= self.params.most_doubt)
        is_given[self.placed.is_done] = is_sure
        runs = np.unique(placements.run[placements.is_given & ~is_sure])
        at, placed = self.runs.places_in(runs), self.placed
        own = Placed(placed.is_done[at], placed.step[at], placed.reach[at], placed.cost[runs])
        # what all others left stays as it is: nobody is given what is taken here
        self.have(runs, moved(self.meant(runs), own, self.rooms(runs), self.params.placing, is_given[at]))

    def _doubt(self, placed: Placements) -> Reals:
        """Return how doubtful it is that bursts were there (m): they fit badly, or much flows beside them, too."""
        runs, params = self.runs, self.params
        at, application = runs.offsets[placed.run] + placed.burst, runs.application[placed.run]
        # what a run's places cost tells nothing where part of it was not measured, or where it has nothing already
        is_told = np.isfinite(self.placed.cost)
        is_told[placed.run[~self._is_seen(placed)]] = False
        count = np.bincount(application, is_told[placed.run]) + params.prior_found
        mean = np.bincount(application, np.where(is_told, self.placed.cost, 0.0)[placed.run]) / count
        beside = np.maximum(runs.lasting[at], params.least_beside_s / self.interval_s)
        total, steps = np.concatenate([[0.0], np.cumsum(self.room)]), np.arange(len(self.room) + 1)
        before = np.interp(placed.began, steps, total) - np.interp(placed.began - beside, steps, total)
        after = np.interp(placed.ended + beside, steps, total) - np.interp(placed.ended, steps, total)
        height = (before + after) / (2 * beside * runs.peak_bytes[at])
        found: Reals = mean[application] + params.beside_doubt * np.minimum(height, 2.0)
        return found

    def explained(self) -> Explained:
        """Return what runs have, by run and step."""
        counts = self.after - self.first
        run, step = np.repeat(np.arange(len(counts)), counts), places_of(self.first, counts)
        has = self.taken > 0
        certainty = self.runs.trust * np.exp(-self.placed.cost)
        return Explained(run[has], step[has], self.taken[has], certainty, self.room, self.placements())


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

"""The search: kinds of bursts are taken apart into trains, applications' own and others, and put together to patterns.

Kinds whose bursts follow one another at one distance are one pattern of several bursts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, places_of, rows_of
from iosig.transforms.periods import search
from iosig.transforms.periods.search import PeriodParams
from iosig.transforms.unnamed_patterns.alike import Kind, Plane
from iosig.transforms.unnamed_patterns.beside import Beside, Presences, begun_with, beside
from iosig.transforms.unnamed_patterns.companions import Companions, borne_out, companions, slack
from iosig.transforms.unnamed_patterns.constellations import Pairs
from iosig.transforms.unnamed_patterns.left_bursts import LeftBursts, left_bursts
from iosig.transforms.unnamed_patterns.patterns import Found, Pattern, PatternParams
from iosig.transforms.unnamed_patterns.rhythms import Rhythm, period_of
from iosig.transforms.unnamed_patterns.trains import Train, train_of


@dataclass(frozen=True, slots=True)
class Parts:
    """A kind, and what it consists of: trains, what is surely an application's, and the rest.

    unbound: all but the trains.
    """

    is_sure: bool
    trains: list[tuple[Train, Ints]]
    unbound: Ints
    own: list[tuple[Beside, Ints]]
    rest: Ints


@dataclass(frozen=True, slots=True)
class Search:
    """What patterns are looked for in.

    left_bytes (steps): without rhythms; whole_bytes (steps): with them. bursts: of what is left.
    """

    whole_bytes: Reals
    left_bytes: Reals
    interval_s: float
    bursts: LeftBursts
    presences: Presences
    params: PatternParams

    @classmethod
    def of(
        cls, whole_bytes: Reals, left_bytes: Reals, interval_s: float, presences: Presences, params: PatternParams
    ) -> Search:
        """Return the search in what is left of the whole."""
        bursts = left_bursts(left_bytes, interval_s, params.bursts)
        return cls(whole_bytes, left_bytes, interval_s, bursts, presences, params)

    def patterns(self, parts: list[Parts], is_free: Bools) -> list[Found]:
        """Return all patterns: what of kinds is surely an application's, and what others are together.

        is_free (bursts): which belong to no kind.
        """
        others: list[tuple[Kind, Train | None]] = []
        for each in parts:
            others += [(Kind(members, is_sure=True), train) for train, members in each.trains]
            if len(each.rest) >= self.params.alike.least_count:
                others.append((Kind(each.rest, each.is_sure), None))
        for kind, train in others:
            is_free[kind.members] = train is None
        return [*(one for each in parts for one in self.named(each.own)), *self.together(others, is_free)]

    def constellations(self, parts: list[Parts], is_free: Bools, found: list[Found]) -> list[Found]:
        """Return what comes in two bursts at one distance, and is not of what was found.

        is_free (bursts): which were set aside with no kind: others may be one of two. What one application may well
        have done is left out: bursts of its own that were set aside are pairs, too.
        """
        is_there = self.taken() <= self.params.most_taken
        for each in parts:
            for _, members in [*each.trains, *each.own]:
                is_there[members] = False
        for one in found:
            if one.whose.outcome != "named":
                is_there &= ~_lies_in(self.bursts, one.pattern)
        periods = np.array([train.period for each in parts for train, _ in each.trains])
        step_count, params = int(np.isfinite(self.left_bytes).sum()), self.params.constellations
        pairs = Pairs(self.bursts, (is_there & is_free, is_there), periods, step_count, self.interval_s, params)
        more = []
        while (pair := pairs.take()) is not None:
            pattern = self.pattern([pair.members], pair.lag)
            whose = self.judged(pattern)
            is_likely = whose.seen_count >= self.params.beside.most_share * len(pattern.started)
            if whose.outcome == "unnamed" or (whose.outcome == "unsure" and not is_likely):
                more.append(Found(pattern, whose))
        return more

    def rhythms(self, parts: list[Parts]) -> list[tuple[int, Rhythm, list[Found]]]:
        """Return which applications do something at even distances in their runs, what, and the patterns that it is."""
        found = []
        for each in parts:
            for application in dict.fromkeys(whose.application for whose, _ in each.own):
                if (one := self.rhythm(each.unbound, application)) is not None:
                    own = [part for part in each.own if part[0].application == application]
                    found.append((application, one, self.named([self.united(own)])))
        return found

    def united(self, own: list[tuple[Beside, Ints]]) -> tuple[Beside, Ints]:
        """Return as one what are parts of one rhythm of an application: what it does after so many periods is one."""
        members = np.sort(np.concatenate([part for _, part in own]))
        whose = min((whose for whose, _ in own), key=lambda each: each.chance)
        run = self._run_of(members, whose.application)
        seen = int((run >= 0).sum())
        return replace(whose, seen_count=seen, seen_run_count=len(np.unique(run[run >= 0]))), members

    def taken(self) -> Reals:
        """Return how much was taken off of each burst, in shares of what it is."""
        taken = np.concatenate([[0.0], np.cumsum(np.nan_to_num(self.whole_bytes) - np.nan_to_num(self.left_bytes))])
        # a burst has a part of the steps beside it
        after = np.minimum(self.bursts.after + 1, len(taken) - 1)
        found: Reals = (taken[after] - taken[self.bursts.first - 1]) / self.bursts.volume_bytes
        return found

    def parts(self) -> tuple[list[Parts], Bools]:
        """Return what kinds consist of, and which bursts belong to none.

        Bursts that are not alike, since others were in their way, are set aside with the kind that they belong to.
        Those of which much was taken off are of none: they are what that left.
        """
        taken = self.taken()
        plane = Plane(self.bursts, self.params.alike)
        plane.set_aside(np.flatnonzero(taken > self.params.most_train_taken))
        found = []
        while kind := plane.take():
            trains, unbound = self.trains(kind.members)
            own, rest = self.parted(unbound)
            rest = rest[taken[rest] <= self.params.most_taken]
            found.append(Parts(kind.is_sure, trains, unbound, own, rest))
            plane.set_aside(self.spoilt(found[-1]))
        return found, plane.is_left & (taken <= self.params.most_taken)

    def spoilt(self, parts: Parts) -> Ints:
        """Return the bursts that belong to a kind, but are not alike, since others were in their way."""
        found = [self.due(self.pattern([members], train=train)) for train, members in parts.trains]
        found += [self.of_application(members, whose.application) for whose, members in parts.own]
        if len(parts.rest) >= self.params.alike.least_count:
            found.append(self.of_likely(parts.rest, self.judged(self.appeared([parts.rest]))))
        return np.unique(np.concatenate([parts.rest[:0], *found]))

    def trains(self, members: Ints) -> tuple[list[tuple[Train, Ints]], Ints]:
        """Return the trains of a kind, and its other bursts."""
        found = []
        runs, params = self.presences.runs, self.params.trains
        while (
            one := train_of(rows_of(self.bursts, members), self.whole_bytes, runs, self.interval_s, params)
        ) is not None:
            found.append((one, members[one.members]))
            members = np.delete(members, one.members)
        return found, members

    def named(self, own: list[tuple[Beside, Ints]]) -> list[Found]:
        """Return the patterns of what is surely an application's."""
        return [Found(self.pattern([members]), whose) for whose, members in own]

    def rhythm(self, members: Ints, application: int) -> Rhythm | None:
        """Return what an application does again and again in its runs, if a kind's bursts are at even distances."""
        run = self._run_of(members, application)
        told = period_of(self.bursts.first[members], run, self.interval_s, self.params.rhythms)
        if told is None:
            return None
        first, after = (each[members][run >= 0] for each in (self.bursts.first, self.bursts.after))
        # a burst has a part of the steps beside it
        lasting = max(1, round(float(np.median(after - first)))) + 2
        return Rhythm(told[0], told[1], _signature(self.left_bytes, first - 1, lasting), first, told[2])

    def judged(self, pattern: Pattern) -> Beside:
        """Return whose a pattern may be."""
        count, params = len(self.left_bytes), self.params.beside
        appeared, runs = (pattern.started, pattern.ended), self.presences.runs
        return beside(
            appeared, runs, count, self.interval_s, params, is_train=pattern.is_train, presences=self.presences
        )

    def parted(self, members: Ints) -> tuple[list[tuple[Beside, Ints]], Ints]:
        """Return the parts of a kind that are surely an application's, and the rest.

        Two that move the same volumes are one kind.
        """
        found = []
        first, runs = self.bursts.first.astype(np.float64), self.presences.runs
        while (begun := begun_with(first[members], runs, self.interval_s, self.params.beside)) is not None:
            whose, is_own = begun
            found.append((whose, members[is_own]))
            members = members[~is_own]
        while len(members) >= self.params.alike.least_count:
            whose = self.judged(self.appeared([members]))
            if whose.outcome != "named":
                break
            is_in = self._run_of(members, whose.application) >= 0
            found.append((replace(whose, seen_count=int(is_in.sum())), members[is_in]))
            members = members[~is_in]
        return found, members

    def together(self, others: list[tuple[Kind, Train | None]], is_free: Bools) -> list[Found]:
        """Return the patterns of kinds that are sure, or borne out by bursts that come with them.

        others: kinds, and which train each is. is_free (bursts): which are in no train and of no application.
        """
        kinds, trains = [kind for kind, _ in others], [train for _, train in others]
        members, is_train = (
            [kind.members for kind in kinds],
            np.array([train is not None for train in trains], np.bool_),
        )
        beside = [
            [] if train else companions(self.bursts, own, is_free, len(kinds), self.interval_s, self.params.companions)
            for own, train in zip(members, is_train.tolist(), strict=True)
        ]
        patterns, met = [], []
        for group in _groups(self.bursts, members, is_train, beside, self.interval_s, self.params):
            links = [link for place in group for link in beside[place]]
            if links:
                own = [borne_out(members[place], beside[place], self.params.companions) for place in group]
                within = max(abs(link.lag) for link in links)
                of_it = [*own, *(link.follows for link in links)]
                patterns.append(self.pattern(of_it, within))
                sure = [members[place] for place in group if kinds[place].is_sure]
                met += [np.setdiff1d(each, np.concatenate(of_it)) for each in sure]
            elif len(group) > 1 or kinds[group[0]].is_sure:
                patterns.append(self.pattern([members[place] for place in group], train=trains[group[0]]))
        least = self.params.alike.least_count
        found = [Found(pattern, self.judged(pattern)) for pattern in patterns if len(pattern.started) >= least]
        return found + [self.met(each) for each in met if len(each) >= least]

    def met(self, members: Ints) -> Found:
        """Return as a pattern what is left of a kind when those are gone that something comes with.

        Another maker that moves as much, or the same one where others hid what comes with it: nobody's it is not said.
        """
        pattern = self.pattern([members])
        whose = self.judged(pattern)
        return Found(pattern, replace(whose, outcome="unsure") if whose.outcome == "unnamed" else whose)

    def _run_of(self, members: Ints, application: int) -> Ints:
        """Return in which run of an application bursts lie, -1 where in none."""
        runs, inexact = self.presences.runs, self.params.beside.slack_s / self.interval_s
        own = np.flatnonzero(runs.application == application)
        is_begun = runs.started[own, None] <= self.bursts.first[members] + inexact
        is_over = runs.ended[own, None] >= self.bursts.after[members] - inexact
        is_in = is_begun & is_over
        return np.where(is_in.any(axis=0), own[is_in.argmax(axis=0)], -1) if len(own) else np.full(len(members), -1)

    def of_application(self, members: Ints, application: int) -> Ints:
        """Return the bursts in an application's runs that are about as large as some of them."""
        bursts = self.bursts
        near = np.arange(len(bursts))
        for values, most in ((bursts.volume_bytes, self.params.flank[0]), (bursts.width, self.params.flank[1])):
            near = near[np.abs(np.log(values[near] / np.median(values[members]))) <= most]
        return near[self._run_of(near, application) >= 0]

    def of_likely(self, members: Ints, whose: Beside) -> Ints:
        """Return the same of the application that a kind may be of, where it was there nearly each time."""
        is_likely = whose.outcome == "unsure" and whose.seen_count >= self.params.beside.most_share * len(members)
        return self.of_application(members, whose.application) if is_likely else np.zeros(0, np.int64)

    def due(self, train: Pattern) -> Ints:
        """Return the bursts that lie where a train's appearances are missing between those that were found.

        They are as large as one, or larger by what fell into it: contention takes no byte away.
        """
        if not train.is_train:
            return np.zeros(0, np.int64)
        gaps = np.diff(train.started)
        cycles = gaps / train.period
        counts = np.maximum(np.rint(cycles), 1.0).astype(np.int64)
        # beyond a pause the train may have begun anew, unless it goes on where it would have been
        is_anew = (counts > self.params.most_gap * 2) & (np.abs(cycles - counts) > self.params.off_beat)
        counts[is_anew] = 1
        owner = np.repeat(np.arange(len(gaps)), counts)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        due = (train.started[owner] + place * (gaps / counts)[owner])[place > 0]
        inexact = slack(train.period, self.interval_s, self.params.companions)
        after = np.searchsorted(due, self.bursts.first - inexact)
        nearest = np.append(due, np.inf)[after]
        more = np.log(self.bursts.volume_bytes / np.median(train.volume_bytes))
        is_one = (more >= self.params.spoilt[0]) & (more <= self.params.spoilt[1])
        return np.flatnonzero(is_one & (nearest <= self.bursts.after + inexact))

    def pattern(self, kinds: list[Ints], within: float = 0.0, train: Train | None = None) -> Pattern:
        """Return the pattern of some kinds, and its period if it has one.

        within: in how many steps the next burst of an appearance comes, at most; 0 where the kinds tell. train: which
        one they are.
        """
        plain = self.appeared(kinds, within)
        if train is not None:
            return replace(plain, period=train.period, period_chance=train.chance)
        return _timed(plain, self.interval_s, self.params)

    def appeared(self, kinds: list[Ints], within: float = 0.0) -> Pattern:
        """Return the same without asking for a period: an appearance begins where the first of its bursts does."""
        bursts = self.bursts
        members = np.unique(np.concatenate(kinds))
        first, after, volume = bursts.first[members], bursts.after[members], bursts.volume_bytes[members]
        if within:
            within += slack(within, self.interval_s, self.params.companions)
        elif len(kinds) > 1:
            within = _widest_lag(first, len(kinds))
        starts = np.flatnonzero(np.append(True, np.diff(first) > within))
        ended = after[np.append(starts[1:], len(members)) - 1]
        lasting = round(float(np.median(ended - first[starts])))
        return Pattern(
            first[starts].astype(np.float64),
            ended.astype(np.float64),
            np.add.reduceat(volume, starts),
            np.sqrt(np.add.reduceat(bursts.inexact_bytes[members] ** 2, starts)),
            _signature(self.left_bytes, first[starts], lasting),
            max(1, round(len(members) / len(starts))) if within else 1,
        )


def _lies_in(bursts: LeftBursts, pattern: Pattern) -> Bools:
    """Return which bursts lie in appearances of a pattern."""
    after = np.searchsorted(pattern.ended, bursts.first, side="right")
    found: Bools = np.append(pattern.started, np.inf)[after] < bursts.after
    return found


# ---- kinds that are one pattern


def _groups(
    bursts: LeftBursts,
    kinds: list[Ints],
    is_train: Bools,
    beside: list[list[Companions]],
    interval_s: float,
    params: PatternParams,
) -> list[list[int]]:
    """Return which kinds are of one pattern: trains at one distance, and others that share bursts."""
    pairs = [
        (one, other)
        for one in range(len(kinds))
        for other in range(len(kinds))
        if one != other
        and (
            np.isfinite(_lag(bursts, kinds[one], kinds[other], interval_s, params))
            if is_train[one] or is_train[other]
            else sum(np.isin(link.follows, kinds[other]).sum() for link in beside[one]) >= params.companions.least_count
        )
    ]
    row, column = np.array(pairs, np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(row)), (row, column)), shape=(len(kinds), len(kinds)))
    _, groups = connected_components(graph, directed=False)
    return [np.flatnonzero(groups == group).tolist() for group in range(int(groups.max(initial=-1)) + 1)]


def _lag(bursts: LeftBursts, one: Ints, other: Ints, interval_s: float, params: PatternParams) -> float:
    """Return how many steps after one kind's bursts another's come, where most of both do so; else NaN."""
    begun, follows = bursts.first[one], bursts.first[other]
    if not 0.5 <= len(one) / len(other) <= 2.0:
        return float("nan")
    after = np.searchsorted(follows, begun, side="right")
    lags = np.append(follows, np.iinfo(np.int64).max // 2)[after] - begun
    near = lags[lags * interval_s <= params.companions.longest_s]
    if len(near) < params.together_ratio * max(len(one), len(other)):
        return float("nan")
    typical = float(np.median(near))
    is_at = np.abs(near - typical) <= slack(typical, interval_s, params.companions)
    return typical if is_at.sum() >= params.together_ratio * max(len(one), len(other)) else float("nan")


def _widest_lag(first: Ints, kind_count: int) -> float:
    """Return the distance that parts appearances of so many bursts each: between the usual ones within and between.

    In each appearance all distances but one are within it.
    """
    gaps = np.sort(np.diff(first)).astype(np.float64)
    within = round(len(gaps) * (kind_count - 1) / kind_count)
    low, high = gaps[max(within - 1, 0)], gaps[min(within, len(gaps) - 1)]
    return float(np.sqrt(max(low, 1.0) * max(high, 1.0)))


def _signature(left_bytes: Reals, first: Ints, count: int) -> Reals:
    """Return the median of what is left in so many steps from each first one on."""
    count = max(1, min(count, len(left_bytes)))
    whole = first[first + count <= len(left_bytes)]
    there = np.nan_to_num(left_bytes[places_of(whole, np.full(len(whole), count))])
    found: Reals = np.median(there.reshape(-1, count), axis=0) if len(whole) else np.zeros(0)
    return found


# ---- trains


def _timed(pattern: Pattern, interval_s: float, params: PatternParams) -> Pattern:
    """Return a pattern with its period, where it is a train by the default method of periods.

    It judges the longest stretch without a long pause, of which samples are the appearances' bytes.
    """
    own = _longest(pattern.started, params)
    if own.stop - own.start < params.least_cycles:
        return pattern
    begun, volume = pattern.started[own], pattern.volume_bytes[own]
    step = float(np.median(np.diff(begun))) / params.samples_a_cycle
    at = ((begun - begun[0]) / step + 0.5 * params.samples_a_cycle).astype(np.int64)
    signal: Reals = np.bincount(at, volume, at[-1] + params.samples_a_cycle // 2).astype(np.float64)
    answers = search.detect_periods(
        Ragged(signal, np.array([0, len(signal)])),
        np.array([1.0 / step]),
        np.zeros(1),
        PeriodParams(methods=("controlled",)),
    )
    detections, _ = answers["controlled"]
    if not detections.is_periodic[0]:
        return pattern
    chance = float(detections.false_alarm_probability[0])
    return replace(pattern, period=1.0 / float(detections.frequency_hz[0]), period_chance=chance)


def _longest(started: Reals, params: PatternParams) -> slice:
    """Return the stretch with most appearances in which none is much later than the one before it."""
    gaps = np.diff(started)
    if not len(gaps):
        return slice(0, len(started))
    # most distances within a train are one period, or two where one appearance was hidden
    cuts = np.flatnonzero(gaps > params.most_gap * np.quantile(gaps, 0.25)) + 1
    edges = np.concatenate([[0], cuts, [len(started)]])
    longest = int(np.diff(edges).argmax())
    return slice(int(edges[longest]), int(edges[longest + 1]))

"""Patterns: kinds of bursts that come again, alone or together.

Kinds whose bursts follow one another at one distance are one pattern of several bursts. A pattern is a train where its
appearances come at even distances; else they are alike only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from transforms.arrays import Bools, Ints, Ragged, Reals, places_of
from transforms.periods import finding
from transforms.periods.finding import PeriodParams
from transforms.unnamed_patterns.alike import AlikeParams, Kind, Plane
from transforms.unnamed_patterns.beside import Beside, BesideParams, Runs, begun_with, beside
from transforms.unnamed_patterns.companions import CompanionParams, Companions, borne_out, companions, slack
from transforms.unnamed_patterns.left_bursts import LeftBurstParams, LeftBursts, left_bursts


@dataclass(frozen=True, slots=True)
class PatternParams:
    """What makes a pattern; the values are ours, chosen on simulated sites (seeds 11 to 13, and 1 to 3).

    together_ratio: of two trains such a share follows one another at one distance. most_gap: a train is cut where
    nothing comes for so many typical distances. off_beat: after a longer pause it goes on if it is off by less of a
    period. least_cycles: a train has so many appearances. samples_a_cycle: of a train's signal. flank: bursts of an
    application that makes a kind differ from it by less, in logarithms of volume and width, where others were in their
    way. spoilt: what lies where a train's appearance is missing is one if the logarithm of how many times its volume it
    moves is between these (seeds 60 to 65).
    """

    bursts: LeftBurstParams = field(default_factory=LeftBurstParams)
    alike: AlikeParams = field(default_factory=AlikeParams)
    beside: BesideParams = field(default_factory=BesideParams)
    companions: CompanionParams = field(default_factory=CompanionParams)
    flank: tuple[float, float] = (0.7, 1.0)
    spoilt: tuple[float, float] = (-0.25, 0.7)
    together_ratio: float = 0.6
    most_gap: float = 3.5
    off_beat: float = 0.1
    least_cycles: int = 6
    samples_a_cycle: int = 12


@dataclass(frozen=True, slots=True)
class Pattern:
    """What comes again: its appearances (k) in order of time, in steps, and the bytes of each.

    signature_bytes (steps): what it moves in each step of an appearance, the median of them. burst_count: of an
    appearance. period: how many steps lie between appearances, and period_chance how probable it is that chance makes
    them so even; NaN where they come as they like.
    """

    started: Reals
    ended: Reals
    volume_bytes: Reals
    signature_bytes: Reals
    burst_count: int
    period: float = math.nan
    period_chance: float = math.nan

    @property
    def is_train(self) -> bool:
        """Whether its appearances come at even distances."""
        return bool(np.isfinite(self.period))


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern, and whose it may be."""

    pattern: Pattern
    whose: Beside


def find(left_bytes: Reals, interval_s: float, runs: Runs, params: PatternParams | None = None) -> list[Found]:
    """Return the patterns of what is left and whose they may be, in order of bytes.

    left_bytes: bytes in each step, NaN where nothing was measured. runs: those that were there, in steps. What lies in
    an application's runs, and is about as large as a kind that is surely its, is set aside with that; and so is what
    lies where a train's next appearance is due: contention made it another burst than it was meant to be.
    """
    params = params or PatternParams()
    bursts = left_bursts(left_bytes, interval_s, params.bursts)
    plane = Plane(bursts, params.alike)
    search = _Search(left_bytes, interval_s, bursts, runs, params)
    named: list[Found] = []
    others: list[Kind] = []
    trains: list[bool] = []
    while kind := plane.take():
        own, left = search.parted(kind.members)
        for one, members in own:
            plane.set_aside(search.of_application(members, one.whose.application))
        named += [one for one, _ in own]
        if len(left) >= params.alike.least_count:
            alone = search.pattern([left])
            plane.set_aside(search.due(alone))
            plane.set_aside(search.of_likely(left, search.judged(alone)))
            others.append(Kind(left, kind.is_sure or alone.is_train))
            trains.append(alone.is_train)
    is_free = plane.is_left.copy()
    for other, train in zip(others, trains, strict=True):
        is_free[other.members] = not train
    found = [*named, *search.together(others, np.array(trains, np.bool_), is_free)]
    return sorted(found, key=lambda one: -one.pattern.volume_bytes.sum())


@dataclass(frozen=True, slots=True)
class _Search:
    """What patterns are looked for in."""

    left_bytes: Reals
    interval_s: float
    bursts: LeftBursts
    runs: Runs
    params: PatternParams

    def judged(self, pattern: Pattern) -> Beside:
        """Return whose a pattern may be."""
        count, params = len(self.left_bytes), self.params.beside
        appeared = pattern.started, pattern.ended
        return beside(appeared, self.runs, count, self.interval_s, params, is_train=pattern.is_train)

    def parted(self, members: Ints) -> tuple[list[tuple[Found, Ints]], Ints]:
        """Return the parts of a kind that are surely an application's, and the rest.

        Two that move the same volumes are one kind.
        """
        found = []
        first, run = self.bursts.first.astype(np.float64), self.runs
        while (begun := begun_with(first[members], run, self.interval_s, self.params.beside)) is not None:
            whose, is_own = begun
            found.append((Found(self.pattern([members[is_own]]), whose), members[is_own]))
            members = members[~is_own]
        while len(members) >= self.params.alike.least_count:
            whose = self.judged(self.pattern([members]))
            if whose.outcome != "named":
                break
            is_in = self._in_runs(members, whose.application)
            own = self.pattern([members[is_in]])
            found.append((Found(own, replace(whose, seen_count=int(is_in.sum()))), members[is_in]))
            members = members[~is_in]
        return found, members

    def together(self, kinds: list[Kind], is_train: Bools, is_free: Bools) -> list[Found]:
        """Return the patterns of kinds that are sure, or borne out by bursts that come with them.

        is_train (kinds): which of them are trains of their own. is_free (bursts): which are in no train and of no
        application.
        """
        members = [kind.members for kind in kinds]
        beside = [
            [] if train else companions(self.bursts, own, is_free, len(kinds), self.interval_s, self.params.companions)
            for own, train in zip(members, is_train.tolist(), strict=True)
        ]
        patterns = []
        for group in _groups(self.bursts, members, is_train, beside, self.interval_s, self.params):
            links = [link for place in group for link in beside[place]]
            if links:
                own = [borne_out(members[place], beside[place], self.params.companions) for place in group]
                within = max(abs(link.lag) for link in links)
                patterns.append(self.pattern([*own, *(link.follows for link in links)], within))
            elif len(group) > 1:
                patterns.append(self.pattern([members[place] for place in group]))
            elif kinds[group[0]].is_sure:
                patterns.append(self.pattern([members[group[0]]]))
        least = self.params.alike.least_count
        return [Found(pattern, self.judged(pattern)) for pattern in patterns if len(pattern.started) >= least]

    def _in_runs(self, members: Ints, application: int) -> Bools:
        """Return which bursts lie in runs of an application."""
        own, inexact = self.runs.application == application, self.params.beside.slack_s / self.interval_s
        is_begun = self.runs.started[own, None] <= self.bursts.first[members] + inexact
        is_over = self.runs.ended[own, None] >= self.bursts.after[members] - inexact
        is_in: Bools = np.any(is_begun & is_over, axis=0)
        return is_in

    def of_application(self, members: Ints, application: int) -> Ints:
        """Return the bursts in an application's runs that are about as large as some of them."""
        bursts = self.bursts
        near = np.arange(len(bursts))
        for values, most in ((bursts.volume_bytes, self.params.flank[0]), (bursts.width, self.params.flank[1])):
            near = near[np.abs(np.log(values[near] / np.median(values[members]))) <= most]
        return near[self._in_runs(near, application)]

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

    def pattern(self, kinds: list[Ints], within: float = 0.0) -> Pattern:
        """Return the pattern of some kinds: an appearance begins where the first of its bursts does.

        within: in how many steps the next burst of an appearance comes, at most; 0 where the kinds tell.
        """
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
        plain = Pattern(
            first[starts].astype(np.float64),
            ended.astype(np.float64),
            np.add.reduceat(volume, starts),
            _signature(self.left_bytes, first[starts], lasting),
            max(1, round(len(members) / len(starts))) if within else 1,
        )
        return _timed(plain, self.interval_s, self.params)


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
    answers = finding.detect(
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
    # most distances within a train are one period, or two where one appearance was hidden
    cuts = np.flatnonzero(gaps > params.most_gap * np.quantile(gaps, 0.25)) + 1
    edges = np.concatenate([[0], cuts, [len(started)]])
    longest = int(np.diff(edges).argmax())
    return slice(int(edges[longest]), int(edges[longest + 1]))

"""Rhythms of logged applications inside their own runs, also of those that have no signature.

A job that writes every so often does so from its start to its end (IOSI: Liu et al., FAST'14, section 6.1), and what it
writes spoils the volumes of whatever else flows then. Its period is told by the distances between those of its bursts
that nobody spoilt, of all of its runs together. Then it is followed in each of them by the likeliest chain of bursts
(Viterbi, IEEE Transactions on Information Theory 13, 1967, doi:10.1109/TIT.1967.1054010), in which every burst comes a
period after the one before, or a little off it: contention delays all that follows. What the chain moves is taken off.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, places_of


@dataclass(frozen=True, slots=True)
class RhythmParams:
    """What is a rhythm, and how it is followed; the values are ours, chosen on simulated sites (seeds 60 to 67).

    shortest_s, longest_s: of periods. wander: distances between two bursts differ by such a share of a period, and
    inexact_s by so much more. cycles: bursts that are so many periods apart tell a rhythm; most_pairs: so many bursts
    after each are looked at. least_evidence: how much likelier than by chance a rhythm's distances are (logarithm of
    the ratio); least_runs: in so many runs. least_spread, most_spread: how much distances vary that are followed, in
    periods. off_cost: of a burst that is off by its spread, times the square of that, and most_off_cost, in shares of a
    burst. most_deep: where more runs of an application were there at once, it is not followed: nobody knows which one a
    burst is of. least_there: a burst is taken off where such a share of its bytes is there.
    """

    shortest_s: float = 25.0
    longest_s: float = 4000.0
    wander: float = 0.018
    inexact_s: float = 7.0
    cycles: int = 4
    most_pairs: int = 60
    least_evidence: float = 8.0
    least_runs: int = 3
    least_spread: float = 0.004
    most_spread: float = 0.02
    off_cost: float = 0.0625
    most_off_cost: float = 0.5
    most_deep: int = 12
    least_there: float = 0.6


@dataclass(frozen=True, slots=True)
class Rhythm:
    """A burst that comes again and again in runs, every so many steps.

    spread: how much the distances vary, in periods. burst_bytes (steps): what it moves, from the step before the one in
    which it begins. known (k): begins of those by which it is known, in steps. evidence: how much likelier than by
    chance their distances are (logarithm of the ratio).
    """

    period: float
    spread: float
    burst_bytes: Reals
    known: Ints
    evidence: float


# ---- periods


def period_of(
    first: Ints, run: Ints, interval_s: float, params: RhythmParams | None = None
) -> tuple[float, float, float] | None:
    """Return the period of bursts in their runs, its spread in periods, and the evidence for it.

    None where there is no rhythm, or where bursts that no run holds both of have it as well: then it is not the runs'.
    first (n): the steps with which bursts begin; run (n): in which run each is, -1 for none.
    """
    params = params or RhythmParams()
    order = np.argsort(first, kind="stable")
    lead, follow = _pairs(first[order], params.cycles * params.longest_s / interval_s, params.most_pairs)
    lags, run = (first[order][follow] - first[order][lead]).astype(np.float64), run[order]
    is_own = (run[lead] >= 0) & (run[lead] == run[follow])
    own = np.sort(lags[is_own])
    tried = _tried(own, interval_s, params)
    if not len(tried):
        return None
    told = _evidence(own, tried, interval_s, params)
    evidence, period = float(told.max()), float(tried[told.argmax()])
    across = float(_evidence(np.sort(lags[~is_own]), np.array([period]), interval_s, params)[0])
    is_on = is_own & (_off(lags, period, interval_s, params) <= 1.0)
    if evidence < max(params.least_evidence, across) or len(np.unique(run[lead][is_on])) < params.least_runs:
        return None
    period = _refined(own, period, interval_s, params)
    near = own[np.abs(own - period) <= params.wander * period + params.inexact_s / interval_s]
    spread = float(np.std(near)) / period if len(near) else params.most_spread
    return period, min(max(spread, params.least_spread), params.most_spread), evidence


def likeliest_periods(first: Ints, interval_s: float, most: int, params: RhythmParams | None = None) -> Reals:
    """Return the periods (at most so many) that the distances between bursts that begin then (n, in order) bear out."""
    params = params or RhythmParams()
    lead, follow = _pairs(first, params.cycles * params.longest_s / interval_s, params.most_pairs)
    lags = np.sort((first[follow] - first[lead]).astype(np.float64))
    tried = _tried(lags, interval_s, params)
    told = _evidence(lags, tried, interval_s, params)
    found: list[float] = []
    while len(found) < most and told.max(initial=0.0) > 0.0:
        found.append(float(tried[told.argmax()]))
        told[np.abs(tried / found[-1] - 1.0) < params.wander] = 0.0
    return np.array(found)


def _pairs(first: Ints, longest: float, most: int) -> tuple[Ints, Ints]:
    """Return which of some begins, in order, are so near each other: each and so many after it, at most."""
    counts = np.searchsorted(first, first + longest, side="right") - np.arange(len(first)) - 1
    counts = np.minimum(counts, most)
    return np.repeat(np.arange(len(first)), counts), places_of(np.arange(len(first)) + 1, counts)


#: so many periods are tried, at most
_MOST_TRIED = 600
#: the periods that are told apart, in steps
_RESOLUTION = 0.25


def _tried(lags: Reals, interval_s: float, params: RhythmParams) -> Reals:
    """Return the periods of which some distance is one, two or three."""
    short = lags[lags * interval_s <= params.longest_s]
    tried = np.unique(np.rint(np.concatenate([short / cycles for cycles in (1, 2, 3)]) / _RESOLUTION)) * _RESOLUTION
    tried = tried[tried * interval_s >= params.shortest_s]
    return tried if len(tried) <= _MOST_TRIED else np.quantile(tried, np.linspace(0.0, 1.0, _MOST_TRIED))


def _evidence(lags: Reals, periods: Reals, interval_s: float, params: RhythmParams) -> Reals:
    """Return how much likelier distances, in order, are by each of some periods than by chance (logarithms).

    By chance as many lie at multiples of a period as between them: two Poisson counts.
    """
    cycles = np.arange(1, params.cycles + 1)
    due = periods[:, None] * cycles
    inexact = params.wander * periods[:, None] * np.sqrt(cycles) + params.inexact_s / interval_s
    inexact = np.minimum(inexact, periods[:, None] / 4)
    count = _between(lags, due - inexact, due + inexact).sum(axis=1).astype(np.float64)
    beside = _between(lags, due - periods[:, None] / 2, due + periods[:, None] / 2)
    expected = (beside * (2 * inexact / periods[:, None])).sum(axis=1)
    is_more = count > expected
    ratio = np.log(np.divide(count, expected, out=np.ones_like(count), where=is_more))
    found: Reals = np.where(is_more, count * ratio - count + expected, 0.0)
    return found


def _between(ordered: Reals, low: Reals, high: Reals) -> Ints:
    return np.searchsorted(ordered, high, side="right") - np.searchsorted(ordered, low)


def _off(lags: Reals, period: float, interval_s: float, params: RhythmParams) -> Reals:
    """Return by how much distances are off a multiple of a period, in what they may be."""
    cycles = np.clip(np.rint(lags / period), 1, params.cycles)
    inexact = params.wander * period * np.sqrt(cycles) + params.inexact_s / interval_s
    found: Reals = np.abs(lags - cycles * period) / np.minimum(inexact, period / 4)
    return found


def _refined(lags: Reals, period: float, interval_s: float, params: RhythmParams) -> float:
    """Return the period that distances of one and two of it have in the mean."""
    for _ in range(3):
        near = lags[(lags < 2.5 * period) & (_off(lags, period, interval_s, params) <= 1.0)]
        if not len(near):
            break
        period = float(near.sum() / np.rint(near / period).sum())
    return period


# ---- what runs do


def without(left_bytes: Reals, one: Rhythm, started: Reals, ended: Reals, params: RhythmParams | None = None) -> Reals:
    """Return what is left (bytes in each step) without what a rhythm moves in runs: from when, until when, in steps."""
    params = params or RhythmParams()
    left = left_bytes.copy()
    layers = _layers(started, ended)
    if len(layers) > params.most_deep:
        return left
    known = np.zeros(len(left))
    known[np.maximum(one.known - 1, 0)] = _KNOWN
    for layer in layers:
        there = _there(left, one.burst_bytes)
        score = np.nan_to_num(there, nan=_UNKNOWN) + known
        for some in _alike_long(started[layer], ended[layer]):
            run = layer[some]
            place = _followed(score, started[run], ended[run], one, params)
            _take_off(left, place[np.nan_to_num(there[place]) >= params.least_there], one.burst_bytes)
    return left


#: what is added where a burst is known to begin, and what is taken where nobody knows (shares of a burst)
_KNOWN, _UNKNOWN = 0.5, 0.55
#: a chain gains where more of a burst than that is there
_EVEN = 0.5


def _layers(started: Reals, ended: Reals) -> list[Ints]:
    """Return runs in layers: in each of them no two are there at once."""
    layers: list[list[int]] = []
    free: list[tuple[float, int]] = []
    for run in np.argsort(started, kind="stable").tolist():
        layer = heapq.heappop(free)[1] if free and free[0][0] <= started[run] else len(layers)
        if layer == len(layers):
            layers.append([])
        layers[layer].append(run)
        heapq.heappush(free, (float(ended[run]), layer))
    return [np.array(layer, np.int64) for layer in layers]


#: so many steps of runs are looked at together, about: it bounds the memory
_MOST_STEPS = 1 << 20


def _alike_long(started: Reals, ended: Reals) -> list[Ints]:
    """Return runs in groups: each as many as fit side by side, the longest first."""
    order = np.argsort(started - ended, kind="stable")
    longest = np.maximum((ended - started)[order], 1.0)
    groups, first = [], 0
    while first < len(order):
        count = max(1, int(_MOST_STEPS / longest[first]))
        groups.append(order[first : first + count])
        first += count
    return groups


def _there(left_bytes: Reals, burst_bytes: Reals) -> Reals:
    """Return which share of a burst is there if it begins with each step; NaN where a third of it was not measured."""
    count, more = len(left_bytes), len(burst_bytes)
    known = np.concatenate([np.nan_to_num(left_bytes), np.zeros(more)])
    found = np.zeros(count)
    for place, each in enumerate(burst_bytes.tolist()):
        found += np.minimum(known[place : place + count], each)
    gaps = np.concatenate([[0], np.cumsum(np.isnan(left_bytes)), np.full(more, np.isnan(left_bytes).sum())])
    is_gap = gaps[more : more + count] - gaps[:count] > more / 3
    return np.where(is_gap, np.nan, found / burst_bytes.sum())


def _followed(score: Reals, started: Reals, ended: Reals, one: Rhythm, params: RhythmParams) -> Ints:
    """Return the steps with which a rhythm's bursts begin in some runs, by the likeliest chain of each.

    score (steps): how much of a burst is there. A chain begins within two periods of its run's start, and ends
    anywhere.
    """
    first = np.maximum(np.floor(started).astype(np.int64) - _EDGE, 0)
    last = np.minimum(np.ceil(ended).astype(np.int64) + _EDGE, len(score) - 1)
    longest = int((last - first).max()) + 1
    steps = first[:, None] + np.arange(longest)
    is_in = steps <= last[:, None]
    gains = np.where(is_in, score[np.minimum(steps, len(score) - 1)] - _EVEN, -_NEVER)
    may_begin = np.arange(longest) < 2.2 * one.period + 4 * _EDGE
    gaps, costs = _gaps(one, params)
    best, came = _chains(gains, may_begin, gaps, costs)
    return _traced(first, best.argmax(axis=1), came)


#: runs are looked at so many steps beyond their ends
_EDGE = 2
_NEVER = 1e9


def _gaps(one: Rhythm, params: RhythmParams) -> tuple[Ints, Reals]:
    """Return the distances between two bursts of a chain, in steps, and what each costs."""
    around = max(1, int(np.ceil(3 * one.spread * one.period)))
    gaps = np.arange(max(1, int(one.period) - around), int(np.ceil(one.period)) + around + _EDGE + 1)
    off = (gaps - one.period) / max(one.spread * one.period, 0.7)
    costs: Reals = np.minimum(params.off_cost * off**2, params.most_off_cost)
    return gaps, costs


def _chains(gains: Reals, may_begin: Bools, gaps: Ints, costs: Reals) -> tuple[Reals, Ints]:
    """Return what the best chain gains that ends with each step of each run, and how long before it the last one was.

    0 where it begins there. gains (runs, steps). No chain is shorter than the least gap, so that as many steps are
    reckoned at once.
    """
    count, far = gains.shape[1], int(gaps[-1])
    total = np.full((len(gains), far + count), -_NEVER)
    came = np.zeros(gains.shape, np.int64)
    for begin in range(0, count, int(gaps[0])):
        end = min(begin + int(gaps[0]), count)
        before = total[:, far + np.arange(begin, end)[:, None] - gaps] - costs
        at = before.argmax(axis=2)
        reached = np.take_along_axis(before, at[:, :, None], 2)[:, :, 0]
        begins = may_begin[begin:end] & (reached < 0.0)
        total[:, far + begin : far + end] = gains[:, begin:end] + np.where(begins, 0.0, reached)
        came[:, begin:end] = np.where(begins | (reached < -_NEVER / 2), 0, gaps[at])
    return total[:, far:], came


def _traced(first: Ints, last: Ints, came: Ints) -> Ints:
    """Return the steps of chains that end with a step of each run."""
    run, at = np.arange(len(first)), last
    found = []
    while len(run):
        found.append(first[run] + at)
        gap = came[run, at]
        run, at = run[gap > 0], (at - gap)[gap > 0]
    return np.concatenate([first[:0], *found])


def _take_off(left_bytes: Reals, place: Ints, burst_bytes: Reals) -> None:
    """Take bursts off what is left, in place; no step has less than nothing."""
    steps = place[:, None] + np.arange(len(burst_bytes))
    steps, each = steps[steps < len(left_bytes)], np.broadcast_to(burst_bytes, steps.shape)[steps < len(left_bytes)]
    taken = np.bincount(steps, each, len(left_bytes))
    np.maximum(left_bytes - taken, 0.0, out=left_bytes, where=~np.isnan(left_bytes))

"""Patterns: kinds of bursts that come again, alone or together.

Kinds whose bursts follow one another at one distance are one pattern of several bursts. A pattern is a train where its
appearances come at even distances; else they are alike only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from transforms.arrays import Ints, Ragged, Reals, offsets_of, places_of
from transforms.periods import finding
from transforms.periods.finding import PeriodParams
from transforms.unnamed_patterns.alike import AlikeParams, alike
from transforms.unnamed_patterns.left_bursts import LeftBurstParams, LeftBursts, left_bursts


@dataclass(frozen=True, slots=True)
class PatternParams:
    """What makes a pattern; the values are ours, chosen on simulated sites (seeds 11 to 13).

    longest_s: bursts of one appearance are less apart. lag_ratio, lag_s: bursts of one appearance follow one another at
    one distance, but for that share of it and so many seconds more. together_ratio: such a share of them does.
    most_gap: a train is cut where nothing comes for so many typical distances. least_cycles: a train has so many
    appearances. samples_a_cycle: of a train's signal.
    """

    bursts: LeftBurstParams = field(default_factory=LeftBurstParams)
    alike: AlikeParams = field(default_factory=AlikeParams)
    longest_s: float = 3600.0
    lag_ratio: float = 0.03
    lag_s: float = 15.0
    together_ratio: float = 0.6
    most_gap: float = 3.5
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
    period: float
    period_chance: float

    @property
    def is_train(self) -> bool:
        """Whether its appearances come at even distances."""
        return bool(np.isfinite(self.period))


def find(left_bytes: Reals, interval_s: float, params: PatternParams | None = None) -> list[Pattern]:
    """Return the patterns of what is left (bytes in each step, NaN where nothing was measured), in order of bytes."""
    params = params or PatternParams()
    bursts = left_bursts(left_bytes, interval_s, params.bursts)
    kinds = alike(bursts, params.alike)
    found = [
        _pattern(left_bytes, bursts, kinds, group, interval_s, params)
        for group in _together(bursts, kinds, interval_s, params)
    ]
    return sorted(_timed(found, interval_s, params), key=lambda one: -one.volume_bytes.sum())


# ---- kinds that are one pattern


def _together(bursts: LeftBursts, kinds: list[Ints], interval_s: float, params: PatternParams) -> list[Ints]:
    """Return which kinds are of one pattern: those whose bursts lie at one distance from each other."""
    pairs = [
        (one, other)
        for one in range(len(kinds))
        for other in range(len(kinds))
        if one != other and np.isfinite(_lag(bursts, kinds[one], kinds[other], interval_s, params))
    ]
    row, column = np.array(pairs, np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(row)), (row, column)), shape=(len(kinds), len(kinds)))
    _, groups = connected_components(graph, directed=False)
    return [np.flatnonzero(groups == group) for group in range(int(groups.max(initial=-1)) + 1)]


def _lag(bursts: LeftBursts, one: Ints, other: Ints, interval_s: float, params: PatternParams) -> float:
    """Return how many steps after one kind's bursts another's come, where most of both do so; else NaN."""
    begun, follows = bursts.first[one], bursts.first[other]
    if not 0.5 <= len(one) / len(other) <= 2.0:
        return float("nan")
    after = np.searchsorted(follows, begun, side="right")
    lags = np.append(follows, np.iinfo(np.int64).max // 2)[after] - begun
    near = lags[lags * interval_s <= params.longest_s]
    if len(near) < params.together_ratio * max(len(one), len(other)):
        return float("nan")
    typical = float(np.median(near))
    slack = params.lag_ratio * typical + params.lag_s / interval_s
    is_at = np.abs(near - typical) <= slack
    return typical if is_at.sum() >= params.together_ratio * max(len(one), len(other)) else float("nan")


def _pattern(
    left_bytes: Reals, bursts: LeftBursts, kinds: list[Ints], group: Ints, interval_s: float, params: PatternParams
) -> Pattern:
    """Return the pattern of some kinds: an appearance begins where the first of its bursts does."""
    members = np.sort(np.concatenate([kinds[kind] for kind in group]))
    first, after, volume = bursts.first[members], bursts.after[members], bursts.volume_bytes[members]
    if len(group) == 1:
        begins = np.ones(len(members), np.bool_)
    else:
        begins = np.append(True, np.diff(first) > _widest_lag(first, len(group)))
    starts = np.flatnonzero(begins)
    counts = np.diff(np.append(starts, len(members)))
    ended = after[starts + counts - 1]
    return Pattern(
        first[starts].astype(np.float64),
        ended.astype(np.float64),
        np.add.reduceat(volume, starts),
        _signature(left_bytes, first[starts], round(float(np.median(ended - first[starts])))),
        len(group),
        float("nan"),
        float("nan"),
    )


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


def _timed(found: list[Pattern], interval_s: float, params: PatternParams) -> list[Pattern]:
    """Return patterns with the periods of those that are trains, by the default method of periods.

    It judges the longest stretch without a long pause, of which samples are the appearances' bytes.
    """
    places = [place for place, one in enumerate(found) if len(one.started) >= params.least_cycles]
    stretches = [_longest(found[place].started, params) for place in places]
    judged = [
        (place, cut)
        for place, cut in zip(places, stretches, strict=True)
        if cut.stop - cut.start >= params.least_cycles
    ]
    if not judged:
        return found
    signals, sampling_hz = [], []
    for place, cut in judged:
        begun = found[place].started[cut]
        step = float(np.median(np.diff(begun))) / params.samples_a_cycle
        at = ((begun - begun[0]) / step + 0.5 * params.samples_a_cycle).astype(np.int64)
        signals.append(np.bincount(at, found[place].volume_bytes[cut], at[-1] + params.samples_a_cycle // 2))
        sampling_hz.append(1.0 / (step * interval_s))
    samples = Ragged(np.concatenate(signals), offsets_of([len(signal) for signal in signals]))
    answers = finding.detect(
        samples, np.array(sampling_hz), np.zeros(len(judged)), PeriodParams(methods=("controlled",))
    )
    detections, _ = answers["controlled"]
    told = list(found)
    for number, (place, _) in enumerate(judged):
        if detections.is_periodic[number]:
            told[place] = replace(
                told[place],
                period=1.0 / float(detections.frequency_hz[number]) / interval_s,
                period_chance=float(detections.false_alarm_probability[number]),
            )
    return told


def _longest(started: Reals, params: PatternParams) -> slice:
    """Return the stretch with most appearances in which none is much later than the one before it."""
    gaps = np.diff(started)
    # most distances within a train are one period, or two where one appearance was hidden
    cuts = np.flatnonzero(gaps > params.most_gap * np.quantile(gaps, 0.25)) + 1
    edges = np.concatenate([[0], cuts, [len(started)]])
    longest = int(np.diff(edges).argmax())
    return slice(int(edges[longest]), int(edges[longest + 1]))

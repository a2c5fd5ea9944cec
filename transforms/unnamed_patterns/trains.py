"""Trains among bursts of one kind: those that keep one beat for longer than any logged application's run.

A kind holds a train's bursts, of which others spoilt many, and whatever else moved the same volume. Contention delays
all that follows, so that a train's phase wanders: it is a chain, in which a burst comes some whole number of periods
after the one before, the less exactly the more they are. Where bursts come by chance (Poisson), the ratio of how likely
a chain makes them to how likely chance does is 1 in the mean, whatever is summed over; so it is above x with a
probability of less than 1 / x (Ville, Étude critique de la notion de collectif, 1939), which holds for all chains
together, and times the periods that were tried. A logged application's rhythm keeps its beat in a run, and no longer:
what links of a chain that no run of it holds tell has to be beyond chance by itself, whichever application is asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from iosig.transforms.arrays import Ints, Reals, places_within, rows_of
from iosig.transforms.unnamed_patterns.beside import Runs
from iosig.transforms.unnamed_patterns.left_bursts import LeftBursts
from iosig.transforms.unnamed_patterns.rhythms import RhythmParams, likeliest_periods


@dataclass(frozen=True, slots=True)
class TrainParams:
    """What is a train; the values are ours, chosen on simulated sites (seeds 60 to 67).

    rhythms: how periods are looked for; tried: so many of them. most_next: so many bursts after each may be the next of
    the chain. wanders: by such a share of a period, times the square root of how many lie between, bursts are off their
    beat, and by inexact_s more. seen_shares: such a share of a train's bursts is there. Of both each is as likely.
    most_even: where such a share of distances is of two or three periods, that is the period. end: a chain ends after
    each burst with that probability. density_s: how dense bursts are by chance is told from so much time around each.
    least_count: a train has so many bursts. least_kept: in such a share of its due places it is, or
    as much flows as least_share of it. slack_s: a job log's times are so inexact. false_alarm_probability: of a train
    among bursts of chance, the periods counted.
    """

    rhythms: RhythmParams = field(default_factory=RhythmParams)
    tried: int = 24
    most_next: int = 40
    wanders: tuple[float, ...] = (0.006, 0.02)
    inexact_s: float = 4.0
    seen_shares: tuple[float, ...] = (0.07, 0.3, 0.8)
    most_even: float = 0.9
    end: float = 0.02
    density_s: float = 12 * 3600.0
    least_count: int = 6
    least_kept: float = 0.5
    least_share: float = 0.7
    slack_s: float = 60.0
    false_alarm_probability: float = 0.01


@dataclass(frozen=True, slots=True)
class Train:
    """A chain of bursts (k, places among those asked), its period in steps, and how probable it is by chance."""

    members: Ints
    period: float
    chance: float


def train_of(
    bursts: LeftBursts, left_bytes: Reals, runs: Runs, interval_s: float, params: TrainParams | None = None
) -> Train | None:
    """Return the likeliest train among some bursts; None where chance or a logged application may make it.

    left_bytes (steps): what is left of the whole window, also what others move: NaN where nobody knows.
    """
    params = params or TrainParams()
    first = bursts.first
    if len(first) < params.least_count:
        return None
    tried = likeliest_periods(first, interval_s, max(4, min(params.tried, _MOST_TRIED // len(first))), params.rhythms)
    if not len(tried):
        return None
    gains = _gains(first, tried, len(left_bytes), interval_s, params)
    best, before = _chained(gains, tried)
    at = int(best.max(axis=0).argmax())
    threshold = math.log(_INDEPENDENT / params.false_alarm_probability)
    members = _traced(before[:, at], int(best[:, at].argmax()))
    if best[:, at].max() < threshold or len(members) < params.least_count:
        return None
    link = gains[members[:-1], np.diff(members) - 1, at]
    own = rows_of(bursts, members)
    across = float(link.sum() - _held(link, own, runs, params.slack_s / interval_s))
    period = _refined(np.diff(own.first).astype(np.float64), float(tried[at]), params)
    if across < threshold or _kept(own, period, left_bytes, interval_s, params) < params.least_kept:
        return None
    return Train(members, period, min(1.0, _INDEPENDENT * math.exp(-min(across, 600.0))))


#: so many periods from a minute to some hours are apart by more than what is one
_INDEPENDENT = 500.0
#: of so many bursts, times the periods that are tried, chains are sought
_MOST_TRIED = 15_000


def _gains(first: Ints, periods: Reals, step_count: int, interval_s: float, params: TrainParams) -> Reals:
    """Return how much likelier each of the next bursts is as the next of a chain than by chance: logarithms.

    Shape (bursts, `most_next`, periods).
    """
    count = len(first)
    place = np.arange(count)[:, None] + np.arange(1, params.most_next + 1)
    follow = np.minimum(place, count - 1)
    lags = (first[follow] - first[:, None]).astype(np.float64)[:, :, None]
    cycles = np.maximum(np.rint(lags / periods), 1.0)
    off, inexact = lags - cycles * periods, params.inexact_s / interval_s
    dense = np.zeros(off.shape)
    for wander in params.wanders:
        spread = np.sqrt((wander * periods) ** 2 * cycles + inexact**2)
        dense += np.exp(-((off / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi)) / len(params.wanders)
    seen = sum((share * (1.0 - share) ** (cycles - 1.0) for share in params.seen_shares), np.zeros(off.shape))
    dense *= seen * (1.0 - params.end) / len(params.seen_shares)
    by_chance = _density(first, step_count, params.density_s / interval_s)[follow][:, :, None]
    return np.where((place < count)[:, :, None], np.log(np.maximum(dense, 1e-300) / by_chance), -np.inf)


def _density(first: Ints, step_count: int, around: float) -> Reals:
    """Return how many bursts begin in a step, around each."""
    low, high = (np.searchsorted(first, first + way) for way in (-around / 2, around / 2))
    found: Reals = np.maximum((high - low) / around, len(first) / max(step_count, 1))
    return found


def _chained(gains: Reals, periods: Reals) -> tuple[Reals, Ints]:
    """Return the evidence of the best chain that ends with each burst, and the burst before it, -1 where it begins.

    Shape (bursts, periods). A chain begins with any burst.
    """
    count, most = gains.shape[:2]
    best = np.full((count + most, len(periods)), -math.log(count))
    before = np.full(best.shape, -1)
    for place in range(count):
        following = slice(place + 1, place + 1 + most)
        reached = best[place] + gains[place]
        is_better = reached > best[following]
        best[following][is_better] = reached[is_better]
        before[following][is_better] = place
    return best[:count], before[:count]


def _traced(before: Ints, last: int) -> Ints:
    """Return the chain that ends with a burst."""
    members = [last]
    while (place := int(before[members[-1]])) >= 0:
        members.append(place)
    return np.array(members[::-1], np.int64)


def _refined(gaps: Reals, period: float, params: TrainParams) -> float:
    """Return the period that a chain's distances have in the mean: twice or three times as long if nearly all are."""
    cycles = np.maximum(np.rint(gaps / period), 1.0)
    for times in (2.0, 3.0):
        if (cycles % times == 0).mean() >= params.most_even:
            cycles /= times
    return float(gaps.sum() / np.maximum(np.rint(cycles), 1.0).sum())


def _held(link: Reals, own: LeftBursts, runs: Runs, slack: float) -> float:
    """Return how much of the evidence of a chain's links the runs of one application tell: of the one that tells most.

    A run tells a link where it holds both of its bursts.
    """
    is_in = (runs.started[:, None] <= own.first[:-1] + slack) & (runs.ended[:, None] >= own.after[1:] - slack)
    run, place = np.nonzero(is_in)
    told = np.unique(np.stack([runs.application[run], place]), axis=1)
    return float(np.bincount(told[0], link[told[1]]).max(initial=0.0)) if told.size else 0.0


def _kept(own: LeftBursts, period: float, left_bytes: Reals, interval_s: float, params: TrainParams) -> float:
    """Return in which share of its due places a train may have been: where it is, or as much flowed.

    What hides a burst takes no byte from it: where nothing flows, there was none. Places that were not measured are not
    asked.
    """
    gaps = np.diff(own.first).astype(np.float64)
    cycles = np.maximum(np.rint(gaps / period), 1.0).astype(np.int64)
    link = np.repeat(np.arange(len(gaps)), cycles - 1)
    place = places_within(cycles - 1) + 1
    due = own.first[link] + place * (gaps / cycles)[link]
    # between two that are known a train can be off least where it is next to one of them
    between = place * (cycles[link] - place) / cycles[link]
    inexact = max(params.wanders) / 2 * period * np.sqrt(between) + params.inexact_s / interval_s
    lasting, volume = float(np.median(own.after - own.first)), float(np.median(own.volume_bytes))
    low = np.clip(np.floor(due - inexact), 0, len(left_bytes)).astype(np.int64)
    high = np.clip(np.ceil(due + lasting + inexact), 0, len(left_bytes)).astype(np.int64)
    moved, unknown = (
        total[high] - total[low]
        for total in (_running(np.nan_to_num(left_bytes)), _running(np.isnan(left_bytes).astype(np.float64)))
    )
    is_known = unknown <= (high - low) / 3
    is_there = moved[is_known] >= params.least_share * volume
    return float((len(own) + is_there.sum()) / (len(own) + len(is_there)))


def _running(values: Reals) -> Reals:
    return np.concatenate([[0.0], np.cumsum(values)])

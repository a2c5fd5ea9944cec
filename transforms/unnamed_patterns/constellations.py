"""Constellations: two bursts, each of its own volume, that come at one distance again and again.

Where few bursts of a volume are left clean, no scan of volumes tells them from others. But that two volumes come at one
distance, and again, is hardly ever chance: of n and m bursts of them in a time T, chance brings n m w / T pairs within
a window w of distances, and more where bursts come in crowds. So pairs are counted that are alike in both volumes and
in their distance, the least likely number first (Poisson's tail, by Chernoff's bound); appearances of which only one
burst is clean are added where the other one begins when it is due.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from iosig.transforms.arrays import Bools, Ints, Reals, places_of
from iosig.transforms.unnamed_patterns.left_bursts import LeftBursts

#: two bursts that are so many periods of a train apart are the train's
_MULTIPLES = np.arange(1.0, 4.0)
#: appearances of a rhythm come so exactly at multiples of its period, which tells for so many
_OFF_BEAT, _MOST_CYCLES = 0.1, 50.0
#: by chance a fifth of the distances are on a beat
_MOST_ON_BEAT = 0.5


@dataclass(frozen=True, slots=True)
class ConstellationParams:
    """Which pairs are one; the values are ours, chosen on simulated sites (seeds 60 to 65).

    shortest_s, longest_s: how far the two bursts are apart. lag_ratio, lag_s: distances that are one differ by less
    than that share of them and so many seconds. reaches: volumes that are one differ by less, in their logarithms, the
    first burst's and the second's: each is tried. least_pairs: so many pairs are clean; least_count: it appeared so
    often. false_alarm_probability: of one constellation by chance, all pairs counted; most_tried: so many are looked
    at. clean: a burst of that volume lies within so much of it; spoilt: another's bytes make it larger by up to that.
    least_purity: of what is added less than the rest is chance. most_own: where more of the second bursts are first
    ones, too, or more appearances follow one another within longest_s, it is a rhythm.
    """

    shortest_s: float = 30.0
    longest_s: float = 1200.0
    lag_ratio: float = 0.02
    lag_s: float = 6.0
    reaches: tuple[tuple[float, float], ...] = ((0.02, 0.02), (0.04, 0.04), (0.04, 0.15), (0.15, 0.04), (0.1, 0.1))
    least_pairs: int = 3
    least_count: int = 4
    false_alarm_probability: float = 0.01
    most_tried: int = 50
    clean: float = 0.05
    spoilt: float = 1.1
    least_purity: float = 0.75
    most_own: float = 0.1


@dataclass(frozen=True, slots=True)
class Constellation:
    """Bursts of a constellation, in order of time, and how many steps its two are apart."""

    members: Ints
    lag: float


class Pairs:
    """Pairs of bursts, of which constellations are taken out one by one."""

    def __init__(
        self,
        bursts: LeftBursts,
        which: tuple[Bools, Bools],
        periods: Reals,
        step_count: int,
        interval_s: float,
        params: ConstellationParams | None = None,
    ) -> None:
        """Pair bursts.

        which (bursts each): those that are free, and those that are there: of two that are, one at least is free.
        periods: of trains, in steps: what is one to three of them apart is no pair. step_count: in how many steps
        bursts were measured.
        """
        is_free, is_there = which
        self._params = params = params or ConstellationParams()
        self._bursts, self._there, self._interval_s = bursts, np.flatnonzero(is_free | is_there), interval_s
        self._volume: Reals = np.log(bursts.volume_bytes)
        first = bursts.first[self._there]
        after = np.searchsorted(first, first + params.longest_s / interval_s, side="right")
        counts = after - np.arange(len(first)) - 1
        lead = self._there[np.repeat(np.arange(len(first)), counts)]
        follow = self._there[places_of(np.arange(len(first)) + 1, counts)]
        lag = (bursts.first[follow] - bursts.first[lead]).astype(np.float64)
        near = np.abs(lag[:, None] - np.outer(_MULTIPLES, periods).ravel()) <= self._slack(lag)[:, None]
        is_pair = (lag * interval_s >= params.shortest_s) & (is_free[lead] | is_free[follow]) & ~near.any(axis=1)
        self._lead, self._follow, self._lag = lead[is_pair], follow[is_pair], lag[is_pair]
        self._tried = 0
        free = np.sort(self._volume[is_free])
        chances = [self._chances(reach, free, step_count) for reach in params.reaches]
        self._reach = np.argmin(chances, axis=0)
        self._chance: Reals = np.min(chances, axis=0)

    def take(self) -> Constellation | None:
        """Take out the constellation that is least likely by chance; None where all may be."""
        most = math.log(self._params.false_alarm_probability)
        while self._tried < self._params.most_tried and self._chance.min(initial=0.0) <= most:
            self._tried += 1
            own = self._alike(int(self._chance.argmin()))
            self._chance[own] = 0.0
            found = self._with_spoilt(own)
            if found is not None:
                self._chance[np.isin(self._lead, found.members) | np.isin(self._follow, found.members)] = 0.0
                return found
        return None

    def _slack(self, lag: Reals) -> Reals:
        """Return by how many steps distances differ that are one."""
        slack: Reals = self._params.lag_ratio * lag + self._params.lag_s / self._interval_s
        return slack

    def _places(self, reach: tuple[float, float]) -> Reals:
        """Return where pairs lie (pairs, 3): those that are one differ by less than 1 in each."""
        even = np.log1p(self._lag * self._interval_s * self._params.lag_ratio / self._params.lag_s)
        volumes = (self._volume[of] / far for of, far in zip((self._lead, self._follow), reach, strict=True))
        return np.stack([*volumes, even / self._params.lag_ratio], axis=1)

    def _chances(self, reach: tuple[float, float], free: Reals, step_count: int) -> Reals:
        """Return the logarithm of how likely so many pairs like each one are by chance, all pairs counted.

        free: volumes of the free bursts, sorted.
        """
        params, places = self._params, self._places(reach)
        found = np.zeros(len(places))
        every = neighbour_counts(places, places)
        many = np.flatnonzero(every >= params.least_pairs)
        if not len(many):
            return found
        count, lag = every[many], self._lag[many]
        wide = neighbour_counts(places[:, :2], places[many, :2])
        there = np.sort(self._volume[self._there])
        frees, all_there = (
            [
                _within(of, self._volume[one[many]], far)
                for one, far in zip((self._lead, self._follow), reach, strict=True)
            ]
            for of in (free, there)
        )
        per_step = (frees[0] * all_there[1] + all_there[0] * frees[1] - frees[0] * frees[1]) / max(step_count, 1)
        # bursts come in crowds: pairs of these volumes at other distances tell
        crowd = (wide - count + 1.0) / (per_step * params.longest_s / self._interval_s + 1.0)
        expected = np.maximum(per_step * (2.0 * self._slack(lag) + 1.0) * crowd, 1e-9)
        tail = np.where(count > expected, count - expected - count * np.log(count / expected), 0.0)
        found[many] = tail + math.log(len(places) * len(params.reaches))
        return found

    def _alike(self, pair: int) -> Ints:
        """Return the pairs that are left and like one."""
        places = self._places(self._params.reaches[self._reach[pair]])
        own: Ints = np.flatnonzero((np.abs(places - places[pair]) <= 1.0).all(axis=1) & (self._chance < 0.0))
        return own

    def _with_spoilt(self, own: Ints) -> Constellation | None:
        """Return some pairs with the appearances of which one burst is spoilt; None where it is none, or a rhythm."""
        params = self._params
        leads, follows = np.unique(self._lead[own]), np.unique(self._follow[own])
        if min(len(leads), len(follows)) < params.least_pairs or np.isin(follows, leads).mean() > params.most_own:
            return None
        lag = float(np.median(self._lag[own]))
        low, high = (float(np.median(self._volume[one])) for one in (leads, follows))
        first, second = self._due(low, high, lag, leads), self._due(high, low, -lag, follows)
        members = np.unique(np.concatenate([leads, follows, *first, *second]))
        if self._is_rhythm(members, lag):
            return None
        return Constellation(members, lag)

    def _is_rhythm(self, members: Ints, lag: float) -> bool:
        """Return whether too few appearances are apart, too many near each other, or most on one beat."""
        params, slack = self._params, float(self._slack(np.array([lag]))[0])
        gaps = np.diff(self._bursts.first[members]).astype(np.float64)
        # an appearance begins where nothing was for longer than the two are apart
        gaps = gaps[gaps > lag + 2.0 * slack]
        if len(gaps) + 1 < params.least_count:
            return True
        near = float((gaps * self._interval_s < params.longest_s).mean())
        cycles = gaps / lag
        on_beat = float(((np.abs(cycles - np.rint(cycles)) <= _OFF_BEAT) & (cycles <= _MOST_CYCLES)).mean())
        return near > params.most_own or on_beat > _MOST_ON_BEAT

    def _due(self, clean: float, other: float, lag: float, known: Ints) -> tuple[Ints, Ints]:
        """Return clean bursts that are not known, and the perhaps spoilt ones that begin when they are due then.

        None where chance brings nearly as many: at other distances there are as many.
        """
        params, volume = self._params, self._volume[self._there]
        anchors = np.setdiff1d(self._there[np.abs(volume - clean) <= params.clean], known)
        others = self._there[(volume >= other - 2.0 * params.clean) & (volume <= other + params.spoilt)]
        slack = float(self._slack(np.abs(np.array([lag])))[0])
        aside = np.arange(3, 31) * 2.0 * slack
        at = self._bursts.first[anchors].astype(np.float64)
        due = at[:, None] + lag + np.concatenate([np.zeros(1), aside, -aside])
        first = np.append(self._bursts.first[others], np.iinfo(np.int64).max // 2)
        place = np.searchsorted(first, due - slack)
        is_there = first[place] <= due + slack
        count, chance = int(is_there[:, 0].sum()), float(is_there[:, 1:].mean(axis=1).sum())
        if not count or count * (1.0 - params.least_purity) < chance:
            return anchors[:0], anchors[:0]
        return anchors[is_there[:, 0]], others[place[is_there[:, 0], 0]]


def neighbour_counts(places: Reals, asked: Reals) -> Reals:
    """Return how many places (n, dimensions) are no further than 1 in every dimension from each one asked."""
    if not len(places):
        return np.zeros(len(asked))
    counts: Reals = cKDTree(places).query_ball_point(asked, 1.0, p=np.inf, return_length=True).astype(np.float64)
    return counts


def _within(values: Reals, asked: Reals, far: float) -> Ints:
    """Return how many of some sorted values are so near each one asked."""
    return np.searchsorted(values, asked + far, side="right") - np.searchsorted(values, asked - far, side="left")

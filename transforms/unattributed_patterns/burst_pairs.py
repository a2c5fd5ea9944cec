"""Find pairs of bursts, each with its own volume, that recur at a fixed lag.

If other traffic overlaps most bursts of an application, too few undisturbed bursts remain for a cluster. Two volumes
that recur at one lag may still be significant: n and m bursts of these volumes in a time T give n m w / T chance pairs
within a lag window w, and more if bursts are crowded. Pairs with similar volumes and lags are counted, and the most
improbable count wins (Poisson tail, by Chernoff's bound). Appearances with only one undisturbed burst are added if the
other burst begins on time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from iosig.transforms.arrays import Bools, Ints, Reals, places_of
from iosig.transforms.unattributed_patterns.residual_bursts import ResidualBursts

#: multiples of a train's period at which two bursts belong to the train
_TRAIN_MULTIPLES = np.arange(1.0, 4.0)
#: tolerance of a multiple of the lag, in lags, and the maximum multiple at which such agreement is informative
_BEAT_TOLERANCE, _MAX_CYCLES = 0.1, 50.0
#: fraction of gaps at multiples of the lag above which the pair is periodic; a fifth occur by chance
_MAX_ON_BEAT_RATIO = 0.5


@dataclass(frozen=True, slots=True)
class BurstPairParams:
    """Thresholds of the pair search. The defaults were chosen on simulated sites (seeds 60 to 65)."""

    #: range of lags between the two bursts [s]
    min_lag_s: float = 30.0
    max_lag_s: float = 1200.0
    #: tolerance of a lag: this fraction of the lag plus `tolerance_s` [s]
    tolerance_ratio: float = 0.02
    tolerance_s: float = 6.0
    #: maximum differences of the first and the second log volume; all pairs are tried
    reaches: tuple[tuple[float, float], ...] = ((0.02, 0.02), (0.04, 0.04), (0.04, 0.15), (0.15, 0.04), (0.1, 0.1))
    #: minimum number of undisturbed pairs
    min_pairs: int = 3
    #: minimum number of appearances
    min_count: int = 4
    #: probability of one or more false pair patterns, over all pairs
    false_alarm_probability: float = 0.01
    #: maximum number of candidates examined; bounds the run time
    max_candidates: int = 50
    #: maximum difference of an undisturbed burst's log volume from the typical one
    clean_reach: float = 0.05
    #: maximum increase of the log volume by another application's bytes
    contaminated_reach: float = 1.1
    #: minimum fraction of the added appearances in excess of chance
    min_purity: float = 0.75
    #: maximum fraction of second bursts that are first bursts too, and of appearances within `max_lag_s` of the
    #: previous one; above it the pattern is periodic
    max_chained_ratio: float = 0.1


@dataclass(frozen=True, slots=True)
class BurstPairs:
    """Bursts of one pair pattern: their indices in chronological order, and the lag of the pair in steps."""

    members: Ints
    lag: float


class PairScan:
    """Successive extraction of recurring pairs.

    Parameters
    ----------
    bursts : ResidualBursts
        n bursts.
    masks : (Bools, Bools), shape (n,) each
        Free bursts, which belong to no pattern so far, and all available bursts. One burst of a pair or both are free.
    periods : Reals
        Periods of known trains, in steps; bursts that are one to three periods apart are not a pair.
    step_count : int
        Number of measured steps.
    interval_s : float
        Length of a step [s].
    params : BurstPairParams, optional
        Thresholds.

    """

    def __init__(
        self,
        bursts: ResidualBursts,
        masks: tuple[Bools, Bools],
        periods: Reals,
        step_count: int,
        interval_s: float,
        params: BurstPairParams | None = None,
    ) -> None:
        """Enumerate all pairs and compute their p-values."""
        is_free, is_available = masks
        self._params = params = params or BurstPairParams()
        self._bursts, self._interval_s = bursts, interval_s
        self._available = np.flatnonzero(is_free | is_available)
        self._volume: Reals = np.log(bursts.volume_bytes)
        first = bursts.first[self._available]
        after = np.searchsorted(first, first + params.max_lag_s / interval_s, side="right")
        counts = after - np.arange(len(first)) - 1
        lead = self._available[np.repeat(np.arange(len(first)), counts)]
        follow = self._available[places_of(np.arange(len(first)) + 1, counts)]
        lag = (bursts.first[follow] - bursts.first[lead]).astype(np.float64)
        is_periodic = (
            np.abs(lag[:, None] - np.outer(_TRAIN_MULTIPLES, periods).ravel()) <= self._tolerance(lag)[:, None]
        )
        is_pair = (lag * interval_s >= params.min_lag_s) & (is_free[lead] | is_free[follow]) & ~is_periodic.any(axis=1)
        self._lead, self._follow, self._lag = lead[is_pair], follow[is_pair], lag[is_pair]
        self._candidate_count = 0
        free_volumes = np.sort(self._volume[is_free])
        log_p = [self._log_p_values(reach, free_volumes, step_count) for reach in params.reaches]
        self._reach = np.argmin(log_p, axis=0)
        self._log_p: Reals = np.min(log_p, axis=0)

    def pop(self) -> BurstPairs | None:
        """Remove and return the most significant pair pattern; None if no other is significant."""
        max_log_p = math.log(self._params.false_alarm_probability)
        while self._candidate_count < self._params.max_candidates and self._log_p.min(initial=0.0) <= max_log_p:
            self._candidate_count += 1
            similar = self._find_similar(int(self._log_p.argmin()))
            self._log_p[similar] = 0.0
            result = self._complete(similar)
            if result is not None:
                self._log_p[np.isin(self._lead, result.members) | np.isin(self._follow, result.members)] = 0.0
                return result
        return None

    def _tolerance(self, lag: Reals) -> Reals:
        """Maximum difference between equal lags, in steps."""
        tolerance: Reals = self._params.tolerance_ratio * lag + self._params.tolerance_s / self._interval_s
        return tolerance

    def _coordinates(self, reach: tuple[float, float]) -> Reals:
        """Positions of the pairs (pairs, 3), scaled so that similar pairs differ by less than 1 in each coordinate."""
        scaled_lag = np.log1p(self._lag * self._interval_s * self._params.tolerance_ratio / self._params.tolerance_s)
        volumes = (self._volume[burst] / width for burst, width in zip((self._lead, self._follow), reach, strict=True))
        return np.stack([*volumes, scaled_lag / self._params.tolerance_ratio], axis=1)

    def _log_p_values(self, reach: tuple[float, float], free_volumes: Reals, step_count: int) -> Reals:
        """Corrected log p-value of the number of similar pairs, for each pair; `free_volumes`: sorted log volumes."""
        params, coordinates = self._params, self._coordinates(reach)
        log_p = np.zeros(len(coordinates))
        similar_count = count_neighbors(coordinates, coordinates)
        tested = np.flatnonzero(similar_count >= params.min_pairs)
        if not len(tested):
            return log_p
        count, lag = similar_count[tested], self._lag[tested]
        any_lag_count = count_neighbors(coordinates[:, :2], coordinates[tested, :2])
        available_volumes = np.sort(self._volume[self._available])
        free_counts, available_counts = (
            [
                _count_within(volumes, self._volume[burst[tested]], width)
                for burst, width in zip((self._lead, self._follow), reach, strict=True)
            ]
            for volumes in (free_volumes, available_volumes)
        )
        per_step = (
            free_counts[0] * available_counts[1]
            + available_counts[0] * free_counts[1]
            - free_counts[0] * free_counts[1]
        ) / max(step_count, 1)
        # since bursts are crowded, the number of such pairs at other lags corrects the expectation
        crowding = (any_lag_count - count + 1.0) / (per_step * params.max_lag_s / self._interval_s + 1.0)
        expected = np.maximum(per_step * (2.0 * self._tolerance(lag) + 1.0) * crowding, 1e-9)
        log_tail = np.where(count > expected, count - expected - count * np.log(count / expected), 0.0)
        log_p[tested] = log_tail + math.log(len(coordinates) * len(params.reaches))
        return log_p

    def _find_similar(self, pair: int) -> Ints:
        """Find remaining pairs with similar volumes and a similar lag to one pair."""
        coordinates = self._coordinates(self._params.reaches[self._reach[pair]])
        similar: Ints = np.flatnonzero(
            (np.abs(coordinates - coordinates[pair]) <= 1.0).all(axis=1) & (self._log_p < 0.0)
        )
        return similar

    def _complete(self, pairs: Ints) -> BurstPairs | None:
        """Add appearances with one contaminated burst; None if the pairs are too few or periodic."""
        params = self._params
        leads, follows = np.unique(self._lead[pairs]), np.unique(self._follow[pairs])
        is_chained = np.isin(follows, leads).mean() > params.max_chained_ratio
        if min(len(leads), len(follows)) < params.min_pairs or is_chained:
            return None
        lag = float(np.median(self._lag[pairs]))
        lead_volume, follow_volume = (float(np.median(self._volume[burst])) for burst in (leads, follows))
        after_leads = self._find_due(lead_volume, follow_volume, lag, leads)
        before_follows = self._find_due(follow_volume, lead_volume, -lag, follows)
        members = np.unique(np.concatenate([leads, follows, *after_leads, *before_follows]))
        if self._is_periodic(members, lag):
            return None
        return BurstPairs(members, lag)

    def _is_periodic(self, members: Ints, lag: float) -> bool:
        """Whether appearances are too few, mostly follow each other closely, or mostly keep to multiples of the lag."""
        params, tolerance = self._params, float(self._tolerance(np.array([lag]))[0])
        gaps = np.diff(self._bursts.first[members]).astype(np.float64)
        # a gap longer than the lag separates two appearances
        gaps = gaps[gaps > lag + 2.0 * tolerance]
        if len(gaps) + 1 < params.min_count:
            return True
        close_ratio = float((gaps * self._interval_s < params.max_lag_s).mean())
        cycles = gaps / lag
        on_beat = (np.abs(cycles - np.rint(cycles)) <= _BEAT_TOLERANCE) & (cycles <= _MAX_CYCLES)
        return close_ratio > params.max_chained_ratio or float(on_beat.mean()) > _MAX_ON_BEAT_RATIO

    def _find_due(self, clean_volume: float, other_volume: float, lag: float, known_bursts: Ints) -> tuple[Ints, Ints]:
        """Find further undisturbed bursts, and the possibly contaminated bursts that begin one lag later.

        Nothing is returned if other lags have nearly the same number of bursts, since chance then explains these.
        """
        params, volume = self._params, self._volume[self._available]
        anchors = np.setdiff1d(self._available[np.abs(volume - clean_volume) <= params.clean_reach], known_bursts)
        candidates = self._available[
            (volume >= other_volume - 2.0 * params.clean_reach) & (volume <= other_volume + params.contaminated_reach)
        ]
        tolerance = float(self._tolerance(np.abs(np.array([lag])))[0])
        control_shifts = np.arange(3, 31) * 2.0 * tolerance
        start = self._bursts.first[anchors].astype(np.float64)
        due = start[:, None] + lag + np.concatenate([np.zeros(1), control_shifts, -control_shifts])
        first = np.append(self._bursts.first[candidates], np.iinfo(np.int64).max // 2)
        nearest = np.searchsorted(first, due - tolerance)
        is_there = first[nearest] <= due + tolerance
        count, expected = int(is_there[:, 0].sum()), float(is_there[:, 1:].mean(axis=1).sum())
        if not count or count * (1.0 - params.min_purity) < expected:
            return anchors[:0], anchors[:0]
        return anchors[is_there[:, 0]], candidates[nearest[is_there[:, 0], 0]]


def count_neighbors(points: Reals, queries: Reals) -> Reals:
    """Count the points within Chebyshev distance 1 of each query.

    Parameters
    ----------
    points : Reals, shape (n, d)
        Positions, scaled to the search radius.
    queries : Reals, shape (m, d)
        Centers.

    Returns
    -------
    Reals, shape (m,)
        Number of points, as floats.

    """
    if not len(points):
        return np.zeros(len(queries))
    counts: Reals = cKDTree(points).query_ball_point(queries, 1.0, p=np.inf, return_length=True).astype(np.float64)
    return counts


def _count_within(values: Reals, centers: Reals, reach: float) -> Ints:
    """Count sorted values within a distance of each center."""
    low, high = np.searchsorted(values, centers - reach), np.searchsorted(values, centers + reach, side="right")
    return high - low

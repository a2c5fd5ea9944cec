"""Phases whose distances are more alike than chance makes them.

Bursts at random times have idle gaps that are exponential, whatever the rate at which they come: gaps that are more
alike than that are regular. This needs no fixed rhythm, so it sees what a spectrum does not: a computation that
takes now longer and now shorter shifts all later phases, and smears every line.

The measure is the squared coefficient of variation of the gaps (ddof 0), Greenwood's statistic G less its least
value: c = m G - 1, for m gaps (Greenwood, J. R. Stat. Soc. 109, 1946). Of random gaps, divided by their sum, every
mixture is as probable as any other; that c or less happens by chance is the share of such a simplex within a ball
around its centre (`log_probability`).

A phase may be in pieces. So phases are also merged across all gaps up to the k-th shortest, for every k: the gaps
that are left, less that shortest one, are exponential again if all are, as the exponential has no memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, log_ndtr

from iosig.transforms.arrays import Bools, InPieces, Ints, Reals, offsets_of, owners

Floats = npt.NDArray[np.floating[Any]]

#: what is above the mean by a lower share of it is so by rounding only (of single precision)
_ROUNDING = 1e-6
#: the variance of a gap that is known to one sample at either end, in squared samples
_SAMPLING_VARIANCE = 1.0 / 6.0


#: a phase with less than this share of the bytes of a typical one (the mean over bytes, not over phases) is none
LEAST_PHASE_RATIO = 0.1
#: with more phases to a sample, and more phases than a few, what flickers has none that can be told from one another
_MOST_PHASES_RATIO, _FEW_PHASES = 0.125, 64
#: What varies more in its distances is called no period, however sure it is that it is not random: at a coefficient of
#: variation of 0.5 a cycle in 20 is less than nothing or more than two of the mean (ours).
LARGEST_VARIATION = 0.5
#: a period is at least so many samples long, as distances are known to a sample
_LEAST_SAMPLES = 3.0
#: the share of the probability of a false alarm that is spent on phases as they are; the rest is for merged ones
PLAIN_WEIGHT = 0.6


#: the share of phases that may have begun in what was not measured, and how much longer than a stretch of samples that
#: were measured gaps have to be where there are more
_MOST_TORN, _STRETCHES_IN_GAP = 0.1, 4.0
#: starts and middles are looked at where gaps are more probable than what is asked for by so much at most (logarithm)
_WORTH_MIDDLES = 4.0
#: as how many tests they count, beside gaps
_LOG_MIDDLES = math.log(2.0)


@dataclass(frozen=True)
class Phases(InPieces):
    """Phases of n signals, in order of time: those of signal i are from offsets[i] to offsets[i + 1].

    first, last (phases): samples, the last one not included. volume (phases): the sum of the phase's samples. is_torn
    (phases): whether something that was not measured is right before, so that nobody knows when it began; None: never.
    started (phases): when each began on a clock that goes on where nothing is measured; None: as `first`.
    """

    first: Ints
    last: Ints
    volume: Reals
    offsets: Ints
    is_torn: Bools | None = None
    started: Ints | None = None

    @classmethod
    def joined(cls, parts: Sequence[Phases]) -> Phases:
        """Return the phases of the signals of several, at least one, as those of the only ones.

        None of them has a clock of its own (`started`), and of all or of none it is known what is torn.
        """
        torn = [part.is_torn for part in parts if part.is_torn is not None]
        assert all(part.started is None for part in parts)
        assert len(torn) in (0, len(parts))
        return cls(
            np.concatenate([part.first for part in parts]),
            np.concatenate([part.last for part in parts]),
            np.concatenate([part.volume for part in parts]),
            offsets_of(np.concatenate([part.counts for part in parts])),
            np.concatenate(torn) if torn else None,
        )

    @property
    def signal_count(self) -> int:
        """The number of signals."""
        return len(self.offsets) - 1

    @cached_property
    def owner(self) -> Ints:
        """The signal of each phase."""
        return owners(self.offsets)

    @property
    def effective_counts(self) -> Reals:
        """By how many phases of one size the bytes might be carried (n): (sum v)^2 / sum v^2; 0 without phases."""
        squares = self._square_sums
        return np.divide(self._volume_sums**2, squares, out=np.zeros(len(squares)), where=squares > 0)

    @property
    def typical_volume(self) -> Reals:
        """What a typical phase carries, the mean over bytes (n); 0 without phases."""
        volume = self._volume_sums
        return np.divide(self._square_sums, volume, out=np.zeros(len(volume)), where=volume > 0)

    @property
    def typical_length(self) -> Reals:
        """How many samples long phases are, the mean over bytes (n); 0 without phases."""
        volume = self._volume_sums
        lengths = self._sums(self.volume * (self.last - self.first))
        return np.divide(lengths, volume, out=np.zeros(len(volume)), where=volume > 0)

    def chosen(self, is_wanted: Bools) -> Phases:
        """Return some of the phases."""
        counts = np.bincount(self.owner[is_wanted], minlength=self.signal_count)
        offsets = offsets_of(counts)
        return self._at(is_wanted, offsets)

    def large(self, ratio: float) -> Phases:
        """Return those with at least so large a share of a typical phase's bytes."""
        is_large = self.volume >= (ratio * self.typical_volume)[self.owner]
        return self if is_large.all() else self.chosen(is_large)

    def of(self, signals: Ints) -> Phases:
        """Return the phases of some signals, as those of the only ones."""
        at = self.places_in(signals)
        return self._at(at, offsets_of(self.counts[signals]))

    def _at(self, at: Bools | Ints, offsets: Ints) -> Phases:
        torn = None if self.is_torn is None else self.is_torn[at]
        started = None if self.started is None else self.started[at]
        return Phases(self.first[at], self.last[at], self.volume[at], offsets, torn, started)

    @cached_property
    def _volume_sums(self) -> Reals:
        return self._sums(self.volume)

    @cached_property
    def _square_sums(self) -> Reals:
        return self._sums(self.volume**2)

    def _sums(self, values: Floats) -> Reals:
        # with weights the sums are real, and so they are without any phases
        return np.bincount(self.owner, values, self.signal_count).astype(np.float64, copy=False)


@dataclass(frozen=True)
class Activity:
    """When signals (n) are above their thresholds.

    changes (n, samples + 1): whether a signal goes above its threshold with that sample, or below; they come in
    pairs, the first sample of a phase and the one behind its last. counts (n): the phases.
    """

    changes: Bools
    counts: Ints

    def chosen(self, is_wanted: Bools) -> Activity:
        """Return the same for some signals, as if the others were never active."""
        if is_wanted.all():
            return self
        changes = self.changes & is_wanted[:, None] if is_wanted.any() else np.zeros((0, 1), dtype=np.bool_)
        return Activity(changes, np.where(is_wanted, self.counts, 0))

    def phases(self, rates: Floats) -> Phases:
        """Return the phases, with the sums of the rates in them."""
        cells = self.edges_from(np.arange(len(rates)) * rates.shape[1])
        # the last phase may end with the table
        cells = cells[:-1] if len(cells) and cells[-1] == rates.size else cells
        volume = np.add.reduceat(rates.ravel(), cells)[::2] if len(cells) else np.zeros(0)
        return self.carrying(volume.astype(np.float64))

    def carrying(self, volume: Reals) -> Phases:
        """Return the phases, with their sums."""
        edges = self.edges_from(np.zeros(len(self.counts), dtype=np.int64))
        return Phases(edges[::2], edges[1::2], volume, offsets_of(self.counts))

    def edges_from(self, start: Ints) -> Ints:
        """Return where each phase begins, and where it ends, counted from each signal's start (2 phases)."""
        shift = start - np.arange(len(start)) * self.changes.shape[1]
        found: Ints = self._edges + np.repeat(shift, 2 * self.counts)
        return found

    @cached_property
    def _edges(self) -> Ints:
        return np.flatnonzero(self.changes)


def activity(rates: Floats, threshold: Reals, is_known: Bools | None = None) -> Activity:
    """Return when signals are above their thresholds.

    rates (n, samples): at least 0, and 0 where not known. threshold (n): FTIO's is V(S) / L, the mean over the time
    that is judged (section II-C). What is not known is part of a phase where there is one right before and right
    after.
    """
    is_high = np.zeros((len(rates), rates.shape[1] + 2), dtype=np.bool_)
    np.greater(rates, (threshold * (1 + _ROUNDING)).astype(rates.dtype)[:, None], out=is_high[:, 1:-1])
    if is_known is not None:
        _bridge(is_high[:, 1:-1], is_known)
    # every phase has two of them, and none reaches into another row
    changes = is_high[:, 1:] != is_high[:, :-1]
    return Activity(changes, np.count_nonzero(changes, axis=1) // 2)


def phases(rates: Floats, threshold: Reals, is_known: Bools | None = None) -> Phases:
    """Return the runs of samples above each signal's threshold, as `activity` has them."""
    return activity(rates, threshold, is_known).phases(rates)


def is_flicker(active: Activity, lengths: Ints) -> Bools:
    """Return which signals of so many samples have more phases than can be told from one another (n)."""
    found: Bools = active.counts > np.maximum(_MOST_PHASES_RATIO * lengths, _FEW_PHASES)
    return found


def _bridge(is_high: Bools, is_known: Bools) -> None:
    """Set, in place, what is not known as what is on both its sides."""
    rows = np.flatnonzero(~is_known.all(axis=1))
    if not len(rows):
        return
    known, high = is_known[rows], is_high[rows]
    place = np.arange(known.shape[1])
    before = np.maximum.accumulate(np.where(known, place, 0), axis=1)
    after = np.minimum.accumulate(np.where(known, place, len(place) - 1)[:, ::-1], axis=1)[:, ::-1]
    is_high[rows] = np.take_along_axis(high, before, axis=1) & np.take_along_axis(high, after, axis=1)


# ---- how probable it is


def log_probability(gap_count: npt.ArrayLike, variation: npt.ArrayLike) -> Reals:
    """Return the logarithm of the probability that so many random gaps vary so little, or a little more than it.

    gap_count: at least 2. variation: the squared coefficient of variation c. The ball of squared radius c / m has the
    share pi^((m-1)/2) / Gamma((m+1)/2) (c/m)^((m-1)/2) Gamma(m) / sqrt(m) of the simplex: exact for c <= 1 / (m-1),
    and too much where it sticks out of the simplex. There the truth is approached by the rate at which such a
    deviation grows improbable with the number of gaps (`_excess_rate`), started late enough to stay above the truth.
    """
    count, c = np.asarray(gap_count, dtype=np.float64), np.asarray(variation, dtype=np.float64)
    with np.errstate(divide="ignore"):
        ball = 0.5 * (count - 1.0) * np.log(c * (math.pi / count)) + _log_factor(count)
        excess = np.maximum(count - 4.0 - 1.7 / c, 0.0) * _excess_rate(c)
    found: Reals = np.where(c < 1.0, np.minimum(ball - excess, 0.0), 0.0)
    return found


def _log_factor(count: Reals) -> Reals:
    if count.size > 4096 and (highest := float(count.max())) < 4 * count.size:
        table = _log_factor(np.arange(1.0, highest + 1.0))
        found: Reals = table[count.astype(np.int64) - 1]
        return found
    found = gammaln(count) - gammaln(0.5 * (count + 1.0)) - 0.5 * np.log(count)
    return found


def _rates() -> tuple[Reals, Reals]:
    """Return variations c from 0.01 to 1, and by how much the rate of large deviations is more than the ball's.

    Of all distributions on the positive half-line with a mean of 1 and a variance of c the normal one, cut off at 0,
    is the nearest to the exponential; their relative entropy is the rate (Sanov). The ball's is the same of the
    whole normal distribution, 1 - log(2 pi e c) / 2.
    """
    cut = np.concatenate([np.linspace(-12.0, 0.0, 600), np.geomspace(0.01, 60.0, 600)])
    log_tail = log_ndtr(-cut)
    hazard = np.exp(-0.5 * cut**2 - 0.5 * math.log(2 * math.pi) - log_tail)
    mean = hazard - cut
    c = (1.0 - hazard * mean) / mean**2
    entropy = log_tail + 0.5 * math.log(2 * math.pi * math.e) + 0.5 * cut * hazard
    rate = 1.0 + np.log(mean) - entropy
    return c, np.maximum(rate - (1.0 - 0.5 * np.log(2 * math.pi * math.e * c)), 0.0)


_VARIATIONS, _EXCESS = _rates()


def _excess_rate(variation: Reals) -> Reals:
    return np.interp(variation, _VARIATIONS, _EXCESS)


@lru_cache(maxsize=64)
def _largest_variations(needed: float) -> Reals:
    """Return how much so many gaps may vary at most, from none on, if their logarithm is to be what is needed.

    The last one is for all higher numbers of gaps, and allows any variation.
    """
    count = np.arange(2.0, 257.0)
    low, high = np.full(len(count), 1e-6), np.ones(len(count))
    for _ in range(20):
        middle = np.sqrt(low * high)
        # probabilities rise with variation but for rounding
        is_enough = log_probability(count, middle) > needed + 1e-5
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    return np.concatenate([[1.0, 1.0], high, [1.0]])


def merge_trials(gap_count: npt.ArrayLike) -> Reals:
    """Return as how many independent tests it counts to try all ways to merge phases with so many gaps.

    There are two less than gaps, and neighbours hardly differ: random gaps make the best of them as improbable as
    the best of k / (1 + k / 80) would be, or less so (simulated, for 3 to 1,000 gaps).
    """
    ways = np.maximum(np.asarray(gap_count, dtype=np.float64) - 2.0, 0.0)
    found: Reals = ways / (1.0 + ways / 80.0)
    return found


# ---- the test


@dataclass(frozen=True, slots=True)
class Regularity:
    """How regular each signal's phases are (n).

    log_probability: of random phases being so regular, all ways to merge counted; 0 where it cannot be told, or where
    the distances of starts vary too much to be called a period. merged_gap: phases that are no more than so many
    samples apart are one. period: the mean distance of starts, in samples; NaN where there are less than 3 phases.
    variation: the coefficient of variation of the distances of starts. first, last: the phases' first sample, and
    the one behind their last.
    """

    log_probability: Reals
    merged_gap: Ints
    period: Reals
    variation: Reals
    first: Ints
    last: Ints

    def among(self, rows: Ints, count: int) -> Regularity:
        """Return the same as that of some of so many signals; nothing is told of the others."""
        ints, reals = np.zeros((3, count), dtype=np.int64), np.full((3, count), np.nan)
        reals[0] = 0.0
        reals[:, rows] = self.log_probability, self.period, self.variation
        ints[:, rows] = self.merged_gap, self.first, self.last
        return Regularity(reals[0], ints[0], reals[1], reals[2], ints[1], ints[2])


def regularity(found: Phases, needed: float = 0.0, least_gap: int = 0, stretches: Reals | None = None) -> Regularity:
    """Tell how regular phases are (n).

    needed: a logarithm of a probability; of what is more probable nothing is told. least_gap: what is no farther apart
    is one in any case, as in means of so many neighbours; longer gaps have no memory again. Then distances of starts
    and of middles are judged, too. stretches (n): how many samples were measured side by side; where many phases may
    have begun in between, only gaps that are far longer are told.
    """
    joined = merge(found, np.full(found.signal_count, least_gap)) if least_gap else found
    large = joined.large(LEAST_PHASE_RATIO)
    worth = needed + (_WORTH_MIDDLES if least_gap else 0.0)
    log_p, merged = _best_merges(large, worth, least_gap)
    rows = np.flatnonzero(log_p <= worth)
    told = large if len(rows) == len(log_p) else large.of(rows)
    merged_phases = merge(told, merged[rows])
    if least_gap:
        gap_counts = np.maximum(told.counts - 1, 0)
        log_p[rows] = _by_middles(merged_phases, log_p[rows], merged[rows], gap_counts, least_gap)
    period, variation = _distances(merged_phases)
    is_period = (variation <= LARGEST_VARIATION) & (period >= _LEAST_SAMPLES) & (log_p[rows] <= needed)
    if stretches is not None:
        is_period &= ~_are_holes(merged_phases, merged[rows], stretches[rows])
    first, last = _spans(merged_phases)
    own = Regularity(np.where(is_period, log_p[rows], 0.0), merged[rows], period, variation, first, last)
    return own if told is large else own.among(rows, len(log_p))


def _are_holes(found: Phases, merged: Ints, stretches: Reals) -> Bools:
    """Return whether gaps may be as long as they are because of what was not measured (n).

    They end where a hole begins if the phase is torn: if that is rare, or if holes come far more often than phases,
    gaps are as random as ever.
    """
    if found.is_torn is None:
        return np.zeros(found.signal_count, dtype=np.bool_)
    owner = found.owner
    is_pair = owner[1:] == owner[:-1]
    whose, left = owner[1:][is_pair], np.maximum(found.counts - 1, 1)
    torn = np.bincount(whose, found.is_torn[1:][is_pair], found.signal_count) / left
    idle = np.bincount(whose, (found.first[1:] - found.last[:-1])[is_pair], found.signal_count) / left - merged
    are_holes: Bools = (torn > _MOST_TORN) & (idle < _STRETCHES_IN_GAP * stretches)
    return are_holes


def _by_middles(found: Phases, log_p: Reals, merged: Ints, gap_counts: Ints, least_gap: int) -> Reals:
    """Return logarithms of probabilities (n) where the distances of starts or of middles may be more alike than gaps.

    found: phases, merged. If gaps are random, and so long whatever the phases beside them are, starts and middles are
    no less random: their distances have the variance of gaps and that of phases. But where noise moves a phase's edges,
    its middle moves less; and what a clock starts may take now longer and now shorter.
    """
    owner = found.owner
    is_pair = owner[1:] == owner[:-1]
    whose, count = owner[1:][is_pair], len(log_p)
    left = np.bincount(whose, minlength=count)
    idle = (found.first[1:] - found.last[:-1])[is_pair].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(whose, idle, count) / left - merged
        random = mean * (mean - 1.0)
        best = log_p
        for twice in (found.first + found.last, 2 * found.first):
            distance = 0.5 * np.diff(twice)[is_pair]
            variance = (
                _SAMPLING_VARIANCE / 2
                + np.bincount(whose, (distance - (np.bincount(whose, distance, count) / left)[whose]) ** 2, count)
                / left
            )
            variation = np.where((random > 0) & (left >= 2), variance / random, 1.0)
            score = log_probability(np.maximum(left, 2), np.where(np.isfinite(variation), variation, 1.0))
            best = np.minimum(best, score + _log_tries(merged, gap_counts, least_gap) + _LOG_MIDDLES)
    return best


def _log_tries(merged: Ints, gap_counts: Ints, least_gap: int) -> Reals:
    """Return the logarithm of as how many tests it counts that a merge is looked at (n)."""
    ways = np.maximum(merge_trials(gap_counts) / (1.0 - PLAIN_WEIGHT), 1.0)
    found: Reals = np.log(np.where(merged <= least_gap, 1.0 / PLAIN_WEIGHT, ways))
    return found


def merge(found: Phases, merged_gap: Ints) -> Phases:
    """Return phases with those made one that are no more than so many samples apart (n)."""
    if not len(found.first):
        return found
    owner = found.owner
    is_start = np.ones(len(owner), dtype=np.bool_)
    is_start[1:] = (owner[1:] != owner[:-1]) | (found.first[1:] - found.last[:-1] > merged_gap[owner[1:]])
    starts = np.flatnonzero(is_start)
    ends = np.append(starts[1:] - 1, len(owner) - 1)
    offsets = offsets_of(np.bincount(owner[starts], minlength=found.signal_count))
    torn = None if found.is_torn is None else found.is_torn[starts]
    started = None if found.started is None else found.started[starts]
    volume = np.add.reduceat(found.volume, starts)
    return Phases(found.first[starts], found.last[ends], volume, offsets, torn, started)


@dataclass(frozen=True, slots=True)
class _Gaps:
    """The idle gaps between the phases of n signals: the distinct lengths (k) of each signal, in order.

    owner, length, count (k): whose, how many samples, how often. totals (n): how many gaps a signal has. ends (n):
    the place behind a signal's last length.
    """

    owner: Ints
    length: Ints
    count: Ints
    totals: Ints
    ends: Ints

    @classmethod
    def of(cls, found: Phases) -> _Gaps:
        """Return the gaps between phases."""
        owner = found.owner
        # one sort of whole numbers is faster than finding an order by two keys
        key = owner[1:] << 32
        key += found.first[1:]
        key -= found.last[:-1]
        key = key[owner[1:] == owner[:-1]]
        key.sort()
        is_start = np.ones(len(key), dtype=np.bool_)
        np.not_equal(key[1:], key[:-1], out=is_start[1:])
        starts = np.flatnonzero(is_start)
        key, count = key[starts], np.diff(starts, append=len(key))
        whose = key >> 32
        ends = np.searchsorted(whose, np.arange(1, found.signal_count + 1))
        return cls(whose, key & ((1 << 32) - 1), count, np.maximum(found.counts - 1, 0), ends)

    def above(self, least_gap: int = 0) -> tuple[Ints, Ints, Reals]:
        """Return what is left if all shorter gaps than each of the lengths are merged (k).

        The longest gap that is merged, or the least; how many are left; and the variance of these as a multiple of that
        of random ones: of mean length mu above the merged one, in whole samples, it would be mu (mu - 1).
        """
        is_first = np.ones(len(self.length), dtype=np.bool_)
        is_first[1:] = self.owner[1:] != self.owner[:-1]
        floor = np.where(is_first, least_gap, np.roll(self.length, 1))
        lengths = self.length.astype(np.float64)
        left, total, square = (self._from_here(self.count * power) for power in (1.0, lengths, lengths**2))
        mean = total / left
        variance = np.maximum(square / left - mean**2, 0.0) + _SAMPLING_VARIANCE
        mean -= floor
        random = mean * (mean - 1.0)
        variation = np.divide(variance, random, out=np.ones(len(mean)), where=random > 0)
        return floor, left.astype(np.int64), variation

    def _from_here(self, values: Floats) -> Reals:
        sums = np.concatenate([[0.0], np.cumsum(values)])
        found: Reals = sums[self.ends[self.owner]] - sums[:-1]
        return found


def _best_merges(found: Phases, needed: float, least_gap: int = 0) -> tuple[Reals, Ints]:
    """Return the logarithm of the probability of each signal's most regular merge, and across what it merges (n).

    Where it is above what is needed it may be 0 instead.
    """
    log_p, merged = np.zeros(found.signal_count), np.zeros(found.signal_count, dtype=np.int64)
    gaps = _Gaps.of(found)
    if not len(gaps.owner):
        return log_p, merged
    floor, left, variation = gaps.above(least_gap)
    limits = _largest_variations(needed)
    is_test = (left >= 2) & (variation < limits[np.minimum(left, len(limits) - 1)])
    score = np.zeros(len(left))
    score[is_test] = log_probability(left[is_test], variation[is_test])
    score += _log_tries(floor, gaps.totals[gaps.owner], least_gap)
    rows = np.flatnonzero(gaps.totals)
    counts = np.diff(gaps.ends[rows], prepend=0)
    best = np.minimum.reduceat(score, gaps.ends[rows] - counts)
    log_p[rows] = np.minimum(best, 0.0)
    # of equal ones the first: what merges least
    at = np.flatnonzero(score == np.repeat(best, counts))[::-1]
    merged[gaps.owner[at]] = floor[at]
    return log_p, merged


def _distances(found: Phases) -> tuple[Reals, Reals]:
    """Return the mean distance of starts in samples, and its coefficient of variation (n); NaN where there is none."""
    owner = found.owner
    is_pair = owner[1:] == owner[:-1]
    started = found.first if found.started is None else found.started
    distance, whose = np.diff(started)[is_pair].astype(np.float64), owner[1:][is_pair]
    count = np.bincount(whose, minlength=found.signal_count)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(whose, distance, found.signal_count) / count
        variance = np.bincount(whose, (distance - mean[whose]) ** 2, found.signal_count) / count
        return mean, np.sqrt(variance) / mean


def _spans(found: Phases) -> tuple[Ints, Ints]:
    """Return each signal's first sample of a phase, and the one behind the last (n); 0 without phases."""
    first, last = np.zeros(found.signal_count, dtype=np.int64), np.zeros(found.signal_count, dtype=np.int64)
    rows = np.flatnonzero(found.counts)
    first[rows] = found.first[found.offsets[:-1][rows]]
    last[rows] = found.last[found.offsets[1:][rows] - 1]
    return first, last

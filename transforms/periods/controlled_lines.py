"""Lines in a spectrum that are multiples of one frequency, and how probable noise makes them.

What repeats has a comb for a spectrum: lines at a frequency and its multiples. The spectrum of I/O is not flat, so
lines are measured against what is around them: the signal is made white by a first-order prediction, what is left
of the shape is taken from blocks of bins and from each bin's own neighbours, whichever is higher. The sum of so many
lines over the level of noise is then distributed as F has it, whose second number of degrees of freedom stands for
how well the level is known.

Not every signal can be judged so. The spectrum of a few long phases has hills of its own, as wide as the phases are
short; a line is told from a hill only if there are many bins to a hill. Where few phases carry the bytes, sums of
lines are larger by chance, which is taken for a level that is known less well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import fft

from iosig.transforms.arrays import Bools, Ints, Reals

#: single precision is enough for a search, and half as large
Floats = npt.NDArray[np.floating[Any]]

#: sizes of transforms for each doubling
_SIZES_PER_OCTAVE = 8
#: the mean of the logarithm of what has a mean of 1 and is exponential
_MEAN_LOG = -float(np.euler_gamma)
#: a power below this share of the highest is rounding
_ROUNDING = 1e-12
#: probabilities below it are not told apart
_LEAST_LOG = -300.0 * float(np.log(10.0))


# What is looked for, and what it is measured against: all ours, set by simulated noise (see the tests).

#: how many lines are summed, from a frequency to its multiples
_LINE_COUNTS = (1, 2, 3, 4, 8)
#: a line of fewer cycles in the signal cannot be told from a hill
_LEAST_CYCLES = 5.0
#: the cycles of a period of fewer samples have no shape
_LEAST_SAMPLES = 3.0
#: bins to a block
_BLOCK_BINS = 24
#: a bin's neighbours are at most and at least so far from it
_NEAR_BINS, _APART_BINS = 12, 3
#: a neighbour counts for no more than so many levels of noise: a comb's own lines are neighbours where cycles are few
_HIGHEST_NEIGHBOUR = 3.0
#: lines of no more cycles than these have half of the level, as there are few of them, and all others a quarter: few
#: cycles hold more than they have (`controlled_few`)
FEW_CYCLES, _FEW_SHARE, _MANY_SHARE = 12.0, 0.5, 0.25
#: the level of noise is as well known as from so many exponential values, or phases of one size
_LEVEL_COUNT = 72.0
#: more phases than these know the level no better
_MOST_COUNTED = 1e9
#: a signal must have at least so many samples to one sample of a typical phase
_LEAST_BINS = 40.0


@dataclass(frozen=True, slots=True)
class Centred:
    """Signals (n) about their means, white as far as one step of prediction makes them so, then zeros.

    values (n, size). lengths (n): how many samples are the signal's. typical_length, effective_counts (n): of its
    phases, as in `regularity.Phases`.
    """

    values: Floats
    lengths: Ints
    typical_length: Reals
    effective_counts: Reals

    @property
    def size(self) -> int:
        """The number of columns: the size of the transform."""
        return int(self.values.shape[1])


@dataclass(frozen=True, slots=True)
class Combs:
    """The most improbable comb of each signal (n).

    log_probability: of noise having such a one at any frequency; 0 where it cannot be told. cycles_per_sample: its
    lowest line. line_count: how many lines were summed.
    """

    log_probability: Reals
    cycles_per_sample: Reals
    line_count: Ints


def line_counts(values: Floats, lengths: Ints, effective_counts: Reals) -> Reals:
    """Return as from how many phases of one size the level of lines is known (n): at least from so many effective ones.

    Powers of what is nearly normal are exponential, however few of its samples are high; they spread more by its excess
    kurtosis over the number of samples (Brillinger, Time Series, 1981, section 4.3).
    """
    square = np.einsum("ij,ij->i", values, values).astype(np.float64)
    squares = values * values
    fourth = np.einsum("ij,ij->i", squares, squares).astype(np.float64)
    excess = fourth / np.maximum(square**2, np.finfo(np.float64).tiny) - 3.0 / np.maximum(lengths, 1)
    found: Reals = np.maximum(effective_counts, 1.0 / np.maximum(excess, 1.0 / _MOST_COUNTED))
    return found


def is_fit(lengths: Ints, typical_length: Reals, effective_counts: Reals) -> Bools:
    """Return whether there are enough bins to tell lines from hills (n)."""
    found: Bools = (lengths >= _LEAST_BINS * typical_length) & (effective_counts > 0)
    return found


def transform_sizes(lengths: Ints) -> Ints:
    """Return the least sizes that are a power of two times 8 to 15, at least 16, and at least so large (n)."""
    at_least = np.maximum(np.asarray(lengths, dtype=np.int64), 2 * _SIZES_PER_OCTAVE)
    unit = 2 ** (np.floor(np.log2(at_least)).astype(np.int64) - 3)
    found: Ints = -(-at_least // unit) * unit
    return found


def whitened(values: Floats, is_known: Bools | None = None) -> Floats:
    """Return signals (n, samples) less their means, less what each sample says of the next one; 0 where not known.

    values: 0 where not known. A missing sample is not interpolated: it and the next one are 0.
    """
    if is_known is None:
        centred = values - values.mean(axis=1, keepdims=True)
    else:
        # a product of numbers of one kind is several times as fast as a choice
        share = is_known.astype(values.dtype)
        count = np.maximum(share.sum(axis=1, keepdims=True), 1.0)
        centred = values - values.sum(axis=1, keepdims=True) / count
        centred *= share
    power = np.einsum("ij,ij->i", centred, centred)
    product = np.einsum("ij,ij->i", centred[:, 1:], centred[:, :-1])
    correlation = np.divide(product, power, out=np.zeros_like(power), where=power > 0)
    # so that the first one has the variance of the others
    first = centred[:, 0] * np.sqrt(np.maximum(1.0 - correlation**2, 0.0))
    told = centred * -correlation[:, None]
    # as one long row, as rows may be short; what is told of the next row's first one is replaced
    found, row = centred, centred.ravel()
    np.add(told.ravel()[:-1], row[1:], out=row[1:])
    found[:, 0] = first
    if is_known is not None:
        found *= share
        found[:, 1:] *= share[:, :-1]
    return np.asarray(found)


def powers(signals: Floats, size: int) -> Floats:
    """Return the squared absolute values of the transform of so many samples, zeros added (size // 2 + 1, n).

    Bins are rows, so that what is done to bins is done to all signals at once.
    """
    transformed = fft.rfft(signals, n=size, axis=1).T
    found: Floats = np.empty(transformed.shape, dtype=transformed.real.dtype)
    np.square(transformed.real, out=found)
    found += transformed.imag**2
    return found


def _maxima(values: Floats) -> Floats:
    """Return the highest value of each column (n), or 0 if all are lower."""
    return np.asarray(values.max(axis=0, initial=0.0))


# ---- over the level of noise


def over_noise(power: Floats, highest_neighbour: float = _HIGHEST_NEIGHBOUR) -> Floats:
    """Return powers as multiples of the level of noise around them (bins, n), in place; the first bin's is 0."""
    lines = power[1:]
    _over_blocks(lines, _levels(lines, _BLOCK_BINS))
    power[0] = 0.0
    _over_neighbours(power, highest_neighbour)
    return power


def _levels(lines: Floats, block_bins: int) -> Floats:
    """Return the level of noise of blocks (blocks, n), by the mean of the logarithm, which lines hardly change."""
    count = max(1, len(lines) // block_bins)
    edges = _edges(len(lines), count)
    lowest = _ROUNDING * _maxima(lines) + np.finfo(lines.dtype).tiny
    logs = lines + lowest
    np.log(logs, out=logs)
    level: Floats = np.add.reduceat(logs, edges[:-1], axis=0)
    level /= np.diff(edges)[:, None].astype(lines.dtype)
    if count > 2:
        inner = 0.25 * (level[:-2] + 2.0 * level[1:-1] + level[2:])
        level[0] = (2.0 * level[0] + level[1]) / 3.0
        level[-1] = (2.0 * level[-1] + level[-2]) / 3.0
        level[1:-1] = inner
    level -= lines.dtype.type(_MEAN_LOG)
    return np.exp(level, out=level)


def _over_blocks(lines: Floats, level: Floats) -> None:
    """Divide each bin by the level of noise there, which changes evenly from one block's middle to the next one's."""
    before, share = _knots(len(lines), len(level))
    found = np.take(level, before, axis=0)
    change = np.diff(level, axis=0, append=level[-1:])
    step = np.take(change, before, axis=0)
    step *= share[:, None].astype(lines.dtype)
    found += step
    lines /= found


@lru_cache(maxsize=64)
def _edges(bins: int, count: int) -> Ints:
    return np.linspace(0, bins, count + 1).astype(np.int64)


@lru_cache(maxsize=64)
def _knots(bins: int, count: int) -> tuple[Ints, Reals]:
    """Return behind which block's middle each bin lies, and how far on the way to the next one."""
    edges = _edges(bins, count)
    middle = 0.5 * (edges[:-1] + edges[1:] - 1)
    place = np.arange(bins)
    before = np.clip(np.searchsorted(middle, place, side="right") - 1, 0, count - 1)
    width = np.maximum(middle[np.minimum(before + 1, count - 1)] - middle[before], 1.0)
    return before, np.clip((place - middle[before]) / width, 0.0, 1.0)


def _over_neighbours(power: Floats, highest: float) -> None:
    """Divide what is above 1 on average around each bin by that average."""
    bins, count = power.shape
    near, apart = _NEAR_BINS, _APART_BINS
    if bins <= near + 1:
        return
    padded = np.zeros((bins + 2 * near, count), dtype=power.dtype)
    np.minimum(power, highest, out=padded[near : near + bins])
    # so that the mean of what is exponential stays 1
    padded /= padded.dtype.type(1.0 - np.exp(-highest))
    sums = _neighbour_sums(padded, near - apart + 1)
    around = sums[near + apart : near + apart + bins]
    around = around + sums[:bins]
    around += 1.0
    around /= _neighbour_counts(bins, near, apart)[:, None].astype(power.dtype)
    np.maximum(around, 1.0, out=around)
    power /= around


def _neighbour_sums(values: Floats, length: int) -> Floats:
    """Return the sums of so many neighbouring rows, by the first of them; of twice as many, again and again."""
    total, start, sums, size = None, 0, values, 1
    while size <= length:
        if length & size:
            part = sums[start:]
            total = part.copy() if total is None else total[: len(part)] + part
            start += size
        if 2 * size <= length:
            sums = sums[:-size] + sums[size:]
        size *= 2
    return values if total is None else total[: len(values) - length + 1]


@lru_cache(maxsize=64)
def _neighbour_counts(bins: int, near: int, apart: int) -> Reals:
    """Return how many neighbours each bin has, the first bin not counted, and one more."""
    place = np.arange(bins)
    after = np.minimum(place + near, bins - 1) - np.minimum(place + apart - 1, bins - 1)
    before = np.maximum(place - apart, 0) - np.maximum(place - near - 1, 0)
    found: Reals = 1.0 + after + before
    return found


# ---- the best comb


def best_combs(signals: Centred, ratios: Floats, told_below: float = 0.0) -> Combs:
    """Return each signal's most improbable comb.

    ratios (bins, n): powers over noise. Sums are made for each frequency that the highest line may have, so that the
    lines keep step; the lowest line's period is at least as long as a typical phase. told_below: a logarithm of a
    probability; the frequency of a comb that is more probable is not told.
    """
    count = ratios.shape[1]
    is_judged = is_fit(signals.lengths, signals.typical_length, signals.effective_counts)
    best, frequency, lines = np.zeros(count), np.full(count, np.nan), np.ones(count, dtype=np.int64)
    total, done = ratios, 1
    for line_count in _LINE_COUNTS:
        total = _sums(ratios, total, done, line_count)
        done = line_count
        for first, last, share in _bands(signals, line_count, len(ratios)):
            part, low = _between_bins(total, first, last)
            if not len(part):
                continue
            log_p = _log_probability(signals, line_count, _maxima(part), last - first + 1) - np.log(share)
            is_better = (log_p < best) & is_judged & (last >= first)
            best[is_better] = log_p[is_better]
            lines[is_better] = line_count
            rows = np.flatnonzero(is_better & (log_p < told_below))
            frequency[rows] = (part[:, rows].argmax(axis=0) + low) / (line_count * signals.size)
    return Combs(best, frequency, lines)


def _highest_bins(signals: Centred, line_count: int, bins: int) -> tuple[Ints, Ints]:
    """Return the lowest and the highest bin that the highest of so many lines may have (n)."""
    first = np.ceil(_LEAST_CYCLES * line_count * signals.size / signals.lengths).astype(np.int64)
    highest = line_count * signals.size / np.maximum(signals.typical_length, _LEAST_SAMPLES)
    return first, np.minimum(bins - 1, np.floor(highest)).astype(np.int64)


def _bands(signals: Centred, line_count: int, bins: int) -> Iterator[tuple[Ints, Ints, Reals]]:
    """Yield the lowest and the highest bin of few cycles, then of more (n), and each one's share of the level."""
    first, last = _highest_bins(signals, line_count, bins)
    few = np.floor(FEW_CYCLES * line_count * signals.size / signals.lengths).astype(np.int64)
    yield first, np.minimum(few, last), np.full(len(few), _FEW_SHARE)
    yield np.maximum(few + 1, first), last, np.full(len(few), _MANY_SHARE)


def _log_probability(signals: Centred, line_count: int, height: Floats, tried: Ints) -> Reals:
    """Return the logarithm of the probability that the highest of the sums that were tried is so high (n)."""
    known = np.maximum(signals.effective_counts, 1e-9)
    level = 1.0 / (1.0 / _LEVEL_COUNT + 1.0 / known)
    trials = np.maximum(tried * signals.lengths / signals.size, 1.0) * len(_LINE_COUNTS)
    found: Reals = np.maximum(log_tail(line_count, level, height), _LEAST_LOG) + np.log(trials)
    return found


def log_tail(line_count: int, level_count: Reals, total: Floats) -> Reals:
    """Return the logarithm of the probability that lines sum up to more than a total by chance (n).

    total: over a level of noise that is known as well as from so many exponential values. The mean line then has an
    F distribution with 2 line_count and 2 level_count degrees of freedom; as the first number is even, its tail is
    a finite sum.
    """
    ratio = total / level_count
    share = ratio / (1.0 + ratio)
    terms, term = np.ones(len(share)), np.ones(len(share))
    for line in range(1, line_count):
        term *= share * ((level_count + (line - 1.0)) / line)
        terms += term
    found: Reals = np.log(terms) - level_count * np.log1p(ratio)
    return found


# ---- sums of lines


def _sums(ratios: Floats, total: Floats, done: int, line_count: int) -> Floats:
    """Return the sums of so many lines by the bin of the highest; total is that of another number of lines."""
    if line_count == 1:
        return ratios
    bins = len(ratios)
    if line_count == 2 * done:
        # the even lines of a comb are the lines of one with half as many, and the same highest line
        found = total.copy() if done == 1 else total
        lines = range(1, line_count, 2)
    else:
        found, lines = np.zeros_like(ratios), range(1, line_count + 1)
    for line in lines:
        found += np.take(ratios, _line_bins(bins, line, line_count), axis=0)
    return found


@lru_cache(maxsize=256)
def _line_bins(bins: int, line: int, line_count: int) -> Ints:
    """Return the bin of a comb's line for each bin of its highest."""
    found: Ints = (2 * np.arange(bins) * line + line_count) // (2 * line_count)
    return found


def _between_bins(total: Floats, first: Ints, last: Ints) -> tuple[Floats, int]:
    """Return the bins from first to last of each signal (bins, n), both included, 0 outside, and the lowest bin."""
    low, high = int(first.min(initial=len(total))), int(last.max(initial=-1))
    part = total[low : high + 1]
    start, stop = int(first.max(initial=low)), int(last.min(initial=high)) + 1
    if len(part) and (start > low or stop <= high):
        part = part.copy()
        # only where some signals have begun and others not, or ended
        place = np.arange(low, high + 1)[:, None]
        begun, ended = slice(0, start - low), slice(max(stop - low, 0), None)
        part[begun] *= place[begun] >= first
        part[ended] *= place[ended] <= last
    return part, low

"""When in its cycles a rhythm moves its bytes: its bursts, and how long they are.

Where there is about one phase to a cycle above half of a burst's height, these are as long as bursts are. Else the
signal is folded at its period, and a burst is where its profile is above halfway: so noise, or another rhythm, does not
cut it into pieces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of
from iosig.transforms.periods import controlled_pauses
from iosig.transforms.periods.controlled_pauses import LEAST_PHASE_RATIO, Phases
from iosig.transforms.periods.even_signals import EvenSignals

#: pauses in a burst are shorter than this share of a cycle
_GAP_IN_CYCLE = 0.25
#: phases are bursts if there are so many of them to each cycle
_LEAST_OF_CYCLE, _MOST_OF_CYCLE = 0.8, 1.25
#: parts of a signal whose phases are compared, and how well they agree if a rhythm keeps step
_PARTS, _LEAST_AGREEMENT = 8, 0.9
#: the share of the bytes of which nothing is sought
_NEXT_TO_NOTHING = 1e-3
#: blocks of samples that belong to one part
_BLOCKS = 128
#: parts of a cycle whose means are its profile, and how many of them are low at least
_MOST_BINS, _LOW_QUANTILE = 64, 0.25


@dataclass(frozen=True, slots=True)
class Bursts:
    """The bursts of n signals: how many samples they last (n), which samples may hold a part of one (n, samples)."""

    width: Reals
    is_burst: Bools


def bursts(signals: EvenSignals, cycles_per_sample: Reals) -> Bursts:
    """Return the bursts of signals that are periodic from their first sample to their last known one.

    cycles_per_sample (n). A width is the median of phases, to a sample, or what is above halfway of a profile. Of what
    keeps step, a burst is where its profile is high: so what else there is, however high, is none.
    """
    is_known = signals.is_known
    rates = np.where(is_known, np.maximum(signals.bytes_per_s, 0.0), 0.0)
    # units change nothing
    rates /= np.maximum(rates.max(axis=1, initial=0.0, keepdims=True), np.finfo(np.float64).tiny)
    mean = rates.sum(axis=1) / np.maximum(is_known.sum(axis=1), 1)
    lengths = signals.sample_count - is_known[:, ::-1].argmax(axis=1)
    cycles = np.maximum(lengths * cycles_per_sample, 1.0)
    gap = np.floor(_GAP_IN_CYCLE / cycles_per_sample).astype(np.int64)
    high, phases = (
        controlled_pauses.merge(controlled_pauses.phases(rates, above, is_known).large(LEAST_PHASE_RATIO), gap)
        for above in (np.maximum(mean, 0.5 * _heights(rates)), mean)
    )
    width, is_burst = _medians(high), _beside(_covered(phases, rates.shape))
    is_told, is_plain = (
        (each.counts >= _LEAST_OF_CYCLE * cycles) & (each.counts <= _MOST_OF_CYCLE * cycles) for each in (high, phases)
    )
    # where next to nothing is beside phases, these are the bursts
    inside = np.bincount(phases.owner, phases.volume, len(rates))
    doubtful = np.flatnonzero(~is_plain | ~is_told | (inside < (1.0 - _NEXT_TO_NOTHING) * rates.sum(axis=1)))
    in_step = _keep_step(rates[doubtful], is_known[doubtful], cycles_per_sample[doubtful], lengths[doubtful])
    at = doubtful[~is_plain[doubtful] | ~is_told[doubtful] | in_step]
    of_profile, is_high = _of_profiles(rates[at], is_known[at], cycles_per_sample[at])
    width[at] = np.where(is_told[at], width[at], of_profile)
    is_cut = ~is_plain[at] | np.isin(at, doubtful[in_step])
    is_burst[at] = np.where(is_cut[:, None], is_high, is_burst[at])
    return Bursts(width, is_burst & is_known)


def _heights(rates: Reals) -> Reals:
    """Return how high bursts are (n): the mean rate, each sample weighed by the square of its rate."""
    squares = np.einsum("ij,ij->i", rates, rates)
    cubes = np.einsum("ij,ij,ij->i", rates, rates, rates)
    found: Reals = np.divide(cubes, squares, out=np.zeros(len(squares)), where=squares > 0)
    return found


def _keep_step(rates: Reals, is_known: Bools, cycles_per_sample: Reals, lengths: Ints) -> Bools:
    """Return whether signals have about one phase in all of their parts (n), whatever they are judged beside."""
    mean = rates.sum(axis=1, keepdims=True) / np.maximum(is_known.sum(axis=1, keepdims=True), 1)
    about = np.zeros_like(rates)
    np.subtract(rates, mean, out=about, where=is_known)
    width = np.maximum(-(-lengths // _BLOCKS), 1)
    found = np.zeros(len(rates), dtype=np.bool_)
    for each in np.unique(width).tolist():
        rows = np.flatnonzero(width == each)
        found[rows] = _agree(about[rows], each, cycles_per_sample[rows], lengths[rows])
    return found


def _agree(about: Reals, width: int, cycles_per_sample: Reals, lengths: Ints) -> Bools:
    """Return whether phases of parts agree (n), of blocks of so many samples; about: signals less their means."""
    blocks = -(-int(lengths.max()) // width)
    own = np.zeros((len(about), blocks * width))
    own[:, : about.shape[1]] = about[:, : blocks * width]
    # a wave among samples of a block is that of the first one, turned: so there are few waves
    steps = np.exp(-2j * np.pi * np.arange(width) * cycles_per_sample[:, None])
    places = np.arange(blocks) * width
    turns = places * cycles_per_sample[:, None]
    sums = np.matmul(own.reshape(len(own), blocks, width), np.stack([steps.real, steps.imag], axis=-1))
    waves = (sums[..., 0] + 1j * sums[..., 1]) * np.exp(-2j * np.pi * (turns - np.floor(turns)))
    part = np.minimum(places * _PARTS // np.maximum(lengths, 1)[:, None], _PARTS - 1)
    of_parts = np.stack([(waves * (part == each)).sum(axis=1) for each in range(_PARTS)])
    found: Bools = np.abs(of_parts.sum(axis=0)) >= _LEAST_AGREEMENT * np.abs(of_parts).sum(axis=0)
    return found


def _medians(phases: Phases) -> Reals:
    """Return the median length of each signal's phases, in samples (n); NaN where there are none."""
    length, owner, counts = (phases.last - phases.first).astype(np.float64), phases.owner, phases.counts
    ordered = length[np.lexsort((length, owner))]
    found = np.full(phases.signal_count, np.nan)
    rows = np.flatnonzero(counts)
    low, high = (phases.offsets[rows] + (counts[rows] - odd) // 2 for odd in (1, 0))
    found[rows] = 0.5 * (ordered[low] + ordered[high])
    return found


def _covered(phases: Phases, shape: tuple[int, ...]) -> Bools:
    """Return which samples are of phases (n, samples)."""
    edges = np.zeros((shape[0], shape[1] + 1), dtype=np.int64)
    edges[phases.owner, phases.first] += 1
    edges[phases.owner, phases.last] -= 1
    found: Bools = np.cumsum(edges[:, :-1], axis=1) > 0
    return found


def _of_profiles(rates: Reals, is_known: Bools, cycles_per_sample: Reals) -> tuple[Reals, Bools]:
    """Return for how many samples profiles are above halfway (n), and which samples are there (n, samples)."""
    count = len(rates)
    bins = np.clip(np.floor(1.0 / np.maximum(cycles_per_sample, 1e-12)), 2, _MOST_BINS).astype(np.int64)
    offsets = offsets_of(bins)
    turns = np.arange(rates.shape[1]) * cycles_per_sample[:, None]
    cell = np.minimum(((turns - np.floor(turns)) * bins[:, None]).astype(np.int64), bins[:, None] - 1)
    cell += offsets[:-1, None]
    size = np.bincount(cell.ravel(), is_known.ravel(), int(offsets[-1]))
    total = np.bincount(cell.ravel(), rates.ravel(), int(offsets[-1]))
    owner = np.repeat(np.arange(count), bins)
    profile = total / np.maximum(size, 1.0)
    high = np.full(count, -np.inf)
    np.maximum.at(high, owner, profile)
    ordered = profile[np.lexsort((profile, owner))]
    low = ordered[offsets[:-1] + np.floor(_LOW_QUANTILE * bins).astype(np.int64)] if count else np.zeros(0)
    is_high = profile > 0.5 * (low + high)[owner]
    width = np.bincount(owner, is_high, count) / (bins * cycles_per_sample)
    return width, (_with_neighbours(is_high, bins, offsets) > 0)[cell]


def _with_neighbours(values: Bools, bins: Ints, offsets: Ints) -> Reals:
    """Return sums of each part of a cycle and the ones beside it."""
    owner = np.repeat(np.arange(len(bins)), bins)
    place = np.arange(len(values)) - offsets[:-1][owner]
    before, after = (offsets[:-1][owner] + (place + by) % bins[owner] for by in (-1, 1))
    counts = values.astype(np.float64)
    found: Reals = counts + counts[before] + counts[after]
    return found


def _beside(is_burst: Bools) -> Bools:
    """Return the same with a sample more at each end, for that holds a part of it."""
    found = is_burst.copy()
    found[:, 1:] |= is_burst[:, :-1]
    found[:, :-1] |= is_burst[:, 1:]
    return found

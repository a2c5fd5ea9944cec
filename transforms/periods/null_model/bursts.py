"""Locate the bursts of a periodic signal within its cycles, and measure their width.

If about one phase per cycle exceeds half of the burst height, the width of a burst is that of the phases. Otherwise the
signal is folded at its period, and a burst is the part of the profile above half of its height. So neither noise nor
another rhythm splits it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Bools, Ints, Reals, offsets_of
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.null_model.gaps import GAP_TEST
from iosig.transforms.periods.null_model.phases import Phases, find_phases, merge_phases


@dataclass(frozen=True, slots=True)
class BurstParams:
    """Our parameters for locating bursts, tuned on simulated burst trains.

    Attributes
    ----------
    max_gap_ratio : float
        Gaps up to this fraction of a cycle are bridged.
    min_phases_per_cycle, max_phases_per_cycle : float
        The phases are taken as bursts if their number per cycle is in this range.
    parts, min_agreement : int, float
        A signal is divided into `parts` parts, each with a phasor. It keeps its phase if the length of their sum is
        `min_agreement` times the sum of their lengths or more.
    negligible_ratio : float
        Maximum fraction of the volume outside phases that is ignored.
    max_profile_bins : int
        Maximum number of bins of a folded profile.
    base_quantile : float
        Quantile of the profile that counts as its base level.
    """

    max_gap_ratio: float = 0.25
    min_phases_per_cycle: float = 0.8
    max_phases_per_cycle: float = 1.25
    parts: int = 8
    min_agreement: float = 0.9
    negligible_ratio: float = 1e-3
    max_profile_bins: int = 64
    base_quantile: float = 0.25


_PARAMS = BurstParams()
#: blocks per signal; all samples of a block are rotated by one phasor
_BLOCKS = 128


@dataclass(frozen=True, slots=True)
class Bursts:
    """Bursts of n signals.

    Attributes
    ----------
    width_samples : (n,)
        Width of a burst, in samples.
    is_burst : (n, samples)
        Whether a sample may contain a part of a burst.
    """

    width_samples: Reals
    is_burst: Bools


def find_bursts(signals: EvenSignals, cycles_per_sample: Reals) -> Bursts:
    """Find the bursts of signals that are periodic from their first to their last measured sample.

    Parameters
    ----------
    signals : EvenSignals
        n signals.
    cycles_per_sample : (n,)
        Frequency of each signal.

    Returns
    -------
    Bursts

    Notes
    -----
    The width is the median length of phases, or that of the profile above half of its height. In signals that keep
    their phase, bursts are the high parts of the profile; all other traffic is excluded, even if it is high.
    """
    is_known = signals.is_known
    rates = np.where(is_known, np.maximum(signals.bytes_per_s, 0.0), 0.0)
    # make the result independent of the unit
    rates /= np.maximum(rates.max(axis=1, initial=0.0, keepdims=True), np.finfo(np.float64).tiny)
    mean = rates.sum(axis=1) / np.maximum(is_known.sum(axis=1), 1)
    lengths = signals.sample_count - is_known[:, ::-1].argmax(axis=1)
    cycles = np.maximum(lengths * cycles_per_sample, 1.0)
    gap = np.floor(_PARAMS.max_gap_ratio / cycles_per_sample).astype(np.int64)
    high_phases, phases = (
        merge_phases(find_phases(rates, threshold, is_known).drop_small(GAP_TEST.min_phase_ratio), gap)
        for threshold in (np.maximum(mean, 0.5 * _estimate_heights(rates)), mean)
    )
    width_samples, is_burst = _median_lengths(high_phases), _dilate(_mark_phases(phases, rates.shape))
    is_high_regular, is_regular = (
        (candidates.counts >= _PARAMS.min_phases_per_cycle * cycles)
        & (candidates.counts <= _PARAMS.max_phases_per_cycle * cycles)
        for candidates in (high_phases, phases)
    )
    # where the volume outside phases is negligible, phases are the bursts
    volume_in_phases = np.bincount(phases.owner, phases.volume, len(rates))
    uncertain = np.flatnonzero(
        ~is_regular | ~is_high_regular | (volume_in_phases < (1.0 - _PARAMS.negligible_ratio) * rates.sum(axis=1))
    )
    keeps_phase = _keeps_phase(rates[uncertain], is_known[uncertain], cycles_per_sample[uncertain], lengths[uncertain])
    at = uncertain[~is_regular[uncertain] | ~is_high_regular[uncertain] | keeps_phase]
    profile_width, is_high = _fold(rates[at], is_known[at], cycles_per_sample[at])
    width_samples[at] = np.where(is_high_regular[at], width_samples[at], profile_width)
    use_profile = ~is_regular[at] | np.isin(at, uncertain[keeps_phase])
    is_burst[at] = np.where(use_profile[:, None], is_high, is_burst[at])
    return Bursts(width_samples, is_burst & is_known)


def _estimate_heights(rates: Reals) -> Reals:
    """Burst heights (n): the mean rate, weighted by the squared rate."""
    squares = np.einsum("ij,ij->i", rates, rates)
    cubes = np.einsum("ij,ij,ij->i", rates, rates, rates)
    heights: Reals = np.divide(cubes, squares, out=np.zeros(len(squares)), where=squares > 0)
    return heights


def _keeps_phase(rates: Reals, is_known: Bools, cycles_per_sample: Reals, lengths: Ints) -> Bools:
    """Whether signals have about the same phase in all their parts (n); independent of the batch."""
    mean = rates.sum(axis=1, keepdims=True) / np.maximum(is_known.sum(axis=1, keepdims=True), 1)
    centerd = np.zeros_like(rates)
    np.subtract(rates, mean, out=centerd, where=is_known)
    block_widths = np.maximum(-(-lengths // _BLOCKS), 1)
    keeps_phase = np.zeros(len(rates), dtype=np.bool_)
    for block_width in np.unique(block_widths).tolist():
        rows = np.flatnonzero(block_widths == block_width)
        keeps_phase[rows] = _phases_agree(centerd[rows], block_width, cycles_per_sample[rows], lengths[rows])
    return keeps_phase


def _phases_agree(centerd: Reals, block_width: int, cycles_per_sample: Reals, lengths: Ints) -> Bools:
    """Whether the phases of all parts agree (n), from sums over blocks of samples."""
    blocks = -(-int(lengths.max()) // block_width)
    blocked = np.zeros((len(centerd), blocks * block_width))
    blocked[:, : centerd.shape[1]] = centerd[:, : blocks * block_width]
    # each phasor in a block is the block's first phasor, rotated, so few exponentials are needed
    inner_phasors = np.exp(-2j * np.pi * np.arange(block_width) * cycles_per_sample[:, None])
    starts = np.arange(blocks) * block_width
    turns = starts * cycles_per_sample[:, None]
    sums = np.matmul(
        blocked.reshape(len(blocked), blocks, block_width), np.stack([inner_phasors.real, inner_phasors.imag], axis=-1)
    )
    block_sums = (sums[..., 0] + 1j * sums[..., 1]) * np.exp(-2j * np.pi * (turns - np.floor(turns)))
    part = np.minimum(starts * _PARAMS.parts // np.maximum(lengths, 1)[:, None], _PARAMS.parts - 1)
    part_sums = np.stack([(block_sums * (part == number)).sum(axis=1) for number in range(_PARAMS.parts)])
    agrees: Bools = np.abs(part_sums.sum(axis=0)) >= _PARAMS.min_agreement * np.abs(part_sums).sum(axis=0)
    return agrees


def _median_lengths(phases: Phases) -> Reals:
    """Median length of each signal's phases in samples (n); NaN without phases."""
    length, owner, counts = (phases.last - phases.first).astype(np.float64), phases.owner, phases.counts
    ordered = length[np.lexsort((length, owner))]
    medians = np.full(phases.signal_count, np.nan)
    rows = np.flatnonzero(counts)
    low, high = (phases.offsets[rows] + (counts[rows] - shift) // 2 for shift in (1, 0))
    medians[rows] = 0.5 * (ordered[low] + ordered[high])
    return medians


def _mark_phases(phases: Phases, shape: tuple[int, ...]) -> Bools:
    """Whether a sample belongs to a phase (n, samples)."""
    edges = np.zeros((shape[0], shape[1] + 1), dtype=np.int64)
    edges[phases.owner, phases.first] += 1
    edges[phases.owner, phases.last] -= 1
    is_covered: Bools = np.cumsum(edges[:, :-1], axis=1) > 0
    return is_covered


def _fold(rates: Reals, is_known: Bools, cycles_per_sample: Reals) -> tuple[Reals, Bools]:
    """Fold signals; return the width of the profile above half its height (n), and the samples there (n, samples)."""
    count = len(rates)
    bins = np.clip(np.floor(1.0 / np.maximum(cycles_per_sample, 1e-12)), 2, _PARAMS.max_profile_bins).astype(np.int64)
    offsets = offsets_of(bins)
    turns = np.arange(rates.shape[1]) * cycles_per_sample[:, None]
    cell = np.minimum(((turns - np.floor(turns)) * bins[:, None]).astype(np.int64), bins[:, None] - 1)
    cell += offsets[:-1, None]
    size = np.bincount(cell.ravel(), is_known.ravel(), int(offsets[-1]))
    total = np.bincount(cell.ravel(), rates.ravel(), int(offsets[-1]))
    owner = np.repeat(np.arange(count), bins)
    profile = total / np.maximum(size, 1.0)
    top = np.full(count, -np.inf)
    np.maximum.at(top, owner, profile)
    ordered = profile[np.lexsort((profile, owner))]
    base = ordered[offsets[:-1] + np.floor(_PARAMS.base_quantile * bins).astype(np.int64)] if count else np.zeros(0)
    is_high = profile > 0.5 * (base + top)[owner]
    width_samples = np.bincount(owner, is_high, count) / (bins * cycles_per_sample)
    return width_samples, (_sum_with_neighbors(is_high, bins, offsets) > 0)[cell]


def _sum_with_neighbors(values: Bools, bins: Ints, offsets: Ints) -> Reals:
    """Sum each bin of a cyclic profile with its two neighbors."""
    owner = np.repeat(np.arange(len(bins)), bins)
    position = np.arange(len(values)) - offsets[:-1][owner]
    before, after = (offsets[:-1][owner] + (position + shift) % bins[owner] for shift in (-1, 1))
    counts = values.astype(np.float64)
    sums: Reals = counts + counts[before] + counts[after]
    return sums


def _dilate(is_burst: Bools) -> Bools:
    """Extend bursts by one sample at both ends, which a burst may cover partly."""
    dilated = is_burst.copy()
    dilated[:, 1:] |= is_burst[:, :-1]
    dilated[:, :-1] |= is_burst[:, 1:]
    return dilated

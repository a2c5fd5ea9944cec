"""How long a claimed period is, as exactly as its signal tells, and how exactly that is.

The distances of phases, or the lines of a spectrum, tell that there is a period and about how long it is. Folded at the
right period, all cycles of the signal lie on one another, and their profile is as sharp as it gets: what is
maximized is Z² of the first four harmonics, the sum of the powers at a frequency and its multiples (Buccheri et al.,
Astron. Astrophys. 128, 1983), of the signal clipped, so that no single burst weighs more than others. Bursts that come
sooner and later have no harmonics but the first: then that one tells alone. Where the phase wanders there is no such
period: then the mean distance stays what it is.

The error that is told is the larger one of what noise makes and what the cycles make that come sooner and later: how
far the frequency moves as each of them is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import fft
from scipy.special import stdtrit

from iosig.transforms.arrays import Bools, Ints, Reals, rows_of
from iosig.transforms.periods.controlled_extents import Extents
from iosig.transforms.periods.controlled_pieces import Pieces, Signals

Floats = npt.NDArray[np.floating[Any]]

#: harmonics whose powers are summed
_HARMONICS = 4
#: how far from a claim the period is looked for
_REACH = 0.15
#: how much finer powers are than by one transform of the signal
_FINER = 4
#: frequencies of which no more are tried; of many cycles only the neighbourhood is
_MOST_TRIED = 2048
#: what is above so many times the mean is clipped
_CLIP = 3.0
#: parts of the signal whose phases are compared, and how well they must agree
_PARTS, _LEAST_AGREEMENT = 4, 0.8
#: how well where one line tells alone of many cycles, or is far from a claim
_LEAST_ALONE = 0.9
#: of so many cycles there are twice as many parts
_MANY_CYCLES = 16
#: blocks of samples that are turned as one
_BLOCKS = 128
#: how far from there a line is looked for, in the width of one, and in how many steps
_NEARBY, _MOVES = 0.3, 25
#: of the reach; a line that is farther away is another period's
_NEAR_EDGE = 0.98
#: Harmonics tell more than the first line if their powers are together so many times its own, of so few cycles so many
#: times, and if they tell nearly the same: what is farther apart, in widths of a line, are harmonics by chance.
_OVERTONES, _FEW_CYCLES, _OVERTONES_OF_FEW, _APART = 1.1, 12.0, 0.5, 0.4
#: lines of few cycles are known to so many cycles in the signal: where the profile is farther away noise drew it there
_LINES_KNOWN = 0.3
#: the variance of where a burst is that is known to a sample to either side, in squared samples
_SAMPLING_VARIANCE = 1.0 / 3.0
#: there is a line through no fewer cycles
_LEAST_CYCLES = 2.0
#: one cycle does not decide alone; and the share of random values that are less than a standard error above the truth
_MOST_LEVERAGE, _ONE_ERROR = 0.9, 0.8413
#: Distances less regular than this may be those of some of the bursts, with so many cycles at most; up to so many times
#: as high a frequency is tried
_UNSURE, _MOST_OF_SOME, _MOST_TIMES = 0.9, 64.0, 6.0
#: it is the period if its profile is so many times as sharp as that of most frequencies, and of the claim
_OVER_LEVEL, _OVER_CLAIM = 6.0, 1.5
#: how much higher it is at least, and what belongs to the claim
_HIGHER, _OF_CLAIM = 1.15, 0.1


@dataclass(frozen=True, slots=True)
class Refined:
    """Frequencies of signals in cycles per sample, and the standard error of their periods in samples (k)."""

    frequency: Reals
    period_error: Reals


def refined(signals: Signals, row: Ints, frequency: Reals, extent: Extents, are_lines: bool = False) -> Refined:
    """Return the frequencies at which the profiles of signals (k) are sharpest, where their phases keep step.

    frequency: as claimed, in cycles per sample; extent: where; are_lines: whether by lines. Of others the claim stays;
    its error is that of a mean of so many distances. Errors of few cycles are widened as Student has it, so that one of
    them holds the truth in about 68 of 100.
    """
    free = np.maximum(extent.cycles - 1.0, 1.0)
    usual = np.divide(1.0 - extent.regularity, frequency * np.sqrt(free)) * stdtrit(free, _ONE_ERROR)
    found = Refined(frequency.copy(), usual)
    pieces = Pieces(row, np.floor(extent.first).astype(np.int64), np.ceil(extent.last).astype(np.int64))
    for places, size in pieces.grouped():
        profiles = _Profiles.of(_clipped(signals, rows_of(pieces, places), size), pieces.lengths[places])
        is_unsure = extent.regularity[places] < _UNSURE
        claim = profiles.of_all_bursts(frequency[places], is_unsure)
        line, sharp = profiles.peaks(claim, 1), profiles.peaks(claim, _HARMONICS)
        is_few = claim * profiles.lengths < _FEW_CYCLES
        is_sharp = sharp.overtones >= np.where(is_few, _OVERTONES_OF_FEW, _OVERTONES)
        is_sharp &= sharp.is_told & (np.abs(sharp.frequency - line.frequency) * profiles.lengths <= _APART)
        best = _either(is_sharp | ~line.is_told, sharp, line)
        is_far = np.abs(best.frequency - claim) * profiles.lengths > _LINES_KNOWN
        is_told = best.is_told & ~(is_far & is_few & are_lines)
        at = places[is_told]
        found.frequency[at], found.period_error[at] = best.frequency[is_told], best.period_error[is_told]
    return found


@dataclass(frozen=True, slots=True)
class _Peaks:
    """Where profiles are sharpest (k): the frequency, the period's error, and whether they tell a period.

    overtones: the powers of the harmonics but the first, over that one's.
    """

    frequency: Reals
    period_error: Reals
    is_told: Bools
    overtones: Reals


@dataclass(frozen=True, slots=True)
class _Profiles:
    """Signals (k, samples) that were clipped, of so many samples (k), and the powers of their transforms (k, bins)."""

    values: Floats
    lengths: Ints
    power: Floats

    @classmethod
    def of(cls, values: Floats, lengths: Ints) -> _Profiles:
        """Return those of signals."""
        transformed: Floats = np.abs(fft.rfft(values, n=values.shape[1] * _FINER, axis=1)) ** 2
        return cls(values, lengths, transformed)

    def chosen(self, rows: Ints) -> _Profiles:
        """Return some of them."""
        return _Profiles(self.values[rows], self.lengths[rows], self.power[rows])

    def peaks(self, claim: Reals, harmonics: int) -> _Peaks:
        """Return where near their claims profiles of so many harmonics are sharpest."""
        about = _about(self.power, self.values.shape[1] * _FINER, self.lengths, claim, harmonics)
        sums = _Sums.of(self.values, about, harmonics)
        best, error = sums.sharpest(self.lengths)
        place = np.where(np.isfinite(best), best, about)
        # a line at the edge of what is tried is another period's
        is_told = np.isfinite(best) & (np.abs(place / claim - 1.0) < _REACH * _NEAR_EDGE)
        power = sums.powers_at(place)
        overtones = power[:, 1:].sum(axis=1) / np.maximum(power[:, 0], np.finfo(power.dtype).tiny)
        least = np.where((harmonics == 1) & (place * self.lengths >= _MANY_CYCLES), _LEAST_ALONE, _LEAST_AGREEMENT)
        return _Peaks(place, error, is_told & (sums.agreement(place, self.lengths) >= least), overtones)

    def of_all_bursts(self, claim: Reals, is_unsure: Bools) -> Reals:
        """Return claims, or the frequencies of all bursts where the claims are distances of some of them only (k)."""
        rows = np.flatnonzero(is_unsure & (claim * self.lengths <= _MOST_OF_SOME))
        found = claim.copy()
        if len(rows):
            own = self.chosen(rows)
            higher, is_higher = own._far_sharper(claim[rows])
            found[rows[is_higher]] = higher[is_higher]
        return found

    def _far_sharper(self, claim: Reals) -> tuple[Reals, Bools]:
        """Return the frequency above each claim with the sharpest profile, and whether that is the period (k)."""
        low, high = (1.0 - _OF_CLAIM) * claim, _MOST_TIMES * claim
        grid = _grid(low, high, np.ceil(_FINER * _HARMONICS * self.lengths * (high - low)).astype(np.int64) + 3)
        sums = _line_sums(self.power, self.values.shape[1] * _FINER, grid, _HARMONICS)
        at = sums.argmax(axis=1)[:, None]
        frequency, top = (np.take_along_axis(each, at, axis=1)[:, 0] for each in (grid, sums))
        is_of_claim = np.abs(grid / claim[:, None] - 1.0) < _OF_CLAIM
        of_claim = np.where(is_of_claim, sums, 0.0).max(axis=1)
        is_far = (top > _OVER_LEVEL * np.median(sums, axis=1)) & (top > _OVER_CLAIM * of_claim)
        is_far &= frequency > _HIGHER * claim
        return frequency, is_far & (
            _Sums.of(self.values, frequency, 1).agreement(frequency, self.lengths) >= _LEAST_ALONE
        )


def _either(is_first: Bools, first: _Peaks, second: _Peaks) -> _Peaks:
    """Return the one's or the other's of each signal."""
    return _Peaks(*(np.where(is_first, getattr(first, name), getattr(second, name)) for name in _Peaks.__slots__))


def _clipped(signals: Signals, pieces: Pieces, size: int) -> Floats:
    """Return the samples of pieces, clipped, about their means, then 0 (k, size)."""
    rates, known = signals.cut(pieces, size)
    is_known = np.arange(size) < pieces.lengths[:, None] if known is None else known
    count = np.maximum(is_known.sum(axis=1, keepdims=True), 1)
    values = np.minimum(rates, _CLIP * rates.sum(axis=1, keepdims=True) / count)
    values -= values.sum(axis=1, keepdims=True) / count
    values *= is_known
    return np.asarray(values)


def _about(power: Floats, size: int, lengths: Ints, frequency: Reals, harmonics: int) -> Reals:
    """Return the frequency nearby with about the highest sum of powers (k); power: of transforms of so many samples."""
    cycles = np.maximum(frequency * lengths, 1.0)
    reach = np.minimum(_REACH, 0.125 * _MOST_TRIED / (_HARMONICS * _FINER * cycles))
    # each has its own grid, whatever the others need
    tried = np.ceil(4 * harmonics * size * reach * frequency).astype(np.int64) + 3
    grid = _grid(frequency * (1.0 - reach), frequency * (1.0 + reach), tried)
    at = _line_sums(power, size, grid, harmonics).argmax(axis=1)[:, None]
    found: Reals = np.take_along_axis(grid, at, axis=1)[:, 0]
    return found


def _grid(low: Reals, high: Reals, count: Ints) -> Reals:
    """Return so many frequencies from a low to a high one, the last one again where others have more (k, tried)."""
    place = np.minimum(np.arange(int(count.max(initial=1))), count[:, None] - 1)
    return low[:, None] + (high - low)[:, None] * place / (count[:, None] - 1)


def _line_sums(power: Floats, size: int, grid: Reals, harmonics: int) -> Reals:
    """Return sums of the powers at frequencies and their multiples (k, tried)."""
    sums, rows = np.zeros(grid.shape), np.arange(len(grid))[:, None]
    for line in range(1, harmonics + 1):
        place = np.round(grid * (line * size)).astype(np.int64)
        sums += np.where(place < power.shape[1], power[rows, np.minimum(place, power.shape[1] - 1)], 0.0)
    return sums


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums of signals (k) times the waves of harmonics at frequencies, of blocks of samples.

    parts (k, harmonics, blocks); middle (blocks): the blocks' middles. frequency (k). power (k): of the signals.
    """

    parts: npt.NDArray[np.complexfloating[Any, Any]]
    middle: Reals
    frequency: Reals
    power: Reals

    @classmethod
    def of(cls, values: Floats, frequency: Reals, harmonics: int) -> _Sums:
        """Return those of signals (k, samples)."""
        count, size = values.shape
        width = max(size // _BLOCKS, 1)
        blocks = -(-size // width)
        padded = np.zeros((count, blocks * width))
        padded[:, :size] = values
        own = padded.reshape(count, blocks, width)
        starts = np.arange(blocks) * width
        # a wave among the samples of a block is that of the first one, turned: so there are few waves
        first, within = _waves(starts * frequency[:, None]), _waves(np.arange(width) * frequency[:, None])
        parts = np.empty((count, harmonics, blocks), dtype=np.complex128)
        turned, inner = np.ones_like(first), np.ones_like(within)
        for line in range(harmonics):
            turned, inner = turned * first, inner * within
            sums = np.matmul(own, np.stack([inner.real, inner.imag], axis=-1))
            parts[:, line] = (sums[..., 0] + 1j * sums[..., 1]) * turned
        # beyond half of the sampling frequency lines are those of others
        parts *= (frequency[:, None] * np.arange(1, harmonics + 1) < 0.5)[:, :, None]
        middle = np.minimum(starts + 0.5 * (width - 1), size - 1.0)
        return cls(parts, middle, frequency, np.einsum("ij,ij->i", values, values).astype(np.float64))

    def sharpest(self, lengths: Ints) -> tuple[Reals, Reals]:
        """Return the frequency nearby with the highest sum of powers, NaN at an edge, and the period's error (k)."""
        moves = np.linspace(-_NEARBY, _NEARBY, _MOVES) / lengths[:, None]
        sums = self._powers(moves)
        at = sums.argmax(axis=1)
        is_inner = (at > 0) & (at < _MOVES - 1)
        place, width = np.clip(at, 1, _MOVES - 2), moves[:, 1] - moves[:, 0]
        before, top, after = (np.take_along_axis(sums, (place + by)[:, None], axis=1)[:, 0] for by in (-1, 0, 1))
        curve = before - 2.0 * top + after
        is_peak = is_inner & (curve < 0)
        shift = np.divide(0.5 * (before - after), curve, out=np.zeros(len(at)), where=is_peak)
        best = self.frequency + np.take_along_axis(moves, place[:, None], axis=1)[:, 0] + shift * width
        none = np.full(len(at), np.nan)
        noise = np.maximum(self.power - 2.0 * top / np.maximum(lengths, 1), 0.0)
        error = np.sqrt(np.divide(noise, -curve, out=none.copy(), where=is_peak)) * width
        uneven = np.divide(width**2, -curve, out=none, where=is_peak) * self._unevenness(best)
        cycles = np.maximum(best * lengths, _LEAST_CYCLES)
        sampling = np.sqrt(12.0 * _SAMPLING_VARIANCE / (cycles * (cycles**2 - 1.0)))
        return np.where(is_peak, best, np.nan), np.hypot(np.maximum(error, uneven) / best**2, sampling)

    def _unevenness(self, frequency: Reals) -> Reals:
        """Return the standard error of the slope of the sums of powers at frequencies nearby (k), by their cycles.

        The delete-one jackknife: a cycle draws the bursts of all to its own time, and the frequency with them, the
        farther it is from the middle. What is left if it is not there is drawn back by more, by its leverage, as
        it is of a straight line (MacKinnon and White, J. Econometrics 29, 1985, doi:10.1016/0304-4076(85)90158-7).
        """
        lines = np.arange(1, self.parts.shape[1] + 1)[:, None]
        waves = self._turned(frequency)
        whole = waves.sum(axis=2)
        alike = waves * whole.conj()[:, :, None]
        # cycles are parted where their bursts are farthest
        turns = frequency[:, None] * self.middle + np.angle(whole[:, :1]) / (2.0 * np.pi) + 0.5
        cells = _Cells.of(np.floor(turns).astype(np.int64))
        pull = cells.sums(4.0 * np.pi * (lines * alike.imag).sum(axis=1))
        weight = np.maximum(cells.sums(alike.real.sum(axis=1)), 0.0)
        place = cells.sums(np.broadcast_to(self.middle, turns.shape)) / np.maximum(cells.sums(np.ones_like(turns)), 1.0)
        share = weight / cells.totals(weight)[cells.owner]
        place -= cells.totals(share * place)[cells.owner]
        leverage = share + share * place**2 / cells.totals(share * place**2)[cells.owner]
        moved = place * pull / (1.0 - np.minimum(leverage, _MOST_LEVERAGE))
        free = np.maximum(1.0 / cells.totals(share**2) - 2.0, 1.0)
        found: Reals = np.sqrt(cells.totals(moved**2)) * stdtrit(free, _ONE_ERROR)
        return found

    def _powers(self, moves: Reals) -> Reals:
        """Return the sums of powers at frequencies a little off (k, moves): even steps, as many down as up."""
        half = moves.shape[1] // 2
        step = _waves((moves[:, half + 1] - moves[:, half])[:, None] * self.middle)
        sums, base = np.zeros(moves.shape), np.ones_like(step)
        for line in range(self.parts.shape[1]):
            base, turned, parts = base * step, np.ones_like(step), self.parts[:, line]
            sums[:, half] += np.abs(parts.sum(axis=1)) ** 2
            for place in range(1, half + 1):
                turned *= base
                for move, wave in ((place, turned), (-place, turned.conj())):
                    sums[:, half + move] += np.abs(np.einsum("ij,ij->i", wave, parts)) ** 2
        return sums

    def powers_at(self, frequency: Reals) -> Reals:
        """Return the powers of the harmonics of frequencies nearby (k, harmonics)."""
        found: Reals = np.abs(self._turned(frequency).sum(axis=2)) ** 2
        return found

    def _turned(self, frequency: Reals) -> npt.NDArray[np.complexfloating[Any, Any]]:
        """Return the parts at frequencies nearby (k, harmonics, blocks)."""
        found = self.parts.copy()
        step = _waves((frequency - self.frequency)[:, None] * self.middle)
        turned = step
        for line in range(found.shape[1]):
            found[:, line] *= turned
            turned = turned * step
        return found

    def agreement(self, frequency: Reals, lengths: Ints) -> Reals:
        """Return how well the phases of the first harmonic agree in all parts of the signals (k): 1, they are one."""
        waves = self.parts[:, 0] * np.exp(-2j * np.pi * (frequency - self.frequency)[:, None] * self.middle)
        parts = np.where(frequency * lengths >= _MANY_CYCLES, 2 * _PARTS, _PARTS)[:, None]
        part = np.minimum(self.middle * parts / np.maximum(lengths, 1)[:, None], parts - 1).astype(np.int64)
        sums = np.stack([(waves * (part == each)).sum(axis=1) for each in range(2 * _PARTS)])
        whole = np.abs(sums).sum(axis=0)
        found: Reals = np.divide(np.abs(sums.sum(axis=0)), whole, out=np.ones(len(whole)), where=whole > 0)
        return found


@dataclass(frozen=True, slots=True)
class _Cells:
    """To which cycle of its signal each block belongs.

    cell (k, blocks): numbers of all cycles. first (k): each signal's first cycle. owner (cycles): whose it is.
    """

    cell: Ints
    first: Ints
    owner: Ints

    @classmethod
    def of(cls, cycle: Ints) -> _Cells:
        """Return those of blocks in cycles of each signal that are numbered in order (k, blocks)."""
        own = cycle - cycle[:, :1]
        count = own[:, -1] + 1
        first = np.cumsum(count) - count
        return cls(own + first[:, None], first, np.repeat(np.arange(len(count)), count))

    def sums(self, values: Reals) -> Reals:
        """Return the sums of what blocks have (k, blocks) by their cycles."""
        return np.bincount(self.cell.ravel(), values.ravel(), len(self.owner)).astype(np.float64, copy=False)

    def totals(self, values: Reals) -> Reals:
        """Return the sums of what cycles have by their signals (k); never 0."""
        found: Reals = np.add.reduceat(values, self.first)
        return np.where(found == 0.0, np.finfo(found.dtype).tiny, found)


def _waves(turns: Reals) -> npt.NDArray[np.complexfloating[Any, Any]]:
    """Return what stands for so many turns backwards on the unit circle."""
    found: npt.NDArray[np.complexfloating[Any, Any]] = np.exp(-2j * np.pi * (turns - np.floor(turns)))
    return found

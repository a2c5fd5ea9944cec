"""How long a claimed period is, as exactly as its signal tells, and how exactly that is.

The distances of phases, or the lines of a spectrum, tell that there is a period and about how long it is. Folded at the
right period, all cycles of the signal lie on one another, and their profile is as sharp as it gets: what is
maximized is Z² of the first four harmonics, the sum of the powers at a frequency and its multiples (Buccheri et al.,
Astron. Astrophys. 128, 1983), of the signal clipped, so that no single burst weighs more than others. Where the
phase wanders there is no such period: then the mean distance stays what it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import fft

from transforms.arrays import Bools, Ints, Reals, rows_of
from transforms.periods.controlled_extents import Extents
from transforms.periods.controlled_pieces import Pieces, Signals

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
#: of so many cycles there are twice as many parts
_MANY_CYCLES = 16
#: blocks of samples that are turned as one
_BLOCKS = 128
#: how far from there a line is looked for, in the width of one, and in how many steps
_NEARBY, _MOVES = 0.3, 25
#: of the reach; a line that is farther away is another period's
_NEAR_EDGE = 0.98


@dataclass(frozen=True, slots=True)
class Refined:
    """Frequencies of signals in cycles per sample, and the standard error of their periods in samples (k)."""

    frequency: Reals
    period_error: Reals


def refined(signals: Signals, row: Ints, frequency: Reals, extent: Extents) -> Refined:
    """Return the frequencies at which the profiles of signals (k) are sharpest, where their phases keep step.

    frequency: as claimed, in cycles per sample; extent: where. Of others the claim stays; its error is that of a mean
    of so many distances.
    """
    usual = np.divide(1.0 - extent.regularity, frequency * np.sqrt(np.maximum(extent.cycles, 1.0)))
    found = Refined(frequency.copy(), usual)
    pieces = Pieces(row, np.floor(extent.first).astype(np.int64), np.ceil(extent.last).astype(np.int64))
    for places, size in pieces.grouped():
        values, lengths = _clipped(signals, rows_of(pieces, places), size), pieces.lengths[places]
        about = _about(values, lengths, frequency[places])
        sums = _Sums.of(values, about)
        best, error = sums.sharpest(lengths)
        is_better = np.isfinite(best) & sums.keep_step(np.where(np.isfinite(best), best, about), lengths)
        # a line at the edge of what is tried is another period's
        is_better &= np.abs(best / frequency[places] - 1.0) < _REACH * _NEAR_EDGE
        at = places[is_better]
        found.frequency[at], found.period_error[at] = best[is_better], error[is_better]
    return found


def _clipped(signals: Signals, pieces: Pieces, size: int) -> Floats:
    """Return the samples of pieces, clipped, about their means, then 0 (k, size)."""
    rates, known = signals.cut(pieces, size)
    is_known = np.arange(size) < pieces.lengths[:, None] if known is None else known
    count = np.maximum(is_known.sum(axis=1, keepdims=True), 1)
    values = np.minimum(rates, _CLIP * rates.sum(axis=1, keepdims=True) / count)
    values -= values.sum(axis=1, keepdims=True) / count
    values *= is_known
    return np.asarray(values)


def _about(values: Floats, lengths: Ints, frequency: Reals) -> Reals:
    """Return the frequency with about the highest sum of powers (k)."""
    size = values.shape[1] * _FINER
    power = np.abs(fft.rfft(values, n=size, axis=1)) ** 2
    cycles = np.maximum(frequency * lengths, 1.0)
    reach = np.minimum(_REACH, 0.125 * _MOST_TRIED / (_HARMONICS * _FINER * cycles))
    # each has its own grid, whatever the others need
    tried = np.ceil(4 * _HARMONICS * size * reach * frequency).astype(np.int64) + 3
    place_in = np.minimum(np.arange(int(tried.max(initial=1))), tried[:, None] - 1)
    grid = frequency[:, None] * (1.0 + reach[:, None] * (2.0 * place_in / (tried[:, None] - 1) - 1.0))
    sums = np.zeros(grid.shape)
    rows = np.arange(len(values))[:, None]
    for line in range(1, _HARMONICS + 1):
        place = np.round(grid * (line * size)).astype(np.int64)
        sums += np.where(place < power.shape[1], power[rows, np.minimum(place, power.shape[1] - 1)], 0.0)
    found: Reals = np.asarray(grid, dtype=np.float64)[rows[:, 0], sums.argmax(axis=1)]
    return found


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
    def of(cls, values: Floats, frequency: Reals) -> _Sums:
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
        parts = np.empty((count, _HARMONICS, blocks), dtype=np.complex128)
        turned, inner = np.ones_like(first), np.ones_like(within)
        for line in range(_HARMONICS):
            turned, inner = turned * first, inner * within
            sums = np.matmul(own, np.stack([inner.real, inner.imag], axis=-1))
            parts[:, line] = (sums[..., 0] + 1j * sums[..., 1]) * turned
        # beyond half of the sampling frequency lines are those of others
        parts *= (frequency[:, None] * np.arange(1, _HARMONICS + 1) < 0.5)[:, :, None]
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
        noise = np.maximum(self.power - 2.0 * top / np.maximum(lengths, 1), 0.0)
        error = np.sqrt(np.divide(noise, -curve, out=np.full(len(at), np.nan), where=is_peak)) * width
        return np.where(is_peak, best, np.nan), error / best**2

    def _powers(self, moves: Reals) -> Reals:
        """Return the sums of powers at frequencies a little off (k, moves): even steps, as many down as up."""
        half = moves.shape[1] // 2
        step = _waves((moves[:, half + 1] - moves[:, half])[:, None] * self.middle)
        sums, base = np.zeros(moves.shape), np.ones_like(step)
        for line in range(_HARMONICS):
            base, turned, parts = base * step, np.ones_like(step), self.parts[:, line]
            sums[:, half] += np.abs(parts.sum(axis=1)) ** 2
            for place in range(1, half + 1):
                turned *= base
                for move, wave in ((place, turned), (-place, turned.conj())):
                    sums[:, half + move] += np.abs(np.einsum("ij,ij->i", wave, parts)) ** 2
        return sums

    def keep_step(self, frequency: Reals, lengths: Ints) -> Bools:
        """Return whether the first harmonic has about one phase in all parts of the signals (k)."""
        waves = self.parts[:, 0] * np.exp(-2j * np.pi * (frequency - self.frequency)[:, None] * self.middle)
        parts = np.where(frequency * lengths >= _MANY_CYCLES, 2 * _PARTS, _PARTS)[:, None]
        part = np.minimum(self.middle * parts / np.maximum(lengths, 1)[:, None], parts - 1).astype(np.int64)
        sums = np.stack([(waves * (part == each)).sum(axis=1) for each in range(2 * _PARTS)])
        found: Bools = np.abs(sums.sum(axis=0)) >= _LEAST_AGREEMENT * np.abs(sums).sum(axis=0)
        return found


def _waves(turns: Reals) -> npt.NDArray[np.complexfloating[Any, Any]]:
    """Return what stands for so many turns backwards on the unit circle."""
    found: npt.NDArray[np.complexfloating[Any, Any]] = np.exp(-2j * np.pi * (turns - np.floor(turns)))
    return found

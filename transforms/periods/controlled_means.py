"""Phases that noise hides, or splits: distances of phases of running means.

A burst that is as high as the noise around it is no run of samples above the mean; but means over as many samples as
it lasts are. Neighbouring means share samples, so gaps that are no longer than a mean are merged; whether a longer one
goes on does not depend on how long it is, if samples do not depend on one another. So the test of gaps holds as it
is, for what is left of them. Bursts and noise are told apart by levels above the mean. Lengths and levels that are
tried are accounted for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from transforms.arrays import Bools, Ints, Reals, rows_of
from transforms.periods import controlled_extents, controlled_pauses
from transforms.periods.controlled_pauses import LEAST_PHASE_RATIO
from transforms.periods.controlled_pieces import Pieces, Signals

Floats = npt.NDArray[np.floating[Any]]

#: samples of a step
_SIZES = (1, 2, 4, 8)
#: steps over which means are made, from each step on
OVER = 4
#: levels: standard deviations of steps above their mean
_LEVELS = (0.5, 1.0, 1.5)
#: with fewer steps there are no cycles to tell
_LEAST_STEPS = 24
#: As how many independent tests it counts to try all lengths and levels, as measured (`iosig study periods --part
#: memoryless`): 12 that hardly differ, and what is left of the memory of samples.
TRIALS = 22.0


@dataclass(frozen=True, slots=True)
class MeansFindings:
    """The most regular means of pieces (k).

    log_probability: of chance making them so regular, all tries counted. size: samples of a step; 0 where there is
    none. level: standard deviations above the mean. merged_gap, period, variation: as of `Regularity`, in steps.
    """

    log_probability: Reals
    size: Ints
    level: Reals
    merged_gap: Ints
    period: Reals
    variation: Reals


def judged(signals: Signals, pieces: Pieces, needed: float) -> MeansFindings:
    """Return what means of pieces (k) tell; needed: a logarithm of a probability; what is more probable is not told."""
    count = len(pieces.row)
    none = np.full((4, count), np.nan)
    best = MeansFindings(
        np.zeros(count), np.zeros(count, dtype=np.int64), none[0], np.zeros(count, dtype=np.int64), none[1], none[2]
    )
    asked = needed - float(np.log(TRIALS))
    for size, at, steps, inner in _by_size(signals, pieces):
        for places, width in inner.alike():
            _judge(best, steps, rows_of(inner, places), width, size, at[places], asked)
    best.log_probability[:] = np.minimum(best.log_probability + np.log(TRIALS), 0.0)
    return best


def _judge(best: MeansFindings, steps: Signals, pieces: Pieces, width: int, size: int, at: Ints, asked: float) -> None:
    """Put in place what is surer than the best so far."""
    rates, is_known = steps.cut(pieces, width)
    mean, spread = _moments(rates, _own(is_known, pieces.lengths, width))
    for level in _LEVELS:
        active = controlled_pauses.activity(rates, mean + level * spread, _bridged(is_known, pieces.lengths, width))
        phases = active.chosen(~controlled_pauses.is_flicker(active, pieces.lengths)).phases(rates)
        found = controlled_pauses.regularity(phases, asked, OVER)
        better = np.flatnonzero(found.log_probability < best.log_probability[at])
        to = at[better]
        best.log_probability[to], best.merged_gap[to] = found.log_probability[better], found.merged_gap[better]
        best.period[to], best.variation[to] = found.period[better], found.variation[better]
        best.size[to], best.level[to] = size, level


def extents(
    signals: Signals, pieces: Pieces, size: int, level: Reals, told: tuple[Ints, Reals, Reals]
) -> controlled_extents.Extents:
    """Return where the periods are of pieces whose steps have one size (k), in samples.

    told: merged_gap, period, variation, as of `MeansFindings`.
    """
    steps = in_steps(signals.chosen(pieces.row), size)
    inner = _inner(Pieces(np.arange(len(pieces.row)), pieces.first, pieces.last), size)
    width = int(inner.lengths.max(initial=1))
    rates, is_known = steps.cut(inner, width)
    mean, spread = _moments(rates, _own(is_known, inner.lengths, width))
    phases = controlled_pauses.phases(rates, mean + level * spread, _bridged(is_known, inner.lengths, width))
    joined = controlled_pauses.merge(phases, told[0]).large(LEAST_PHASE_RATIO)
    found = controlled_extents.of_phases(joined, *told)
    # an edge is where half of a mean is beyond it
    first, last = (pieces.first + (edge + OVER / 2) * size for edge in (found.first, found.last - 1))
    return controlled_extents.Extents(
        np.maximum(first, pieces.first),
        np.minimum(last, pieces.last),
        found.period * size,
        found.regularity,
        found.cycles,
    )


def in_steps(signals: Signals, size: int) -> Signals:
    """Return running means, one each so many samples; of what is known, where that is at least half."""
    count = -(-signals.sample_count // size)
    rates = _over(signals.padded[:, : count * size].reshape(len(signals.padded), count, size).sum(axis=2))
    known = None
    if signals.is_known is not None:
        behind = count * size - signals.sample_count
        shares = np.pad(signals.is_known, ((0, 0), (0, behind))).reshape(len(rates), count, size).sum(axis=2)
        shares = _over(shares)
        known = 2 * shares >= size * OVER
        rates = np.where(known, rates / np.maximum(shares, 1), 0.0)
    else:
        rates = rates / (size * OVER)
    padded = np.zeros((len(rates), 3 * count + 32), dtype=np.float32)
    padded[:, :count] = rates
    return Signals(padded, count, known, _inner(signals.spans, size))


def _over(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the sums of neighbours (n, steps); of fewer at the end."""
    found = values.copy()
    for step in range(1, OVER):
        found[:, :-step] += values[:, step:]
    return found


def _inner(pieces: Pieces, size: int) -> Pieces:
    return Pieces(pieces.row, pieces.first // size, -(-pieces.last // size))


def _by_size(signals: Signals, pieces: Pieces) -> Iterator[tuple[int, Ints, Signals, Pieces]]:
    """Yield each size of steps with the places of pieces that have enough of them, the steps, and these pieces."""
    for size in _SIZES:
        at = np.flatnonzero(pieces.lengths >= _LEAST_STEPS * size)
        if not len(at):
            return
        rows, row = np.unique(pieces.row[at], return_inverse=True)
        own = Pieces(row, pieces.first[at], pieces.last[at])
        yield size, at, in_steps(signals.chosen(rows), size), _inner(own, size)


def _moments(rates: Floats, is_known: Bools) -> tuple[Reals, Reals]:
    """Return the mean and the standard deviation of what is known (k)."""
    count = np.maximum(is_known.sum(axis=1), 1)
    mean = rates.sum(axis=1, dtype=np.float64) / count
    square = np.einsum("ij,ij->i", rates, rates).astype(np.float64) / count
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def _own(is_known: Bools | None, lengths: Ints, width: int) -> Bools:
    found: Bools = np.arange(width) < lengths[:, None]
    return found if is_known is None else found & is_known


def _bridged(is_known: Bools | None, lengths: Ints, width: int) -> Bools | None:
    return None if is_known is None else is_known | (np.arange(width) >= lengths[:, None])

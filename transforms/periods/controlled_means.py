"""Phases that noise hides, or splits: distances of phases of running means.

A burst that is as high as the noise around it is no run of samples above the mean; but means over as many samples as
it lasts are. Neighbouring means share samples, so gaps that are no longer than a mean are merged; whether a longer one
goes on does not depend on how long it is, if samples do not depend on one another. So the test of gaps holds as it
is, for what is left of them. Bursts and noise are told apart by levels above the mean. Lengths and levels that are
tried are accounted for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Ints, Reals, offsets_of, rows_of
from iosig.transforms.periods import controlled_extents, controlled_pauses
from iosig.transforms.periods.controlled_pauses import LEAST_PHASE_RATIO, Phases, Regularity
from iosig.transforms.periods.controlled_pieces import Packed, Pieces, Signals

Floats = npt.NDArray[np.floating[Any]]

#: samples of a step
_SIZES = (1, 2, 4, 8)
#: steps over which means are made, from each step on
OVER = 4
#: levels: standard deviations of steps above their mean
_LEVELS = (0.75, 1.5)
#: with fewer steps there are no cycles to tell
_LEAST_STEPS = 24
#: As how many independent tests it counts to try all lengths and levels, as measured (`iosig study periods --part
#: memoryless`): 8, what is left of the memory of samples, and what lines of few cycles take of the level.
TRIALS = 32.0
#: phases that are judged at a time: many, since there is a time to each call, but such that they fit the cache
_PHASES_AT_A_TIME = 1 << 14


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
    for tries in _batches(_tries(signals.packed, pieces)):
        phases = Phases.joined([each.phases for each in tries])
        stretches = np.concatenate([each.stretches for each in tries])
        found = controlled_pauses.regularity(phases, asked, OVER, stretches)
        edges = offsets_of([len(each.at) for each in tries]).tolist()
        for each, (first, last) in zip(tries, pairwise(edges), strict=True):
            _put(best, rows_of(found, slice(first, last)), each)
    best.log_probability[:] = np.minimum(best.log_probability + np.log(TRIALS), 0.0)
    return best


@dataclass(frozen=True, slots=True)
class _Try:
    """The phases of some pieces (k), with the places of these, for one size of steps and one level.

    stretches (k): how many steps were measured side by side.
    """

    at: Ints
    size: int
    level: float
    phases: Phases
    stretches: Reals


def _tries(packed: Packed, pieces: Pieces) -> Iterator[_Try]:
    """Yield the phases of pieces for all sizes and levels."""
    inner = packed.pieces(pieces)
    for size in _SIZES:
        enough = np.flatnonzero(inner.lengths >= _LEAST_STEPS * size)
        if not len(enough):
            break
        steps, of_size = in_steps(packed.signals, size), _inner(rows_of(inner, enough), size)
        for places, width in of_size.alike():
            at = enough[places]
            stretches = packed.stretches(rows_of(inner, at)) / size
            for level, phases in _phases(packed, steps, rows_of(of_size, places), width, size):
                yield _Try(at, size, level, phases, stretches)


def _batches(tries: Iterable[_Try]) -> Iterator[list[_Try]]:
    """Yield tries, in order, that have about so many phases together as are judged at a time."""
    batch: list[_Try] = []
    for each in tries:
        batch.append(each)
        if sum(len(one.phases.first) for one in batch) >= _PHASES_AT_A_TIME:
            yield batch
            batch = []
    if batch:
        yield batch


def _phases(packed: Packed, steps: Signals, pieces: Pieces, width: int, size: int) -> Iterator[tuple[float, Phases]]:
    """Yield the phases of pieces (k) of steps above each level."""
    rates, _ = steps.cut(pieces, width)
    mean, spread = _moments(rates, pieces.lengths)
    for level in _LEVELS:
        active = controlled_pauses.activity(rates, mean + level * spread)
        found = active.chosen(~controlled_pauses.is_flicker(active, pieces.lengths)).phases(rates)
        owner = found.owner
        torn = packed.is_torn_within(
            pieces.row[owner],
            (found.first + pieces.first[owner] - 1) * size,
            (found.first + pieces.first[owner] + OVER) * size,
        )
        yield level, found if torn is None else replace(found, is_torn=torn)


def _put(best: MeansFindings, found: Regularity, tried: _Try) -> None:
    """Put in place what is surer than the best so far."""
    better = np.flatnonzero(found.log_probability < best.log_probability[tried.at])
    to = tried.at[better]
    best.log_probability[to], best.merged_gap[to] = found.log_probability[better], found.merged_gap[better]
    best.period[to], best.variation[to] = found.period[better], found.variation[better]
    best.size[to], best.level[to] = tried.size, tried.level


def extents(
    signals: Signals, pieces: Pieces, size: int, level: Reals, told: tuple[Ints, Reals, Reals]
) -> controlled_extents.Extents:
    """Return where the periods are of pieces whose steps have one size (k), in samples.

    told: merged_gap, period, variation, as of `MeansFindings`.
    """
    packed = signals.packed
    own = packed.pieces(pieces)
    inner = _inner(Pieces(np.arange(len(own.row)), own.first, own.last), size)
    width = int(inner.lengths.max(initial=1))
    rates, _ = in_steps(packed.signals.chosen(own.row), size).cut(inner, width)
    mean, spread = _moments(rates, inner.lengths)
    phases = controlled_pauses.phases(rates, mean + level * spread)
    joined = controlled_pauses.merge(phases, told[0]).large(LEAST_PHASE_RATIO)
    found = controlled_extents.of_phases(joined, *told)
    # an edge is where half of a mean is beyond it
    edges = [(inner.first + edge + OVER / 2) * size for edge in (found.first, found.last - 1)]
    first, last = (packed.unpacked(pieces.row, np.nan_to_num(edge)) for edge in edges)
    pace = pieces.lengths / np.maximum(own.lengths, 1)
    return controlled_extents.Extents(
        np.maximum(first, pieces.first),
        np.minimum(last, pieces.last),
        found.period * size * pace,
        found.regularity,
        found.cycles,
    )


def in_steps(signals: Signals, size: int) -> Signals:
    """Return running means of signals of which all is known, one each so many samples."""
    count = -(-signals.sample_count // size)
    sums = signals.padded[:, : count * size].reshape(len(signals.padded), count, size).sum(axis=2)
    padded = np.zeros((len(sums), 3 * count + 32), dtype=np.float32)
    for step in range(OVER):
        padded[:, : count - step] += sums[:, step:]
    padded /= size * OVER
    return Signals(padded, count, None, _inner(signals.spans, size))


def _inner(pieces: Pieces, size: int) -> Pieces:
    return Pieces(pieces.row, pieces.first // size, -(-pieces.last // size))


def _moments(rates: Floats, lengths: Ints) -> tuple[Reals, Reals]:
    """Return the mean and the standard deviation of so many samples (k)."""
    count = np.maximum(lengths, 1)
    mean = rates.sum(axis=1, dtype=np.float64) / count
    square = np.einsum("ij,ij->i", rates, rates).astype(np.float64) / count
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))

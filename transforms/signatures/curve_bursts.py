"""Bursts of any signature curve, by one rule: so that all methods and the truth are counted alike.

IOSI finds its bursts on its way (`iosi_crests`); means, quantiles and warped averages have none of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transforms.arrays import Bools, Ints, Reals
from transforms.signatures.signature import SignatureBursts


@dataclass(frozen=True, slots=True)
class CurveBurstParams:
    """What counts for a burst (all ours).

    The ratios are by measurement, on means, medians and quantiles of simulated samples: lower ones add many false
    bursts for few true ones. They leave room for true bursts of half the height and an eighth of the volume of others.
    height_ratio: the share of the curve's height (see `height`) that a second has to exceed. dip_s: what lies between
    bursts for as long as this or less, belongs to them: two polls of 2 s cannot tell them apart. volume_ratio: bursts
    of a smaller share of a typical burst's volume are dropped.
    """

    height_ratio: float = 0.25
    dip_s: int = 4
    volume_ratio: float = 0.05


def height(bytes_per_s: Reals) -> float:
    """Return how high a curve's bursts are: half of the sum of its squares lies in seconds up to that rate.

    Squares, since bursts may take one second in a hundred and hold less volume than what is left of the noise; half
    of them, since a lonely peak is not typical. NaN where there is no I/O.
    """
    return _typical(bytes_per_s, power=2)


def bursts_of(bytes_per_s: Reals, params: CurveBurstParams | None = None) -> SignatureBursts:
    """Return the bursts of a curve (seconds), in order; what is not measured (NaN) is in no burst.

    A burst is a stretch of seconds above a share of the curve's height, short dips between them included; too small
    ones are dropped. The seconds that it only begins or ends in may lie below that share, and are then left out. Its
    peak is the middle of its highest second, the first of equals. Support is NaN. Rates may be of any scale: only
    their ratios count.
    """
    chosen = params or CurveBurstParams()
    rates = np.where(np.isfinite(bytes_per_s) & (bytes_per_s > 0), bytes_per_s, 0.0)
    typical = height(rates)
    if not typical > 0:
        return SignatureBursts.none()
    first, after = joined(*stretches(rates > chosen.height_ratio * typical), chosen.dip_s)
    volume = _sums(rates, first, after)
    is_left = volume >= chosen.volume_ratio * _typical(volume, power=1)
    first, after, volume = first[is_left], after[is_left], volume[is_left]
    peaked = peaks(rates, first, after) + 0.5
    return SignatureBursts(
        first.astype(np.float64), peaked, after.astype(np.float64), volume, np.full(len(first), np.nan)
    )


def stretches(is_in: Bools) -> tuple[Ints, Ints]:
    """Return where stretches of true values begin, and where they are over."""
    turns = np.diff(np.concatenate([[False], is_in, [False]]).astype(np.int8))
    return np.flatnonzero(turns == 1), np.flatnonzero(turns == -1)


def joined(first: Ints, last: Ints, most_apart: float) -> tuple[Ints, Ints]:
    """Join stretches that are hardly apart, or that overlap; they come in order of their starts."""
    if not len(first):
        return first, last
    order = np.argsort(first, kind="stable")
    first, reach = first[order], np.maximum.accumulate(last[order])
    is_apart = first[1:] - reach[:-1] > most_apart
    return first[np.append(True, is_apart)], reach[np.append(is_apart, True)]


def _typical(values: Reals, power: int) -> float:
    """Return the median of values, each weighted by a power of itself; NaN where none is above 0."""
    ordered = np.sort(values[np.isfinite(values) & (values > 0)])
    if not len(ordered):
        return float("nan")
    weights = np.cumsum((ordered / ordered[-1]) ** power)
    return float(ordered[np.searchsorted(weights, weights[-1] / 2)])


def _sums(rates: Reals, first: Ints, after: Ints) -> Reals:
    """Return the sum of each stretch: of each alone, as a difference of running sums would lose small ones."""
    edges = np.stack([first, after], axis=1).ravel()
    with np.errstate(over="ignore"):
        found: Reals = np.add.reduceat(np.append(rates, 0.0), edges)[::2]
    return found


def peaks(rates: Reals, first: Ints, after: Ints) -> Reals:
    """Return the first of the highest seconds of each stretch."""
    lengths = after - first
    owner = np.repeat(np.arange(len(first)), lengths)
    seconds = np.arange(lengths.sum()) + np.repeat(first - np.cumsum(lengths) + lengths, lengths)
    order = np.lexsort((seconds, -rates[seconds], owner))
    peaks: Reals = seconds[order[np.cumsum(lengths) - lengths]].astype(np.float64)
    return peaks

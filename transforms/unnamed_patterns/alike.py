"""Kinds of bursts: more of one volume and width than chance brings together.

Contention makes a burst late and slow and takes no byte from it (IOSI: Liu et al., FAST'14, section 4), so bursts of
one maker have one volume, and widths that differ more. Where many more lie together in the plane of both (their
logarithms) than volumes beside them of the same widths let expect, a kind is found: a scan statistic (Kulldorff,
Communications in Statistics 26, 1997, doi:10.1080/03610929708831995), the strongest first, whose
members are taken out before the next one is looked for. Widths are counted in steps and so come in heaps; volumes do
not. Within a kind, bursts of different shapes are told apart by hierarchical clustering.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.ndimage import uniform_filter

from transforms.arrays import Bools, Ints, Reals
from transforms.unnamed_patterns.left_bursts import LeftBursts

#: the cells of the plane: so much of the logarithms of volume and width
_CELLS = (0.01, 0.1)
#: so many places are tried for each burst: with as many, chance makes kinds as often as is promised (seeds 0 to 99)
_PLACES = 10


@dataclass(frozen=True, slots=True)
class AlikeParams:
    """What is alike; the values are ours, chosen on simulated sites (seeds 11 to 13).

    reaches: how far from the middle of a kind its bursts lie in the logarithm of volume: each is tried; width_reach:
    the same of width. around: how far what is beside it reaches, in volume. least_count: a kind has so many bursts.
    false_alarm_probability: of one kind in a plane without any. least_purity: so many of its bursts are more than what
    is beside it lets expect. shape_distance: shapes of a kind differ by less, in the share of bytes that has passed.
    most_shapes: of so many bursts shapes are compared.
    """

    reaches: tuple[float, ...] = (0.02, 0.05, 0.1)
    width_reach: float = 0.3
    around: float = 0.8
    least_count: int = 5
    false_alarm_probability: float = 0.01
    least_purity: float = 0.6
    shape_distance: float = 0.25
    most_shapes: int = 1500


def alike(bursts: LeftBursts, params: AlikeParams | None = None) -> list[Ints]:
    """Return kinds of bursts, the surest first: which bursts are of each, in order of time."""
    params = params or AlikeParams()
    if len(bursts) < params.least_count:
        return []
    # the plane is as wide as bursts are, with room around them
    plane = np.stack([np.log(bursts.volume_bytes), np.log(bursts.width)], axis=1)
    room = np.divide((params.around, params.width_reach), _CELLS) + 1
    cells = np.floor((plane - plane.min(axis=0)) / _CELLS + room).astype(np.int64)
    shape = tuple((cells.max(axis=0) + room + 1).astype(np.int64).tolist())
    return [
        kind
        for members in _bumps(cells, shape, params)
        for kind in _of_one_shape(members, bursts.profile[members], params)
    ]


def _bumps(cells: Ints, shape: tuple[int, ...], params: AlikeParams) -> Iterator[Ints]:
    """Yield which bursts lie together where more do than chance brings there, the least likely first."""
    counts = np.zeros(shape)
    np.add.at(counts, tuple(cells.T), 1.0)
    level = np.log(params.false_alarm_probability / (_PLACES * len(cells) * len(params.reaches)))
    is_left = np.ones(len(cells), np.bool_)
    while is_left.sum() >= params.least_count:
        chance, middle, half = min(_least_likely(counts, reach, params) for reach in params.reaches)
        if chance > level:
            return
        is_in: Bools = is_left & (np.abs(cells - np.array(middle)) <= np.array(half)).all(axis=1)
        members = np.flatnonzero(is_in)
        is_left[members] = False
        np.add.at(counts, tuple(cells[members].T), -1.0)
        yield members


def _least_likely(counts: Reals, reach: float, params: AlikeParams) -> tuple[float, tuple[int, ...], tuple[int, int]]:
    """Return the least logarithm of a chance, the cell around which it is, and how many cells it reaches each way."""
    half, wide = ((round(far / _CELLS[0]), round(params.width_reach / _CELLS[1])) for far in (reach, params.around))
    within, near = (_sums(counts, (2 * one + 1, 2 * other + 1)) for one, other in (half, wide))
    chances = _log_chances(within, near - within, (2 * half[0] + 1) / (2 * wide[0] + 1), params)
    at = int(chances.argmin())
    middle = tuple(int(each) for each in np.unravel_index(at, counts.shape))
    return float(chances.ravel()[at]), middle, half


def _sums(counts: Reals, size: tuple[int, ...]) -> Reals:
    """Return how many lie in the rectangle of that size around each cell."""
    found: Reals = np.rint(uniform_filter(counts, size, mode="constant") * np.prod(size))
    return found


def _log_chances(within: Reals, beside: Reals, share: float, params: AlikeParams) -> Reals:
    """Return the logarithm of how likely so many or more of both are within by chance; 0 where too few or too impure.

    share: of the cells of both that are within. Chernoff's bound of the binomial tail: it does not vanish.
    """
    is_asked = (within >= params.least_count) & (within * (1.0 - params.least_purity) >= beside * share / (1.0 - share))
    both = within + beside
    found: Reals = np.where(is_asked, -(_part(within, both * share) + _part(beside, both * (1.0 - share))), 0.0)
    return found


def _part(count: Reals, expected: Reals) -> Reals:
    found: Reals = count * np.log(np.maximum(count, 1.0) / np.maximum(expected, 1e-300))
    return found


def _of_one_shape(members: Ints, profile: Reals, params: AlikeParams) -> Iterator[Ints]:
    """Yield those of a kind's bursts that have one shape, of each shape that has enough."""
    even = np.unique(np.linspace(0, len(members) - 1, min(len(members), params.most_shapes)).astype(np.int64))
    members, profile = members[even], profile[even]
    shapes = fcluster(linkage(profile, "average", "chebyshev"), params.shape_distance, "distance")
    for shape, count in enumerate(np.bincount(shapes)):
        if count >= params.least_count:
            yield members[shapes == shape]

"""Kinds of bursts: more of one volume and width than chance brings together.

Contention makes a burst late and slow and takes no byte from it (IOSI: Liu et al., FAST'14, section 4), so bursts of
one maker have one volume, and widths that differ more. Where many more lie together in the plane of both (their
logarithms) than volumes beside them of the same widths let expect, a kind is found: a scan statistic (Kulldorff,
Communications in Statistics 26, 1997, doi:10.1080/03610929708831995), the strongest first, whose
members are taken out before the next one is looked for. Widths are counted in steps and so come in heaps; volumes do
not. Within a kind, bursts of different shapes are told apart by hierarchical clustering.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.unnamed_patterns.left_bursts import LeftBursts

#: the cells of the plane: so much of the logarithms of volume and width
_CELLS = (0.01, 0.05)
#: so many places are tried for each burst: with as many, chance makes kinds as often as is promised (seeds 0 to 99)
_PLACES = 10


@dataclass(frozen=True, slots=True)
class AlikeParams:
    """What is alike; the values are ours, chosen on simulated sites (seeds 11 to 13).

    reaches: how far from the middle of a kind its bursts lie in the logarithms of volume and of width: each is tried.
    around: how far what is beside it reaches, in volume. least_count: a kind has so many bursts.
    false_alarm_probability: of one kind in a plane without any; hint_count: so many kinds of chance are taken out as
    hints, which something else has to bear out. least_purity: so many of its bursts are more than what
    is beside it lets expect. shape_distance: shapes of a kind differ by less, in the share of bytes that has passed.
    most_shapes: of so many bursts shapes are compared.
    """

    reaches: tuple[tuple[float, float], ...] = ((0.01, 0.2), (0.02, 0.1), (0.02, 0.3), (0.04, 0.2))
    around: float = 0.8
    least_count: int = 5
    false_alarm_probability: float = 0.01
    hint_count: float = 10.0
    least_purity: float = 0.75
    shape_distance: float = 0.25
    most_shapes: int = 1500


@dataclass(frozen=True, slots=True)
class Kind:
    """Bursts that are alike, in order of time, and whether so many hardly are by chance."""

    members: Ints
    is_sure: bool


class Plane:
    """Bursts (n) in the plane of their volumes and widths, of which kinds are taken out one by one."""

    def __init__(self, bursts: LeftBursts, params: AlikeParams | None = None) -> None:
        """Lay all bursts out."""
        self._params = params = params or AlikeParams()
        self._profile = bursts.profile
        # the plane is as wide as bursts are, with room around them
        places = np.stack([np.log(bursts.volume_bytes), np.log(bursts.width)], axis=1)
        room = np.divide((params.around, max(reach[1] for reach in params.reaches)), _CELLS) + 1
        self._cells: Ints = np.floor((places - places.min(axis=0, initial=np.inf)) / _CELLS + room).astype(np.int64)
        size = (self._cells.max(axis=0, initial=0) + room + 1).astype(np.int64)
        self._counts: Ints = np.zeros(tuple(size.tolist()), np.int64)
        np.add.at(self._counts, tuple(self._cells.T), 1)
        self.is_left: Bools = np.ones(len(bursts), np.bool_)
        self._log_tried = math.log(_PLACES * max(len(bursts), 1) * len(params.reaches))

    def take(self) -> Kind | None:
        """Take out the kind that is least likely by chance; None where not even hints are left."""
        while self.is_left.sum() >= self._params.least_count:
            total = _totals(self._counts)
            chance, middle, half = min(_least_likely(total, reach, self._params) for reach in self._params.reaches)
            chance += self._log_tried
            if chance > math.log(self._params.hint_count):
                return None
            is_in: Bools = self.is_left & (np.abs(self._cells - np.array(middle)) <= np.array(half)).all(axis=1)
            members = np.flatnonzero(is_in)
            own = _of_one_shape(members, self._profile[members], self._params)
            if len(own) >= self._params.least_count:
                self.set_aside(own)
                return Kind(own, chance <= math.log(self._params.false_alarm_probability))
            self.set_aside(members)
        return None

    def set_aside(self, members: Ints) -> None:
        """Take bursts out that are in no kind."""
        gone = members[self.is_left[members]]
        self.is_left[gone] = False
        np.add.at(self._counts, tuple(self._cells[gone].T), -1)


def _least_likely(
    total: Ints, reach: tuple[float, float], params: AlikeParams
) -> tuple[float, tuple[int, ...], tuple[int, int]]:
    """Return the least logarithm of a chance, the cell around which it is, and how many cells it reaches each way.

    total (cells + 1): how many bursts are in the cells before each, both ways.
    """
    half, wide = ((round(far / _CELLS[0]), round(reach[1] / _CELLS[1])) for far in (reach[0], params.around))
    within = _sums_of_all(total, half)
    row, column = np.nonzero(within >= params.least_count)
    if not len(row):
        return 0.0, (0, 0), half
    own, near = (each.astype(np.float64) for each in (within[row, column], _sums(total, row, column, wide)))
    chances = _log_chances(own, near - own, (2 * half[0] + 1) / (2 * wide[0] + 1), params)
    at = int(chances.argmin())
    return float(chances[at]), (int(row[at]), int(column[at])), half


def _totals(counts: Ints) -> Ints:
    """Return how many are in the cells before each, both ways (cells + 1)."""
    total = np.zeros((counts.shape[0] + 1, counts.shape[1] + 1), np.int64)
    total[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)
    return total


def _sums_of_all(total: Ints, half: tuple[int, int]) -> Ints:
    """Return how many lie in the rectangle that reaches so many cells each way, around each cell."""
    padded = np.pad(total, [(each, each) for each in half], "edge")
    high, wide = (2 * each + 1 for each in half)
    columns = padded[:, wide:] - padded[:, :-wide]
    return columns[high:] - columns[:-high]


def _sums(total: Ints, row: Ints, column: Ints, half: tuple[int, int]) -> Ints:
    """Return the same around some cells."""
    (top, bottom), (left, right) = (
        (np.maximum(at - each, 0), np.minimum(at + each + 1, size - 1))
        for at, each, size in zip((row, column), half, total.shape, strict=True)
    )
    found: Ints = total[bottom, right] - total[top, right] - total[bottom, left] + total[top, left]
    return found


def _log_chances(within: Reals, beside: Reals, share: float, params: AlikeParams) -> Reals:
    """Return the logarithm of how likely so many or more of both are within by chance; 0 where too impure.

    share: of the cells of both that are within. Chernoff's bound of the binomial tail: it does not vanish.
    """
    is_asked = within * (1.0 - params.least_purity) >= beside * share / (1.0 - share)
    both = within + beside
    found: Reals = np.where(is_asked, -(_part(within, both * share) + _part(beside, both * (1.0 - share))), 0.0)
    return found


def _part(count: Reals, expected: Reals) -> Reals:
    found: Reals = count * np.log(np.maximum(count, 1.0) / np.maximum(expected, 1e-300))
    return found


def _of_one_shape(members: Ints, profile: Reals, params: AlikeParams) -> Ints:
    """Return those of a kind's bursts that have the shape that most of them have."""
    even = np.unique(np.linspace(0, len(members) - 1, min(len(members), params.most_shapes)).astype(np.int64))
    shapes = fcluster(linkage(profile[even], "average", "chebyshev"), params.shape_distance, "distance")
    own: Ints = members[even][shapes == np.bincount(shapes).argmax()]
    return own

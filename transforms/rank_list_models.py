"""Exact models of a class's ranks: rank lists whose starts, strides and counts are each a model in n.

The ranks of a class, such as 0 that creates a file, the roots of groups, or all others, are nested progressions at
each rank count (paper, section 3.2.1; ScalaTrace's rank lists). At a rank count with a single group, a dimension has
one member and its stride is not seen; it counts as one all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from transforms.count_models import CountFamily, CountModel, fitted, whole_at
from transforms.progressions import Progression
from transforms.vectors import rank_lists

Longs = npt.NDArray[np.int64]

#: a dimension's count and its stride, None where it has one member only
_Dimension = tuple[int, int | None]


@dataclass(frozen=True, slots=True)
class RankListModel:
    """A progression of ranks over n; a stride is None where no rank count shows it, for its count is always 1."""

    start: CountModel
    strides: tuple[CountModel | None, ...]
    counts: tuple[CountModel, ...]

    def at(self, process_count: int) -> Progression | None:
        """Return the ranks at a rank count, None where there are none; raise NotWhole where these are no numbers."""
        counts = [whole_at(count, process_count, "the count of ranks") for count in self.counts]
        if any(count < 0 for count in counts):
            raise ValueError(f"a class has {min(counts)} ranks")
        if 0 in counts:
            return None
        start = whole_at(self.start, process_count, "the first rank")
        kept: list[tuple[int, int]] = []
        for count, stride in zip(counts, self.strides, strict=True):
            if count > 1:
                if stride is None:
                    raise ValueError("the distance between a class's ranks was never seen")
                kept.append((count, whole_at(stride, process_count, "the rank stride")))
        return Progression(start, tuple(stride for _, stride in kept), tuple(count for count, _ in kept))

    def formula(self) -> str:
        """Return the model as text, in `n`."""
        parts = [
            f"{count.formula()} of stride {stride.formula()}"
            for count, stride in zip(self.counts, self.strides, strict=True)
            if stride is not None
        ]
        return ", ".join([f"from {self.start.formula()}", *parts])


def fitted_ranks(
    ranks: Sequence[tuple[int, Longs]], families: Sequence[CountFamily]
) -> tuple[RankListModel, ...] | None:
    """Return the models of a class's ranks, from those at each rank count (rising); None where there are none."""
    counts = [count for count, _ in ranks]
    lists = [rank_lists(own) for _, own in ranks]
    if len({len(own) for own in lists}) > 1:
        return None
    models = [_fitted(list(zip(counts, column, strict=True)), families) for column in zip(*lists, strict=True)]
    return None if None in models else tuple(model for model in models if model is not None)


def _fitted(column: Sequence[tuple[int, Progression]], families: Sequence[CountFamily]) -> RankListModel | None:
    start = fitted([(count, Fraction(ranks.start)) for count, ranks in column], families)
    if start is None:
        return None
    depth = max(len(ranks.counts) for _, ranks in column)
    for choice in product(*(list(_filled(ranks, depth)) for _, ranks in column)):
        counts: list[CountModel] = []
        strides: list[CountModel | None] = []
        for dimension in zip(*choice, strict=True):
            known = list(zip((count for count, _ in column), dimension, strict=True))
            length = fitted([(count, Fraction(size)) for count, (size, _) in known], families)
            seen = [(count, Fraction(stride)) for count, (_, stride) in known if stride is not None]
            stride = fitted(seen, families) if seen else None
            if length is None or (seen and stride is None):
                break
            counts.append(length)
            strides.append(stride)
        else:
            return RankListModel(start, tuple(strides), tuple(counts))
    return None


def _filled(ranks: Progression, depth: int) -> Iterator[tuple[_Dimension, ...]]:
    """Yield the dimensions of a rank list with those of one member added wherever they could stand."""
    own: list[_Dimension] = list(zip(ranks.counts, ranks.strides, strict=True))
    for places in combinations(range(depth), len(own)):
        dimensions: list[_Dimension] = [(1, None)] * depth
        for place, dimension in zip(places, own, strict=True):
            dimensions[place] = dimension
        yield tuple(dimensions)

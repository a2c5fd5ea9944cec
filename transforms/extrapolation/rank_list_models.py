"""Exact models of a class's ranks: rank lists whose starts, strides and counts are each a model in n.

The ranks of a class, such as 0 that creates a file, the roots of groups, or all others, are nested progressions at
each rank count (paper, section 3.2.1; ScalaTrace's rank lists). At a rank count with a single group, a dimension has
one member and its stride is not seen; it counts as one all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, islice, product

from iosig.transforms.arrays import Ints
from iosig.transforms.extrapolation.count_models import Ambiguous, CountFamily, CountModel, Fitted, fitted, whole_at
from iosig.transforms.extrapolation.rank_pieces import progression_of
from iosig.transforms.traces.progressions import Progression
from iosig.transforms.traces.vectors import rank_lists

#: a dimension's count and its stride, None where it has one member only
_Dimension = tuple[int, int | None]
#: ways to fill up the rank lists of all rank counts that are looked at
_MOST_WAYS = 10_000


@dataclass(frozen=True, slots=True)
class RankListModel:
    """A progression of ranks over n; a stride is None where no rank count shows it, for its count is always 1.

    `rivals` give the same ranks at all known rank counts: dimensions of one member can stand anywhere.
    """

    start: CountModel
    strides: tuple[CountModel | None, ...]
    counts: tuple[CountModel, ...]
    rivals: tuple[RankListModel, ...] = ()

    def at(self, process_count: int) -> Progression | None:
        """Return the ranks at a rank count, None where there are none.

        Raises NotWhole where these are no numbers, or not the only ones, and ValueError where they cannot be ranks.
        """
        found = self._own_at(process_count)
        for rival in self.rivals:
            if rival._own_at(process_count) != found:
                raise Ambiguous(f"ambiguous: {self.formula()} is as good as {rival.formula()} at all known rank counts")
        return found

    def _own_at(self, process_count: int) -> Progression | None:
        counts = [whole_at(count, process_count, "the count of ranks") for count in self.counts]
        if any(count < 0 for count in counts):
            raise ValueError(f"a class has {min(counts)} ranks")
        if 0 in counts:
            return None
        start = whole_at(self.start, process_count, "the first rank")
        dimensions: list[tuple[int, int]] = []
        for count, stride in zip(counts, self.strides, strict=True):
            if count > 1 and stride is None:
                raise ValueError("the distance between a class's ranks was never seen")
            if count > 1 and stride is not None:
                dimensions.append((whole_at(stride, process_count, "the rank stride"), count))
        inner = 0
        for stride_, count in reversed(dimensions):
            if stride_ <= inner:
                raise ValueError(f"the ranks of a class overlap: {count} of them lie {stride_} apart")
            inner += stride_ * (count - 1)
        if start < 0 or start + inner >= process_count:
            raise ValueError(f"a class has ranks {start} to {start + inner}, not of 0 to {process_count - 1}")
        return progression_of(start, *dimensions)

    def formula(self) -> str:
        """Return the model as text, in `n`."""
        parts = [
            f"{count.formula()} of stride {stride.formula()}"
            for count, stride in zip(self.counts, self.strides, strict=True)
            if stride is not None
        ]
        return ", ".join([f"from {self.start.formula()}", *parts])


def fitted_ranks(
    ranks: Sequence[tuple[int, Ints]], families: Sequence[CountFamily]
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
    ways = product(*(list(_filled(ranks, depth)) for _, ranks in column))
    found: list[RankListModel] = []
    for way in islice(ways, _MOST_WAYS):
        model = _of_way(start, [count for count, _ in column], way, families)
        if model is not None and model not in found:
            found.append(model)
    return replace(found[0], rivals=tuple(found[1:])) if found else None


def _of_way(
    start: Fitted, process_counts: Sequence[int], way: Sequence[Sequence[_Dimension]], families: Sequence[CountFamily]
) -> RankListModel | None:
    """Return the model of rank lists that have all their dimensions, those of one member included."""
    counts: list[CountModel] = []
    strides: list[CountModel | None] = []
    for dimension in zip(*way, strict=True):
        known = list(zip(process_counts, dimension, strict=True))
        length = fitted([(count, Fraction(size)) for count, (size, _) in known], families)
        seen = [(count, Fraction(stride)) for count, (_, stride) in known if stride is not None]
        stride = fitted(seen, families) if seen else None
        if length is None or (seen and stride is None):
            return None
        counts.append(length)
        strides.append(stride)
    return RankListModel(start, tuple(strides), tuple(counts))


def _filled(ranks: Progression, depth: int) -> Iterator[tuple[_Dimension, ...]]:
    """Yield the dimensions of a rank list with those of one member added wherever they could stand."""
    own: list[_Dimension] = list(zip(ranks.counts, ranks.strides, strict=True))
    for places in combinations(range(depth), len(own)):
        dimensions: list[_Dimension] = [(1, None)] * depth
        for place, dimension in zip(places, own, strict=True):
            dimensions[place] = dimension
        yield tuple(dimensions)

"""Fit exact models of how a class's rank lists (starts, strides and counts) depend on the number of ranks n.

A class consists of the ranks that make the same calls. Examples are rank 0, which creates a file, the roots of groups,
and all other ranks. At each rank count, these ranks are nested progressions (paper, section 3.2.1; ScalaTrace's rank
lists). At a rank count with a single group, the dimension of groups has the count 1 and an unknown stride, but it is
kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, islice, product

from iosig.transforms.arrays import Ints
from iosig.transforms.extrapolation.count_models import (
    AmbiguousModelError,
    CountFamily,
    CountModel,
    FittedModel,
    evaluate_integer,
    fit_count_model,
)
from iosig.transforms.extrapolation.rank_pieces import make_progression
from iosig.transforms.traces.progressions import Progression
from iosig.transforms.traces.vectors import rank_lists

#: count and stride of a dimension; the stride is None if the count is 1
_Dimension = tuple[int, int | None]
#: maximum number of combinations that are tried when inserting dimensions with a single member
_MAX_WAYS = 10_000


@dataclass(frozen=True, slots=True)
class RankListModel:
    """Model of a progression of ranks over n; a stride is None if the count is 1 at all known rank counts.

    `rivals` are other models that give the same ranks at all known rank counts. They exist because the position of
    dimensions with a single member is arbitrary.
    """

    start: CountModel
    strides: tuple[CountModel | None, ...]
    counts: tuple[CountModel, ...]
    rivals: tuple[RankListModel, ...] = ()

    def at(self, process_count: int) -> Progression | None:
        """Return the ranks of the class for a given number of processes; None if the class is empty.

        Raise NotAnIntegerError if a number is invalid or ambiguous, and ValueError if the result is not a valid rank
        list.
        """
        ranks = self._evaluate(process_count)
        for rival in self.rivals:
            if rival._evaluate(process_count) != ranks:
                raise AmbiguousModelError(
                    f"ambiguous: {self.formula()} is as good as {rival.formula()} at all known rank counts"
                )
        return ranks

    def _evaluate(self, process_count: int) -> Progression | None:
        counts = [evaluate_integer(count, process_count, "the count of ranks") for count in self.counts]
        if any(count < 0 for count in counts):
            raise ValueError(f"a class has {min(counts)} ranks")
        if 0 in counts:
            return None
        start = evaluate_integer(self.start, process_count, "the first rank")
        dimensions: list[tuple[int, int]] = []
        for count, stride in zip(counts, self.strides, strict=True):
            if count > 1 and stride is None:
                raise ValueError(
                    "the stride of the class's ranks is unknown, since the known traces have one such rank"
                )
            if count > 1 and stride is not None:
                dimensions.append((evaluate_integer(stride, process_count, "the rank stride"), count))
        extent = 0
        for stride_, count in reversed(dimensions):
            if stride_ <= extent:
                raise ValueError(f"the ranks of a class overlap: {count} ranks have the stride {stride_}")
            extent += stride_ * (count - 1)
        if start < 0 or start + extent >= process_count:
            raise ValueError(f"a class has ranks {start} to {start + extent}, beyond 0 to {process_count - 1}")
        return make_progression(start, *dimensions)

    def formula(self) -> str:
        """Format the model as text, in terms of `n`."""
        parts = [
            f"{count.formula()} of stride {stride.formula()}"
            for count, stride in zip(self.counts, self.strides, strict=True)
            if stride is not None
        ]
        return ", ".join([f"from {self.start.formula()}", *parts])


def fit_rank_lists(
    ranks: Sequence[tuple[int, Ints]], families: Sequence[CountFamily]
) -> tuple[RankListModel, ...] | None:
    """Fit the rank lists of a class.

    Parameters
    ----------
    ranks
        Rank counts, ascending, with the class's ranks at each.
    families
        Kinds of models over n.

    Returns
    -------
    tuple[RankListModel, ...] or None
        One model per list; None if a list has no model, or the number of lists differs between rank counts.
    """
    counts = [count for count, _ in ranks]
    lists = [rank_lists(class_ranks) for _, class_ranks in ranks]
    if len({len(progressions) for progressions in lists}) > 1:
        return None
    models = [_fit_rank_list(list(zip(counts, column, strict=True)), families) for column in zip(*lists, strict=True)]
    return None if None in models else tuple(model for model in models if model is not None)


def _fit_rank_list(column: Sequence[tuple[int, Progression]], families: Sequence[CountFamily]) -> RankListModel | None:
    start = fit_count_model([(count, Fraction(ranks.start)) for count, ranks in column], families)
    if start is None:
        return None
    depth = max(len(ranks.counts) for _, ranks in column)
    alignments = product(*(list(_insert_dimensions(ranks, depth)) for _, ranks in column))
    models: list[RankListModel] = []
    for alignment in islice(alignments, _MAX_WAYS):
        model = _fit_dimensions(start, [count for count, _ in column], alignment, families)
        if model is not None and model not in models:
            models.append(model)
    return replace(models[0], rivals=tuple(models[1:])) if models else None


def _fit_dimensions(
    start: FittedModel,
    process_counts: Sequence[int],
    alignment: Sequence[Sequence[_Dimension]],
    families: Sequence[CountFamily],
) -> RankListModel | None:
    """Fit a rank list after dimensions with a single member have been inserted."""
    counts: list[CountModel] = []
    strides: list[CountModel | None] = []
    for dimension in zip(*alignment, strict=True):
        points = list(zip(process_counts, dimension, strict=True))
        length = fit_count_model([(count, Fraction(size)) for count, (size, _) in points], families)
        known_strides = [(count, Fraction(stride)) for count, (_, stride) in points if stride is not None]
        stride = fit_count_model(known_strides, families) if known_strides else None
        if length is None or (known_strides and stride is None):
            return None
        counts.append(length)
        strides.append(stride)
    return RankListModel(start, tuple(strides), tuple(counts))


def _insert_dimensions(ranks: Progression, depth: int) -> Iterator[tuple[_Dimension, ...]]:
    """Yield the dimensions of a rank list, with single-member dimensions inserted at all possible positions."""
    proper: list[_Dimension] = list(zip(ranks.counts, ranks.strides, strict=True))
    for places in combinations(range(depth), len(proper)):
        dimensions: list[_Dimension] = [(1, None)] * depth
        for place, dimension in zip(places, proper, strict=True):
            dimensions[place] = dimension
        yield tuple(dimensions)

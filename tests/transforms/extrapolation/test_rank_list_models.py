"""Models of the rank lists of a class over rank counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from iosig.transforms.extrapolation.count_models import FAMILIES, AmbiguousModelError, NotAnIntegerError
from iosig.transforms.extrapolation.rank_list_models import RankListModel, fit_rank_lists
from iosig.transforms.traces.progressions import expand_values

COUNTS = (8, 12, 16, 24)


def models(ranks: Callable[[int], Sequence[int]], counts: Sequence[int] = COUNTS) -> tuple[RankListModel, ...] | None:
    return fit_rank_lists([(n, np.array(list(ranks(n)), np.int64)) for n in counts], FAMILIES)


def ranks_at(found: tuple[RankListModel, ...], n: int) -> list[int]:
    return sorted(expand_values(tuple(ranks for model in found if (ranks := model.at(n)) is not None)).tolist())


@pytest.mark.parametrize(
    ("ranks", "formula"),
    [
        (lambda n: range(n), "from 0, n of stride 1"),
        (lambda n: [0], "from 0"),
        (lambda n: range(1, n), "from 1, n - 1 of stride 1"),
        (lambda n: [n - 1], "from n - 1"),
        (lambda n: range(n // 2, n), "from n/2, n/2 of stride 1"),
        (lambda n: range(0, n, 4), "from 0, n/4 of stride 4"),
        (lambda n: range(0, n, n // 4), "from 0, 4 of stride n/4"),
        (lambda n: [r for r in range(n) if r % 4], "from 1, n/4 of stride 4, 3 of stride 1"),
        (lambda n: range(48 // n), "from 0, 48/n of stride 1"),
        (lambda n: [r for r in range(n) if r % 4 in (0, 3)], "from 0, n/4 of stride 4, 2 of stride 3"),
    ],
)
def test_fit_recovers_rank_lists(ranks: Callable[[int], Sequence[int]], formula: str) -> None:
    found = models(ranks)
    assert found is not None
    assert "; ".join(model.formula() for model in found) == formula
    assert all(ranks_at(found, n) == list(ranks(n)) for n in (48, 24, 8))


def test_dimension_with_one_member_is_recovered() -> None:
    """A single group has a rank list with fewer dimensions."""

    def ranks(n: int) -> list[int]:
        return [r for r in range(n) if r % 4]

    found = models(ranks, (4, 8, 12, 20))
    assert found is not None
    assert ranks_at(found, 400) == ranks(400)


@pytest.mark.parametrize(
    "ranks",
    [
        lambda n: range(max(1, n // 8)),
        lambda n: [r for r in range(n) if r % 3 == 1],
        lambda n: [r for r in range(n) if n < 12 or r != 5],
        lambda n: range(int(n**0.5)),
    ],
)
def test_irregular_ranks_have_no_model(ranks: Callable[[int], Sequence[int]]) -> None:
    assert models(ranks) is None


def test_invalid_rank_lists_are_rejected() -> None:
    found = models(lambda n: range(1, n))
    assert found is not None
    assert [model.at(1) for model in found] == [None]
    (inner,) = models(lambda n: range(1, n - 1)) or ()
    with pytest.raises(ValueError, match="a class has -1 ranks"):
        inner.at(1)
    (first,) = models(lambda n: range(4)) or ()
    with pytest.raises(ValueError, match="a class has ranks 0 to 3, beyond 0 to 2"):
        first.at(3)
    (half,) = models(lambda n: range(n // 2)) or ()
    with pytest.raises(NotAnIntegerError, match="the count of ranks n/2 is 7/2"):
        half.at(7)
    pairs = models(lambda n: [r for g in range(3) for r in range(g * n // 4, g * n // 4 + 2)], (12, 16, 24, 32))
    (rows,) = pairs or ()
    with pytest.raises(ValueError, match="the ranks of a class overlap: 3 ranks have the stride 1"):
        rows.at(4)


def test_rival_rank_list_makes_the_model_ambiguous() -> None:
    one, other = models(lambda n: range(n)), models(lambda n: range(0, n, 2))
    assert one is not None
    assert other is not None
    start, strides, counts = one[0].start, one[0].strides, one[0].counts
    both = RankListModel(start, strides, counts, (other[0],))
    with pytest.raises(
        AmbiguousModelError, match="ambiguous: from 0, n of stride 1 is as good as from 0, n/2 of stride 2"
    ):
        both.at(8)

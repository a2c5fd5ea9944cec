"""Patterns of names that differ only in numbers."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from iosig.transforms.traces.name_patterns import Member, group_by_pattern
from iosig.transforms.traces.progressions import NumberList, Progression
from iosig.transforms.traces.requests import Argument, Number
from iosig.transforms.traces.trace import Share, Vector
from tests.compressed import rank_values

N = 1_000_000
ALL = Progression(0, (1,), (N,))


def make_row(*numbers: int) -> tuple[NumberList, ...]:
    return (NumberList(numbers),)


def make_vector(start: int = 0, shift: int = 1, ranks: Progression = ALL) -> Vector:
    return (Share(ranks, tuple(make_row(shift) for _ in ranks.counts), make_row(start)),)


def make_member(*parts: str | Number) -> Member:
    """Return a name of alternating texts and numbers."""
    return Member(
        Argument(tuple(map(str, parts[::2])), tuple(part for part in parts[1::2] if isinstance(part, Number)))
    )


def find_patterns(*members: Member) -> list[tuple[str, int | None]]:
    return [(found.text, found.file_count) for found in group_by_pattern(members)]


def test_separate_class_of_rank_0_shares_the_pattern() -> None:
    others = make_vector(1, 1, Progression(1, (1,), (N - 1,)))
    assert find_patterns(make_member("f.", Number(8, 0), ""), make_member("f.", Number(8, others), "")) == [
        ("f.{00000000..00999999}", N)
    ]


def test_files_of_several_calls_count_once() -> None:
    every_fourth = make_vector(0, 4, Progression(0, (4,), (N // 4,)))
    assert find_patterns(
        make_member("f", Number(1, make_vector()), ""), make_member("f", Number(1, every_fourth), "")
    ) == [(f"f{{0..{N - 1}}}", N)]
    assert find_patterns(make_member("f", Number(1, every_fourth), "")) == [(f"f{{0..{N - 4}..4}}", N // 4)]


def test_names_with_two_numbers_count_pairs() -> None:
    step = (Share(ALL, ((Progression(0, (0,), (5,)),),), (Progression(0, (1,), (5,)),)),)
    rank = (Share(ALL, ((Progression(1, (0,), (5,)),),), (Progression(0, (0,), (5,)),)),)
    assert find_patterns(make_member("r", Number(1, rank), "/s", Number(2, step), "")) == [
        (f"r{{0..{N - 1}}}/s{{00..04}}", 5 * N)
    ]
    # Two equal numbers are a single variable.
    assert find_patterns(make_member("r", Number(1, rank), "/s", Number(1, rank), ""))[0][1] == N


def test_constant_names_are_separate_patterns() -> None:
    assert find_patterns(
        make_member("a", Number(1, 1), ""), make_member("a", Number(1, 2), ""), make_member("a", Number(1, 1), "")
    ) == [
        ("a1", 1),
        ("a2", 1),
    ]


def test_padded_numbers_are_separate_patterns() -> None:
    assert find_patterns(
        make_member("f", Number(3, make_vector()), ""), make_member("f", Number(1, make_vector()), "")
    ) == [
        (f"f{{000..{N - 1}}}", N),
        (f"f{{0..{N - 1}}}", N),
    ]
    # 1000 is written the same with and without zero padding.
    assert (
        find_patterns(make_member("f", Number(3, make_vector()), ""), make_member("f", Number(4, 1000), ""))[0][1] == N
    )


def test_names_with_different_increments_are_counted_exactly() -> None:
    ranks = Progression(0, (1,), (3,))
    values = (Share(ranks, (make_row(0, 10, 10),), make_row(5, 5, 6)),)
    # 5, 5 15 25, 6 16 26
    assert find_patterns(make_member("f", Number(1, values), ""))[0][1] == 6


@given(st.data())
def test_counts_equal_counts_of_expanded_names(data: st.DataObject) -> None:
    members, names = [], set()
    for _ in range(data.draw(st.integers(1, 3))):
        numbers = []
        executed = data.draw(st.integers(1, 3))
        ranks = Progression(0, (2, 1), (2, 2))
        for _ in range(2):
            rows = st.lists(st.integers(0, 12), min_size=executed, max_size=executed).map(lambda own: make_row(*own))
            vector = (Share(ranks, (data.draw(rows), data.draw(rows)), data.draw(rows)),)
            numbers.append(Number(data.draw(st.sampled_from([1, 2])), vector))
        own = [rank_values(number.values) for number in numbers if not isinstance(number.values, int)]
        shown = [
            {rank: [str(v).zfill(n.width) for v in r] for rank, r in o.items()}
            for o, n in zip(own, numbers, strict=True)
        ]
        names |= {pair for rank in shown[0] for pair in zip(shown[0][rank], shown[1][rank], strict=True)}
        members.append(make_member("f", numbers[0], "_", numbers[1], ""))
    counts = [count for _, count in find_patterns(*members)]
    assert None not in counts
    if len(counts) == 1:
        assert counts == [len(names)]
    else:
        # Names padded to different widths are distinguished, although they are equal for numbers with enough digits.
        assert sum(filter(None, counts)) >= len(names)


@pytest.mark.parametrize("count", [1 << 23, 1 << 50])
def test_too_many_names_are_not_counted(count: int) -> None:
    moving = tuple((Share(Progression(0), (), (Progression(0, (stride,), (count,)),)),) for stride in (1, 3))
    assert find_patterns(make_member("f", Number(1, moving[0]), "_", Number(1, moving[1]), ""))[0][1] is None

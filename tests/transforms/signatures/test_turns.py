"""Turns: works that are answered together."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from iosig.transforms.signatures.turns import in_turns


def doubled(*numbers: int) -> Generator[int, int, list[int]]:
    """Ask for twice each number, one after the other, and come to all of them."""
    found = []
    for number in numbers:
        found.append((yield number))
    return found


def test_works_are_answered_together_and_begin_as_others_end() -> None:
    asked: list[int] = []
    begun: list[int] = []

    def answers(numbers: Sequence[int]) -> list[int]:
        asked.append(len(numbers))
        return [2 * number for number in numbers]

    def works() -> Iterator[Generator[int, int, list[int]]]:
        for place, numbers in enumerate([(1,), (2, 3, 4), (), (5,)]):
            begun.append(place)
            yield doubled(*numbers)

    assert in_turns(works(), answers, 2) == [[2], [4, 6, 8], [], [10]]
    assert asked == [2, 1, 1, 1, 0]
    assert begun == [0, 1, 2, 3]
    assert in_turns([], answers, 2) == []

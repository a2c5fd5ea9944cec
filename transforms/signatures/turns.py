"""Turns: works on one set each that ask something now and then, and are answered together.

What is asked of one set are few numbers, and most of the time would go to the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
Result = TypeVar("Result")


def in_turns(
    works: Iterable[Generator[Asked, Answer, Result]],
    answers: Callable[[Sequence[Asked]], Sequence[Answer]],
    most_works: int,
) -> list[Result]:
    """Return what works come to, in order: each yields what it asks and is sent the answer, as often as it likes.

    What works ask at one turn is answered together; where one ends, another begins. most_works: how many are under way
    at once, which bounds the memory.
    """
    results: dict[int, Result] = {}
    waiting = enumerate(works)
    turns: list[tuple[int, Generator[Asked, Answer, Result], Any]] = []
    while turns := turns + [(number, work, None) for number, work in islice(waiting, most_works - len(turns))]:
        asked = []
        for number, work, answer in turns:
            try:
                asked.append((number, work, work.send(answer)))
            except StopIteration as over:
                results[number] = over.value
        found = answers([question for *_, question in asked])
        turns = [(number, work, own) for (number, work, _), own in zip(asked, found, strict=True)]
    return [results[number] for number in range(len(results))]

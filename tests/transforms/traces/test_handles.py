"""Which open an MPI-IO call goes back to."""

from __future__ import annotations

import numpy as np

from transforms.traces.handles import OfFile, Opened, files_of
from transforms.traces.progressions import Listed, Progression, size_of
from transforms.traces.requests import Field, Number, Size, vectors_of
from transforms.traces.trace import Share, Vector

RANKS = Progression(0, (1,), (8,))


def rows(values: tuple[int, ...], shift: int = 0, ranks: Progression = RANKS) -> Vector:
    return (Share(ranks, tuple((Listed((shift,) * len(values)),) for _ in ranks.counts), (Listed(values),)),)


def handle(first: Vector | int, second: Vector | int) -> Field:
    return Field(("", "-", ""), (Number(1, first), Number(1, second)))


def path(text: str) -> Field:
    return Field((text,), ())


def executed(known: Field | Opened) -> int:
    handles = known.handle if isinstance(known, Opened) else known
    sizes = [size_of(share.values) for vector in vectors_of(handles) for share in vector]
    return max(sizes, default=4 if isinstance(known, Field) else 1)


def found(
    own: Field, opened: list[Opened], size: Size | None = None, number: int = 9
) -> list[tuple[int | None, int, int | None]]:
    """Return what calls go back to that come behind all opens, each executed as often as it has handles."""
    order = np.repeat([*(one.number for one in opened), number], [*map(executed, opened), executed(own)]).astype(
        np.int32
    )
    made: list[OfFile] = files_of(own, number, opened, lambda: [RANKS], 8 * 4, size, lambda rank: order, [])
    return [(part.opened.number if part.opened else None, part.call_count, part.volume) for part in made]


def test_the_same_handle_is_the_same_file() -> None:
    own = handle(rows((0,), 1), 0)
    assert found(own, [Opened(0, own, path("a")), Opened(1, handle(0, 1), path("b"))], Size(5, 2, 0)) == [(0, 32, 320)]


def test_of_two_opens_the_last_one_before_counts() -> None:
    opened = [Opened(number, handle(0, 0), path("a")) for number in (0, 3, 12)]
    assert found(handle(0, 0), opened) == [(3, 32, None)]
    assert found(handle(0, 0), opened[2:]) == [(12, 32, None)]


def test_a_handle_that_is_given_again_goes_back_to_the_last_open_of_it() -> None:
    opened = [Opened(0, handle(0, 0), path("a")), Opened(2, handle(0, 0), path("b"))]
    # a is opened; then twice: a call on what is open, and b is opened; then a call
    order = np.array([0, 1, 2, 1, 2, 3], np.int32)
    first, last = (
        files_of(handle(0, 0), number, opened, lambda: [RANKS], count, None, lambda rank: order, [])
        for number, count in ((1, 16), (3, 8))
    )
    assert sorted((part.opened.number, part.call_count) for part in first if part.opened) == [(0, 8), (2, 8)]
    assert [(part.opened.number, part.call_count) for part in last if part.opened] == [(2, 8)]


def test_calls_on_two_files_in_turn_are_divided() -> None:
    opened = [Opened(0, handle(0, 0), path("a")), Opened(1, handle(0, 1), path("b"))]
    own = handle(rows((0,) * 4), rows((0, 1, 1, 7)))
    size = Size(rows((10, 1, 2, 100), 1), 1, 0)
    # over the ranks 0 to 7 each size grows by 28
    assert sorted(found(own, opened, size), key=lambda row: str(row[0])) == [
        (0, 8, 80 + 28),
        (1, 16, 24 + 2 * 28),
        (None, 8, 800 + 28),
    ]


def test_opens_in_a_loop_have_many_handles() -> None:
    opened = [Opened(1, handle(rows((0,) * 3, 1), rows((0, 1, 2))), path("a"))]
    each_time = handle(rows((0,) * 6, 1), rows((0, 0, 1, 1, 2, 2)))
    assert found(each_time, opened) == [(1, 48, None)]
    assert found(handle(rows((0,), 1), 2), opened) == [(1, 8, None)]
    # always the same: that of rank 0 in the loop, and of no other rank
    assert found(handle(0, 2), opened) == [(None, 32, None)]


def test_ranks_with_other_opens_are_not_told() -> None:
    opened = [Opened(0, handle(rows((0,)), 0), path("a")), Opened(1, handle(rows((7,)), 0), path("b"))]
    assert found(handle(rows((0,), 1), 0), opened) == [(None, 32, None)]


def test_a_handle_that_nobody_opened_is_of_no_file() -> None:
    assert found(handle(0, 0), []) == [(None, 32, None)]
    assert found(handle(0, 0), [Opened(0, path("x"), path("a"))], Size(1, 1, 0)) == [(None, 32, 32)]

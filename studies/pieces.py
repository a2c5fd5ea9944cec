"""The work of a study, piece by piece: in this process or in several, which gives the same results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from typing import TypeVar

from iosig.warehouse import processes

Piece = TypeVar("Piece")
Found = TypeVar("Found")
#: told of each piece of work that is finished: how much is done, and of how much
Told = Callable[[int, int], None]


def nobody(done: int, count: int) -> None:
    """Hear of progress that nobody wants to know of."""


def worked(
    work: Callable[[Piece], Found],
    pieces: Sequence[Piece],
    worker_count: int | None = None,
    told: Told = nobody,
    costs: Sequence[int] | None = None,
) -> list[Found]:
    """Return what comes of each piece, in order; work can be sent to another process.

    worker_count: processes, as many as there are cores if None. costs: how long each piece takes, in any unit, if not
    all take as long: what takes longest begins first.
    """
    takes = [1] * len(pieces) if costs is None else costs
    found: dict[int, Found] = {}
    done = 0
    for place, one in _as_done(work, pieces, worker_count, takes):
        found[place] = one
        done += takes[place]
        told(done, sum(takes))
    return [found[place] for place in range(len(pieces))]


def _as_done(
    work: Callable[[Piece], Found], pieces: Sequence[Piece], worker_count: int | None, takes: Sequence[int]
) -> Iterator[tuple[int, Found]]:
    """Yield what comes of each piece with its place, as they are done."""
    workers = min(processes.workers(worker_count), len(pieces))
    if workers <= 1:
        yield from ((place, work(piece)) for place, piece in enumerate(pieces))
        return
    with processes.pool(workers) as pool:
        order = sorted(range(len(pieces)), key=lambda place: -takes[place])
        places = {pool.submit(work, pieces[place]): place for place in order}
        for future in as_completed(places):
            yield places[future], future.result()

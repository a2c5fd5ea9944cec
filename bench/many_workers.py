"""What a night would take more workers than this machine has cores: simulated, on what two workers were measured at.

Works follow each other; of a work each free worker takes the next task. Tables are checked where no task waits for a
worker, and the verdict waits for all checks. A site of more days has as many more tasks of a day, and of those that a
piece hands on to all workers; a larger site has as many more of these, while tasks of a day, and those of all days,
take as much longer: nothing is left out for what does not grow.
"""

from __future__ import annotations

import heapq
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, groupby, islice
from typing import Literal

from bench.figures import Figure

_WORKER_COUNTS = (16, 64, 256)
#: what ends the key of a piece
_OWN = re.compile(r"-[0-9a-f]{32}$")
_DAY = re.compile(r" \d{4}-\d{2}-\d{2}$")
_CHECK = "check "
#: before all works
_LANDING = -1


@dataclass(frozen=True, slots=True)
class Span:
    """What a worker was at: its key, and the seconds at which that began and ended."""

    key: str
    began_s: float
    ended_s: float


@dataclass(frozen=True, slots=True)
class Task:
    """Something that a worker does: the place of its work in the night's order, what it is, and its seconds.

    kind: of a day, of the whole site, handed on by a piece to all workers, or the check of the work's tables.
    """

    order: int
    name: str
    kind: Literal["day", "whole", "call", "check"]
    duration_s: float


def tasks(spans: Sequence[Span], works: Sequence[str]) -> list[Task]:
    """Return what workers did, by the works' names in their order; what a piece handed on is no part of it."""
    pieces = [span for span in spans if _OWN.search(span.key)]
    calls = [span for span in spans if not _OWN.search(span.key)]
    found, handed_on = [], {}
    for call in calls:
        within = [piece for piece in pieces if piece.began_s <= call.began_s and call.ended_s <= piece.ended_s]
        # checks and what is over in no time hand nothing on
        handed_on[call] = max(within, key=lambda piece: piece.ended_s - piece.began_s, default=None)
    for piece in pieces:
        own = [(call.began_s, call.ended_s) for call, by in handed_on.items() if by is piece]
        found.append(_task(piece, works, piece.ended_s - piece.began_s - covered_s(own)))
    for call, by in handed_on.items():
        order, name = (_LANDING, "landing") if by is None else (_order(by, works), f"part of {_name(by)}")
        found.append(Task(order, name, "call", call.ended_s - call.began_s))
    return sorted(found, key=lambda task: task.order)


def _name(span: Span) -> str:
    return _OWN.sub("", span.key)


def _order(span: Span, works: Sequence[str]) -> int:
    name = _name(span).removeprefix(_CHECK)
    known = [work for work in works if name == work or name.startswith(f"{work} ")]
    return works.index(max(known, key=len)) if known else _LANDING


def _task(piece: Span, works: Sequence[str], duration_s: float) -> Task:
    name = _name(piece)
    kind: Literal["day", "whole", "check"] = "day" if _DAY.search(name) else "whole"
    return Task(_order(piece, works), name, "check" if name.startswith(_CHECK) else kind, duration_s)


def covered_s(spans: Sequence[tuple[float, float]]) -> float:
    """Return how many seconds lie in any of some spans, each from its first instant to its last."""
    total, until = 0.0, float("-inf")
    for began, ended in sorted(spans):
        total += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return total


def of_larger(measured: Sequence[Task], days: float, size: float) -> list[Task]:
    """Return the tasks of so many times the days, at a site so many times as large."""
    found = []
    for _, group in groupby(measured, lambda task: task.order):
        own = list(group)
        for kind, count, longer in (("day", days, size), ("whole", 1, days * size), ("check", 1, days * size)):
            found += [replace(task, duration_s=task.duration_s * longer) for task in _times(own, kind, count)]
        found += _times(own, "call", days * size)
    return found


def _times(own: Sequence[Task], kind: str, count: float) -> list[Task]:
    chosen = [task for task in own if task.kind == kind]
    return list(islice(cycle(chosen), round(len(chosen) * count)))


def makespan_s(night: Sequence[Task], worker_count: int) -> float:
    """Return how long the tasks of a night take so many workers; the last work waits for all checks."""
    works = deque([list(group) for _, group in groupby(night, lambda task: task.order)])
    checks: deque[float] = deque()
    waiting: deque[float] = deque()
    under_way: list[tuple[float, bool]] = []
    now, left, begun = 0.0, 0, list[Task]()
    while works or left or checks or under_way:
        while not left and works and not (len(works) == 1 and (checks or under_way)):
            begun = works.popleft()
            waiting.extend(task.duration_s for task in begun if task.kind != "check")
            left = len(waiting)
            if not left:
                checks.extend(task.duration_s for task in begun)
        while (waiting or checks) and len(under_way) < worker_count:
            is_check = not waiting
            heapq.heappush(under_way, (now + (checks if is_check else waiting).popleft(), is_check))
        if not under_way:
            continue
        now, was_check = heapq.heappop(under_way)
        left -= not was_check
        if not left and not was_check:
            checks.extend(task.duration_s for task in begun if task.kind == "check")
    return now


def simulated(measured: Sequence[Task], day_count: int, wall_s: float) -> Iterator[Figure]:
    """Yield what 90 days take many workers, at a site as large and at one ten times as large, and what holds them up.

    measured: of so many days, by two workers in so many seconds.
    """
    again = makespan_s(measured, 2)
    yield Figure("simulated: what was measured, on two workers / its wall", f"{again:.1f} s", f"{wall_s:.1f} s",
                 f"{again / wall_s:.2f}", "", True)  # fmt: skip
    for size, about in ((1, "90 such days"), (10, "90 days of a site ten times as large")):
        night = of_larger(measured, 90 / day_count, size)
        alone = makespan_s(night, 1)
        for count in _WORKER_COUNTS:
            taken = makespan_s(night, count)
            name = f"simulated: {about}, on {count} workers / on one"
            yield Figure(name, f"{taken:,.0f} s", f"{alone:,.0f} s", f"1/{alone / taken:.1f}", "", True)
        longest = max(night, key=lambda task: task.duration_s)
        least = makespan_s(night, len(night))
        yield Figure(f"… its longest task: {longest.name}", f"{longest.duration_s:,.1f} s", "", "", "", True)
        yield Figure("… on as many workers as there are tasks", f"{least:,.0f} s", "", "", "", True)

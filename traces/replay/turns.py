"""Schedule the ranks of one process: a rank continues when it is due and its barrier is open, the earliest first."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from iosig.traces.replay.execution import Sync

#: the last part of a wait is a spin loop, because a sleeping process wakes late
_SPUN_S = 100e-6
#: number of steps between two progress reports of a process
_REPORT_STEPS = 256


class ProcessBarriers(Protocol):
    """Barriers among the ranks of several processes."""

    def arrive(self, communicator: int) -> int:
        """Count the arrival of a rank; return the required number of arrivals."""

    def is_open(self, communicator: int, needed: int) -> bool:
        """Return whether the needed number of ranks has arrived."""

    def wait(self, until: float | None) -> None:
        """Wait for a change, until a time of the monotonic clock at the latest."""


#: called with the number of executed steps, and the deadline of the process's wait
Telling = Callable[[int, float], None]
Steps = Generator[float | Sync, None, None]


def advance(ranks: Sequence[Steps], gates: ProcessBarriers, tell: Telling) -> None:
    """Execute all ranks to completion."""
    process = _Process(ranks, gates, tell)
    while process.step():
        pass


class _Process:
    """Scheduler of a process's ranks: a queue of ready ranks, and a list of blocked ones."""

    def __init__(self, ranks: Sequence[Steps], gates: ProcessBarriers, tell: Telling) -> None:
        # (time, turn, rank): among ranks that are due at the same time, the one with the oldest turn goes first
        self._ready = [(0.0, turn, rank) for turn, rank in enumerate(ranks)]
        self._blocked: list[tuple[Sync, int, Steps]] = []
        self._turn = len(ranks)
        self._count = 0
        self._gates = gates
        self._tell = tell

    def step(self) -> bool:
        """Execute the next step of any rank, or wait until one can continue; return whether any rank is unfinished."""
        if self._blocked:
            self._free()
        if not self._ready:
            self._tell(self._count, 0.0)
            if self._blocked:
                self._gates.wait(None)
            return bool(self._blocked)
        due = self._ready[0][0]
        if due and due - time.monotonic() > _SPUN_S:
            self._tell(self._count, due)
            if self._blocked:
                self._gates.wait(due - _SPUN_S)
                return True
        self._go_on()
        return True

    def _free(self) -> None:
        waiting, self._blocked = self._blocked, []
        for sync, needed, rank in waiting:
            if self._gates.is_open(sync.communicator, needed):
                self._push(0.0, rank)
            else:
                self._blocked.append((sync, needed, rank))

    def _push(self, due: float, rank: Steps) -> None:
        self._turn += 1
        heapq.heappush(self._ready, (due, self._turn, rank))

    def _go_on(self) -> None:
        due, _, rank = heapq.heappop(self._ready)
        if due:
            sleep_until(due)
        self._count += 1
        if self._count % _REPORT_STEPS == 0:
            self._tell(self._count, 0.0)
        event = next(rank, None)
        if isinstance(event, Sync):
            self._blocked.append((event, self._gates.arrive(event.communicator), rank))
        elif event is not None:
            self._push(event, rank)


def sleep_until(due: float) -> None:
    """Sleep until a time of the monotonic clock [s], ending with a spin loop."""
    while (remaining_s := due - time.monotonic()) > 0:
        if remaining_s > _SPUN_S:
            time.sleep(remaining_s - _SPUN_S)

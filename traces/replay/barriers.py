"""Synchronize processes by barriers: counters in shared memory, a lock, and a semaphore per process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Lock, Semaphore
from pathlib import Path
from typing import Any

import numpy as np

#: polling interval of a waiting process, in case another one has died [s]
_POLL_INTERVAL_S = 0.25


class BrokenBarrierError(Exception):
    """Another process has died, so it will never arrive."""


@dataclass(frozen=True, slots=True)
class SharedCounters:
    """Shared counters of all processes: the abort flag, calls and wait deadlines per process, and arrivals."""

    path: Path
    process_count: int
    communicator_count: int

    def make(self) -> SharedCounters:
        """Create the counters' file, filled with zeros."""
        with self.path.open("wb") as file:
            file.truncate(8 * (1 + 2 * self.process_count + self.communicator_count))
        return self

    def open(self) -> OpenBoard:
        """Map the counters' file into memory."""
        return OpenBoard(self)


class OpenBoard:
    """The counters of a board, mapped as array views."""

    def __init__(self, board: SharedCounters) -> None:
        count = board.process_count
        cells: np.memmap[Any, np.dtype[np.int64]] = np.memmap(board.path, np.int64, "r+")
        self.broken = cells[:1]
        self.calls = cells[1 : 1 + count]
        #: deadline of a process's own wait [ns, monotonic clock]
        self.until_ns = cells[1 + count : 1 + 2 * count]
        self.arrivals = cells[1 + 2 * count :]


@dataclass(frozen=True, slots=True)
class Gates:
    """The barriers of one process's ranks.

    members: number of ranks of each communicator. processes: the processes that run any of these ranks.
    """

    board: OpenBoard
    lock: Lock
    semaphores: Sequence[Semaphore]
    own: int
    members: Sequence[int]
    processes: Sequence[Sequence[int]]

    def arrive(self, communicator: int) -> int:
        """Count the arrival of a rank; return the number of arrivals after which it may continue."""
        while not self.lock.acquire(timeout=_POLL_INTERVAL_S):
            self.check()
        try:
            self.board.arrivals[communicator] += 1
            count = int(self.board.arrivals[communicator])
        finally:
            self.lock.release()
        members = self.members[communicator]
        if count % members == 0:
            for process in self.processes[communicator]:
                if process != self.own:
                    self.semaphores[process].release()
        return -(-count // members) * members

    def is_open(self, communicator: int, needed: int) -> bool:
        """Return whether the needed number of ranks has arrived."""
        return bool(self.board.arrivals[communicator] >= needed)

    def wait(self, until: float | None) -> None:
        """Wait for a change of the counters, until this time of the monotonic clock at the latest."""
        timeout_s = _POLL_INTERVAL_S if until is None else min(_POLL_INTERVAL_S, until - time.monotonic())
        if timeout_s > 0:
            self.semaphores[self.own].acquire(timeout=timeout_s)
        self.check()

    def check(self) -> None:
        """Raise Broken if another process has died."""
        if self.board.broken[0]:
            raise BrokenBarrierError("another process ended")

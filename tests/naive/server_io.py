"""Naive implementation of `sql/samples/server_io.sql`: each run is compared with every poll and every other run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Poll:
    """A tick: right edge and length [us], number of controllers, and bytes or None."""

    polled_at: int
    interval: int
    controllers: int
    read_bytes: int | None


@dataclass(frozen=True)
class Run:
    """A run: file system and times [us]; a running job has no end."""

    filesystem: str | None
    started_at: int
    ended_at: int | None


def belonging(polls: Sequence[Poll], run: Run) -> list[Poll]:
    """Return the polls with a right edge in [started_at, ended_at + interval)."""
    assert run.ended_at is not None
    return [poll for poll in polls if run.started_at <= poll.polled_at < run.ended_at + poll.interval]


def concurrent_count(runs: Sequence[Run], place: int) -> int:
    """Count the other runs on the same file system that overlap with a run; empty runs overlap with none."""
    run = runs[place]
    assert run.ended_at is not None
    return sum(
        number != place
        and other.filesystem == run.filesystem
        and (other.ended_at is None or other.ended_at > other.started_at)
        and other.started_at < run.ended_at
        and (other.ended_at is None or other.ended_at > run.started_at)
        for number, other in enumerate(runs)
    )

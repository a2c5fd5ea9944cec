"""Naive implementation of `sql/samples/grid_steps.sql`: every poll is divided among the steps that it overlaps."""

from __future__ import annotations

from collections.abc import Sequence

#: Right edge and length of a poll [us], and its bytes, None if unknown.
Poll = tuple[int, int, int | None]


def step_bytes(polls: Sequence[Poll], step_us: int, phase_us: int, step: int) -> float | None:
    """Bytes in a step of a grid; None if no poll has a value there."""
    left, right = (step - 1) * step_us + phase_us, step * step_us + phase_us
    total = None
    for polled_at, interval, volume in polls:
        shared = min(polled_at, right) - max(polled_at - interval, left)
        if shared > 0 and volume is not None:
            total = (total or 0.0) + volume * shared / interval
    return total


def reported_ratio(
    polls: Sequence[Poll], controllers: int, expected: int, step_us: int, phase_us: int, step: int
) -> float:
    """Share of the controllers' time in a step that polls cover; each poll is a sum of `controllers` controllers."""
    left, right = (step - 1) * step_us + phase_us, step * step_us + phase_us
    covered = sum(max(0, min(at, right) - max(at - interval, left)) for at, interval, _ in polls)
    return min(1.0, controllers * covered / (expected * step_us))

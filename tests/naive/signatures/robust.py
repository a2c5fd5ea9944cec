"""The slow twin of the warp in `transforms.signatures.robust`: one step after the other."""

from __future__ import annotations

from collections.abc import Sequence

from tests.naive.signatures.robust_alignment import total_until


def warped(
    rates: Sequence[float],
    begun_s: Sequence[float],
    alone_s: Sequence[float],
    step_s: float,
    step_count: int,
    lead_s: float,
) -> list[float]:
    """A run's rates where each burst, and what follows it, begins when it would alone.

    What lies before the first burst goes with it; each later one takes with it what is right before it.
    """
    found = []
    for step in range(step_count):
        burst = 0
        for place, alone in enumerate(alone_s):
            if alone - lead_s <= step * step_s:
                burst = place
        left = step * step_s + begun_s[burst] - alone_s[burst]
        until, before = total_until(rates, (left + step_s) / step_s), total_until(rates, left / step_s)
        found.append(until - before)
    return found

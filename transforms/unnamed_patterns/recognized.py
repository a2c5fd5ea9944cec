"""Which patterns are those of before: a pattern keeps its id while the window of days moves on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Reals


@dataclass(frozen=True, slots=True)
class Known:
    """What tells a pattern from others: when it appeared (k, seconds since 1970), what that moves and takes."""

    appeared_s: Reals
    volume_bytes: float
    duration_s: float


#: appearances are the same where they begin so near (ours: two minutes cannot hold two of one pattern)
_NEAR_S = 60.0
#: volumes and durations of one pattern differ by less, in their logarithms
_ALIKE = (0.2, 0.7)
#: such a share of the appearances that both could have has to be the same
_LEAST_SHARE = 0.5


def recognized(now: Sequence[Known], before: Sequence[Known]) -> list[int]:
    """Return which pattern of before each one of now is; -1 where it is new. None is two of now's.

    Where their times overlap, those are the same that have most appearances in common; else those that are most alike.
    """
    likeness = np.array([[_likeness(one, other) for other in before] for one in now]).reshape(len(now), len(before))
    found = np.full(len(now), -1)
    while likeness.size and likeness.max() > 0:
        one, other = np.unravel_index(int(likeness.argmax()), likeness.shape)
        found[one] = other
        likeness[one], likeness[:, other] = 0.0, 0.0
    chosen: list[int] = found.tolist()
    return chosen


def _likeness(one: Known, other: Known) -> float:
    """Return how alike two patterns are: 1 to 2 where they appeared together, 0 to 1 where they look alike, else 0."""
    first, last = (how(one.appeared_s[place], other.appeared_s[place]) for how, place in ((max, 0), (min, -1)))
    ours, theirs = (
        each[(each >= first - _NEAR_S) & (each <= last + _NEAR_S)] for each in (one.appeared_s, other.appeared_s)
    )
    if len(ours) and len(theirs):
        count = _near_count(ours, theirs)
        share = count / max(len(ours), len(theirs))
        # of two that share as much, the one with more of them
        return 1.0 + share * count / (count + 1.0) if share >= _LEAST_SHARE else 0.0
    apart = [
        abs(float(np.log(a / b))) / most
        for a, b, most in (
            (one.volume_bytes, other.volume_bytes, _ALIKE[0]),
            (one.duration_s, other.duration_s, _ALIKE[1]),
        )
    ]
    return max(0.0, 1.0 - max(apart))


def _near_count(ours: Reals, theirs: Reals) -> int:
    """Return how many of ours have one of theirs near."""
    padded = np.concatenate([[-np.inf], theirs, [np.inf]])
    after = np.searchsorted(padded, ours)
    return int((np.minimum(padded[after] - ours, ours - padded[after - 1]) <= _NEAR_S).sum())

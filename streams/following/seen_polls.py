"""Record counted polls compactly: regular polls are stored as arithmetic progressions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

#: maximum number of progressions: regular polls of years need one, irregular ones need one per poll
MAX_PROGRESSIONS = 2048

#: arithmetic progression: first instant [us], step [us], number of instants, and a bit mask of controllers
_Progression = tuple[int, int, int, int]


class SeenPolls:
    """Bit masks of the controllers with a counted poll at each instant, in bounded memory.

    The oldest instants are dropped first. floor_us: polls up to this instant are no longer known.
    """

    __slots__ = ("_kept", "_lasts", "floor_us")

    def __init__(self, floor_us: int, progressions: Sequence[_Progression] = ()) -> None:
        self.floor_us = floor_us
        self._kept: list[_Progression] = [
            (progression[0], progression[1], progression[2], progression[3]) for progression in progressions
        ]
        self._lasts = [_last(progression) for progression in self._kept]

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> SeenPolls:
        """Restore the polls from the values of `plain`."""
        masks = [int(mask, 16) for mask in plain["masks"]]
        return cls(plain["floor_us"], [(first, step, count, masks[at]) for first, step, count, at in plain["runs"]])

    def plain(self) -> dict[str, Any]:
        """Convert the counted polls to JSON-serializable values."""
        masks = {mask: at for at, mask in enumerate(dict.fromkeys(progression[3] for progression in self._kept))}
        runs = [[first, step, count, masks[mask]] for first, step, count, mask in self._kept]
        return {"floor_us": self.floor_us, "masks": [f"{mask:x}" for mask in masks], "runs": runs}

    def at(self, instant_us: int) -> int:
        """Return a bit mask of the controllers with a counted poll at an instant."""
        place = bisect_left(self._lasts, instant_us)
        if place == len(self._kept):
            return 0
        first, step, _, mask = self._kept[place]
        is_in = instant_us >= first and (instant_us == first or (instant_us - first) % step == 0)
        return mask if is_in else 0

    def add(self, instant_us: int, mask: int) -> None:
        """Count polls at an instant; appending at the end is cheapest."""
        if not mask:
            return
        if not self._kept or instant_us > self._lasts[-1]:
            self._put(len(self._kept), [(instant_us, 0, 1, mask)])
        else:
            self._add_between(instant_us, mask | self.at(instant_us))
        while len(self._kept) > MAX_PROGRESSIONS:
            self.floor_us = max(self.floor_us, self._lasts[0])
            del self._kept[0], self._lasts[0]

    def _add_between(self, instant_us: int, mask: int) -> None:
        place = bisect_left(self._lasts, instant_us)
        first, step, count, other_mask = self._kept[place]
        if instant_us < first:
            self._put(place, [(instant_us, 0, 1, mask)])
            return
        before = -(-(instant_us - first) // step) if step else 0
        after = first + step * before
        at = before + (after == instant_us)
        pieces = [
            _progression(first, step, before, other_mask),
            (instant_us, 0, 1, mask),
            _progression(first + step * at, step, count - at, other_mask),
        ]
        del self._kept[place], self._lasts[place]
        self._put(place, [piece for piece in pieces if piece[2]])

    def _put(self, place: int, pieces: list[_Progression]) -> None:
        """Insert progressions at an index, and merge adjacent ones where possible."""
        low, high = max(place - 1, 0), min(place + 1, len(self._kept))
        joined: list[_Progression] = []
        for progression in [*self._kept[low:place], *pieces, *self._kept[place:high]]:
            merged = _merge_progressions(joined[-1], progression) if joined else None
            if merged:
                joined[-1] = merged
            else:
                joined.append(progression)
        self._kept[low:high] = joined
        self._lasts[low:high] = [_last(progression) for progression in joined]


def _last(progression: _Progression) -> int:
    return progression[0] + progression[1] * (progression[2] - 1)


def _progression(first: int, step: int, count: int, mask: int) -> _Progression:
    return first, step if count > 1 else 0, count, mask


def _merge_progressions(left: _Progression, right: _Progression) -> _Progression | None:
    """Merge two adjacent progressions, if their controllers and steps match."""
    gap = right[0] - _last(left)
    if left[3] != right[3] or not (left[2] == 1 or left[1] == gap) or not (right[2] == 1 or right[1] == gap):
        return None
    return left[0], gap, left[2] + right[2], left[3]

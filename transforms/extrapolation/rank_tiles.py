"""Which ranks are taken by classes: each by one, and what is left, without more than a byte for each rank."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from transforms.arrays import Bools
from transforms.extrapolation.rank_pieces import progression_of
from transforms.traces.progressions import Progression
from transforms.traces.vectors import rank_lists


class Tiles:
    """All ranks of a trace, of which classes take some."""

    def __init__(self, process_count: int) -> None:
        self._is_taken = np.zeros(process_count, np.bool_)

    def take(self, ranks: Progression) -> None:
        """Take rising ranks; raise ValueError where one is taken already."""
        # A view of each rank once: strides that rise leave behind all that is inside them.
        view: Bools = as_strided(self._is_taken[ranks.start :], ranks.counts, ranks.strides)
        if view.any():
            index = np.unravel_index(int(np.argmax(view)), view.shape)
            rank = ranks.start + sum(int(at) * stride for at, stride in zip(index, ranks.strides, strict=True))
            raise ValueError(f"rank {rank} would be in two classes")
        view[...] = True

    def first_free(self) -> int | None:
        """Return the first rank that no class has taken."""
        return None if self._is_taken.all() else int(np.argmin(self._is_taken))

    def free(self) -> tuple[Progression, ...]:
        """Return the ranks that no class has taken, in order of the first of each list."""
        # Where taken ranks end and begin: by far fewer than ranks, if classes are not interleaved.
        edges = np.flatnonzero(self._is_taken[1:] != self._is_taken[:-1]) + 1
        bounds = np.concatenate([[0], edges, [self._is_taken.size]])
        first = int(self._is_taken[0])
        starts, ends = bounds[first:-1:2], bounds[first + 1 :: 2]
        found: list[Progression] = []
        for length in np.unique(ends - starts).tolist():
            lists = rank_lists(starts[ends - starts == length])
            found += [
                progression_of(own.start, *zip(own.strides, own.counts, strict=True), (1, length)) for own in lists
            ]
        return tuple(sorted(found, key=lambda own: own.start))

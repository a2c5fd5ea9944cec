"""On which Lustre targets (OSTs) a file's bytes lie, as Darshan's LUSTRE module tells it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint64]

# The counters of a component, in the record's order (darshan-lustre-log-format.h).
_SIZE, _COUNT, _PATTERN, _FLAGS, _START, _END, _MIRROR = range(7)


@dataclass(frozen=True, slots=True)
class Stripes:
    """The layouts of files: of each, one component or more, each striped over some targets.

    `ids` (n,), sorted; `first` and `last` (n,): where each file's components begin and end; `components` (m, 7):
    size, count, pattern, flags, start, end, mirror; `component_ost` (m,): where each component's targets begin in
    `osts` (k,).
    """

    ids: Ids
    first: Ints
    last: Ints
    components: Ints
    component_ost: Ints
    osts: Ints

    @classmethod
    def of(cls, ids: Ids, component_counts: Ints, components: Ints, osts: Ints) -> Stripes:
        """Lay out the records; of several of one file, the first counts."""
        last = np.cumsum(component_counts)
        component_ost = np.cumsum(components[:, _COUNT]) - components[:, _COUNT]
        unique, first_at = np.unique(ids, return_index=True)
        return cls(unique, (last - component_counts)[first_at], last[first_at], components, component_ost, osts)

    @classmethod
    def none(cls) -> Stripes:
        """Return the layouts of no files."""
        no = np.empty(0, np.int64)
        return cls(np.empty(0, np.uint64), no, no, no.reshape(0, 7), no, no)

    def described(self) -> dict[int, tuple[int | None, list[int] | None]]:
        """Return by file: its stripes' size [B], None if its parts differ in it, and its targets, None if none."""
        found: dict[int, tuple[int | None, list[int] | None]] = {}
        for file, first, last in zip(self.ids.tolist(), self.first.tolist(), self.last.tolist(), strict=True):
            used = [at for at in range(first, last) if self.components[at, _COUNT] > 0]
            sizes = {int(self.components[at, _SIZE]) for at in used}
            size = sizes.pop() if len(sizes) == 1 else None
            osts = [int(ost) for at in used for ost in self._osts(at)]
            found[file] = (size if size is not None and size > 0 else None, osts if osts and min(osts) >= 0 else None)
        return found

    def _osts(self, component: int) -> Ints:
        first = int(self.component_ost[component])
        return self.osts[first : first + int(self.components[component, _COUNT])]

    def targets(self, ids: Ids, counts: Ints, offsets: Ints) -> Ints | None:
        """Return the target of the first byte of each request, -1 where it is not known; None if it never is.

        ids, counts: files, and how many of the requests that follow each other are of each; offsets [B].
        """
        place = np.searchsorted(self.ids, ids)
        place[place == len(self.ids)] = 0
        if not len(self.ids) or not (known := self.ids[place] == ids).any():
            return None
        parts = np.where(known, self.last[place] - self.first[place], 0)
        found = np.full(len(offsets), -1, np.int64)
        for nth in range(int(parts.max())):
            component = np.where(nth < parts, self.first[place] + nth, -1)
            self._fill(found, component, self.first[place], counts, offsets)
        return found

    def _fill(self, found: Ints, component: Ints, first: Ints, counts: Ints, offsets: Ints) -> None:
        """Set the targets of the requests that lie in one component of their file, where none is set yet."""
        told = self.components[component]
        # Of mirrors, the first stands for all: which one served a read is not known.
        is_used = (component >= 0) & (told[:, _COUNT] > 0) & (told[:, _SIZE] > 0)
        is_used &= told[:, _MIRROR] == self.components[first, _MIRROR]
        ends = np.where(told[:, _END] == -1, np.iinfo(np.int64).max, told[:, _END])
        size, count = (np.where(is_used, told[:, column], 1) for column in (_SIZE, _COUNT))
        starts = np.where(is_used, told[:, _START], np.iinfo(np.int64).max)
        size, count, starts, ends, base = (
            np.repeat(values, counts) for values in (size, count, starts, ends, self.component_ost[component])
        )
        rows = np.flatnonzero((found < 0) & (offsets >= 0) & (offsets >= starts) & (offsets < ends))
        found[rows] = self.osts[base[rows] + (offsets[rows] // size[rows]) % count[rows]]

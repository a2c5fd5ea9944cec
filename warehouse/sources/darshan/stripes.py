"""Map file offsets to Lustre targets (OSTs) by the layouts in Darshan's LUSTRE module."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint64]

# indices of a component's counters, in the record's order (darshan-lustre-log-format.h)
_SIZE, _COUNT, _PATTERN, _FLAGS, _START, _END, _MIRROR = range(7)


@dataclass(frozen=True, slots=True)
class Stripes:
    """Lustre layouts of files, each of one or more components that are striped over targets.

    `ids` (n,), sorted; `first` and `last` (n,): range of each file's components; `components` (m, 7): size, count,
    pattern, flags, start, end, mirror; `component_ost` (m,): start of each component's targets in `osts` (k,).
    """

    ids: Ids
    first: Ints
    last: Ints
    components: Ints
    component_ost: Ints
    osts: Ints

    @classmethod
    def from_records(cls, ids: Ids, component_counts: Ints, components: Ints, osts: Ints) -> Stripes:
        """Build layouts from records; the first record of each file is used."""
        last = np.cumsum(component_counts)
        component_ost = np.cumsum(components[:, _COUNT]) - components[:, _COUNT]
        unique, first_at = np.unique(ids, return_index=True)
        return cls(unique, (last - component_counts)[first_at], last[first_at], components, component_ost, osts)

    @classmethod
    def empty(cls) -> Stripes:
        """Build an empty set of layouts, for logs without the LUSTRE module."""
        no = np.empty(0, np.int64)
        return cls(np.empty(0, np.uint64), no, no, no.reshape(0, 7), no, no)

    def describe_files(self) -> dict[int, tuple[int | None, list[int] | None]]:
        """Map each file to its stripe size [B], None if components differ, and its targets, None if unknown."""
        layouts: dict[int, tuple[int | None, list[int] | None]] = {}
        for file, first, last in zip(self.ids.tolist(), self.first.tolist(), self.last.tolist(), strict=True):
            used = [component for component in range(first, last) if self.components[component, _COUNT] > 0]
            sizes = {int(self.components[component, _SIZE]) for component in used}
            size = sizes.pop() if len(sizes) == 1 else None
            osts = [int(ost) for component in used for ost in self._osts(component)]
            layouts[file] = (size if size is not None and size > 0 else None, osts if osts and min(osts) >= 0 else None)
        return layouts

    def _osts(self, component: int) -> Ints:
        first = int(self.component_ost[component])
        return self.osts[first : first + int(self.components[component, _COUNT])]

    def targets(self, ids: Ids, counts: Ints, offsets: Ints) -> Ints | None:
        """Return the target that stores each request's first byte, -1 if unknown; None if all are unknown.

        ids, counts: files, and the number of consecutive requests of each; offsets [B].
        """
        place = np.searchsorted(self.ids, ids)
        place[place == len(self.ids)] = 0
        if not len(self.ids) or not (is_known := self.ids[place] == ids).any():
            return None
        parts = np.where(is_known, self.last[place] - self.first[place], 0)
        osts = np.full(len(offsets), -1, np.int64)
        for nth in range(int(parts.max())):
            component = np.where(nth < parts, self.first[place] + nth, -1)
            self._fill(osts, component, self.first[place], counts, offsets)
        return osts

    def _fill(self, osts: Ints, component: Ints, first: Ints, counts: Ints, offsets: Ints) -> None:
        """Set the targets of requests that lie within one component of their file, unless already set."""
        layouts = self.components[component]
        # The first mirror stands for all mirrors, because the log does not record which one served a read.
        is_used = (component >= 0) & (layouts[:, _COUNT] > 0) & (layouts[:, _SIZE] > 0)
        is_used &= layouts[:, _MIRROR] == self.components[first, _MIRROR]
        ends = np.where(layouts[:, _END] == -1, np.iinfo(np.int64).max, layouts[:, _END])
        size, count = (np.where(is_used, layouts[:, column], 1) for column in (_SIZE, _COUNT))
        starts = np.where(is_used, layouts[:, _START], np.iinfo(np.int64).max)
        size, count, starts, ends, base = (
            np.repeat(values, counts) for values in (size, count, starts, ends, self.component_ost[component])
        )
        rows = np.flatnonzero((osts < 0) & (offsets >= 0) & (offsets >= starts) & (offsets < ends))
        osts[rows] = self.osts[base[rows] + (offsets[rows] // size[rows]) % count[rows]]

"""Darshan's counters: which of them can be added, and which columns of ours they are.

A counter can be added over records unless it is a maximum, an instant, a property (a mode, an alignment, a size of
chunks or types, a flag), of a single process (fastest, slowest, variance), or belongs to a value that differs
between records (the common access sizes and strides). What the machine is like (BG/Q) is no counter. A counter that
some record does not have, which the library marks by -1, has no sum.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]

_NOT_ADDED = re.compile(
    r"_MAX_|_(?:FASTEST|SLOWEST)_RANK|_VARIANCE_|_TIMESTAMP$|_(?:ACCESS|STRIDE)\d_|_MODE$|_(?:MEM|FILE)_ALIGNMENT$"
    r"|_RENAMED_FROM$|_USE_|_IS_|_NDIMS$|_NPOINTS$|_(?:DATATYPE|CHUNK|CELL)_SIZE|_OTYPE$|^BGQ_"
)
#: above this, a sum may not fit: no file system holds as much
_MOST = 1 << 62

_TIMES = {
    "opened_s": "F_OPEN_START_TIMESTAMP",
    "open_ended_s": "F_OPEN_END_TIMESTAMP",
    "read_began_s": "F_READ_START_TIMESTAMP",
    "read_ceased_s": "F_READ_END_TIMESTAMP",
    "write_began_s": "F_WRITE_START_TIMESTAMP",
    "write_ceased_s": "F_WRITE_END_TIMESTAMP",
    "closed_s": "F_CLOSE_END_TIMESTAMP",
}
_SPANS = {"read_time_s": "F_READ_TIME", "write_time_s": "F_WRITE_TIME", "metadata_time_s": "F_META_TIME"}
_BYTES: dict[str, tuple[str, ...]] = {"read_bytes": ("BYTES_READ",), "written_bytes": ("BYTES_WRITTEN",)}

#: by module: our columns, each the sum of these counters. Opens of DFS and POSIX that go by a handle of another
#: process or a duplicate count as Darshan counts them; asynchronous operations of DFS and DAOS are in the others.
COUNTS: dict[str, dict[str, tuple[str, ...]]] = {
    "POSIX": _BYTES
    | {
        "open_count": ("OPENS",),
        "read_count": ("READS",),
        "write_count": ("WRITES",),
        "seek_count": ("SEEKS",),
        "stat_count": ("STATS",),
        "sync_count": ("FSYNCS", "FDSYNCS"),
    },
    "MPIIO": _BYTES
    | {
        "open_count": ("INDEP_OPENS", "COLL_OPENS"),
        "collective_open_count": ("COLL_OPENS",),
        "read_count": ("INDEP_READS", "COLL_READS", "SPLIT_READS", "NB_READS"),
        "write_count": ("INDEP_WRITES", "COLL_WRITES", "SPLIT_WRITES", "NB_WRITES"),
        "sync_count": ("SYNCS",),
    },
    "STDIO": _BYTES
    | {
        "open_count": ("OPENS",),
        "read_count": ("READS",),
        "write_count": ("WRITES",),
        "seek_count": ("SEEKS",),
        "sync_count": ("FLUSHES",),
    },
    "H5F": {"open_count": ("OPENS",), "sync_count": ("FLUSHES",)},
    "H5D": _BYTES
    | {
        "open_count": ("OPENS",),
        "read_count": ("READS",),
        "write_count": ("WRITES",),
        "sync_count": ("FLUSHES",),
    },
    "PNETCDF_FILE": _BYTES | {"open_count": ("CREATES", "OPENS"), "sync_count": ("SYNCS",)},
    "PNETCDF_VAR": _BYTES
    | {
        "open_count": ("OPENS",),
        "read_count": ("INDEP_READS", "COLL_READS", "NB_READS"),
        "write_count": ("INDEP_WRITES", "COLL_WRITES", "NB_WRITES"),
    },
    "DFS": _BYTES
    | {
        "open_count": ("OPENS", "GLOBAL_OPENS", "LOOKUPS"),
        "read_count": ("READS", "READXS"),
        "write_count": ("WRITES", "WRITEXS"),
        "stat_count": ("STATS",),
    },
    "DAOS": _BYTES
    | {
        "open_count": ("OBJ_OPENS", "ARRAY_OPENS", "KV_OPENS"),
        "read_count": ("OBJ_FETCHES", "ARRAY_READS", "KV_GETS"),
        "write_count": ("OBJ_UPDATES", "ARRAY_WRITES", "KV_PUTS"),
        "stat_count": ("ARRAY_STATS",),
    },
}


@cache
def can_be_added(counter: str) -> bool:
    """Return whether the sum of a counter over records means anything."""
    return _NOT_ADDED.search(counter) is None


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one module: their counters by name, each an array over the records."""

    module: str
    integers: dict[str, Ints]
    reals: dict[str, Reals]

    def is_sound(self) -> npt.NDArray[np.bool_]:
        """Mark the records whose counts could be: none is less than nothing (-1 means that there is none)."""
        count = len(next(iter(self.integers.values())))
        sound = np.ones(count, np.bool_)
        for name, values in self.integers.items():
            if can_be_added(name):
                sound &= (values >= -1) & (values < _MOST)
        return sound

    def columns(self) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]]:
        """Return our columns that the module has: values, and where they are known."""
        found: dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]] = {}
        for column, suffixes in COUNTS[self.module].items():
            parts = [self.integers[f"{self.module}_{suffix}"] for suffix in suffixes]
            found[column] = np.sum(parts, axis=0), np.all([part >= 0 for part in parts], axis=0)
        for column, suffix in (_TIMES | _SPANS).items():
            values = self.reals.get(f"{self.module}_{suffix}")
            if values is not None:
                # An instant of zero, or before, is one that never was.
                known = np.isfinite(values) & ((values > 0) if column in _TIMES else (values >= 0))
                found[column] = values, known
        return found


@dataclass(slots=True)
class Totals:
    """Sums of a module's counters, in the tracer's order; a counter that some record lacks has none."""

    _sums: dict[str, int | float] = field(default_factory=dict)
    _unknown: set[str] = field(default_factory=set)

    def add(self, records: Records) -> None:
        """Add what can be added of more records."""
        for name, values in records.integers.items():
            if can_be_added(name):
                self._add(name, int(values.sum(dtype=object)) if _is_large(values) else int(values.sum()), values >= 0)
        for name, times in records.reals.items():
            if can_be_added(name):
                known = np.isfinite(times) & (times >= 0)
                self._add(name, float(times.sum()) if known.all() else 0.0, known)

    def _add(self, name: str, value: int | float, known: npt.NDArray[np.bool_]) -> None:
        if not known.all():
            self._unknown.add(name)
        self._sums[name] = self._sums.get(name, 0) + value

    def known(self) -> dict[str, int | float]:
        """Return the sums that are known."""
        return {name: value for name, value in self._sums.items() if name not in self._unknown}


def _is_large(values: Ints) -> bool:
    return bool(values.size) and float(values.astype(np.float64).sum()) > _MOST

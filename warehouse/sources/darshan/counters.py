"""Map Darshan's counters to iosig's columns, and sum the additive ones.

Most counters are additive over records. Exceptions are maxima, instants, properties (modes, alignments, sizes of chunks
or types, flags), counters of a single process (fastest, slowest, variance), and counters of values that differ between
records (common access sizes and strides). Machine properties (BG/Q) are not counters. A counter that is missing in any
record (marked -1 by the library) has no sum.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
#: upper limit of plausible counts; sums of larger ones could overflow 64 bits
_MAX_COUNT = 1 << 62

_TIMES = {
    "open_start_s": "F_OPEN_START_TIMESTAMP",
    "open_end_s": "F_OPEN_END_TIMESTAMP",
    "read_start_s": "F_READ_START_TIMESTAMP",
    "read_end_s": "F_READ_END_TIMESTAMP",
    "write_start_s": "F_WRITE_START_TIMESTAMP",
    "write_end_s": "F_WRITE_END_TIMESTAMP",
    "close_end_s": "F_CLOSE_END_TIMESTAMP",
}
_SPANS = {"read_time_s": "F_READ_TIME", "write_time_s": "F_WRITE_TIME", "metadata_time_s": "F_META_TIME"}
#: column of an extent -> counters of the last transferred byte and of the transferred bytes
_EXTENTS = {
    "read_extent_bytes": ("MAX_BYTE_READ", "BYTES_READ"),
    "written_extent_bytes": ("MAX_BYTE_WRITTEN", "BYTES_WRITTEN"),
}
_EXTREMES = {
    "fastest_time_s": "F_FASTEST_RANK_TIME",
    "slowest_time_s": "F_SLOWEST_RANK_TIME",
    "fastest_bytes": "FASTEST_RANK_BYTES",
    "slowest_bytes": "SLOWEST_RANK_BYTES",
}
_BYTES: dict[str, tuple[str, ...]] = {"read_bytes": ("BYTES_READ",), "written_bytes": ("BYTES_WRITTEN",)}

#: module -> column of iosig -> counters to sum; opens of DFS and POSIX through another process' handle or a duplicate
#: are counted as Darshan counts them, and all other columns include the asynchronous operations of DFS and DAOS
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
def is_additive(counter: str) -> bool:
    """Test whether the sum of a counter over records is meaningful."""
    return _NOT_ADDED.search(counter) is None


@cache
def _find_additive(counters: tuple[str, ...]) -> Ints:
    """Return the indices of the additive counters."""
    return np.flatnonzero([is_additive(name) for name in counters])


@cache
def _places(counters: tuple[str, ...]) -> dict[str, int]:
    return {name: place for place, name in enumerate(counters)}


@dataclass(frozen=True, slots=True)
class Records:
    """Records (n) of one module: counter names, and counter values (n, names)."""

    module: str
    integer_names: tuple[str, ...]
    integers: Ints
    real_names: tuple[str, ...]
    reals: Reals

    def is_sound(self) -> npt.NDArray[np.bool_]:
        """Mark records with plausible counts, which are -1 (missing) or more."""
        added = self.integers[:, _find_additive(self.integer_names)]
        is_plausible: npt.NDArray[np.bool_] = np.logical_and.reduce((added >= -1) & (added < _MAX_COUNT), axis=1)
        return is_plausible

    def columns(self) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]]:
        """Map the counters to iosig's columns, each as values and a mask of the known ones."""
        columns: dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]] = {}
        places = _places(self.integer_names)
        for column, suffixes in COUNTS[self.module].items():
            parts = self.integers[:, [places[f"{self.module}_{suffix}"] for suffix in suffixes]]
            columns[column] = parts.sum(axis=1), np.logical_and.reduce(parts >= 0, axis=1)
        places = _places(self.real_names)
        for column, suffix in (_TIMES | _SPANS).items():
            place = places.get(f"{self.module}_{suffix}")
            if place is not None:
                values = self.reals[:, place].copy()
                # An instant of 0 or less was never set.
                complete_sums = np.isfinite(values) & ((values > 0) if column in _TIMES else (values >= 0))
                columns[column] = values, complete_sums
        return columns | self._file_columns()

    def _file_columns(self) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]]:
        """Return the extents of accesses in each file, and the counters of the fastest and slowest process."""
        columns: dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]] = {}
        for column, (last, moved) in _EXTENTS.items():
            ends, volumes = self._counter(last), self._counter(moved)
            if ends is not None and volumes is not None:
                # in a record without bytes, the last byte is also 0
                columns[column] = ends + 1, (ends >= 0) & (volumes > 0)
        slowest_s = self._counter("F_SLOWEST_RANK_TIME")
        if slowest_s is None:
            return columns
        for column, suffix in _EXTREMES.items():
            values = self._counter(suffix)
            if values is not None:
                # Darshan leaves these counters at 0 for a single process
                columns[column] = values, np.isfinite(values) & (values >= 0) & (slowest_s > 0)
        return columns

    def _counter(self, suffix: str) -> npt.NDArray[Any] | None:
        """Return the records' values (n) of a counter; None if the module lacks it."""
        name = f"{self.module}_{suffix}"
        place = _places(self.integer_names).get(name)
        if place is not None:
            return self.integers[:, place].copy()
        place = _places(self.real_names).get(name)
        return None if place is None else self.reals[:, place].copy()


@dataclass(slots=True)
class Totals:
    """Sums of a module's counters, in the tracer's order; a sum is missing if any record lacks the counter."""

    _sums: dict[str, int | float] = field(default_factory=dict)
    _unknown: set[str] = field(default_factory=set)

    def add(self, records: Records) -> None:
        """Add the additive counters of further records to the sums."""
        added = _find_additive(records.integer_names)
        counts = records.integers[:, added]
        are_large = counts.sum(axis=0, dtype=np.float64) > _MAX_COUNT
        sums: list[int] = counts.sum(axis=0).tolist()
        for place in np.flatnonzero(are_large).tolist():
            sums[place] = int(counts[:, place].sum(dtype=object))
        self._add(records.integer_names, added, sums, np.logical_and.reduce(counts >= 0, axis=0))
        added = _find_additive(records.real_names)
        # sum counter by counter, so that a sum does not depend on the other counters
        times = np.ascontiguousarray(records.reals[:, added].T)
        is_known = np.logical_and.reduce(np.isfinite(times) & (times >= 0), axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            seconds = np.where(is_known, times.sum(axis=1), 0.0)
        self._add(records.real_names, added, seconds.tolist(), is_known)

    def _add(
        self, names: tuple[str, ...], added: Ints, values: Sequence[int | float], complete_sums: npt.NDArray[np.bool_]
    ) -> None:
        for place, value, is_known in zip(added.tolist(), values, complete_sums.tolist(), strict=True):
            name = names[place]
            if not is_known:
                self._unknown.add(name)
            self._sums[name] = self._sums.get(name, 0) + value

    def complete_sums(self) -> dict[str, int | float]:
        """Return the sums of counters that all records have."""
        return {name: value for name, value in self._sums.items() if name not in self._unknown}

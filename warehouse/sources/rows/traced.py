"""What all readers of traces share: rows of the trace tables out of whatever columns a format knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.traces import TRACE_FILES
from iosig.warehouse.sources.protocol import Batch

#: rows of a batch: bounds the memory, makes row groups of a good size
BATCH_ROWS = 1 << 18
#: a column, and how it is given
_Kind = tuple[str, str]
_SCALARS = frozenset({type(None), str, int, float, bool, date, datetime})


@dataclass(frozen=True, slots=True)
class Nullable:
    """Values (n) of which only some are known (n)."""

    values: npt.NDArray[Any]
    known: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class Coded:
    """Texts (n), each by its place among a few."""

    texts: Sequence[str]
    codes: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.codes)


def rows(table: Table, known: Mapping[str, Any], ended_at: datetime | None = None) -> Batch:
    """Return the columns that a format knows as a batch of a trace table; it knows nothing of the others.

    known: by column name, an array, a series, a list, `Nullable`, `Coded`, or one value for all rows; at least one of
    them has the length of the table. `ended_at` is when the traced run ended: its day is the row's. Landing adds
    `trace_id`, `source_file` and the like. The frame is made when it is asked for, or with those of others (`joined`).
    """
    unknown = set(known) - set(frames.schema(table))
    if unknown:
        raise KeyError(f"{table.name} has no column {', '.join(sorted(unknown))}")
    kinds = tuple((name, _kind(value)) for name, value in known.items() if not _is_scalar(value))
    lengths = {len(known[name]) for name, _ in kinds}
    if len(lengths) > 1:
        raise ValueError(f"{table.name}: columns of {sorted(lengths)} rows are not of one length")
    absent = {"trace_id": "", "source_file": "", "ended_on": ended_at.date() if ended_at else None}
    return _Late(table, absent | dict(known), lengths.pop() if lengths else 1, kinds)


@dataclass(slots=True)
class Numbering:
    """Numbers rows as they come: in a table whose key ends with a number, each row has the next one."""

    counts: Counter[str] = field(default_factory=Counter)

    def rows(self, table: Table, known: pl.DataFrame, **same: Any) -> Iterator[Batch]:
        """Yield the columns that a format knows as batches of a trace table; `same`: values that all rows have."""
        for part in known.iter_slices(BATCH_ROWS):
            if not part.is_empty():
                first = self.counts[table.name]
                self.counts[table.name] += part.height
                numbers = pl.int_range(first, first + part.height, eager=True)
                yield rows(table, part.to_dict() | same | {table.key[-1]: numbers})


def files(numbers: Mapping[str | None, int] | Mapping[str, int]) -> Iterator[Batch]:
    """Yield the files of a trace by their paths, with their numbers, if there are any."""
    if numbers:
        known = {"file_number": list(numbers.values()), "path": list(numbers)}
        yield rows(TRACE_FILES, known)


def record_columns() -> list[pl.Expr]:
    """Return what the calls of one process to one file add up to.

    Of rows that stand for `count` calls each that do the same (`deed`): `bytes` (NULL if unknown), `time_s`, `start_s`
    of the first and `end_s` of the last. A sum with an unknown part is not known.
    """
    count, moved, time = pl.col("count"), pl.col("bytes"), pl.col("time_s")
    began, ceased = pl.col("start_s"), pl.col("end_s")
    of = {deed: pl.col("deed") == deed for deed in ("open", "close", "read", "write", "seek", "stat", "sync")}
    # a file that is synchronized is waited for: Darshan counts it as writing, too
    writes = of["write"] | of["sync"]
    return [
        *(
            pl.when(moved.filter(of[deed]).null_count() == 0).then(moved.filter(of[deed]).sum()).alias(name)
            for deed, name in (("read", "read_bytes"), ("write", "written_bytes"))
        ),
        *(count.filter(of[deed]).sum().alias(f"{deed}_count") for deed in of if deed != "close"),
        began.filter(of["open"]).min().alias("open_start_s"),
        ceased.filter(of["open"]).max().alias("open_end_s"),
        *(began.filter(of[deed]).min().alias(f"{deed}_start_s") for deed in ("read", "write")),
        *(ceased.filter(of[deed]).max().alias(f"{deed}_end_s") for deed in ("read", "write")),
        ceased.filter(of["close"]).max().alias("close_end_s"),
        time.filter(of["read"]).sum().alias("read_time_s"),
        time.filter(writes).sum().alias("write_time_s"),
        time.filter(~(of["read"] | writes)).sum().alias("metadata_time_s"),
    ]


class _Late(Batch):
    """Rows that are made of their columns when they are asked for."""

    __slots__ = ("_height", "_made", "columns", "kinds")

    def __init__(self, table: Table, columns: Mapping[str, Any], height: int, kinds: tuple[_Kind, ...]) -> None:
        given = {"table": table, "columns": columns, "kinds": kinds, "_height": height, "_made": None}
        # the fields of a record that is frozen
        for name, value in given.items():
            object.__setattr__(self, name, value)

    columns: Mapping[str, Any]
    #: how columns are given that are not one value: rows of batches that are given alike are made at once
    kinds: tuple[_Kind, ...]
    _height: int
    _made: pl.DataFrame | None

    @property
    def height(self) -> int:
        return self._height

    @property
    def rows(self) -> pl.DataFrame:
        made = self._made
        if made is None:
            made = _frame(self.table, [self])
            object.__setattr__(self, "_made", made)
        return made


def joined(batches: Sequence[Batch]) -> pl.DataFrame:
    """Return the rows of batches of one table, at least one, in order: a frame for all costs what it does for each."""
    alike: dict[tuple[_Kind, ...] | None, list[int]] = {}
    for place, batch in enumerate(batches):
        alike.setdefault(batch.kinds if isinstance(batch, _Late) else None, []).append(place)
    found = []
    for places in alike.values():
        own = [batches[place] for place in places]
        late = [batch for batch in own if isinstance(batch, _Late)]
        found.append(_frame(late[0].table, late) if late else pl.concat([batch.rows for batch in own]))
    if len(found) == 1:
        return found[0]
    order = np.concatenate(list(alike.values()))
    heights = np.array([batch.height for batch in batches])
    return pl.concat(found)[np.argsort(np.repeat(order, heights[order]), kind="stable")]


def _is_scalar(value: object) -> bool:
    return type(value) in _SCALARS or isinstance(value, str | int | float | date)


def _kind(value: object) -> str:
    """Return how a column is given that is not one value."""
    if isinstance(value, Nullable):
        return f"nullable {value.values.dtype.str}"
    if isinstance(value, np.ndarray):
        return f"array {value.dtype.str}"
    if isinstance(value, pl.Series):
        return f"series {value.dtype}"
    return type(value).__name__


def _frame(table: Table, batches: Sequence[_Late]) -> pl.DataFrame:
    """Return the rows of batches whose columns are given alike."""
    heights = [batch.height for batch in batches]
    owner = np.repeat(np.arange(len(batches)), heights)
    columns = []
    for name, dtype in frames.schema(table).items():
        parts = [batch.columns.get(name) for batch in batches]
        if not _is_scalar(parts[0]):
            columns.append(series(name, parts).cast(dtype))
        elif len(parts) == 1:
            columns.append(_one(name, parts[0], dtype).new_from_index(0, heights[0]))
        else:
            columns.append(pl.Series(name, parts, dtype=dtype).gather(owner))
    return pl.DataFrame(columns)


def series(name: str, parts: Sequence[Any]) -> pl.Series:
    """Return the values of a column that is given alike in all parts."""
    first = parts[0]
    if isinstance(first, Nullable):
        known = np.concatenate([part.known for part in parts])
        values = pl.Series(name, np.concatenate([part.values for part in parts]))
        return values if known.all() else values.scatter(np.flatnonzero(~known), None)
    if isinstance(first, Coded):
        counts = [len(part.texts) for part in parts]
        first_text = np.repeat(np.cumsum(counts) - counts, [len(part) for part in parts])
        texts = pl.Series(name, [text for part in parts for text in part.texts], dtype=pl.String)
        return texts.gather(np.concatenate([part.codes for part in parts]) + first_text)
    if isinstance(first, np.ndarray):
        return pl.Series(name, np.concatenate(parts))
    if isinstance(first, pl.Series):
        joined_up: pl.Series = pl.concat(parts)
        return joined_up.alias(name)
    return pl.Series(name, [value for part in parts for value in part])


@lru_cache(maxsize=1 << 10, typed=True)
def _one(name: str, value: Hashable, dtype: pl.DataType) -> pl.Series:
    # most columns have the same value in one small trace after the other
    return pl.Series(name, [value], dtype)

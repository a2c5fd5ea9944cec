"""Build rows of the trace tables from the columns that a format has; all trace readers share these functions."""

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

#: maximum number of rows per batch, which bounds memory use and yields row groups of a good size
BATCH_ROWS = 1 << 18
#: column name, and Python type of the column's values
_Kind = tuple[str, str]
_SCALARS = frozenset({type(None), str, int, float, bool, date, datetime})


@dataclass(frozen=True, slots=True)
class Nullable:
    """Values (n), and a mask (n) of the known values."""

    values: npt.NDArray[Any]
    known: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class CodedTexts:
    """Dictionary-encoded strings (n)."""

    texts: Sequence[str]
    codes: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.codes)


def build_batch(table: Table, columns: Mapping[str, Any], ended_at: datetime | None = None) -> Batch:
    """Build a batch of a trace table from the columns that a format has; all other columns are NULL.

    columns: by column name, an array, a series, a list, `Nullable`, `CodedTexts`, or one value for all rows; all but
    single values have the length of the table. `ended_at` is the end of the traced run; its day becomes `ended_on`.
    Landing adds `trace_id`, `source_file` and the like. The frame is built on first access, or together with others
    (`concat_batches`).
    """
    unknown = set(columns) - set(frames.schema(table))
    if unknown:
        raise KeyError(f"{table.name} has no column {', '.join(sorted(unknown))}")
    kinds = tuple((name, _kind(value)) for name, value in columns.items() if not _is_scalar(value))
    lengths = {len(columns[name]) for name, _ in kinds}
    if len(lengths) > 1:
        raise ValueError(f"{table.name}: columns of {sorted(lengths)} rows are not of one length")
    absent = {"trace_id": "", "source_file": "", "ended_on": ended_at.date() if ended_at else None}
    return _LazyBatch(table, absent | dict(columns), lengths.pop() if lengths else 1, kinds)


@dataclass(slots=True)
class Numbering:
    """Assigns consecutive row numbers, for tables with a key that ends with a number."""

    counts: Counter[str] = field(default_factory=Counter)

    def rows(self, table: Table, frame: pl.DataFrame, **same: Any) -> Iterator[Batch]:
        """Yield numbered batches of a trace table; `same`: values that all rows share."""
        for part in frame.iter_slices(BATCH_ROWS):
            if not part.is_empty():
                first = self.counts[table.name]
                self.counts[table.name] += part.height
                numbers = pl.int_range(first, first + part.height, eager=True)
                yield build_batch(table, part.to_dict() | same | {table.key[-1]: numbers})


def build_file_batches(numbers: Mapping[str | None, int] | Mapping[str, int]) -> Iterator[Batch]:
    """Yield one batch with the path and number of each file of a trace; yield nothing if it has no files."""
    if numbers:
        columns = {"file_number": list(numbers.values()), "path": list(numbers)}
        yield build_batch(TRACE_FILES, columns)


def record_columns() -> list[pl.Expr]:
    """Return the expressions that aggregate the calls of one process to one file.

    An input row stands for `count` calls of one `operation`, with their `bytes` (NULL if unknown), `time_s`, the
    `start_s` of the first and the `end_s` of the last call. A sum with an unknown part is NULL.
    """
    count, volume, time = pl.col("count"), pl.col("bytes"), pl.col("time_s")
    start, end = pl.col("start_s"), pl.col("end_s")
    is_operation = {
        operation: pl.col("operation") == operation
        for operation in ("open", "close", "read", "write", "seek", "stat", "sync")
    }
    # synchronization blocks the process, so Darshan counts its time as write time, too
    writes = is_operation["write"] | is_operation["sync"]
    return [
        *(
            pl.when(volume.filter(is_operation[operation]).null_count() == 0)
            .then(volume.filter(is_operation[operation]).sum())
            .alias(name)
            for operation, name in (("read", "read_bytes"), ("write", "written_bytes"))
        ),
        *(
            count.filter(is_operation[operation]).sum().alias(f"{operation}_count")
            for operation in is_operation
            if operation != "close"
        ),
        start.filter(is_operation["open"]).min().alias("open_start_s"),
        end.filter(is_operation["open"]).max().alias("open_end_s"),
        *(start.filter(is_operation[operation]).min().alias(f"{operation}_start_s") for operation in ("read", "write")),
        *(end.filter(is_operation[operation]).max().alias(f"{operation}_end_s") for operation in ("read", "write")),
        end.filter(is_operation["close"]).max().alias("close_end_s"),
        time.filter(is_operation["read"]).sum().alias("read_time_s"),
        time.filter(writes).sum().alias("write_time_s"),
        time.filter(~(is_operation["read"] | writes)).sum().alias("metadata_time_s"),
    ]


class _LazyBatch(Batch):
    """A batch that builds its frame on first access."""

    __slots__ = ("_built", "_height", "columns", "kinds")

    def __init__(self, table: Table, columns: Mapping[str, Any], height: int, kinds: tuple[_Kind, ...]) -> None:
        values = {"table": table, "columns": columns, "kinds": kinds, "_height": height, "_built": None}
        # the dataclass is frozen
        for name, value in values.items():
            object.__setattr__(self, name, value)

    columns: Mapping[str, Any]
    #: types of the columns with a value per row; batches with the same types are built together
    kinds: tuple[_Kind, ...]
    _height: int
    _built: pl.DataFrame | None

    @property
    def height(self) -> int:
        return self._height

    @property
    def rows(self) -> pl.DataFrame:
        built = self._built
        if built is None:
            built = _frame(self.table, [self])
            object.__setattr__(self, "_built", built)
        return built


def concat_batches(batches: Sequence[Batch]) -> pl.DataFrame:
    """Concatenate batches of one table in order; building one frame for all is as fast as for a single one."""
    by_kinds: dict[tuple[_Kind, ...] | None, list[int]] = {}
    for place, batch in enumerate(batches):
        by_kinds.setdefault(batch.kinds if isinstance(batch, _LazyBatch) else None, []).append(place)
    merged = []
    for places in by_kinds.values():
        group = [batches[place] for place in places]
        late = [batch for batch in group if isinstance(batch, _LazyBatch)]
        merged.append(_frame(late[0].table, late) if late else pl.concat([batch.rows for batch in group]))
    if len(merged) == 1:
        return merged[0]
    order = np.concatenate(list(by_kinds.values()))
    heights = np.array([batch.height for batch in batches])
    return pl.concat(merged)[np.argsort(np.repeat(order, heights[order]), kind="stable")]


def _is_scalar(value: object) -> bool:
    return type(value) in _SCALARS or isinstance(value, str | int | float | date)


def _kind(value: object) -> str:
    """Describe the type of a column with a value per row."""
    if isinstance(value, Nullable):
        return f"nullable {value.values.dtype.str}"
    if isinstance(value, np.ndarray):
        return f"array {value.dtype.str}"
    if isinstance(value, pl.Series):
        return f"series {value.dtype}"
    return type(value).__name__


def _frame(table: Table, batches: Sequence[_LazyBatch]) -> pl.DataFrame:
    """Build the rows of batches with the same column types."""
    heights = [batch.height for batch in batches]
    owner = np.repeat(np.arange(len(batches)), heights)
    columns = []
    for name, dtype in frames.schema(table).items():
        parts = [batch.columns.get(name) for batch in batches]
        if not _is_scalar(parts[0]):
            columns.append(series(name, parts).cast(dtype))
        elif len(parts) == 1:
            columns.append(_constant_series(name, parts[0], dtype).new_from_index(0, heights[0]))
        else:
            columns.append(pl.Series(name, parts, dtype=dtype).gather(owner))
    return pl.DataFrame(columns)


def series(name: str, parts: Sequence[Any]) -> pl.Series:
    """Concatenate the parts of a column, which all have the same type."""
    first = parts[0]
    if isinstance(first, Nullable):
        is_known = np.concatenate([part.known for part in parts])
        values = pl.Series(name, np.concatenate([part.values for part in parts]))
        return values if is_known.all() else values.scatter(np.flatnonzero(~is_known), None)
    if isinstance(first, CodedTexts):
        counts = [len(part.texts) for part in parts]
        first_text = np.repeat(np.cumsum(counts) - counts, [len(part) for part in parts])
        texts = pl.Series(name, [text for part in parts for text in part.texts], dtype=pl.String)
        return texts.gather(np.concatenate([part.codes for part in parts]) + first_text)
    if isinstance(first, np.ndarray):
        return pl.Series(name, np.concatenate(parts))
    if isinstance(first, pl.Series):
        joined: pl.Series = pl.concat(parts)
        return joined.alias(name)
    return pl.Series(name, [value for part in parts for value in part])


@lru_cache(maxsize=1 << 10, typed=True)
def _constant_series(name: str, value: Hashable, dtype: pl.DataType) -> pl.Series:
    # consecutive small traces have the same value in most columns
    return pl.Series(name, [value], dtype)

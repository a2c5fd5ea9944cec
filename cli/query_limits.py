"""Limit the resources of one query: memory of the process, bytes per row, and number of columns."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from iosig.warehouse.errors import UsageError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

#: limit in addition to the process's memory when a query begins; DuckDB's own limit excludes strings and results
MAX_MEMORY_BYTES = 4 << 30
#: size of a thread's stack, which counts toward the limit even if it is unused
_THREAD_BYTES = 16 << 20
MAX_ROW_BYTES = 64 << 20
MAX_COLUMNS = 1_000
_BATCH_ROWS = 10_000


@contextmanager
def limit_memory(max_bytes: int = MAX_MEMORY_BYTES) -> Iterator[None]:
    """Limit how much additional memory this process may allocate; beyond that, allocations fail.

    Only Linux counts all private memory toward this limit (RLIMIT_DATA).
    """
    before, hard = resource.getrlimit(resource.RLIMIT_DATA)
    used = _data_bytes()
    if used is not None:
        target_bytes = used + max_bytes + (os.cpu_count() or 1) * _THREAD_BYTES
        limits = [limit for limit in (target_bytes, before, hard) if limit != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, hard))


def _data_bytes() -> int | None:
    """Return the private memory of this process; None if the system does not report it."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return int(next(line for line in lines if line.startswith("VmData:")).split()[1]) * 1024
    return None


def batches(relation: duckdb.DuckDBPyRelation) -> pa.RecordBatchReader:
    """Yield the rows of a result in batches, each limited to about the memory of the largest allowed row.

    Raises UsageError if the result has too many columns, and during reading if a row is too large.
    """
    import pyarrow as pa

    if len(relation.columns) > MAX_COLUMNS:
        raise UsageError(f"The result has {len(relation.columns):,} columns, more than the maximum of {MAX_COLUMNS:,}.")
    reader = relation.to_arrow_reader(_BATCH_ROWS)
    return pa.RecordBatchReader.from_batches(reader.schema, _small(reader))


def _small(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        waiting = [batch]
        while waiting:
            part = waiting.pop()
            if part.nbytes <= MAX_ROW_BYTES:
                yield part
            elif part.num_rows == 1:
                raise UsageError(
                    f"A row of the result takes {part.nbytes:,} bytes, more than the maximum of {MAX_ROW_BYTES:,}. "
                    "Select fewer columns, or a part of the value."
                )
            else:
                half = part.num_rows // 2
                waiting += [part.slice(half), part.slice(0, half)]

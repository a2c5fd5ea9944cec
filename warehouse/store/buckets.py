"""Split a large table that is not partitioned by day into files, called buckets, by the hash of one column.

The hash is Iceberg's bucket transform, which every engine knows: (murmur3 of the text's UTF-8 bytes & 2**31 - 1) modulo
the number of buckets (Iceberg table specification, Appendix B).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from iosig.warehouse.contracts import Table, arrow
from iosig.warehouse.engine_paths import utf8_path
from iosig.warehouse.placing import atomic_write, make_read_only
from iosig.warehouse.store.store import ROW_GROUP_ROWS, parquet_writer

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

BUCKET_COUNT = 16
#: number of buckets that are written in parallel
_WRITERS = 2


def compute_bucket(values: pl.Series) -> pl.Series:
    """Return the zero-based hash bucket of each string."""
    import polars as pl
    from pyiceberg.transforms import BucketTransform
    from pyiceberg.types import StringType

    hashed = BucketTransform(BUCKET_COUNT).transform(StringType())
    buckets = {value: hashed(value) for value in values.unique().to_list()}
    return values.replace_strict(buckets, return_dtype=pl.Int64) if buckets else pl.Series([], dtype=pl.Int64)


def split_parquet(parts: Sequence[Path], table: Table, paths: Mapping[int, Path]) -> None:
    """Split sorted Parquet files of a table into one file per bucket, reading a batch of rows at a time.

    The input must be ordered by the hashed column, so that the rows of one bucket are contiguous. An empty bucket gets
    no file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    assert table.bucketed_by
    schema = arrow.schema(table)
    writers: dict[int, pq.ParquetWriter] = {}

    def write(bucket: int, batches: Sequence[pa.RecordBatch]) -> None:
        rows = pa.Table.from_batches(batches).combine_chunks().cast(schema)
        writers[bucket].write_table(rows, row_group_size=ROW_GROUP_ROWS)

    with ExitStack() as files:
        # the files are independent
        threads = files.enter_context(ThreadPoolExecutor(_WRITERS, "buckets"))
        for part in parts:
            for batch in pq.ParquetFile(utf8_path(part)).iter_batches(ROW_GROUP_ROWS):
                batches = _split(batch, table.bucketed_by)
                for number in batches.keys() - writers.keys():
                    writers[number] = _begun(files, paths[number], table)
                for written in [threads.submit(write, number, slices) for number, slices in batches.items()]:
                    written.result()


def _split(batch: pa.RecordBatch, name: str) -> dict[int, list[pa.RecordBatch]]:
    """Split rows that are sorted by bucket into contiguous slices, one per bucket."""
    import polars as pl
    import pyarrow.compute as pc

    runs = pc.run_end_encode(batch.column(name))
    buckets = compute_bucket(pl.Series(runs.values, dtype=pl.String)).to_list()
    slices: dict[int, list[pa.RecordBatch]] = {}
    first = 0
    for bucket, last in zip(buckets, runs.run_ends.to_pylist(), strict=True):
        slices.setdefault(bucket, []).append(batch.slice(first, last - first))
        first = last
    return slices


def _begun(files: ExitStack, path: Path, table: Table) -> pq.ParquetWriter:
    temporary = files.enter_context(atomic_write(path))
    files.callback(make_read_only, temporary)
    return files.enter_context(parquet_writer(temporary, table))

"""Describe and execute work items: a function, the files that it reads and writes, and the settings.

A work item contains no open file or connection, so any process with access to the warehouse can execute it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from iosig.estimates import staging
from iosig.settings.model import Settings
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.engine_paths import scan_parquet
from iosig.warehouse.store import models
from iosig.warehouse.store.buckets import split_parquet
from iosig.warehouse.store.manifests import Landing, Part, scans
from iosig.warehouse.store.store import Store, join_parquet, put_document, write_parquet

if TYPE_CHECKING:
    import duckdb

Day = date | None
#: approximate size of a landed row [B]
_LANDED_ROW_BYTES = 16


@dataclass(frozen=True, slots=True)
class TableFile:
    """A Parquet file of a table: its path below the warehouse's root, and its day or bucket, if any.

    is_released: whether it belongs to the base release, which has the previous version of recomputed days.
    subject_kinds: kinds of subjects with valid rows; empty if the rows of all kinds are valid.
    """

    table: str
    path: str
    day: Day = None
    is_released: bool = False
    bucket: int | None = None
    subject_kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of the rows of a step and day that fits into the memory of one process.

    reads: all input files. keys: identify the chunk's rows in files that several chunks read.
    """

    reads: tuple[TableFile | Landing, ...]
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One execution of a step: for one day, for a chunk of one day, or for all days together.

    function: `module:name`. reads: files, and landings reduced to the parts that are read. writes: files; those without
    rows may be absent, and a star in a path matches any number of files. days: days that are recomputed. folder: the
    run's own folder, below the root. marker: file that marks the item as complete; empty for an item that every run
    executes. is_check: whether it needs Great Expectations. chunk_function: executed before `function` if the item also
    computes its only chunk. chunk_keys: keys of the chunk that it computes. chunk_files: files that it writes as a
    chunk, or joins. poll_span: the first and last day of polls in the warehouse. beginning_filesystems: file systems
    with their first polls on these days.
    """

    name: str
    step: str
    function: str
    reads: tuple[TableFile | Landing, ...]
    writes: tuple[TableFile, ...]
    days: tuple[Day, ...]
    settings: Settings
    folder: str
    marker: str
    is_check: bool = False
    chunk_function: str = ""
    chunk_keys: tuple[str, ...] = ()
    chunk_files: tuple[TableFile, ...] = ()
    poll_span: tuple[Day, Day] = (None, None)
    beginning_filesystems: tuple[str, ...] = ()

    @property
    def is_chunk(self) -> bool:
        """Whether the item computes one of several chunks, which another item joins."""
        return bool(self.chunk_files) and self.writes == self.chunk_files

    def is_smaller_than(self, root: Path, byte_count: int) -> bool:
        """Return whether the item reads fewer than `byte_count` bytes."""
        total = 0
        for source in self.reads:
            if isinstance(source, TableFile):
                with suppress(OSError):
                    total += (root / source.path).stat().st_size
            else:
                total += sum(part.row_count for part in source.parts) * _LANDED_ROW_BYTES
            if total >= byte_count:
                return False
        return True


def execute(item: WorkItem, root: Path) -> ItemResult:
    """Execute a work item in the warehouse at `root`; its completion marker is written last."""
    start_s = time.perf_counter()
    store = Store(root)
    files = store.files
    files.fetch(_with_companions(file.path for file in item.reads if isinstance(file, TableFile)))
    row_count = 0
    for function in filter(None, (item.chunk_function, item.function)):
        module, _, name = function.partition(":")
        row_count = getattr(import_module(module), name)(StepContext(root, item))
    names = tuple(name for file in item.writes for name in _find_files(root, file.path))
    files.push(_with_companions(names))
    if item.marker:
        put_document(store, item.marker, {"rows": row_count})
    return ItemResult(item.name, item.step, row_count, time.perf_counter() - start_s, names)


def _find_files(root: Path, path: str) -> list[str]:
    """Return the names of the existing files that match a path, which may contain `*`."""
    if "*" in path:
        return sorted(path_found.relative_to(root).as_posix() for path_found in root.glob(path))
    return [path] if (root / path).is_file() else []


def _with_companions(names: Iterable[str]) -> Iterator[str]:
    """Yield names of files, and of the JSON documents that accompany verdicts."""
    for name in names:
        yield name
        if "/verdicts/" in name:
            yield str(Path(name).with_suffix(".json"))


@dataclass(frozen=True, slots=True)
class ItemResult:
    """A completed work item: the number of rows that it wrote, its duration, and the paths of its files.

    is_cached: whether an earlier run had completed it.
    """

    name: str
    step: str
    row_count: int
    duration_s: float
    written: tuple[str, ...] = ()
    is_cached: bool = False


@dataclass(frozen=True, slots=True)
class StepContext:
    """The argument of a step's function: its work item, and access to the item's files."""

    root: Path
    item: WorkItem

    @property
    def settings(self) -> Settings:
        """The site's settings."""
        return self.item.settings

    @property
    def days(self) -> tuple[Day, ...]:
        """Recomputed days, None for rows without a day."""
        return self.item.days

    @property
    def folder(self) -> Path:
        """The plan's folder, in which an item may also keep files of its own."""
        return self.root / self.item.folder

    # ---- inputs

    def get_file_days(self, table: Table, *, is_released: bool = False) -> dict[Path, Day]:
        """Return the built files of a table, or those of the base release, with their days."""
        return {
            self.root / file.path: file.day
            for file in self.item.reads
            if isinstance(file, TableFile) and file.table == table.name and file.is_released == is_released
        }

    def files(self, table: Table) -> list[Path]:
        """Return the built files of a table."""
        return list(self.get_file_days(table))

    def frame(self, table: Table) -> pl.DataFrame:
        """Read the built files of a table; without files, the frame is empty."""
        return self.scan(table).collect()

    def scan(self, table: Table, *, is_released: bool = False) -> pl.LazyFrame:
        """Scan the built files of a table, or those of the base release; without files, the frame is empty."""
        files = list(self.get_file_days(table, is_released=is_released))
        return scan_parquet(files) if files else frames.empty(table).lazy()

    def list_base_files(self, table: Table) -> list[Path]:
        """Return the files of a table in the base release."""
        return list(self.get_file_days(table, is_released=True))

    def parts(self, table: Table) -> list[tuple[Landing, Part]]:
        """Return the landed files of a table, in the order of landing."""
        landings = (item for item in self.item.reads if isinstance(item, Landing))
        return [(landed, part) for landed in landings for part in landed.parts if part.table == table.name]

    def scan_landed(self, table: Table) -> list[pl.LazyFrame]:
        """Return the landed rows of a table, a frame for each file, in the order of landing."""
        return scans(Store(self.root), table, self.parts(table))

    # ---- outputs

    def path(self, table: Table) -> Path:
        """Return the one file of a table that the item writes."""
        (file,) = (file for file in self.item.writes if file.table == table.name)
        return self.root / file.path

    def chunk_path(self, table: Table) -> Path:
        """Return the file of a table for the rows of the chunk that the item computes."""
        (file,) = (file for file in self.item.chunk_files if file.table == table.name)
        return self.root / file.path

    def chunk_paths(self, table: Table) -> list[Path]:
        """Return the files of a table that chunks have written, in the order of the chunks."""
        paths = (self.root / file.path for file in self.item.chunk_files if file.table == table.name)
        return [path for path in paths if path.is_file()]

    def join_chunks(self, table: Table) -> None:
        """Join the rows of all chunks into the table's file; without rows, no file is written."""
        paths = self.chunk_paths(table)
        if self.item.chunk_function and paths:
            self.path(table).parent.mkdir(parents=True, exist_ok=True)
            paths[0].replace(self.path(table))
        elif paths:
            join_parquet(paths, table, self.path(table))

    def join(self, parts: Sequence[Path], table: Table) -> None:
        """Join the rows of Parquet files into the table's file, or into one file per bucket."""
        if table.bucketed_by is None:
            join_parquet(parts, table, self.path(table))
            return
        own_files = (file for file in self.item.writes if file.table == table.name)
        split_parquet(
            parts, table, {file.bucket: self.root / file.path for file in own_files if file.bucket is not None}
        )

    def write_days(self, frame: pl.DataFrame, table: Table, *, is_sparse: bool = True) -> None:
        """Write one file per day, by the table's partition column. is_sparse: write no file for days without rows."""
        assert table.partition
        for file in self.item.writes:
            if file.table == table.name:
                rows = frame.filter(pl.col(table.partition).eq_missing(pl.lit(file.day, pl.Date)))
                if not (is_sparse and rows.is_empty()):
                    write_parquet(rows, table, self.root / file.path)

    # ---- SQL models

    @contextmanager
    def engine(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open DuckDB, with settings that models read as tables, and with views of the item's inputs."""
        with staging.engine(self.settings, self.folder / "spill") as connection:
            yield connection

    def expose(self, connection: duckdb.DuckDBPyConnection, *tables: Table) -> None:
        """Create views `<layer>.<table>` over the built files of tables that the item reads or has written."""
        for table in tables:
            own_paths = (self.root / file.path for file in self.item.writes if file.table == table.name)
            files = [*self.files(table), *(path for path in own_paths if path.is_file())]
            models.expose(connection, table.layer, table, files)

    def expose_released(self, connection: duckdb.DuckDBPyConnection, *tables: Table) -> None:
        """Create views `released.<table>` over the files of tables in the base release."""
        for table in tables:
            models.expose(connection, "released", table, self.list_base_files(table))

    def expose_landed(self, connection: duckdb.DuckDBPyConnection, *tables: Table) -> None:
        """Create views `landed.<table>` over the landed files of tables."""
        for table in tables:
            models.expose_parts(Store(self.root), connection, table, self.parts(table))

    def build(self, connection: duckdb.DuckDBPyConnection, table: Table) -> int:
        """Run a table's model, write the result with DuckDB, and expose it. Returns the number of rows."""
        return models.write(connection, table, self.path(table), self.parameters())

    def build_days(self, connection: duckdb.DuckDBPyConnection, table: Table, *, is_sparse: bool = True) -> int:
        """Run a table's model, write one file per day, and expose them. Returns the number of rows.

        is_sparse: write no file for days without rows.
        """
        paths = {file.day: self.root / file.path for file in self.item.writes if file.table == table.name}
        row_counts = models.write_days(connection, table, paths, self.parameters(), is_sparse=is_sparse)
        return sum(row_counts.values())

    def compute(self, connection: duckdb.DuckDBPyConnection, table: Table) -> pl.DataFrame:
        """Run a table's model without writing a file, expose the result, and return it."""
        rows: pl.DataFrame = models.compute(connection, table, self.parameters()).pl(lazy=False)
        return rows

    def put(self, connection: duckdb.DuckDBPyConnection, table: Table, rows: pl.DataFrame) -> None:
        """Write a frame as the table's file, and expose it."""
        models.expose(connection, table.layer, table, [write_parquet(rows, table, self.path(table))])

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of SQL models: the days, and values from the settings."""
        files = (file for file in self.item.reads if isinstance(file, TableFile))
        return {
            "subject_kinds": sorted({kind for file in files for kind in file.subject_kinds}),
            "days": [day for day in self.days if day is not None],
            "has_undated": None in self.days,
            "first_polled_on": self.item.poll_span[0],
            "last_polled_on": self.item.poll_span[1],
            "beginning_filesystems": list(self.item.beginning_filesystems),
            **staging.model_parameters(self.settings),
        }

"""Pieces of work as data: which files each reads and writes, which function makes them, by which settings.

A piece holds nothing that is open or under way: it can be pickled, or written as JSON, and done by any process that
sees the warehouse.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
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


@dataclass(frozen=True, slots=True)
class File:
    """A Parquet file of a table: its path below the warehouse's root, its day or bucket if it has one.

    is_released: whether it is of the release before, of which days that are computed anew are read too. subject_kinds:
    whose rows of it are still true, where only some kinds' may be.
    """

    table: str
    path: str
    day: Day = None
    is_released: bool = False
    bucket: int | None = None
    subject_kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of work: a function, by its module and name, and all that it depends on.

    reads: files, and landings with those of their parts that are read. writes: files, of which those without rows may
    be left out. days: those that are computed anew. folder: the plan's own, below the root. mark: the file that says
    that the piece is done; empty for one that every run does again. is_check: whether it needs Great Expectations.
    poll_span: the first and last day of polls in the warehouse. beginning_filesystems: those whose polls begin on
    these days.
    """

    name: str
    function: str
    reads: tuple[File | Landing, ...]
    writes: tuple[File, ...]
    days: tuple[Day, ...]
    settings: Settings
    folder: str
    mark: str
    is_check: bool = False
    poll_span: tuple[Day, Day] = (None, None)
    beginning_filesystems: tuple[str, ...] = ()

    def do(self, root: Path) -> Done:
        """Do it, in the warehouse of that root; its mark comes last."""
        began = time.perf_counter()
        store = Store(root)
        files = store.files
        files.fetch(_with_words(file.path for file in self.reads if isinstance(file, File)))
        module, _, name = self.function.partition(":")
        row_count: int = getattr(import_module(module), name)(Given(root, self))
        files.push(_with_words(file.path for file in self.writes))
        if self.mark:
            put_document(store, self.mark, {"rows": row_count})
        return Done(self.name, row_count, time.perf_counter() - began)


def _with_words(names: Iterable[str]) -> Iterator[str]:
    """Yield names of files, and of what may be said beside them."""
    for name in names:
        yield name
        if "/verdicts/" in name:
            yield str(Path(name).with_suffix(".json"))


@dataclass(frozen=True, slots=True)
class Done:
    """A piece that is done: its name, the rows that came of it, and how long it took."""

    name: str
    row_count: int
    duration_s: float


@dataclass(frozen=True, slots=True)
class Given:
    """What a piece's function is given: the piece, and where its files are."""

    root: Path
    piece: Piece

    @property
    def settings(self) -> Settings:
        """What the site says about itself."""
        return self.piece.settings

    @property
    def days(self) -> tuple[Day, ...]:
        """The days that are computed anew."""
        return self.piece.days

    @property
    def folder(self) -> Path:
        """Where the plan's files are, and where a piece may leave some for itself."""
        return self.root / self.piece.folder

    # ---- what is read

    def dated(self, table: Table, *, is_released: bool = False) -> dict[Path, Day]:
        """Return the built files of a table, or those of the release before, with their days."""
        return {
            self.root / file.path: file.day
            for file in self.piece.reads
            if isinstance(file, File) and file.table == table.name and file.is_released == is_released
        }

    def files(self, table: Table) -> list[Path]:
        """Return the built files of a table."""
        return list(self.dated(table))

    def frame(self, table: Table) -> pl.DataFrame:
        """Read the built files of a table; without files it is empty."""
        return self.scan(table).collect()

    def scan(self, table: Table, *, is_released: bool = False) -> pl.LazyFrame:
        """Return the built files of a table, or those of the release before, to be read; without files it is empty."""
        files = list(self.dated(table, is_released=is_released))
        return scan_parquet(files) if files else frames.empty(table).lazy()

    def released(self, table: Table) -> list[Path]:
        """Return the files of a table in the release before."""
        return list(self.dated(table, is_released=True))

    def subject_kinds(self, table: Table) -> set[str]:
        """Return whose rows of a table in the release before are still true, as `undated` says."""
        return {
            kind
            for file in self.piece.reads
            if isinstance(file, File) and file.table == table.name
            for kind in file.subject_kinds
        }

    def parts(self, table: Table) -> list[tuple[Landing, Part]]:
        """Return the landed files of a table, in the order of landing."""
        landings = (read for read in self.piece.reads if isinstance(read, Landing))
        return [(landed, part) for landed in landings for part in landed.parts if part.table == table.name]

    def landed(self, table: Table) -> list[pl.LazyFrame]:
        """Return the landed rows of a table, a frame for each file, in the order of landing."""
        return scans(Store(self.root), table, self.parts(table))

    # ---- what is written

    def path(self, table: Table) -> Path:
        """Return the one file of a table that the piece writes."""
        (file,) = (file for file in self.piece.writes if file.table == table.name)
        return self.root / file.path

    def join(self, parts: Sequence[Path], table: Table) -> None:
        """Write the rows of Parquet files as the table's one file, or one a bucket."""
        if table.bucketed_by is None:
            join_parquet(parts, table, self.path(table))
            return
        own = (file for file in self.piece.writes if file.table == table.name)
        split_parquet(parts, table, {file.bucket: self.root / file.path for file in own if file.bucket is not None})

    def write_days(self, frame: pl.DataFrame, table: Table, *, is_sparse: bool = True) -> None:
        """Write a frame as one file per day, by the table's partition column; a sparse one has none without rows."""
        assert table.partition
        for file in self.piece.writes:
            if file.table == table.name:
                rows = frame.filter(pl.col(table.partition).eq_missing(pl.lit(file.day, pl.Date)))
                if not (is_sparse and rows.is_empty()):
                    write_parquet(rows, table, self.root / file.path)

    # ---- SQL models

    @contextmanager
    def engine(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open DuckDB with the settings that models join as tables, and all that the piece reads."""
        with staging.engine(self.settings, self.folder / "spill") as connection:
            yield connection

    def expose(self, connection: duckdb.DuckDBPyConnection, *tables: Table) -> None:
        """Make the built files of tables readable as `layer.table`."""
        for table in tables:
            models.expose(connection, table.layer, table, self.files(table))

    def expose_landed(self, connection: duckdb.DuckDBPyConnection, *tables: Table) -> None:
        """Make the landed files of tables readable as `landed.table`."""
        for table in tables:
            models.expose_parts(Store(self.root), connection, table, self.parts(table))

    def build(self, connection: duckdb.DuckDBPyConnection, table: Table) -> int:
        """Run a table's model, write its result, and make it readable in its turn. Returns the rows."""
        rows = models.select(connection, table, self.parameters())
        path = write_parquet(rows, table, self.path(table))
        models.expose(connection, table.layer, table, [path])
        return rows.height

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of SQL models: days, and those that come from the settings."""
        return {
            "days": [day for day in self.days if day is not None],
            "has_undated": None in self.days,
            "first_polled_on": self.piece.poll_span[0],
            "last_polled_on": self.piece.poll_span[1],
            "beginning_filesystems": list(self.piece.beginning_filesystems),
            **staging.model_parameters(self.settings),
        }

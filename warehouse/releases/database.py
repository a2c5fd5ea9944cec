"""Catalogues in an SQL database, by pyiceberg's own client: what is asked of several tables is asked at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata
from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from iosig.warehouse.releases.gathering import Change, Gathering
from iosig.warehouse.releases.servers import NAMESPACE


class SqlTables(Gathering, SqlCatalog):
    """pyiceberg's client; what lies in files is read and written by several threads."""

    #: where the tables' metadata lay when changes began to be gathered: no thread asks the database for itself
    _known: dict[str, str] | None = None

    @cached_property
    def _file_io(self) -> FileIO:
        # of one place all, so its connections are kept
        return load_file_io(self.properties, self.properties["warehouse"])

    def _load_file_io(self, properties: Any = None, location: str | None = None) -> FileIO:
        return self._file_io

    def locations(self) -> dict[str, str]:
        """Return where each table's current metadata lie."""
        told = select(IcebergTables.table_name, IcebergTables.metadata_location).where(
            IcebergTables.catalog_name == self.name, IcebergTables.table_namespace == NAMESPACE
        )
        with Session(self.engine) as session:
            return {name: location for name, location in session.execute(told) if location}

    def all_tables(self) -> dict[str, Table]:
        """Return all tables, by their names."""
        found = self.locations()
        return dict(zip(found, self.files.each(lambda told: self._table(*told), found.items()), strict=True))

    def _loaded(self, name: str) -> Table:
        known = self.locations() if self._known is None else self._known
        if name not in known:
            raise NoSuchTableError(f"Table does not exist: {NAMESPACE}.{name}")
        return self._table(name, known[name])

    def _table(self, name: str, location: str) -> Table:
        metadata = FromInputFile.table_metadata(self._file_io.new_input(location))
        return Table((NAMESPACE, name), metadata, location, self._file_io, self)

    @contextmanager
    def gathering(self, last: str) -> Iterator[None]:
        """Gather changes of tables, and make them on leaving; none after an error."""
        self._known = self.locations()
        try:
            with super().gathering(last):
                yield
        finally:
            self._known = None

    def _delete_old_metadata(self, io: FileIO, base: TableMetadata, metadata: TableMetadata) -> None:  # type: ignore[override]
        """Leave old metadata where changes are gathered: they may never come to be."""
        if self._gathered is None:
            SqlCatalog._delete_old_metadata(io, base, metadata)

    def _committed(self, *change: Any) -> CommitTableResponse:
        done: CommitTableResponse = SqlCatalog.commit_table(self, *change)
        return done

    def _send(self, changes: list[Change]) -> None:
        places = self.files.each(self._written, changes)
        with Session(self.engine) as session:
            for change, place in zip(changes, places, strict=True):
                self._point(session, change, place)
            session.commit()
        self.files.each(self._let_go, changes)

    def _written(self, change: Change) -> str:
        """Write a table's metadata to be, and return where they lie."""
        assert change.metadata is not None
        version = 0 if change.is_new else self._parse_metadata_version(change.found.metadata_location) + 1
        place = change.found.location_provider().new_table_metadata_file_location(version)
        # a name that nobody ever had
        ToOutputFile.table_metadata(change.metadata, self._file_io.new_output(place), overwrite=True)
        return place

    def _let_go(self, change: Change) -> None:
        """Remove metadata that are older than those which are kept."""
        if change.metadata is not None and not change.is_new:
            with suppress(OSError):
                SqlCatalog._delete_old_metadata(self._file_io, change.found.metadata, change.metadata)

    def _point(self, session: Session, change: Change, place: str) -> None:
        """Have the catalogue name metadata. Raises CommitFailedException where it does not name those before."""
        namespace, name = change.found.name()
        if change.is_new:
            session.execute(insert(IcebergTables).values(**self._create_table_row(namespace, name, place)))
            return
        before = change.found.metadata_location
        named = update(IcebergTables).where(
            IcebergTables.catalog_name == self.name,
            IcebergTables.table_namespace == namespace,
            IcebergTables.table_name == name,
            IcebergTables.metadata_location == before,
        )
        done: Any = session.execute(named.values(metadata_location=place, previous_metadata_location=before))
        if done.rowcount != 1:
            raise CommitFailedException(f"Table has been updated by another process: {namespace}.{name}")

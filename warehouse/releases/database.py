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
from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from iosig.warehouse.releases.gathering import Change, Gathering
from iosig.warehouse.releases.servers import NAMESPACE


class SqlTables(Gathering, SqlCatalog):
    """pyiceberg's client; what lies in files is read and written by several threads."""

    #: where the tables' metadata lay when changes began to be gathered: no thread asks the database for itself
    _known: dict[str, str] | None = None

    @cached_property
    def file_io(self) -> FileIO:
        """Files of all tables: one object, so that connections are kept."""
        return load_file_io(self.properties, self.properties["warehouse"])

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
        metadata = FromInputFile.table_metadata(self.file_io.new_input(location))
        return Table((NAMESPACE, name), metadata, location, self.file_io, self)

    @contextmanager
    def gathering(self, last: str) -> Iterator[None]:
        """Gather changes of tables, and make them on leaving; none after an error."""
        self._known = self.locations()
        try:
            with super().gathering(last):
                yield
        finally:
            self._known = None

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
        version = 0 if change.is_new else _version_of(change.found.metadata_location) + 1
        place = change.found.location_provider().new_table_metadata_file_location(version)
        # a name that nobody ever had
        ToOutputFile.table_metadata(change.metadata, self.file_io.new_output(place), overwrite=True)
        return place

    def _let_go(self, change: Change) -> None:
        """Remove metadata files that the table's log no longer names."""
        if change.is_new:
            return
        named = {entry.metadata_file for entry in change.metadata.metadata_log}
        for location in {entry.metadata_file for entry in change.found.metadata.metadata_log} - named:
            with suppress(OSError):
                self.file_io.delete(location)

    def _point(self, session: Session, change: Change, place: str) -> None:
        """Have the catalogue name metadata. Raises CommitFailedException where it does not name those before."""
        namespace, name = change.found.name()
        if change.is_new:
            row = {"catalog_name": self.name, "table_namespace": namespace, "table_name": name}
            session.execute(insert(IcebergTables).values(**row, metadata_location=place))
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


def _version_of(location: str) -> int:
    """Return the version of a metadata file by its name: `00012-UUID.metadata.json`."""
    return int(location.rsplit("/", 1)[1].split("-", 1)[0])

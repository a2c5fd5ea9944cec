"""Access catalogues in an SQL database with pyiceberg's own client, with one query for several tables."""

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

from iosig.warehouse.releases.multi_table_transaction import Change, TransactionalCatalogue
from iosig.warehouse.releases.servers import NAMESPACE


class SqlTables(TransactionalCatalogue, SqlCatalog):
    """PyIceberg's SQL catalogue, which reads and writes metadata files in parallel threads."""

    #: locations of the tables' metadata at the start of a transaction, so that threads need not query the database
    _known: dict[str, str] | None = None

    @cached_property
    def file_io(self) -> FileIO:
        """File IO that all tables share, so that connections are reused."""
        return load_file_io(self.properties, self.properties["warehouse"])

    def locations(self) -> dict[str, str]:
        """Return the location of each table's current metadata."""
        query = select(IcebergTables.table_name, IcebergTables.metadata_location).where(
            IcebergTables.catalog_name == self.name, IcebergTables.table_namespace == NAMESPACE
        )
        with Session(self.engine) as session:
            return {name: location for name, location in session.execute(query) if location}

    def all_tables(self) -> dict[str, Table]:
        """Load all tables of the catalogue and return them by name."""
        locations = self.locations()
        return dict(zip(locations, self.files.each(lambda entry: self._table(*entry), locations.items()), strict=True))

    def _load_committed(self, name: str) -> Table:
        locations = self.locations() if self._known is None else self._known
        if name not in locations:
            raise NoSuchTableError(f"Table does not exist: {NAMESPACE}.{name}")
        return self._table(name, locations[name])

    def _table(self, name: str, location: str) -> Table:
        metadata = FromInputFile.table_metadata(self.file_io.new_input(location))
        return Table((NAMESPACE, name), metadata, location, self.file_io, self)

    @contextmanager
    def gathering(self, last: str) -> Iterator[None]:
        """Collect changes of tables and commit them on exit, or none after an error."""
        self._known = self.locations()
        try:
            with super().gathering(last):
                yield
        finally:
            self._known = None

    def _commit_now(self, *change: Any) -> CommitTableResponse:
        response: CommitTableResponse = SqlCatalog.commit_table(self, *change)
        return response

    def _send(self, changes: list[Change]) -> None:
        places = self.files.each(self._write_table_metadata, changes)
        with Session(self.engine) as session:
            for change, place in zip(changes, places, strict=True):
                self._point(session, change, place)
            session.commit()
        self.files.each(self._let_go, changes)

    def _write_table_metadata(self, change: Change) -> str:
        """Write the new metadata of a table and return its location."""
        version = 0 if change.is_new else _parse_version(change.found.metadata_location) + 1
        place = change.found.location_provider().new_table_metadata_file_location(version)
        # a new, unique name
        ToOutputFile.table_metadata(change.metadata, self.file_io.new_output(place), overwrite=True)
        return place

    def _let_go(self, change: Change) -> None:
        """Remove the metadata files that the change drops from the table's log."""
        if change.is_new:
            return
        kept_files = {entry.metadata_file for entry in change.metadata.metadata_log}
        for location in {entry.metadata_file for entry in change.found.metadata.metadata_log} - kept_files:
            with suppress(OSError):
                self.file_io.delete(location)

    def _point(self, session: Session, change: Change, place: str) -> None:
        """Set the metadata location in the catalogue. Raises CommitFailedException after a concurrent commit."""
        namespace, name = change.found.name()
        if change.is_new:
            row = {"catalog_name": self.name, "table_namespace": namespace, "table_name": name}
            session.execute(insert(IcebergTables).values(**row, metadata_location=place))
            return
        before = change.found.metadata_location
        statement = update(IcebergTables).where(
            IcebergTables.catalog_name == self.name,
            IcebergTables.table_namespace == namespace,
            IcebergTables.table_name == name,
            IcebergTables.metadata_location == before,
        )
        result: Any = session.execute(statement.values(metadata_location=place, previous_metadata_location=before))
        if result.rowcount != 1:
            raise CommitFailedException(f"Table has been updated by another process: {namespace}.{name}")


def _parse_version(location: str) -> int:
    """Parse the version from the name of a metadata file, as in `00012-UUID.metadata.json`."""
    return int(location.rsplit("/", 1)[1].split("-", 1)[0])

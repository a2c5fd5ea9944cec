"""Collect changes of several tables in a transaction, and commit them together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableRequest, CommitTableResponse, StagedTable, Table, TableIdentifier
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata

from iosig.warehouse.store.files import Files


@dataclass
class Change:
    """A pending change of one table: the table as loaded, its new metadata, and the commit request for a server."""

    found: Table
    metadata: TableMetadata
    requirements: tuple[TableRequirement, ...] = ()
    updates: tuple[TableUpdate, ...] = ()

    def add(self, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]) -> TableMetadata:
        """Append updates; only requirements on the table as it was loaded are sent to a server."""
        for requirement in requirements:
            requirement.validate(self.metadata)
        self.requirements += tuple(requirement for requirement in requirements if _holds(requirement, self._before))
        self.metadata = update_table_metadata(
            self.metadata,
            updates,
            # log the previous metadata location once, with the first update
            metadata_location=None if self.is_new or self.updates else self.found.metadata_location,
        )
        self.updates += updates
        return self.metadata

    @property
    def is_new(self) -> bool:
        """Whether this change creates the table."""
        return isinstance(self.found, StagedTable)

    @property
    def _before(self) -> TableMetadata | None:
        return None if self.is_new else self.found.metadata

    @property
    def request(self) -> CommitTableRequest:
        """Commit request that is sent to a REST server."""
        *namespace, name = self.found.name()
        identifier = TableIdentifier(namespace=namespace, name=name)
        return CommitTableRequest(identifier=identifier, requirements=self.requirements, updates=self.updates)


def _holds(requirement: TableRequirement, metadata: TableMetadata | None) -> bool:
    with suppress(CommitFailedException):
        requirement.validate(metadata)
        return True
    return False


class TransactionalCatalogue(Catalog):
    """Base class of catalogues with transactions, in which each loaded table reflects its pending changes.

    Several threads may change different tables concurrently. files: the warehouse's storage, which sets the number of
    threads.
    """

    files: Files
    _gathered: dict[str, Change] | None = None

    def load_table(self, identifier: Any) -> Table:
        """Load a table; during a transaction, repeated loads return the same state despite commits of other writers."""
        name = self.identifier_to_tuple(identifier)[-1]
        if self._gathered is None:
            return self._load_committed(name)
        if name not in self._gathered:
            loaded = self._load_committed(name)
            self._gathered[name] = Change(loaded, loaded.metadata)
        change = self._gathered[name]
        loaded = change.found
        return Table(loaded.name(), change.metadata, loaded.metadata_location, loaded.io, self, loaded.config)

    @abstractmethod
    def all_tables(self) -> dict[str, Table]:
        """Load all tables of the catalogue and return them by name."""

    @abstractmethod
    def _load_committed(self, name: str) -> Table:
        """Load a table from the catalogue, without pending changes. Raises NoSuchTableError."""

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit a change of a table, or add it to the transaction."""
        if self._gathered is None:
            return self._commit_now(table, requirements, updates)
        change = self._gathered.setdefault(table.name()[-1], Change(table, table.metadata))
        return CommitTableResponse(
            metadata=change.add(requirements, updates), metadata_location=change.found.metadata_location
        )

    @abstractmethod
    def _commit_now(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit a change of a table immediately."""

    @contextmanager
    def gathering(self, last: str) -> Iterator[None]:
        """Collect changes of tables and send them on exit, or none after an error. The table `last` commits last."""
        self._gathered = {}
        try:
            yield
            changes = [change for _, change in sorted(self._gathered.items(), key=lambda item: item[0] == last)]
            self._gathered = None
            self._send([change for change in changes if change.updates])
        finally:
            self._gathered = None

    @abstractmethod
    def _send(self, changes: list[Change]) -> None:
        """Commit all changes atomically, or one by one in order if the catalogue does not support this."""

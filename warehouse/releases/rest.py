"""Catalogues on an Iceberg REST server, by pyiceberg's own client: changes of several tables are sent at once.

Who asks is said by pyiceberg's own variables and file (`PYICEBERG_CATALOG__IOSIG__CREDENTIAL`, `~/.pyiceberg.yaml`),
under the catalogue's name; nothing of ours reads or writes it. A server of which one cannot commit several tables
together gets them one after the other, the rows of releases last: they decide what a release is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    RESTError,
)
from pyiceberg.table import CommitTableRequest, CommitTableResponse, Table, TableIdentifier
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.utils.config import Config
from requests import PreparedRequest, RequestException, Response, Session
from requests.adapters import HTTPAdapter

from warehouse.errors import MachineFault, UsageError
from warehouse.releases.servers import NAMESPACE, Server, unreachable

#: seconds to connect, and between two bytes of an answer
_PATIENCE_S = (10.0, 120.0)
_TOGETHER = "transactions/commit"
#: what a server says that has no such thing
_UNKNOWN = (404, 405, 501)
#: the namespace's property that says whose tables these are
_OWNER = "iosig.warehouse"


class _Patient(HTTPAdapter):
    """Requests that nobody waits for for ever."""

    def send(self, request: PreparedRequest, *arguments: Any, **named: Any) -> Response:
        """Send a request."""
        return super().send(request, *arguments, **named | {"timeout": named.get("timeout") or _PATIENCE_S})


@dataclass
class _Change:
    """What becomes of a table: it as it was found, its metadata to be, and how to say so to the server."""

    found: Table
    metadata: TableMetadata
    requirements: tuple[TableRequirement, ...] = ()
    updates: tuple[TableUpdate, ...] = ()

    def add(self, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]) -> None:
        """Add a change on top of those before; what it requires of them the server cannot know."""
        for requirement in requirements:
            requirement.validate(self.metadata)
        self.requirements += tuple(each for each in requirements if _holds(each, self.found.metadata))
        self.metadata = update_table_metadata(self.metadata, updates, metadata_location=self.found.metadata_location)
        self.updates += updates

    @property
    def request(self) -> CommitTableRequest:
        """What is asked of the server."""
        *namespace, name = self.found.name()
        identifier = TableIdentifier(namespace=namespace, name=name)
        return CommitTableRequest(identifier=identifier, requirements=self.requirements, updates=self.updates)


def _holds(requirement: TableRequirement, metadata: TableMetadata) -> bool:
    with suppress(CommitFailedException):
        requirement.validate(metadata)
        return True
    return False


class RestTables(RestCatalog):
    """pyiceberg's client; while changes are gathered, each table is what it is going to be."""

    _gathered: dict[str, _Change] | None = None

    def _config_headers(self, session: Session) -> None:
        # the first that is done to a session, before a token is asked for
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Patient())
        super()._config_headers(session)

    def load_table(self, identifier: Any) -> Table:
        """Return a table; the same all the while changes are gathered, whatever others do to it."""
        name = self.identifier_to_tuple(identifier)[-1]
        if self._gathered is None or name not in self._gathered:
            found: Table = super().load_table(identifier)
            if self._gathered is None:
                return found
            self._gathered[name] = _Change(found, found.metadata)
        change = self._gathered[name]
        found = change.found
        return Table(found.name(), change.metadata, found.metadata_location, found.io, self, found.config)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Change a table, or gather the change."""
        if self._gathered is None:
            done: CommitTableResponse = super().commit_table(table, requirements, updates)
            return done
        change = self._gathered.setdefault(table.name()[-1], _Change(table, table.metadata))
        change.add(requirements, updates)
        return CommitTableResponse(metadata=change.metadata, metadata_location=change.found.metadata_location)

    @staticmethod
    def _delete_old_metadata(io: Any, base: TableMetadata, metadata: TableMetadata) -> None:
        """Leave old metadata to the server, which wrote them: what is gathered may never come to be."""

    @contextmanager
    def gathering(self, last: str) -> Iterator[None]:
        """Gather changes of tables, and send them on leaving; none after an error. The table `last` decides."""
        self._gathered = {}
        try:
            yield
            changes = [each for _, each in sorted(self._gathered.items(), key=lambda item: item[0] == last)]
            self._gathered = None
            self._send([change for change in changes if change.updates])
        finally:
            self._gathered = None

    def _send(self, changes: list[_Change]) -> None:
        if not changes or self._is_sent_together(changes):
            return
        for change in changes:
            self.commit_table(change.found, change.requirements, change.updates)

    def _is_sent_together(self, changes: list[_Change]) -> bool:
        """Send changes in one request; return False where the server knows no such request."""
        told = {"table-changes": [json.loads(change.request.model_dump_json()) for change in changes]}
        response = self._session.post(self.url(_TOGETHER), json=told)
        if response.status_code in _UNKNOWN and "NoSuchTable" not in response.text:
            return False
        if response.status_code == 409:
            raise CommitFailedException(response.text)
        if not response.ok:
            raise RESTError(f"{response.status_code} {response.text[:300]}")
        return True


@contextmanager
def asked(server: Server) -> Iterator[None]:
    """Tell in a sentence what a server refuses, or that it does not answer; what it says has no secret."""
    try:
        yield
    except CommitFailedException as error:
        raise MachineFault("Another writer changed the tables meanwhile. Run again.") from error
    except (RESTError, RequestException) as error:
        raise unreachable(server, error) from error


def opened(server: Server, **properties: str) -> RestTables:
    """Open a server's catalogue; properties: how its files are read and written."""
    told = {"type": "rest", "uri": server.uri, "warehouse": server.warehouse} | properties
    known: dict[str, Any] = Config().get_catalog_config(server.name) or {}
    if "credential" in known:
        # pyiceberg's own default, of which it warns where it is not said
        told |= {"oauth2-server-uri": known.get("oauth2-server-uri") or f"{server.uri.rstrip('/')}/v1/oauth/tokens"}
    with asked(server):
        return RestTables(server.name, **known | told)


def claim(catalogue: RestTables, server: Server, warehouse: str) -> None:
    """Have the namespace say whose tables are in it. Raises UsageError where they are another warehouse's."""
    with asked(server):
        catalogue.create_namespace_if_not_exists(NAMESPACE, {_OWNER: warehouse})
        owner = catalogue.load_namespace_properties(NAMESPACE).get(_OWNER)
    if owner != warehouse:
        raise UsageError(
            f"The namespace {NAMESPACE!r} of the catalogue {server} is that of {owner or 'others'}. Each warehouse "
            "needs a catalogue of its own (catalogue.warehouse in the settings)."
        )


def locations(server: Server) -> dict[str, str]:
    """Return where each table's current metadata lie that a server knows."""
    catalogue = opened(server)
    with asked(server):
        names = [name for *_, name in catalogue.list_tables(NAMESPACE)]
        found = {name: catalogue.load_table((NAMESPACE, name)).metadata_location for name in names}
    catalogue.close()
    return found


def location(server: Server, table_name: str) -> str | None:
    """Return where the current metadata of one table lie, None where the server does not know it."""
    catalogue = opened(server)
    try:
        with asked(server):
            return catalogue.load_table((NAMESPACE, table_name)).metadata_location
    except NoSuchTableError:
        return None
    finally:
        catalogue.close()

"""Access catalogues on an Iceberg REST server with pyiceberg's own client and multi-table commits.

Credentials come from pyiceberg's own variables and file (`PYICEBERG_CATALOG__IOSIG__CREDENTIAL`, `~/.pyiceberg.yaml`),
under the catalogue's name; iosig neither reads nor writes them. If the server does not support multi-table commits, the
tables are committed one after another. The rows of `releases` come last, because they define which releases exist.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    RESTError,
)
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.utils.config import Config
from requests import PreparedRequest, RequestException, Response, Session
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from requests.utils import get_encoding_from_headers

from iosig.warehouse.errors import MachineFault, UsageError
from iosig.warehouse.external.deadlines import Timeouts
from iosig.warehouse.external.http import RequestError, fetch, get_origin
from iosig.warehouse.printable import printable
from iosig.warehouse.releases.multi_table_transaction import Change, TransactionalCatalogue
from iosig.warehouse.releases.servers import NAMESPACE, Server, unreachable
from iosig.warehouse.store.files import Files

#: timeouts of one request: each wait for data, and the total
_TIMEOUTS = Timeouts(timeout_s=60.0, total_timeout_s=300.0)
_TOGETHER = "transactions/commit"
#: status codes with which a server rejects requests that it does not support
_UNKNOWN = (404, 405, 501)
#: namespace property with the name of the warehouse that owns the tables
_OWNER = "iosig.warehouse"


class _BoundedAdapter(BaseAdapter):
    """HTTP adapter with a total time limit, which connects only to the servers that the settings name."""

    def __init__(self, *urls: str) -> None:
        super().__init__()
        self._origins = {get_origin(url) for url in urls}

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> Response:
        """Send a request; raise RequestException if its target is another server."""
        url, content = str(request.url), BytesIO()
        # The server's configuration can name another address too, so blocking redirects is not enough.
        if (origin := get_origin(url)) not in self._origins:
            raise RequestException(f"it refers to another server, {printable(origin)}, which is refused")
        body: Any = request.body.encode() if isinstance(request.body, str) else request.body
        headers: Any = dict(request.headers) | {"Accept-Encoding": "identity"}
        try:
            answer = fetch(
                str(request.method), url, _TIMEOUTS, content, headers=headers, content=body,
                verify=verify, certificate=cert,
            )  # fmt: skip
        except RequestError as error:
            raise RequestException(f"it {error}") from error
        content.seek(0)
        response = Response()
        response.request, response.url, response.raw = request, url, content
        response.status_code, response.reason = answer.status, answer.reason
        response.headers = CaseInsensitiveDict(answer.headers)
        response.encoding = get_encoding_from_headers(response.headers)
        return response

    def close(self) -> None:
        """Do nothing, since the client keeps no connection open; the interface requires this method."""


class RestTables(TransactionalCatalogue, RestCatalog):
    """PyIceberg's REST client, restricted to the configured servers."""

    def __init__(self, name: str, **properties: str) -> None:
        # Kept apart from the properties, which the server's own configuration may replace.
        self._given_uri, self._token_uri = properties["uri"], properties.get("oauth2-server-uri")
        super().__init__(name, **properties)

    def _config_headers(self, session: Session) -> None:
        # pyiceberg calls this first for a session, before it requests a token
        adapter = _BoundedAdapter(*filter(None, (self._given_uri, self._token_uri)))
        for scheme in ("http://", "https://"):
            session.mount(scheme, adapter)
        super()._config_headers(session)

    def all_tables(self) -> dict[str, Table]:
        """Load all tables of the catalogue and return them by name."""
        names = [name for *_, name in self.list_tables(NAMESPACE)]
        return dict(zip(names, self.files.each(self._load_committed, names), strict=True))

    def _load_committed(self, name: str) -> Table:
        table: Table = RestCatalog.load_table(self, (NAMESPACE, name))
        return table

    def _commit_now(self, *change: Any) -> CommitTableResponse:
        response: CommitTableResponse = RestCatalog.commit_table(self, *change)
        return response

    def _send(self, changes: list[Change]) -> None:
        if not changes or self._is_sent_together(changes):
            return
        for change in changes:
            self.commit_table(change.found, change.requirements, change.updates)

    def _is_sent_together(self, changes: list[Change]) -> bool:
        """Send all changes in one request; return False if the server does not support it."""
        body = {"table-changes": [json.loads(change.request.model_dump_json()) for change in changes]}
        response = self._session.post(self.url(_TOGETHER), json=body)
        if response.status_code in _UNKNOWN and "NoSuchTable" not in response.text:
            return False
        if response.status_code == 409:
            raise CommitFailedException(response.text)
        if not response.ok:
            raise RESTError(f"{response.status_code} {response.text[:300]}")
        return True


@contextmanager
def convert_errors(server: Server) -> Iterator[None]:
    """Convert errors and timeouts of a server to messages for the user that contain no secrets."""
    try:
        yield
    except CommitFailedException as error:
        raise MachineFault("Another writer changed the tables at the same time. Run again.") from error
    except (RESTError, RequestException) as error:
        raise unreachable(server, error) from error


def open_rest_catalogue(server: Server, files: Files | None = None, **properties: str) -> RestTables:
    """Open a server's catalogue; files: storage of a warehouse; properties: options for its file access."""
    options = {"type": "rest", "uri": server.uri, "warehouse": server.warehouse} | properties
    configured: dict[str, Any] = Config().get_catalog_config(server.name) or {}
    if "credential" in configured:
        # pyiceberg's own default, set explicitly to avoid its warning
        options |= {
            "oauth2-server-uri": configured.get("oauth2-server-uri") or f"{server.uri.rstrip('/')}/v1/oauth/tokens"
        }
    with convert_errors(server):
        catalogue = RestTables(server.name, **configured | options)
    if files is not None:
        catalogue.files = files
    return catalogue


def claim(catalogue: RestTables, server: Server, warehouse: str) -> None:
    """Record the warehouse as the namespace's owner. Raises UsageError if another warehouse owns it."""
    with convert_errors(server):
        catalogue.create_namespace_if_not_exists(NAMESPACE, {_OWNER: warehouse})
        owner = catalogue.load_namespace_properties(NAMESPACE).get(_OWNER)
    if owner != warehouse:
        raise UsageError(
            f"The namespace {NAMESPACE!r} of the catalogue {server} belongs to {owner or 'another warehouse'}. Each "
            "warehouse needs its own catalogue (catalogue.warehouse in the settings)."
        )


def locations(server: Server, files: Files) -> dict[str, str]:
    """Return the location of each table's current metadata on the server."""
    catalogue = open_rest_catalogue(server, files)
    with convert_errors(server):
        table_locations = {name: table.metadata_location for name, table in catalogue.all_tables().items()}
    catalogue.close()
    return table_locations


def location(server: Server, table_name: str) -> str | None:
    """Return the location of one table's current metadata; None if the server does not know the table."""
    catalogue = open_rest_catalogue(server)
    try:
        with convert_errors(server):
            return catalogue.load_table((NAMESPACE, table_name)).metadata_location
    except NoSuchTableError:
        return None
    finally:
        catalogue.close()

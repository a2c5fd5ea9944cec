"""Select and register the server that keeps a warehouse's catalogue, and take a catalogue over.

Unless the catalogue is the SQLite file in the warehouse, a small file in the warehouse names its server, so readers
need no settings. The file contains no secrets; these come from `PGPASSWORD` or `~/.pgpass`.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from iosig.warehouse.engine_paths import sqlalchemy_uri
from iosig.warehouse.errors import MachineFault, MissingExtra
from iosig.warehouse.releases.checksums import changing_catalogue
from iosig.warehouse.store.objects import NOTE
from iosig.warehouse.store.state import put_state
from iosig.warehouse.store.store import Store, document

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

NAMESPACE = "published"
#: default name of a catalogue that has its own database
NAME = "iosig"
#: timeout for connecting [s]
_PATIENCE_S = 10
#: timeout for one statement, including the wait for another writer [s]
_STATEMENT_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Server:
    """Back end of a catalogue: SQLite's file in the warehouse, a PostgreSQL server or a REST server.

    name: the catalogue's name on the server, or the name of its section in pyiceberg's own settings. warehouse: name by
    which a REST server knows the warehouse. location: storage location of the tables, if a REST server requires its
    own.
    """

    kind: str = "sqlite"
    uri: str = ""
    name: str = NAME
    warehouse: str = ""
    location: str = ""

    def __str__(self) -> str:
        return f"{self.warehouse or self.name!r} on {self.uri}" if self.uri else "an SQLite file in the warehouse"

    @property
    def address(self) -> str:
        """Connection URI for libpq, with a connect timeout."""
        mark = "&" if urlsplit(self.uri).query else "?"
        return self.uri if "connect_timeout" in self.uri else f"{self.uri}{mark}connect_timeout={_PATIENCE_S}"


EMBEDDED = Server()


def get_server(store: Store) -> Server:
    """Return the server that keeps the catalogue of a warehouse."""
    values: dict[str, str] | None = document(store, NOTE)
    if values is None:
        return EMBEDDED
    try:
        required, optional = (
            (values["kind"], values["uri"], values["name"]),
            (values.get("warehouse", ""), values.get("location", "")),
        )
        return Server(*required, *optional)
    except (KeyError, TypeError) as error:
        raise MachineFault(f"{store.root / NOTE} is damaged. `iosig repair` rewrites it from the settings.") from error


def engine_uri(store: Store, server: Server) -> str:
    """Return the SQLAlchemy URI of a warehouse's current or future catalogue."""
    if server == EMBEDDED:
        return sqlalchemy_uri(store.catalogue)
    limit_statements()
    return "postgresql+psycopg2://" + server.address.split("://", 1)[1]


@cache
def limit_statements() -> None:
    """Apply a timeout to every statement of psycopg2 in this process, even if the server sends data slowly.

    libpq's `connect_timeout` ends with the handshake; a wait callback also limits statements.
    """
    from psycopg2.extensions import set_wait_callback

    set_wait_callback(_wait)


def _wait(connection: Any) -> None:
    """Wait for a connection's handshake or statement, with a total time limit; psycopg2 calls this."""
    from psycopg2 import OperationalError
    from psycopg2.extensions import POLL_OK, POLL_READ, STATUS_READY

    limit_s = _STATEMENT_TIMEOUT_S
    if connection.status < STATUS_READY:
        # libpq leaves the timeout to the caller
        limit_s = int(connection.info.dsn_parameters.get("connect_timeout", _PATIENCE_S))
    deadline = time.monotonic() + limit_s
    while (state := connection.poll()) != POLL_OK:
        ready = select.poll()
        ready.register(connection.fileno(), select.POLLIN if state == POLL_READ else select.POLLOUT)
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not ready.poll(left_s * 1000):
            raise OperationalError(f"no complete answer within {limit_s:g} s")


def locations_on(server: Server) -> dict[str, str]:
    """Return the location of each table's current metadata from a catalogue on a PostgreSQL server."""
    import psycopg2

    limit_statements()
    query = """
        select table_name, metadata_location from iceberg_tables
        where catalog_name = %s and table_namespace = %s
    """
    try:
        with closing(psycopg2.connect(server.address)) as connection, connection, connection.cursor() as cursor:
            cursor.execute(query, (server.name, NAMESPACE))
            return dict(cursor.fetchall())
    except psycopg2.errors.UndefinedTable:
        return {}
    except psycopg2.Error as error:
        raise unreachable(server, error) from error


def unreachable(server: Server, error: BaseException) -> MachineFault:
    """Build the error for a server that does not respond; libpq's message contains no secrets."""
    message = " ".join(str(error).split()) or type(error).__name__
    return MachineFault(f"The catalogue {server} does not answer: {message}")


def require_installed(server: Server) -> None:
    """Raise UsageError with the install command if a server's client library is missing."""
    if server.kind == "postgresql" and find_spec("psycopg2") is None:
        raise MissingExtra("A catalogue on PostgreSQL", "postgresql")


def note(store: Store, server: Server) -> None:
    """Record the server of the catalogue in a warehouse; SQLite is the default and needs no record."""
    put_state(store, NOTE, None if server == EMBEDDED else asdict(server))


@contextmanager
def begin_transaction(store: Store, server: Server) -> Iterator[Connection]:
    """Open an SQL transaction on the rows of a catalogue."""
    from sqlalchemy import create_engine
    from sqlalchemy.exc import OperationalError

    engine = create_engine(engine_uri(store, server))
    try:
        with changing_catalogue(store) if server == EMBEDDED else nullcontext(), engine.begin() as connection:
            yield connection
    except OperationalError as error:
        if server == EMBEDDED:
            raise
        raise unreachable(server, error.orig or error) from error
    finally:
        engine.dispose()


def register(store: Store, server: Server, locations: dict[str, str]) -> None:
    """Replace the entries of a catalogue by the metadata of a warehouse's tables."""
    from sqlalchemy import text

    with begin_transaction(store, server) as connection:
        key = {"catalog": server.name, "namespace": NAMESPACE}
        delete_query = "delete from iceberg_tables where catalog_name = :catalog and table_namespace = :namespace"
        connection.execute(text(delete_query), key)
        insert_query = """
            insert into iceberg_tables (catalog_name, table_namespace, table_name, metadata_location)
            values (:catalog, :namespace, :table, :location)
        """
        for table, location in locations.items():
            connection.execute(text(insert_query), key | {"table": table, "location": location})


def alone(connection: Connection, server: Server) -> None:
    """Lock a catalogue against other writers until the transaction ends; waits for the lock."""
    from sqlalchemy import text

    if server.kind == "postgresql":
        parameters: dict[str, Any] = {"name": f"iosig {server.name}"}
        connection.execute(text("select pg_advisory_xact_lock(hashtextextended(:name, 0))"), parameters)

"""Servers that keep a warehouse's catalogue: which one does, what it names, how it takes a catalogue over.

A warehouse says itself which catalogue it has, in a small file that is there where it is not the SQLite file beside
the tables; so readers need no settings. Secrets are in neither: they are the environment's (`PGPASSWORD`, `~/.pgpass`).
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
#: what a catalogue is called that has a database of its own
NAME = "iosig"
#: timeout of connecting [s]
_PATIENCE_S = 10
#: timeout of one statement, waiting for another writer included [s]
_STATEMENT_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Server:
    """What keeps a catalogue: SQLite's file in the warehouse, a PostgreSQL server or a REST server.

    name: what it is called there, or under which pyiceberg's own settings of a REST server are. warehouse: what such
    a server calls it. location: where the tables lie, if such a server takes only places of its own.
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
        """The URI by which libpq connects: nobody waits for ever for a server that does not answer."""
        mark = "&" if urlsplit(self.uri).query else "?"
        return self.uri if "connect_timeout" in self.uri else f"{self.uri}{mark}connect_timeout={_PATIENCE_S}"


EMBEDDED = Server()


def server_of(store: Store) -> Server:
    """Return what keeps the catalogue of a warehouse."""
    known: dict[str, str] | None = document(store, NOTE)
    if known is None:
        return EMBEDDED
    try:
        own, more = (
            (known["kind"], known["uri"], known["name"]),
            (known.get("warehouse", ""), known.get("location", "")),
        )
        return Server(*own, *more)
    except (KeyError, TypeError) as error:
        raise MachineFault(
            f"{store.root / NOTE} is damaged. `iosig repair` with the settings writes it again."
        ) from error


def engine_uri(store: Store, server: Server) -> str:
    """Return where SQLAlchemy finds a catalogue, be it that of a warehouse or the one that it is to have."""
    if server == EMBEDDED:
        return sqlalchemy_uri(store.catalogue)
    limit_statements()
    return "postgresql+psycopg2://" + server.address.split("://", 1)[1]


@cache
def limit_statements() -> None:
    """Have every psycopg2 connection of this process give up on a server that does not answer, or drips.

    libpq's `connect_timeout` ends with the handshake; a wait callback also bounds statements.
    """
    from psycopg2.extensions import set_wait_callback

    set_wait_callback(_wait)


def _wait(connection: Any) -> None:
    """Wait for a connection's handshake or statement, with a total time limit; called by psycopg2."""
    from psycopg2 import OperationalError
    from psycopg2.extensions import POLL_OK, POLL_READ, STATUS_READY

    limit_s = _STATEMENT_TIMEOUT_S
    if connection.status < STATUS_READY:
        # libpq leaves its own limit to whoever waits
        limit_s = int(connection.info.dsn_parameters.get("connect_timeout", _PATIENCE_S))
    deadline = time.monotonic() + limit_s
    while (state := connection.poll()) != POLL_OK:
        ready = select.poll()
        ready.register(connection.fileno(), select.POLLIN if state == POLL_READ else select.POLLOUT)
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not ready.poll(left_s * 1000):
            raise OperationalError(f"no complete answer within {limit_s:g} s")


def locations_on(server: Server) -> dict[str, str]:
    """Return where each table's current metadata lie that a PostgreSQL server's catalogue of that name knows."""
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
    """Return what to tell where a server does not answer; what libpq says of it has no secret."""
    said = " ".join(str(error).split()) or type(error).__name__
    return MachineFault(f"The catalogue {server} does not answer: {said}")


def require_installed(server: Server) -> None:
    """Raise UsageError, with the line that installs it, where a server's library is not there."""
    if server.kind == "postgresql" and find_spec("psycopg2") is None:
        raise MissingExtra("A catalogue on PostgreSQL", "postgresql")


def note(store: Store, server: Server) -> None:
    """Note in a warehouse what keeps its catalogue; SQLite's is the one that needs no note."""
    put_state(store, NOTE, None if server == EMBEDDED else asdict(server))


@contextmanager
def written(store: Store, server: Server) -> Iterator[Connection]:
    """Open the rows of a catalogue to be changed by SQL, all at once."""
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
    """Have a catalogue name these metadata of a warehouse's tables, and no others."""
    from sqlalchemy import text

    with written(store, server) as connection:
        own = {"catalog": server.name, "namespace": NAMESPACE}
        gone = "delete from iceberg_tables where catalog_name = :catalog and table_namespace = :namespace"
        connection.execute(text(gone), own)
        made = """
            insert into iceberg_tables (catalog_name, table_namespace, table_name, metadata_location)
            values (:catalog, :namespace, :table, :location)
        """
        for table, location in locations.items():
            connection.execute(text(made), own | {"table": table, "location": location})


def alone(connection: Connection, server: Server) -> None:
    """Wait until no other writer changes a catalogue, and be the only one until this change ends."""
    from sqlalchemy import text

    if server.kind == "postgresql":
        told: dict[str, Any] = {"name": f"iosig {server.name}"}
        connection.execute(text("select pg_advisory_xact_lock(hashtextextended(:name, 0))"), told)

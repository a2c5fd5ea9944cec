"""Connect to the server of an LMT database, with time limits for each connection."""

from __future__ import annotations

import socket
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.external.deadlines import Deadline, Timeouts

_DRIVERS = {"mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
_NAMES = frozenset({*_DRIVERS, *_DRIVERS.values(), "sqlite"})
_NOT_UNDERSTOOD = "The database URL is not understood; write mysql://user:password@host/database."
_REMEDY = "Check that the database server is up, or raise live.{setting} in the settings."
_DEADLINE = "deadline"


def create_engine_for_url(url: str, timeouts: Timeouts) -> sa.Engine:
    """Return an engine for the URL of a MySQL or MariaDB server or of an SQLite file.

    Raises UsageError for any other URL. A connection that exceeds a time limit raises InputRefused.
    """
    try:
        address = sa.make_url(url)
        if address.drivername not in _NAMES:
            raise UsageError(_NOT_UNDERSTOOD)
        engine = sa.create_engine(address.set(drivername=_DRIVERS.get(address.drivername, address.drivername)))
    except (exc.ArgumentError, exc.NoSuchModuleError, ImportError, ValueError) as error:
        raise UsageError(_NOT_UNDERSTOOD) from error
    if engine.dialect.name != "sqlite":
        _limit(engine, timeouts)
    return engine


def _limit(engine: sa.Engine, timeouts: Timeouts) -> None:
    """Apply the time limits to every connection of an engine."""

    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: Any, record: Any, _arguments: Any, parameters: dict[str, Any]) -> Any:
        import pymysql

        limits = dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), timeouts.timeout_s)
        connection = pymysql.connect(**parameters | limits, defer_connect=True)
        if connection.unix_socket:
            connection.connect()
            return connection
        try:
            connected = socket.create_connection((connection.host, connection.port), timeouts.timeout_s)
        except OSError as error:
            raise pymysql.OperationalError(f"{connection.host}:{connection.port} is unreachable ({error})") from error
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        deadline = record.info[_DEADLINE] = Deadline(connected, timeouts.total_timeout_s)
        try:
            connection.connect(connected)
        except BaseException as error:
            deadline.cancel()
            _raise_timeout(error, deadline, timeouts)
            if isinstance(error, Exception) and not isinstance(error, pymysql.Error):
                # PyMySQL parses packets unchecked, so a malformed one raises ValueError, IndexError or other
                # exceptions.
                raise pymysql.OperationalError("the server does not follow MySQL's protocol") from error
            raise
        return connection

    @event.listens_for(engine, "close")
    def _close(_connection: Any, record: Any) -> None:
        if (deadline := record.info.pop(_DEADLINE, None)) is not None:
            deadline.cancel()

    @event.listens_for(engine, "handle_error")
    def _tell(context: sa.engine.ExceptionContext) -> None:
        deadline = context.connection.info.get(_DEADLINE) if context.connection is not None else None
        _raise_timeout(context.original_exception, deadline, timeouts)


def _raise_timeout(error: BaseException, deadline: Deadline | None, timeouts: Timeouts) -> None:
    """Raise InputRefused if a time limit caused an error."""
    if deadline is not None and deadline.is_expired:
        reason = f"The database did not complete its answer within {timeouts.total_timeout_s:g} s."
        raise InputRefused(reason, _REMEDY.format(setting="total_timeout_s")) from error
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, TimeoutError):
            reason = f"The database did not answer within {timeouts.timeout_s:g} s."
            raise InputRefused(reason, _REMEDY.format(setting="timeout_s")) from error
        cause = cause.__cause__ or cause.__context__

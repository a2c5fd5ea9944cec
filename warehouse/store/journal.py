"""Keep the journal of followed inputs: predictions and resumable state, committed in one transaction.

The journal is one SQLite file with a rollback journal that is truncated at each commit and flushed (`synchronous =
full`): committed rows survive SIGKILL and power loss, and SQLite rolls back an incomplete transaction when the file is
next opened. A write-ahead log would commit faster, but needs shared memory, which network file systems lack.

Several processes may follow different inputs with one journal; commits wait for each other. A lock on one byte of a
separate lock file prevents two processes from following the same input. The byte's offset is the hash of the input's
id. The operating system frees the lock when a process dies, and one open file serves any number of inputs.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosig.warehouse.contracts import Dtype
from iosig.warehouse.contracts.predictions import PREDICTIONS
from iosig.warehouse.errors import ContractError, InputRefused, MachineFault, UsageError
from iosig.warehouse.placing import atomic_write
from iosig.warehouse.sources.predictions.lines import check_row

if TYPE_CHECKING:
    import polars as pl

    from iosig.warehouse.store.pseudonyms import Names

#: `PRAGMA user_version`: increase when the tables below change
VERSION = 1
#: version of the `State` format; increase when older followers could not read the new format
STATE_VERSION = 2
#: SQLite's sync mode: `full` survives power loss
SYNCHRONOUS = "full"
#: `PRAGMA application_id`, at byte 68 of an SQLite file: the letters `iosP`
_APPLICATION_ID = 0x696F7350
_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_TABLE = PREDICTIONS
_NAMES = ", ".join(_TABLE.column_names)
_SQL_TYPES: dict[Dtype, str] = {
    "text": "text",
    "int": "integer",
    "real": "real",
    "bool": "integer",
    "instant": "integer",
    "date": "integer",
}
_REMEDIES = {
    sqlite3.SQLITE_FULL: "Free disk space. This commit was rolled back.",
    sqlite3.SQLITE_READONLY: "Make the file and its folder writable for this user.",
    sqlite3.SQLITE_CANTOPEN: "Check that the folder exists and is writable.",
    sqlite3.SQLITE_CORRUPT: "Restore the file, or move it away to start over.",
    sqlite3.SQLITE_NOTADB: "Restore the file, or move it away to start over.",
}


class JournalFault(InputRefused, MachineFault):
    """Raised when the journal is damaged or cannot be accessed; the journal is left unchanged."""

    exit_code = MachineFault.exit_code


@dataclass(frozen=True, slots=True)
class State:
    """Resume point of a followed input: a JSON-serializable position and the follower's private state.

    fault: reason why a stored state cannot be resumed. A state without a fault is bit-identical to the one that was
    written, so the follower need not validate each value again.
    """

    followed_id: str
    position: Mapping[str, Any] = field(default_factory=dict)
    content: bytes = b""
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive range of sequence numbers in the journal."""

    first: int
    last: int


class Journal:
    """An open journal, created if it does not exist.

    Raises InputRefused, without changing the file, if its version is newer. Raises JournalFault if it is damaged,
    belongs to another application, or cannot be used.
    """

    def __init__(self, path: Path, patience_s: float = 60.0, names: Names | None = None) -> None:
        """Open the journal; patience_s: maximum time to wait for other processes that are writing to it.

        names: pseudonyms of a private warehouse; the follower itself keeps using clear names.
        """
        self.path = path
        self._names = names
        self._followed: set[str] = set()
        with _refusing(path), _refusing_system(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._claims = _Claims(path.with_name(f"{path.name}.lock"))
            try:
                self._connection = self._open(patience_s)
            except BaseException:
                self._claims.close()
                raise

    def _open(self, patience_s: float) -> sqlite3.Connection:
        if not _is_there(self.path):
            with self._claims.creation():
                if not _is_there(self.path):
                    _create(self.path)
        _require_ours(self.path)
        connection = sqlite3.connect(self.path, timeout=patience_s, isolation_level=None)
        try:
            connection.execute("pragma journal_mode = truncate")
            connection.execute(f"pragma synchronous = {SYNCHRONOUS}")
            _require_tables(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def __enter__(self) -> Journal:
        """Enter the context; the constructor has already opened the journal."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the journal on exit from the context."""
        self.close()

    def close(self) -> None:
        """Close the journal and release its claims on followed inputs."""
        self._connection.close()
        self._claims.close()
        self._followed.clear()

    # ---- following

    def follow(self, followed_id: str) -> None:
        """Claim an input until `leave`, `close` or process exit. Raises UsageError if another process has a claim."""
        if followed_id in self._followed:
            return
        with _refusing_system(self.path):
            if not self._claims.claim(followed_id):
                raise UsageError(
                    f"Another process follows {followed_id} with {self.path}. Stop it, or pass another journal."
                )
        self._followed.add(followed_id)

    def leave(self, followed_id: str) -> None:
        """Release the claim on an input."""
        if followed_id in self._followed:
            self._claims.free(followed_id)
            self._followed.remove(followed_id)

    def commit(self, rows: Sequence[Mapping[str, Any]], states: Iterable[State]) -> int:
        """Write rows of `predictions` and states of inputs in one transaction; return the last sequence number.

        Evaluation numbers of an input increase in each direction. Raises ContractError if a row violates the contract
        or already exists, and ValueError if its input is not claimed.
        """
        states = list(states)
        unclaimed_ids = {row.get("followed_id") for row in rows} | {state.followed_id for state in states}
        if unclaimed_ids := unclaimed_ids - self._followed:
            raise ValueError(f"not claimed: {sorted(map(str, unclaimed_ids))}")
        state_rows = [
            (self._pseudonymize_id(state.followed_id), _position_text(state), state.content) for state in states
        ]
        frame = _frame(rows)
        stored = _to_sqlite(frame if self._names is None else self._names.hide(_TABLE, frame))
        with self._transaction() as connection:
            marks = ", ".join("?" * len(_TABLE.columns))
            connection.executemany(f"insert into predictions ({_NAMES}) values ({marks})", stored)
            self._raise_evaluations(rows)
            connection.executemany(
                "insert into states values (?, ?, ?) on conflict (followed_id) do update set "
                "position = excluded.position, content = excluded.content",
                state_rows,
            )
            return _last(connection)

    def _raise_evaluations(self, rows: Sequence[Mapping[str, Any]]) -> None:
        # The unique key does not cover pruned rows; this check does.
        raised = self._connection.executemany(
            "insert into last_evaluations values (?, ?, ?) on conflict (followed_id, direction) do update set "
            "evaluation = excluded.evaluation where excluded.evaluation > last_evaluations.evaluation",
            [(self._pseudonymize_id(row["followed_id"]), row["direction"], row["evaluation"]) for row in rows],
        )
        if rows and raised.rowcount != len(rows):
            raise ContractError(f"{self.path}: an evaluation is repeated or out of order.")

    def state(self, followed_id: str) -> State | None:
        """Read the saved state of a followed input; None if none was saved."""
        with _refusing(self.path):
            kept_id = self._pseudonymize_id(followed_id)
            row = self._connection.execute("select * from states where followed_id = ?", (kept_id,)).fetchone()
        return None if row is None else _state(self.path, (followed_id, *row[1:]))

    def _pseudonymize_id(self, followed_id: str) -> str:
        return followed_id if self._names is None else self._names.path(followed_id)

    def states(self) -> Iterator[State]:
        """Yield the saved states of all inputs, ordered by name."""
        with _refusing(self.path):
            names = self._connection.execute("select followed_id from states order by followed_id").fetchall()
        for (kept_id,) in names:
            with _refusing(self.path):
                row = self._connection.execute("select * from states where followed_id = ?", (kept_id,)).fetchone()
            if row is not None:
                yield _state(self.path, row)

    def evaluations_after(self, followed_id: str, last: Mapping[str, int]) -> list[dict[str, Any]]:
        """Return an input's rows after the given evaluation number of each direction (default 0), in order."""
        is_later = "evaluation > coalesce(json_extract(?, '$.' || direction), 0)"
        query = f"select {_NAMES} from predictions where followed_id = ? and {is_later} order by sequence"
        with _refusing(self.path):
            bounds = json.dumps(dict(last))
            rows = self._connection.execute(query, (self._pseudonymize_id(followed_id), bounds)).fetchall()
        return [row | {"followed_id": followed_id} for row in _from_sqlite(rows, self.path).to_dicts()]

    # ---- reading and landing

    def last_sequence(self) -> int:
        """Return the sequence number of the last row; 0 in an empty journal."""
        with _refusing(self.path):
            return _last(self._connection)

    def rows_after(self, sequence: int, max_rows: int, until: int | None = None) -> tuple[pl.DataFrame, int]:
        """Return up to `max_rows` rows after a sequence number, and the sequence number of the last one.

        until: last sequence number to include. Without rows, the given sequence number is returned.
        """
        query = f"select sequence, {_NAMES} from predictions where sequence > ? and sequence <= ? order by sequence"
        with _refusing(self.path):
            rows = self._connection.execute(f"{query} limit ?", (sequence, until or 2**62, max_rows)).fetchall()
        frame = _from_sqlite([row[1:] for row in rows], self.path)
        return frame, rows[-1][0] if rows else sequence

    def fingerprint(self, rows: Range) -> str:
        """Return the hexadecimal SHA-256 of a range of rows, independent of the journal's other content."""
        digest = hashlib.sha256()
        query = f"select {_NAMES} from predictions where sequence between ? and ? order by sequence"
        with _refusing(self.path):
            for row in self._connection.execute(query, (rows.first, rows.last)):
                digest.update(json.dumps(row, separators=(",", ":")).encode())
        return digest.hexdigest()

    def begin_landing(self) -> Range | None:
        """Return the range of rows to land next; None if all rows have landed.

        The range stays the same until `end_landing`, even if rows are added, so an interrupted landing is repeated
        without duplicates.
        """
        with self._transaction() as connection:
            query = "select first_sequence, last_sequence from landings where landed_us is null"
            if row := connection.execute(query).fetchone():
                return Range(*row)
            (before,) = connection.execute("select coalesce(max(last_sequence), 0) from landings").fetchone()
            last = _last(connection)
            if last <= before:
                return None
            connection.execute("insert into landings values (?, ?, null)", (before + 1, last))
            return Range(before + 1, last)

    def end_landing(self, rows: Range, landed_at: datetime) -> None:
        """Record that a range of rows has landed."""
        with self._transaction() as connection:
            connection.execute(
                "update landings set landed_us = ? where last_sequence = ?", (_microseconds(landed_at), rows.last)
            )

    def prune(self, landed_before: datetime) -> int:
        """Delete rows that landed before an instant; return their number."""
        with self._transaction() as connection:
            (last,) = connection.execute(
                "select coalesce(max(last_sequence), 0) from landings where landed_us < ?",
                (_microseconds(landed_before),),
            ).fetchone()
            removed = connection.execute("delete from predictions where sequence <= ?", (last,)).rowcount
            # The last row stays, because it marks the start of the next landing.
            connection.execute("delete from landings where last_sequence < ?", (last,))
            return removed

    def forget(self, is_meant: Callable[[Mapping[str, Any]], bool]) -> int:
        """Delete matching rows and the saved states of their inputs; return the number of rows deleted.

        is_meant: predicate on `followed_id`, `subject_kind` and `subject_id`; for an input without rows, only the first
        is given. The deleted bytes are overwritten.
        """
        columns = ("followed_id", "subject_kind", "subject_id")
        with _refusing(self.path):
            self._connection.execute("pragma secure_delete = on")
        with self._transaction() as connection:
            rows = connection.execute(f"select distinct {', '.join(columns)} from predictions").fetchall()
            deleted = {row for row in rows if is_meant(dict(zip(columns, row, strict=True)))}
            count = 0
            for row in deleted:
                query = "delete from predictions where followed_id = ? and subject_kind = ? and subject_id = ?"
                count += connection.execute(query, row).rowcount
            followed_ids = connection.execute(
                "select followed_id from states union select followed_id from last_evaluations"
            )
            remaining_ids = {followed_id for followed_id, *_ in rows} - {followed_id for followed_id, *_ in deleted}
            ids = {followed_id for followed_id, *_ in deleted} - remaining_ids
            ids |= {name for (name,) in followed_ids.fetchall() if is_meant({"followed_id": name})}
            for table in ("states", "last_evaluations"):
                connection.executemany(f"delete from {table} where followed_id = ?", [(name,) for name in ids])
        with _refusing(self.path):
            self._connection.execute("vacuum")
        return count

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _refusing(self.path):
            self._connection.execute("begin immediate")
            try:
                yield self._connection
                self._connection.execute("commit")
            except BaseException:
                # SQLite may already have rolled back, for instance on a full disk.
                with suppress(sqlite3.Error):
                    self._connection.execute("rollback")
                raise


# ---- the file


def _is_there(path: Path) -> bool:
    return path.exists() and (not path.is_file() or path.stat().st_size > 0)


def _create(path: Path) -> None:
    """Create an empty journal atomically."""
    columns = [
        f"{column.name} {_SQL_TYPES[column.dtype]}{'' if column.nullable else ' not null'}" for column in _TABLE.columns
    ]
    with atomic_write(path) as temporary, closing(sqlite3.connect(temporary)) as connection:
        connection.executescript(
            f"""
            pragma application_id = {_APPLICATION_ID};
            pragma user_version = {VERSION};
            create table predictions (
                sequence integer primary key autoincrement, {", ".join(columns)}, unique ({", ".join(_TABLE.key)})
            );
            create table last_evaluations (
                followed_id text, direction text, evaluation integer not null, primary key (followed_id, direction)
            ) without rowid;
            create table states (followed_id text primary key, position text not null, content blob not null);
            create table landings (
                first_sequence integer not null, last_sequence integer primary key, landed_us integer
            );
            """
        )


def _require_ours(path: Path) -> None:
    """Reject a foreign file before SQLite opens it, because opening may write to it."""
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    is_whole = len(header) == _HEADER_BYTES and header.startswith(_MAGIC)
    version, application_id = struct.unpack(">I4xI", header[60:72]) if is_whole else (0, 0)
    if application_id != _APPLICATION_ID:
        raise JournalFault(
            f"{path} is not a journal of predictions, or is damaged.",
            "Move it away, or choose another path for the journal. The file was not changed.",
        )
    if version > VERSION:
        raise InputRefused(
            f"{path} has version {version}; the latest known version is {VERSION}.",
            "Use the iosig that wrote it, or a later one.",
        )


def _require_tables(connection: sqlite3.Connection, path: Path) -> None:
    columns = [name for _, name, *_ in connection.execute("pragma table_info(predictions)")]
    if columns != ["sequence", *_TABLE.column_names]:
        raise InputRefused(
            f"The journal {path} does not have the columns of predictions.",
            "Land it with the iosig that wrote it, then move it away.",
        )


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Convert SQLite errors to errors with a remedy for the user."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise ContractError(f"{path}: {error}") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise UsageError(f"Another process has kept {path} busy for too long. Try again.") from error
        remedy = _REMEDIES.get(code, "Check the disk and the file.")
        raise JournalFault(f"The journal {path} cannot be used: {error}.", remedy) from error


@contextmanager
def _refusing_system(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise JournalFault(
            f"The journal {path} cannot be used: {error.strerror or error}.",
            "Check that its folder exists, is writable, and has free space.",
        ) from error


# ---- rows


def _frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Convert rows to a data frame. Raises ContractError if they violate the contract."""
    import polars as pl

    from iosig.warehouse.contracts import frames

    try:
        values = [tuple(check_row(row).values()) for row in rows]
    except ValueError as error:
        raise ContractError(f"{_TABLE.name}: {error}") from error
    return frames.require(pl.DataFrame(values, schema=frames.schema(_TABLE), orient="row"), _TABLE)


def _to_sqlite(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    """Convert rows to SQLite's representation: instants in microseconds and dates in days since 1970."""
    import polars as pl
    import polars.selectors as cs

    return frame.with_columns(cs.temporal().to_physical(), cs.boolean().cast(pl.Int64)).rows()


def _from_sqlite(rows: Sequence[tuple[Any, ...]], path: Path) -> pl.DataFrame:
    import polars as pl

    from iosig.warehouse.contracts import frames

    schema = frames.schema(_TABLE)
    physical = {
        name: pl.Int64() if dtype.is_temporal() or dtype == pl.Boolean else dtype for name, dtype in schema.items()
    }
    try:
        frame = pl.DataFrame(rows, schema=physical, orient="row")
        days = frame.with_columns(pl.col(name).cast(pl.Int32) for name, dtype in schema.items() if dtype == pl.Date)
        return frames.require(days.cast(schema), _TABLE)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError, ContractError) as error:
        raise JournalFault(f"The journal {path} is damaged: {error}.", _REMEDIES[sqlite3.SQLITE_CORRUPT]) from error


def _last(connection: sqlite3.Connection) -> int:
    # The largest sequence number of the rows is no substitute, since rows may have been pruned.
    row = connection.execute("select seq from sqlite_sequence where name = 'predictions'").fetchone()
    return int(row[0]) if row else 0


def _position_text(state: State) -> str:
    position = json.dumps(dict(state.position), allow_nan=False, sort_keys=True)
    return json.dumps({"version": STATE_VERSION, "digest": _digest(position, state.content), "position": position})


def _digest(position: str, content: bytes) -> str:
    return hashlib.sha256(position.encode() + b"\0" + content).hexdigest()


def _state(path: Path, row: tuple[str, str, bytes]) -> State:
    followed_id, stored, content = row
    try:
        document = json.loads(stored)
        if document.get("version") != STATE_VERSION:
            return State(followed_id, document, content, "it has another version")
        position, digest = document["position"], document["digest"]
        fault = None if digest == _digest(position, content) else "it is damaged"
        return State(followed_id, json.loads(position), content, fault)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise JournalFault(f"The journal {path} is damaged: {error}.", _REMEDIES[sqlite3.SQLITE_CORRUPT]) from error


def _microseconds(instant: datetime) -> int:
    return round((instant - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1e6)


# ---- who follows what


class _Claims:
    """Byte-range locks on a file: one byte per followed input; the first byte guards the file's creation.

    The locks belong to the open file, not to the process (`F_OFD_SETLK`). So they also work between two journals within
    one process, and closing another handle of the file frees none. The system frees them when the process ends.
    """

    _PLACES = 2**62

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @contextmanager
    def creation(self) -> Iterator[None]:
        self._lock(fcntl.F_OFD_SETLKW, fcntl.F_WRLCK, 0)
        try:
            yield
        finally:
            self._lock(fcntl.F_OFD_SETLK, fcntl.F_UNLCK, 0)

    def claim(self, followed_id: str) -> bool:
        """Lock an input for this journal; return False if another journal has locked it."""
        try:
            self._lock(fcntl.F_OFD_SETLK, fcntl.F_WRLCK, self._place(followed_id))
        except (BlockingIOError, PermissionError):
            return False
        return True

    def free(self, followed_id: str) -> None:
        self._lock(fcntl.F_OFD_SETLK, fcntl.F_UNLCK, self._place(followed_id))

    def _lock(self, command: int, kind: int, place: int) -> None:
        # struct flock: l_type, l_whence, l_start, l_len, l_pid
        fcntl.fcntl(self._descriptor, command, struct.pack("hhqqi0q", kind, os.SEEK_SET, place, 1, 0))

    def _place(self, followed_id: str) -> int:
        digest = hashlib.sha256(followed_id.encode("utf-8", "surrogatepass")).digest()
        return 1 + int.from_bytes(digest[:8], "big") % (self._PLACES - 1)

"""Define the layout of a warehouse's folder, and write its tables and documents."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from os import environ, getpid, kill
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from iosig.warehouse.engine_paths import is_url, is_utf8, utf8_path
from iosig.warehouse.errors import MachineFault, UsageError
from iosig.warehouse.placing import atomic_write, make_read_only
from iosig.warehouse.store.files import Files, Folder, LockHeldError

if TYPE_CHECKING:
    import polars as pl
    import pyarrow.parquet as pq

    from iosig.warehouse.contracts import Table

_CHECKOUT = Path(__file__).resolve().parents[2]
ROW_GROUP_ROWS = 1 << 20
#: lock file of a warehouse, with a readable note about its owner; interval at which a waiting process retries [s]
_LOCK, _POLL_INTERVAL_S = "lock", 1.0
#: maximum time between taking a lock and writing the note [s]
_NOTE_TIMEOUT_S = 0.5
#: libraries interpret these characters in a store's URL differently: some decode them, some expand them
_NOT_IN_URL = re.compile(r"[*?#%\[\]{}\\\x00-\x1f\x7f]")
#: file that records the URL to which the copies in a folder belong
_URL = ".url"

_Read = TypeVar("_Read")


def default_root() -> Path:
    """Return the default warehouse, `warehouse/data` in a checkout or a folder in the user's data directory.

    An installed package's folder may be read-only or shared, and the next installation deletes its contents.
    """
    if (_CHECKOUT / "pyproject.toml").is_file():
        return _CHECKOUT / "warehouse" / "data"
    from platformdirs import user_data_path

    return user_data_path("iosig", appauthor=False) / "warehouse"


@dataclass(frozen=True, slots=True)
class Store:
    """A warehouse, identified by its folder, which can be moved or copied because no file in it holds an absolute path.

    For a warehouse in an object store, the folder contains local copies, and records the store's URL.
    """

    root: Path

    @classmethod
    def locate(cls, text: str) -> Self:
        """Return the warehouse at a folder or a URL; local copies of a URL's files lie in the user's cache."""
        if not is_url(text):
            if not is_utf8(text):
                raise UsageError(
                    f"The path of a warehouse must be UTF-8: its tables' metadata contain it, but {text!a} is not."
                )
            return cls(Path(text))
        url = text.rstrip("/")
        if match := _NOT_IN_URL.search(url):
            raise UsageError(f"{url}: {match[0]!r} has a special meaning in a URL. Rename the prefix.")
        place = Path(environ.get("IOSIG_CACHE") or Path.home() / ".cache" / "iosig")
        root = place / hashlib.sha256(url.encode()).hexdigest()[:16]
        if not (root / _URL).is_file():
            with atomic_write(root / _URL) as temporary:
                temporary.write_text(url)
            # contains names of users and jobs
            root.chmod(0o700)
        return cls(root)

    @property
    def url(self) -> str | None:
        """URL of a warehouse in an object store; None for a local folder."""
        try:
            return (self.root / _URL).read_text()
        except OSError:
            return None

    @property
    def name(self) -> str:
        """Display name of the warehouse: the folder as the user gave it, or the URL."""
        return self.url or str(self.root)

    @property
    def address(self) -> str:
        """Absolute path or URL, valid in any working directory."""
        return self.url or str(self.root.resolve())

    @property
    def files(self) -> Files:
        """Storage back end of the warehouse."""
        url = self.url
        if url is None:
            return Folder(self.root)
        from iosig.warehouse.store.objects import Objects, require_installed

        require_installed()
        return Objects(url, self.root)

    def local(self, name: str) -> Path:
        """Return a file's local path, after copying it from an object store if necessary."""
        self.files.fetch([name])
        return self.root / name

    def locals(self, names: Iterable[str]) -> list[Path]:
        """Return local paths of files, after copying them from an object store if necessary."""
        paths = list(names)
        self.files.fetch(paths)
        return [self.root / name for name in paths]

    def here(self, path: Path) -> Path:
        """Fetch a file of the warehouse if necessary, and return its local path."""
        return self.local(path.relative_to(self.root).as_posix())

    def has(self, name: str) -> bool:
        """Return whether the file `name` exists, relative to the warehouse's root."""
        return (self.root / name).is_file() if self.url is None else bool(self.files.mark(name))

    @property
    def landed(self) -> Path:
        """Folder that contains all landings."""
        return self.root / "landed"

    @property
    def tables(self) -> Path:
        """The Iceberg tables' data and metadata."""
        return self.root / "tables"

    @property
    def builds(self) -> Path:
        """Build outputs that are not released yet, one folder per plan."""
        return self.root / "builds"

    @property
    def catalogue(self) -> Path:
        """The Iceberg catalogue, an SQLite file."""
        return self.root / "catalogue.sqlite"

    @property
    def journal(self) -> Path:
        """SQLite file with the journal of predictions."""
        return self.root / "predictions.sqlite"

    @property
    def data_docs(self) -> Path:
        """Data Docs of the current release's checks, with those of a refused run in a subfolder."""
        return self.root / "data_docs"

    @property
    def exists(self) -> bool:
        """Whether anything has ever been landed or released here."""
        if self.url is None:
            return self.landed.is_dir() or self.catalogue.is_file()
        return self.has("form.json")


def write_parquet(frame: pl.DataFrame, table: Table, path: Path) -> Path:
    """Write a frame that meets the table's contract as one Parquet file, with units and docs in the metadata.

    The file is read-only: landed and released files are only ever replaced as a whole.
    Raises ContractError, and writes nothing, if the frame differs from the contract.
    """
    from iosig.warehouse.contracts import arrow, frames

    rows = frames.require(frame, table).to_arrow().cast(arrow.schema(table))
    with atomic_write(path) as temporary:
        with parquet_writer(temporary, table) as writer:
            writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
        make_read_only(temporary)
    return path


def put_parquet(store: Store, frame: pl.DataFrame, table: Table, name: str) -> None:
    """Write a frame as a file of the warehouse, in the format of `write_parquet`."""
    with store.files.write_file(name) as path:
        write_parquet(frame, table, path)


def parquet_writer(path: Path, table: Table) -> pq.ParquetWriter:
    """Open a Parquet writer with the warehouse's encoding and compression.

    Numbers of internal tables use byte-stream-split encoding. Noisy rates are then written in two thirds of the time,
    read in half the time, and take a seventh less space. Published tables avoid it, since not every reader supports it.
    """
    import pyarrow.parquet as pq

    from iosig.warehouse.contracts import arrow

    dictionaries = [column.name for column in table.columns if column.dtype in ("text", "date")]
    split = {} if table.is_published else {c.name: "BYTE_STREAM_SPLIT" for c in table.columns if c.dtype == "real"}
    return pq.ParquetWriter(
        # Arrow takes a relative path that begins with `file:` for a URL
        utf8_path(path),
        arrow.schema(table),
        compression="zstd",
        use_dictionary=dictionaries,
        column_encoding=split,
        write_page_checksum=True,
    )


def join_parquet(
    parts: Sequence[Path], table: Table, path: Path, select_rows: Callable[[pl.DataFrame], pl.DataFrame] | None = None
) -> Path:
    """Concatenate files of `write_parquet` in order, one batch of rows at a time.

    select_rows: filter for each batch; by default all rows stay. With a filter, files may lack newer columns;
    ContractError is raised if the filtered rows differ from the contract.
    """
    import polars as pl
    import pyarrow.parquet as pq

    from iosig.warehouse.contracts import arrow, frames

    schema = arrow.schema(table)
    with atomic_write(path) as temporary:
        with parquet_writer(temporary, table) as writer:
            for part in parts:
                for batch in pq.ParquetFile(utf8_path(part)).iter_batches(ROW_GROUP_ROWS):
                    if select_rows is None:
                        writer.write_batch(batch, row_group_size=ROW_GROUP_ROWS)
                    elif (rows := select_rows(frames.add_missing_columns(pl.DataFrame(batch), table))).height:
                        arrow_table = frames.require(rows, table).to_arrow().cast(schema)
                        writer.write_table(arrow_table, row_group_size=ROW_GROUP_ROWS)
        make_read_only(temporary)
    return path


def write_json(document: Any, path: Path) -> Path:
    """Write a JSON document with sorted keys atomically."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(json_bytes(document))
    return path


def json_bytes(document: Any) -> bytes:
    """Serialize a JSON document in the warehouse's format."""
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()


def put_document(store: Store, name: str, document: Any) -> None:
    """Write a JSON document of the warehouse with sorted keys."""
    store.files.put(name, json_bytes(document))


def get_digest(document: Any) -> str:
    """Return the SHA-256 of a JSON document; several formats store it as a checksum of their content."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def document(store: Store, name: str) -> Any:
    """Read a JSON document of the warehouse; None if it does not exist. Raises MachineFault if it is torn."""
    content = store.files.content(name)
    try:
        return None if content is None else json.loads(content)
    except ValueError as error:
        raise MachineFault(
            f"{store.root / name} is damaged: it is not JSON. `iosig repair` repairs it where possible."
        ) from error


def read_cache(store: Store, name: str, read: Callable[[Any], _Read]) -> _Read | None:
    """Parse a JSON document that serves as a cache; return None if it is missing or torn.

    `read` converts the document, and raises TypeError, KeyError, ValueError or AttributeError for an unexpected one.
    """
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        return read(json.loads(store.files.content(name) or b"null"))
    return None


@contextmanager
def lock_warehouse(store: Store, wait_s: float = 0.0) -> Iterator[None]:
    """Lock the warehouse for one writer of releases; a second one waits up to `wait_s` and then fails."""
    remedy = "Wait for it (--lock-timeout), or use another --warehouse."
    with hold_lock(store, _LOCK, "run", remedy, wait_s):
        yield


@contextmanager
def hold_lock(store: Store, lock: str, work: str, remedy: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold an exclusive lock of a warehouse, which is released when its owner dies.

    work: description of the owner's work for messages. Raises UsageError, with the owner and the remedy, if another
    process still holds the lock after `wait_s`.
    """
    with ExitStack() as stack:
        deadline = time.monotonic() + wait_s
        while not _is_held(store, lock, stack):
            if time.monotonic() >= deadline:
                if holder(store, lock) is None:
                    # an owner that has just taken the lock is about to write its note
                    time.sleep(_NOTE_TIMEOUT_S)
                raise UsageError(f"Another {work} is writing to {store.name}{_holder_text(store, lock)}. {remedy}")
            time.sleep(min(_POLL_INTERVAL_S, max(0.0, deadline - time.monotonic())))
        # the note is only informational, so a full disk must not stop the work
        with suppress(OSError):
            now = datetime.now(UTC).isoformat(timespec="seconds")
            put_document(store, _holder_name(lock), {"host": socket.gethostname(), "process": getpid(), "since": now})
        try:
            yield
        finally:
            store.files.remove(_holder_name(lock))


def _holder_name(lock: str) -> str:
    return f"{lock}.json"


def _is_held(store: Store, lock: str, stack: ExitStack) -> bool:
    try:
        stack.enter_context(store.files.lock(lock))
    except LockHeldError:
        return False
    return True


def holder(store: Store, lock: str = _LOCK) -> dict[str, Any] | None:
    """Return the recorded owner of a lock (`host`, `process`, `since`); None if it is free.

    This reads the note instead of trying the lock, because a try would make another process fail that starts just then.
    """
    note = read_cache(
        store, _holder_name(lock), lambda content: {name: content[name] for name in ("host", "process", "since")}
    )
    if note is None or note["host"] != socket.gethostname():
        return note
    try:
        kill(note["process"], 0)
    except (ProcessLookupError, TypeError, OverflowError):
        # the owner was killed without removing its note
        return None
    except PermissionError:
        return note
    return note


def _holder_text(store: Store, lock: str) -> str:
    owner = holder(store, lock)
    return f" (process {owner['process']} on {owner['host']}, since {owner['since']})" if owner else ""

"""Implement the file interface of `files` in an object store, with conditional puts.

Objects appear atomically, and a put can depend on the current state (`If-Match`, `If-None-Match`), so renames, links
and file locks are not needed. A folder of files exists once its last file does. A view is one object that lists
others. A lock is a lease: an object that its owner renews, and that others may take over once it has expired. Files
for programs that read only local files are copied below a local folder once, since written files never change.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import socket
import threading
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, ClassVar, cast

from iosig.warehouse.errors import MissingExtra
from iosig.warehouse.store.files import DAMAGED_FOLDER, ExistsError, FileChecksum, Files, LockHeldError

#: a lease that is not renewed for this time has expired
LEASE_S = 60.0
_POLL_INTERVAL_S = 0.2
#: timeout for connecting [s]; timeout for one request with its response [s], within which failed requests are retried
_CONNECT_TIMEOUT_S, _TIMEOUT_S = 10, 300
_RETRIES: Any = {"max_retries": 10, "retry_timeout": timedelta(seconds=_TIMEOUT_S)}
_PARALLEL_REQUESTS = 16
#: file that names the catalogue of a warehouse, and the tables' location if it is separate
NOTE = "catalogue.json"
_TABLES = "tables"
_RECHECK_INTERVAL_S = 5.0
_KNOWN: dict[str, tuple[float, str | None]] = {}


@cache
def require_installed() -> None:
    """Raise UsageError with the install command if the library is missing."""
    if find_spec("obstore") is None:
        raise MissingExtra("A warehouse in an object store", "s3")


@cache
def _store(url: str) -> Any:
    """Open a store; address and credentials come from AWS's environment variables and files."""
    from obstore.store import from_url

    return from_url(url, client_options=_client_options(), retry_config=_RETRIES)


def _client_options() -> Any:
    return {"allow_http": is_plain(), "connect_timeout": f"{_CONNECT_TIMEOUT_S}s", "timeout": f"{_TIMEOUT_S}s"}


def is_plain() -> bool:
    """Return whether the store's endpoint is unencrypted, as on a developer's machine."""
    return os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")


def for_arrow() -> dict[str, str]:
    """Return the options of pyiceberg's Arrow file system from AWS's variables; Arrow finds the credentials."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    limits = {"s3.connect-timeout": str(_CONNECT_TIMEOUT_S), "s3.request-timeout": str(_TIMEOUT_S)}
    return {"s3.region": region} | limits | ({"s3.endpoint": endpoint} if endpoint else {})


def file_system(url: str) -> Any:
    """Return a store as an fsspec file system that DuckDB reads by complete URLs."""
    from obstore.fsspec import FsspecStore

    return FsspecStore(url.split("://")[0], client_options=_client_options(), retry_config=_RETRIES)


def _elsewhere(url: str) -> str | None:
    """Return the location of a warehouse's tables if its catalogue accepts only storage of its own; otherwise None.

    A location is cached permanently; if none is found, the next call after a while checks again.
    """
    checked_at_s, location = _KNOWN.get(url, (-math.inf, None))
    if location is None and time.monotonic() - checked_at_s > _RECHECK_INTERVAL_S:
        import obstore

        with suppress(FileNotFoundError, ValueError, AttributeError):
            location = json.loads(bytes(obstore.get(_store(url), NOTE).bytes())).get("location") or None
        _KNOWN[url] = time.monotonic(), location
    return location


@dataclass(frozen=True, slots=True)
class Objects(Files):
    """Files below a prefix of an object store, with copies in a local folder."""

    thread_count: ClassVar[int] = _PARALLEL_REQUESTS
    url: str
    root: Path

    def location(self, name: str) -> str:
        """Return the unescaped URL or path at which other programs find a file or folder."""
        return f"{self._base(name)}/{name}"

    def _base(self, name: str) -> str:
        return (_elsewhere(self.url) if name.partition("/")[0] == _TABLES else None) or self.url

    def _objects(self, name: str) -> Any:
        """Return the store client for a file or a glob pattern."""
        return _store(self._base(name))

    # ---- reading

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading. Raises FileNotFoundError if it does not exist."""
        return cast(BinaryIO, io.BufferedReader(_Reading(self._objects(name), name), 1 << 20))

    def content(self, name: str) -> bytes | None:
        """Return a file's bytes, or None if it does not exist."""
        import obstore

        try:
            return bytes(obstore.get(self._objects(name), name).bytes())
        except FileNotFoundError:
            return None

    def compute_checksum(self, name: str) -> FileChecksum:
        """Read a file in one request and return its checksum. Raises FileNotFoundError."""
        import obstore

        digest, byte_count = hashlib.sha256(), 0
        for piece in obstore.get(self._objects(name), name).stream():
            digest.update(piece)
            byte_count += len(piece)
        return FileChecksum(byte_count, digest.hexdigest())

    def mark(self, name: str) -> list[float]:
        """Return a fingerprint that changes whenever the file does; an empty list if the file does not exist."""
        head = self._head(name)
        return (
            []
            if head is None
            else [head["size"], head["last_modified"].timestamp(), zlib.crc32(head["e_tag"].encode())]
        )

    def _head(self, name: str) -> Any:
        import obstore

        try:
            return obstore.head(self._objects(name), name)
        except FileNotFoundError:
            return None

    def matching(self, pattern: str) -> list[str]:
        """Return the sorted names of files that match a glob pattern; `*` does not match a slash."""
        pattern_expression = _expression(pattern)
        return sorted(name for name in self._list_objects(pattern) if pattern_expression.fullmatch(name))

    def _list_objects(self, pattern: str) -> dict[str, Any]:
        """Return the metadata of objects that may match a pattern, including those below a matching folder."""
        import obstore

        literal = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
        folder = literal if literal == pattern else literal.rpartition("/")[0]
        objects = {
            entry["path"]: entry
            for batch in obstore.list(self._objects(pattern), prefix=folder or None)
            for entry in batch
        }
        if folder == pattern and (head := self._head(pattern)) is not None:
            objects[pattern] = head
        return objects

    def folders(self, name: str) -> dict[str, int]:
        """Map each direct subfolder to a checksum that changes with its contents."""
        checksums: dict[str, int] = {}
        for path, head in sorted(self._list_objects(f"{name}/*").items()):
            folder, slash, _ = path.removeprefix(f"{name}/").partition("/")
            if slash and folder[0] != ".":
                checksums[folder] = zlib.crc32(f"{path} {head['e_tag']}".encode(), checksums.get(folder, 0))
        return checksums

    def holds(self, folder: str) -> bool:
        """Return whether any object exists below a folder."""
        import obstore

        return any(obstore.list(self._objects(folder), prefix=folder, chunk_size=1))

    # ---- writing

    def put(self, name: str, content: bytes) -> None:
        """Write a small object, replacing an existing one."""
        import obstore

        if name == NOTE:
            _KNOWN.pop(self.url, None)
        obstore.put(self._objects(name), name, content)

    def swap(self, name: str, before: bytes | None, after: bytes) -> bool:
        """Replace a small file if its content is still `before` (None: absent); return whether it was replaced."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        mode: Any = "create"
        if before is not None:
            try:
                current = obstore.get(self._objects(name), name)
            except FileNotFoundError:
                return False
            if bytes(current.bytes()) != before:
                return False
            mode = {"e_tag": current.meta["e_tag"]}
        try:
            obstore.put(self._objects(name), name, after, mode=mode)
        except (AlreadyExistsError, PreconditionError, FileNotFoundError):
            return False
        return True

    @contextmanager
    def write_file(self, name: str) -> Iterator[Path]:
        """Provide a local path to fill; on exit it is uploaded under that name."""
        with self._scratch() as folder:
            yield folder / Path(name).name
            self._upload(folder / Path(name).name, name)

    @contextmanager
    def write_folder(self, folder: str, last: str) -> Iterator[Path]:
        """Provide a local folder to fill; the folder exists once `last` has been uploaded, after all other files."""
        from obstore.exceptions import AlreadyExistsError

        with self._scratch() as filling:
            yield filling
            assert (filling / last).is_file()
            if self._head(f"{folder}/{last}") is not None:
                raise ExistsError(folder)
            paths = [path for path in sorted(filling.rglob("*")) if path.is_file() and path != filling / last]
            self.each(lambda path: self._upload(path, f"{folder}/{path.relative_to(filling).as_posix()}"), paths)
            try:
                self._upload(filling / last, f"{folder}/{last}", mode="create")
            except AlreadyExistsError as error:
                raise ExistsError(folder) from error

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        self.root.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=self.root, prefix=".filling-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)

    def _upload(self, path: Path, name: str, mode: Any = "overwrite") -> Any:
        import obstore

        if mode == "overwrite":
            return obstore.put(self._objects(name), name, path)
        return obstore.put(self._objects(name), name, path.read_bytes(), mode=mode)

    def take(self, source: Path, name: str) -> None:
        """Store a local file under this name as well, by a copy within the store where possible."""
        import obstore

        source_name = self._name_of(source)
        if source_name is not None and self._base(source_name) == self._base(name):
            with suppress(FileNotFoundError):
                obstore.copy(self._objects(name), source_name, name)
                return
        self._upload(source, name)

    def _name_of(self, path: Path) -> str | None:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else None

    def show(self, view: str, label: str, members: Mapping[str, Path]) -> None:
        """Write the object that lists a view's files, by compare-and-swap."""
        before = self.content(f"{view}.json")
        current = _view(before)
        if current.get("label") == label:
            return

        def shown(place: str) -> str:
            name = self._name_of(members[place])
            if name is None or self._head(name) is None:
                # objects that exist only for the view are removed with it
                name = f".{view}-{label}/{place}"
                self._upload(members[place], name)
            return self.location(name)

        files = dict(zip(members, self.each(shown, members), strict=True))
        document = {"label": label, "before": current.get("label"), "files": files}
        if not self.swap(f"{view}.json", before, json.dumps(document, indent=1).encode()):
            raise LockHeldError(view)
        if current.get("before") not in (None, label):
            self.remove(f".{view}-{current['before']}")

    def shown(self, view: str) -> str | None:
        """Return the label of a view's content; None if the view is missing or empty."""
        return _view(self.content(f"{view}.json")).get("label")

    def showing(self, view: str) -> set[str]:
        """Return the paths within a view at which an object exists."""
        files = _view(self.content(f"{view}.json")).get("files", {})
        heads = self.each(lambda url: self._head(self._strip_url(url)), files.values())
        return {place for place, head in zip(files, heads, strict=True) if head is not None}

    def _strip_url(self, url: str) -> str:
        return url.removeprefix(f"{self.url}/").removeprefix(f"{self._base(_TABLES)}/")

    def remove(self, *patterns: str) -> None:
        """Remove objects and whole folders that match glob patterns."""
        import obstore

        for pattern in patterns:
            pattern_expression = _expression(pattern)
            names = [
                name
                for name in self._list_objects(pattern)
                if any(pattern_expression.fullmatch(path) for path in (name, *map(str, Path(name).parents)))
            ]
            if names:
                obstore.delete(self._objects(pattern), names)
            for name in names:
                (self.root / name).unlink(missing_ok=True)

    def set_aside(self, name: str) -> str:
        """Move a damaged file or folder out of its place, and return its new location."""
        aside = f"{DAMAGED_FOLDER}/{Path(name).name}"
        self.remove(aside)
        for object_name in self._list_objects(name):
            if object_name == name or object_name.startswith(f"{name}/"):
                self._copy(object_name, aside + object_name.removeprefix(name))
        self.remove(name)
        return aside

    def _copy(self, name: str, to: str) -> None:
        import obstore

        if self._base(name) == self._base(to):
            obstore.copy(self._objects(name), name, to)
        else:
            self._fetch(name)
            self._upload(self.root / name, to)

    # ---- copies

    def fetch(self, names: Iterable[str]) -> None:
        """Copy files to the same places below the local folder; local copies of missing files are removed."""
        self.each(self._fetch, list(names))

    def _fetch(self, name: str) -> None:
        import obstore

        path = self.root / name
        if path.is_file():
            head = self._head(name)
            if head and (path.stat().st_size, path.stat().st_mtime_ns) == (head["size"], _stamp(head["e_tag"])):
                return
        try:
            answer = obstore.get(self._objects(name), name)
        except FileNotFoundError:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
        with temporary.open("wb") as file:
            for piece in answer.stream():
                file.write(piece)
        os.utime(temporary, ns=(_stamp(answer.meta["e_tag"]),) * 2)
        os.replace(temporary, path)

    def push(self, names: Iterable[str]) -> None:
        """Upload the files at these places below the local folder."""
        self.each(self._push, [name for name in names if (self.root / name).is_file()])

    def _push(self, name: str) -> None:
        head = self._upload(self.root / name, name)
        os.utime(self.root / name, ns=(_stamp(head["e_tag"] or self._head(name)["e_tag"]),) * 2)

    # ---- leases

    @contextmanager
    def lock(self, name: str, *, is_shared: bool = False) -> Iterator[None]:
        """Lock exclusively, or raise Busy at once; if `is_shared`, wait for an exclusive owner, then share the lock."""
        lease_name = f"{name}.d/{uuid.uuid4().hex}" if is_shared else name
        lease = _Lease(self, lease_name)
        if not lease.take():
            raise LockHeldError(name)
        try:
            # each process writes its lease before it looks for others, so two processes cannot miss each other
            if is_shared:
                while self._is_leased(name):
                    time.sleep(_POLL_INTERVAL_S)
            elif any(self._is_leased(shared) for shared in self.matching(f"{name}.d/*")):
                raise LockHeldError(name)
            yield
        finally:
            lease.end()

    def _is_leased(self, name: str) -> bool:
        return _until(self.content(name)) > time.time()


class _Lease:
    """A lock object with an owner and an expiry time, renewed by a thread until it is released."""

    def __init__(self, objects: Objects, name: str) -> None:
        self._objects, self._name = objects, name
        self._id, self._ended = uuid.uuid4().hex, threading.Event()
        self._told = b""
        self._renewing = threading.Thread(target=self._renew, name="lease", daemon=True)

    def _now(self) -> bytes:
        content = {"id": self._id, "host": socket.gethostname(), "process": os.getpid(), "until": time.time() + LEASE_S}
        return json.dumps(content).encode()

    def take(self) -> bool:
        """Acquire the lease if it is free or expired; return whether this succeeded."""
        before, self._told = self._objects.content(self._name), self._now()
        if _until(before) > time.time() or not self._objects.swap(self._name, before, self._told):
            return False
        self._renewing.start()
        return True

    def _renew(self) -> None:
        while not self._ended.wait(LEASE_S / 3):
            content = self._now()
            # the store may be unavailable for a while; two more attempts follow before the lease expires
            with suppress(Exception):
                if not self._objects.swap(self._name, self._told, content):
                    # the lease has expired and has another owner; the catalogue refuses this process's commits
                    return
                self._told = content

    def end(self) -> None:
        """Release the lease, if this process still owns it."""
        self._ended.set()
        self._renewing.join()
        with suppress(Exception):
            if self._objects.content(self._name) == self._told:
                self._objects.remove(self._name)


def _view(content: bytes | None) -> dict[str, Any]:
    """Parse the object of a view; return an empty dict if the object is missing or torn."""
    with suppress(ValueError):
        document = json.loads(content or b"null")
        if isinstance(document, dict) and isinstance(document.get("files"), dict):
            return document
    return {}


def _until(content: bytes | None) -> float:
    with suppress(ValueError, KeyError, TypeError):
        return float(json.loads(content or b"null")["until"])
    return 0.0


def _stamp(e_tag: str) -> int:
    """Derive a modification time [ns] from an e-tag, so that copies with different content have different times."""
    return int(hashlib.sha256(e_tag.encode()).hexdigest()[:15], 16)


def _expression(pattern: str) -> re.Pattern[str]:
    """Convert a glob pattern to a regular expression."""
    words = {"*": "[^/]*", "?": "[^/]"}
    parts = re.findall(r"\[[^\]]+\]|[*?]|[^*?\[]+", pattern)
    return re.compile("".join(words.get(part, part if part[:1] == "[" else re.escape(part)) for part in parts))


class _Reading(io.RawIOBase):
    """An object as a seekable file."""

    def __init__(self, objects: Any, name: str) -> None:
        import obstore

        self._objects, self._name = objects, name
        self._size: int = obstore.head(objects, name)["size"]
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = offset + (0, self._place, self._size)[whence]
        return self._place

    def readinto(self, buffer: Any) -> int:
        import obstore

        view = memoryview(buffer).cast("B")
        count = min(len(view), max(0, self._size - self._place))
        if count:
            view[:count] = obstore.get_range(self._objects, self._name, start=self._place, length=count)
            self._place += count
        return count

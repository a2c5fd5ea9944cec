"""Define the file interface of a warehouse, which a local folder or an object store implements.

A name is a slash-separated path below the warehouse's root. Writes are atomic, data files are immutable, and the only
mutable objects are small documents and views, which are replaced in one step. Renames, links and fsync are details of
`Folder`; no other module depends on them.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import current_thread
from typing import BinaryIO, ClassVar, Self, TypeVar

from iosig.warehouse.engine_paths import iceberg_location
from iosig.warehouse.placing import atomic_write, copy, link_or_copy, make_folder, make_read_only, sweep_temporaries

#: folder for damaged files, which may contain data that no other file has
DAMAGED_FOLDER = "damaged"
_PIECE_BYTES = 1 << 20
#: the largest integer that tables can store; inodes are masked with it
_MAX_INT64 = (1 << 63) - 1
#: number of files that are written in parallel, since each write waits for the disk
_PARALLEL_WRITES = 4
_THREADS = "files"

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class FileChecksum:
    """Size and SHA-256 checksum of a file as it was written."""

    byte_count: int
    sha256: str

    @classmethod
    def from_file(cls, file: BinaryIO) -> Self:
        """Read an open file to its end, and compute its size and checksum."""
        digest = hashlib.sha256()
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
        return cls(file.tell(), digest.hexdigest())

    @classmethod
    def from_path(cls, path: Path) -> Self:
        """Read a local file, and compute its size and checksum."""
        with path.open("rb") as file:
            return cls.from_file(file)


class LockHeldError(Exception):
    """Raised when a lock cannot be acquired because another process holds it."""


class ExistsError(Exception):
    """Raised when a file or folder that should be new already exists."""


class Files(ABC):
    """Interface of a warehouse's storage; optional methods have a default here."""

    __slots__ = ()
    #: number of threads of `each`
    thread_count: ClassVar[int]

    @abstractmethod
    def location(self, name: str) -> str:
        """Return the unescaped URL or path at which other programs find a file or folder."""

    @abstractmethod
    def open(self, name: str) -> BinaryIO:
        """Open a file for reading. Raises FileNotFoundError if it does not exist."""

    @abstractmethod
    def content(self, name: str) -> bytes | None:
        """Return a file's bytes, or None if it does not exist."""

    @abstractmethod
    def mark(self, name: str) -> list[float]:
        """Return a fingerprint that changes whenever the file does; an empty list if the file does not exist."""

    @abstractmethod
    def matching(self, pattern: str) -> list[str]:
        """Return the sorted names of files that match a glob pattern; `*` does not match a slash."""

    @abstractmethod
    def folders(self, name: str) -> dict[str, int]:
        """Map each direct subfolder to a number that changes if the subfolder is recreated.

        The numbers come from a directory listing; the contents of the subfolders are not read.
        """

    @abstractmethod
    def holds(self, folder: str) -> bool:
        """Return whether a folder exists."""

    @abstractmethod
    def put(self, name: str, content: bytes) -> None:
        """Write a small file atomically, replacing an existing one."""

    @abstractmethod
    def swap(self, name: str, before: bytes | None, after: bytes) -> bool:
        """Replace a small file if its content is still `before` (None: absent); return whether it was replaced."""

    @abstractmethod
    def write_file(self, name: str) -> AbstractContextManager[Path]:
        """Provide a local path to fill; on exit it becomes the immutable file of that name."""

    @abstractmethod
    def write_folder(self, folder: str, last: str) -> AbstractContextManager[Path]:
        """Provide a local folder to fill; its files are stored on exit, with `last` after all others.

        Raises Exists if another process has stored the same folder since.
        """

    @abstractmethod
    def take(self, source: Path, name: str) -> None:
        """Store a local file under this name as well, without copying it where possible."""

    @abstractmethod
    def show(self, view: str, label: str, members: Mapping[str, Path]) -> None:
        """Replace the content of a view, a folder-like set of links to files, in one step.

        members: maps each path within the view to its file. The previous content stays until the next change, for
        readers that are still using it.
        """

    @abstractmethod
    def shown(self, view: str) -> str | None:
        """Return the label of a view's content; None if the view is missing or empty."""

    @abstractmethod
    def showing(self, view: str) -> set[str]:
        """Return the paths within a view at which a file exists."""

    @abstractmethod
    def remove(self, *patterns: str) -> None:
        """Remove files and whole folders that match glob patterns."""

    @abstractmethod
    def set_aside(self, name: str) -> str:
        """Move a damaged file or folder out of its place, and return its new location."""

    @abstractmethod
    def lock(self, name: str, *, is_shared: bool = False) -> AbstractContextManager[None]:
        """Lock exclusively, or raise Busy at once; if `is_shared`, wait for an exclusive owner, then share the lock."""

    def protect(self, *patterns: str) -> None:  # noqa: B027
        """Make files that match glob patterns read-only, on storage that has permissions."""

    def close_to_others(self) -> None:  # noqa: B027
        """Restrict access to the owner and the group, on storage that has permissions."""

    def sweep(self, folder: str) -> None:  # noqa: B027
        """Remove temporary files of killed writers from a folder; no writer may be active."""

    def fetch(self, names: Iterable[str]) -> None:  # noqa: B027
        """Copy files to the same places below the local folder, for programs that read only local files."""

    def push(self, names: Iterable[str]) -> None:  # noqa: B027
        """Upload the files at these places below the local folder."""

    def each(self, do: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """Run small I/O-bound tasks in a thread pool and return their results in order."""
        return side_by_side(do, items, self.thread_count)

    def compute_checksum(self, name: str) -> FileChecksum:
        """Read a file whole and return its checksum. Raises FileNotFoundError."""
        with self.open(name) as file:
            return FileChecksum.from_file(file)


@dataclass(frozen=True, slots=True)
class Folder(Files):
    """Files in a local folder, synced to disk so that names and bytes survive a power loss."""

    thread_count: ClassVar[int] = _PARALLEL_WRITES
    root: Path

    def location(self, name: str) -> str:
        """Return the unescaped URL or path at which other programs find a file or folder."""
        return iceberg_location(self.root.resolve() / name)

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading. Raises FileNotFoundError if it does not exist."""
        return (self.root / name).open("rb")

    def content(self, name: str) -> bytes | None:
        """Return a file's bytes, or None if it does not exist."""
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def mark(self, name: str) -> list[float]:
        """Return the metadata that change whenever the file does; an empty list if the file does not exist."""
        try:
            status = (self.root / name).stat()
        except OSError:
            return []
        return [status.st_size, status.st_mtime_ns, status.st_ino]

    def matching(self, pattern: str) -> list[str]:
        """Return the sorted names of files that match a glob pattern; `*` does not match a slash."""
        paths = (path.relative_to(self.root) for path in self.root.glob(pattern) if path.is_file())
        # temporary files are not in place yet
        return sorted(path.as_posix() for path in paths if not any(part.endswith(".tmp") for part in path.parts))

    def folders(self, name: str) -> dict[str, int]:
        """Map each direct subfolder to its inode."""
        try:
            with os.scandir(self.root / name) as entries:
                return {
                    entry.name: entry.inode() & _MAX_INT64
                    for entry in entries
                    if entry.name[0] != "." and entry.is_dir()
                }
        except FileNotFoundError:
            return {}

    def holds(self, folder: str) -> bool:
        """Return whether a folder exists."""
        return (self.root / folder).is_dir()

    def put(self, name: str, content: bytes) -> None:
        """Write a small file atomically, replacing an existing one."""
        with atomic_write(self.root / name) as temporary:
            temporary.write_bytes(content)

    def swap(self, name: str, before: bytes | None, after: bytes) -> bool:
        """Replace a small file if its content is still `before` (None: absent); return whether it was replaced."""
        with self._lock_file("swap.lock", fcntl.LOCK_EX):
            is_same = self.content(name) == before
            if is_same:
                self.put(name, after)
            return is_same

    @contextmanager
    def write_file(self, name: str) -> Iterator[Path]:
        """Provide a path to fill; on exit it becomes the read-only file of that name."""
        with atomic_write(self.root / name) as temporary:
            yield temporary
            make_read_only(temporary)

    @contextmanager
    def write_folder(self, folder: str, last: str) -> Iterator[Path]:
        """Provide a folder to fill; it appears atomically, so `last` appears with all others."""
        try:
            with atomic_write(self.root / folder) as temporary:
                temporary.mkdir()
                yield temporary
                assert (temporary / last).is_file()
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or not (self.root / folder / last).is_file():
                raise
            raise ExistsError(folder) from error

    def take(self, source: Path, name: str) -> None:
        """Store a local file under this name as well, as a hard link where possible."""
        with atomic_write(self.root / name) as temporary:
            link_or_copy(source, temporary)

    def show(self, view: str, label: str, members: Mapping[str, Path]) -> None:
        """Build a folder of links, and switch the view's symbolic link to it atomically."""
        pointer, before, folder = self.root / view, self.shown(view), self.root / _shown_as(view, label)
        if before == label:
            return
        shutil.rmtree(folder, ignore_errors=True)
        with atomic_write(folder) as temporary:
            lay_out(temporary, members)
        if pointer.is_dir() and not pointer.is_symlink():
            # the warehouse was copied by a program that follows links
            pointer.rename(self.root / _shown_as(view, "copied"))
        with atomic_write(pointer) as temporary:
            temporary.symlink_to(folder.name, target_is_directory=True)
        kept_names = {folder.name, before and _shown_as(view, before)}
        for old in self.root.glob(_shown_as(view, "*")):
            if old.name not in kept_names:
                shutil.rmtree(old, ignore_errors=True)

    def shown(self, view: str) -> str | None:
        """Return the label of a view's content; None if the view is missing or empty."""
        pointer = self.root / view
        is_sound = pointer.is_symlink() and pointer.is_dir()
        return os.readlink(pointer).removeprefix(_shown_as(view, "")) if is_sound else None

    def showing(self, view: str) -> set[str]:
        """Return the paths within a view at which a file exists."""
        paths = (path.relative_to(self.root / view) for path in (self.root / view).rglob("*") if path.is_file())
        return {path.as_posix() for path in paths}

    def remove(self, *patterns: str) -> None:
        """Remove files and whole folders that match glob patterns."""
        for path in (path for pattern in patterns for path in list(self.root.glob(pattern))):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def protect(self, *patterns: str) -> None:
        """Make files that match glob patterns read-only."""
        for name in (name for pattern in patterns for name in self.matching(pattern)):
            make_read_only(self.root / name)

    def close_to_others(self) -> None:
        """Remove access for others; permissions of the root folder protect everything below it."""
        self.root.chmod(self.root.stat().st_mode & ~0o007)

    def set_aside(self, name: str) -> str:
        """Move a damaged file or folder out of its place, and return its new location."""
        aside = f"{DAMAGED_FOLDER}/{Path(name).name}"
        make_folder(self.root / DAMAGED_FOLDER)
        self.remove(aside)
        (self.root / name).rename(self.root / aside)
        return aside

    @contextmanager
    def lock(self, name: str, *, is_shared: bool = False) -> Iterator[None]:
        """Lock exclusively, or raise Busy at once; if `is_shared`, wait for an exclusive owner, then share the lock."""
        with self._lock_file(name, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX | fcntl.LOCK_NB):
            yield

    @contextmanager
    def _lock_file(self, name: str, operation: int) -> Iterator[None]:
        make_folder(self.root)
        with (self.root / name).open("w") as file:
            try:
                fcntl.flock(file, operation)
            except BlockingIOError as error:
                raise LockHeldError(name) from error
            yield

    def sweep(self, folder: str) -> None:
        """Remove temporary files of killed writers; call this only while no writer can be active."""
        with suppress(FileNotFoundError):
            sweep_temporaries(self.root / folder)


def side_by_side(do: Callable[[_Item], _Result], items: Iterable[_Item], count: int) -> list[_Result]:
    """Run tasks in `count` threads and return the results in order, after all tasks have finished."""
    # a task that waits for the pool it runs in could deadlock, so nested calls get another pool
    is_within = current_thread().name.startswith(_THREADS)
    threads = ThreadPoolExecutor(count, _THREADS) if is_within else _threads(count)
    futures = [threads.submit(do, item) for item in list(items)]
    try:
        return [future.result() for future in futures]
    finally:
        wait(futures)
        if is_within:
            threads.shutdown()


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    """Return a cached thread pool, because publishing a release needs one about twenty times."""
    return ThreadPoolExecutor(count, _THREADS)


def _shown_as(view: str, label: str) -> str:
    # glob patterns skip names that start with a dot
    return f".{view}-{label}"


def lay_out(folder: Path, members: Mapping[str, Path], *, is_copied: bool = False) -> None:
    """Fill a folder with hard links where possible, or copies; members maps each path within the folder to its file."""
    for parent in sorted({os.path.dirname(place) for place in members} | {""}):
        make_folder(folder / parent)
    for place, source in members.items():
        (copy if is_copied else link_or_copy)(source, folder / place)

"""Create files and folders atomically."""

from __future__ import annotations

import errno
import io
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: environment variable that marks the output of a process as disposable; child processes inherit it
_SCRATCH = "IOSIG_SCRATCH"
#: write errors that the system reports without a file name
_UNNAMED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


@contextmanager
def scratch() -> Iterator[None]:
    """Skip fsync in this block and in child processes; a power loss may lose their output."""
    os.environ[_SCRATCH] = "1"
    try:
        yield
    finally:
        del os.environ[_SCRATCH]


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Provide a temporary path next to `path`, and rename it to `path` on success.

    An existing file at `path` is replaced; an existing folder is an error. After an error, no temporary file remains.
    If the disk is full, the error names `path`.
    """
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
        sync_to_disk(path.parent)
    except OSError as error:
        if error.errno in _UNNAMED and error.filename is None:
            error.filename = str(path)
        raise
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Sync a file, or all files of a folder, to disk before the rename."""
    if path.is_dir():
        for child in path.rglob("*"):
            sync_to_disk(child)
    sync_to_disk(path)


def make_folder(path: Path) -> None:
    """Create a folder and its parents, synced to disk, unless it exists."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync_to_disk(path.parent)


def sync_to_disk(path: Path) -> None:
    """Sync a file's content, or a folder's entries, to disk."""
    if _SCRATCH in os.environ:
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class SyncedStream(io.FileIO):
    """A file that is synced to disk, with its directory entry, when it is closed."""

    def write(self, content: Any) -> int:
        """Write all of the content, since a raw write to a full disk may be partial without an error."""
        remaining = memoryview(content).cast("B")
        count = len(remaining)
        try:
            while remaining:
                remaining = remaining[super().write(remaining) :]
        except OSError as error:
            error.filename = str(self.name)
            raise
        return count

    def close(self) -> None:
        """Close the file after syncing its bytes and its directory entry."""
        if not self.closed:
            if _SCRATCH not in os.environ:
                os.fsync(self.fileno())
            super().close()
            sync_to_disk(Path(str(self.name)).parent)


def link_or_copy(path: Path, target: Path) -> None:
    """Create a hard link to a file at a second path, or a copy if the file system has no hard links."""
    try:
        os.link(path, target)
    except OSError:
        copy(path, target)


def copy(path: Path, target: Path) -> None:
    """Copy a file and sync the copy to disk."""
    shutil.copyfile(path, target)
    sync_to_disk(target)


def make_read_only(path: Path) -> None:
    """Remove write permission for all users, without adding any other permission."""
    path.chmod(path.stat().st_mode & 0o444)


def sweep_temporaries(folder: Path) -> None:
    """Remove temporary files of killed writers; call this only while no writer can be active."""
    for path in folder.glob(".*.tmp"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def move(path: Path, target: Path) -> None:
    """Move a file or folder within a file system, and sync both parent folders."""
    path.rename(target)
    for folder in {path.parent, target.parent}:
        sync_to_disk(folder)

"""How a file or a folder comes into being: whole or not at all, whatever happens meanwhile."""

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

#: set in the environment of a process that writes nothing of worth, and of those that it starts
_SCRATCH = "IOSIG_SCRATCH"
#: what fails a write, of which the system does not say to which file
_UNNAMED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


@contextmanager
def scratch() -> Iterator[None]:
    """Wait for no disk in this block, nor in processes that it starts: a power cut may take what they wrote."""
    os.environ[_SCRATCH] = "1"
    try:
        yield
    finally:
        del os.environ[_SCRATCH]


@contextmanager
def moved_into_place(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; on leaving without error it becomes `path` in one step.

    What lay at `path` is replaced (a file) or must not exist (a folder). After an error nothing is left; one of a full
    disk names `path`.
    """
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
        synced(path.parent)
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
    """Have the bytes on disk before the name points to them."""
    if path.is_dir():
        for child in path.rglob("*"):
            synced(child)
    synced(path)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, names on disk; nothing is done where it is there."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        synced(path.parent)


def synced(path: Path) -> None:
    """Have a file's bytes, or a folder's names, on disk: a power cut takes neither back."""
    if _SCRATCH in os.environ:
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class SyncedStream(io.FileIO):
    """A file whose bytes and name are on disk once it is closed."""

    def write(self, content: Any) -> int:
        """Write all of the content: where a disk gets full, the system writes a part of it and says no more."""
        left = memoryview(content).cast("B")
        count = len(left)
        try:
            while left:
                left = left[super().write(left) :]
        except OSError as error:
            error.filename = str(self.name)
            raise
        return count

    def close(self) -> None:
        """Close the file, its bytes and name on disk."""
        if not self.closed:
            if _SCRATCH not in os.environ:
                os.fsync(self.fileno())
            super().close()
            synced(Path(str(self.name)).parent)


def link_or_copy(path: Path, target: Path) -> None:
    """Have a file in a second place, without taking space where the file system can do that."""
    try:
        os.link(path, target)
    except OSError:
        copy(path, target)


def copy(path: Path, target: Path) -> None:
    """Have a file's bytes in a second place."""
    shutil.copyfile(path, target)
    synced(target)


def make_read_only(path: Path) -> None:
    """Take from everybody the right to write to a file, and give nobody another one."""
    path.chmod(path.stat().st_mode & 0o444)


def sweep_temporaries(folder: Path) -> None:
    """Remove what killed writers left in a folder; call it only where no writer can be at work."""
    for left in folder.glob(".*.tmp"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def move(path: Path, target: Path) -> None:
    """Move a file or folder within a file system, and have both folders on disk."""
    path.rename(target)
    for folder in {path.parent, target.parent}:
        synced(folder)

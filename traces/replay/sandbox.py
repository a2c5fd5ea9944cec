"""Provide a sandbox folder: every path of a trace is remapped into it, and no link in it is followed.

A path is split as text (`..` never leaves the folder). Its names are opened one by one, starting at the folder's
descriptor, with O_NOFOLLOW. Links that another process creates in the folder at the same time cannot lead outside.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 4095
_MAX_NAMES = 128
_FOLDER_MODE = 0o700
#: flags of open that a replay passes on, as Linux numbers them; all others are dropped
_PASSED = (
    (os.O_ACCMODE | os.O_CREAT | os.O_EXCL | os.O_TRUNC | os.O_APPEND | os.O_SYNC | os.O_DSYNC)
    | (os.O_DIRECTORY | os.O_NOATIME | os.O_NONBLOCK)
)  # fmt: skip
#: read, write and execute for user, group and others: no setuid, setgid or sticky bit
MODE_BITS = 0o777


class RefusedPathError(Exception):
    """A traced path cannot be remapped into the folder."""


def remap_path(path: str) -> tuple[str, ...]:
    """Return the path components, relative to the folder, of a traced path.

    Raises PathRefused if it has no name, has one that is too long, or denotes the folder itself.
    """
    if not path:
        raise RefusedPathError("empty path")
    if "\0" in path:
        raise RefusedPathError("NUL in the path")
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    if not names:
        raise RefusedPathError("not a path below the folder")
    lengths = [len(name.encode("utf-8", "surrogateescape")) for name in names]
    if max(lengths) > _MAX_NAME_BYTES or sum(lengths) + len(lengths) > _MAX_PATH_BYTES:
        raise RefusedPathError("path too long")
    if len(names) > _MAX_NAMES:
        raise RefusedPathError("path too deep")
    return tuple(names)


class Sandbox:
    """An open sandbox folder; methods take names as returned by `remap_path`, and raise OSError as the calls do."""

    def __init__(self, folder: Path) -> None:
        self._root = os.open(folder, _FOLDER)

    def close(self) -> None:
        """Close the folder's descriptor, opened at construction."""
        os.close(self._root)

    @contextmanager
    def _parent(self, names: tuple[str, ...], make: bool = False) -> Iterator[int]:
        """Walk to the parent folder of the last name; its descriptor stays open until the context ends."""
        folder_descriptor = self._root
        try:
            for name in names[:-1]:
                if make:
                    ensure_folder(folder_descriptor, name)
                below = os.open(name, _FOLDER, dir_fd=folder_descriptor)
                if folder_descriptor != self._root:
                    os.close(folder_descriptor)
                folder_descriptor = below
            yield folder_descriptor
        finally:
            if folder_descriptor != self._root:
                os.close(folder_descriptor)

    def open(self, names: tuple[str, ...], flags: int, mode: int = 0o600) -> int:
        """Open or create a file with the flags that a replay passes on; the caller owns the descriptor."""
        passed = (flags & _PASSED) | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
        with self._parent(names) as parent:
            if flags & os.O_DIRECT:
                passed |= os.O_DIRECT
            return os.open(names[-1], passed, mode & MODE_BITS, dir_fd=parent)

    def stat(self, names: tuple[str, ...]) -> os.stat_result:
        """Return a file's metadata without following links."""
        with self._parent(names) as parent:
            return os.stat(names[-1], dir_fd=parent, follow_symlinks=False)

    def access(self, names: tuple[str, ...], mode: int) -> bool:
        """Return whether a file may be accessed in this mode."""
        with self._parent(names) as parent:
            return os.access(names[-1], mode & (os.R_OK | os.W_OK | os.X_OK), dir_fd=parent, follow_symlinks=False)

    def unlink(self, names: tuple[str, ...]) -> None:
        """Remove a file under the folder."""
        with self._parent(names) as parent:
            os.unlink(names[-1], dir_fd=parent)

    def rename(self, names: tuple[str, ...], new: tuple[str, ...]) -> None:
        """Rename or move a file under the folder."""
        with self._parent(names) as old_parent, self._parent(new) as new_parent:
            os.rename(names[-1], new[-1], src_dir_fd=old_parent, dst_dir_fd=new_parent)

    def mkdir(self, names: tuple[str, ...], mode: int) -> None:
        """Create a folder with full access for its owner, so that its contents can be accessed and removed later."""
        with self._parent(names) as parent:
            os.mkdir(names[-1], (mode & MODE_BITS) | _FOLDER_MODE, dir_fd=parent)

    def rmdir(self, names: tuple[str, ...]) -> None:
        """Remove an empty folder under the sandbox."""
        with self._parent(names) as parent:
            os.rmdir(names[-1], dir_fd=parent)

    def make_folders(self, names: tuple[str, ...]) -> None:
        """Create the missing parent folders of the last name."""
        with self._parent(names, make=True):
            pass


def ensure_folder(parent: int, name: str) -> None:
    """Create a folder if no entry has its name."""
    try:
        os.mkdir(name, _FOLDER_MODE, dir_fd=parent)
    except FileExistsError:
        return

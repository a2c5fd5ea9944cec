"""Snapshots of a folder at the moments where a crash could interrupt an operation.

The operation runs undisturbed while the folder is copied before each durable change. So one pass yields every moment,
and no exception handler tidies up. A snapshot shows what a killed process leaves, or what a power cut leaves: names and
bytes that were not synced are then absent or torn.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from iosig.warehouse.store.files import Folder


@dataclass
class Disk:
    """State of a disk after a power cut: files as of their last fsync, and folders with the names they had then."""

    files: dict[int, tuple[int, int]] = field(default_factory=dict)
    folders: dict[int, set[str]] = field(default_factory=dict)

    def hold(self, path: Path) -> None:
        """Record the current state of a file or folder as durable."""
        status = path.stat()
        if path.is_dir():
            self.folders[status.st_ino] = set(os.listdir(path))
        else:
            self.files[status.st_ino] = (status.st_size, status.st_mtime_ns)

    def hold_all(self, root: Path) -> None:
        """Record everything in a folder as durable."""
        for path in (root, *root.rglob("*")):
            if not path.is_symlink():
                self.hold(path)

    def left(self, root: Path, into: Path) -> None:
        """Copy the state that survives a power cut."""
        into.mkdir()
        names = self.folders.get(root.stat().st_ino, set())
        for path in root.iterdir():
            if path.name not in names and not _is_sqlites(path):
                continue
            if path.is_symlink():
                (into / path.name).symlink_to(os.readlink(path))
            elif path.is_dir():
                self.left(path, into / path.name)
            else:
                self._leave(path, into / path.name)

    def _leave(self, path: Path, target: Path) -> None:
        status = path.stat()
        is_whole = self.files.get(status.st_ino) == (status.st_size, status.st_mtime_ns) or _is_sqlites(path)
        content = path.read_bytes()
        target.write_bytes(content if is_whole else content[: len(content) // 2])
        shutil.copymode(path, target)


def _is_sqlites(path: Path) -> bool:
    """Return whether SQLite syncs the file itself, invisibly to this module."""
    return ".sqlite" in path.name


@dataclass
class Wrecks:
    """Snapshots of `root` at moments spread evenly over an operation: at most `max_count`, at least half as many."""

    root: Path
    folder: Path
    max_count: int
    is_power_cut: bool
    disk: Disk = field(default_factory=Disk)
    paths: dict[int, Path] = field(default_factory=dict)
    moment_count: int = 0
    _step: int = 1
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> None:
        """Count a moment, and copy the folder if the moment is selected."""
        if self.moment_count % self._step == 0 and self.root.is_dir():
            path = self.folder / str(self.moment_count)
            if self.is_power_cut:
                self.disk.left(self.root, path)
            else:
                _copy(self.root, path)
            self.paths[self.moment_count] = path
            if len(self.paths) > self.max_count:
                self._step *= 2
                for moment in [moment for moment in self.paths if moment % self._step]:
                    shutil.rmtree(self.paths.pop(moment))
        self.moment_count += 1

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take a snapshot before each sync and each removal of files within the block."""
        if self.root.is_dir():
            self.disk.hold_all(self.root)
        fsync, remove = os.fsync, Folder.remove

        def synced(descriptor: int) -> None:
            with self._lock:
                path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
                if path.is_relative_to(self.root):
                    self.take()
                    self.disk.hold(path)
            fsync(descriptor)

        def removed(files: Folder, *patterns: str) -> None:
            if files.root == self.root and any(True for pattern in patterns for _ in self.root.glob(pattern)):
                with self._lock:
                    self.take()
            remove(files, *patterns)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", synced)
            patch.setattr(Folder, "remove", removed)
            # other threads must not write during the copy, or it would contain later changes
            patch.setattr(Folder, "thread_count", 1)
            yield


def _copy(root: Path, into: Path) -> None:
    """Copy a folder in which other threads may still rename temporary files."""

    def copy(source: str, target: str) -> Any:
        with suppress(FileNotFoundError):
            return shutil.copy2(source, target)

    with suppress(shutil.Error):
        shutil.copytree(root, into, symlinks=True, copy_function=copy)


def wrecks_of(
    root: Path, folder: Path, operation: Callable[[], object], max_count: int, *, is_power_cut: bool = False
) -> list[Path]:
    """Run an operation to its end and return snapshots of the folder, from the first moment to the last."""
    folder.mkdir()
    wrecks = Wrecks(root, folder, max_count, is_power_cut)
    with wrecks.taken():
        operation()
    return [path for _, path in sorted(wrecks.paths.items())]

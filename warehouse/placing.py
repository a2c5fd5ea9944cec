"""How a file or a folder comes into being: whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def moved_into_place(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; on leaving without error it becomes `path` in one step.

    What lay at `path` is replaced (a file) or must not exist (a folder). After an error nothing is left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Have the bytes on disk before the name points to them."""
    if path.is_dir():
        for child in path.rglob("*"):
            if child.is_file():
                _flush(child)
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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

"""Whose fault it is: what libraries raise where a machine or its disk fails, as one sentence with a remedy."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from warehouse.errors import MachineFault

_SPACE = "Free some space there, and do it again: nothing is half done."
#: of each errno: what is wrong with the file, and what to do
_BY_ERRNO = {
    errno.ENOSPC: ("no space is left on its disk", _SPACE),
    errno.EDQUOT: ("its owner's quota is used up", _SPACE),
    errno.EACCES: ("there is no right to do that", "Give this user the right, or run as one who has it."),
    errno.EPERM: ("there is no right to do that", "Give this user the right, or run as one who has it."),
    errno.EROFS: ("its file system can only be read", "Mount it to be written, or give another --warehouse."),
    errno.EIO: ("the disk cannot read or write it", "Look at the machine's log; `iosig verify` reads everything."),
    errno.EMFILE: ("too many files are open", "Raise the limit (`ulimit -n`)."),
    errno.ENFILE: ("too many files are open", "Raise the limit (`ulimit -n`)."),
    errno.ENOMEM: ("there is not enough memory", "Give it more, or lower `memory_limit` in the settings."),
    errno.ESTALE: ("the file server has forgotten it", "Mount it again."),
}
_MEMORY = "There is not enough memory. Raise `memory_limit` of [engine] in the settings, or the machine's own limit."
_LIBRARIES = ("duckdb", "_duckdb", "pyarrow", "polars", "pyiceberg", "fastavro", "sqlite3", "sqlalchemy", "json")
#: what libraries say where a file system fails them
_TOLD = {
    errno.ENOSPC: re.compile(r"no space left|disk is full|disk full|database or disk is full", re.I),
    errno.EACCES: re.compile(r"permission denied|readonly database|read-only database", re.I),
    errno.EROFS: re.compile(r"read-only file system", re.I),
    errno.EIO: re.compile(r"input/output error|disk i/o error", re.I),
}
_PATH = re.compile(r"(?:file://)?(/[^\"'\n]*?\.(?:parquet|avro|json|sqlite))")


def machine_fault(error: BaseException, root: Path) -> MachineFault | None:
    """Return what an exception tells of the machine or of a damaged warehouse, None where it is none of theirs."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException":
        return MachineFault(_MEMORY)
    if isinstance(error, OSError) and error.errno is not None:
        return _of_errno(error.errno, error.filename, root, str(error))
    if type(error).__module__.split(".")[0] not in _LIBRARIES and not isinstance(error, OSError):
        return None
    return _of_text(str(error), root)


def _of_errno(number: int, filename: object, root: Path, text: str) -> MachineFault | None:
    where = str(os.fsdecode(filename)) if isinstance(filename, str | bytes) else str(root)
    if number in _BY_ERRNO:
        problem, remedy = _BY_ERRNO[number]
        return MachineFault(f"{where}: {problem}. {remedy}")
    if "temporary directory" in text:
        return MachineFault(f"There is no folder for temporary files ({text}). Set TMPDIR to one that can be written.")
    if number == errno.ENOENT and where.startswith(f"{root.resolve()}/"):
        return _damaged(where, "is not there")
    return None


def _of_text(text: str, root: Path) -> MachineFault | None:
    """Return what a library's message tells: libraries have no errno of theirs."""
    found = _PATH.search(text)
    where = found.group(1) if found else str(root)
    for number, pattern in _TOLD.items():
        if pattern.search(text):
            return _of_errno(number, where, root, text)
    if re.search(r"out of memory|could not allocate", text, re.I):
        return MachineFault(_MEMORY)
    if found and where.startswith(f"{root.resolve()}/"):
        return _damaged(where, "cannot be read")
    if re.search(r"TProtocolException|decompress|checksum", text):
        return _damaged(where, "holds a Parquet file that cannot be read")
    if re.search(r"malformed|not a database|file is encrypted", text, re.I):
        return _damaged(where, "holds a database that is damaged")
    return None


def _damaged(where: str, problem: str) -> MachineFault:
    return MachineFault(
        f"{where} {problem}. `iosig verify` says what else is damaged, and `iosig repair` mends what it can."
    )

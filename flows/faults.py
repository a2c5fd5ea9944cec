"""Translation of library exceptions caused by a failing machine or disk into one sentence with a remedy."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from traceback import walk_tb

from iosig.warehouse.engine_paths import original_paths
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.store.store import Store

_SPACE = "Free some space there, and run again: no incomplete data remain."
_RIGHT = ("permission denied", "Grant this user the permission, or run as a user who has it.")
_FILES = ("too many open files", "Raise the limit (`ulimit -n`).")
#: errno = problem with the file, remedy
_BY_ERRNO = {
    errno.ENOSPC: ("no space left on the disk", _SPACE),
    errno.EDQUOT: ("the owner's quota is exceeded", _SPACE),
    errno.EFBIG: ("it exceeds the maximum file size", "Raise the limit (`ulimit -f`), or use another file system."),
    errno.EACCES: _RIGHT,
    errno.EPERM: _RIGHT,
    errno.EROFS: ("its file system is read-only", "Mount it writable, or use another path."),
    errno.EIO: ("an I/O error occurred", "Check the system log. `iosig verify` reads all files."),
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.ENOMEM: ("out of memory", "Provide more memory, or lower `memory_limit` in the settings."),
    errno.EAGAIN: ("the limit of threads or processes is reached", "Raise the limit (`ulimit -u`, `ulimit -v`)."),
    errno.ESTALE: ("the file handle is stale", "Mount it again."),
}
_MEMORY = "Out of memory. Raise `memory_limit` of [engine] in the settings, or the limit of the machine."
_THREADS = "The limit of threads or processes is reached. Raise the limits (`ulimit -u`, `ulimit -v`), and run again."
_WORKER = "A worker process ended unexpectedly, possibly for lack of memory. Run again."
_NO_SERVER = (
    "Prefect's temporary server did not start, possibly because its folder is not writable. Set PREFECT_HOME to a "
    "writable folder, start a server (`prefect server start`), or run with --inline."
)
_LIBRARIES = (
    "duckdb", "_duckdb", "pyarrow", "polars", "pyiceberg", "fastavro", "sqlite3", "sqlalchemy", "json",
)  # fmt: skip
#: maximum length of a quoted library message
_MAX_MESSAGE_CHARS = 300
_SERVERS = ("prefect", "httpx", "httpcore", "websockets")
_OBJECT_STORES = ("obstore", "_obstore")
#: words in library messages by which a failing file system is recognized
_FILE_SYSTEM_MESSAGES = {
    errno.ENOSPC: re.compile(r"no space left|disk is full|disk full|database or disk is full", re.I),
    errno.EDQUOT: re.compile(r"quota exceeded", re.I),
    errno.EFBIG: re.compile(r"file too large", re.I),
    errno.EACCES: re.compile(r"permission denied|readonly database|read-only database|unable to open database", re.I),
    errno.EROFS: re.compile(r"read-only file system", re.I),
    errno.EMFILE: re.compile(r"too many open files", re.I),
    errno.EIO: re.compile(r"input/output error|disk i/o error", re.I),
}
_PATH = re.compile(r"(?:file://)?(/[^\"'\n]*?\.(?:parquet|avro|json|sqlite))")
_QUOTED = re.compile(r"[\"'](?:file://)?(/[^\"'\n]+)[\"']")
#: Rust libraries state the error number only in their text
_OS_ERROR = re.compile(r"\(os error (\d+)\)")


def machine_fault(error: BaseException, root: Path) -> MachineFault | None:
    """Translate an exception that the machine or a damaged warehouse caused; None for any other exception."""
    for cause in _chain(error):
        if fault := _classify_object_store_error(cause, root) or _classify_error(cause, root):
            return fault
    return _classify_damage(error, root)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception followed by its causes and contexts."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _classify_error(error: BaseException, root: Path) -> MachineFault | None:
    library = type(error).__module__.split(".")[0]
    if isinstance(error, MachineFault):
        return error
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException":
        return MachineFault(_MEMORY)
    if type(error).__name__ == "BrokenProcessPool":
        return MachineFault(_WORKER)
    if isinstance(error, ImportError) and "failed to map segment" in str(error):
        return MachineFault(_MEMORY)
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return MachineFault(_THREADS)
    if isinstance(error, RuntimeError) and "ephemeral Prefect API server" in str(error):
        return MachineFault(_NO_SERVER)
    if isinstance(error, OSError) and error.errno is not None:
        return _classify_errno(error.errno, _place(error, root), root, str(error))
    if library in _SERVERS:
        return _classify_server_error(error)
    if library not in _LIBRARIES and not isinstance(error, OSError):
        return None
    return _classify_message(original_paths(str(error)), root)


def _place(error: OSError, root: Path) -> str:
    """Name the file of an OSError; errors on standard output carry no file name."""
    if isinstance(error.filename, str | bytes):
        return os.fsdecode(error.filename)
    if match := _QUOTED.search(str(error)):
        return match[1]
    return "The output" if _is_library_error(error, "click", "rich", "iosig.cli.printing") else str(root)


def _is_library_error(error: BaseException, *libraries: str) -> bool:
    """Return whether the innermost frame of an exception belongs to one of these modules or packages."""
    names = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    return bool(names) and names[-1].startswith(libraries)


def _classify_errno(number: int, path: str, root: Path, text: str) -> MachineFault | None:
    if number in _BY_ERRNO:
        problem, remedy = _BY_ERRNO[number]
        return MachineFault(f"{path}: {problem}. {remedy}")
    if "temporary directory" in text:
        return MachineFault(f"No folder for temporary files ({text}). Set TMPDIR to a writable folder.")
    if number == errno.ENOENT and path.startswith(f"{root.resolve()}/"):
        return _make_damage_fault(path, "does not exist")
    return None


def _classify_server_error(error: BaseException) -> MachineFault | None:
    """Translate an error of the Prefect client's libraries that means that the server does not answer."""
    if not re.search(r"connect|timeout|reach", f"{type(error).__name__} {error}", re.I):
        return None
    url = os.environ.get("PREFECT_API_URL")
    server = f"The Prefect server of PREFECT_API_URL ({url})" if url else "The Prefect server"
    return MachineFault(f"{server} does not answer. Start it, or set PREFECT_API_URL; `iosig run --inline` needs none.")


def _classify_object_store_error(error: BaseException, root: Path) -> MachineFault | None:
    """Quote the first line of an object store's error, without the number of retries."""
    is_of_arrow = isinstance(error, OSError) and "AWS Error" in str(error)
    if type(error).__module__.split(".")[0] not in _OBJECT_STORES and not is_of_arrow:
        return None
    message = re.sub(r" in [\d.]+m?s, after .*? - ", ": ", str(error).strip().splitlines()[0])
    return MachineFault(
        f"The object store {Store(root).name} failed ({message}). Check that it is running, and the AWS environment "
        "variables. Completed work is kept: run again."
    )


def _classify_message(text: str, root: Path) -> MachineFault | None:
    """Classify a library's error by its message, since libraries set no errno."""
    match = _PATH.search(text)
    quoted = _QUOTED.search(text)
    path = match.group(1) if match else quoted.group(1) if quoted else str(root)
    if (number := _OS_ERROR.search(text)) and (fault := _classify_errno(int(number[1]), path, root, text)):
        return fault
    for code, pattern in _FILE_SYSTEM_MESSAGES.items():
        if pattern.search(text):
            return _classify_errno(code, path, root, text)
    if re.search(r"out of memory|could not allocate|failed to allocate", text, re.I):
        return MachineFault(_MEMORY)
    if match and path.startswith(f"{root.resolve()}/"):
        return _make_damage_fault(path, f"cannot be read ({text.strip().splitlines()[0][:_MAX_MESSAGE_CHARS]})")
    if re.search(r"TProtocolException|decompress|checksum", text):
        return _make_damage_fault(path, "contains an unreadable Parquet file")
    if re.search(r"malformed|not a database|file is encrypted", text, re.I):
        return _make_damage_fault(path, "contains a damaged database")
    return None


def _classify_damage(error: BaseException, root: Path) -> MachineFault | None:
    """Report the damaged metadata file of the warehouse, if a library that reads such files raised the error.

    Readers of damaged metadata raise arbitrary exceptions, so checksums confirm the damage.
    """
    if not any(
        frame.f_globals.get("__name__", "").split(".")[0] in _LIBRARIES for frame, _ in walk_tb(error.__traceback__)
    ):
        return None
    from iosig.warehouse.releases.verifying import find_damaged_metadata

    try:
        damage = find_damaged_metadata(Store(root))
    except MachineFault as fault:
        return fault
    return _make_damage_fault(f"{root / damage.path}", damage.problem) if damage else None


def _make_damage_fault(path: str, problem: str) -> MachineFault:
    return MachineFault(
        f"{path} {problem}. `iosig verify` lists damaged files, and `iosig repair` repairs them where possible."
    )

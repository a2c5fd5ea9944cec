"""Call Darshan's own library from the `darshan` wheel; runs in a child process.

Importing the wheel's package takes a second, mostly for pandas; the library itself loads in milliseconds. Only the
wheel's own file is used, never one that the system finds elsewhere: some builds labeled 3.5.0 have segments of 40
bytes instead of 32, which corrupts all but the first segment of a record. Therefore the version and the number of
counters are checked, and reading a sample log from the wheel must yield known results.
"""

from __future__ import annotations

import ctypes
import importlib.util
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.child import read_printed_text

VERSION = "3.5.0"
_REMEDY = f"Install the wheel darshan=={VERSION} again."
_METADATA_BYTES = 1024
#: buffer size for the command line, which the library copies without a limit; the job record is smaller
_COMMAND_BYTES = 1 << 14
_MAX_COUNTERS = 1000

#: module -> the library's name for its counters, and the number of integer and of real counters in a record
COUNTERS = {
    "POSIX": ("posix", 69, 17),
    "MPI-IO": ("mpiio", 51, 17),
    "STDIO": ("stdio", 14, 15),
    "H5F": ("h5f", 3, 5),
    "H5D": ("h5d", 94, 17),
    "PNETCDF_FILE": ("pnetcdf_file", 9, 8),
    "PNETCDF_VAR": ("pnetcdf_var", 120, 17),
    "BG/Q": ("bgq", 11, 1),
    "DFS": ("dfs", 52, 15),
    "DAOS": ("daos", 64, 15),
}
#: DXT record: id, rank, whether it is shared, host, number of writes and of reads; its segments follow
DXT_RECORD = struct.Struct("=Qqq64sqq")
SEGMENT_BYTES = 32
_SAMPLE = "examples/example_logs/ior_hdf5_example.darshan"


class _Job(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("uid", "start_s", "start_ns", "end_s", "end_ns", "nprocs", "jobid")),
        ("metadata", ctypes.c_char * _METADATA_BYTES),
    )


class _Mount(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_char * 3015), ("path", ctypes.c_char * 3015))


class _Module(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        *((name, ctypes.c_int) for name in ("stored_bytes", "version", "number", "is_partial")),
    )


class _Name(ctypes.Structure):
    _fields_ = (("id", ctypes.c_uint64), ("name", ctypes.c_void_p))


@dataclass(frozen=True, slots=True)
class Job:
    """The job record; times are seconds and nanoseconds since 1970."""

    uid: int
    started: tuple[int, int]
    ended: tuple[int, int]
    process_count: int
    job_id: int
    command: str
    #: pairs (mount point, file system type)
    mounts: tuple[tuple[str, str], ...]


def text(content: bytes) -> str:
    """Decode bytes from a log; bytes that are not UTF-8 are escaped."""
    return content.decode("utf-8", "backslashreplace")


@cache
def load_library() -> ctypes.CDLL:
    """Load the wheel's library; raise InputRefused for another version or build."""
    spec = importlib.util.find_spec("darshan")
    folders = [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []
    files = [
        file
        for folder in folders
        for place in (folder.parent / "darshan.libs", folder / ".dylibs")
        for file in sorted(place.glob("libdarshan-util*"))
    ]
    if len(files) != 1:
        raise InputRefused("Darshan's library is not installed as its wheel brings it.", _REMEDY)
    loaded = _declare_signatures(ctypes.CDLL(str(files[0])))
    version = text(loaded.darshan_log_get_lib_version())
    if version != VERSION:
        raise InputRefused(f"Darshan's library has version {version}.", _REMEDY)
    for name, counts in ((name, counts) for name, *counts in COUNTERS.values()):
        if [len(names) for names in _counter_names(loaded, name)] != counts:
            raise InputRefused(f"Darshan's library has other {name} counters than its version {VERSION}.", _REMEDY)
    _check_sample(loaded, folders[0] / _SAMPLE)
    return loaded


def _declare_signatures(loaded: ctypes.CDLL) -> ctypes.CDLL:
    pointer, count = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int)
    loaded.darshan_log_get_lib_version.restype = ctypes.c_char_p
    loaded.darshan_log_open.restype = ctypes.c_void_p
    loaded.darshan_log_open.argtypes = (ctypes.c_char_p,)
    loaded.darshan_log_close.restype = None
    loaded.darshan_log_close.argtypes = (ctypes.c_void_p,)
    loaded.darshan_log_get_job.argtypes = (ctypes.c_void_p, ctypes.POINTER(_Job))
    loaded.darshan_log_get_exe.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
    loaded.darshan_log_get_record.argtypes = (ctypes.c_void_p, ctypes.c_int, pointer)
    loaded.darshan_log_get_mounts.argtypes = (ctypes.c_void_p, pointer, count)
    for query in (loaded.darshan_log_get_modules, loaded.darshan_log_get_name_records):
        query.restype = None
        query.argtypes = (ctypes.c_void_p, pointer, count)
    loaded.darshan_free.restype = None
    loaded.darshan_free.argtypes = (ctypes.c_void_p,)
    return loaded


@cache
def counter_names(module: str) -> tuple[list[str], list[str]]:
    """Return a module's integer and real counter names, in the order of its records."""
    return _counter_names(load_library(), COUNTERS[module][0])


def _counter_names(loaded: ctypes.CDLL, name: str) -> tuple[list[str], list[str]]:
    return _list_names(loaded, f"{name}_counter_names"), _list_names(loaded, f"{name}_f_counter_names")


def _list_names(loaded: ctypes.CDLL, symbol: str) -> list[str]:
    try:
        entries = (ctypes.c_char_p * _MAX_COUNTERS).in_dll(loaded, symbol)
    except ValueError:
        return []
    names: list[str] = []
    for entry in entries:
        if entry is None or entry.endswith(b"NUM_INDICES"):
            break
        names.append(entry.decode())
    return names


def _check_sample(loaded: ctypes.CDLL, sample: Path) -> None:
    """Read a sample log from the wheel; the bytes of its segments must sum to the bytes in its counters."""
    if not sample.is_file():
        raise InputRefused("The log by which Darshan's library is checked is missing.", _REMEDY)
    lengths = np.concatenate([_lengths(address) for address in _sample_records(loaded, sample, "DXT_POSIX")])
    names = _counter_names(loaded, "posix")[0]
    byte_columns = [names.index(f"POSIX_BYTES_{direction}") for direction in ("READ", "WRITTEN")]
    counted = sum(
        int(_numbers(address + 16, len(names))[byte_columns].sum())
        for address in _sample_records(loaded, sample, "POSIX")
    )
    if counted <= 0 or (lengths < 0).any() or lengths.sum() != counted:
        raise InputRefused("Darshan's library reads the log that comes with it wrongly.", _REMEDY)


def _sample_records(loaded: ctypes.CDLL, sample: Path, module: str) -> Iterator[int]:
    with open_log(sample, loaded) as log:
        yield from iterate_records(log, module_numbers(log)[module])


def _lengths(address: int) -> npt.NDArray[np.int64]:
    segment_count = int(_numbers(address + DXT_RECORD.size - 16, 2).sum())
    return _numbers(address + DXT_RECORD.size, segment_count * SEGMENT_BYTES // 8).reshape(-1, SEGMENT_BYTES // 8)[:, 1]


def _numbers(address: int, count: int) -> npt.NDArray[np.int64]:
    return np.frombuffer(ctypes.string_at(address, 8 * count), np.int64)


# ---- one log


@dataclass(frozen=True, slots=True)
class Log:
    """Handle of an open log."""

    loaded: ctypes.CDLL
    handle: int


@contextmanager
def open_log(path: str | Path, loaded: ctypes.CDLL | None = None) -> Iterator[Log]:
    """Open a log; raise InputRefused with the library's own message if that fails."""
    chosen = loaded or load_library()
    handle = chosen.darshan_log_open(str(path).encode("utf-8", "surrogateescape"))
    if not handle:
        raise InputRefused(
            f"The library cannot open the log: {find_first_error(read_printed_text())}.", "Fetch the log again."
        )
    try:
        yield Log(chosen, handle)
    finally:
        chosen.darshan_log_close(handle)


def find_first_error(version: str) -> str:
    """Extract the first error in the library's output, as part of a sentence; empty if the output has none."""
    for line in version.splitlines():
        parts = line.partition("Error:")
        if parts[1]:
            return parts[2].strip().rstrip(".")[:300] or "an unspecified error"
    return ""


def iterate_records(log: Log, number: int) -> Iterator[int]:
    """Yield the address of each record of a module, which is valid until the next one; raise EOFError on an error.

    A module must be read to its end, or the log must be reopened, because the library would lose its position.
    """
    record = ctypes.c_void_p()
    record_address = ctypes.byref(record)
    get, free = log.loaded.darshan_log_get_record, log.loaded.darshan_free
    while True:
        record.value = None
        status = get(log.handle, number, record_address)
        if status < 0:
            raise EOFError
        if status < 1 or record.value is None:
            return
        try:
            yield record.value
        finally:
            free(record)


def module_numbers(log: Log) -> dict[str, int]:
    """Return the library's number of each module in the log."""
    array, count = ctypes.c_void_p(), ctypes.c_int()
    log.loaded.darshan_log_get_modules(log.handle, ctypes.byref(array), ctypes.byref(count))
    if array.value is None:
        return {}
    numbers = {text(module.name): module.number for module in (_Module * count.value).from_address(array.value)}
    log.loaded.darshan_free(array)
    return numbers


def read_job(log: Log) -> Job:
    """Read the job record, the command and the mounts; raise InputRefused if the library fails."""
    record = _Job()
    command = ctypes.create_string_buffer(_COMMAND_BYTES)
    if log.loaded.darshan_log_get_job(log.handle, ctypes.byref(record)) < 0:
        raise InputRefused(
            f"The library cannot read the job record: {find_first_error(read_printed_text())}.", "Fetch the log again."
        )
    if log.loaded.darshan_log_get_exe(log.handle, command) < 0:
        raise InputRefused(
            f"The library cannot read the command: {find_first_error(read_printed_text())}.", "Fetch the log again."
        )
    return Job(
        uid=record.uid,
        started=(record.start_s, record.start_ns),
        ended=(record.end_s, record.end_ns),
        process_count=record.nprocs,
        job_id=record.jobid,
        command=text(command.value).strip(),
        mounts=_mounts(log),
    )


def _mounts(log: Log) -> tuple[tuple[str, str], ...]:
    array, count = ctypes.c_void_p(), ctypes.c_int()
    if log.loaded.darshan_log_get_mounts(log.handle, ctypes.byref(array), ctypes.byref(count)) < 0:
        reason = f"The library cannot read the table of mounts: {find_first_error(read_printed_text())}."
        raise InputRefused(reason, "Fetch the log again.")
    if array.value is None:
        return ()
    mounts = tuple((text(mount.path), text(mount.kind)) for mount in (_Mount * count.value).from_address(array.value))
    log.loaded.darshan_free(array)
    return mounts


def read_names(log: Log) -> tuple[npt.NDArray[np.uint64], list[str]]:
    """Read the ids and names of all traced files."""
    array, count = ctypes.c_void_p(), ctypes.c_int()
    log.loaded.darshan_log_get_name_records(log.handle, ctypes.byref(array), ctypes.byref(count))
    if array.value is None:
        return np.empty(0, np.uint64), []
    table = (_Name * count.value).from_address(array.value)
    ids = np.fromiter((entry.id for entry in table), np.uint64, count.value)
    names = [text(ctypes.string_at(entry.name)) for entry in table]
    for entry in table:
        log.loaded.darshan_free(entry.name)
    log.loaded.darshan_free(array)
    return ids, names

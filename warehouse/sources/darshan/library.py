"""Darshan's own library, as the `darshan` wheel brings it, called without that package: runs in a child process.

The package's import costs a second, most of it for pandas; the library itself loads in milliseconds. Only the
wheel's own file is taken, never one that the system finds elsewhere: builds that call themselves 3.5.0 exist with
segments of 40 bytes instead of 32, and with them all but the first segment of a record is garbage. So the version is
asked for, the counters are counted, and a log that comes with the wheel must give what is known of it.
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
from iosig.warehouse.sources.files.child import printed

VERSION = "3.5.0"
_REMEDY = f"Install the wheel darshan=={VERSION} again."
_METADATA_BYTES = 1024
#: the library copies the command line without a limit of its own; the job record holds no more
_COMMAND_BYTES = 1 << 14
_MOST_COUNTERS = 1000

#: by module: the library's name for its counters, and how many integer and real ones its records have
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
#: a record of DXT: id, rank, whether it is shared, host, count of writes and of reads; then its segments
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
    """The job record: whose run, when [s and ns since 1970], how large, of which command, with what mounted."""

    uid: int
    started: tuple[int, int]
    ended: tuple[int, int]
    process_count: int
    job_id: int
    command: str
    #: (mount point, kind of file system)
    mounts: tuple[tuple[str, str], ...]


def text(content: bytes) -> str:
    """Return bytes of a log as text; those that are not UTF-8 are written out."""
    return content.decode("utf-8", "backslashreplace")


@cache
def library() -> ctypes.CDLL:
    """Load the wheel's library; raises InputRefused if it is not the one that this was written for."""
    found = importlib.util.find_spec("darshan")
    folders = [Path(folder) for folder in (found.submodule_search_locations or [])] if found else []
    files = [
        file
        for folder in folders
        for place in (folder.parent / "darshan.libs", folder / ".dylibs")
        for file in sorted(place.glob("libdarshan-util*"))
    ]
    if len(files) != 1:
        raise InputRefused("Darshan's library is not installed as its wheel brings it.", _REMEDY)
    loaded = _declared(ctypes.CDLL(str(files[0])))
    said = text(loaded.darshan_log_get_lib_version())
    if said != VERSION:
        raise InputRefused(f"Darshan's library has version {said}.", _REMEDY)
    for name, counts in ((name, counts) for name, *counts in COUNTERS.values()):
        if [len(names) for names in _counter_names(loaded, name)] != counts:
            raise InputRefused(f"Darshan's library has other {name} counters than its version {VERSION}.", _REMEDY)
    _check_sample(loaded, folders[0] / _SAMPLE)
    return loaded


def _declared(loaded: ctypes.CDLL) -> ctypes.CDLL:
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
    for ask in (loaded.darshan_log_get_modules, loaded.darshan_log_get_name_records):
        ask.restype = None
        ask.argtypes = (ctypes.c_void_p, pointer, count)
    loaded.darshan_free.restype = None
    loaded.darshan_free.argtypes = (ctypes.c_void_p,)
    return loaded


@cache
def counter_names(module: str) -> tuple[list[str], list[str]]:
    """Return the names of a module's integer and real counters, in the order of its records."""
    return _counter_names(library(), COUNTERS[module][0])


def _counter_names(loaded: ctypes.CDLL, name: str) -> tuple[list[str], list[str]]:
    return _listed(loaded, f"{name}_counter_names"), _listed(loaded, f"{name}_f_counter_names")


def _listed(loaded: ctypes.CDLL, symbol: str) -> list[str]:
    try:
        found = (ctypes.c_char_p * _MOST_COUNTERS).in_dll(loaded, symbol)
    except ValueError:
        return []
    names: list[str] = []
    for entry in found:
        if entry is None or entry.endswith(b"NUM_INDICES"):
            break
        names.append(entry.decode())
    return names


def _check_sample(loaded: ctypes.CDLL, sample: Path) -> None:
    """Read a log that comes with the wheel: its segments move the bytes that its counters tell of."""
    if not sample.is_file():
        raise InputRefused("The log by which Darshan's library is checked is missing.", _REMEDY)
    lengths = np.concatenate([_lengths(at) for at in _sample_records(loaded, sample, "DXT_POSIX")])
    names = _counter_names(loaded, "posix")[0]
    moved = [names.index(f"POSIX_BYTES_{direction}") for direction in ("READ", "WRITTEN")]
    counted = sum(int(_numbers(at + 16, len(names))[moved].sum()) for at in _sample_records(loaded, sample, "POSIX"))
    if counted <= 0 or (lengths < 0).any() or lengths.sum() != counted:
        raise InputRefused("Darshan's library reads the log that comes with it wrongly.", _REMEDY)


def _sample_records(loaded: ctypes.CDLL, sample: Path, module: str) -> Iterator[int]:
    with opened(sample, loaded) as log:
        yield from records(log, module_numbers(log)[module])


def _lengths(at: int) -> npt.NDArray[np.int64]:
    segment_count = int(_numbers(at + DXT_RECORD.size - 16, 2).sum())
    return _numbers(at + DXT_RECORD.size, segment_count * SEGMENT_BYTES // 8).reshape(-1, SEGMENT_BYTES // 8)[:, 1]


def _numbers(at: int, count: int) -> npt.NDArray[np.int64]:
    return np.frombuffer(ctypes.string_at(at, 8 * count), np.int64)


# ---- one log


@dataclass(frozen=True, slots=True)
class Log:
    """An open log: the library's handle of it."""

    loaded: ctypes.CDLL
    handle: int


@contextmanager
def opened(path: str | Path, loaded: ctypes.CDLL | None = None) -> Iterator[Log]:
    """Open a log; raises InputRefused, with the library's own words, if it does not."""
    chosen = loaded or library()
    handle = chosen.darshan_log_open(str(path).encode("utf-8", "surrogateescape"))
    if not handle:
        raise InputRefused(f"The library cannot open the log: {first_error(printed())}.", "Fetch the log anew.")
    try:
        yield Log(chosen, handle)
    finally:
        chosen.darshan_log_close(handle)


def first_error(said: str) -> str:
    """Return the first error of what the library printed, as part of a sentence; empty if there is none."""
    for line in said.splitlines():
        found = line.partition("Error:")
        if found[1]:
            return found[2].strip().rstrip(".")[:300] or "an error without a word"
    return ""


def records(log: Log, number: int) -> Iterator[int]:
    """Yield the address of each record of a module, which is good until the next one; raises EOFError on an error.

    A module must be read to its end, or the log opened anew: the library does not find its way otherwise.
    """
    record = ctypes.c_void_p()
    where = ctypes.byref(record)
    get, free = log.loaded.darshan_log_get_record, log.loaded.darshan_free
    while True:
        record.value = None
        found = get(log.handle, number, where)
        if found < 0:
            raise EOFError
        if found < 1 or record.value is None:
            return
        try:
            yield record.value
        finally:
            free(record)


def module_numbers(log: Log) -> dict[str, int]:
    """Return the library's number of each module that it finds in the log."""
    array, count = ctypes.c_void_p(), ctypes.c_int()
    log.loaded.darshan_log_get_modules(log.handle, ctypes.byref(array), ctypes.byref(count))
    if array.value is None:
        return {}
    found = {text(module.name): module.number for module in (_Module * count.value).from_address(array.value)}
    log.loaded.darshan_free(array)
    return found


def job(log: Log) -> Job:
    """Read the job record, the command and the mounts; raises InputRefused where the library cannot."""
    record = _Job()
    command = ctypes.create_string_buffer(_COMMAND_BYTES)
    if log.loaded.darshan_log_get_job(log.handle, ctypes.byref(record)) < 0:
        raise InputRefused(f"The library cannot read the job record: {first_error(printed())}.", "Fetch the log anew.")
    if log.loaded.darshan_log_get_exe(log.handle, command) < 0:
        raise InputRefused(f"The library cannot read the command: {first_error(printed())}.", "Fetch the log anew.")
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
        reason = f"The library cannot read the table of mounts: {first_error(printed())}."
        raise InputRefused(reason, "Fetch the log anew.")
    if array.value is None:
        return ()
    found = tuple((text(mount.path), text(mount.kind)) for mount in (_Mount * count.value).from_address(array.value))
    log.loaded.darshan_free(array)
    return found


def names(log: Log) -> tuple[npt.NDArray[np.uint64], list[str]]:
    """Return the ids and the names of all that was traced."""
    array, count = ctypes.c_void_p(), ctypes.c_int()
    log.loaded.darshan_log_get_name_records(log.handle, ctypes.byref(array), ctypes.byref(count))
    if array.value is None:
        return np.empty(0, np.uint64), []
    table = (_Name * count.value).from_address(array.value)
    ids = np.fromiter((entry.id for entry in table), np.uint64, count.value)
    found = [text(ctypes.string_at(entry.name)) for entry in table]
    for entry in table:
        log.loaded.darshan_free(entry.name)
    log.loaded.darshan_free(array)
    return ids, found

"""Execute one rank's steps, in order, on files that only this rank has open.

A POSIX call names a file, not a descriptor: it uses the descriptor of that name that the rank opened last. MPI-IO calls
become the equivalent POSIX calls, each made by its own rank: `MPI_File_write_at` is a `pwrite` at the offset that the
file's view gives. Traces lack the layout of derived file types; their bytes are contiguous here.
"""

from __future__ import annotations

import errno
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

from iosig.traces.replay.functions import READING, WRITING, Verb
from iosig.traces.replay.libc import O_CREAT, O_EXCL, Calls, NotedCalls, Place, Stream
from iosig.traces.replay.scripts import ABSENT, Script
from iosig.warehouse.sources.recorder.requests import TYPE_BYTES

_T = TypeVar("_T")
#: MPI's access modes (MPI 4.1, section 14.2.1, as Open MPI and MPICH number them)
_CREATE, _RDONLY, _WRONLY, _DELETE_ON_CLOSE, _EXCL, _APPEND = 1, 2, 4, 16, 64, 128

#: verb(file, other, size, offset, flags); reads and writes return the number of bytes moved
Handler = Callable[[int, int, int, int, int], object]


@dataclass(slots=True)
class Done:
    """Replay results of one rank: calls by function, bytes requested and moved, failures by function and error."""

    rank: int
    counts: Counter[str] = field(default_factory=Counter)
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    read_bytes: int = 0
    written_bytes: int = 0
    asked_read_bytes: int = 0
    asked_written_bytes: int = 0
    end_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Sync:
    """A barrier: the rank waits until all members of this communicator have arrived."""

    communicator: int


@dataclass(slots=True)
class _Handle:
    """A file opened by MPI-IO: its view begins at `start` and counts in `unit` bytes; `pointer` is in bytes."""

    name: str
    place: Place
    descriptor: int
    communicator: int
    deletes: bool
    start: int = 0
    unit: int = 1
    pointer: int = 0


class Executor:
    """Executor of steps by POSIX calls; subclasses override some of them.

    leads: by communicator, whether this rank performs the operations that a single rank performs for all.
    """

    def __init__(self, script: Script, calls: Calls | NotedCalls, leads: Mapping[int, bool]) -> None:
        self.script = script
        self.calls = calls
        self._leads = leads
        self._descriptors: defaultdict[int, list[int]] = defaultdict(list)
        self._streams: defaultdict[int, list[Stream]] = defaultdict(list)
        self._handles: dict[int, _Handle] = {}
        self._named = [name[1:] for name in script.names]
        self.handlers: dict[int, Handler] = {int(verb): handler for verb, handler in self._table().items()}

    def _table(self) -> dict[Verb, Handler]:
        return {**self._posix(), **self._map_stdio_verbs(), **self._mpi()}

    # ---- descriptors

    def _posix(self) -> dict[Verb, Handler]:
        calls, names, place, at = self.calls, self._named, self.script.places, self._descriptor
        return {
            Verb.OPEN: lambda f, o, s, n, g: self._descriptors[f].append(calls.open(names[f], place[f], g, n)),
            Verb.CREAT: lambda f, o, s, n, g: self._descriptors[f].append(calls.open(names[f], place[f], 0o1101, n)),
            Verb.CLOSE: lambda f, o, s, n, g: calls.close(names[f], _get_open_file(self._descriptors, f).pop()),
            Verb.READ: lambda f, o, s, n, g: calls.read(names[f], at(f), s),
            Verb.WRITE: lambda f, o, s, n, g: calls.write(names[f], at(f), s),
            Verb.PREAD: lambda f, o, s, n, g: calls.pread(names[f], at(f), s, n),
            Verb.PWRITE: lambda f, o, s, n, g: calls.pwrite(names[f], at(f), s, n),
            Verb.READV: lambda f, o, s, n, g: calls.readv(names[f], at(f), s, n),
            Verb.WRITEV: lambda f, o, s, n, g: calls.writev(names[f], at(f), s, n),
            Verb.LSEEK: lambda f, o, s, n, g: calls.lseek(names[f], at(f), n, g),
            Verb.FSYNC: lambda f, o, s, n, g: calls.fsync(names[f], at(f)),
            Verb.FDATASYNC: lambda f, o, s, n, g: calls.fdatasync(names[f], at(f)),
            Verb.FTRUNCATE: lambda f, o, s, n, g: calls.ftruncate(names[f], at(f), s),
            Verb.TRUNCATE: lambda f, o, s, n, g: calls.truncate(names[f], place[f], s),
            Verb.STAT: lambda f, o, s, n, g: calls.stat(names[f], place[f]),
            Verb.LSTAT: lambda f, o, s, n, g: calls.stat(names[f], place[f]),
            Verb.FSTAT: lambda f, o, s, n, g: calls.fstat(names[f], at(f)),
            Verb.ACCESS: lambda f, o, s, n, g: calls.access(names[f], place[f], g),
            Verb.UNLINK: lambda f, o, s, n, g: calls.unlink(names[f], place[f]),
            Verb.REMOVE: lambda f, o, s, n, g: self._remove(f),
            Verb.RENAME: lambda f, o, s, n, g: calls.rename(names[f], place[f], names[o], place[o]),
            Verb.MKDIR: lambda f, o, s, n, g: calls.mkdir(names[f], place[f], n),
            Verb.RMDIR: lambda f, o, s, n, g: calls.rmdir(names[f], place[f]),
        }

    def _descriptor(self, file: int) -> int:
        if self._descriptors[file]:
            return self._descriptors[file][-1]
        return self._stream(file).fileno()

    def _remove(self, file: int) -> None:
        place = self.script.places[file]
        try:
            self.calls.unlink(self._named[file], place)
        except IsADirectoryError:
            self.calls.rmdir(self._named[file], place)

    # ---- buffered files

    def _map_stdio_verbs(self) -> dict[Verb, Handler]:
        calls, names, place, at = self.calls, self._named, self.script.places, self._stream
        return {
            Verb.FOPEN: lambda f, o, s, n, g: self._streams[f].append(calls.fopen(names[f], place[f], names[o])),
            Verb.FDOPEN: lambda f, o, s, n, g: self._fdopen(f, names[o]),
            Verb.FCLOSE: lambda f, o, s, n, g: calls.fclose(names[f], _get_open_file(self._streams, f).pop()),
            Verb.FREAD: lambda f, o, s, n, g: calls.fread(names[f], at(f), s, g),
            Verb.FWRITE: lambda f, o, s, n, g: calls.fwrite(names[f], at(f), s, g),
            Verb.FPRINTF: lambda f, o, s, n, g: calls.fprintf(names[f], at(f), s),
            Verb.FSEEK: lambda f, o, s, n, g: calls.fseek(names[f], at(f), n, g),
            Verb.FTELL: lambda f, o, s, n, g: calls.ftell(names[f], at(f)),
            Verb.FILENO: lambda f, o, s, n, g: calls.fileno(names[f], at(f)),
        }

    def _stream(self, file: int) -> Stream:
        return _get_open_file(self._streams, file)[-1]

    def _fdopen(self, file: int, mode: str) -> None:
        descriptor = _get_open_file(self._descriptors, file).pop()
        self._streams[file].append(self.calls.fdopen(self._named[file], descriptor, mode))

    # ---- MPI-IO as POSIX calls

    def _mpi(self) -> dict[Verb, Handler]:
        return {
            Verb.MPI_OPEN: lambda f, o, s, n, g: self._mpi_open(f, o, s, g),
            Verb.MPI_CLOSE: lambda f, o, s, n, g: self._mpi_close(f),
            Verb.MPI_READ_AT: lambda f, o, s, n, g: self._mpi_at(f, s, n, is_read=True),
            Verb.MPI_WRITE_AT: lambda f, o, s, n, g: self._mpi_at(f, s, n, is_read=False),
            Verb.MPI_READ: lambda f, o, s, n, g: self._mpi_next(f, s, is_read=True),
            Verb.MPI_WRITE: lambda f, o, s, n, g: self._mpi_next(f, s, is_read=False),
            Verb.MPI_SEEK: lambda f, o, s, n, g: self._mpi_seek(f, n, g),
            Verb.MPI_SET_VIEW: lambda f, o, s, n, g: self._mpi_view(f, o, n),
            Verb.MPI_SET_SIZE: lambda f, o, s, n, g: self._mpi_resize(f, s, reserve=False),
            Verb.MPI_PREALLOCATE: lambda f, o, s, n, g: self._mpi_resize(f, s, reserve=True),
            Verb.MPI_GET_SIZE: lambda f, o, s, n, g: self._mpi_on(self.calls.fstat, f),
            Verb.MPI_SYNC: lambda f, o, s, n, g: self._mpi_on(self.calls.fsync, f),
        }

    def _handle(self, file: int) -> _Handle:
        return _get_open_file(self._handles, file)

    def _mpi_on(self, call: Callable[..., object], file: int, *arguments: int) -> None:
        handle = self._handle(file)
        call(handle.name, handle.descriptor, *arguments)

    def _mpi_open(self, file: int, path: int, communicator: int, mode: int) -> None:
        flags = 0 if mode & _RDONLY else 1 if mode & _WRONLY else 2
        flags |= O_CREAT if mode & _CREATE else 0
        # If several ranks create a file together with O_EXCL, only the first would succeed.
        flags |= O_EXCL if mode & _EXCL and communicator == ABSENT else 0
        name, place = self._named[path], self.script.places[path]
        descriptor = self.calls.open(name, place, flags, 0o644 if flags & O_CREAT else ABSENT)
        if file in self._handles:
            self._mpi_close(file)
        handle = _Handle(name, place, descriptor, communicator, bool(mode & _DELETE_ON_CLOSE))
        handle.pointer = self.calls.fstat(name, descriptor) if mode & _APPEND else 0
        self._handles[file] = handle

    def _mpi_close(self, file: int) -> None:
        handle = self._handle(file)
        del self._handles[file]
        self.calls.close(handle.name, handle.descriptor)
        if handle.deletes and self._leads.get(handle.communicator, True):
            self.calls.unlink(handle.name, handle.place)

    def _mpi_at(self, file: int, size: int, offset: int, *, is_read: bool) -> int:
        handle = self._handle(file)
        place = handle.start + offset * handle.unit
        return (self.calls.pread if is_read else self.calls.pwrite)(handle.name, handle.descriptor, size, place)

    def _mpi_next(self, file: int, size: int, *, is_read: bool) -> int:
        handle = self._handle(file)
        call = self.calls.pread if is_read else self.calls.pwrite
        moved_bytes: int = call(handle.name, handle.descriptor, size, handle.pointer)
        handle.pointer += moved_bytes
        return moved_bytes

    def _mpi_seek(self, file: int, offset: int, whence: int) -> None:
        handle = self._handle(file)
        ends = {0: handle.start, 1: handle.pointer}
        base = ends[whence] if whence in ends else self.calls.fstat(handle.name, handle.descriptor)
        if base + offset * handle.unit < 0:
            raise OSError(errno.EINVAL, "before the file")
        handle.pointer = base + offset * handle.unit

    def _mpi_view(self, file: int, types: int, start: int) -> None:
        handle = self._handle(file)
        element, _, file_type = self._named[types].partition(" ")
        if file_type != element or element not in TYPE_BYTES:
            self.calls.notes["derived datatype without layout in the trace: treated as contiguous bytes"] += 1
        handle.start, handle.unit, handle.pointer = start, TYPE_BYTES.get(element, 1), start

    def _mpi_resize(self, file: int, size: int, *, reserve: bool) -> None:
        if self._leads.get(self._handle(file).communicator, True):
            self._mpi_on(self.calls.allocate if reserve else self.calls.ftruncate, file, size)

    # ---- the end

    def close(self) -> None:
        """Close all files that the trace leaves open; errors are ignored, as they belong to no call."""
        for stream in chain.from_iterable(self._streams.values()):
            with suppress(OSError):
                stream.close()
        handles = (handle.descriptor for handle in self._handles.values())
        for descriptor in chain(*self._descriptors.values(), handles):
            with suppress(OSError):
                self.calls.close("", descriptor)
        self._streams.clear()
        self._descriptors.clear()
        self._handles.clear()


def _get_open_file(open_files: Mapping[int, _T], file: int) -> _T:
    """Return the open file with this number; raise OSError as for a bad descriptor if none is open."""
    if not open_files.get(file):
        raise OSError(errno.EBADF, "not open")
    return open_files[file]


def run(
    executor: Executor, *, is_timed: bool, synced: Mapping[int, int], result: Done, start_s: float
) -> Generator[float | Sync, None, None]:
    """Execute a rank's steps; yield the time to continue (monotonic clock [s], 0 for now), or a barrier to wait at.

    synced: maps the script's communicator numbers to those that ranks wait on; other communicators are skipped. The
    delta times accumulate from the first step: a late step shortens the next wait, so that drift does not accumulate.
    The calls themselves take as long as they take on this machine.
    """
    script, handlers, functions = executor.script, executor.handlers, executor.script.functions
    clock, due = time.monotonic, start_s
    for rows in script.rows():
        for verb, function, file, other, size, offset, flags, wait_s, hold_s in rows:
            if is_timed:
                due += wait_s
            yield due if is_timed else 0.0
            if verb in handlers:
                began = clock()
                executor.calls.function = functions[function]
                _execute(handlers[verb], functions[function], (verb, file, other, size, offset, flags), result)
                due += clock() - began
            elif verb == Verb.SYNC and size in synced:
                yield Sync(synced[size])
                due = max(due, clock()) + hold_s if is_timed else due
    executor.close()
    result.notes.update(executor.calls.notes)
    result.end_s = clock()


def _execute(handler: Handler, function: str, step: tuple[int, int, int, int, int, int], result: Done) -> None:
    verb, file, other, size, offset, flags = step
    result.counts[function] += 1
    moved_bytes: Any = 0
    try:
        moved_bytes = handler(file, other, size, offset, flags)
    except (OSError, ValueError, OverflowError, MemoryError) as error:
        result.failures[function, error_name(error)] += 1
    if verb in READING:
        result.read_bytes += moved_bytes
        result.asked_read_bytes += size
    elif verb in WRITING:
        result.written_bytes += moved_bytes
        result.asked_written_bytes += size


def error_name(error: BaseException) -> str:
    """Return the errno name of a failed call."""
    if isinstance(error, OSError):
        # a stream that is not open for the requested operation raises an error without a number
        return errno.errorcode.get(error.errno or errno.EBADF, str(error.errno))
    return "ENOMEM" if isinstance(error, MemoryError) else "EINVAL"

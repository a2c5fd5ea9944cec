"""Naive implementation of `iosig.warehouse.sources.recorder.requests`: call by call, with a state per file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SIZES = {"MPI_BYTE": 1, "MPI_CHAR": 1, "MPI_INT": 4, "MPI_DOUBLE": 8}
UNKNOWN = {"???", "MPI_FILE_NULL", "MPI_FILE_UNKNOWN"}
POSIX_SIZES = {"read": 2, "write": 2, "readv": 1, "writev": 1, "pread": 2, "pwrite": 2, "fprintf": 1}
OPENS = {"open", "open64", "creat", "fopen"}


@dataclass
class Call:
    """A traced call."""

    rank: int
    level: int
    function: str
    arguments: str


@dataclass
class Request:
    """Requested range of a read or write; None if unknown."""

    rank: int
    module: str
    direction: str
    path: str | None
    offset: int | None
    size: int | None
    is_nested: bool
    is_async: bool


class File:
    """State of a POSIX file of one name in a process."""

    def __init__(self) -> None:
        self.place: int | None = None
        self.holders = 0
        self.lost_holders = 0
        self.was_opened = False
        self.appends = False
        self.route = ""


class Handle:
    """State of an MPI file in a process."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.start: int | None = None
        self.unit: int | None = None
        self.place: int | None = None


class Process:
    """State of a rank, updated call by call."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.copied = False
        self.files: dict[str, File] = {}
        self.handles: dict[str, Handle] = {}

    def posix(self, function: str, words: list[str], nested: bool) -> Request | None:
        name = words[3 if function in ("fread", "fwrite") else 0]
        file = self.files.setdefault(name, File())
        if function in OPENS:
            self._open(file, function, words)
        elif function in ("close", "fclose"):
            self._close(file)
        elif function in ("lseek", "fseek"):
            self._seek(file, "f" if function == "fseek" else "d", int(words[1]), words[2])
        elif function == "fcntl" and words[1] == "4":
            file.appends = bool(int(words[2]) & 1024)
        elif function in ("pread", "pwrite"):
            lost = function == "pwrite" and file.appends
            size = int(words[2]) if int(words[2]) >= 0 else None
            return self._request(function[1:], name, None if lost else int(words[3]), size, nested)
        elif function in POSIX_SIZES or function in ("fread", "fwrite"):
            return self._sequential(file, function, name, words, nested)
        return None

    def _open(self, file: File, function: str, words: list[str]) -> None:
        file.lost_holders |= int(self.copied and file.was_opened)
        file.was_opened = True
        file.holders += 1
        file.route = "f" if function == "fopen" else "d"
        is_only = file.holders + file.lost_holders <= 1 and words[0] not in UNKNOWN
        file.place = 0 if is_only else None
        if function == "fopen":
            file.appends = words[1].startswith("a")
        else:
            file.appends = function != "creat" and bool(int(words[1]) & 1024)

    @staticmethod
    def _close(file: File) -> None:
        if file.holders + file.lost_holders > 1:
            file.place = None
        file.holders = max(0, file.holders - 1)

    @staticmethod
    def _moves(file: File, route: str) -> bool:
        """Return whether the file pointer remains known after a step by this route."""
        strays = file.route not in ("", route)
        file.route = route
        if strays or file.holders + file.lost_holders > 1:
            file.place = None
            return False
        return True

    def _seek(self, file: File, route: str, offset: int, whence: str) -> None:
        if not self._moves(file, route):
            return
        if whence == "0" and offset >= 0:
            file.place = offset
        elif whence == "1" and file.place is not None and file.place + offset >= 0:
            file.place += offset
        else:
            file.place = None

    def _sequential(self, file: File, function: str, name: str, words: list[str], nested: bool) -> Request:
        if function in ("fread", "fwrite"):
            size = int(words[1]) * int(words[2])
        else:
            size = int(words[POSIX_SIZES[function]]) - (function == "fprintf")
        asked = size if size >= 0 else None
        way = "read" if "read" in function else "write"
        place = None
        if self._moves(file, "f" if function.startswith("f") else "d") and name not in UNKNOWN:
            if way == "write" and file.appends:
                file.place = None
            place = file.place
            file.place = None if place is None or asked is None else place + asked
        return self._request(way, name, place, asked, nested)

    def _request(self, way: str, name: str, offset: int | None, size: int | None, nested: bool) -> Request:
        path = None if name in UNKNOWN else name
        return Request(self.rank, "POSIX", way, path, offset, size, nested, False)

    def mpi(self, function: str, words: list[str], nested: bool) -> Request | None:
        kind = function.removeprefix("MPI_File_")
        if kind == "open":
            handle = self.handles.setdefault(words[4], Handle())
            handle.path, handle.start, handle.unit = words[1], 0, 1
            handle.place = None if int(words[2]) & 128 else 0
            return None
        handle = self.handles.setdefault(words[0], Handle())
        if kind == "set_view":
            is_plain = words[2] in SIZES and words[2] == words[3] and int(words[1]) >= 0
            handle.start = int(words[1]) if is_plain else None
            handle.unit = SIZES[words[2]] if is_plain else None
            handle.place = handle.start
        elif kind == "seek":
            self._mpi_seek(handle, int(words[1]), words[2])
        elif "read" in kind or "write" in kind:
            return self._mpi_request(handle, kind, words, nested)
        return None

    @staticmethod
    def _mpi_seek(handle: Handle, offset: int, whence: str) -> None:
        if handle.unit is None or handle.start is None:
            handle.place = None
        elif whence == "MPI_SEEK_SET" and offset >= 0:
            handle.place = handle.start + offset * handle.unit
        elif whence == "MPI_SEEK_CUR" and handle.place is not None and handle.place + offset * handle.unit >= 0:
            handle.place += offset * handle.unit
        else:
            handle.place = None

    def _mpi_request(self, handle: Handle, kind: str, words: list[str], nested: bool) -> Request:
        at = 1 if "_at" in kind else 0
        count, type_ = int(words[2 + at]), words[3 + at]
        size = count * SIZES[type_] if type_ in SIZES and count >= 0 else None
        offset = None
        if at and handle.unit is not None and handle.start is not None and int(words[1]) >= 0:
            offset = handle.start + int(words[1]) * handle.unit
        elif not at and "shared" not in kind and "ordered" not in kind:
            offset = handle.place
            handle.place = None if offset is None or size is None else offset + size
        is_async = kind.startswith("i") or kind.endswith("_begin")
        way = "read" if "read" in kind else "write"
        return Request(self.rank, "MPIIO", way, handle.path, offset, size, nested, is_async)


def requests(calls: Iterable[Call], posix: Iterable[str], mpi: Iterable[str]) -> list[Request]:
    """Return the requests of calls in order; `posix` and `mpi` name the functions that access files."""
    of_posix, of_mpi = set(posix), set(mpi)
    found: list[Request] = []
    process: Process | None = None
    above: list[tuple[int, bool]] = []
    for call in calls:
        if process is None or process.rank != call.rank:
            process, above = Process(call.rank), []
        while above and above[-1][0] >= call.level:
            above.pop()
        nested = any(touches for _, touches in above)
        above.append((call.level, call.function in of_posix | of_mpi))
        words = call.arguments.split(" ")
        if call.function in ("dup", "dup2") or (call.function == "fcntl" and words[1] in ("0", "1030")):
            process.copied = True
        elif call.function in of_posix:
            request = process.posix(call.function, words, nested)
            found += [request] if request else []
        elif call.function in of_mpi:
            request = process.mpi(call.function, words, nested)
            found += [request] if request else []
    return found

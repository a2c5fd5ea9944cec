"""Make the C library calls of a replay: one per traced call, with its arguments, within the replay folder.

`Calls` makes them; `NotedCalls` also logs each call and its times in the format of recorder2text.
"""

from __future__ import annotations

import io
import mmap
import os
import time
from collections import Counter
from collections.abc import Callable
from typing import IO, Any

from iosig.traces.replay.sandbox import Sandbox

#: maximum number of bytes that Linux moves in one call
MAX_CALL_BYTES = 0x7FFFF000
_FILLED_BYTES = 16 << 20
_MAX_PARTS = 1024
#: flags of open as x86 numbers them, as in traces, with their values on this machine
_FLAGS = (
    *((0o100, os.O_CREAT), (0o200, os.O_EXCL), (0o1000, os.O_TRUNC), (0o2000, os.O_APPEND), (0o4000, os.O_NONBLOCK)),
    *((0o10000, os.O_DSYNC), (0o4010000, os.O_SYNC), (0o40000, os.O_DIRECT), (0o200000, os.O_DIRECTORY)),
    (0o1000000, os.O_NOATIME),
)
O_CREAT, O_EXCL, O_TRUNC, O_APPEND = 0o100, 0o200, 0o1000, 0o2000
#: flags of open for the first letter of a stream's mode
STREAM_FLAGS = {"r": 0, "w": O_CREAT | O_TRUNC, "a": O_CREAT | O_APPEND}

Place = tuple[str, ...]
#: a buffered file, like the C library's FILE
Stream = io.BufferedReader | io.BufferedWriter | io.BufferedRandom


def flags_here(traced: int) -> int:
    """Convert traced flags of open to this machine's; flags unknown to a replay are dropped."""
    return (
        (traced & 0o3)
        | sum(local for bits, local in _FLAGS if traced & bits == bits and bits != 0o10000)
        | (os.O_DSYNC if traced & 0o4010000 == 0o10000 else 0)
    )


def content(size: int) -> mmap.mmap:
    """Return page-aligned data to write, which does not compress; zeros beyond the first 16 MiB."""
    memory = mmap.mmap(-1, max(mmap.PAGESIZE, min(size, MAX_CALL_BYTES)))
    filled = min(len(memory), _FILLED_BYTES)
    memory[:filled] = os.urandom(filled)
    return memory


class Calls:
    """The C library's file calls, as methods with the trace's function and file names.

    memory: the data to write. notes: counts of deviations from the trace.
    """

    def __init__(self, sandbox: Sandbox, memory: mmap.mmap) -> None:
        self._sandbox = sandbox
        self._memory = memoryview(memory)
        self._direct: set[int] = set()
        self.notes: Counter[str] = Counter()
        #: traced name of the current call
        self.function = ""

    def open(self, name: str, place: Place, flags: int, mode: int) -> int:
        """Open a file, without O_DIRECT if the file system refuses that."""
        local_flags = flags_here(flags)
        permissions = 0o666 if mode < 0 else mode
        try:
            descriptor = self._sandbox.open(place, local_flags, permissions)
        except OSError as error:
            if not (local_flags & os.O_DIRECT and error.errno == 22):
                raise
            self.notes["opened without O_DIRECT, which the file system refuses"] += 1
            return self._sandbox.open(place, local_flags & ~os.O_DIRECT, permissions)
        if local_flags & os.O_DIRECT:
            self._direct.add(descriptor)
        return descriptor

    def close(self, name: str, descriptor: int) -> None:
        """Close a file descriptor, and forget its O_DIRECT flag."""
        self._direct.discard(descriptor)
        os.close(descriptor)

    def read(self, name: str, descriptor: int, size: int) -> int:
        """Read up to `size` bytes at the file pointer; return the number of bytes read."""
        if descriptor in self._direct:
            return os.readv(descriptor, [self._memory[:size]])
        return len(os.read(descriptor, min(size, MAX_CALL_BYTES)))

    def write(self, name: str, descriptor: int, size: int) -> int:
        """Write up to `size` bytes at the file pointer; return the number of bytes written."""
        return os.write(descriptor, self._memory[:size])

    def pread(self, name: str, descriptor: int, size: int, offset: int) -> int:
        """Read up to `size` bytes at an offset; return the number of bytes read."""
        if descriptor in self._direct:
            return os.preadv(descriptor, [self._memory[:size]], offset)
        return len(os.pread(descriptor, min(size, MAX_CALL_BYTES), offset))

    def pwrite(self, name: str, descriptor: int, size: int, offset: int) -> int:
        """Write up to `size` bytes at an offset; return the number of bytes written."""
        return os.pwrite(descriptor, self._memory[:size], offset)

    def readv(self, name: str, descriptor: int, size: int, parts: int) -> int:
        """Read into several buffers of equal size, because the trace has only their total size."""
        return os.readv(descriptor, [bytearray(piece) for piece in _pieces(size, parts)])

    def writev(self, name: str, descriptor: int, size: int, parts: int) -> int:
        """Write from several buffers of equal size."""
        return os.writev(descriptor, [self._memory[:piece] for piece in _pieces(size, parts)])

    def lseek(self, name: str, descriptor: int, offset: int, whence: int) -> None:
        """Move the file pointer to an offset."""
        os.lseek(descriptor, offset, whence)

    def fsync(self, name: str, descriptor: int) -> None:
        """Flush the file's data and metadata to storage."""
        os.fsync(descriptor)

    def fdatasync(self, name: str, descriptor: int) -> None:
        """Flush the file's data to storage."""
        os.fdatasync(descriptor)

    def ftruncate(self, name: str, descriptor: int, size: int) -> None:
        """Resize an open file to `size` bytes."""
        os.ftruncate(descriptor, size)

    def truncate(self, name: str, place: Place, size: int) -> None:
        """Resize a file to `size` bytes."""
        descriptor = self._sandbox.open(place, os.O_WRONLY)
        try:
            os.ftruncate(descriptor, size)
        finally:
            os.close(descriptor)

    def allocate(self, name: str, descriptor: int, size: int) -> None:
        """Reserve disk space for the first `size` bytes of an open file."""
        os.posix_fallocate(descriptor, 0, size)

    def stat(self, name: str, place: Place) -> None:
        """Query a file's metadata without following links."""
        self._sandbox.stat(place)

    def fstat(self, name: str, descriptor: int) -> int:
        """Query an open file's metadata; return its size."""
        return os.fstat(descriptor).st_size

    def access(self, name: str, place: Place, mode: int) -> None:
        """Check whether a file may be accessed."""
        if not self._sandbox.access(place, mode):
            self._sandbox.stat(place)
            raise PermissionError(13, "access")

    def unlink(self, name: str, place: Place) -> None:
        """Remove a file under the folder."""
        self._sandbox.unlink(place)

    def rename(self, name: str, place: Place, new_name: str, new: Place) -> None:
        """Rename a file under the folder."""
        self._sandbox.rename(place, new)

    def mkdir(self, name: str, place: Place, mode: int) -> None:
        """Create a folder, by default with mode 0777."""
        self._sandbox.mkdir(place, 0o777 if mode < 0 else mode)

    def rmdir(self, name: str, place: Place) -> None:
        """Remove an empty folder under the sandbox."""
        self._sandbox.rmdir(place)

    def fopen(self, name: str, place: Place, mode: str) -> Stream:
        """Open a buffered stream on a file."""
        access = os.O_RDWR if "+" in mode else os.O_RDONLY if mode[0] == "r" else os.O_WRONLY
        flags = flags_here(STREAM_FLAGS[mode[0]]) | (os.O_EXCL if "x" in mode else 0)
        return self._stream(self._sandbox.open(place, access | flags, 0o666), mode)

    def fdopen(self, name: str, descriptor: int, mode: str) -> Stream:
        """Open a buffered stream on an open descriptor; closing the stream closes the descriptor."""
        return self._stream(descriptor, mode)

    def _stream(self, descriptor: int, mode: str) -> Stream:
        try:
            size = max(512, os.fstat(descriptor).st_blksize)
            opened: Any = os.fdopen(descriptor, mode[0] + "b" + ("+" if "+" in mode else ""), buffering=size)
        except (OSError, ValueError):
            os.close(descriptor)
            raise
        stream: Stream = opened
        return stream

    def fclose(self, name: str, stream: Stream) -> None:
        """Close a buffered file, which flushes its buffer."""
        stream.close()

    def fread(self, name: str, stream: IO[bytes], size: int, unit: int) -> int:
        """Read up to `size` bytes through the buffer; return the number of bytes read."""
        moved_bytes = 0
        while moved_bytes < size and (got := len(stream.read(min(size - moved_bytes, _FILLED_BYTES)))):
            moved_bytes += got
        return moved_bytes

    def fwrite(self, name: str, stream: IO[bytes], size: int, unit: int) -> int:
        """Write `size` bytes into the buffer; return the number of bytes written."""
        moved_bytes = 0
        while moved_bytes < size:
            moved_bytes += stream.write(self._memory[: size - moved_bytes])
        return moved_bytes

    def fprintf(self, name: str, stream: IO[bytes], size: int) -> int:
        """Write text of `size` bytes."""
        return stream.write(self._memory[:size])

    def fseek(self, name: str, stream: IO[bytes], offset: int, whence: int) -> None:
        """Move the pointer of a buffered file."""
        stream.seek(offset, whence)

    def ftell(self, name: str, stream: IO[bytes]) -> None:
        """Query the pointer of a buffered file."""
        stream.tell()

    def fileno(self, name: str, stream: IO[bytes]) -> None:
        """Query the descriptor of a buffered file."""
        stream.fileno()


def _pieces(size: int, parts: int) -> list[int]:
    count = max(1, min(parts, _MAX_PARTS, size or 1))
    return [size // count + (place < size % count) for place in range(count)]


# ---- logged calls


#: Recorder's log format of call arguments: the name, and the further arguments, from the second on
_TEXTS = {
    **dict.fromkeys(("ftruncate", "truncate", "access", "mkdir", "rename", "fopen", "fdopen"), "{0} {2}"),
    **dict.fromkeys(("readv", "writev", "lseek", "fseek"), "{0} {2} {3}"),
    **dict.fromkeys(("read", "write"), "{0} %p {2}"),
    **dict.fromkeys(("pread", "pwrite"), "{0} %p {2} {3}"),
    **dict.fromkeys(("stat", "fstat"), "{0} %p"),
    "allocate": "{0} 0 {2}",
}


def _text(method: str, function: str, name: str, arguments: tuple[Any, ...]) -> str:
    """Return the arguments of a call as Recorder logs them."""
    if function.startswith("creat"):
        return f"{name} {arguments[2]}"
    if method == "open":
        return f"{name} {arguments[1]}" + (f" {arguments[2]}" if arguments[2] >= 0 else "")
    if method in ("fread", "fwrite"):
        return f"%p {arguments[2]} {arguments[1] // max(1, arguments[2])} {name}"
    if method == "fprintf":
        return f"{name} {arguments[1] + 1}"
    # the first argument of the C library's own stat functions is a version
    first = "1 " if function.startswith("__") else ""
    return first + _TEXTS.get(method, "{0}").format(name, *arguments)


_NAMES = {"open": "open", "allocate": "posix_fallocate"}


class NotedCalls:
    """Calls that are logged in the format of recorder2text, one line each, including failed calls."""

    def __init__(self, calls: Calls, lines: IO[str], function: Callable[[str], str | None]) -> None:
        self._calls = calls
        self._lines = lines
        self._function = function
        self.notes = calls.notes
        self.function = ""
        self.start_s = 0.0

    def __getattr__(self, method: str) -> Any:
        called = getattr(self._calls, method)

        def record_call(name: str, *arguments: Any) -> Any:
            began = time.monotonic()
            try:
                return called(name, *arguments)
            finally:
                ceased = time.monotonic()
                function = self._function(self.function) or _NAMES.get(method, method)
                text = _text(method, function, name, arguments)
                self._lines.write(f"{began - self.start_s:.7f} {ceased - self.start_s:.7f} {function} 0 0 ( {text} )\n")

        self.__dict__[method] = record_call
        return record_call

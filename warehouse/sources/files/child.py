"""Native readers in a process of their own: a hostile file may crash it, and is then refused like any other.

The child imports nothing but the function's own module. Arrays come back over a pipe as raw bytes under a line
of JSON, never pickled: what a native library made of a hostile file cannot make us run anything.

A child that served a request well waits for the next one of the same module, since some libraries take longer to
start than most files to read. After anything else (a refusal, a fault, a consumer that stopped early, a word that
the library printed) it is ended: a library that met damage may have a damaged heap.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.external.processes import end_group

if TYPE_CHECKING:
    import numpy.typing as npt

Arrays: TypeAlias = "dict[str, npt.NDArray[Any]]"
#: what a function in a child yields: arrays, or a list of them that go together, for to wake the parent takes longer
#: than to make a few small ones
Yielded: TypeAlias = "Arrays | list[Arrays]"

#: how long a reader may be silent before it is taken to hang
PATIENCE_S = 600.0
#: a child is ended after so many requests, or grown so large, whatever its library leaks
MOST_REQUESTS = 1000
MOST_RESIDENT_BYTES = 1 << 30
#: how long a child waits for another request, and how many of a module wait at the same time
IDLE_S = 60.0
MOST_IDLE = 4
#: a library may print so much about one file; the rest is lost
MOST_PRINTED_BYTES = 1 << 20
_KINDS = "biufSU"
_PIPE_BYTES = 1 << 16
_REMEDY = "Fetch the file anew; if it opens elsewhere, report it with the file."
_START = "import json, sys; r = json.loads(sys.argv[1]); sys.path[:] = r['path']; import {0}; {0}.serve(r)"
_IS_CHILD = threading.Event()
#: what tells one kind of children from another: their module, and where modules are looked for
_Key: TypeAlias = tuple[str, tuple[str, ...]]


def arrays_from_child(
    function: Callable[..., Iterator[Yielded]], *arguments: str | int | float | None, patience_s: float = PATIENCE_S
) -> Iterator[Arrays]:
    """Run a module's generator function in a child process and yield what it yields there; of a list, one by one.

    The arguments are passed as JSON. Raises InputRefused if the function raises it, or runs out of memory, or
    if the process dies or is silent for `patience_s` [s]; RuntimeError, with the child's traceback, for all else.
    """
    request = json.dumps({"function": function.__qualname__, "arguments": arguments}).encode() + b"\n"
    key = (function.__module__, tuple(sys.path))
    child, header = _asked(key, request, patience_s)
    is_fit = False
    try:
        is_fit = yield from child.answers(header, patience_s)
    finally:
        if is_fit:
            _POOL.put(child)
        else:
            child.end()


def printed() -> str:
    """Return what was printed so far in this request, by whatever library: for the function in the child to ask.

    It is not known of a function that runs in no child, and empty then.
    """
    if not _IS_CHILD.is_set():
        return ""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    _this_process().fflush(None)
    if not os.fstat(2).st_size:
        return ""
    return os.pread(2, MOST_PRINTED_BYTES, 0).decode("utf-8", "backslashreplace")


@cache
def _this_process() -> ctypes.CDLL:
    return ctypes.CDLL(None)


# ---- the parent's side


def _asked(key: _Key, request: bytes, patience_s: float) -> tuple[_Child, bytes]:
    """Find or start a child and ask it; one that ended while it waited is replaced, for it read nothing yet."""
    while (child := _POOL.take(key)) is not None:
        header = child.ask(request, patience_s)
        if header:
            return child, header
        child.end()
    child = _Child(key)
    return child, child.ask(request, patience_s)


class _Child:
    """One reading process, for one request at a time."""

    def __init__(self, key: _Key) -> None:
        self.key = key
        self._served_count = 0
        self._is_silent = False
        # It lives as long as the process.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        start = json.dumps({"path": key[1], "module": key[0]})
        command = [sys.executable, "-I", "-c", _START.format(__name__), start]
        # A reader computes nothing, and to start the threads of linear algebra takes longer than to read.
        environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, env=environment, bufsize=0,
            start_new_session=True,
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._pipe = self._process.stdin, self._process.stdout
        self._readable = select.poll()
        self._readable.register(self._pipe, select.POLLIN | select.POLLHUP)
        self._ahead = b""

    def ask(self, request: bytes, patience_s: float) -> bytes:
        """Send a request; return the line that says that the child is at it, or nothing if it is gone."""
        self._served_count += 1
        with contextlib.suppress(BrokenPipeError):
            waiting = memoryview(request)
            while waiting:
                waiting = waiting[self._requests.write(waiting) :]
        return self._line(patience_s)

    def answers(self, header: bytes, patience_s: float) -> Generator[Arrays, None, bool]:
        """Yield the arrays of a request's answer, then return whether the child may serve another one."""
        is_ready = False
        while True:
            try:
                message: dict[str, Any] = json.loads(header) if header else {"lost": True}
                arrays = {entry["name"]: self._array(entry, patience_s) for entry in message.get("arrays", [])}
            except (ValueError, TypeError, KeyError) as error:
                raise InputRefused("What the library makes of the file cannot be passed on.", _REMEDY) from error
            if "lost" in message or any(array is None for array in arrays.values()):
                raise self._lost(is_ready=is_ready, patience_s=patience_s)
            if "refused" in message:
                raise InputRefused(*message["refused"])
            if "failed" in message:
                raise RuntimeError(f"The reading process failed.\n{message['failed']}")
            if "done" in message:
                return bool(message["done"]) and self._served_count < MOST_REQUESTS
            is_ready = True
            if "arrays" in message:
                yield {name: array for name, array in arrays.items() if array is not None}
            header = self._line(patience_s)

    def end(self) -> None:
        """End the process, whatever it is doing, and all that its library started."""
        end_group(self._process, grace_s=0)
        self._requests.close()
        self._pipe.close()
        self._said.close()

    def _line(self, patience_s: float) -> bytes:
        """Receive a line; return nothing if the process ends, or is silent, before its end."""
        pieces = [self._ahead]
        while b"\n" not in pieces[-1]:
            if not self._has_more(patience_s) or not (piece := os.read(self._pipe.fileno(), _PIPE_BYTES)):
                return b""
            pieces.append(piece)
        line, _, self._ahead = b"".join(pieces).partition(b"\n")
        return line

    def _array(self, entry: dict[str, Any], patience_s: float) -> npt.NDArray[Any] | None:
        """Receive an array; return None if the process ends, or is silent, before its end."""
        # Not before the child is at work: both take as long to start.
        import numpy as np

        dtype, size = np.dtype(entry["dtype"]), int(entry["size"])
        if dtype.kind not in _KINDS:
            raise TypeError(f"an array of {dtype}")
        content = bytearray(size)
        count = min(size, len(self._ahead))
        content[:count] = self._ahead[:count]
        self._ahead = self._ahead[count:]
        with memoryview(content) as room:
            while count < size:
                received = os.readv(self._pipe.fileno(), [room[count:]]) if self._has_more(patience_s) else 0
                if not received:
                    return None
                count += received
        return np.frombuffer(content, dtype).reshape(entry["shape"])

    def _has_more(self, patience_s: float) -> bool:
        """Wait for the process to say more, or to end; end it if it does neither."""
        if self._readable.poll(patience_s * 1000):
            return True
        self._is_silent = True
        end_group(self._process, grace_s=0)
        return False

    def _lost(self, *, is_ready: bool, patience_s: float) -> Exception:
        try:
            code = self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._is_silent = True
            code = 0
        if self._is_silent:
            return InputRefused("The library for this format did not come to an end with the file.", _REMEDY)
        if not is_ready and code > 0:
            said = os.pread(self._said.fileno(), MOST_PRINTED_BYTES, 0).decode("utf-8", "replace")
            return RuntimeError(f"The reading process did not start: {said}")
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return InputRefused(f"The file crashes the library for its format ({how}).", _REMEDY)


class _Pool:
    """The children that wait for a request; any thread may take one, and only one thread has it then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[_Key, list[_Child]] = {}

    def take(self, key: _Key) -> _Child | None:
        """Take the child of that kind that served last; None where none waits."""
        with self._lock:
            waiting = self._idle.get(key)
            return waiting.pop() if waiting else None

    def put(self, child: _Child) -> None:
        """Let a child wait for the next request, in place of the one that has waited longest if they are many."""
        with self._lock:
            waiting = self._idle.setdefault(child.key, [])
            waiting.append(child)
            superfluous = waiting.pop(0) if len(waiting) > MOST_IDLE else None
        if superfluous is not None:
            superfluous.end()

    def end(self) -> None:
        """End all that wait."""
        with self._lock:
            idle = [child for waiting in self._idle.values() for child in waiting]
            self._idle = {}
        for child in idle:
            child.end()

    def forget(self) -> None:
        """In a process that was forked off: the children are the parent's, so let go of them as they are."""
        self._lock = threading.Lock()
        self._forgotten = self._idle
        self._idle = {}


_POOL = _Pool()
atexit.register(_POOL.end)
os.register_at_fork(after_in_child=_POOL.forget)


# ---- the child's side


def serve(start: dict[str, Any]) -> None:
    """Run one requested function after the other and write what it yields to the pipe: what the child does."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A reader writes nothing but what it prints.
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_PRINTED_BYTES, MOST_PRINTED_BYTES))
    # An interrupt at the terminal is the parent's to handle: it ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Libraries print where they please; only we write to the pipe.
    with os.fdopen(os.dup(1), "wb", _PIPE_BYTES) as pipe, os.fdopen(os.dup(0), "rb") as requests:
        os.dup2(2, 1)
        _IS_CHILD.set()
        while select.select([requests], [], [], IDLE_S)[0] and (line := requests.readline()):
            os.ftruncate(2, 0)
            os.lseek(2, 0, os.SEEK_SET)
            request = json.loads(line)
            module = importlib.import_module(start["module"])
            function: Callable[..., Iterator[Yielded]] = getattr(module, request["function"])
            _send(pipe, {"ready": True})
            pipe.flush()
            _send(pipe, _answered(pipe, function, request["arguments"]))
            pipe.flush()


def _answered(pipe: IO[bytes], function: Callable[..., Iterator[Yielded]], arguments: list[Any]) -> dict[str, Any]:
    """Send what the function yields; return how it came to its end: done, and whether it left the child as it was."""
    try:
        for found in function(*arguments):
            for arrays in found if isinstance(found, list) else [found]:
                _send_arrays(pipe, arrays)
            pipe.flush()
    except InputRefused as refusal:
        return {"refused": [refusal.reason, refusal.remedy]}
    except MemoryError:
        return {"refused": ["The file asks for more memory than there is.", _REMEDY]}
    except Exception:
        return {"failed": traceback.format_exc()}
    return {"done": not printed() and _peak_resident_bytes() < MOST_RESIDENT_BYTES}


def _peak_resident_bytes() -> int:
    """Return the most memory that this process had; `getrusage` would give that of its starter where it is more."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _send(pipe: IO[bytes], message: dict[str, Any]) -> None:
    pipe.write(json.dumps(message).encode() + b"\n")


def _send_arrays(pipe: IO[bytes], arrays: Arrays) -> None:
    import numpy as np

    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    entries = [
        {"name": name, "dtype": array.dtype.str, "shape": array.shape, "size": array.nbytes}
        for name, array in whole.items()
    ]
    _send(pipe, {"arrays": entries})
    for array in whole.values():
        pipe.write(array.data if array.dtype.kind in "biuf" and array.size else array.tobytes())

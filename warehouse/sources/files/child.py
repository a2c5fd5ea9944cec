"""Run native readers in child processes, so that a hostile file that crashes the library is refused like any other.

The child imports only the function's own module. Arrays come back over a pipe as raw bytes after a line of JSON, never
pickled, so a hostile file cannot make the parent execute anything.

After a successful request, a child waits for the next request of the same module, because starting some libraries
takes longer than reading most files. In all other cases (a refusal, an error, a consumer that stopped early, output
printed by the library), the child is terminated, because a damaged file may have damaged the library's heap.
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
#: result of a function in a child: named arrays, or a list of small ones, which are sent together because waking the
#: parent takes longer than building them
Yielded: TypeAlias = "Arrays | list[Arrays]"

#: timeout for the next result of a reader [s]
TIMEOUT_S = 600.0
#: number of requests after which a child is terminated, to limit memory leaks
MAX_REQUESTS = 1000
#: resident size [B] above which a child is terminated
MAX_RESIDENT_BYTES = 1 << 30
#: time that an idle child waits for a request [s]
IDLE_TIMEOUT_S = 60.0
#: maximum number of idle children per module
MAX_IDLE_CHILDREN = 4
#: maximum size of a library's printed output about one file; the rest is dropped
MAX_PRINTED_BYTES = 1 << 20
_KINDS = "biufSU"
_PIPE_BYTES = 1 << 16
_REMEDY = "Fetch the file again; if other tools can read it, report this error with the file."
_START = "import json, sys; r = json.loads(sys.argv[1]); sys.path[:] = r['path']; import {0}; {0}.serve(r)"
_IS_CHILD = threading.Event()
#: module and `sys.path`, by which interchangeable children are identified
_Key: TypeAlias = tuple[str, tuple[str, ...]]


def arrays_from_child(
    function: Callable[..., Iterator[Yielded]], *arguments: str | int | float | None, timeout_s: float = TIMEOUT_S
) -> Iterator[Arrays]:
    """Run a module's generator function in a child process and yield its arrays; lists are flattened.

    The arguments are passed as JSON. Raises InputRefused if the function raises it or runs out of memory, or if the
    process dies or yields nothing for `timeout_s` [s]; RuntimeError, with the child's traceback, for all other errors.
    """
    request = json.dumps({"function": function.__qualname__, "arguments": arguments}).encode() + b"\n"
    key = (function.__module__, tuple(sys.path))
    child, header = _send_to_child(key, request, timeout_s)
    is_fit = False
    try:
        is_fit = yield from child.receive_results(header, timeout_s)
    finally:
        if is_fit:
            _POOL.put(child)
        else:
            child.end()


def read_printed_text() -> str:
    """Return the text that libraries have printed during this request; called by the function in the child.

    The text is empty if the function does not run in a child.
    """
    if not _IS_CHILD.is_set():
        return ""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    _this_process().fflush(None)
    if not os.fstat(2).st_size:
        return ""
    return os.pread(2, MAX_PRINTED_BYTES, 0).decode("utf-8", "backslashreplace")


@cache
def _this_process() -> ctypes.CDLL:
    return ctypes.CDLL(None)


# ---- the parent's side


def _send_to_child(key: _Key, request: bytes, timeout_s: float) -> tuple[_Child, bytes]:
    """Send a request to an idle child or, if none is left or it has ended, to a new one."""
    while (child := _POOL.take(key)) is not None:
        header = child.send_request(request, timeout_s)
        if header:
            return child, header
        child.end()
    child = _Child(key)
    return child, child.send_request(request, timeout_s)


class _Child:
    """A child process that serves one request at a time."""

    def __init__(self, key: _Key) -> None:
        self.key = key
        self._served_count = 0
        self._is_silent = False
        # The file stays open while the process runs.
        self._printed_file = tempfile.TemporaryFile()  # noqa: SIM115
        start = json.dumps({"path": key[1], "module": key[0]})
        command = [sys.executable, "-I", "-c", _START.format(__name__), start]
        # A reader does no linear algebra, and starting its threads takes longer than reading.
        environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._printed_file, env=environment,
            bufsize=0, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._pipe = self._process.stdin, self._process.stdout
        self._readable = select.poll()
        self._readable.register(self._pipe, select.POLLIN | select.POLLHUP)
        self._ahead = b""

    def send_request(self, request: bytes, timeout_s: float) -> bytes:
        """Send a request; return the child's acknowledgement line, or nothing if the child is gone."""
        self._served_count += 1
        with contextlib.suppress(BrokenPipeError):
            waiting = memoryview(request)
            while waiting:
                waiting = waiting[self._requests.write(waiting) :]
        return self._receive_line(timeout_s)

    def receive_results(self, header: bytes, timeout_s: float) -> Generator[Arrays, None, bool]:
        """Yield the arrays of a result, then return whether the child may serve another request."""
        is_ready = False
        while True:
            try:
                message: dict[str, Any] = json.loads(header) if header else {"lost": True}
                arrays = {entry["name"]: self._receive_array(entry, timeout_s) for entry in message.get("arrays", [])}
            except (ValueError, TypeError, KeyError) as error:
                raise InputRefused("The library's result for this file cannot be transferred.", _REMEDY) from error
            if "lost" in message or any(array is None for array in arrays.values()):
                raise self._explain_loss(is_ready=is_ready, timeout_s=timeout_s)
            if "refused" in message:
                raise InputRefused(*message["refused"])
            if "failed" in message:
                raise RuntimeError(f"The reading process failed.\n{message['failed']}")
            if "done" in message:
                return bool(message["done"]) and self._served_count < MAX_REQUESTS
            is_ready = True
            if "arrays" in message:
                yield {name: array for name, array in arrays.items() if array is not None}
            header = self._receive_line(timeout_s)

    def end(self) -> None:
        """End the process, and all processes that its library started, at once."""
        end_group(self._process, grace_s=0)
        self._requests.close()
        self._pipe.close()
        self._printed_file.close()

    def _receive_line(self, timeout_s: float) -> bytes:
        """Receive a line; return nothing if the process ends or times out before its end."""
        pieces = [self._ahead]
        while b"\n" not in pieces[-1]:
            if not self._has_more(timeout_s) or not (piece := os.read(self._pipe.fileno(), _PIPE_BYTES)):
                return b""
            pieces.append(piece)
        line, _, self._ahead = b"".join(pieces).partition(b"\n")
        return line

    def _receive_array(self, entry: dict[str, Any], timeout_s: float) -> npt.NDArray[Any] | None:
        """Receive an array; return None if the process ends or times out before its end."""
        # Import NumPy while the child starts, which takes equally long.
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
                received = os.readv(self._pipe.fileno(), [room[count:]]) if self._has_more(timeout_s) else 0
                if not received:
                    return None
                count += received
        return np.frombuffer(content, dtype).reshape(entry["shape"])

    def _has_more(self, timeout_s: float) -> bool:
        """Wait for output or the end of the process; end it at the timeout."""
        if self._readable.poll(timeout_s * 1000):
            return True
        self._is_silent = True
        end_group(self._process, grace_s=0)
        return False

    def _explain_loss(self, *, is_ready: bool, timeout_s: float) -> Exception:
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._is_silent = True
            code = 0
        if self._is_silent:
            return InputRefused("The library for this format timed out on the file.", _REMEDY)
        if not is_ready and code > 0:
            printed_text = os.pread(self._printed_file.fileno(), MAX_PRINTED_BYTES, 0).decode("utf-8", "replace")
            return RuntimeError(f"The reading process did not start: {printed_text}")
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return InputRefused(f"The file crashes the library for its format ({how}).", _REMEDY)


class _Pool:
    """Pool of idle children; thread-safe, since a child that is taken belongs to one thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[_Key, list[_Child]] = {}

    def take(self, key: _Key) -> _Child | None:
        """Take the idle child that last served a request for a key; None if no child is idle."""
        with self._lock:
            waiting = self._idle.get(key)
            return waiting.pop() if waiting else None

    def put(self, child: _Child) -> None:
        """Add an idle child; end the one that has been idle longest if there are too many."""
        with self._lock:
            waiting = self._idle.setdefault(child.key, [])
            waiting.append(child)
            surplus = waiting.pop(0) if len(waiting) > MAX_IDLE_CHILDREN else None
        if surplus is not None:
            surplus.end()

    def end(self) -> None:
        """End all idle children."""
        with self._lock:
            idle = [child for waiting in self._idle.values() for child in waiting]
            self._idle = {}
        for child in idle:
            child.end()

    def forget(self) -> None:
        """Drop the children after a fork without ending them, because they belong to the parent."""
        self._lock = threading.Lock()
        self._forgotten = self._idle
        self._idle = {}


_POOL = _Pool()
atexit.register(_POOL.end)
os.register_at_fork(after_in_child=_POOL.forget)


# ---- the child's side


def serve(start: dict[str, Any]) -> None:
    """Serve requests in the child: run each function and write its results to the pipe."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A reader writes no files, so only its printed output is bounded.
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_PRINTED_BYTES, MAX_PRINTED_BYTES))
    # The parent handles an interrupt at the terminal and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Libraries print to both streams: redirect them, so that the pipe carries results only.
    with os.fdopen(os.dup(1), "wb", _PIPE_BYTES) as pipe, os.fdopen(os.dup(0), "rb") as requests:
        os.dup2(2, 1)
        _IS_CHILD.set()
        while select.select([requests], [], [], IDLE_TIMEOUT_S)[0] and (line := requests.readline()):
            os.ftruncate(2, 0)
            os.lseek(2, 0, os.SEEK_SET)
            request = json.loads(line)
            module = importlib.import_module(start["module"])
            function: Callable[..., Iterator[Yielded]] = getattr(module, request["function"])
            _send(pipe, {"ready": True})
            pipe.flush()
            _send(pipe, _run_function(pipe, function, request["arguments"]))
            pipe.flush()


def _run_function(pipe: IO[bytes], function: Callable[..., Iterator[Yielded]], arguments: list[Any]) -> dict[str, Any]:
    """Send the results of a function; return the final message: refused, failed, or whether the child is reusable."""
    try:
        for result in function(*arguments):
            for arrays in result if isinstance(result, list) else [result]:
                _send_arrays(pipe, arrays)
            pipe.flush()
    except InputRefused as refusal:
        return {"refused": [refusal.reason, refusal.remedy]}
    except MemoryError:
        return {"refused": ["Reading the file needs more memory than is available.", _REMEDY]}
    except Exception:
        return {"failed": traceback.format_exc()}
    return {"done": not read_printed_text() and _peak_resident_bytes() < MAX_RESIDENT_BYTES}


def _peak_resident_bytes() -> int:
    """Return the peak memory of this process; `getrusage` would include that of its parent."""
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

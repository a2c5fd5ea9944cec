"""Native readers in a process of their own: a hostile file may crash it, and is then refused like any other.

The child imports nothing but the function's own module. Arrays come back over a pipe as raw bytes under a line
of JSON, never pickled: what a native library made of a hostile file cannot make us run anything.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from warehouse.errors import InputRefused

Arrays = dict[str, npt.NDArray[Any]]

#: how long a reader may be silent before it is taken to hang
PATIENCE_S = 600.0
_KINDS = "biufSU"
_REMEDY = "Fetch the file anew; if it opens elsewhere, report it with the file."
_START = "import json, sys; r = json.loads(sys.argv[1]); sys.path[:] = r['path']; import {0}; {0}.serve(r)"


def arrays_from_child(
    function: Callable[..., Iterator[Arrays]], *arguments: str | int | float | None, patience_s: float = PATIENCE_S
) -> Iterator[Arrays]:
    """Run a module's generator function in a new process and yield what it yields there.

    The arguments are passed as JSON. Raises InputRefused if the function raises it, or runs out of memory, or
    if the process dies or is silent for `patience_s` [s]; RuntimeError, with the child's traceback, for all else.
    """
    request = {
        "path": sys.path,
        "module": function.__module__,
        "function": function.__qualname__,
        "arguments": arguments,
    }
    command = [sys.executable, "-I", "-c", _START.format(__name__), json.dumps(request)]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said)
        assert process.stdout is not None
        try:
            yield from _received(process, process.stdout, said, patience_s)
        finally:
            process.kill()
            process.stdout.close()
            process.wait()


def _received(
    process: subprocess.Popen[bytes], pipe: IO[bytes], said: IO[bytes], patience_s: float
) -> Iterator[Arrays]:
    is_ready = False
    while True:
        with _patience(process, patience_s) as is_silent:
            header = pipe.readline()
            message: dict[str, Any] = json.loads(header) if header.endswith(b"\n") else {"lost": True}
            arrays = {entry["name"]: _receive(pipe, entry) for entry in message.get("arrays", [])}
        if "lost" in message or any(array is None for array in arrays.values()):
            raise _lost(process, said, is_ready=is_ready, is_silent=is_silent.is_set())
        if "refused" in message:
            raise InputRefused(*message["refused"])
        if "failed" in message:
            raise RuntimeError(f"The reading process failed.\n{message['failed']}")
        if "done" in message:
            return
        is_ready = True
        if "arrays" in message:
            yield {name: array for name, array in arrays.items() if array is not None}


@contextlib.contextmanager
def _patience(process: subprocess.Popen[bytes], seconds: float) -> Iterator[threading.Event]:
    is_over = threading.Event()

    def end() -> None:
        is_over.set()
        process.kill()

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        yield is_over
    finally:
        timer.cancel()


def _receive(pipe: IO[bytes], entry: dict[str, Any]) -> npt.NDArray[Any] | None:
    dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
    content = pipe.read(entry["size"])
    if dtype.kind not in _KINDS or len(content) != entry["size"]:
        return None
    return np.frombuffer(content, dtype).reshape(shape)


def _lost(process: subprocess.Popen[bytes], said: IO[bytes], *, is_ready: bool, is_silent: bool) -> Exception:
    code = process.wait()
    if is_silent:
        return InputRefused("The library for this format did not come to an end with the file.", _REMEDY)
    if not is_ready and code > 0:
        said.seek(0)
        return RuntimeError(f"The reading process did not start: {said.read().decode('utf-8', 'replace')}")
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return InputRefused(f"The file crashes the library for its format ({how}).", _REMEDY)


def serve(request: dict[str, Any]) -> None:
    """Run the requested function and write what it yields to the pipe: what the child process does."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Libraries print where they please; only we write to the pipe.
    with os.fdopen(os.dup(1), "wb") as pipe:
        os.dup2(2, 1)
        module = importlib.import_module(request["module"])
        function: Callable[..., Iterator[Arrays]] = getattr(module, request["function"])
        _send(pipe, {"ready": True})
        try:
            for arrays in function(*request["arguments"]):
                _send_arrays(pipe, arrays)
            outcome: dict[str, Any] = {"done": True}
        except InputRefused as refusal:
            outcome = {"refused": [refusal.reason, refusal.remedy]}
        except MemoryError:
            outcome = {"refused": ["The file asks for more memory than there is.", _REMEDY]}
        except Exception:
            outcome = {"failed": traceback.format_exc()}
        _send(pipe, outcome)


def _send(pipe: IO[bytes], message: dict[str, Any]) -> None:
    pipe.write(json.dumps(message).encode() + b"\n")
    pipe.flush()


def _send_arrays(pipe: IO[bytes], arrays: Arrays) -> None:
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    entries = [
        {"name": name, "dtype": array.dtype.str, "shape": array.shape, "size": array.nbytes}
        for name, array in whole.items()
    ]
    _send(pipe, {"arrays": entries})
    for array in whole.values():
        pipe.write(array.tobytes())
    pipe.flush()

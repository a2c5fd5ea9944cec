"""Functions that `test_child` runs in a child process; imports are few so that the child starts fast."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Iterator

import numpy as np

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.child import Arrays, read_printed_text


def squares(count: int) -> Iterator[Arrays]:
    print("libraries print where they please")
    os.write(1, b"and not only through Python\n")
    for number in range(count):
        yield {"square": np.full((2, number), number * number, np.float64), "name": np.array(["ä", "b"])}


def dying(how: int) -> Iterator[Arrays]:
    yield {"value": np.array([1])}
    os.kill(os.getpid(), how)


def leaving() -> Iterator[Arrays]:
    yield {"value": np.array([1])}
    os._exit(3)


def refusing() -> Iterator[Arrays]:
    yield {"value": np.array([1])}
    raise InputRefused("The reason.", "The remedy.")


def hanging() -> Iterator[Arrays]:
    yield {"value": np.array([1])}
    time.sleep(60)


def starving() -> Iterator[Arrays]:
    yield {"value": np.zeros(1 << 50)}


def faulty() -> Iterator[Arrays]:
    yield {"value": np.array([1])}
    raise ZeroDivisionError("ours")


def cunning() -> Iterator[Arrays]:
    yield {"value": np.array([{"pickled": "object"}], dtype=object)}


def imports() -> Iterator[Arrays]:
    importlib.import_module("iosig.warehouse.sources.polls.hdf5")
    yield {"heavy": np.array([name in sys.modules for name in ("polars", "pyarrow", "duckdb", "pandas")])}


def quiet() -> Iterator[Arrays]:
    yield {"pid": np.array([os.getpid()])}


def large(count: int) -> Iterator[Arrays]:
    yield {"pid": np.array([os.getpid()]), "value": np.arange(count), "text": np.array(["ä" * 50] * 1000)}
    yield {"value": np.arange(count)[::2], "none": np.empty((0, 3))}


def speaking(words: str) -> Iterator[Arrays]:
    """Print from Python, directly to the file descriptor, and through C's buffered stdio."""
    import ctypes

    print(words)
    os.write(2, b"to 2\n")
    ctypes.CDLL(None).printf(b"from C\n")
    yield {"pid": np.array([os.getpid()]), "said": np.frombuffer(read_printed_text().encode(), np.uint8)}


def flooding() -> Iterator[Arrays]:
    """Print more than fits on the disk."""
    for _ in range(64):
        try:
            os.write(1, bytes(1 << 20))
        except OSError:
            break
    yield {"length": np.array([len(read_printed_text()), os.fstat(2).st_size])}


def silenced() -> Iterator[Arrays]:
    """Close the pipe to the parent and continue."""
    os.closerange(3, 64)
    time.sleep(60)
    yield {}


def pid() -> Iterator[Arrays]:
    yield {"pid": np.array([os.getpid()])}
    time.sleep(60)

"""What `test_child` runs in a child process; it imports little, so that the child starts fast."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Iterator

import numpy as np

from warehouse.errors import InputRefused
from warehouse.sources.child import Arrays


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
    importlib.import_module("warehouse.sources.hdf5")
    yield {"heavy": np.array([name in sys.modules for name in ("polars", "pyarrow", "duckdb", "pandas")])}


def pid() -> Iterator[Arrays]:
    yield {"pid": np.array([os.getpid()])}
    time.sleep(60)

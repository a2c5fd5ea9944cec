"""Write small HDF5 archives of Lustre throughput in the formats of pyLMT and TOKIO."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

NAMES = ["fs1-OST0000", "fs1-OST0001"]


def _bytes(names: list[str]) -> list[bytes]:
    return [name.encode() for name in names]


def pylmt(
    path: Path,
    times: Any,
    read: Any,
    write: Any,
    *,
    missing: Any = None,
    load: Any = None,
    names: list[str] | None = None,
    write_names: list[str] | None = None,
    fs: str | None = None,
) -> Path:
    """Write a pyLMT archive: `read` and `write` are (target, time)."""
    names = names or NAMES
    with h5py.File(path, "w") as file:
        steps = file.create_dataset("FSStepsGroup/FSStepsDataSet", data=times)
        if fs is not None:
            steps.attrs["fs"] = fs
        for direction, values, given in (("Read", read, names), ("Write", write, write_names or names)):
            place = f"OST{direction}Group/OSTBulk{direction}DataSet"
            dataset = file.create_dataset(place, data=np.asarray(values, np.float64), compression="gzip")
            dataset.attrs["OSTNames"] = _bytes(given)
        if missing is not None:
            file.create_dataset("FSMissingGroup/FSMissingDataSet", data=np.asarray(missing, np.int32))
        if load is not None:
            file.create_dataset("MDSCPUGroup/MDSCPUDataSet", data=np.asarray(load, np.float64))
    return path


def tokio(path: Path, times: Any, read: Any, write: Any, *, kind: str = "bytes", names: Any = None) -> Path:
    """Write a TOKIO archive: `read` and `write` are (time, target)."""
    with h5py.File(path, "w") as file:
        file.create_dataset("datatargets/timestamps", data=times)
        for direction, values in (("read", read), ("write", write)):
            dataset = file.create_dataset(f"datatargets/{direction}{kind}", data=np.asarray(values, np.float64))
            dataset.attrs["columns"] = _bytes(names or NAMES)
            dataset.attrs["units"] = "bytes/sec"
    return path

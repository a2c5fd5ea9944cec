"""Read HDF5 archives of Lustre throughput with h5py; runs in a child process, see `child`.

Readers of both layouts yield the same arrays. First comes the grid: `controllers` (k,), `filesystems` (k,), `times_s`
(n,) and `recorded_count` (1,), the number of steps up to the last recorded one. Then come blocks: `first_step` (1,),
`read` and `write` (m, k), NaN for a missing poll, and `is_volume` (1,), whether values are bytes instead of bytes per
second. If the archive has operations, blocks also have `read_operations`, `write_operations` and `is_count` alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt

from iosig.warehouse.errors import InputRefused

Arrays = dict[str, npt.NDArray[Any]]
Reals = npt.NDArray[np.float64]

#: maximum number of cells per block and direction
BLOCK_CELLS = 1_000_000
#: maximum plausible number of steps, or of targets, in an archive
MAX_STEPS = 20_000_000
#: maximum plausible number of cells in an archive, per direction
MAX_CELLS = 4_000_000_000
_REMEDY = "Check that the file is complete and of a known version."
# exceptions that h5py raises for damaged content or unexpected shapes
_DAMAGE = (OSError, KeyError, RuntimeError, ValueError, TypeError, AttributeError, IndexError, OverflowError)


def _refusing_damage(read: Callable[[str], Iterator[Arrays]]) -> Callable[[str], Iterator[Arrays]]:
    @wraps(read)
    def read_or_refuse(path: str) -> Iterator[Arrays]:
        try:
            yield from read(path)
        except _DAMAGE as error:
            raise InputRefused(f"The HDF5 content cannot be read: {error}.", "Fetch the file again.") from error

    return read_or_refuse


def _open_file(path: str) -> Any:
    import h5py

    # Archives are often on file systems that are read-only or do not support locks.
    return h5py.File(path, "r", locking=False)


def _get_dataset(file: Any, name: str, dimension_count: int) -> Any:
    import h5py

    dataset = file.get(name)
    if not isinstance(dataset, h5py.Dataset):
        raise InputRefused(f"The HDF5 file has no dataset {name}.", _REMEDY)
    if dataset.ndim != dimension_count or dataset.dtype.kind not in "iuf":
        raise InputRefused(f"The dataset {name} is not a {dimension_count}-dimensional array of numbers.", _REMEDY)
    if dataset.shape[-1] > MAX_STEPS or dataset.shape[0] > MAX_STEPS or dataset.size > MAX_CELLS:
        raise InputRefused(f"The dataset {name} claims {dataset.size} cells, more than an archive can have.", _REMEDY)
    return dataset


def _names(dataset: Any, attribute: str, count: int) -> list[str]:
    raw_names = dataset.attrs.get(attribute)
    if raw_names is None or np.ndim(raw_names) != 1 or len(raw_names) != count:
        raise InputRefused(f"{dataset.name} does not name its {count} targets in {attribute}.", _REMEDY)
    names = [name.decode("utf-8") if isinstance(name, bytes) else str(name) for name in raw_names]
    if len(set(names)) < count or not all(names):
        raise InputRefused(f"{dataset.name} gives several targets the same name, or none, in {attribute}.", _REMEDY)
    return names


def _text_attribute(dataset: Any, attribute: str) -> str:
    value = dataset.attrs.get(attribute)
    text = value.decode("utf-8") if isinstance(value, bytes) else value
    return text if isinstance(text, str) else ""


def _order(names: list[str], other_names: list[str]) -> list[int]:
    if sorted(names) != sorted(other_names):
        raise InputRefused("The read and the write datasets do not name the same targets.", _REMEDY)
    place = {name: index for index, name in enumerate(other_names)}
    return [place[name] for name in names]


def _grid(names: list[str], filesystem: str, times: Reals, recorded_count: int) -> Arrays:
    prefixes = [name.rpartition("-OST")[0] for name in names]
    return {
        "controllers": np.array(names, np.str_),
        "filesystems": np.array([filesystem or prefix for prefix in prefixes], np.str_),
        "times_s": times,
        "recorded_count": np.array([recorded_count]),
    }


def _steps(step_count: int, controller_count: int) -> Iterator[tuple[int, int]]:
    size = max(1, BLOCK_CELLS // max(1, controller_count))
    for first in range(0, step_count, size):
        yield first, min(first + size, step_count)


def _count_recorded(datasets: list[Any], step_count: int) -> int:
    """Count the steps up to the last one with a non-zero value in any dataset; time is the last axis."""
    for first, end in reversed(list(_steps(step_count, 64))):
        live = np.zeros(end - first, np.bool_)
        for dataset in datasets:
            values = dataset[..., first:end].reshape(-1, end - first)
            live |= ((values != 0) & (values == values)).any(axis=0)
        if live.any():
            return first + int(np.flatnonzero(live)[-1]) + 1
    return 0


@_refusing_damage
def pylmt(path: str) -> Iterator[Arrays]:
    """Read a pyLMT archive; times are right edges, values are rates, arrays are (target, time).

    A cell that the archive marks as missing is missing, unless it has bytes, which must come from a poll.
    """
    with _open_file(path) as file:
        times = _get_dataset(file, "FSStepsGroup/FSStepsDataSet", 1)
        read = _get_dataset(file, "OSTReadGroup/OSTBulkReadDataSet", 2)
        write = _get_dataset(file, "OSTWriteGroup/OSTBulkWriteDataSet", 2)
        mark = (
            _get_dataset(file, "FSMissingGroup/FSMissingDataSet", 2)
            if "FSMissingGroup/FSMissingDataSet" in file
            else None
        )
        if any(dataset.shape != (read.shape[0], times.size) for dataset in (read, write, mark) if dataset is not None):
            raise InputRefused("The datasets of the pyLMT archive do not have the same shape.", _REMEDY)
        names = _names(read, "OSTNames", read.shape[0])
        order = _order(names, _names(write, "OSTNames", write.shape[0]))
        loads = [file[name] for name in ("OSSCPUGroup/OSSCPUDataSet", "MDSCPUGroup/MDSCPUDataSet") if name in file]
        loads = [load for load in loads if load.ndim in (1, 2) and load.shape[-1] == times.size]
        recorded_count = _count_recorded([read, write, *loads], times.size)
        yield _grid(names, _text_attribute(times, "fs"), times[:].astype(np.float64), recorded_count)
        for first, end in _steps(times.size, len(names)):
            rates = [dataset[:, first:end].astype(np.float64).T for dataset in (read, write)]
            rates[1] = rates[1][:, order]
            if mark is not None:
                is_missing = (mark[:, first:end].T != 0) & (rates[0] == 0) & (rates[1] == 0)
                rates = [np.where(is_missing, np.nan, rate) for rate in rates]
            yield {"first_step": np.array([first]), "is_volume": np.array([False]), "read": rates[0], "write": rates[1]}


@_refusing_damage
def tokio(path: str) -> Iterator[Arrays]:
    """Read a TOKIO time series archive; times are left edges, arrays are (time, target), -0.0 is missing.

    The name of a dataset determines its unit: `readrates` contains bytes per second, `readbytes` bytes. The attribute
    `units` is ignored, because real archives have `bytes/sec` on both.
    """
    with _open_file(path) as file:
        is_volume = "datatargets/readrates" not in file
        kind = "bytes" if is_volume else "rates"
        times = _get_dataset(file, "datatargets/timestamps", 1)
        read, write = (_get_dataset(file, f"datatargets/{direction}{kind}", 2) for direction in ("read", "write"))
        if any(dataset.shape != (times.size, read.shape[1]) for dataset in (read, write)):
            raise InputRefused("The datasets of the TOKIO archive do not have the same shape.", _REMEDY)
        names = _names(read, "columns", read.shape[1])
        operations, is_count = _get_operations(file, read.shape)
        datasets = {"read": read, "write": write} | operations
        orders = {name: _order(names, _names(dataset, "columns", len(names))) for name, dataset in datasets.items()}
        yield _grid(names, "", times[:].astype(np.float64), times.size)
        for first, end in _steps(times.size, len(names)):
            cells = {name: dataset[first:end].astype(np.float64)[:, orders[name]] for name, dataset in datasets.items()}
            yield {
                "first_step": np.array([first]),
                "is_volume": np.array([is_volume]),
                "is_count": np.array([is_count]),
                **{name: np.where((cell == 0) & np.signbit(cell), np.nan, cell) for name, cell in cells.items()},
            }


def _get_operations(file: Any, shape: tuple[int, ...]) -> tuple[dict[str, Any], bool]:
    """Return the datasets of operations of a TOKIO archive, if any, and whether they are counts instead of rates."""
    for kind in ("oprates", "ops"):
        names = {f"{direction}_operations": f"datatargets/{direction}{kind}" for direction in ("read", "write")}
        if all(name in file for name in names.values()):
            datasets = {key: _get_dataset(file, name, 2) for key, name in names.items()}
            if any(dataset.shape != shape for dataset in datasets.values()):
                raise InputRefused("The datasets of the TOKIO archive do not have the same shape.", _REMEDY)
            return datasets, kind == "ops"
    return {}, False

"""Read polls stored as two-dimensional arrays (time x target; grids) from HDF5, and convert them to rows.

Each time becomes an interval; this module determines the edges of intervals, and the gaps between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.child import arrays_from_child
from iosig.warehouse.sources.files.opening import plain_file
from iosig.warehouse.sources.polls import hdf5
from iosig.warehouse.sources.protocol import DEFAULT_FILESYSTEM, Batch, Reading
from iosig.warehouse.sources.rows import times as job_times
from iosig.warehouse.sources.rows.delimited import LINE, RAW
from iosig.warehouse.sources.rows.faults import validate_rows
from iosig.warehouse.sources.rows.rejects import build_refused_rows, reject_batches, rejects

Edge = Literal["left", "right"]
Marks = npt.NDArray[np.bool_]
Micros = npt.NDArray[np.int64]

_US_PER_S = 1_000_000
_RAW_TEXT = pl.format("{}: read {}, write {}", "controller", "read_bytes_per_s", "write_bytes_per_s").alias(RAW)
_IOPS = ("read_iops", "write_iops")
_LATEST_US = round(job_times.LATEST.timestamp()) * _US_PER_S


@dataclass(frozen=True, slots=True)
class _Edges:
    """Interval of each step [us], and a mask of valid steps; steps that are not `good` have no interval."""

    right_us: Micros
    interval_us: Micros
    good: Marks


def _microseconds(times_s: npt.NDArray[np.float64]) -> Micros:
    micros = np.nan_to_num(times_s, nan=-1.0, posinf=-1.0, neginf=-1.0) * _US_PER_S
    return np.where((micros >= 0) & (micros < _LATEST_US), np.rint(micros), -1).astype(np.int64)


def find_edges(times_s: npt.NDArray[np.float64], edge: Edge) -> _Edges:
    """Find the interval of each step from the times [s since 1970] of the left or right edges.

    A step is bad unless it is later than all earlier ones. The length of an interval is the most common distance of
    times, or less if the next edge is closer. Raises InputRefused for fewer than two good steps.
    """
    micros = _microseconds(times_s)
    before = np.concatenate([[-1], np.maximum.accumulate(micros)[:-1]])
    good = micros > before
    times = micros[good]
    if times.size < 2:
        raise InputRefused("The grid has fewer than two times.", "Without a step the rates have no interval.")
    gaps = np.diff(times)
    distances, counts = np.unique(gaps, return_counts=True)
    step = distances[np.argmax(counts)]
    width = np.minimum(gaps, step)
    width = np.append(width, step) if edge == "left" else np.insert(width, 0, step)
    interval = np.zeros_like(micros)
    interval[good] = width
    return _Edges(micros + interval if edge == "left" else micros, interval, good)


def _refuse_steps(edges: _Edges, times_s: npt.NDArray[np.float64]) -> Batch:
    reason = "The step's time is not later than all times before it."
    remedy = "Write the steps in the order of time, each once."
    steps = np.flatnonzero(~edges.good)
    return rejects((int(step) + 1, reason, remedy, f"time {times_s[step]}") for step in steps)


def _rows(grid: hdf5.Arrays, block: hdf5.Arrays, edges: _Edges, filesystem: str | None) -> pl.DataFrame:
    """Convert a block's cells to typed polls with `line` (the number of the step, from 1) and `raw`."""
    first = int(block["first_step"][0])
    step_count, controller_count = block["read"].shape
    steps = np.repeat(np.arange(first, first + step_count), controller_count)
    places = np.tile(np.arange(controller_count), step_count)
    unit_s = edges.interval_us[steps] / _US_PER_S
    is_recorded = steps < grid["recorded_count"][0]
    frame = pl.DataFrame(
        {
            "polled_at": pl.Series(edges.right_us[steps]).cast(job_times.INSTANT),
            "filesystem": pl.Series(grid["filesystems"].tolist())[places],
            "controller": pl.Series(grid["controllers"].tolist())[places],
            "interval_s": unit_s,
            "read_bytes_per_s": _rates(block["read"], block["is_volume"], unit_s, is_recorded),
            "write_bytes_per_s": _rates(block["write"], block["is_volume"], unit_s, is_recorded),
            **{
                f"{direction}_iops": _rates(cells, block["is_count"], unit_s, is_recorded)
                for direction in ("read", "write")
                if (cells := block.get(f"{direction}_operations")) is not None
            },
            LINE: steps + 1,
            "is_recorded": is_recorded,
            "is_good": edges.good[steps],
        }
    )
    is_missing = pl.any_horizontal(pl.col("read_bytes_per_s", "write_bytes_per_s").is_null())
    flag = pl.when(~pl.col("is_recorded")).then(pl.lit("not_recorded")).when(is_missing).then(pl.lit("missing"))
    name = pl.col("filesystem").replace("", None)
    iops = [pl.col(name) if name in frame.columns else pl.lit(None, pl.Float64).alias(name) for name in _IOPS]
    return frame.filter("is_good").select(
        "polled_at",
        pl.coalesce(pl.lit(filesystem, pl.String), name, pl.lit(DEFAULT_FILESYSTEM)).alias("filesystem"),
        "controller",
        "interval_s",
        "read_bytes_per_s",
        "write_bytes_per_s",
        *iops,
        flag.alias("flag"),
        LINE,
    )


def _rates(cells: npt.NDArray[Any], is_volume: Marks, unit_s: npt.NDArray[Any], is_recorded: Marks) -> pl.Series:
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = cells.ravel() / unit_s if is_volume[0] else cells.ravel()
    return pl.Series(np.where(is_recorded, rates, np.nan), nan_to_null=True)


def _check_rows(rows: pl.DataFrame) -> Iterator[Batch]:
    yield from validate_rows(POLLS, rows.with_columns(_RAW_TEXT)).batches(POLLS)


def _drop_first_step(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Drop the first step, since its interval started before the file; refuse the step if it has bytes."""
    moved = pl.any_horizontal(pl.col("read_bytes_per_s", "write_bytes_per_s").fill_null(0) != 0)
    dropped = build_refused_rows(
        rows.filter((pl.col(LINE) == 1) & moved).with_columns(_RAW_TEXT),
        "The first step has bytes, but its interval started before the file.",
        "Land the archive of the previous day, which contains that interval.",
    )
    return rows.filter(pl.col(LINE) > 1), dropped


def read_grid(
    function: Callable[[str], Iterator[hdf5.Arrays]], path: Path, reading: Reading, edge: Edge
) -> Iterator[Batch]:
    """Read a grid through a function of `hdf5`, run in a child process.

    `edge` states whether times are left or right edges of intervals. With right edges, the first step's interval
    started before the file, so the step is dropped.
    """
    with plain_file(path) as plain:
        arrays = arrays_from_child(function, str(plain))
        grid = next(arrays)
        edges = find_edges(grid["times_s"], edge)
        if not edges.good.all():
            yield _refuse_steps(edges, grid["times_s"])
        for block in arrays:
            rows = _rows(grid, block, edges, reading.filesystem)
            if edge == "right":
                rows, dropped = _drop_first_step(rows)
                yield from reject_batches(dropped)
            yield from _check_rows(rows)

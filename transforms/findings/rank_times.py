"""Bytes by rank and time, in a limited number of cells, with sums by rank and by time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints, Reals, offsets_of

#: maximum number of rows (ranks) and columns (times) of a heat map
MAX_ROWS, MAX_COLUMNS = 64, 128
#: minimum number of bins of a tracer's heat map that is preferred to requests
_MIN_BINS = 32


@dataclass(frozen=True, slots=True)
class RankTimes:
    """Bytes of ranks over time, in one direction and layer.

    Attributes
    ----------
    cell_bytes : (ranks, times)
        Bytes of each cell.
    rank_edges : (ranks + 1,)
        First rank of each row, and one past the last.
    time_edges_s : (times + 1,)
        Since the start of the trace [s].
    source
        `heatmap` or `requests`.
    """

    module: str
    direction: str
    source: str
    cell_bytes: Reals
    rank_edges: Ints
    time_edges_s: Reals

    @property
    def time_bytes(self) -> Reals:
        """Bytes of all ranks in each time interval (times)."""
        totals: Reals = self.cell_bytes.sum(axis=0)
        return totals

    @property
    def rank_bytes(self) -> Reals:
        """Mean bytes of the ranks in each row (ranks)."""
        means: Reals = self.cell_bytes.sum(axis=1) / np.diff(self.rank_edges)
        return means


def compute_rank_times(
    heatmaps: pl.DataFrame, requests: pl.DataFrame | None, module: str, process_count: int | None
) -> list[RankTimes]:
    """Compute the heat maps of a layer of one traced run.

    Parameters
    ----------
    heatmaps
        Rows of `trace_heatmaps` of the run.
    requests
        Rows of `trace_requests` of the run, if read.
    module
        Layer.
    process_count
        Number of processes, if known; ranks without bytes have rows, too.

    Returns
    -------
    list[RankTimes]
        Directions with bytes, writes first. A tracer's heat map of 32 or more bins is preferred to requests. Empty
        without data of single ranks.
    """
    result = []
    for direction in ("write", "read"):
        bins = heatmaps.filter(pl.col("module") == module, pl.col("direction") == direction, pl.col("rank") >= 0)
        intervals = None if requests is None else _request_intervals(requests, module, direction)
        is_fine = bins.filter(pl.col("step_count") >= _MIN_BINS).height > 0
        if intervals is not None and intervals.height and not is_fine:
            rank_times = _make_heat_map(intervals, module, direction, "requests", process_count, None)
        elif bins.height:
            bin_s = bins["interval_s"].to_numpy().max()
            rank_times = _make_heat_map(_bin_intervals(bins), module, direction, "heatmap", process_count, bin_s)
        else:
            continue
        if rank_times is not None:
            result.append(rank_times)
    return result


def spread_evenly(
    rank: Ints, start_s: Reals, end_s: Reals, volume_bytes: Reals, rank_edges: Ints, time_edges_s: Reals
) -> Reals:
    """Spread the bytes of intervals evenly over cells.

    Parameters
    ----------
    rank, start_s, end_s, volume_bytes : (n,)
        Rank, start, end [s] and bytes of each interval, within the edges.
    rank_edges, time_edges_s
        Edges of the cells; times are equidistant.

    Returns
    -------
    (ranks, times)
        Bytes; an interval of no duration lies in the cell of its time.
    """
    rows, columns = len(rank_edges) - 1, len(time_edges_s) - 1
    first, last = (_find_column(instants, time_edges_s) for instants in (start_s, end_s))
    counts = last - first + 1
    owner = np.repeat(np.arange(len(rank)), counts)
    within = np.arange(len(owner)) - np.repeat(offsets_of(counts)[:-1], counts)
    column = first[owner] + within
    overlap_s = np.minimum(end_s[owner], time_edges_s[column + 1]) - np.maximum(start_s[owner], time_edges_s[column])
    duration_s = (end_s - start_s)[owner]
    share = np.where(duration_s > 0, np.clip(overlap_s, 0, None) / np.where(duration_s > 0, duration_s, 1.0), 1.0)
    share = np.where((duration_s <= 0) & (within > 0), 0.0, share)
    row = np.searchsorted(rank_edges, rank, side="right") - 1
    cells = row[owner] * columns + column
    totals = np.bincount(cells, weights=volume_bytes[owner] * share, minlength=rows * columns)
    return totals.astype(np.float64).reshape(rows, columns)


def _find_column(instants_s: Reals, edges_s: Reals) -> Ints:
    """Cell of each time (n); cells are equidistant."""
    index: Ints = ((instants_s - edges_s[0]) / (edges_s[1] - edges_s[0])).astype(np.int64)
    clipped: Ints = np.clip(index, 0, len(edges_s) - 2)
    return clipped


def _request_intervals(requests: pl.DataFrame, module: str, direction: str) -> pl.DataFrame:
    return requests.filter(
        pl.col("module") == module, pl.col("direction") == direction, pl.col("rank") >= 0, pl.col("request_bytes") > 0
    ).select("rank", "start_s", "end_s", bytes=pl.col("request_bytes").cast(pl.Float64))


def _bin_intervals(bins: pl.DataFrame) -> pl.DataFrame:
    """Convert the bins of heat maps with bytes to intervals."""
    return (
        bins.select("rank", "interval_s", "bin_bytes", step=pl.int_ranges(pl.col("bin_bytes").list.len()))
        .explode("bin_bytes", "step")
        .filter(pl.col("bin_bytes") > 0)
        .select(
            "rank",
            start_s=pl.col("step") * pl.col("interval_s"),
            end_s=(pl.col("step") + 1) * pl.col("interval_s"),
            bytes=pl.col("bin_bytes").cast(pl.Float64),
        )
    )


def _make_heat_map(
    moved: pl.DataFrame, module: str, direction: str, source: str, process_count: int | None, bin_s: float | None
) -> RankTimes | None:
    if moved.is_empty():
        return None
    rank, start_s, end_s, volume = (moved[name].to_numpy() for name in ("rank", "start_s", "end_s", "bytes"))
    count = max(process_count or 0, int(rank.max()) + 1)
    ranks_per_row = -(-count // MAX_ROWS)
    rank_edges = np.minimum(np.arange(-(-count // ranks_per_row) + 1) * ranks_per_row, count)
    until_s = float(end_s.max())
    if bin_s is not None:
        steps = round(until_s / bin_s)
        width_s = bin_s * -(-steps // MAX_COLUMNS)
    else:
        width_s = until_s / MAX_COLUMNS if until_s > 0 else 1.0
    times = max(int(np.ceil(round(until_s / width_s, 9))), 1)
    time_edges_s: Reals = np.arange(times + 1) * np.float64(width_s)
    cells = spread_evenly(rank, start_s, end_s, volume, rank_edges, time_edges_s)
    return RankTimes(module, direction, source, cells, rank_edges, time_edges_s)

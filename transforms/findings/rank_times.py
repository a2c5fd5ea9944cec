"""Compute heat maps of traced runs: bytes by rank and time, in a limited number of cells.

The source is individual requests, unless the heat map of the tracer is fine enough or requests are missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints, Reals, offsets_of

#: `MAX_ROWS`: maximum number of rows (ranks) of a heat map
#: `MAX_COLUMNS`: maximum number of columns (times) of a heat map
MAX_ROWS, MAX_COLUMNS = 64, 128
#: minimum number of bins with which a tracer's heat map is preferred to requests
_MIN_BINS = 32


@dataclass(frozen=True, slots=True)
class RankTimes:
    """Bytes of ranks over time, in one direction and layer.

    Attributes
    ----------
    cell_bytes : (ranks, times)
        Bytes of each cell.
    rank_edges : (ranks + 1,)
        First rank of each row, and the number of ranks.
    time_edges_s : (times + 1,)
        Edges of the columns, relative to the start of the trace [s].
    source
        Origin of the bytes: `heatmap` (of the tracer) or `requests`.
    """

    module: str
    direction: str
    source: str
    cell_bytes: Reals
    rank_edges: Ints
    time_edges_s: Reals

    @property
    def time_bytes(self) -> Reals:
        """Return the bytes of all ranks in each time interval (times)."""
        totals: Reals = self.cell_bytes.sum(axis=0)
        return totals

    @property
    def rank_bytes(self) -> Reals:
        """Return the bytes of each row, divided by its number of ranks (ranks)."""
        means: Reals = self.cell_bytes.sum(axis=1) / np.diff(self.rank_edges)
        return means


def compute_rank_times(
    heatmaps: pl.DataFrame, requests: pl.DataFrame | None, module: str, process_count: int | None
) -> list[RankTimes]:
    """Compute the heat maps of one layer of a traced run.

    Parameters
    ----------
    heatmaps
        The run's rows of `trace_heatmaps`.
    requests
        The run's rows of `trace_requests`, if read.
    module
        Layer of the heat maps.
    process_count
        Number of processes, if known; ranks without bytes also have rows.

    Returns
    -------
    list[RankTimes]
        One heat map per direction with bytes, writes first. A tracer's heat map of 32 or more bins is preferred to
        requests. The list is empty if data by rank are missing.
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
        Rank, start, end [s] and bytes of each interval; all lie within the edges.
    rank_edges, time_edges_s
        Edges of the cells; times are equidistant.

    Returns
    -------
    (ranks, times)
        Bytes of each cell. An interval of zero duration contributes to the cell of its start.
    """
    rows, columns = len(rank_edges) - 1, len(time_edges_s) - 1
    first, last = (_find_column(instants, time_edges_s) for instants in (start_s, end_s))
    counts = last - first + 1
    owner = np.repeat(np.arange(len(rank)), counts)
    place = np.arange(len(owner)) - np.repeat(offsets_of(counts)[:-1], counts)
    column = first[owner] + place
    overlap_s = np.minimum(end_s[owner], time_edges_s[column + 1]) - np.maximum(start_s[owner], time_edges_s[column])
    duration_s = (end_s - start_s)[owner]
    share = np.where(duration_s > 0, np.clip(overlap_s, 0, None) / np.where(duration_s > 0, duration_s, 1.0), 1.0)
    share = np.where((duration_s <= 0) & (place > 0), 0.0, share)
    row = np.searchsorted(rank_edges, rank, side="right") - 1
    cells = row[owner] * columns + column
    totals = np.bincount(cells, weights=volume_bytes[owner] * share, minlength=rows * columns)
    return totals.astype(np.float64).reshape(rows, columns)


def _find_column(instants_s: Reals, edges_s: Reals) -> Ints:
    """Return the column of each time (n); edges are equidistant."""
    index: Ints = ((instants_s - edges_s[0]) / (edges_s[1] - edges_s[0])).astype(np.int64)
    clipped: Ints = np.clip(index, 0, len(edges_s) - 2)
    return clipped


def _request_intervals(requests: pl.DataFrame, module: str, direction: str) -> pl.DataFrame:
    return requests.filter(
        pl.col("module") == module, pl.col("direction") == direction, pl.col("rank") >= 0, pl.col("request_bytes") > 0
    ).select("rank", "start_s", "end_s", bytes=pl.col("request_bytes").cast(pl.Float64))


def _bin_intervals(bins: pl.DataFrame) -> pl.DataFrame:
    """Convert the bins that contain bytes to intervals."""
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
    transfers: pl.DataFrame, module: str, direction: str, source: str, process_count: int | None, bin_s: float | None
) -> RankTimes | None:
    if transfers.is_empty():
        return None
    rank, start_s, end_s, volume = (transfers[name].to_numpy() for name in ("rank", "start_s", "end_s", "bytes"))
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

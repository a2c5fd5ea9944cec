"""Bytes by rank and time: what a heat map shows, in cells few enough to be drawn, with the sums along both edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints, Reals, offsets_of

#: cells of a heat map at most: ranks, times
MOST_RANKS, MOST_TIMES = 64, 128
#: a heat map of fewer bins tells less than requests, where these are there
_FEWEST_BINS = 32


@dataclass(frozen=True, slots=True)
class RankTimes:
    """What ranks moved over time, in one direction, by one layer.

    cell_bytes (ranks, times). rank_edges (ranks + 1): the first rank of each row, and one past the last. time_edges_s
    (times + 1), from the trace's zero. source: `heatmap` or `requests`.
    """

    module: str
    direction: str
    source: str
    cell_bytes: Reals
    rank_edges: Ints
    time_edges_s: Reals

    @property
    def time_bytes(self) -> Reals:
        """What all ranks moved in each time (times)."""
        found: Reals = self.cell_bytes.sum(axis=0)
        return found

    @property
    def rank_bytes(self) -> Reals:
        """What a rank of each row moved, the mean of those that share it (ranks)."""
        found: Reals = self.cell_bytes.sum(axis=1) / np.diff(self.rank_edges)
        return found


def rank_times(
    heatmaps: pl.DataFrame, requests: pl.DataFrame | None, module: str, process_count: int | None
) -> list[RankTimes]:
    """Return the heat maps of a layer of one traced run, writes first, of directions in which it moved bytes.

    heatmaps: rows of `trace_heatmaps`; requests: of `trace_requests`; both of one run, of any layers. process_count: of
    the run, if known: ranks that moved nothing have rows, too. A tracer's own heat map goes before requests if it has
    32 bins or more. Nothing where neither is there, or single ranks are not told of.
    """
    found = []
    for way in ("write", "read"):
        bins = heatmaps.filter(pl.col("module") == module, pl.col("direction") == way, pl.col("rank") >= 0)
        own = None if requests is None else _requested(requests, module, way)
        is_fine = bins.filter(pl.col("step_count") >= _FEWEST_BINS).height > 0
        if own is not None and own.height and not is_fine:
            made = _of(own, module, way, "requests", process_count, None)
        elif bins.height:
            made = _of(_binned(bins), module, way, "heatmap", process_count, bins["interval_s"].to_numpy().max())
        else:
            continue
        if made is not None:
            found.append(made)
    return found


def spread(
    rank: Ints, start_s: Reals, end_s: Reals, volume_bytes: Reals, rank_edges: Ints, time_edges_s: Reals
) -> Reals:
    """Return bytes (ranks, times) of intervals (n) in cells, each spread evenly over its time.

    Times are of one width; an interval without a duration lies in the cell of its instant. Intervals lie within the
    edges.
    """
    rows, columns = len(rank_edges) - 1, len(time_edges_s) - 1
    first, last = (_column(instants, time_edges_s) for instants in (start_s, end_s))
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
    found = np.bincount(cells, weights=volume_bytes[owner] * share, minlength=rows * columns)
    return found.astype(np.float64).reshape(rows, columns)


def _column(instants_s: Reals, edges_s: Reals) -> Ints:
    """Return in which cell each instant (n) lies, of cells of one width."""
    found: Ints = ((instants_s - edges_s[0]) / (edges_s[1] - edges_s[0])).astype(np.int64)
    kept: Ints = np.clip(found, 0, len(edges_s) - 2)
    return kept


def _requested(requests: pl.DataFrame, module: str, way: str) -> pl.DataFrame:
    return requests.filter(
        pl.col("module") == module, pl.col("direction") == way, pl.col("rank") >= 0, pl.col("request_bytes") > 0
    ).select("rank", "start_s", "end_s", bytes=pl.col("request_bytes").cast(pl.Float64))


def _binned(bins: pl.DataFrame) -> pl.DataFrame:
    """Return the bins of heat maps that hold bytes, as intervals."""
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


def _of(
    moved: pl.DataFrame, module: str, way: str, source: str, process_count: int | None, bin_s: float | None
) -> RankTimes | None:
    if moved.is_empty():
        return None
    rank, start_s, end_s, volume = (moved[name].to_numpy() for name in ("rank", "start_s", "end_s", "bytes"))
    count = max(process_count or 0, int(rank.max()) + 1)
    together = -(-count // MOST_RANKS)
    rank_edges = np.minimum(np.arange(-(-count // together) + 1) * together, count)
    until_s = float(end_s.max())
    if bin_s is not None:
        steps = round(until_s / bin_s)
        width_s = bin_s * -(-steps // MOST_TIMES)
    else:
        width_s = until_s / MOST_TIMES if until_s > 0 else 1.0
    times = max(int(np.ceil(round(until_s / width_s, 9))), 1)
    time_edges_s: Reals = np.arange(times + 1) * np.float64(width_s)
    cells = spread(rank, start_s, end_s, volume, rank_edges, time_edges_s)
    return RankTimes(module, way, source, cells, rank_edges, time_edges_s)

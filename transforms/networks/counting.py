"""Aggregate transfers into networks: histograms and sums by edge and window, and a timeline by hop.

Sigovan et al. (IPDPS'13), section IV: "we stream and aggregate chunks of time to construct the graph". Here, transfers
are aggregated in chunks of a fixed size. The tables of chunks are merged continually, so that memory grows with the
edges, windows and bins that occur, not with the number of transfers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.transforms.arrays import Ints, Reals, offsets_of
from iosig.transforms.networks.batches import LayerBatch, NetworkBatch, TransferBatch
from iosig.transforms.networks.log_bins import UNKNOWN, bin_numbers
from iosig.transforms.networks.network import (
    COUNTS,
    EDGES,
    METRICS,
    STEPS_PER_WINDOW,
    TIMELINE,
    TOTALS,
    Layer,
    Network,
    TimeKind,
    Transfers,
)

_SUMS = ("transfer_count", "read_bytes", "written_bytes", "transfer_time_s")
#: number of transfers per aggregation; smaller batches are buffered
_CHUNK = 1 << 19
#: minimum number of unmerged rows that triggers a merge
_MIN_MERGE_ROWS = 1 << 22
#: numbers of bits in the parts of a key, from the lowest bit: bin, metric, edge, window
_BIN_BITS, _METRIC_BITS, _EDGE_BITS, _WINDOW_BITS = 16, 2, 31, 14
_EDGE_SHIFT = _BIN_BITS + _METRIC_BITS
_WINDOW_SHIFT = _EDGE_SHIFT + _EDGE_BITS
_LOWEST_BIN = -(1 << (_BIN_BITS - 1))
_LARGEST = np.finfo(np.float64).max
#: maximum number of entries in a lookup table, per value that is looked up
_MAX_ENTRIES_PER_VALUE = 8

Columns = list[npt.NDArray[Any]]


def window_edges(start_s: float, end_s: float, window_count: int) -> Reals:
    """Divide a time range into equal windows.

    Parameters
    ----------
    start_s, end_s
        Time range [s]; a value that is not finite counts as unknown.
    window_count
        Number of windows.

    Returns
    -------
    (window_count + 1,)
        Edges of the windows [s].

    Raises
    ------
    ValueError
        If the number of windows is not positive.

    Notes
    -----
    A time range of zero length, or too short for its windows in floating-point arithmetic, is extended to one second.
    If the times are too large to resolve a second, it is extended further.
    """
    if window_count < 1:
        raise ValueError(f"window_count must be positive, not {window_count}")
    known_s = [time_s for time_s in (start_s, end_s) if np.isfinite(time_s)] or [0.0]
    start_s, end_s = known_s[0], known_s[-1]
    min_duration_s = 16.0 * window_count * STEPS_PER_WINDOW * float(np.spacing(max(abs(start_s), abs(end_s))))
    if not end_s - start_s > min_duration_s:
        end_s = start_s + max(1.0, 2 * min_duration_s)
    return np.linspace(start_s, end_s, window_count + 1)


def has_equal_windows(edges_s: Reals) -> bool:
    """Return whether windows ascend and have equal lengths, within a tolerance of 0.1 %.

    Parameters
    ----------
    edges_s : (windows + 1,)
        Edges of the windows [s].

    Returns
    -------
    bool
        False also if an edge is not finite.
    """
    widths = np.diff(edges_s)
    if not np.isfinite(edges_s).all() or not len(widths) or not (widths > 0).all():
        return False
    return bool(np.allclose(widths, widths.mean(), rtol=1e-3, atol=0))


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows with unique, ascending keys (n), and value columns (n)."""

    keys: Ints
    columns: Columns

    def by_window(self) -> list[_Table]:
        """Split the rows by window; parts are copies, so that each can be freed separately."""
        if not len(self.keys):
            return []
        first, last = (self.keys[[0, -1]] >> _WINDOW_SHIFT).tolist()
        if first == last:
            return [self]
        bounds = np.searchsorted(self.keys, np.arange(first, last + 2) << _WINDOW_SHIFT).tolist()
        parts = [slice(begin, end) for begin, end in pairwise(bounds) if end > begin]
        return [_Table(self.keys[part].copy(), [column[part].copy() for column in self.columns]) for part in parts]


#: functions that combine the values of rows with equal keys, by column
_COUNT_RULES = (np.add,)
_TOTAL_RULES = (np.add, np.add, np.add, np.add, np.maximum)
_TIMELINE_RULES = (np.add, np.add, np.minimum, np.maximum)


def _reduce_by_key(keys: Ints, columns: Sequence[npt.NDArray[Any]], rules: Sequence[np.ufunc]) -> _Table:
    """Combine the rows with equal keys, in their order."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = _find_run_starts(keys)
    with np.errstate(over="ignore"):
        reduced = [rule.reduceat(column[order], starts) for rule, column in zip(rules, columns, strict=True)]
    return _Table(keys[starts], [_shrink_dtype(values) for values in reduced])


def _find_run_starts(keys: Ints) -> Ints:
    """Return the first index of each sequence of equal keys; keys are sorted."""
    differs = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=differs[1:])
    return np.flatnonzero(differs)


def _shrink_dtype(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert counts to the smallest integer type that can represent them; floats are unchanged."""
    return values if values.dtype.kind == "f" else values.astype(np.min_scalar_type(values.max(initial=0)))


def _merge_tables(tables: Sequence[_Table], rules: Sequence[np.ufunc]) -> list[_Table]:
    """Merge tables into one table per window; do not copy a window that occurs in only one table."""
    windows: dict[int, list[_Table]] = {}
    for table in tables:
        for part in table.by_window():
            windows.setdefault(int(part.keys[0]) >> _WINDOW_SHIFT, []).append(part)
    merged_parts = [
        _reduce_by_key(*_concatenate(parts), rules) if len(parts) > 1 else parts[0]
        for _, parts in sorted(windows.items())
    ]
    return merged_parts or list(tables[:1])


def _concatenate(tables: Sequence[_Table]) -> tuple[Ints, Columns]:
    columns = [np.concatenate(parts) for parts in zip(*(table.columns for table in tables), strict=True)]
    return np.concatenate([table.keys for table in tables]), columns


@dataclass(frozen=True, slots=True)
class _Aggregate:
    """Sums of transfers by edge, window and bin.

    Attributes
    ----------
    edges : (edges,)
        Numbers of the edges that occur, among all possible edges; sorted. Keys contain indices of this array.
    counts
        Tables by window, with a key of window, edge, metric and bin, and the count.
    totals
        Tables by window, with a key of window and edge, and the columns of TOTALS.
    timeline
        Table with a key of layer, metric and step, and count, sum, minimum and maximum.
    """

    edges: Ints
    counts: list[_Table]
    totals: list[_Table]
    timeline: _Table

    @property
    def row_count(self) -> int:
        return sum(len(table.keys) for table in (*self.counts, *self.totals))

    def renumber_edges(self, edges: Ints) -> _Aggregate:
        """Replace the edge indices by indices of `edges`, a sorted superset; the order of keys is unchanged."""
        if len(edges) == len(self.edges):
            return self
        shift = np.searchsorted(edges, self.edges) - np.arange(len(self.edges))
        counts, totals = (
            [_Table(table.keys + (shift[_extract_edge(table.keys)] << _EDGE_SHIFT), table.columns) for table in tables]
            for tables in (self.counts, self.totals)
        )
        return _Aggregate(edges, counts, totals, self.timeline)


def _extract_edge(keys: Ints) -> Ints:
    return (keys >> _EDGE_SHIFT) & ((1 << _EDGE_BITS) - 1)


def _merge_aggregates(aggregates: Sequence[_Aggregate]) -> _Aggregate:
    edges = np.unique(np.concatenate([aggregate.edges for aggregate in aggregates]))
    aligned = [aggregate.renumber_edges(edges) for aggregate in aggregates]
    return _Aggregate(
        edges,
        _merge_tables([table for aggregate in aligned for table in aggregate.counts], _COUNT_RULES),
        _merge_tables([table for aggregate in aligned for table in aggregate.totals], _TOTAL_RULES),
        _reduce_by_key(*_concatenate([aggregate.timeline for aggregate in aligned]), _TIMELINE_RULES),
    )


class BatchCounter:
    """Streaming aggregation of transfers of many runs, in any order.

    Transfers outside all windows count in the first or the last window. Transfers with an unknown time count in the
    first window. Infinite values count as unknown.

    Parameters
    ----------
    layers
        Layers and nodes of n runs.
    window_edges_s : (n, windows + 1)
        Edges of each run's windows [s].

    Raises
    ------
    ValueError
        If windows are unequal, or too many.
    """

    def __init__(self, layers: LayerBatch, window_edges_s: Reals) -> None:
        if not all(has_equal_windows(edges_s) for edges_s in window_edges_s):
            raise ValueError("windows must have equal lengths and ascend")
        self._layers, self._edges_s = layers, window_edges_s
        self._window_count: int = window_edges_s.shape[1] - 1
        if self._window_count > 1 << _WINDOW_BITS:
            raise ValueError(f"at most {1 << _WINDOW_BITS} windows are supported, not {self._window_count}")
        steps_s = np.linspace(window_edges_s[:, 0], window_edges_s[:, -1], self._step_count + 1, axis=1)
        self._steps_s = np.ascontiguousarray(steps_s)
        self._steps_s[:, ::STEPS_PER_WINDOW] = window_edges_s
        node_counts = np.diff(layers.first_node)
        self._layer_of_node = np.repeat(np.arange(len(node_counts)), node_counts)
        # possible edges are numbered by source, then by target; a run's innermost layer has no edges
        target_counts = np.append(node_counts[1:], 0)
        target_counts[[kind is None for kind in layers.time_kinds]] = 0
        self._first_edge = offsets_of(target_counts[self._layer_of_node])
        # for each source: offset from the number of the target to the number of the edge
        self._edge_shift = self._first_edge[:-1] - layers.first_node[1:][self._layer_of_node]
        self._buffer: list[TransferBatch] = []
        self._buffered_count = 0
        self._aggregates: list[_Aggregate] = []

    @property
    def _step_count(self) -> int:
        return self._window_count * STEPS_PER_WINDOW

    def add(self, transfers: TransferBatch) -> None:
        """Add transfers; the caller may modify the arrays afterwards."""
        count = len(transfers.run)
        if not count:
            return
        if count < _CHUNK:
            self._buffer.append(_slice_batch(transfers, slice(None), copy=True))
            self._buffered_count += count
            if self._buffered_count >= _CHUNK:
                self._flush()
            return
        for begin in range(0, count, _CHUNK):
            self._count(_slice_batch(transfers, slice(begin, begin + _CHUNK)))

    def result(self) -> NetworkBatch:
        """Return the networks of all transfers added so far."""
        aggregate = self._merge_all()
        source = np.searchsorted(self._first_edge, aggregate.edges, side="right") - 1
        target = aggregate.edges - self._edge_shift[source]
        return NetworkBatch(
            self._layers,
            self._edges_s,
            source,
            target,
            _counts_frame(aggregate.counts),
            _totals_frame(aggregate.totals),
        )

    def timeline(self) -> pl.DataFrame:
        """Return the TIMELINE of all transfers added so far; `hop` is the number of the outer layer."""
        timeline = self._merge_all().timeline
        place, step = np.divmod(timeline.keys, self._step_count)
        count, total, low, high = timeline.columns
        columns = (place // len(METRICS), place % len(METRICS), step, count, np.minimum(total, _LARGEST), low, high)
        return pl.DataFrame(dict(zip(TIMELINE, columns, strict=True))).cast(TIMELINE)

    def _merge_all(self) -> _Aggregate:
        self._flush()
        if len(self._aggregates) != 1:
            if not self._aggregates:
                self._count(_make_empty_batch())
            self._aggregates = [_merge_aggregates(self._aggregates)]
        return self._aggregates[0]

    def _flush(self) -> None:
        # grouped by hop: transfers that arrive in chronological order need no further sorting
        buffered = sorted(self._buffer, key=lambda part: int(part.source[0]))
        self._buffer, self._buffered_count = [], 0
        if buffered:
            names = [field.name for field in fields(TransferBatch)]
            self._count(TransferBatch(*(np.concatenate([getattr(part, name) for part in buffered]) for name in names)))

    def _count(self, transfers: TransferBatch) -> None:
        self._aggregates.append(self._aggregate(transfers))
        # merging only when the table has doubled copies each row no more than a few times
        merged_count, *new_counts = (aggregate.row_count for aggregate in self._aggregates)
        if sum(new_counts) >= max(merged_count, _MIN_MERGE_ROWS):
            self._aggregates = [_merge_aggregates(self._aggregates)]

    def _aggregate(self, transfers: TransferBatch) -> _Aggregate:
        place = self._layer_of_node[transfers.source] * self._step_count + self._steps(transfers)
        transfers, place = self._sort_by_place(transfers, place)
        window = place // STEPS_PER_WINDOW - self._layer_of_node[transfers.source] * self._window_count
        edges, edge = _unique_inverse(self._edge_shift[transfers.source] + transfers.target, int(self._first_edge[-1]))
        spans, span = _unique_inverse(window * len(edges) + edge, self._window_count * len(edges))
        keys = np.zeros(0, np.int64)
        if len(spans):
            window, edge = np.divmod(spans, len(edges))
            keys = (window << _WINDOW_SHIFT) + (edge << _EDGE_SHIFT)
        metrics = [
            _infinite_to_nan(v) for v in (transfers.time_s, transfers.size_bytes, transfers.bandwidth_bytes_per_s)
        ]
        return _Aggregate(
            edges,
            [_count_bins(keys, span, metrics)],
            [_sum_spans(keys, span, metrics[1], metrics[0], transfers.is_read)],
            self._reduce_timeline(place, metrics),
        )

    def _sort_by_place(self, transfers: TransferBatch, place: Ints) -> tuple[TransferBatch, Ints]:
        """Sort transfers (n) by place: layer * steps + step."""
        if (place[1:] >= place[:-1]).all():
            return transfers, place
        # NumPy has a radix sort for integers of 16 bits
        is_narrow = len(self._layers.names) * self._step_count <= 1 << 16
        order = np.argsort(place.astype(np.uint16) if is_narrow else place, kind="stable")
        return TransferBatch(*(getattr(transfers, field.name)[order] for field in fields(TransferBatch))), place[order]

    def _reduce_timeline(self, place: Ints, metrics: Sequence[Reals]) -> _Table:
        """Combine the known values (n) of each metric by place (sorted); counts and sums exclude negative values."""
        starts = _find_run_starts(place)
        layer, step = np.divmod(place[starts], self._step_count)
        pieces = []
        for metric, values in enumerate(metrics):
            is_counted = values >= 0
            with np.errstate(over="ignore"):
                columns = [
                    np.add.reduceat(is_counted, starts, dtype=np.int64),
                    np.add.reduceat(np.where(is_counted, values, 0.0), starts),
                    np.fmin.reduceat(values, starts),
                    np.fmax.reduceat(values, starts),
                ]
            is_known = ~np.isnan(columns[2])
            keys = (layer * len(METRICS) + metric) * self._step_count + step
            pieces.append(_Table(keys[is_known], [column[is_known] for column in columns]))
        return _reduce_by_key(*_concatenate(pieces), _TIMELINE_RULES)

    def _steps(self, transfers: TransferBatch) -> Ints:
        """Return the step of each transfer (n) on the timeline of its run."""
        run, count = transfers.run, self._step_count
        first_s, last_s, edges_s = self._steps_s[:, 0], self._steps_s[:, -1], self._steps_s.ravel()
        with np.errstate(over="ignore"):
            scaled = (transfers.at_s - first_s.take(run)) * (count / (last_s - first_s)).take(run)
        step: Ints = np.fmin(np.fmax(scaled, 0.0), count - 1).astype(np.int64)
        # correct rounding errors of one step
        first_edge = run * (count + 1)
        step -= (transfers.at_s < edges_s.take(first_edge + step)) & (step > 0)
        step += (transfers.at_s >= edges_s.take(first_edge + step + 1)) & (step < count - 1)
        return step


def _slice_batch(transfers: TransferBatch, part: slice, *, copy: bool = False) -> TransferBatch:
    columns = (getattr(transfers, field.name)[part] for field in fields(TransferBatch))
    return TransferBatch(*(column.copy() for column in columns) if copy else columns)


def _infinite_to_nan(values: Reals) -> Reals:
    is_infinite = np.isinf(values)
    return np.where(is_infinite, np.nan, values) if is_infinite.any() else values


def _unique_inverse(numbers: Ints, end: int) -> tuple[Ints, Ints]:
    """Find the unique values (0 to `end` - 1), and the index of each value (n) in these, like `numpy.unique`."""
    if end > _MAX_ENTRIES_PER_VALUE * len(numbers):
        return np.unique(numbers, return_inverse=True)
    occurs = np.zeros(end, np.bool_)
    occurs[numbers] = True
    unique = np.flatnonzero(occurs)
    indices = np.empty(end, np.int64)
    indices[unique] = np.arange(len(unique))
    return unique, indices[numbers]


def _make_empty_batch() -> TransferBatch:
    numbers, values = np.zeros(0, np.int64), np.zeros(0)
    return TransferBatch(numbers, numbers, numbers, values, values, values, values, np.zeros(0, np.bool_))


def _count_bins(keys: Ints, span: Ints, metrics: Sequence[Reals]) -> _Table:
    """Count the known values (n) of each metric by bin and span; a span is the index of a key of window and edge.

    The bins that occur are numbered across all metrics, so that most cells fit into 32 bits. Such cells sort three
    times as fast as cells of 64 bits.
    """
    bins, spans = [], []
    for metric, values in enumerate(metrics):
        numbers = bin_numbers(values)
        is_known = numbers != UNKNOWN
        is_all_known = is_known.all()
        numbers = (numbers if is_all_known else numbers[is_known]).astype(np.int32)
        bins.append(numbers + ((metric << _BIN_BITS) - _LOWEST_BIN))
        spans.append(span if is_all_known else span[is_known])
    slots, slot = _unique_inverse(np.concatenate(bins), len(METRICS) << _BIN_BITS)
    dtype: Any = np.uint32 if len(keys) * len(slots) < 1 << 32 else np.int64
    cells = np.concatenate(spans).astype(dtype)
    cells *= dtype(len(slots))
    cells += slot.astype(dtype)
    cells.sort()
    starts = _find_run_starts(cells)
    unique = cells[starts]
    index = unique // dtype(max(len(slots), 1))
    rows = keys[index] + slots[unique - index * dtype(len(slots))]
    return _Table(rows, [_shrink_dtype(np.diff(starts, append=len(cells)))])


def _sum_spans(keys: Ints, span: Ints, size_bytes: Reals, time_s: Reals, is_read: npt.NDArray[np.bool_]) -> _Table:
    # unknown sizes and times add nothing to the sums
    size_bytes, time_s = np.fmax(size_bytes, 0.0), np.fmax(time_s, 0.0)
    moved_bytes = np.bincount(2 * span + is_read, size_bytes, 2 * len(keys))
    max_transfer_time_s = np.zeros(len(keys))
    np.maximum.at(max_transfer_time_s, span, time_s)
    count, total_s = np.bincount(span, minlength=len(keys)), np.bincount(span, time_s, len(keys))
    return _Table(keys, [count, moved_bytes[1::2], moved_bytes[::2], total_s, max_transfer_time_s])


def _counts_frame(tables: Sequence[_Table]) -> pl.DataFrame:
    columns: tuple[Callable[[_Table], npt.NDArray[Any]], ...] = (
        lambda table: (table.keys >> _WINDOW_SHIFT).astype(np.int32),
        lambda table: (table.keys >> _EDGE_SHIFT).astype(np.int32) & np.int32((1 << _EDGE_BITS) - 1),
        lambda table: (table.keys >> _BIN_BITS).astype(np.int8) & np.int8((1 << _METRIC_BITS) - 1),
        lambda table: (table.keys.astype(np.uint16) ^ np.uint16(-_LOWEST_BIN)).view(np.int16),
        lambda table: table.columns[0].astype(np.int64),
    )
    # tables are converted one by one, since concatenated keys would take several times the memory of the rows
    return pl.DataFrame(
        [
            pl.Series(name, np.concatenate([column(table) for table in tables]))
            for name, column in zip(COUNTS, columns, strict=True)
        ]
    )


def _totals_frame(tables: Sequence[_Table]) -> pl.DataFrame:
    keys, (count, *sums) = _concatenate(tables)
    # sums that overflow become the largest float
    columns = (keys >> _WINDOW_SHIFT, _extract_edge(keys), count, *(np.minimum(column, _LARGEST) for column in sums))
    return pl.DataFrame(dict(zip(TOTALS, columns, strict=True))).cast(TOTALS)


class EdgeCounter:
    """Streaming aggregation of the transfers of one run into its network.

    Parameters
    ----------
    layers
        Layers from outermost to innermost.
    time_kinds
        Meaning of the times of each hop.
    window_edges_s : (windows + 1,)
        Edges of equal windows [s].
    """

    def __init__(self, layers: tuple[Layer, ...], time_kinds: tuple[TimeKind, ...], window_edges_s: Reals) -> None:
        self._layers, self._time_kinds, self._edges_s = layers, time_kinds, window_edges_s
        self._batch = LayerBatch.from_layers(layers, time_kinds)
        self._counter = BatchCounter(self._batch, window_edges_s[None, :])

    def add(self, transfers: Transfers) -> None:
        """Add transfers of one hop, in any order.

        Raises
        ------
        ValueError
            If the columns differ in length, or the hop or a node does not exist.
        """
        names = ("source", "target", "at_s", "time_s", "size_bytes", "bandwidth_bytes_per_s", "is_read")
        if len({len(getattr(transfers, name)) for name in names}) != 1:
            raise ValueError("columns of transfers must have equal lengths")
        layers, first = self._hop_layers(transfers.hop), self._batch.first_node[transfers.hop :]
        source, target = (np.asarray(nodes, np.int64) for nodes in (transfers.source, transfers.target))
        for nodes, layer in zip((source, target), layers, strict=True):
            if not ((nodes >= 0) & (nodes < layer.node_count)).all():
                raise ValueError(f"node numbers must be between 0 and {layer.node_count - 1}")
        self._counter.add(
            TransferBatch(
                np.zeros_like(source),
                source + first[0],
                target + first[1],
                np.asarray(transfers.at_s, np.float64),
                np.asarray(transfers.time_s, np.float64),
                np.asarray(transfers.size_bytes, np.float64),
                np.asarray(transfers.bandwidth_bytes_per_s, np.float64),
                np.asarray(transfers.is_read, np.bool_),
            )
        )

    def _hop_layers(self, hop: int) -> tuple[Layer, ...]:
        if not 0 <= hop < len(self._time_kinds):
            raise ValueError(f"hop must be between 0 and {len(self._time_kinds) - 1}, not {hop}")
        return self._layers[hop : hop + 2]

    def result(self) -> Network:
        """Return the network of all transfers added so far."""
        batch = self._counter.result()
        first_node, hop = self._batch.first_node, self._batch.find_layers(batch.source)
        columns = (hop, batch.source - first_node[hop], batch.target - first_node[hop + 1])
        edges = pl.DataFrame(dict(zip(EDGES, columns, strict=True))).cast(EDGES)
        return Network(
            self._layers,
            self._time_kinds,
            self._edges_s,
            edges,
            batch.counts,
            batch.totals,
            self._counter.timeline(),
        )


def merge_windows(network: Network, factor: int) -> Network:
    """Merge groups of `factor` adjacent windows of a network; the last group may have fewer windows.

    Parameters
    ----------
    network
        Network with equal windows.
    factor
        Number of windows to merge.

    Returns
    -------
    Network
        Network with fewer windows, which still have equal lengths. If their original number is not a multiple of the
        factor, the last window extends beyond the end of the run.

    Raises
    ------
    ValueError
        If the factor is not positive.
    """
    if factor < 1:
        raise ValueError(f"factor must be positive, not {factor}")
    count = -(-network.window_count // factor)
    start_s, window_s = network.window_edges_s[0], np.diff(network.window_edges_s).mean()
    edges_s = np.append(network.window_edges_s[::factor][:count], start_s + count * factor * window_s)
    if network.window_count % factor == 0:
        edges_s[-1] = network.window_edges_s[-1]
    wide_window = pl.col("window") // factor
    counts = (
        network.counts.with_columns(wide_window).group_by("window", "edge", "metric", "bin").agg(pl.col("count").sum())
    )
    totals = (
        network.totals.with_columns(wide_window)
        .group_by("window", "edge")
        .agg(pl.col(*_SUMS).sum(), pl.col("max_transfer_time_s").max())
    )
    timeline = (
        network.timeline.with_columns(pl.col("step") // factor)
        .group_by("hop", "metric", "step")
        .agg(pl.col("count", "sum").sum(), pl.col("least").min(), pl.col("most").max())
    )
    return replace(
        network,
        window_edges_s=edges_s,
        counts=counts.select(COUNTS.names()).cast(COUNTS).sort("window", "edge", "metric", "bin"),
        totals=totals.select(TOTALS.names()).cast(TOTALS).sort("window", "edge"),
        timeline=timeline.select(TIMELINE.names()).cast(TIMELINE).sort("hop", "metric", "step"),
    )

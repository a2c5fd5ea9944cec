"""Aggregate transfers into networks: histograms and sums by edge and window, and a timeline by hop.

Sigovan et al. (IPDPS'13), section IV: "we stream and aggregate chunks of time to construct the graph". Transfers are
aggregated in chunks of a fixed size. The chunks' tables merge as they come, so memory grows with the edges, windows
and bins that occur, never with the number of transfers.
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
#: transfers that are aggregated at a time; fewer wait until there are as many
_CHUNK = 1 << 19
#: rows of new tables that wait in any case before they are merged
_MERGED_ROWS = 1 << 22
#: bits of a key, from the lowest on: bin, metric, edge, window
_BIN_BITS, _METRIC_BITS, _EDGE_BITS, _WINDOW_BITS = 16, 2, 31, 14
_EDGE_SHIFT = _BIN_BITS + _METRIC_BITS
_WINDOW_SHIFT = _EDGE_SHIFT + _EDGE_BITS
_LOWEST_BIN = -(1 << (_BIN_BITS - 1))
_LARGEST = np.finfo(np.float64).max
#: a table of all possible numbers may have this many entries per number that is looked up
_ENTRIES_PER_NUMBER = 8

Columns = list[npt.NDArray[Any]]


def window_edges(began_s: float, ceased_s: float, window_count: int) -> Reals:
    """Return the edges (window_count + 1) of equal windows, in seconds.

    A span that has no length, or is too short for its windows to have any, is taken to last a second (longer where
    the instants are so large that a float does not tell them apart); instants that are not finite are not known.
    """
    if window_count < 1:
        raise ValueError(f"there must be a window at least, not {window_count}")
    known = [instant for instant in (began_s, ceased_s) if np.isfinite(instant)] or [0.0]
    began, ceased = known[0], known[-1]
    least_s = 16.0 * window_count * STEPS_PER_WINDOW * float(np.spacing(max(abs(began), abs(ceased))))
    if not ceased - began > least_s:
        ceased = began + max(1.0, 2 * least_s)
    return np.linspace(began, ceased, window_count + 1)


def are_equal_windows(edges_s: Reals) -> bool:
    """Return whether windows (edges: windows + 1) are equal, and rise."""
    widths = np.diff(edges_s)
    if not np.isfinite(edges_s).all() or not len(widths) or not (widths > 0).all():
        return False
    return bool(np.allclose(widths, widths.mean(), rtol=1e-3, atol=0))


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows of different keys (n), sorted by key, with the values (n) of each column."""

    keys: Ints
    columns: Columns

    def by_window(self) -> list[_Table]:
        """Return a table for each window that has rows: copies, so that each frees its memory by itself."""
        if not len(self.keys):
            return []
        first, last = (self.keys[[0, -1]] >> _WINDOW_SHIFT).tolist()
        if first == last:
            return [self]
        bounds = np.searchsorted(self.keys, np.arange(first, last + 2) << _WINDOW_SHIFT).tolist()
        parts = [slice(begin, end) for begin, end in pairwise(bounds) if end > begin]
        return [_Table(self.keys[part].copy(), [column[part].copy() for column in self.columns]) for part in parts]


#: how the values of equal keys are combined, column by column
_COUNT_RULES = (np.add,)
_TOTAL_RULES = (np.add, np.add, np.add, np.add, np.maximum)
_TIMELINE_RULES = (np.add, np.add, np.minimum, np.maximum)


def _combined(keys: Ints, columns: Sequence[npt.NDArray[Any]], rules: Sequence[np.ufunc]) -> _Table:
    """Combine the rows of equal keys, in the order that they have."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = _starts(keys)
    with np.errstate(over="ignore"):
        combined = [rule.reduceat(column[order], starts) for rule, column in zip(rules, columns, strict=True)]
    return _Table(keys[starts], [_narrowed(values) for values in combined])


def _starts(keys: Ints) -> Ints:
    """Return where each run of equal keys (sorted) begins."""
    differs = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=differs[1:])
    return np.flatnonzero(differs)


def _narrowed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return counts in as few bytes as they need; reals stay."""
    return values if values.dtype.kind == "f" else values.astype(np.min_scalar_type(values.max(initial=0)))


def _merged_tables(tables: Sequence[_Table], rules: Sequence[np.ufunc]) -> list[_Table]:
    """Combine tables into one per window: windows that only one table has rows of stay as they are."""
    windows: dict[int, list[_Table]] = {}
    for table in tables:
        for part in table.by_window():
            windows.setdefault(int(part.keys[0]) >> _WINDOW_SHIFT, []).append(part)
    merged_parts = [
        _combined(*_joined(parts), rules) if len(parts) > 1 else parts[0] for _, parts in sorted(windows.items())
    ]
    return merged_parts or list(tables[:1])


def _joined(tables: Sequence[_Table]) -> tuple[Ints, Columns]:
    columns = [np.concatenate(parts) for parts in zip(*(table.columns for table in tables), strict=True)]
    return np.concatenate([table.keys for table in tables]), columns


@dataclass(frozen=True, slots=True)
class _Aggregate:
    """What transfers add up to.

    edges: numbers among all possible edges, sorted; an edge's number is its place. counts: key of window, edge, metric
    and bin; count. totals: key of window and edge; the columns of TOTALS. Tables of both follow each other by window.
    timeline: key of layer, metric and step; count, sum, least and most.
    """

    edges: Ints
    counts: list[_Table]
    totals: list[_Table]
    timeline: _Table

    @property
    def row_count(self) -> int:
        return sum(len(table.keys) for table in (*self.counts, *self.totals))

    def renumbered(self, edges: Ints) -> _Aggregate:
        """Return the aggregate with its edges' places among all edges (sorted): the order of keys stays."""
        if len(edges) == len(self.edges):
            return self
        shift = np.searchsorted(edges, self.edges) - np.arange(len(self.edges))
        counts, totals = (
            [_Table(table.keys + (shift[_edge_of(table.keys)] << _EDGE_SHIFT), table.columns) for table in tables]
            for tables in (self.counts, self.totals)
        )
        return _Aggregate(edges, counts, totals, self.timeline)


def _edge_of(keys: Ints) -> Ints:
    return (keys >> _EDGE_SHIFT) & ((1 << _EDGE_BITS) - 1)


def _merged_aggregates(aggregates: Sequence[_Aggregate]) -> _Aggregate:
    edges = np.unique(np.concatenate([aggregate.edges for aggregate in aggregates]))
    aligned = [aggregate.renumbered(edges) for aggregate in aggregates]
    return _Aggregate(
        edges,
        _merged_tables([table for aggregate in aligned for table in aggregate.counts], _COUNT_RULES),
        _merged_tables([table for aggregate in aligned for table in aggregate.totals], _TOTAL_RULES),
        _combined(*_joined([aggregate.timeline for aggregate in aligned]), _TIMELINE_RULES),
    )


class BatchCounter:
    """Aggregates transfers of many runs, in any order, each in the windows of its run (n, windows + 1).

    The instants of transfers outside all windows count as of the first or the last window, those that are not known
    as of the first one. Infinite values count as not known.
    """

    def __init__(self, layers: LayerBatch, window_edges_s: Reals) -> None:
        if not all(are_equal_windows(edges_s) for edges_s in window_edges_s):
            raise ValueError("windows must be equal, and rise")
        self._layers, self._edges_s = layers, window_edges_s
        self._window_count: int = window_edges_s.shape[1] - 1
        if self._window_count > 1 << _WINDOW_BITS:
            raise ValueError(f"there can be {1 << _WINDOW_BITS} windows, not {self._window_count}")
        steps_s = np.linspace(window_edges_s[:, 0], window_edges_s[:, -1], self._step_count + 1, axis=1)
        self._steps_s = np.ascontiguousarray(steps_s)
        self._steps_s[:, ::STEPS_PER_WINDOW] = window_edges_s
        node_counts = np.diff(layers.first_node)
        self._layer_of_node = np.repeat(np.arange(len(node_counts)), node_counts)
        # possible edges are numbered by source, then by target; a run's innermost layer has none
        target_counts = np.append(node_counts[1:], 0)
        target_counts[[kind is None for kind in layers.time_kinds]] = 0
        self._first_edge = offsets_of(target_counts[self._layer_of_node])
        # what is added to a target's number to get the edge's number
        self._edge_shift = self._first_edge[:-1] - layers.first_node[1:][self._layer_of_node]
        self._waiting: list[TransferBatch] = []
        self._waiting_count = 0
        self._aggregates: list[_Aggregate] = []

    @property
    def _step_count(self) -> int:
        return self._window_count * STEPS_PER_WINDOW

    def add(self, transfers: TransferBatch) -> None:
        """Count transfers; they are copied if they wait for more."""
        count = len(transfers.run)
        if not count:
            return
        if count < _CHUNK:
            self._waiting.append(_cut(transfers, slice(None), copy=True))
            self._waiting_count += count
            if self._waiting_count >= _CHUNK:
                self._count_waiting()
            return
        for begin in range(0, count, _CHUNK):
            self._count(_cut(transfers, slice(begin, begin + _CHUNK)))

    def result(self) -> NetworkBatch:
        """Return the networks of all transfers that were added so far."""
        aggregate = self._aggregated()
        source = np.searchsorted(self._first_edge, aggregate.edges, side="right") - 1
        target = aggregate.edges - self._edge_shift[source]
        return NetworkBatch(
            self._layers, self._edges_s, source, target, _count_rows(aggregate.counts), _total_rows(aggregate.totals)
        )

    def timeline(self) -> pl.DataFrame:
        """Return TIMELINE of all transfers that were added so far, where `hop` is the number of the outer layer."""
        timeline = self._aggregated().timeline
        place, step = np.divmod(timeline.keys, self._step_count)
        count, total, least, most = timeline.columns
        columns = (place // len(METRICS), place % len(METRICS), step, count, np.minimum(total, _LARGEST), least, most)
        return pl.DataFrame(dict(zip(TIMELINE, columns, strict=True))).cast(TIMELINE)

    def _aggregated(self) -> _Aggregate:
        self._count_waiting()
        if len(self._aggregates) != 1:
            if not self._aggregates:
                self._count(_nothing())
            self._aggregates = [_merged_aggregates(self._aggregates)]
        return self._aggregates[0]

    def _count_waiting(self) -> None:
        # a hop's parts one after the other: transfers in order of time need no sorting then
        waiting = sorted(self._waiting, key=lambda part: int(part.source[0]))
        self._waiting, self._waiting_count = [], 0
        if waiting:
            names = [field.name for field in fields(TransferBatch)]
            self._count(TransferBatch(*(np.concatenate([getattr(part, name) for part in waiting]) for name in names)))

    def _count(self, transfers: TransferBatch) -> None:
        self._aggregates.append(self._aggregate(transfers))
        # merging when the new rows are as many as the merged ones copies each row a few times at most
        merged, *new = (aggregate.row_count for aggregate in self._aggregates)
        if sum(new) >= max(merged, _MERGED_ROWS):
            self._aggregates = [_merged_aggregates(self._aggregates)]

    def _aggregate(self, transfers: TransferBatch) -> _Aggregate:
        place = self._layer_of_node[transfers.source] * self._step_count + self._steps(transfers)
        transfers, place = self._in_order(transfers, place)
        window = place // STEPS_PER_WINDOW - self._layer_of_node[transfers.source] * self._window_count
        edges, edge = _numbered(self._edge_shift[transfers.source] + transfers.target, int(self._first_edge[-1]))
        spans, span = _numbered(window * len(edges) + edge, self._window_count * len(edges))
        keys = np.zeros(0, np.int64)
        if len(spans):
            window, edge = np.divmod(spans, len(edges))
            keys = (window << _WINDOW_SHIFT) + (edge << _EDGE_SHIFT)
        metrics = [_finite(v) for v in (transfers.time_s, transfers.size_bytes, transfers.bandwidth_bytes_per_s)]
        return _Aggregate(
            edges,
            [_histograms(keys, span, metrics)],
            [_totals(keys, span, metrics[1], metrics[0], transfers.is_read)],
            self._timeline_of(place, metrics),
        )

    def _in_order(self, transfers: TransferBatch, place: Ints) -> tuple[TransferBatch, Ints]:
        """Return transfers (n) and their places sorted by place: layer x steps + step."""
        if (place[1:] >= place[:-1]).all():
            return transfers, place
        # NumPy sorts integers of 16 bits by their digits
        is_narrow = len(self._layers.names) * self._step_count <= 1 << 16
        order = np.argsort(place.astype(np.uint16) if is_narrow else place, kind="stable")
        return TransferBatch(*(getattr(transfers, field.name)[order] for field in fields(TransferBatch))), place[order]

    def _timeline_of(self, place: Ints, metrics: Sequence[Reals]) -> _Table:
        """Combine the known values (n) of each metric by place (sorted); negative ones are in no count and no sum."""
        starts = _starts(place)
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
        return _combined(*_joined(pieces), _TIMELINE_RULES)

    def _steps(self, transfers: TransferBatch) -> Ints:
        """Return the step of its run's timeline in which each transfer is (n)."""
        run, count = transfers.run, self._step_count
        first_s, last_s, edges_s = self._steps_s[:, 0], self._steps_s[:, -1], self._steps_s.ravel()
        with np.errstate(over="ignore"):
            scaled = (transfers.at_s - first_s.take(run)) * (count / (last_s - first_s)).take(run)
        step: Ints = np.fmin(np.fmax(scaled, 0.0), count - 1).astype(np.int64)
        # rounding may have gone one step too far
        first_edge = run * (count + 1)
        step -= (transfers.at_s < edges_s.take(first_edge + step)) & (step > 0)
        step += (transfers.at_s >= edges_s.take(first_edge + step + 1)) & (step < count - 1)
        return step


def _cut(transfers: TransferBatch, part: slice, *, copy: bool = False) -> TransferBatch:
    columns = (getattr(transfers, field.name)[part] for field in fields(TransferBatch))
    return TransferBatch(*(column.copy() for column in columns) if copy else columns)


def _finite(values: Reals) -> Reals:
    is_infinite = np.isinf(values)
    return np.where(is_infinite, np.nan, values) if is_infinite.any() else values


def _numbered(numbers: Ints, end: int) -> tuple[Ints, Ints]:
    """Return the different numbers (sorted; all less than `end`), and the place of each number (n) among them."""
    if end > _ENTRIES_PER_NUMBER * len(numbers):
        return np.unique(numbers, return_inverse=True)
    occurs = np.zeros(end, np.bool_)
    occurs[numbers] = True
    different = np.flatnonzero(occurs)
    places = np.empty(end, np.int64)
    places[different] = np.arange(len(different))
    return different, places[numbers]


def _nothing() -> TransferBatch:
    numbers, values = np.zeros(0, np.int64), np.zeros(0)
    return TransferBatch(numbers, numbers, numbers, values, values, values, values, np.zeros(0, np.bool_))


def _histograms(keys: Ints, span: Ints, metrics: Sequence[Reals]) -> _Table:
    """Count the known values (n) of each metric by span, the number of a key of window and edge, and bin.

    Bins that occur are numbered through all metrics, so that most cells fit 32 bits: they are sorted three times as
    fast as 64 bits.
    """
    bins, spans = [], []
    for metric, values in enumerate(metrics):
        numbers = bin_numbers(values)
        is_known = numbers != UNKNOWN
        is_whole = is_known.all()
        numbers = (numbers if is_whole else numbers[is_known]).astype(np.int32)
        bins.append(numbers + ((metric << _BIN_BITS) - _LOWEST_BIN))
        spans.append(span if is_whole else span[is_known])
    slots, slot = _numbered(np.concatenate(bins), len(METRICS) << _BIN_BITS)
    dtype: Any = np.uint32 if len(keys) * len(slots) < 1 << 32 else np.int64
    cells = np.concatenate(spans).astype(dtype)
    cells *= dtype(len(slots))
    cells += slot.astype(dtype)
    cells.sort()
    starts = _starts(cells)
    different = cells[starts]
    place = different // dtype(max(len(slots), 1))
    rows = keys[place] + slots[different - place * dtype(len(slots))]
    return _Table(rows, [_narrowed(np.diff(starts, append=len(cells)))])


def _totals(keys: Ints, span: Ints, size_bytes: Reals, time_s: Reals, is_read: npt.NDArray[np.bool_]) -> _Table:
    # what is not known is no bytes and no time
    size_bytes, time_s = np.fmax(size_bytes, 0.0), np.fmax(time_s, 0.0)
    moved = np.bincount(2 * span + is_read, size_bytes, 2 * len(keys))
    longest_s = np.zeros(len(keys))
    np.maximum.at(longest_s, span, time_s)
    count, total_s = np.bincount(span, minlength=len(keys)), np.bincount(span, time_s, len(keys))
    return _Table(keys, [count, moved[1::2], moved[::2], total_s, longest_s])


def _count_rows(tables: Sequence[_Table]) -> pl.DataFrame:
    columns: tuple[Callable[[_Table], npt.NDArray[Any]], ...] = (
        lambda table: (table.keys >> _WINDOW_SHIFT).astype(np.int32),
        lambda table: (table.keys >> _EDGE_SHIFT).astype(np.int32) & np.int32((1 << _EDGE_BITS) - 1),
        lambda table: (table.keys >> _BIN_BITS).astype(np.int8) & np.int8((1 << _METRIC_BITS) - 1),
        lambda table: (table.keys.astype(np.uint16) ^ np.uint16(-_LOWEST_BIN)).view(np.int16),
        lambda table: table.columns[0].astype(np.int64),
    )
    # narrowed table by table: all together would take several times the memory of the rows
    return pl.DataFrame(
        [
            pl.Series(name, np.concatenate([column(table) for table in tables]))
            for name, column in zip(COUNTS, columns, strict=True)
        ]
    )


def _total_rows(tables: Sequence[_Table]) -> pl.DataFrame:
    keys, (count, *sums) = _joined(tables)
    # sums of absurd values are the largest number there is
    columns = (keys >> _WINDOW_SHIFT, _edge_of(keys), count, *(np.minimum(column, _LARGEST) for column in sums))
    return pl.DataFrame(dict(zip(TOTALS, columns, strict=True))).cast(TOTALS)


class EdgeCounter:
    """Aggregates the transfers of one run, hop by hop, in any order, into its network."""

    def __init__(self, layers: tuple[Layer, ...], time_kinds: tuple[TimeKind, ...], window_edges_s: Reals) -> None:
        self._layers, self._time_kinds, self._edges_s = layers, time_kinds, window_edges_s
        self._batch = LayerBatch.of_one(layers, time_kinds)
        self._counter = BatchCounter(self._batch, window_edges_s[None, :])

    def add(self, transfers: Transfers) -> None:
        """Count transfers of one hop."""
        names = ("source", "target", "at_s", "time_s", "size_bytes", "bandwidth_bytes_per_s", "is_read")
        if len({len(getattr(transfers, name)) for name in names}) != 1:
            raise ValueError("the columns of transfers must be of one length")
        layers, first = self._layers_of(transfers.hop), self._batch.first_node[transfers.hop :]
        source, target = (np.asarray(nodes, np.int64) for nodes in (transfers.source, transfers.target))
        for nodes, layer in zip((source, target), layers, strict=True):
            if not ((nodes >= 0) & (nodes < layer.node_count)).all():
                raise ValueError(f"nodes are numbered from 0 to {layer.node_count - 1}")
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

    def _layers_of(self, hop: int) -> tuple[Layer, ...]:
        if not 0 <= hop < len(self._time_kinds):
            raise ValueError(f"hops are numbered from 0 to {len(self._time_kinds) - 1}, not {hop}")
        return self._layers[hop : hop + 2]

    def result(self) -> Network:
        """Return the network of all transfers that were added so far."""
        batch = self._counter.result()
        first_node, hop = self._batch.first_node, self._batch.of_nodes(batch.source)
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


def merged(network: Network, factor: int) -> Network:
    """Return the network with `factor` neighbouring windows taken together; the last ones may be fewer.

    Windows stay equal: where their number is no multiple of the factor, the last one ends behind the run's end.
    """
    if factor < 1:
        raise ValueError(f"windows are taken together by 1 at least, not {factor}")
    count = -(-network.window_count // factor)
    began_s, window_s = network.window_edges_s[0], np.diff(network.window_edges_s).mean()
    edges_s = np.append(network.window_edges_s[::factor][:count], began_s + count * factor * window_s)
    if network.window_count % factor == 0:
        edges_s[-1] = network.window_edges_s[-1]
    wider = pl.col("window") // factor
    counts = network.counts.with_columns(wider).group_by("window", "edge", "metric", "bin").agg(pl.col("count").sum())
    totals = (
        network.totals.with_columns(wider)
        .group_by("window", "edge")
        .agg(pl.col(*_SUMS).sum(), pl.col("longest_s").max())
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

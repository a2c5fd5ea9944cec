"""Aggregate transfers into networks: histograms and sums by edge and window, and a timeline by hop.

Sigovan et al. (IPDPS'13), section IV: "we stream and aggregate chunks of time to construct the graph". Transfers are
aggregated in chunks of a fixed size. The chunks' tables merge as they come, so memory grows with the edges, windows
and bins that occur, never with the number of transfers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.transforms.arrays import Ints, Reals
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
_CHUNK = 1 << 18
#: rows of new tables that wait in any case before they are merged
_MERGED_ROWS = 1 << 22
#: bits of a key, from the lowest on: bin, metric, edge, window
_BIN_BITS, _METRIC_BITS, _EDGE_BITS, _WINDOW_BITS = 16, 2, 31, 14
_EDGE_SHIFT = _BIN_BITS + _METRIC_BITS
_WINDOW_SHIFT = _EDGE_SHIFT + _EDGE_BITS
_LOWEST_BIN = -(1 << (_BIN_BITS - 1))
_LARGEST = np.finfo(np.float64).max

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

    def between(self, first_key: int, end_key: int) -> _Table:
        """Return the rows of a range of keys, without the end."""
        first, end = np.searchsorted(self.keys, (first_key, end_key))
        return _Table(self.keys[first:end], [column[first:end] for column in self.columns])


#: how the values of equal keys are combined, column by column
_COUNT_RULES = (np.add,)
_TOTAL_RULES = (np.add, np.add, np.add, np.add, np.maximum)
_TIMELINE_RULES = (np.add, np.add, np.minimum, np.maximum)


def _combined(keys: Ints, columns: Sequence[npt.NDArray[Any]], rules: Sequence[np.ufunc]) -> _Table:
    """Combine the rows of equal keys, in the order that they have."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    with np.errstate(over="ignore"):
        combined = [rule.reduceat(column[order], starts) for rule, column in zip(rules, columns, strict=True)]
    return _Table(keys[starts], combined)


def _merged_tables(tables: Sequence[_Table], rules: Sequence[np.ufunc], window_count: int) -> _Table:
    """Combine tables, one window after the other: only windows that several tables have rows of are sorted."""
    pieces = []
    for window in range(window_count):
        parts = [table.between(window << _WINDOW_SHIFT, (window + 1) << _WINDOW_SHIFT) for table in tables]
        parts = [part for part in parts if len(part.keys)]
        if parts:
            pieces.append(_combined(*_joined(parts), rules) if len(parts) > 1 else parts[0])
    return _Table(*_joined(pieces)) if pieces else tables[0]


def _joined(tables: Sequence[_Table]) -> tuple[Ints, Columns]:
    columns = [np.concatenate(parts) for parts in zip(*(table.columns for table in tables), strict=True)]
    return np.concatenate([table.keys for table in tables]), columns


@dataclass(frozen=True, slots=True)
class _Aggregate:
    """What transfers add up to.

    edges: source x nodes + target, sorted; an edge's number is its place. counts: key of window, edge, metric and
    bin; count. totals: key of window and edge; the columns of TOTALS. timeline: key of layer, metric and step; count,
    sum, least and most.
    """

    edges: Ints
    counts: _Table
    totals: _Table
    timeline: _Table

    @property
    def row_count(self) -> int:
        return len(self.counts.keys) + len(self.totals.keys)

    def renumbered(self, edges: Ints) -> _Aggregate:
        """Return the aggregate with its edges' places among all edges (sorted): the order of keys stays."""
        if len(edges) == len(self.edges):
            return self
        shift = np.searchsorted(edges, self.edges) - np.arange(len(self.edges))
        counts, totals = (
            _Table(table.keys + (shift[_edge_of(table.keys)] << _EDGE_SHIFT), table.columns)
            for table in (self.counts, self.totals)
        )
        return _Aggregate(edges, counts, totals, self.timeline)


def _edge_of(keys: Ints) -> Ints:
    return (keys >> _EDGE_SHIFT) & ((1 << _EDGE_BITS) - 1)


def _merged_aggregates(aggregates: Sequence[_Aggregate], window_count: int) -> _Aggregate:
    edges = np.unique(np.concatenate([aggregate.edges for aggregate in aggregates]))
    aligned = [aggregate.renumbered(edges) for aggregate in aggregates]
    return _Aggregate(
        edges,
        _merged_tables([aggregate.counts for aggregate in aligned], _COUNT_RULES, window_count),
        _merged_tables([aggregate.totals for aggregate in aligned], _TOTAL_RULES, window_count),
        _merged_tables([aggregate.timeline for aggregate in aligned], _TIMELINE_RULES, 1),
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
        self._steps_s = np.linspace(window_edges_s[:, 0], window_edges_s[:, -1], self._step_count + 1, axis=1)
        self._steps_s[:, ::STEPS_PER_WINDOW] = window_edges_s
        self._waiting: list[TransferBatch] = []
        self._waiting_count = 0
        self._aggregates: list[_Aggregate] = []

    @property
    def _step_count(self) -> int:
        return self._window_count * STEPS_PER_WINDOW

    def add(self, transfers: TransferBatch) -> None:
        """Count transfers; they are copied if they wait for more."""
        count = len(transfers.run)
        if count < _CHUNK:
            self._waiting.append(_cut(transfers, slice(None)))
            self._waiting_count += count
            if self._waiting_count >= _CHUNK:
                self._count_waiting()
            return
        for begin in range(0, count, _CHUNK):
            self._count(_cut(transfers, slice(begin, begin + _CHUNK)))

    def result(self) -> NetworkBatch:
        """Return the networks of all transfers that were added so far."""
        aggregate = self._aggregated()
        node_count = len(self._layers.labels)
        source, target = aggregate.edges // node_count, aggregate.edges % node_count
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
            self._aggregates = [_merged_aggregates(self._aggregates, self._window_count)]
        return self._aggregates[0]

    def _count_waiting(self) -> None:
        waiting, self._waiting, self._waiting_count = self._waiting, [], 0
        if waiting:
            names = [field.name for field in fields(TransferBatch)]
            self._count(TransferBatch(*(np.concatenate([getattr(part, name) for part in waiting]) for name in names)))

    def _count(self, transfers: TransferBatch) -> None:
        self._aggregates.append(self._aggregate(transfers))
        # merging when the new rows are as many as the merged ones copies each row a few times at most
        merged, *new = (aggregate.row_count for aggregate in self._aggregates)
        if sum(new) >= max(merged, _MERGED_ROWS):
            self._aggregates = [_merged_aggregates(self._aggregates, self._window_count)]

    def _aggregate(self, transfers: TransferBatch) -> _Aggregate:
        edges, edge = np.unique(transfers.source * len(self._layers.labels) + transfers.target, return_inverse=True)
        step = self._steps(transfers)
        key = ((step // STEPS_PER_WINDOW) << _WINDOW_SHIFT) + (edge << _EDGE_SHIFT)
        metrics = [
            np.where(np.isinf(values), np.nan, values)
            for values in (transfers.time_s, transfers.size_bytes, transfers.bandwidth_bytes_per_s)
        ]
        place = self._layers.of_nodes(transfers.source) * len(METRICS)
        return _Aggregate(
            edges,
            _histograms(key, metrics),
            _totals(key, metrics[1], metrics[0], transfers.is_read),
            _timeline([(place + metric) * self._step_count + step for metric in range(len(METRICS))], metrics),
        )

    def _steps(self, transfers: TransferBatch) -> Ints:
        """Return the step of its run's timeline in which each transfer is (n)."""
        run, count = transfers.run, self._step_count
        first_s, last_s = self._steps_s[:, 0], self._steps_s[:, -1]
        with np.errstate(over="ignore"):
            scaled = (transfers.at_s - first_s[run]) * (count / (last_s - first_s))[run]
        step: Ints = np.fmin(np.fmax(scaled, 0.0), count - 1).astype(np.int64)
        # rounding may have gone one step too far
        step -= (transfers.at_s < self._steps_s[run, step]) & (step > 0)
        step += (transfers.at_s >= self._steps_s[run, step + 1]) & (step < count - 1)
        return step


def _cut(transfers: TransferBatch, part: slice) -> TransferBatch:
    return TransferBatch(*(getattr(transfers, field.name)[part].copy() for field in fields(TransferBatch)))


def _nothing() -> TransferBatch:
    numbers, values = np.zeros(0, np.int64), np.zeros(0)
    return TransferBatch(numbers, numbers, numbers, values, values, values, values, np.zeros(0, np.bool_))


def _histograms(key: Ints, metrics: Sequence[Reals]) -> _Table:
    """Count the known values (n) of each metric by window, edge and bin."""
    keys = []
    for metric, values in enumerate(metrics):
        bins = bin_numbers(values).astype(np.int64)
        cells = key + ((metric << _BIN_BITS) - _LOWEST_BIN) + bins
        keys.append(cells[bins != UNKNOWN])
    cells, count = np.unique(np.concatenate(keys), return_counts=True)
    return _Table(cells, [count])


def _totals(key: Ints, size_bytes: Reals, time_s: Reals, is_read: npt.NDArray[np.bool_]) -> _Table:
    # what is not known is no bytes and no time
    size_bytes, time_s = np.fmax(size_bytes, 0.0), np.fmax(time_s, 0.0)
    values = (np.ones(len(key), np.int64), size_bytes * is_read, size_bytes * ~is_read, time_s, time_s)
    return _combined(key, values, _TOTAL_RULES)


def _timeline(keys: Sequence[Ints], metrics: Sequence[Reals]) -> _Table:
    """Combine the known values (n) of each metric by key; negative ones are in no count and no sum."""
    values = np.concatenate(metrics)
    is_known = ~np.isnan(values)
    values = values[is_known]
    is_counted = values >= 0
    columns = (is_counted.astype(np.int64), np.where(is_counted, values, 0.0), values, values)
    return _combined(np.concatenate(keys)[is_known], columns, _TIMELINE_RULES)


def _count_rows(counts: _Table) -> pl.DataFrame:
    keys = counts.keys
    columns: tuple[Callable[[], Ints], ...] = (
        lambda: keys >> _WINDOW_SHIFT,
        lambda: _edge_of(keys),
        lambda: (keys >> _BIN_BITS) & ((1 << _METRIC_BITS) - 1),
        lambda: (keys & ((1 << _BIN_BITS) - 1)) + _LOWEST_BIN,
        lambda: counts.columns[0],
    )
    # narrowed one by one: all together would take several times the memory of the table
    return pl.DataFrame(
        [pl.Series(name, made()).cast(COUNTS[name]) for name, made in zip(COUNTS, columns, strict=True)]
    )


def _total_rows(totals: _Table) -> pl.DataFrame:
    count, *sums = totals.columns
    # sums of absurd values are the largest number there is
    columns = (totals.keys >> _WINDOW_SHIFT, _edge_of(totals.keys), count, *(np.minimum(one, _LARGEST) for one in sums))
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

"""From streams of transfers to a network: histograms, sums and a timeline, edge by edge and window by window.

Sigovan et al. (IPDPS'13), section IV: "we stream and aggregate chunks of time to construct the graph". What is kept
grows with what occurs, never with transfers (`hop_sums`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.transforms.arrays import Ints, Reals, offsets_of
from iosig.transforms.networks.hop_sums import Edges, Histograms, Part, Timeline, Totals
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

_COLUMNS = ("source", "target", "at_s", "time_s", "size_bytes", "bandwidth_bytes_per_s", "is_read")
_SUMS = ("transfer_count", "read_bytes", "written_bytes", "transfer_time_s")
#: transfers that are sorted by time and summed at a time; fewer wait for more of their hop
_CHUNK = 1 << 18
#: bits that tell the metrics apart
_METRIC_BITS = 2
_THREADS = 2
#: fewer transfers are counted by one thread
_FEW = 1 << 14

_Piece = TypeVar("_Piece")
_Made = TypeVar("_Made")


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


@dataclass(slots=True)
class _Hop:
    """All that is kept of a hop."""

    edges: Edges
    histograms: list[Histograms]
    totals: Totals
    timelines: list[Timeline]
    held: list[Transfers] = field(default_factory=list)
    held_count: int = 0

    @property
    def edge_count(self) -> int:
        return len(self.edges.keys)


class EdgeCounter:
    """Counts transfers as they come, in any order, into a network.

    The instants of transfers outside all windows count as of the first or the last window, those that are not known
    as of the first one. Infinite values count as not known.
    """

    def __init__(self, layers: tuple[Layer, ...], time_kinds: tuple[TimeKind, ...], window_edges_s: Reals) -> None:
        widths = np.diff(window_edges_s)
        if not are_equal_windows(window_edges_s):
            raise ValueError("windows must be equal, and rise")
        self._layers, self._time_kinds, self._edges_s = layers, time_kinds, window_edges_s
        step_count = len(widths) * STEPS_PER_WINDOW
        self._steps_s = np.linspace(window_edges_s[0], window_edges_s[-1], step_count + 1)
        self._steps_s[::STEPS_PER_WINDOW] = window_edges_s
        self._hops = [
            _Hop(
                Edges(outer.node_count, inner.node_count),
                [Histograms(len(widths)) for _ in METRICS],
                Totals(len(widths)),
                [Timeline(step_count) for _ in METRICS],
            )
            for outer, inner in pairwise(layers)
        ]
        self._pool = ThreadPoolExecutor(_THREADS)
        self._added_count = 0

    def add(self, transfers: Transfers) -> None:
        """Count transfers of one hop; a few wait until there are more of them."""
        columns = (getattr(transfers, name) for name in _COLUMNS)
        lengths = {len(column) for column in columns}
        if len(lengths) != 1:
            raise ValueError("the columns of transfers must be of one length")
        if not 0 <= transfers.hop < len(self._hops):
            raise ValueError(f"hops are numbered from 0 to {len(self._hops) - 1}, not {transfers.hop}")
        (count,) = lengths
        self._added_count += count
        hop = self._hops[transfers.hop]
        if count >= _CHUNK:
            pieces = -(-count // _CHUNK)
            for piece in range(pieces):
                part = slice(count * piece // pieces, count * (piece + 1) // pieces)
                self._count(hop, _of(transfers, lambda column, part=part: column[part]))  # type: ignore[misc]
        elif count:
            hop.held.append(_of(transfers, np.copy))
            hop.held_count += count
            if hop.held_count >= _CHUNK:
                self._count_held(hop)

    def _count_held(self, hop: _Hop) -> None:
        held, hop.held, hop.held_count = hop.held, [], 0
        if held:
            joined = {name: np.concatenate([getattr(piece, name) for piece in held]) for name in _COLUMNS}
            self._count(hop, Transfers(held[0].hop, **joined))

    def _count(self, hop: _Hop, transfers: Transfers) -> None:
        edge = hop.edges.of(np.asarray(transfers.source, np.int64), np.asarray(transfers.target, np.int64))
        given = [_finite(v) for v in (transfers.time_s, transfers.size_bytes, transfers.bandwidth_bytes_per_s)]
        is_read = np.asarray(transfers.is_read, np.bool_)
        order, bounds = self._in_steps(np.asarray(transfers.at_s, np.float64))
        if order is not None:
            edge, is_read, given = edge[order], is_read[order], [values[order] for values in given]
        parts, edge_count = _parts(bounds[::STEPS_PER_WINDOW]), hop.edge_count
        work: list[Callable[[], None]] = [
            partial(histograms.add, edge, values, parts, edge_count)
            for histograms, values in zip(hop.histograms, given, strict=True)
        ]
        work.append(partial(hop.totals.add, (edge, given[1], given[0], is_read), parts, edge_count))
        work += [partial(line.add, values, bounds) for line, values in zip(hop.timelines, given, strict=True)]
        self._do(work)

    def _do(self, work: Iterable[Callable[[], None]]) -> None:
        for _ in self._mapped(lambda task: task(), work):
            pass

    def _mapped(self, function: Callable[[_Piece], _Made], pieces: Iterable[_Piece]) -> Iterator[_Made]:
        # to hand work to a thread takes as long as a small trace's work
        return map(function, pieces) if self._added_count < _FEW else self._pool.map(function, pieces)

    def _in_steps(self, at_s: Reals) -> tuple[Ints | None, Ints]:
        """Return the transfers' order by step (None: as they are), and each step's bounds."""
        if (at_s[1:] >= at_s[:-1]).all() and not np.isnan(at_s[0]):
            inner = np.searchsorted(at_s, self._steps_s[1:-1])
            return None, np.concatenate([[0], inner, [len(at_s)]])
        count = len(self._steps_s) - 1
        with np.errstate(over="ignore"):
            scaled = (at_s - self._steps_s[0]) * (count / (self._steps_s[-1] - self._steps_s[0]))
        step = np.fmin(np.fmax(scaled, 0.0), count - 1).astype(np.int64)
        # rounding may have gone one step too far
        step -= (at_s < self._steps_s[step]) & (step > 0)
        step += (at_s >= self._steps_s[step + 1]) & (step < count - 1)
        # numbers of 16 bits are sorted by their digits
        order = np.argsort(step.astype(np.uint16) if count <= 1 << 16 else step, kind="stable")
        return order, offsets_of(np.bincount(step, minlength=count))

    def result(self) -> Network:
        """Return the network of all transfers that were added so far."""
        for hop in self._hops:
            self._count_held(hop)
        for hop in self._hops:
            self._do([partial(kept.count_all, hop.edge_count) for kept in hop.histograms])
            hop.totals.count_all(hop.edge_count)
        firsts = [0, *np.cumsum([hop.edge_count for hop in self._hops]).tolist()]
        places = [first + hop.edges.in_order() for first, hop in zip(firsts, self._hops, strict=False)]
        pieces = [
            (window, hop, place)
            for window in range(len(self._edges_s) - 1)
            for hop, place in zip(self._hops, places, strict=True)
            if window in hop.totals.windows
        ]
        counts = self._mapped(lambda piece: _counts(*piece), pieces)
        totals = self._mapped(lambda piece: _totals(*piece), pieces)
        timeline = [
            line.rows(number, metric)
            for number, hop in enumerate(self._hops)
            for metric, line in enumerate(hop.timelines)
        ]
        edges = [_edges(number, hop.edges) for number, hop in enumerate(self._hops)]
        return Network(
            self._layers,
            self._time_kinds,
            self._edges_s,
            pl.concat([EDGES.to_frame(), *edges]),
            # pieces: a copy in one would take as much memory again
            pl.concat([COUNTS.to_frame(), *counts], rechunk=False),
            pl.concat([TOTALS.to_frame(), *totals]),
            pl.concat([TIMELINE.to_frame(), *timeline]),
        )


def _of(transfers: Transfers, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Transfers:
    changed: dict[str, Any] = {name: change(getattr(transfers, name)) for name in _COLUMNS}
    return replace(transfers, **changed)


def _finite(values: Reals) -> Reals:
    values = np.asarray(values, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return values
    return np.where(np.isinf(values), np.nan, values)


def _parts(bounds: Ints) -> list[Part]:
    windows = np.flatnonzero(bounds[1:] > bounds[:-1]).tolist()
    return [(window, slice(int(bounds[window]), int(bounds[window + 1]))) for window in windows]


def _edges(hop: int, edges: Edges) -> pl.DataFrame:
    keys = np.sort(edges.keys)
    frame = pl.DataFrame({"source": keys // edges.target_count, "target": keys % edges.target_count})
    return frame.select(hop=pl.lit(hop), source="source", target="target").cast(EDGES)


def _counts(window: int, hop: _Hop, place: Ints) -> pl.DataFrame:
    """Return a window's rows of COUNTS of one hop, sorted by edge, metric and bin."""
    found = [histograms.cells(window) for histograms in hop.histograms]
    bits = max(histograms.slot_bits for histograms in hop.histograms)
    keys, bins = [], np.zeros((1 << _METRIC_BITS, 1 << bits), np.int16)
    for metric, (histograms, (edge, slot, _)) in enumerate(zip(hop.histograms, found, strict=True)):
        order = np.argsort(histograms.bins)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        bins[metric, : len(order)] = histograms.bins[order]
        keys.append(place[edge] << (_METRIC_BITS + bits) | (rank | metric << bits)[slot])
    key, count = _sorted_pairs(np.concatenate(keys), np.concatenate([count for _, _, count in found]))
    metric_and_bin = key & ((1 << (_METRIC_BITS + bits)) - 1)
    return pl.DataFrame(
        {
            "window": np.full(len(key), window, np.int32),
            "edge": (key >> (_METRIC_BITS + bits)).astype(np.int32),
            "metric": np.repeat(np.arange(1 << _METRIC_BITS, dtype=np.int8), 1 << bits)[metric_and_bin],
            "bin": bins.ravel()[metric_and_bin],
            "count": count,
        },
        schema=COUNTS,
    )


def _sorted_pairs(key: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Return keys and counts by rising key: sorted as one number each where that fits, which is much faster."""
    bits = int(count.max(initial=0)).bit_length()
    if int(key.max(initial=0)).bit_length() + bits < 63:
        both = key << bits | count
        both.sort()
        return both >> bits, both & ((1 << bits) - 1)
    order = np.argsort(key)
    return key[order], count[order]


def _totals(window: int, hop: _Hop, place: Ints) -> pl.DataFrame:
    edges, values = hop.totals.sums(window)
    order = np.argsort(place[edges])
    count, *sums = values[:, order]
    return pl.DataFrame(
        {
            "window": np.full(len(order), window, np.int32),
            "edge": place[edges][order].astype(np.int32),
            "transfer_count": count.astype(np.int64),
            **dict(zip((*_SUMS[1:], "longest_s"), sums, strict=True)),
        },
        schema=TOTALS,
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

"""What is kept of one pair of layers while transfers stream by: edges, histograms, totals and a timeline.

All of it grows with edges x windows x bins that occur, never with transfers. A histogram's cell is an edge and a slot,
the place of a bin among those seen so far. Transfers wait, window by window, until they are about as many as the cells
that are known; then they are added: by counting into all cells at once where these are few, by sorting where they
would be many. Both cost a fixed time per transfer, in whatever order they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.networks.log_bins import PREFIX_COUNT, UNKNOWN, Bins, bin_numbers, prefixes, prefixes_of
from iosig.transforms.networks.network import TIMELINE

Keys = npt.NDArray[np.unsignedinteger[Any]]
#: a window, and the part of a chunk that lies in it
Part = tuple[int, slice]
#: edge, size_bytes, time_s and is_read of transfers
Rows = tuple[Ints, Reals, Reals, Bools]

#: transfers whose bins are found at a time: they fit the cache
_BLOCK = 1 << 15
#: transfers of all windows that may wait in any case, shared out equally
_LEAST_WAITING = 1 << 20
#: they may be so many times the cells that are known, while all that wait in a histogram are no more than this
_PATIENCE = 4
_MANY_WAITING = 1 << 22
#: all cells are counted into at once if they are no more than this, and no more than so many times what is counted
_MOST_CELLS = 1 << 23
_CELLS_PER_TRANSFER = 8
#: the largest table of all possible edges (8,192 x 8,192 nodes; what no edge touches takes no memory); where there are
#: more, those that occur are kept sorted
_MOST_POSSIBLE_EDGES = 1 << 26


@dataclass(slots=True)
class Edges:
    """The edges of a hop, numbered as they are met; their keys are source x targets + target."""

    source_count: int
    target_count: int
    #: keys by edge number
    keys: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    #: edge numbers from 1 on by key, where all possible ones fit; 0 is none
    table: npt.NDArray[np.int32] | None = None
    #: else the keys that are known, sorted, with their numbers
    sorted_keys: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    numbers: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        possible = self.source_count * self.target_count
        if possible <= _MOST_POSSIBLE_EDGES:
            self.table = np.zeros(possible, np.int32)

    def of(self, source: Ints, target: Ints) -> Ints:
        """Return the edge's number of each transfer (n); the new ones get the next numbers."""
        for nodes, count in ((source, self.source_count), (target, self.target_count)):
            # as numbers without a sign, negative ones are the largest
            if int(nodes.view(np.uint64).max()) >= count:
                raise ValueError(f"nodes are numbered from 0 to {count - 1}")
        keys = source * np.int64(self.target_count) + target
        return self._of_few(keys, self.table) if self.table is not None else self._of_many(keys)

    def _of_few(self, keys: Ints, table: npt.NDArray[np.int32]) -> Ints:
        found = table[keys]
        if found.min() == 0:
            new = np.unique(keys[found == 0])
            table[new] = len(self.keys) + 1 + np.arange(len(new))
            self.keys = np.concatenate([self.keys, new])
            found = table[keys]
        return found.astype(np.int64) - 1

    def _of_many(self, keys: Ints) -> Ints:
        distinct, places = np.unique(keys, return_inverse=True)
        at = np.searchsorted(self.sorted_keys, distinct)
        known = at < len(self.sorted_keys)
        known[known] = self.sorted_keys[at[known]] == distinct[known]
        new = distinct[~known]
        if len(new):
            self.numbers = np.insert(self.numbers, at[~known], len(self.keys) + np.arange(len(new)))
            self.sorted_keys = np.insert(self.sorted_keys, at[~known], new)
            self.keys = np.concatenate([self.keys, new])
            at = np.searchsorted(self.sorted_keys, distinct)
        return self.numbers[at][places]

    def in_order(self) -> Ints:
        """Return each edge's place (edges) when they are sorted by source and target."""
        places = np.empty(len(self.keys), np.int64)
        places[np.argsort(self.keys)] = np.arange(len(self.keys))
        return places


@dataclass(slots=True)
class _Cells:
    """Cells of one window: their keys, sorted, with their counts; and the cells' keys of transfers that wait."""

    keys: Keys = field(default_factory=lambda: np.empty(0, np.uint8))
    counts: Keys = field(default_factory=lambda: np.empty(0, np.uint8))
    waiting: list[Keys] = field(default_factory=list)
    waiting_count: int = 0


class Histograms:
    """Histograms of one metric on the edges of one hop, window by window.

    A cell's key is edge x 2**slot_bits + slot. Slot 0 holds what is not known; it is dropped.
    """

    def __init__(self, window_count: int) -> None:
        self._least_waiting = max(1, _LEAST_WAITING // window_count)
        self.bins = np.empty(0, np.int16)
        self.slot_bits = 3
        #: by bin number, counted from the least int16 on
        self._slot_of_bin = np.full(1 << 16, -1, np.int16)
        #: -1 where not all values with the prefix lie in one bin, or that has no slot
        self._slot_of_prefix = np.full(PREFIX_COUNT, -1, np.int16)
        self._windows: dict[int, _Cells] = {}
        self._waiting_count = 0
        self._learn(np.array([UNKNOWN], np.int16))

    def add(self, edge: Ints, values: Reals, parts: Sequence[Part], edge_count: int) -> None:
        """Count values (n) by edge and bin; `parts` tells which windows they are in."""
        for window, part in parts:
            cells = self._windows.setdefault(window, _Cells())
            for begin in range(part.start, part.stop, _BLOCK):
                block = slice(begin, min(begin + _BLOCK, part.stop))
                keys = self._keys(edge[block], values[block], edge_count)
                if keys is not None:
                    cells.waiting.append(keys)
                    cells.waiting_count += len(keys)
                    self._waiting_count += len(keys)
            if self._is_due(cells):
                self._count_waiting(cells, edge_count)

    def _is_due(self, cells: _Cells) -> bool:
        """Whether to count what waits: as soon as it is worth the while, later where little waits in other windows."""
        worth = max(self._least_waiting, len(cells.keys))
        return cells.waiting_count >= (worth if self._waiting_count > _MANY_WAITING else _PATIENCE * worth)

    def _keys(self, edge: Ints, values: Reals, edge_count: int) -> Keys | None:
        """Return the cell of each value; None where none is known."""
        slot = self._slot_of_prefix[prefixes(values)]
        places = np.flatnonzero(slot < 0)
        if len(places):
            slot[places] = self._slots(bin_numbers(values[places]))
        if not slot.any():
            return None
        keys = edge << self.slot_bits
        keys += slot
        return _narrowed(keys, edge_count << self.slot_bits)

    def _slots(self, bins: Bins) -> Bins:
        places = bins.astype(np.int64) + (1 << 15)
        slots = self._slot_of_bin[places]
        if slots.min() < 0:
            self._learn(np.unique(bins[slots < 0]))
            slots = self._slot_of_bin[places]
        return slots

    def _learn(self, bins: Bins) -> None:
        """Give slots to new bins; keys are widened when these need more bits."""
        for slot, bin_number in enumerate(bins.tolist(), len(self.bins)):
            self._slot_of_bin[bin_number + (1 << 15)] = slot
            for alike in prefixes_of(bin_number):
                self._slot_of_prefix[alike] = slot
        self.bins = np.concatenate([self.bins, bins])
        bits = (len(self.bins) - 1).bit_length()
        if bits > self.slot_bits:
            for cells in self._windows.values():
                cells.keys = _widened(cells.keys, self.slot_bits, bits)
                cells.waiting = [_widened(keys, self.slot_bits, bits) for keys in cells.waiting]
            self.slot_bits = bits

    def _count_waiting(self, cells: _Cells, edge_count: int) -> None:
        waiting = np.concatenate(cells.waiting, dtype=np.int64)
        self._waiting_count -= cells.waiting_count
        cells.waiting, cells.waiting_count = [], 0
        self._count(cells, waiting, edge_count)

    def _count(self, cells: _Cells, keys: Ints, edge_count: int) -> None:
        cell_count = edge_count << self.slot_bits
        if cell_count <= min(_MOST_CELLS, _CELLS_PER_TRANSFER * (len(keys) + len(cells.keys))):
            sums = np.bincount(keys, minlength=cell_count)
            sums[cells.keys] += cells.counts.astype(np.int64)
            sums[:: 1 << self.slot_bits] = 0
            keys = np.flatnonzero(sums != 0)
            counts = sums[keys]
        else:
            keys = np.sort(keys[(keys & ((1 << self.slot_bits) - 1)) != 0])
            starts = _starts(keys)
            counts = np.diff(starts, append=len(keys))
            keys = np.concatenate([cells.keys.astype(np.int64), keys[starts]])
            counts = np.concatenate([cells.counts.astype(np.int64), counts])
            order = np.argsort(keys, kind="stable")
            starts = _starts(keys[order])
            keys, counts = keys[order][starts], _sums(counts[order], starts)
        cells.keys = _narrowed(keys, cell_count)
        cells.counts = _narrowed(counts, int(counts.max(initial=0)))

    def count_all(self, edge_count: int) -> None:
        """Count all that waits."""
        for cells in self._windows.values():
            if cells.waiting:
                self._count_waiting(cells, edge_count)

    def cells(self, window: int) -> tuple[Ints, Ints, Ints]:
        """Return edge, slot and count of a window's cells, sorted by edge; after `count_all`."""
        cells = self._windows.get(window)
        if cells is None:
            return (np.empty(0, np.int64),) * 3
        keys = cells.keys.astype(np.int64)
        return keys >> self.slot_bits, keys & ((1 << self.slot_bits) - 1), cells.counts.astype(np.int64)


def _narrowed(numbers: Ints, limit: int) -> Keys:
    """Return numbers up to a limit in as few bytes as they need."""
    return numbers.astype(np.min_scalar_type(limit))


def _widened(keys: Keys, old_bits: int, bits: int) -> Keys:
    wide = keys.astype(np.int64)
    wide = (wide >> old_bits << bits) | (wide & ((1 << old_bits) - 1))
    return _narrowed(wide, int(wide.max(initial=0)))


def _starts(ordered: Ints) -> Ints:
    """Return where each run of equal numbers begins."""
    if not len(ordered):
        return np.empty(0, np.int64)
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))


def _sums(values: npt.NDArray[Any], starts: Ints) -> npt.NDArray[Any]:
    return np.add.reduceat(values, starts) if len(starts) else values[:0]


@dataclass(slots=True)
class _Sums:
    """Sums of one window: edges that were used, sorted, with values (sums, edges); and transfers that wait."""

    edges: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    values: Reals = field(default_factory=lambda: np.empty((5, 0)))
    waiting: list[Rows] = field(default_factory=list)
    waiting_count: int = 0


class Totals:
    """Sums of one hop by window and edge, in the order of TOTALS."""

    def __init__(self, window_count: int) -> None:
        self._least_waiting = max(1, _LEAST_WAITING // window_count)
        self._windows: dict[int, _Sums] = {}

    def add(self, rows: Rows, parts: Sequence[Part], edge_count: int) -> None:
        """Sum transfers (n) by edge; `parts` tells which windows they are in."""
        edge, size_bytes, time_s, is_read = rows
        # what is not known is no bytes and no time
        rows = (edge, np.fmax(size_bytes, 0.0), np.fmax(time_s, 0.0), is_read)
        for window, part in parts:
            sums = self._windows.setdefault(window, _Sums())
            piece = (rows[0][part], rows[1][part], rows[2][part], rows[3][part])
            length = part.stop - part.start
            if not sums.waiting and length >= max(self._least_waiting, len(sums.edges)):
                _sum_rows(sums, piece, edge_count)
                continue
            # copies: a slice would keep the whole chunk
            sums.waiting.append((piece[0].copy(), piece[1].copy(), piece[2].copy(), piece[3].copy()))
            sums.waiting_count += length
            if sums.waiting_count >= max(self._least_waiting, len(sums.edges)):
                _sum_waiting(sums, edge_count)

    def count_all(self, edge_count: int) -> None:
        """Sum all that waits."""
        for sums in self._windows.values():
            if sums.waiting:
                _sum_waiting(sums, edge_count)

    @property
    def windows(self) -> set[int]:
        """The windows that have transfers."""
        return set(self._windows)

    def sums(self, window: int) -> tuple[Ints, Reals]:
        """Return a window's edges and their sums (5, edges); after `count_all`."""
        sums = self._windows.get(window) or _Sums()
        # sums of absurd values are the largest number there is
        return sums.edges, np.minimum(sums.values, np.finfo(np.float64).max)


def _sum_waiting(sums: _Sums, edge_count: int) -> None:
    edge, size_bytes, time_s, is_read = (np.concatenate(columns) for columns in zip(*sums.waiting, strict=True))
    sums.waiting, sums.waiting_count = [], 0
    _sum_rows(sums, (edge, size_bytes, time_s, is_read), edge_count)


def _sum_rows(sums: _Sums, rows: Rows, edge_count: int) -> None:
    if is_dense(edge_count, len(rows[0]) + len(sums.edges)):
        values = _dense_sums(rows, edge_count)
        # all edges, mostly: no need to pick them out
        known = sums.edges if len(sums.edges) < edge_count else slice(None)
        for row, older in zip(values[:4], sums.values, strict=False):
            row[known] += older
        values[4, known] = np.maximum(values[4, known], sums.values[4])
        sums.edges = np.flatnonzero(values[0])
        sums.values = values if len(sums.edges) == edge_count else np.take(values, sums.edges, axis=1)
        return
    edge, size_bytes, time_s, is_read = rows
    new = np.stack([np.ones(len(edge)), size_bytes * is_read, size_bytes * ~is_read, time_s, time_s])
    edges, values = np.concatenate([sums.edges, edge]), np.concatenate([sums.values, new], axis=1)
    order = np.argsort(edges, kind="stable")
    starts = _starts(edges[order])
    values = values[:, order]
    sums.edges = edges[order][starts]
    sums.values = np.add.reduceat(values, starts, axis=1)
    sums.values[4] = np.maximum.reduceat(values[4], starts)


def is_dense(edge_count: int | Ints, transfer_count: int | Ints) -> Bools:
    """Return whether so many transfers are summed as they come, not sorted first: it is seen in the last bit."""
    return np.asarray(edge_count <= _CELLS_PER_TRANSFER * np.asarray(transfer_count))


def _dense_sums(rows: Rows, edge_count: int) -> Reals:
    edge, size_bytes, time_s, is_read = rows
    values = np.zeros((5, edge_count))
    values[0] = np.bincount(edge, minlength=edge_count)
    read_or_written = np.bincount(2 * edge + is_read, size_bytes, 2 * edge_count)
    values[1], values[2] = read_or_written[1::2], read_or_written[::2]
    values[3] = np.bincount(edge, time_s, edge_count)
    np.maximum.at(values[4], edge, time_s)
    return values


class Timeline:
    """Count, sum, least and most of one hop's known values of one metric, step by step.

    Negative values are seen in the least one alone: they are left out of count and sum, and so of the mean.
    """

    def __init__(self, step_count: int) -> None:
        self.count = np.zeros(step_count, np.int64)
        self.sum = np.zeros(step_count)
        self.least = np.full(step_count, np.nan)
        self.most = np.full(step_count, np.nan)

    def add(self, values: Reals, bounds: Ints) -> None:
        """Add values (n) that lie in order of their steps: step k's from bounds[k] to bounds[k + 1]."""
        steps = np.flatnonzero(bounds[1:] > bounds[:-1])
        starts = bounds[steps]
        least = np.fmin.reduceat(values, starts)
        with np.errstate(over="ignore", invalid="ignore"):
            sums, counts = np.add.reduceat(values, starts), bounds[steps + 1] - starts
            if not ((least >= 0) & ~np.isnan(sums)).all():
                is_counted = values >= 0
                sums = np.add.reduceat(np.where(is_counted, values, 0.0), starts)
                counts = np.add.reduceat(is_counted, starts, dtype=np.int64)
            self.sum[steps] = np.minimum(self.sum[steps] + sums, np.finfo(np.float64).max)
        self.count[steps] += counts
        self.least[steps] = np.fmin(self.least[steps], least)
        self.most[steps] = np.fmax(self.most[steps], np.fmax.reduceat(values, starts))

    def rows(self, hop: int, metric: int) -> pl.DataFrame:
        """Return the rows of TIMELINE, of steps that have any known value."""
        (steps,) = np.nonzero(~np.isnan(self.least))
        frame = pl.DataFrame({"step": steps}).select(
            hop=pl.lit(hop),
            metric=pl.lit(metric),
            step="step",
            count=pl.Series(self.count[steps]),
            sum=pl.Series(self.sum[steps]),
            least=pl.Series(self.least[steps]),
            most=pl.Series(self.most[steps]),
        )
        return frame.cast(TIMELINE)

"""Encode a network's numbers for the interactive page: compact integers, deflated, at reduced detail if necessary.

Integers are LEB128-encoded (seven bits per byte, low-order bits first), and increasing sequences are delta-encoded.
If the page would be too large, the data of single time windows lose resolution step by step (`Detail`).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.reports.networks.scales import Scale, find_max_counts, fit_scale, slot_counts, sparse_slot_counts
from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.networks.network import METRICS, Network
from iosig.transforms.networks.rings import RadialLayout

#: bits kept of counts in single windows; errors up to 3 %
#: bits kept of sums over single windows; errors up to 0.4 %
_COUNT_BITS, _TOTAL_BITS = 4, 7
#: bits kept of whole-run counts; errors up to 0.2 %
_WHOLE_BITS = 8
#: bits kept of longest times; errors below one millionth
LONGEST_BITS = 20
_NANOSECONDS = 1e9
_MAX_INTEGER = 2.0**62
_MAX_REAL = 3e38


@dataclass(frozen=True, slots=True)
class Detail:
    """Level of detail of a page's time-resolved data.

    count_bits, total_bits: leading binary digits kept for counts per value and for sums (transfers, bytes) per window;
    0 keeps all. slot_factor, window_factor: number of adjacent slots and windows that are merged. whole_bits: leading
    binary digits of the whole run's counts. edge_count: number of edges included, the busiest ones; 0 includes all.
    """

    count_bits: int = 0
    total_bits: int = 0
    slot_factor: int = 1
    window_factor: int = 1
    whole_bits: int = 0
    edge_count: int = 0


def details(window_count: int, edge_count: int) -> Iterator[Detail]:
    """Yield levels of detail from full resolution down to the coarsest one."""
    yield Detail()
    coarse = Detail(count_bits=_COUNT_BITS, total_bits=_TOTAL_BITS)
    yield coarse
    yield replace(coarse, slot_factor=2)
    factor = 2
    while factor < window_count:
        yield replace(coarse, slot_factor=2 if factor < 4 else 4, window_factor=factor)
        factor *= 2
    whole = Detail(window_factor=window_count)
    yield whole
    whole = replace(whole, whole_bits=_WHOLE_BITS)
    yield whole
    while edge_count > 1:
        edge_count = (edge_count + 1) // 2
        yield replace(whole, edge_count=edge_count)


# ---- numbers as bytes


def varints(values: Ints) -> bytes:
    """Encode non-negative integers as LEB128."""
    if not len(values):
        return b""
    lengths = np.ones(len(values), dtype=np.int64)
    remaining = values >> 7
    while remaining.any():
        lengths += remaining > 0
        remaining >>= 7
    places = np.cumsum(lengths) - lengths
    out = np.zeros(int(lengths.sum()), dtype=np.uint8)
    for group in range(int(lengths.max())):
        has = lengths > group
        more = np.where(lengths[has] > group + 1, 128, 0)
        out[places[has] + group] = ((values[has] >> (7 * group)) & 127) | more
    return out.tobytes()


def signed_varints(values: Ints) -> bytes:
    """Encode signed integers as zigzag LEB128."""
    return varints((values << 1) ^ (values >> 63))


def codes(values: Ints, bits: int) -> Ints:
    """Return codes of values rounded to `bits` leading binary digits; with 0 bits, the values themselves.

    Values below 2**bits are their own codes; each higher octave has 2**(bits - 1) codes.
    """
    if not bits:
        return values
    limit, half = 1 << bits, 1 << (bits - 1)
    _, exponents = np.frexp(values.astype(np.float64))
    shifts = np.maximum(exponents.astype(np.int64) - bits, 0)
    mantissas = np.rint(np.ldexp(values.astype(np.float64), -shifts)).astype(np.int64)
    is_carried = mantissas == limit
    shifts, mantissas = shifts + is_carried, np.where(is_carried, half, mantissas)
    return np.where(shifts == 0, mantissas, limit + (shifts - 1) * half + mantissas - half)


def whole_numbers(values: npt.NDArray[Any]) -> Ints:
    """Round values to integers; unknown and negative values become 0."""
    numbers: Ints = np.rint(np.clip(np.nan_to_num(values, nan=0.0), 0.0, _MAX_INTEGER)).astype(np.int64)
    return numbers


def gaps(numbers: Ints, begins: Bools) -> Ints:
    """Delta-encode increasing numbers (n), restarting wherever `begins` (n) is true."""
    before = np.concatenate([[-1], numbers[:-1]])
    return numbers - np.where(begins, -1, before) - 1


def _reals(values: Reals) -> bytes:
    return np.clip(values, -_MAX_REAL, _MAX_REAL).astype("<f4").tobytes()


def compress_streams(*streams: bytes) -> bytes:
    """Concatenate the streams and compress them with zlib."""
    return zlib.compress(b"".join(streams), 6)


@dataclass(frozen=True, slots=True)
class Runs:
    """Groups equal numbers (n), with the distinct numbers in ascending order, and aggregates values per group."""

    keys: Ints
    order: Ints | None
    begins: Ints

    @classmethod
    def group(cls, numbers: Ints) -> Runs:
        """Group equal numbers: sort them unless they are ascending already, and find where each group starts."""
        order = None if (numbers[1:] >= numbers[:-1]).all() else np.argsort(numbers, kind="stable")
        rising = numbers if order is None else numbers[order]
        begins = np.flatnonzero(np.diff(rising, prepend=-1))
        return cls(rising[begins], order, begins)

    def sums(self, values: Ints) -> Ints:
        """Sum the values (n) of each group."""
        sums: Ints = np.add.reduceat(self._apply_order(values), self.begins) if len(values) else values
        return sums

    def max(self, values: Reals) -> Reals:
        """Return the maximum of the values (n) of each group."""
        maxima: Reals = np.maximum.reduceat(self._apply_order(values), self.begins) if len(values) else values
        return maxima

    def _apply_order(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values if self.order is None else values[self.order]


# ---- encoded parts


@dataclass(frozen=True, slots=True)
class SlotCounts:
    """Transfers of one metric by slot: the scale, and rows of window, edge, slot and count."""

    scale: Scale
    rows: pl.DataFrame


def count_slots(network: Network, peers: Sequence[Network] = ()) -> tuple[SlotCounts, ...]:
    """Count transfers by value slot for all metrics, each on a separate scale that it shares with the peers."""
    scales = [fit_scale(network, metric, peers=peers) for metric in METRICS]
    return tuple(SlotCounts(scale, sparse_slot_counts(network, scale)) for scale in scales)


def strongest(network: Network, count: int) -> Ints:
    """Return the ascending indices of the `count` edges with the most transfers; 0 returns all edges."""
    edge_count = network.edges.height
    if not count or count >= edge_count:
        return np.arange(edge_count)
    transfers = np.zeros(edge_count)
    np.add.at(transfers, network.totals["edge"].to_numpy(), network.totals["transfer_count"].to_numpy())
    return np.sort(np.argsort(-transfers, kind="stable")[:count])


def renumber_edges(rows: pl.DataFrame, edge_indices: Ints, edge_count: int) -> pl.DataFrame:
    """Keep the rows of the selected edges and renumber these edges from 0."""
    if len(edge_indices) == edge_count:
        return rows
    numbers = pl.DataFrame({"edge": edge_indices, "_number": np.arange(len(edge_indices))}).cast(
        {"edge": rows.schema["edge"]}
    )
    selected = rows.join(numbers, on="edge", how="inner", maintain_order="left")
    return selected.with_columns(pl.col("_number").cast(rows.schema["edge"]).alias("edge")).drop("_number")


def edges_part(network: Network, layout: RadialLayout, edge_indices: Ints) -> bytes:
    """Encode the edges (sources, targets) and the angles of nodes."""
    sources, targets = (network.edges[name].to_numpy().astype(np.int64)[edge_indices] for name in ("source", "target"))
    angles = [_reals(values) for ring in layout.rings for values in (ring.begins, ring.ends)]
    return compress_streams(
        *angles,
        signed_varints(np.diff(sources, prepend=0)),
        signed_varints(np.diff(targets, prepend=0)),
    )


def timeline_part(network: Network) -> tuple[bytes, list[list[int]]]:
    """Encode the timeline (steps, mean, minimum and maximum); also return the number of steps by metric and hop."""
    rows = network.timeline.filter(pl.col("count") > 0)
    hops, metrics = rows["hop"].to_numpy(), rows["metric"].to_numpy()
    lengths = [
        [int(((hops == hop) & (metrics == metric)).sum()) for hop in range(network.hop_count)]
        for metric in range(len(METRICS))
    ]
    rows = rows.sort("metric", "hop", "step").with_columns((pl.col("sum") / pl.col("count")).alias("mean"))
    columns = [_reals(rows[name].to_numpy().astype(np.float64)) for name in ("mean", "least", "most")]
    return compress_streams(*columns, varints(rows["step"].to_numpy().astype(np.int64))), lengths


def find_shared_max_counts(networks: Sequence[Network], counts: Sequence[SlotCounts]) -> list[list[int]]:
    """Return the maximum count of an edge and slot in all networks by metric and hop."""
    return [
        list(map(max, zip(*(find_max_counts(one, slot_counts(one, metric.scale)) for one in networks), strict=True)))
        for metric in counts
    ]


def find_shared_ranges(networks: Sequence[Network]) -> list[list[list[float] | None]]:
    """Return the lowest positive and the highest value of all networks by metric and hop; None without any."""
    rows = pl.concat([network.timeline for network in networks]).filter(pl.col("count") > 0)
    lowest = pl.min_horizontal(
        pl.when(value > 0).then(value).min() for value in (pl.col("least"), pl.col("sum") / pl.col("count"))
    )
    ranges = {
        (metric, hop): [low, high]
        for metric, hop, low, high in rows.group_by("metric", "hop")
        .agg(lowest.alias("low"), pl.col("most").max())
        .rows()
        if low is not None
    }
    return [[ranges.get((metric, hop)) for hop in range(networks[0].hop_count)] for metric in range(len(METRICS))]


def whole_totals_part(totals: pl.DataFrame, edge_count: int) -> bytes:
    """Encode the whole run's transfers, bytes read and written, and longest time of each edge."""
    edges = totals["edge"].to_numpy()
    sums = [
        np.bincount(edges, weights=totals[name].to_numpy(), minlength=edge_count)
        for name in ("transfer_count", "read_bytes", "written_bytes")
    ]
    longest = np.zeros(edge_count)
    np.maximum.at(longest, edges, totals["max_transfer_time_s"].to_numpy())
    return compress_streams(
        *(varints(whole_numbers(values)) for values in sums),
        varints(codes(whole_numbers(longest * _NANOSECONDS), LONGEST_BITS)),
    )


def window_totals_part(totals: pl.DataFrame, window_count: int, detail: Detail) -> bytes:
    """Encode the totals of each edge per window: entry counts, delta-encoded edges, and four columns."""
    windows, edges = _numbers(totals, "window") // detail.window_factor, _numbers(totals, "edge")
    size = int(edges.max(initial=-1)) + 1
    runs = Runs.group(windows * size + edges)
    sums = [
        codes(runs.sums(whole_numbers(totals[name].to_numpy().astype(np.float64))), detail.total_bits)
        for name in ("transfer_count", "read_bytes", "written_bytes")
    ]
    longest = whole_numbers(runs.max(totals["max_transfer_time_s"].to_numpy()) * _NANOSECONDS)
    columns = [*sums, codes(longest, detail.total_bits or LONGEST_BITS)]
    return compress_streams(*_by_window(runs.keys, size, window_count), *map(varints, columns))


def whole_part(rows: pl.DataFrame, slot_count: int, detail: Detail) -> tuple[bytes, int]:
    """Encode the non-empty cells (edge by slot) of the whole run and their counts; also return the number of cells."""
    runs = Runs.group(_numbers(rows, "edge") * slot_count + _numbers(rows, "slot"))
    counts = codes(runs.sums(_numbers(rows, "count")), detail.whole_bits)
    begins = np.zeros(len(runs.keys), dtype=np.bool_)
    begins[:1] = True
    return compress_streams(varints(gaps(runs.keys, begins)), varints(counts)), len(runs.keys)


def windows_part(counts: SlotCounts, rows: pl.DataFrame, window_count: int, detail: Detail) -> bytes:
    """Encode the non-empty cells of each window, delta-encoded, with their counts."""
    special, slots = counts.scale.special_count, _numbers(rows, "slot")
    slots = np.where(slots < special, slots, special + (slots - special) // detail.slot_factor)
    edges = _numbers(rows, "edge")
    slot_count = coarse_slot_count(counts, detail)
    size = (int(edges.max(initial=-1)) + 1) * slot_count
    windows = _numbers(rows, "window") // detail.window_factor
    runs = Runs.group(windows * size + edges * slot_count + slots)
    values = codes(runs.sums(_numbers(rows, "count")), detail.count_bits)
    return compress_streams(*_by_window(runs.keys, size, window_count), varints(values))


def coarse_slot_count(counts: SlotCounts, detail: Detail) -> int:
    """Return the number of value slots that single windows have after merging."""
    special = counts.scale.special_count
    return special + -(-(counts.scale.slot_count - special) // detail.slot_factor)


def _numbers(rows: pl.DataFrame, name: str) -> Ints:
    return rows[name].to_numpy().astype(np.int64)


def _by_window(keys: Ints, size: int, window_count: int) -> tuple[bytes, bytes]:
    """Encode the number of entries per window, and their delta-encoded numbers; a key is window * size + number."""
    windows = keys // max(size, 1)
    begins = np.diff(windows, prepend=-1) != 0
    return varints(np.bincount(windows, minlength=window_count)), varints(gaps(keys - windows * size, begins))

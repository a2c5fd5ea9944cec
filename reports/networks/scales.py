"""Define the value scale of a metric on a network's edges: a limited number of slots from minimum to maximum.

Sigovan et al. (IPDPS'13), section IV.A: the outermost point of an edge is the highest value in the data, the innermost
one the lowest. Here negative values and zero have separate slots, which come first. All hops share one scale, so equal
positions on their edges mean equal values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.networks.log_bins import HIGHEST, LOWEST, NEGATIVE, ZERO, lower_edges
from iosig.transforms.networks.network import METRICS, Metric, Network

#: rows per batch, to limit memory
_CHUNK_ROWS = 1 << 22
_SLOTS = pl.Schema({"window": pl.Int32(), "edge": pl.Int32(), "slot": pl.Int32(), "count": pl.Int64()})


@dataclass(frozen=True, slots=True)
class Scale:
    """Ascending value slots of a metric: one for negative values, one for zero (if present), then groups of log bins.

    slot_of_bin (int16 bins, counted from -32768): the slot of each bin; bins outside the scale map to the first or last
    slot. lowest_values, highest_values (slots): bounds of each slot; -inf to 0 for negative values, 0 to 0 for zero.
    bins_per_slot: log bins per positive slot; 0 if no positive values exist.
    """

    metric: Metric
    slot_of_bin: Ints
    lowest_values: Reals
    highest_values: Reals
    has_negative: bool
    has_zero: bool
    bins_per_slot: int

    @property
    def slot_count(self) -> int:
        """Number of slots, including special ones; 0 if no value is known."""
        return len(self.lowest_values)

    @property
    def special_count(self) -> int:
        """Number of special slots, which precede those of positive values."""
        return int(self.has_negative) + int(self.has_zero)


def fit_scale(network: Network, metric: Metric, max_slot_count: int = 50, peers: Sequence[Network] = ()) -> Scale:
    """Return the scale that covers a metric's range in the whole network; two slots are reserved for special values.

    peers: networks that share the scale, whose ranges it also covers.
    """
    if max_slot_count < 3:
        raise ValueError(f"a scale needs at least 3 slots, not {max_slot_count}")
    counts = pl.concat([one.counts.lazy() for one in (network, *peers)])
    bins = counts.filter(pl.col("metric") == METRICS.index(metric)).select(pl.col("bin").unique())
    present = bins.collect().get_column("bin").to_numpy().astype(np.int64)
    has_negative, has_zero = bool((present == NEGATIVE).any()), bool((present == ZERO).any())
    special = int(has_negative) + int(has_zero)
    valued = present[present >= LOWEST]
    first, last = (int(valued.min()), int(valued.max())) if len(valued) else (0, -1)
    per_slot = -(-(last - first + 1) // (max_slot_count - 2))
    slots = -(-(last - first + 1) // per_slot) if per_slot else 0
    starts = first + per_slot * np.arange(slots + 1)
    lowest, highest = np.array([-np.inf] * has_negative + [0.0] * has_zero), np.zeros(special)
    values = _edge_values(starts)
    return Scale(
        metric,
        _map_bins_to_slots(first, per_slot, slots, has_negative, has_zero),
        np.concatenate([lowest, values[:-1]]),
        np.concatenate([highest, values[1:]]),
        has_negative,
        has_zero,
        per_slot,
    )


def _edge_values(starts: Ints) -> Reals:
    """Return the lower edges of bins; bins beyond the last one map to the largest float."""
    values = lower_edges(np.minimum(starts, HIGHEST))
    return np.where(starts > HIGHEST, np.finfo(np.float64).max, values)


def _map_bins_to_slots(first: int, per_slot: int, slots: int, has_negative: bool, has_zero: bool) -> Ints:
    special = int(has_negative) + int(has_zero)
    numbers = np.arange(-(1 << 15), 1 << 15)
    slot_numbers = special + np.clip((numbers - first) // max(per_slot, 1), 0, max(slots - 1, 0))
    slot_numbers[NEGATIVE + (1 << 15)] = 0
    slot_numbers[ZERO + (1 << 15)] = int(has_negative)
    return np.minimum(slot_numbers, max(special + slots - 1, 0))


def slot_counts(network: Network, scale: Scale, windows: tuple[int, int] | None = None) -> Ints:
    """Count transfers by edge and slot (edges, slots), over all windows or a half-open range of windows."""
    shape = (len(network.edges), scale.slot_count)
    counts = np.zeros(shape[0] * shape[1], np.int64)
    rows = network.counts.filter(_match_scale(scale, windows)).select("edge", "bin", "count")
    for part in rows.iter_slices(_CHUNK_ROWS):
        edge, bins, count = (part.get_column(name).to_numpy().astype(np.int64) for name in ("edge", "bin", "count"))
        np.add.at(counts, edge * shape[1] + scale.slot_of_bin[bins + (1 << 15)], count)
    return counts.reshape(shape)


def sparse_slot_counts(network: Network, scale: Scale) -> pl.DataFrame:
    """Return the non-zero counts as sorted rows of window, edge, slot and count."""
    slots = pl.Series("slot", scale.slot_of_bin, dtype=pl.Int32)
    rows = network.counts.filter(_match_scale(scale, None))
    slot = slots.gather((rows.get_column("bin").cast(pl.Int32) + (1 << 15)).cast(pl.UInt32))
    summed = rows.with_columns(slot).group_by("window", "edge", "slot").agg(pl.col("count").sum())
    return summed.select(_SLOTS.names()).cast(_SLOTS).sort("window", "edge", "slot")


def _match_scale(scale: Scale, windows: tuple[int, int] | None) -> pl.Expr:
    rows = pl.col("metric") == METRICS.index(scale.metric)
    return rows if windows is None else rows & pl.col("window").is_between(*windows, closed="left")


def find_max_counts(network: Network, counts: Ints) -> list[int]:
    """Return the maximum count of each hop; counts: (edges, slots)."""
    hop = network.edges["hop"].to_numpy()
    return [int(counts[hop == number].max(initial=0)) for number in range(network.hop_count)]

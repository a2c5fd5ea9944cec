"""Parallel I/O systems that never were, each with a pattern planted in its times: what pattern finders are tried on.

Ranks send requests to I/O nodes, these send them on to storage targets, stripe by stripe. Sigovan et al. (IPDPS'13)
describe in Figure 6 what is planted: times that are about the same at all nodes (circular; two or three bands of
them, as two buffer sizes give in Figure 15), bands of nearby ranks whose I/O nodes bear different loads (striped),
times of high variance that follow no alignment (noisy), few nodes that are clearly slower (outlier); and in Figure 12
one very large request of process 0 (bottleneck). Whatever the pattern, a few requests are slow by chance, some ranks
may do nothing ("some nodes showing no activity at all", section V.A), and requests of a rank vary.

All sizes of effects are in octaves: a time twice as long is one octave more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, get_args

import numpy as np
import polars as pl

from iosig.transforms.arrays import Bools, Ints, Reals, places_within
from iosig.transforms.networks.counting import EdgeCounter, window_edges
from iosig.transforms.networks.network import Layer, Network, TimeKind, Transfers

T = TypeVar("T")
Planted = Literal["circular", "striped", "noisy", "outlier", "bottleneck"]
PLANTED: tuple[Planted, ...] = get_args(Planted)
BandOrder = Literal["phases", "turns", "chance"]

TIME_KINDS: tuple[TimeKind, ...] = ("latency", "latency")
#: requests that are made at a time
_CHUNK_REQUESTS = 1 << 17
#: an I/O node hands on stripes of one megabyte
_STRIPE_BYTES = float(1 << 20)
#: bands lie so many deviations of a rank's own requests apart, or they would be none
_BAND_DEVIATIONS = 4.0


@dataclass(frozen=True, slots=True)
class SystemShape:
    """How large a system is, and how much is asked of it."""

    rank_count: int
    io_node_count: int
    target_count: int
    requests_per_rank: int
    run_s: float = 600.0


@dataclass(frozen=True, slots=True)
class PlantedSystem:
    """A system with what was planted in it; arrays are by rank.

    pattern, shape. level_octaves: how much longer a rank's requests take than usual. slow_ratio: the share of its
    requests of which that is true. spread_octaves: the standard deviation of its requests' times. request_count: 0 for
    ranks that do nothing. base_time_s: what a usual request of the lowest band takes. band_octaves, band_bytes: how
    much longer requests of each band take, and their sizes. band_order: whether ranks go through the bands one
    after the other, in turns, or by chance. hiccup_ratio: the share of requests that are slow by chance. huge_bytes:
    the size of the one request that is the bottleneck, or 0. is_cause: the ranks by which the pattern is known: the
    slow ones of an outlier pattern, the more loaded half of a striped one, rank 0 with a bottleneck.
    """

    pattern: Planted
    shape: SystemShape
    level_octaves: Reals
    slow_ratio: Reals
    spread_octaves: Reals
    request_count: Ints
    base_time_s: float
    band_octaves: Reals
    band_bytes: Reals
    band_order: BandOrder
    hiccup_ratio: float
    huge_bytes: float
    is_cause: Bools

    @property
    def io_node(self) -> Ints:
        """The I/O node of each rank: blocks of ranks next to each other (the paper's section IV)."""
        return np.arange(self.shape.rank_count) * self.shape.io_node_count // self.shape.rank_count


# ---- drawing a system


def drawn_shape(generator: np.random.Generator, most_requests: int = 1 << 20) -> SystemShape:
    """Draw a shape: 16 to 8,192 ranks, 3 to 1,000 requests of each, most_requests in all at most.

    An I/O node serves 4 to 256 ranks (256 in the paper's section V), but there are four of them at least; a storage
    target serves one to eight I/O nodes.
    """
    exponent = generator.uniform(4.0, 13.0)
    rank_count = 2 ** round(exponent) if generator.random() < 0.7 else round(2.0**exponent)
    per_node = 2 ** generator.integers(2, 9)
    io_node_count = max(4, rank_count // int(per_node))
    most = max(3, min(1000, most_requests // rank_count))
    requests = round(float(np.exp(generator.uniform(np.log(3.0), np.log(most)))))
    return SystemShape(rank_count, io_node_count, max(1, io_node_count // int(2 ** generator.integers(0, 4))), requests)


def drawn_system(pattern: Planted, generator: np.random.Generator, shape: SystemShape) -> PlantedSystem:
    """Plant a pattern in a system of this shape; how strong it is, and all that hides it, is drawn."""
    count = shape.rank_count
    spread = generator.uniform(0.1, 0.5) if pattern == "circular" else generator.uniform(0.1, 0.8)
    bands = _drawn_bands(generator, spread, 3 if pattern == "circular" else 2)
    quiet = PlantedSystem(
        pattern,
        shape,
        generator.normal(0.0, generator.uniform(0.0, 0.15 if pattern == "circular" else 0.3), count),
        np.ones(count),
        np.full(count, spread),
        _drawn_counts(generator, shape),
        base_time_s=2.0 ** generator.uniform(-12.0, -4.0),
        band_octaves=bands,
        band_bytes=2.0 ** (generator.integers(12, 20) + np.round(bands / generator.uniform(0.5, 1.0))),
        band_order=_chosen(generator, get_args(BandOrder)),
        hiccup_ratio=generator.uniform(0.0, 0.01),
        huge_bytes=0.0,
        is_cause=np.zeros(count, dtype=bool),
    )
    if pattern == "circular":
        return quiet
    return _PLANTERS[pattern](quiet, generator)


def _chosen(generator: np.random.Generator, choices: tuple[T, ...]) -> T:
    return choices[int(generator.integers(len(choices)))]


def _drawn_bands(generator: np.random.Generator, spread: float, most: int) -> Reals:
    """Draw how much longer requests of each band take: bands that can be told apart, at least an octave."""
    least = max(1.0, _BAND_DEVIATIONS * spread)
    gaps = generator.uniform(least, least + 3.0, generator.integers(1, most + 1) - 1)
    return np.concatenate([[0.0], np.cumsum(gaps)])


def _drawn_counts(generator: np.random.Generator, shape: SystemShape) -> Ints:
    """Draw how many requests each rank makes: the same, or about the same; in some systems some ranks make none."""
    count, mean = shape.rank_count, shape.requests_per_rank
    counts = np.full(count, mean, dtype=np.int64)
    if generator.random() < 0.5:
        counts = np.maximum(1, np.round(generator.normal(mean, 0.1 * mean, count))).astype(np.int64)
    idle = generator.random()
    if idle < 0.15:
        period = int(generator.integers(3, 9))
        counts[generator.integers(period) :: period] = 0
    elif idle < 0.3:
        counts[generator.random(count) < generator.uniform(0.02, 0.2)] = 0
    return counts


def _striped(quiet: PlantedSystem, generator: np.random.Generator) -> PlantedSystem:
    """Plant bands of neighbours: their loads alternate, come back after some bands, or are each its own.

    Bands are the ranks of an I/O node; in one system of four they are of one to four ranks that take turns.
    """
    count = quiet.shape.rank_count
    band = quiet.io_node
    if generator.random() < 0.25:
        band = np.arange(count) // int(generator.integers(1, 5))
        period = 2
    else:
        most = max(2, min(8, quiet.shape.io_node_count // 2))
        period = _chosen(generator, (2, int(generator.integers(2, most + 1)), quiet.shape.io_node_count))
    loads = np.array([0.0, 1.0]) if period == 2 else generator.uniform(0.0, 1.0, period)
    effect = generator.uniform(0.5, 1.5)
    level = effect * (loads - loads.mean()) / max(float(loads.std()), 1e-9)
    of_rank = level[band % period]
    return replace(quiet, level_octaves=quiet.level_octaves + of_rank, is_cause=of_rank > 0)


def _noisy(quiet: PlantedSystem, generator: np.random.Generator) -> PlantedSystem:
    """Plant high variance: of the ranks and of their requests, or of requests alone."""
    count = quiet.shape.rank_count
    bands = quiet.band_octaves[:1]
    noisy = replace(quiet, band_octaves=bands, band_bytes=quiet.band_bytes[:1])
    if generator.random() < 0.5:
        return replace(noisy, spread_octaves=np.full(count, generator.uniform(1.2, 2.5)))
    return replace(
        noisy,
        level_octaves=generator.normal(0.0, generator.uniform(0.5, 1.5), count),
        spread_octaves=generator.uniform(0.8, generator.uniform(1.0, 2.0), count),
    )


def _outlier(quiet: PlantedSystem, generator: np.random.Generator) -> PlantedSystem:
    """Plant a few slow ranks, one to five of a hundred: most of their requests, or all, take far longer."""
    active = np.flatnonzero(quiet.request_count > 0)
    wanted = max(1, round(generator.uniform(0.005, 0.05) * len(active)))
    slow = generator.choice(active, wanted, replace=False)
    level, ratio = quiet.level_octaves.copy(), quiet.slow_ratio.copy()
    level[slow] += generator.uniform(1.5, 4.0) + generator.uniform(0.0, 1.0, wanted)
    ratio[slow] = generator.uniform(0.7, 1.0)
    is_cause = quiet.is_cause.copy()
    is_cause[slow] = True
    return replace(quiet, level_octaves=level, slow_ratio=ratio, is_cause=is_cause)


def _bottleneck(quiet: PlantedSystem, generator: np.random.Generator) -> PlantedSystem:
    """Plant one request of rank 0 that is larger than all that a usual rank asks for."""
    factor = max(
        2.0 ** generator.uniform(5.0, 10.0), quiet.shape.requests_per_rank * 2.0 ** generator.uniform(1.0, 4.0)
    )
    counts, is_cause = quiet.request_count.copy(), quiet.is_cause.copy()
    counts[0], is_cause[0] = max(1, counts[0]), True
    return replace(
        quiet, request_count=counts, is_cause=is_cause, huge_bytes=np.floor(factor * float(quiet.band_bytes.max()))
    )


_PLANTERS = {"striped": _striped, "noisy": _noisy, "outlier": _outlier, "bottleneck": _bottleneck}


# ---- its requests


@dataclass(frozen=True, slots=True)
class PlantedRequests:
    """Requests (n) of a planted system, rank by rank; request is their number from 0 in the whole system."""

    request: Ints
    rank: Ints
    at_s: Reals
    time_s: Reals
    size_bytes: Reals


def planted_requests(system: PlantedSystem, generator: np.random.Generator) -> Iterator[PlantedRequests]:
    """Yield a system's requests in pieces."""
    ends = np.cumsum(system.request_count)
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _CHUNK_REQUESTS, side="right")))
        yield _requests(system, generator, np.arange(first, last), before)
        first = last


def _requests(system: PlantedSystem, generator: np.random.Generator, ranks: Ints, before: int) -> PlantedRequests:
    counts = system.request_count[ranks]
    rank = np.repeat(ranks, counts)
    count = len(rank)
    number = places_within(counts)
    share = (number + generator.random(count)) / np.maximum(system.request_count[rank], 1)
    band = _bands(system, generator, number, share)
    is_slow = generator.random(count) < system.slow_ratio[rank]
    octaves = system.band_octaves[band] + np.where(is_slow, system.level_octaves[rank], 0.0)
    octaves += generator.normal(0.0, 1.0, count) * system.spread_octaves[rank]
    octaves += np.where(generator.random(count) < system.hiccup_ratio, generator.uniform(2.0, 6.0, count), 0.0)
    size = system.band_bytes[band].astype(np.float64)
    if system.huge_bytes and len(ranks) and ranks[0] == 0:
        at = int(generator.integers(counts[0]))
        # what is larger takes longer, if not quite in proportion
        octaves[at] += 0.8 * np.log2(system.huge_bytes / size[at])
        size[at] = system.huge_bytes
    return PlantedRequests(
        before + np.arange(count), rank, share * system.shape.run_s, system.base_time_s * 2.0**octaves, size
    )


def _bands(system: PlantedSystem, generator: np.random.Generator, number: Ints, share: Reals) -> Ints:
    count = len(system.band_octaves)
    if system.band_order == "phases":
        return np.minimum(np.floor(share * count).astype(np.int64), count - 1)
    if system.band_order == "turns":
        return number % count
    return generator.integers(0, count, len(number))


def planted_transfers(system: PlantedSystem, generator: np.random.Generator) -> Iterator[Transfers]:
    """Yield a system's transfers in pieces: rank to I/O node, then I/O node to target, stripe by stripe."""
    io_node = system.io_node
    for requests in planted_requests(system, generator):
        node, count = io_node[requests.rank], len(requests.rank)
        is_read = np.zeros(count, dtype=bool)
        with np.errstate(over="ignore"):
            bandwidth = requests.size_bytes / requests.time_s
        yield Transfers(0, requests.rank, node, requests.at_s, requests.time_s, requests.size_bytes, bandwidth, is_read)
        yield _stripes(system, generator, requests, node)


def _stripes(
    system: PlantedSystem, generator: np.random.Generator, requests: PlantedRequests, io_node: Ints
) -> Transfers:
    """Return the stripes of requests on their way to the targets; each takes a part of its request's time."""
    pieces = np.maximum(1, np.ceil(requests.size_bytes / _STRIPE_BYTES)).astype(np.int64)
    of = np.repeat(np.arange(len(pieces)), pieces)
    number = places_within(pieces)
    first = generator.integers(0, system.shape.target_count, len(pieces))
    size = np.minimum(_STRIPE_BYTES, requests.size_bytes[of] - number * _STRIPE_BYTES)
    time = requests.time_s[of] * size / requests.size_bytes[of] * 2.0 ** generator.normal(-2.0, 0.5, len(of))
    target = (first[of] + number) % system.shape.target_count
    return Transfers(1, io_node[of], target, requests.at_s[of], time, size, size / time, np.zeros(len(of), dtype=bool))


# ---- its network


def planted_layers(shape: SystemShape) -> tuple[Layer, ...]:
    """Return the three rings of a system: ranks, I/O nodes, targets."""
    names = {
        "rank": ("{}", shape.rank_count),
        "host": ("ion{}", shape.io_node_count),
        "target": ("OST {}", shape.target_count),
    }
    return tuple(
        Layer(name, pl.select(pl.format(form, pl.int_range(count))).to_series().alias("label"))
        for name, (form, count) in names.items()
    )


def planted_network(system: PlantedSystem, generator: np.random.Generator, window_count: int) -> Network:
    """Return the network of a system's requests."""
    edges = window_edges(0.0, system.shape.run_s, window_count)
    counter = EdgeCounter(planted_layers(system.shape), TIME_KINDS, edges)
    for transfers in planted_transfers(system, generator):
        counter.add(transfers)
    return counter.result()


def planted(
    pattern: Planted,
    generator: np.random.Generator,
    rank_count: int,
    io_node_count: int,
    target_count: int,
    requests_per_rank: int,
    window_count: int,
) -> Network:
    """Return the network of a drawn system of this shape, with the pattern planted in it."""
    shape = SystemShape(rank_count, io_node_count, target_count, requests_per_rank)
    return planted_network(drawn_system(pattern, generator, shape), generator, window_count)

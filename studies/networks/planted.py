"""Draw synthetic parallel I/O systems with a pattern planted in their request times, to evaluate pattern detection.

Ranks send requests to I/O nodes, which forward them to storage targets stripe by stripe. The patterns are those of
Sigovan et al. (IPDPS'13), Figure 6: about equal times at all nodes (circular; two or three bands, as two buffer sizes
produce in Figure 15), bands of neighboring ranks with different loads of their I/O nodes (striped), times of high
variance without alignment (noisy), a few clearly slower nodes (outlier); and Figure 12: one very large request of
process 0 (bottleneck). In all patterns a few requests are slow at random, some ranks may be idle ("some nodes showing
no activity at all", section V.A), and the requests of a rank vary.

Effect sizes are in octaves: one octave doubles the time.
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
#: requests per generated chunk
_CHUNK_REQUESTS = 1 << 17
#: I/O nodes forward stripes of 1 MiB
_STRIPE_BYTES = float(1 << 20)
#: minimum distance of bands, in standard deviations of a rank's requests
_BAND_DEVIATIONS = 4.0


@dataclass(frozen=True, slots=True)
class SystemShape:
    """Number of ranks, I/O nodes and targets, and requests per rank."""

    rank_count: int
    io_node_count: int
    target_count: int
    requests_per_rank: int
    run_s: float = 600.0


@dataclass(frozen=True, slots=True)
class PlantedSystem:
    """A system with a planted pattern; arrays are by rank.

    level_octaves: slowdown of a rank's slow requests. slow_ratio: fraction of slow requests. spread_octaves: standard
    deviation of request times. request_count: 0 for idle ranks. base_time_s: time of a normal request of the lowest
    band. band_octaves, band_bytes: slowdown and request size of each band. band_order: whether ranks go through the
    bands in phases, in turns or at random. hiccup_ratio: fraction of randomly slow requests. huge_bytes: size of the
    bottleneck request, or 0. is_cause: ranks that cause the pattern: the slow ones (outlier), the more loaded half
    (striped), rank 0 (bottleneck).
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
        """I/O node of each rank: blocks of neighboring ranks (section IV of the paper)."""
        return np.arange(self.shape.rank_count) * self.shape.io_node_count // self.shape.rank_count


# ---- drawing a system


def draw_shape(generator: np.random.Generator, max_requests: int = 1 << 20) -> SystemShape:
    """Draw 16 to 8,192 ranks with 3 to 1,000 requests each, at most max_requests in total.

    An I/O node serves 4 to 256 ranks (256 in section V of the paper), with four or more I/O nodes; a storage target
    serves one to eight I/O nodes.
    """
    exponent = generator.uniform(4.0, 13.0)
    rank_count = 2 ** round(exponent) if generator.random() < 0.7 else round(2.0**exponent)
    per_node = 2 ** generator.integers(2, 9)
    io_node_count = max(4, rank_count // int(per_node))
    max_per_rank = max(3, min(1000, max_requests // rank_count))
    requests = round(float(np.exp(generator.uniform(np.log(3.0), np.log(max_per_rank)))))
    return SystemShape(rank_count, io_node_count, max(1, io_node_count // int(2 ** generator.integers(0, 4))), requests)


def plant_pattern(pattern: Planted, generator: np.random.Generator, shape: SystemShape) -> PlantedSystem:
    """Plant a pattern of random strength, with random disturbances, in a system of this shape."""
    count = shape.rank_count
    spread = generator.uniform(0.1, 0.5) if pattern == "circular" else generator.uniform(0.1, 0.8)
    bands = _draw_bands(generator, spread, 3 if pattern == "circular" else 2)
    quiet = PlantedSystem(
        pattern,
        shape,
        generator.normal(0.0, generator.uniform(0.0, 0.15 if pattern == "circular" else 0.3), count),
        np.ones(count),
        np.full(count, spread),
        _draw_request_counts(generator, shape),
        base_time_s=2.0 ** generator.uniform(-12.0, -4.0),
        band_octaves=bands,
        band_bytes=2.0 ** (generator.integers(12, 20) + np.round(bands / generator.uniform(0.5, 1.0))),
        band_order=_choose(generator, get_args(BandOrder)),
        hiccup_ratio=generator.uniform(0.0, 0.01),
        huge_bytes=0.0,
        is_cause=np.zeros(count, dtype=bool),
    )
    if pattern == "circular":
        return quiet
    return _PLANTERS[pattern](quiet, generator)


def _choose(generator: np.random.Generator, choices: tuple[T, ...]) -> T:
    return choices[int(generator.integers(len(choices)))]


def _draw_bands(generator: np.random.Generator, spread: float, max_count: int) -> Reals:
    """Draw the slowdown of each band; bands differ by one octave or more, so that they are separable."""
    min_gap = max(1.0, _BAND_DEVIATIONS * spread)
    gaps = generator.uniform(min_gap, min_gap + 3.0, generator.integers(1, max_count + 1) - 1)
    return np.concatenate([[0.0], np.cumsum(gaps)])


def _draw_request_counts(generator: np.random.Generator, shape: SystemShape) -> Ints:
    """Draw the requests per rank: constant or normally distributed; in some systems, some ranks are idle."""
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


def _plant_stripes(quiet: PlantedSystem, generator: np.random.Generator) -> PlantedSystem:
    """Plant bands of neighboring ranks with periodic or independent loads.

    A band is the ranks of an I/O node; in every fourth system it is one to four ranks with alternating load.
    """
    count = quiet.shape.rank_count
    band = quiet.io_node
    if generator.random() < 0.25:
        band = np.arange(count) // int(generator.integers(1, 5))
        period = 2
    else:
        max_period = max(2, min(8, quiet.shape.io_node_count // 2))
        period = _choose(generator, (2, int(generator.integers(2, max_period + 1)), quiet.shape.io_node_count))
    loads = np.array([0.0, 1.0]) if period == 2 else generator.uniform(0.0, 1.0, period)
    effect = generator.uniform(0.5, 1.5)
    level = effect * (loads - loads.mean()) / max(float(loads.std()), 1e-9)
    rank_level = level[band % period]
    return replace(quiet, level_octaves=quiet.level_octaves + rank_level, is_cause=rank_level > 0)


def _plant_noise(quiet: PlantedSystem, generator: np.random.Generator) -> PlantedSystem:
    """Plant high variance, between ranks and requests or between requests only."""
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


def _plant_outliers(quiet: PlantedSystem, generator: np.random.Generator) -> PlantedSystem:
    """Plant 0.5 to 5 % slow ranks: most or all of their requests take far longer."""
    active = np.flatnonzero(quiet.request_count > 0)
    slow_count = max(1, round(generator.uniform(0.005, 0.05) * len(active)))
    slow = generator.choice(active, slow_count, replace=False)
    level, ratio = quiet.level_octaves.copy(), quiet.slow_ratio.copy()
    level[slow] += generator.uniform(1.5, 4.0) + generator.uniform(0.0, 1.0, slow_count)
    ratio[slow] = generator.uniform(0.7, 1.0)
    is_cause = quiet.is_cause.copy()
    is_cause[slow] = True
    return replace(quiet, level_octaves=level, slow_ratio=ratio, is_cause=is_cause)


def _plant_bottleneck(quiet: PlantedSystem, generator: np.random.Generator) -> PlantedSystem:
    """Plant one request of rank 0 that is larger than all requests of a normal rank together."""
    factor = max(
        2.0 ** generator.uniform(5.0, 10.0), quiet.shape.requests_per_rank * 2.0 ** generator.uniform(1.0, 4.0)
    )
    counts, is_cause = quiet.request_count.copy(), quiet.is_cause.copy()
    counts[0], is_cause[0] = max(1, counts[0]), True
    return replace(
        quiet, request_count=counts, is_cause=is_cause, huge_bytes=np.floor(factor * float(quiet.band_bytes.max()))
    )


_PLANTERS = {
    "striped": _plant_stripes,
    "noisy": _plant_noise,
    "outlier": _plant_outliers,
    "bottleneck": _plant_bottleneck,
}


# ---- its requests


@dataclass(frozen=True, slots=True)
class PlantedRequests:
    """Requests (n) of a planted system, ordered by rank; `request` numbers them from 0."""

    request: Ints
    rank: Ints
    at_s: Reals
    time_s: Reals
    size_bytes: Reals


def generate_requests(system: PlantedSystem, generator: np.random.Generator) -> Iterator[PlantedRequests]:
    """Yield a system's requests in chunks."""
    ends = np.cumsum(system.request_count)
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _CHUNK_REQUESTS, side="right")))
        yield _draw_requests(system, generator, np.arange(first, last), before)
        first = last


def _draw_requests(system: PlantedSystem, generator: np.random.Generator, ranks: Ints, before: int) -> PlantedRequests:
    counts = system.request_count[ranks]
    rank = np.repeat(ranks, counts)
    count = len(rank)
    number = places_within(counts)
    share = (number + generator.random(count)) / np.maximum(system.request_count[rank], 1)
    band = _assign_bands(system, generator, number, share)
    is_slow = generator.random(count) < system.slow_ratio[rank]
    octaves = system.band_octaves[band] + np.where(is_slow, system.level_octaves[rank], 0.0)
    octaves += generator.normal(0.0, 1.0, count) * system.spread_octaves[rank]
    octaves += np.where(generator.random(count) < system.hiccup_ratio, generator.uniform(2.0, 6.0, count), 0.0)
    size = system.band_bytes[band].astype(np.float64)
    if system.huge_bytes and len(ranks) and ranks[0] == 0:
        at = int(generator.integers(counts[0]))
        # larger requests take longer, less than proportionally
        octaves[at] += 0.8 * np.log2(system.huge_bytes / size[at])
        size[at] = system.huge_bytes
    return PlantedRequests(
        before + np.arange(count), rank, share * system.shape.run_s, system.base_time_s * 2.0**octaves, size
    )


def _assign_bands(system: PlantedSystem, generator: np.random.Generator, number: Ints, share: Reals) -> Ints:
    count = len(system.band_octaves)
    if system.band_order == "phases":
        return np.minimum(np.floor(share * count).astype(np.int64), count - 1)
    if system.band_order == "turns":
        return number % count
    return generator.integers(0, count, len(number))


def generate_transfers(system: PlantedSystem, generator: np.random.Generator) -> Iterator[Transfers]:
    """Yield a system's transfers in chunks: rank to I/O node, then I/O node to target by stripe."""
    io_node = system.io_node
    for requests in generate_requests(system, generator):
        node, count = io_node[requests.rank], len(requests.rank)
        is_read = np.zeros(count, dtype=bool)
        with np.errstate(over="ignore"):
            bandwidth = requests.size_bytes / requests.time_s
        yield Transfers(0, requests.rank, node, requests.at_s, requests.time_s, requests.size_bytes, bandwidth, is_read)
        yield _split_into_stripes(system, generator, requests, node)


def _split_into_stripes(
    system: PlantedSystem, generator: np.random.Generator, requests: PlantedRequests, io_node: Ints
) -> Transfers:
    """Split requests into stripes sent to the targets; each takes a part of its request's time."""
    pieces = np.maximum(1, np.ceil(requests.size_bytes / _STRIPE_BYTES)).astype(np.int64)
    request_index = np.repeat(np.arange(len(pieces)), pieces)
    number = places_within(pieces)
    first = generator.integers(0, system.shape.target_count, len(pieces))
    size = np.minimum(_STRIPE_BYTES, requests.size_bytes[request_index] - number * _STRIPE_BYTES)
    time = (
        requests.time_s[request_index]
        * size
        / requests.size_bytes[request_index]
        * 2.0 ** generator.normal(-2.0, 0.5, len(request_index))
    )
    target = (first[request_index] + number) % system.shape.target_count
    return Transfers(
        1,
        io_node[request_index],
        target,
        requests.at_s[request_index],
        time,
        size,
        size / time,
        np.zeros(len(request_index), dtype=bool),
    )


# ---- its network


def build_layers(shape: SystemShape) -> tuple[Layer, ...]:
    """Return the layers of a system's network: ranks, I/O nodes, targets."""
    names = {
        "rank": ("{}", shape.rank_count),
        "host": ("ion{}", shape.io_node_count),
        "target": ("OST {}", shape.target_count),
    }
    return tuple(
        Layer(name, pl.select(pl.format(form, pl.int_range(count))).to_series().alias("label"))
        for name, (form, count) in names.items()
    )


def build_network(system: PlantedSystem, generator: np.random.Generator, window_count: int) -> Network:
    """Count a system's transfers into its network."""
    edges = window_edges(0.0, system.shape.run_s, window_count)
    counter = EdgeCounter(build_layers(system.shape), TIME_KINDS, edges)
    for transfers in generate_transfers(system, generator):
        counter.add(transfers)
    return counter.result()


def plant_network(
    pattern: Planted,
    generator: np.random.Generator,
    rank_count: int,
    io_node_count: int,
    target_count: int,
    requests_per_rank: int,
    window_count: int,
) -> Network:
    """Draw a system with the given pattern and shape and return its network."""
    shape = SystemShape(rank_count, io_node_count, target_count, requests_per_rank)
    return build_network(plant_pattern(pattern, generator, shape), generator, window_count)

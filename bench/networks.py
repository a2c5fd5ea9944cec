"""Count streams of requests on the edges of a network, compared with Polars' grouping; also measure peak memory.

The requests are synthetic. Each consists of a transfer from one of 8,192 ranks to its I/O node, and one from there to
any of 64 targets. Each of the 256 I/O nodes serves 32 ranks, as in the trees of Sigovan et al., Figure 4. Four of five
requests have 1 MiB, the others 64 KiB. A transfer takes one millisecond (0.3 ms for the inner one) and one second per
gigabyte, with log-normal variation by half an octave. Only `add` and `result` are timed. Values repeat every four
chunks, at other times.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from bench.harness import Comparison, Context, Cost, Row, benchmark, child_result
from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.networks.counting import EdgeCounter, window_edges
from iosig.transforms.networks.network import Layer, Transfers

_REQUESTS, _SHUFFLED, _GROUPED = 100_000_000, 20_000_000, 4_000_000
_RANKS, _IO_NODES, _TARGETS, _WINDOWS = 8192, 256, 64, 64
_CHUNK, _CHUNKS = 1 << 18, 4
_DURATION_S = 3600.0
#: irrational rotation of the times within a chunk, so that instants never repeat
_TURN = (5**0.5 - 1) / 2


@benchmark("edges")
def edges(context: Context) -> Iterator[Row]:
    """Count requests in chronological order and in random order."""
    grouped = [Cost(*child_result("bench.networks", "grouped", _GROUPED))]
    for order, count, min_rate in (("sorted", _REQUESTS, 5e6), ("shuffled", _SHUFFLED, None)):
        counted = [Cost(*child_result("bench.networks", order, count))]
        peer = [cost.scale(count / _GROUPED) for cost in grouped]
        name = f"{count / 1e6:.0f} M requests, {order}: edges' histograms / Polars' `group_by` of the same bins"
        yield Comparison(name, count=count, unit="requests", min_rate=min_rate).row(counted, peer)
        yield Comparison("… peak memory", "peak_bytes", max_value=2e9).row(counted)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Requests of a chunk, with start times as fractions of its duration."""

    rank: Ints
    io_node: Ints
    target: Ints
    share: Reals
    times_s: tuple[Reals, Reals]
    size_bytes: Reals
    is_read: Bools

    @classmethod
    def draw(cls, rng: np.random.Generator, *, is_sorted: bool) -> _Chunk:
        """Draw requests, in chronological or in random order."""
        rank, share = rng.integers(0, _RANKS, _CHUNK), rng.random(_CHUNK)
        size = np.where(rng.random(_CHUNK) < 0.8, float(1 << 20), float(1 << 16))
        outward, inward = ((base + size / 1e9) * np.exp2(rng.normal(0, 0.5, _CHUNK)) for base in (1e-3, 3e-4))
        return cls(
            rank,
            rank * _IO_NODES // _RANKS,
            rng.integers(0, _TARGETS, _CHUNK),
            np.sort(share) if is_sorted else share,
            (outward, inward),
            size,
            rng.random(_CHUNK) < 0.3,
        )

    def transfers(self, hop: int, start_s: float, duration_s: float, turn: float = 0.0) -> Transfers:
        """Return the transfers of a hop in a chunk that starts at `start_s`; `turn` rotates their times within it."""
        source, target = ((self.rank, self.io_node), (self.io_node, self.target))[hop]
        time_s, at_s = self.times_s[hop], start_s + (self.share + turn) % 1.0 * duration_s
        return Transfers(hop, source, target, at_s, time_s, self.size_bytes, self.size_bytes / time_s, self.is_read)


def _stream(order: str, count: int) -> tuple[float, float, int]:
    """Count requests in a child process, for its peak memory."""
    rng, pieces = np.random.default_rng(20130520), -(-count // _CHUNK)
    chunks = [_Chunk.draw(rng, is_sorted=order == "sorted") for _ in range(_CHUNKS)]
    nodes = (("rank", _RANKS), ("io_node", _IO_NODES), ("target", _TARGETS))
    layers = tuple(Layer(name, pl.int_range(count, eager=True).cast(pl.String)) for name, count in nodes)
    counter = EdgeCounter(layers, ("latency", "latency"), window_edges(0.0, _DURATION_S, _WINDOWS))
    wall_s = cpu_s = 0.0
    for number in range(pieces + 1):
        width_s = _DURATION_S / pieces
        part = (number * width_s, width_s) if order == "sorted" else (0.0, _DURATION_S, number * _TURN)
        batches = [chunks[number % _CHUNKS].transfers(hop, *part) for hop in (0, 1)] if number < pieces else []
        wall, cpu = time.perf_counter(), time.process_time()
        for transfers in batches:
            counter.add(transfers)
        network = None if batches else counter.result()
        wall_s, cpu_s = wall_s + time.perf_counter() - wall, cpu_s + time.process_time() - cpu
    if network is None or network.totals["transfer_count"].sum() != 2 * pieces * _CHUNK:
        raise RuntimeError("transfers were lost")
    # only complete chunks are counted, so scale to the number of requests
    share = count / (pieces * _CHUNK)
    return wall_s * share, cpu_s * share, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _group(count: int) -> tuple[float, float]:
    """Group the same requests with Polars: three histograms for each hop, with bins from rounded logarithms."""
    pieces = -(-count // _CHUNK)
    chunk = _Chunk.draw(np.random.default_rng(20130520), is_sorted=True)
    wall_s = cpu_s = 0.0
    for number in range(pieces):
        for hop in (0, 1):
            rows = chunk.transfers(hop, number * _DURATION_S / pieces, _DURATION_S / pieces)
            wall, cpu = time.perf_counter(), time.process_time()
            frame = pl.DataFrame({"source": rows.source, "target": rows.target, "at": rows.at_s}).select(
                (pl.col("at") * (_WINDOWS / _DURATION_S)).cast(pl.Int32).alias("window"), "source", "target"
            )
            for values in (rows.time_s, rows.size_bytes, rows.bandwidth_bytes_per_s):
                bins = (pl.Series("bin", values).log(2) * 4).floor().cast(pl.Int16)
                frame.with_columns(bins).group_by("window", "source", "target", "bin").len()
            wall_s, cpu_s = wall_s + time.perf_counter() - wall, cpu_s + time.process_time() - cpu
    share = count / (pieces * _CHUNK)
    return wall_s * share, cpu_s * share


if __name__ == "__main__":
    order, count = sys.argv[1], int(sys.argv[2])
    print(json.dumps(_group(count) if order == "grouped" else _stream(order, count)))

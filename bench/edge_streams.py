"""From streams of requests to a network's edges: requests per second and peak memory, beside Polars' own grouping.

Run as a module it streams so many requests and prints the answer as JSON: the peak of memory should be its own. The
requests are made up: each is a transfer from one of 8,192 ranks to its I/O node (256 of them, 32 ranks to each, as in
the trees of Sigovan et al., Figure 4), and one from there to any of 64 targets; 1 MiB four times in five, else 64 KiB;
times are a millisecond (0.3 ms inward) and a second per gigabyte, spread log-normally by half an octave. What is timed
is `add` and `result`, not the making. Values come round again every four chunks, at other times.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from bench.figures import Figure
from iosig.transforms.networks.counting import EdgeCounter, window_edges
from iosig.transforms.networks.network import Layer, Transfers

_REQUESTS, _FEWER, _GROUPED = 100_000_000, 20_000_000, 4_000_000
_RANKS, _IO_NODES, _TARGETS, _WINDOWS = 8192, 256, 64, 64
#: each of which does little: what is counted is nearly as large as what comes
_MANY_RANKS, _OF_MANY_RANKS = 1_000_000, 4_000_000
_CHUNK, _CHUNKS = 1 << 18, 4
_DURATION_S = 3600.0
#: never comes to the same instants again
_TURN = (5**0.5 - 1) / 2
_LEAST_PER_S, _MOST_BYTES = 5e5, 4e9


def streams() -> Iterator[Figure]:
    """Stream requests in order of time and in none, from thousands of ranks and from a million."""
    grouped = _told("grouped", _GROUPED)
    peer = f"{_GROUPED / grouped['wall_s'] / 1e6:.1f} M/s"
    for order, ranks, count, least in (
        ("in order of time", _RANKS, _REQUESTS, _LEAST_PER_S),
        ("in no order", _RANKS, _FEWER, 0.0),
        ("in order of time", _MANY_RANKS, _OF_MANY_RANKS, 0.0),
    ):
        told = _told("sorted" if order == "in order of time" else "shuffled", count, ranks)
        per_s = count / told["wall_s"]
        yield Figure(
            f"{count / 1e6:.0f} M requests of {ranks:,} ranks, {order}, two transfers each: edges' histograms / "
            "Polars' `group_by` of the same bins",
            f"{told['wall_s']:.1f} s ({per_s / 1e6:.1f} M/s, {count / told['cpu_s'] / 1e6:.1f} M per processor second; "
            f"{told['rows'] / 1e6:.0f} M rows of counts)",
            peer,
            f"{per_s * grouped['wall_s'] / _GROUPED:.1f} times as many",
            f"{least / 1e6:.0f} M/s" if least else "",
            per_s >= least,
        )
        peak = told["peak_bytes"]
        yield Figure("… peak memory", f"{peak / 1e9:.2f} GB", "", "", f"{_MOST_BYTES / 1e9:.0f} GB", peak < _MOST_BYTES)


def _told(mode: str, count: int, ranks: int = _RANKS) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.edge_streams", mode, str(count), str(ranks)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Requests, at shares of a chunk's time."""

    rank: Any
    io_node: Any
    target: Any
    share: Any
    times_s: Any
    size_bytes: Any
    is_read: Any

    def transfers(self, hop: int, began_s: float, duration_s: float, turn: float = 0.0) -> Transfers:
        """Return the requests' transfers of a hop, from an instant on, with their shares of time turned round."""
        source, target = ((self.rank, self.io_node), (self.io_node, self.target))[hop]
        time_s, at_s = self.times_s[hop], began_s + (self.share + turn) % 1.0 * duration_s
        return Transfers(hop, source, target, at_s, time_s, self.size_bytes, self.size_bytes / time_s, self.is_read)


def _chunk(rng: np.random.Generator, ranks: int, *, is_sorted: bool) -> _Chunk:
    rank, share = rng.integers(0, ranks, _CHUNK), rng.random(_CHUNK)
    size = np.where(rng.random(_CHUNK) < 0.8, float(1 << 20), float(1 << 16))
    times = [(base + size / 1e9) * np.exp2(rng.normal(0, 0.5, _CHUNK)) for base in (1e-3, 3e-4)]
    return _Chunk(
        rank,
        rank * _IO_NODES // ranks,
        rng.integers(0, _TARGETS, _CHUNK),
        np.sort(share) if is_sorted else share,
        times,
        size,
        rng.random(_CHUNK) < 0.3,
    )


def _counter(ranks: int) -> EdgeCounter:
    nodes = (("rank", ranks), ("io_node", _IO_NODES), ("target", _TARGETS))
    layers = tuple(Layer(name, pl.int_range(count, eager=True).cast(pl.String)) for name, count in nodes)
    return EdgeCounter(layers, ("latency", "latency"), window_edges(0.0, _DURATION_S, _WINDOWS))


def _stream(mode: str, count: int, ranks: int) -> dict[str, float]:
    """Stream requests: chunk after chunk of time, or each chunk all over the run."""
    rng, pieces = np.random.default_rng(20130520), -(-count // _CHUNK)
    chunks = [_chunk(rng, ranks, is_sorted=mode == "sorted") for _ in range(_CHUNKS)]
    counter, wall_s, cpu_s = _counter(ranks), 0.0, 0.0
    for number in range(pieces):
        width_s = _DURATION_S / pieces
        part = (number * width_s, width_s) if mode == "sorted" else (0.0, _DURATION_S, number * _TURN)
        both = [chunks[number % _CHUNKS].transfers(hop, *part) for hop in (0, 1)]
        wall, cpu = time.perf_counter(), time.process_time()
        for transfers in both:
            counter.add(transfers)
        wall_s, cpu_s = wall_s + time.perf_counter() - wall, cpu_s + time.process_time() - cpu
    wall, cpu = time.perf_counter(), time.process_time()
    network = counter.result()
    wall_s, cpu_s = wall_s + time.perf_counter() - wall, cpu_s + time.process_time() - cpu
    if network.totals["transfer_count"].sum() != 2 * pieces * _CHUNK:
        raise RuntimeError("transfers were lost")
    # chunks are whole: the times are given for as many requests as were asked for
    share = count / (pieces * _CHUNK)
    return {
        "wall_s": wall_s * share,
        "cpu_s": cpu_s * share,
        "rows": len(network.counts),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _group(count: int) -> dict[str, float]:
    """Group the same requests with Polars: three histograms of each hop, bins rounded from logarithms."""
    rng, wall_s, pieces = np.random.default_rng(20130520), 0.0, -(-count // _CHUNK)
    chunk = _chunk(rng, _RANKS, is_sorted=True)
    for number in range(pieces):
        for hop in (0, 1):
            rows = chunk.transfers(hop, number * _DURATION_S / pieces, _DURATION_S / pieces)
            began = time.perf_counter()
            frame = pl.DataFrame({"source": rows.source, "target": rows.target, "at": rows.at_s}).select(
                (pl.col("at") * (_WINDOWS / _DURATION_S)).cast(pl.Int32).alias("window"), "source", "target"
            )
            for values in (rows.time_s, rows.size_bytes, rows.bandwidth_bytes_per_s):
                bins = (pl.Series("bin", values).log(2) * 4).floor().cast(pl.Int16)
                frame.with_columns(bins).group_by("window", "source", "target", "bin").len()
            wall_s += time.perf_counter() - began
    return {"wall_s": wall_s * count / (pieces * _CHUNK)}


if __name__ == "__main__":
    mode, count, ranks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps(_group(count) if mode == "grouped" else _stream(mode, count, ranks)))

"""Decoding of raw Recorder traces, beside the obvious decoder: the same calls, of a trace written for it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bench.figures import Figure
from iosig.warehouse.sources.recorder import files as recorder_files, raw
from tests.naive import recorder_traces as naive

#: iterations of the traced program, per rank
_ITERATIONS = 20_000
_RANKS = 4
#: of a program that writes where chance will have it, as many calls are all different, and follow no rule
_IRREGULAR = 20_000
_LEAST_CALLS_PER_S = 1e6
_OPEN, _CLOSE, _WRITE, _PWRITE, _MPI_OPEN, _BARRIER, _MPI_WRITE = range(7)
_KINDS = 25


def calls_per_s(scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time the decoding of a trace of more than two million calls to rows, in turn with the obvious decoder."""
    folder = scratch / "recorder"
    call_count = write(folder)
    ours, peers = [], []
    _ours(folder), _peer(folder)
    for _ in range(rounds):
        ours.append(_timed(_ours, folder) / call_count)
        peers.append(_timed(_peer, folder) / (call_count // _RANKS))
    rate, peer_rate = 1 / statistics.median(ours), 1 / statistics.median(peers)
    yield Figure(
        f"decode a raw Recorder trace ({call_count:,} calls) / call by call with `struct`",
        f"{rate / 1e6:.1f} M calls/s",
        f"{peer_rate / 1e6:.2f} M calls/s",
        f"{peer_rate / rate:.3f}",
        "1 M calls/s",
        rate >= _LEAST_CALLS_PER_S,
    )


def _timed(decode: Callable[[Path], int], folder: Path) -> float:
    began = time.perf_counter()
    decode(folder)
    return time.perf_counter() - began


def _ours(folder: Path) -> int:
    with recorder_files.opened(folder) as (_, files):
        run = raw.opened(files)
        return sum(run.decode(rank).calls.height for rank in run.ranks)


def _peer(folder: Path) -> int:
    return len(naive.decoded(folder, 0))


def write(folder: Path) -> int:
    """Write a trace: iterations of seeks, writes of several offsets and a barrier, then irregular writes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "VERSION").write_bytes(b"2.5.0")
    (folder / "recorder.mt").write_bytes(naive.metadata(_RANKS))
    return sum(_write_rank(folder, rank) for rank in range(_RANKS))


def _write_rank(folder: Path, rank: int) -> int:
    rng = np.random.default_rng(rank)
    path = f"/scratch/project/run/output.{rank:08d}"
    arguments = [(_OPEN, (path, "66", "420")), (_CLOSE, (path,)), (_BARRIER, ("MPI_COMM_WORLD",))]
    offsets = [*range(_KINDS), *rng.integers(1 << 20, 1 << 40, _IRREGULAR).tolist()]
    arguments += [(_PWRITE, (path, "%p", "131072", str(offset * 131072))) for offset in offsets]
    keys = [naive.Call(function, 0, given, 0, 0).key() for function, given in arguments]
    writes = list(range(3, 3 + _KINDS))
    odd = list(range(3 + _KINDS, len(keys)))
    grammar: naive.Grammar = {
        -1: [(0, 1), (-2, _ITERATIONS), *((number, 1) for number in odd), (-4, 50), (1, 1)],
        -2: [*((number, 1) for number in writes[:20]), (-3, 2), (2, 1)],
        -3: [(number, 1) for number in writes[20:]],
        -4: [(writes[0], 30), (-3, 4), (2, 2)],
    }
    order = _sequence(writes, odd)
    counts = np.bincount(order, minlength=len(keys)).tolist()
    numbers = {key: number for number, key in enumerate(keys)}
    (folder / f"{rank}.cst").write_bytes(naive.signatures(numbers, rank, dict(enumerate(counts))))
    (folder / f"{rank}.cfg").write_bytes(naive.grammar_file(grammar))
    gaps = rng.integers(10, 100_000, order.size, dtype=np.uint32)
    stamps = np.stack([gaps, gaps + rng.integers(0, 10_000, order.size, dtype=np.uint32)], axis=-1)
    (folder / f"{rank}.ts").write_bytes(stamps.astype("<u4").tobytes())
    return order.size


def _sequence(writes: list[int], odd: list[int]) -> np.ndarray:
    three = np.array(writes[20:])
    step = np.concatenate((writes[:20], np.tile(three, 2), [2]))
    tail = np.concatenate((np.full(30, writes[0]), np.tile(three, 4), [2, 2]))
    return np.concatenate(([0], np.tile(step, _ITERATIONS), odd, np.tile(tail, 50), [1]))

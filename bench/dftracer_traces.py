"""Reading of DFTracer traces to rows, beside `json.loads` line by line: the same file, written for it."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bench.figures import Figure
from iosig.warehouse.sources.dftracer import source
from iosig.warehouse.sources.protocol import Reading

_EVENTS = 1_000_000
_FILES = 500
_LEAST_EVENTS_PER_S = 0.25e6
_STARTED_US = 1_700_000_000_000_000
#: a call, and what is logged of it, with a place for a number
_CALLS = (
    ("write", '"count":1048576,"ret":%d,"fd":7'),
    ("read", '"count":1048576,"ret":%d,"fd":7'),
    ("lseek64", '"ret":0,"whence":0,"offset":%d,"fd":7'),
    ("open", '"ret":%d,"flags":0'),
)
_OWN = '"pid":7,"tid":7'


def events_per_s(scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time the reading of a million calls, in turn with the standard library's, both by processor time."""
    path = write(scratch / "million.pfw")
    ours, peers = [], []
    for counted in range(rounds + 1):
        taken = _timed(_ours, path), _timed(_peer, path)
        if counted:
            ours.append(taken[0])
            peers.append(taken[1])
    rate, peer_rate = (_EVENTS / statistics.median(costs) for costs in (ours, peers))
    yield Figure(
        f"read a DFTracer trace of {_EVENTS:,} calls ({path.stat().st_size / 1e6:.0f} MB) / `json.loads` line by line, "
        "processor time",
        f"{rate / 1e6:.2f} M events/s",
        f"{peer_rate / 1e6:.2f} M events/s",
        f"{rate / peer_rate:.1f} times as many",
        f"{_LEAST_EVENTS_PER_S / 1e6:g} M events/s",
        rate >= _LEAST_EVENTS_PER_S,
    )


def _timed(read: Callable[[Path], int], path: Path) -> float:
    began = time.process_time()
    count = read(path)
    if count < _EVENTS:
        raise AssertionError(f"of {_EVENTS:,} calls, only {count:,} were read")
    return time.process_time() - began


def _ours(path: Path) -> int:
    rows = 0
    for batch in source.read(path, Reading()):
        if batch.table.name in ("trace_requests", "trace_metadata"):
            rows += batch.rows.height
    return rows


def _peer(path: Path) -> int:
    with path.open() as lines:
        return sum(1 for line in lines if line[0] == "{" and json.loads(line)["ph"] == "X")


def write(path: Path) -> Path:
    """Write a process's trace as DFTracer 1 does: reads, writes, seeks and opens of many files."""
    rng = np.random.default_rng(7)
    sizes, files, kinds = (rng.integers(end, size=_EVENTS).tolist() for end in (1 << 20, _FILES, len(_CALLS)))
    with path.open("w") as file:
        file.write(f'[\n{{"id":1,"name":"HH","cat":"dftracer",{_OWN},"ph":"M","args":{{"name":"node1","value":5}}}}\n')
        for number in range(_FILES):
            told = f'"args":{{"name":"/scratch/project/run/output.{number:05}","value":{number}}}'
            file.write(f'{{"id":{number + 2},"name":"FH","cat":"dftracer",{_OWN},"ph":"M",{told}}}\n')
        for place, (size, number, kind) in enumerate(zip(sizes, files, kinds, strict=True), _FILES + 2):
            name, args = _CALLS[kind]
            told = f'"ts":{_STARTED_US + 40 * place},"dur":37,"ph":"X","args":{{"hhash":5,"p_idx":3,"level":1,{args}'
            file.write(f'{{"id":{place},"name":"{name}","cat":"POSIX",{_OWN},{told % size},"fhash":{number}}}}}\n')
        file.write("]\n")
    return path

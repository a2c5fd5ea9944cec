"""A TMIO trace of a million requests: landing it, beside FTIO's reading and judging of the same file."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.figures import Figure
from bench.processes import Cost, cost_of, in_turn, iosig

_RANK_COUNT = 1000
_BURST_COUNT = 1000
_PERIOD_S = 10.0
_REQUEST_BYTES = 1 << 20
_LIMIT = 0.5
#: an environment of its own: FTIO's dependencies are none of ours
FTIO = ("uvx", "--python", "3.11", "--from", "ftio-hpc==0.0.9", "ftio")


def write_trace(path: Path) -> Path:
    """Write a trace of a thousand ranks that each write 1 MiB every 10 s a thousand times, as TMIO writes JSON."""
    random = np.random.default_rng(20200711)
    bursts = np.tile(np.arange(_BURST_COUNT) * _PERIOD_S, _RANK_COUNT)
    began = bursts + random.uniform(0.0, 0.5, bursts.size)
    lasted = random.uniform(0.5, 2.0, bursts.size)
    numbers = {"b_rank_avr": _REQUEST_BYTES / lasted, "t_rank_s": began, "t_rank_e": began + lasted}
    empty: dict[str, object] = {"total_bytes": 0, "number_of_ranks": 0, "bandwidth": {name: [] for name in numbers}}
    others = ("read_sync", "read_async_t", "read_async_b", "write_async_t", "write_async_b")
    document = dict.fromkeys(others, empty) | {"io_time": {"delta_t_rank0": _BURST_COUNT * _PERIOD_S}}
    with path.open("w") as file:
        file.write(json.dumps(document)[:-1])
        file.write(f', "write_sync": {{"total_bytes": {bursts.size * _REQUEST_BYTES}, "number_of_ranks": {_RANK_COUNT}')
        file.write(', "bandwidth": {')
        for place, (name, values) in enumerate(numbers.items()):
            file.write(f'{", " * bool(place)}"{name}": [{", ".join(f"{value:.6f}" for value in values)}]')
        file.write("}}}")
    return path


def landing(scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time the landing of a TMIO JSON of a million requests, beside FTIO on the same file."""
    trace = write_trace(scratch / "1000.json")
    subprocess.run([*FTIO, "--help"], cwd=scratch, check=True, capture_output=True)

    def land() -> Cost:
        shutil.rmtree(scratch / "tmio", ignore_errors=True)
        return cost_of(iosig("--warehouse", str(scratch / "tmio"), "land", str(trace)))

    ours, peers = in_turn(land, lambda: cost_of([*FTIO, str(trace), "-e", "no"], folder=scratch), rounds)
    taken, peer = (statistics.median(cost.cpu_s for cost in costs) for costs in (ours, peers))
    size = round(trace.stat().st_size / 1e6)
    yield Figure(
        f"land a TMIO JSON of 1,000,000 requests ({size} MB) / FTIO 0.0.9 on it, processor time",
        f"{taken:.2f} s",
        f"{peer:.2f} s",
        f"{taken / peer:.2f}",
        f"{_LIMIT}",
        taken / peer <= _LIMIT,
    )
    memory, others = (max(cost.peak_bytes for cost in costs) for costs in (ours, peers))
    ratio = memory / others
    yield Figure("… peak memory", f"{memory / 1e6:.0f} MB", f"{others / 1e6:.0f} MB", f"{ratio:.2f}", "", True)

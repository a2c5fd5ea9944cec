"""Write TMIO traces of a thousand ranks with 1 MiB per burst: as one JSON document, or as flushes of JSON Lines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from iosig.transforms.arrays import Reals

#: command of FTIO in a separate environment, since its dependencies differ from ours
FTIO = ("uvx", "--python", "3.11", "--from", "ftio-hpc==0.0.9", "ftio")
_RANKS, _PERIOD_S, _REQUEST_BYTES = 1000, 10.0, 1 << 20
_EMPTY_MODES = ("read_sync", "read_async_t", "read_async_b", "write_async_t", "write_async_b")
#: names of the further fields in which TMIO repeats the values of a phase, by rank and by request
_COPIES = {"b_rank_avr": ("b_rank_sum", "b_ind"), "t_rank_s": ("t_ind_s",), "t_rank_e": ("t_ind_e",)}


def write_json(path: Path, burst_count: int = 1000) -> Path:
    """Write a trace with this number of bursts, one every 10 s, as one JSON document."""
    mode, empty = _modes(np.random.default_rng(20200711), 0, burst_count)
    document: dict[str, object] = dict.fromkeys(_EMPTY_MODES, empty)
    path.write_text(json.dumps(document | {"write_sync": mode, "io_time": {"delta_t_rank0": burst_count * _PERIOD_S}}))
    return path


def write_flushes(path: Path, flush_count: int, bursts_per_flush: int = 10) -> bytes:
    """Write all flushes of a trace except the last one, and return the last one."""
    rng = np.random.default_rng(20240527)
    flushes = (_flush(rng, number * bursts_per_flush, bursts_per_flush) for number in range(flush_count))
    with path.open("wb") as file:
        for _ in range(flush_count - 1):
            file.write(next(flushes))
    return next(flushes)


def _flush(rng: np.random.Generator, first_burst: int, burst_count: int) -> bytes:
    """Return the lines of a flush: one for each mode, and one for the times."""
    mode, empty = _modes(rng, first_burst, burst_count)
    until_s = (first_burst + burst_count) * _PERIOD_S
    times = {"delta_t_agg": until_s * _RANKS, "delta_t_rank0": until_s}
    lines: dict[str, object] = dict.fromkeys(_EMPTY_MODES, empty) | {"write_sync": mode, "io_time": times}
    return b"".join(json.dumps({name: value}).encode() + b"\n" for name, value in lines.items())


def _modes(rng: np.random.Generator, first_burst: int, burst_count: int) -> tuple[dict[str, object], dict[str, object]]:
    """Return the mode with all writes, and a mode without requests."""
    bursts_s = np.tile(np.arange(first_burst, first_burst + burst_count) * _PERIOD_S, _RANKS)
    start_s = bursts_s + rng.uniform(0.0, 0.5, bursts_s.size)
    lasted_s = rng.uniform(0.5, 2.0, bursts_s.size)
    columns = {"b_rank_avr": _REQUEST_BYTES / lasted_s, "t_rank_s": start_s, "t_rank_e": start_s + lasted_s}
    return _mode(columns, bursts_s.size), _mode({name: np.zeros(0) for name in columns}, 0)


def _mode(columns: dict[str, Reals], count: int) -> dict[str, object]:
    rounded = {name: np.round(values, 6).tolist() for name, values in columns.items()}
    bandwidth = {copy: rounded[name] for name, copies in _COPIES.items() for copy in (name, *copies)}
    ranks = _RANKS if count else 0
    return {"total_bytes": count * _REQUEST_BYTES, "number_of_ranks": ranks, "bandwidth": bandwidth}

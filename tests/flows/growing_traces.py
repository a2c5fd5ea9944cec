"""TMIO traces in JSON Lines, written flush by flush, in complete or partial lines."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Phase = list[tuple[float, float, float]]


def requests(start_s: float, count: int = 6, volume_bytes: float = 1e6) -> Phase:
    """Return requests of 0.5 s each, 0.1 s apart: rate, start, end."""
    return [(volume_bytes / 0.5, start_s + 0.1 * k, start_s + 0.1 * k + 0.5) for k in range(count)]


def line_of(modes: dict[str, Phase]) -> bytes:
    """Return a flush as a JSON line."""
    document: dict[str, Any] = {}
    for mode, phase in modes.items():
        rates, starts, ends = zip(*phase, strict=True) if phase else ((), (), ())
        document[mode] = {"bandwidth": {"b_rank_avr": rates, "t_rank_s": starts, "t_rank_e": ends}}
    return json.dumps(document | {"io_time": {"delta_t_agg": 1.0}}).encode() + b"\n"


def flushes(count: int, *, first_s: float = 0.0, seed: int = 1) -> Iterator[bytes]:
    """Yield flushes of several modes; phases are 10 s apart and, in the second half, 20 s."""
    chance = random.Random(seed)
    start_s = first_s
    for number in range(count):
        start_s += (10.0 if 2 * number < count else 20.0) * chance.uniform(0.97, 1.03)
        modes = {"write_sync": requests(start_s, 6, chance.uniform(5e5, 2e6))}
        if number % 3 == 0:
            modes["read_sync"] = requests(start_s + 2, 4, 2e5)
        if number % 5 == 0:
            modes |= {"write_async_t": requests(start_s + 3, 3), "write_async_b": requests(start_s + 3, 3)}
        yield line_of(modes)


def written(path: Path, content: bytes) -> Path:
    """Write a file and return its path."""
    path.write_bytes(content)
    return path


def trace(path: Path, count: int = 8, **more: Any) -> Path:
    """Write a complete trace and return its path."""
    return written(path, b"".join(flushes(count, **more)))


def write_bit_by_bit(path: Path, content: Sequence[bytes], pause_s: float, seed: int = 1) -> None:
    """Append flushes to a file, each in up to three pieces cut at random."""
    chance = random.Random(seed)
    with path.open("ab", buffering=0) as file:
        for flush in content:
            ends = sorted(chance.randrange(len(flush)) for _ in range(2))
            for start, end in zip([0, *ends], [*ends, len(flush)], strict=True):
                file.write(flush[start:end])
                time.sleep(chance.uniform(0, pause_s))

"""TMIO traces that grow: flushes as its JSON Lines have them, and a process that appends them to many files.

Run as a module it prepares flushes of many traces, says so, waits for a line, and appends each flush at its time; then
it prints, as JSON, when it wrote each one: `{"trace-0000.jsonl": [seconds since 1970, …], …}`.
"""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from iosig.transforms.arrays import Reals

_REQUEST_BYTES = 1 << 20
_MEANS = ("weighted_harmonic_mean", "harmonic_mean", "arithmetic_mean", "median", "max", "min")
#: TMIO tells of each phase twice: by rank, and by request
_RATES, _STARTS, _ENDS = ("b_rank_avr", "b_rank_sum", "b_ind"), ("t_rank_s", "t_ind_s"), ("t_rank_e", "t_ind_e")
_EMPTY_MODES = ("read_sync", "read_async_t", "read_async_b", "write_async_t", "write_async_b")
#: share of a period in which all ranks begin, and what a request takes of it
_BEGIN_RATIO = 0.05
_SHORTEST_RATIO, _LONGEST_RATIO = 0.05, 0.2


@dataclass(frozen=True, slots=True)
class Program:
    """A program each of whose ranks writes 1 MiB in each burst, and flushes its trace every so many seconds."""

    period_s: float
    rank_count: int
    flush_s: float

    def flush(self, number: int, random: np.random.Generator) -> bytes:
        """Return flush `number` (from 0): the bursts that were over in its time."""
        # a burst is over, at the latest, so long after its begin
        tail_s = self.period_s * (_BEGIN_RATIO + _LONGEST_RATIO)
        first, last = (math.ceil((edge * self.flush_s - tail_s) / self.period_s) for edge in (number, number + 1))
        bursts_s = np.repeat(np.arange(max(first, 0), last) * self.period_s, self.rank_count)
        began_s = bursts_s + self.period_s * random.uniform(0.0, _BEGIN_RATIO, bursts_s.size)
        lasted_s = self.period_s * random.uniform(_SHORTEST_RATIO, _LONGEST_RATIO, bursts_s.size)
        return flush_of(began_s, lasted_s, self.rank_count, (number + 1) * self.flush_s)


def flush_of(began_s: Reals, lasted_s: Reals, rank_count: int, until_s: float) -> bytes:
    """Return the seven lines of a flush of synchronous writes of 1 MiB each, as TMIO writes them."""
    columns = {
        **dict.fromkeys(_RATES, _texts(_REQUEST_BYTES / lasted_s)),
        **dict.fromkeys(_STARTS, _texts(began_s)),
        **dict.fromkeys(_ENDS, _texts(began_s + lasted_s)),
    }
    lines = [_mode(mode, 0, 0, dict.fromkeys(columns, "")) for mode in _EMPTY_MODES]
    lines.append(_mode("write_sync", began_s.size, rank_count, columns))
    times = ("delta_t_agg", "delta_t_agg_io", "delta_t_sw", "delta_t_rank0")
    busy_s = float(lasted_s.sum())
    values = (until_s * rank_count, busy_s, busy_s, until_s)
    lines.append(
        _object("io_time", ",".join(f'"{name}": {value:.2e}' for name, value in zip(times, values, strict=True)))
    )
    return "".join(lines).encode()


def _mode(mode: str, count: int, rank_count: int, columns: dict[str, str]) -> str:
    arrays = ",".join(f'"{name}": [{texts}]' for name, texts in columns.items())
    means = ",".join(f'"{name}": 0.00e+00' for name in _MEANS)
    phases = -(-count // rank_count) if rank_count else 0
    return _object(
        mode,
        f'"total_bytes": {count * _REQUEST_BYTES:.2e},"max_bytes_per_rank": {phases * _REQUEST_BYTES:.2e},'
        f'"max_transfersize_over_ranks": {_REQUEST_BYTES * bool(count):.2e},"max_io_phases_per_rank": {phases},'
        f'"total_io_phases": {count},"max_io_ops_in_phase": {int(bool(count))},"max_io_ops_per_rank": {phases},'
        f'"total_io_ops": {count},"number_of_ranks": {rank_count},"bandwidth": {{{means},{arrays}}}',
    )


def _object(name: str, members: str) -> str:
    return f'\t{{"{name}":{{{members}}}}}\n'


def _texts(values: Reals) -> str:
    return ", ".join(f"{value:.6f}" for value in values.tolist())


def write_trace(path: Path, program: Program, flush_count: int) -> bytes:
    """Write all flushes of a program but the last one, and return that."""
    random = np.random.default_rng(20240527)
    with path.open("wb") as file:
        for number in range(flush_count - 1):
            file.write(program.flush(number, random))
    return program.flush(flush_count - 1, random)


# ---- many traces at once


@dataclass(frozen=True, slots=True)
class Appending:
    """Flushes that are appended: so many to each of so many traces, one every `flush_s`.

    spread_s: within how much of that time all traces have their turn.
    """

    trace_count: int
    flush_count: int
    request_count: int
    flush_s: float
    spread_s: float

    def programs(self, random: np.random.Generator) -> dict[str, Program]:
        """Return programs by the names of their traces, with periods of 1 to 4 s."""
        periods_s = 2.0 ** random.uniform(0.0, 2.0, self.trace_count)
        return {
            f"trace-{place:04d}.jsonl": Program(
                float(period_s), max(1, round(self.request_count * period_s / self.flush_s)), self.flush_s
            )
            for place, period_s in enumerate(periods_s)
        }

    def arguments(self) -> list[str]:
        """Return the arguments of this module that ask for it."""
        return [str(value) for value in asdict(self).values()]


def _append(folder: Path, appending: Appending) -> dict[str, list[float]]:
    """Append all flushes, each at its time; return when each was written."""
    random = np.random.default_rng(20240528)
    prepared = {
        name: [program.flush(number, random) for number in range(appending.flush_count)]
        for name, program in appending.programs(random).items()
    }
    print("ready", flush=True)
    sys.stdin.readline()
    written: dict[str, list[float]] = {name: [] for name in prepared}
    # who writes when has nothing to do with the names
    offsets_s = random.uniform(0.0, appending.spread_s, len(prepared))
    turns = sorted(zip(offsets_s.tolist(), prepared.items(), strict=True))
    began_s = time.monotonic()
    for number in range(appending.flush_count):
        for offset_s, (name, flushes) in turns:
            time.sleep(max(0.0, began_s + number * appending.flush_s + offset_s - time.monotonic()))
            # before the bytes are there: no delay is told too short
            written[name].append(time.time())
            with (folder / name).open("ab", buffering=0) as file:
                file.write(flushes[number])
    return written


if __name__ == "__main__":
    counts, lengths = map(int, sys.argv[2:5]), map(float, sys.argv[5:7])
    print(json.dumps(_append(Path(sys.argv[1]), Appending(*counts, *lengths))))

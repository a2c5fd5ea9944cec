"""Whole processes, timed: wall seconds and peak memory, as the system accounts them."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process took: wall and processor seconds, and peak memory in bytes (of the largest single process)."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def cost_of(command: Sequence[str], *, may_end_with: frozenset[int] = frozenset({0})) -> Cost:
    """Run a command to its end and return what it took; raises RuntimeError if it fails."""
    # Modules are compiled once and kept, as they are wherever a program is used twice.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stderr
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - began
    if process.returncode not in may_end_with:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {said.decode()[-2000:]}")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def in_turn(ours: Callable[[], Cost], peer: Callable[[], Cost], rounds: int) -> tuple[list[Cost], list[Cost]]:
    """Measure two things in turn, after one round that does not count, so that drift hits both."""
    ours(), peer()
    pairs = [(ours(), peer()) for _ in range(rounds)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def median_s(costs: Sequence[Cost]) -> float:
    """Return the median wall time."""
    return statistics.median(cost.wall_s for cost in costs)


def iosig(*arguments: str) -> list[str]:
    """Return the command line of iosig in this environment."""
    return [str(Path(sys.executable).with_name("iosig")), *arguments]


def python(code: str, *arguments: str) -> list[str]:
    """Return the command line of a short Python program in this environment."""
    return [sys.executable, "-c", code, *arguments]

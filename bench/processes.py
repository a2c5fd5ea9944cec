"""Whole processes, timed: wall seconds and peak memory, as the system accounts them."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

# A small process starts the command: the peak that the system notes is never less than that of who started it.
_MEASURED = """
import json, resource, subprocess, sys, time
began = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
wall_s, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
said = done.stderr.decode("utf-8", "replace")[-2000:]
print(json.dumps([done.returncode, wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, said]))
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process took: wall and processor seconds, and peak memory in bytes (of the largest single process)."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def cost_of(
    command: Sequence[str], *, may_end_with: frozenset[int] = frozenset({0}), folder: Path | None = None
) -> Cost:
    """Run a command to its end, in a folder if one is given, and return what it took with all that it started.

    Raises RuntimeError if it fails.
    """
    # Modules are compiled once and kept, as they are wherever a program is used twice.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    measured = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _MEASURED, *command],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    code, *found, said = json.loads(measured.stdout)
    if code not in may_end_with:
        raise RuntimeError(f"{' '.join(command)} ended with {code}: {said}")
    return Cost(*found)


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

"""Time alternatives side by side in one run, and print their ratio with median, minimum and maximum.

A benchmark is a function with the decorator `@benchmark`; it takes a `Context` and yields rows of the table. Most rows
come from `Comparison`, which measures two alternatives in alternation so that drift of the machine affects both.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Measure = Literal["wall_s", "cpu_s", "peak_bytes"]
#: environment that limits libraries to one thread, here and in every process that a benchmark starts
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
#: a small process that starts a command, since the reported peak memory is never below that of the parent process
_LAUNCHER = """
import json, resource, subprocess, sys, time
began = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
wall_s, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
error = done.stderr.decode("utf-8", "replace")[-2000:]
print(json.dumps([done.returncode, wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, error]))
"""


# ---- measuring


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall time and processor time, and the peak memory of the largest process [B] (0 within this process)."""

    wall_s: float
    cpu_s: float
    peak_bytes: int = 0

    def scale(self, factor: float) -> Cost:
        """Scale the times to another amount of work; the peak memory is unchanged."""
        return Cost(self.wall_s * factor, self.cpu_s * factor, self.peak_bytes)


Alternative = Callable[[], Cost]


def environment() -> dict[str, str]:
    """Return the environment of measured processes, which keep compiled bytecode, as on a user's machine."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def process_cost(command: Sequence[str], folder: Path | None = None, *, exit_codes: Sequence[int] = (0,)) -> Cost:
    """Run a command to its end and return its cost with all its children.

    Raises RuntimeError if its exit code is none of those given.
    """
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, *command]
    measured = subprocess.run(launcher, env=environment(), cwd=folder, capture_output=True, text=True, check=True)
    code, wall_s, cpu_s, peak_bytes, error = json.loads(measured.stdout)
    if code not in exit_codes:
        raise RuntimeError(f"{' '.join(command)} ended with {code}: {error}")
    return Cost(wall_s, cpu_s, peak_bytes)


def call_cost(function: Callable[[], object]) -> Cost:
    """Call a function and return its cost, including that of child processes that have ended."""
    start_s, used_s = time.perf_counter(), _cpu_s()
    function()
    return Cost(time.perf_counter() - start_s, _cpu_s() - used_s)


def _cpu_s() -> float:
    usages = [resource.getrusage(target) for target in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def iosig(*arguments: str) -> list[str]:
    """Return the command line of iosig in this environment."""
    return [str(Path(sys.executable).with_name("iosig")), *arguments]


def python(code: str, *arguments: str) -> list[str]:
    """Return the command line of a short Python program in this environment."""
    return [sys.executable, "-c", code, *arguments]


def alternate(alternatives: Sequence[Alternative], rounds: int) -> list[list[Cost]]:
    """Measure alternatives in alternation after a warm-up round; return the costs of each."""
    costs = [[measure() for measure in alternatives] for _ in range(rounds + 1)]
    return [list(column) for column in zip(*costs[1:], strict=True)]


# ---- rows of the table


@dataclass(frozen=True, slots=True)
class Row:
    """Name, our figure, the peer's, their ratio, the limit, and whether it holds."""

    name: str
    ours: str
    peer: str = ""
    ratio: str = ""
    limit: str = ""
    holds: bool = True

    @property
    def markdown(self) -> str:
        """The row in the format of the table in `bench/README.md`."""
        cells = (self.name, self.ours, self.peer, self.ratio, self.limit, "yes" if self.holds else "NO")
        return f"| {' | '.join(cells)} |"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A measure of our implementation, optionally compared with a peer.

    max_ratio: limit on the ratio to the peer; max_value: limit on our value, in the unit of the measure; allowance:
    added to max_ratio times the peer's value. count, unit: processed items, to report a rate. min_rate: items per
    second.
    """

    name: str
    measure: Measure = "wall_s"
    max_ratio: float | None = None
    max_value: float | None = None
    allowance: float = 0.0
    count: float = 0.0
    unit: str = ""
    min_rate: float | None = None

    def row(self, costs: Sequence[Cost], peer: Sequence[Cost] = ()) -> Row:
        """Build the row from the measured costs."""
        values = [getattr(cost, self.measure) for cost in costs]
        peer_values = [getattr(cost, self.measure) for cost in peer]
        median_value = statistics.median(values)
        peer_median = statistics.median(peer_values) if peer_values else None
        return Row(
            self.name,
            self._text(values),
            self._text(peer_values) if peer_values else "",
            "" if peer_median is None else ratio_text(median_value / peer_median),
            ", ".join(self._limits()),
            self._holds(median_value, peer_median),
        )

    def _holds(self, value: float, peer_value: float | None) -> bool:
        is_near = self.max_ratio is None or peer_value is None or value <= self.max_ratio * peer_value + self.allowance
        is_low = self.max_value is None or value <= self.max_value
        return is_near and is_low and (self.min_rate is None or self.count / value >= self.min_rate)

    def _limits(self) -> Iterator[str]:
        if self.max_ratio is not None:
            added = f" + {self._amount(self.allowance)}" if self.allowance else ""
            yield f"{ratio_text(self.max_ratio)} of the peer{added}"
        if self.max_value is not None:
            yield self._amount(self.max_value)
        if self.min_rate is not None:
            yield f"{self.min_rate:,.3g} {self.unit}/s"

    def _text(self, values: Sequence[float]) -> str:
        middle = statistics.median(values)
        spread = f" [{self._amount(min(values))} to {self._amount(max(values))}]" if len(values) > 1 else ""
        rate = f", {self.count / middle:,.3g} {self.unit}/s" if self.count else ""
        return f"{self._amount(middle)}{spread}{rate}"

    def _amount(self, value: float) -> str:
        if self.measure == "peak_bytes":
            return f"{value / 1e6:,.0f} MB"
        return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"


def ratio_text(ratio: float) -> str:
    """Format a ratio; below one half as 1/n."""
    return f"1/{1 / ratio:.3g}" if 0 < ratio < 0.5 else f"{ratio:.3g}"


def compare_alternatives(
    comparison: Comparison, subject: Alternative, peer: Alternative, rounds: int, *more: Comparison
) -> Iterator[Row]:
    """Measure two alternatives and yield the row of a comparison; `more`: further measures of the same runs."""
    costs = alternate((subject, peer), rounds)
    yield from (item.row(*costs) for item in (comparison, *more))


# ---- benchmarks


@dataclass(frozen=True, slots=True)
class Context:
    """Context of a benchmark: folder of real measurements, scratch folder, and number of rounds."""

    data: Path
    scratch: Path
    rounds: int

    def fresh(self, name: str) -> Path:
        """Return a new, empty folder with this name in the scratch folder."""
        folder = self.scratch / name
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        return folder


Benchmark = Callable[[Context], Iterator[Row]]


@dataclass(frozen=True, slots=True)
class RegisteredBenchmark:
    """A registered benchmark; is_of_data: whether it needs the real measurements."""

    run: Benchmark
    is_of_data: bool
    doc: str = field(default="")


BENCHMARKS: dict[str, RegisteredBenchmark] = {}


def benchmark(name: str, *, is_of_data: bool = False) -> Callable[[Benchmark], Benchmark]:
    """Register a function as the benchmark with this name."""

    def register(function: Benchmark) -> Benchmark:
        BENCHMARKS[name] = RegisteredBenchmark(function, is_of_data, (function.__doc__ or "").strip())
        return function

    return register


def child_result(module: str, *arguments: object) -> Any:
    """Run a module of this package in a separate process with one thread, and return the JSON that it prints."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    completed = subprocess.run(command, env=environment() | ONE_THREAD, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(completed.stdout)

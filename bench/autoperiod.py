"""AUTOPERIOD over all CCR series, beside the same steps written plainly on astropy, in the same run."""

from __future__ import annotations

import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from bench.figures import Figure
from iosig.transforms.arrays import Ragged
from iosig.transforms.periods.autoperiod import detect
from iosig.transforms.periods.autoperiod_periodogram import UnevenSignals

_LEAST_RATIO = 5
_LARGEST_ERROR = 0.01
#: an environment of its own: astropy is no dependency of ours
_ASTROPY = ("uv", "run", "--no-project", "--python", "3.11", "--with", "astropy==8.0.2", "--with", "scipy", "python")
#: the steps of PEARC'18 section 4.2 as SUPReMM's code takes them: one series, one hint and one cut after the other
_PLAIN = """
import json, math, sys, time
import numpy as np
from astropy.timeseries import LombScargle
from scipy.signal import fftconvolve
from scipy.stats import linregress

def nearest(value, times):
    return int(np.abs(times - value).argmin())

def is_hill(times, acf, low, high):
    best = math.inf
    first = second = 0.0
    for cut in range(low + 1, high):
        if cut - low + 1 > 2 and high - cut + 1 > 2:
            left = linregress(times[low:cut + 1], acf[low:cut + 1])
            right = linregress(times[cut:high + 1], acf[cut:high + 1])
            if left.stderr + right.stderr < best:
                best, first, second = left.stderr + right.stderr, left.slope, right.slope
    angle = abs(math.atan(first) - math.atan(second)) / (math.pi / 2)
    return first > second and angle > 0.01

def period_of(times, values, confidence=0.9):
    even = np.linspace(times[0], times[-1], len(times))
    values, times = np.interp(even, times, values), even - even[0]
    span, step = times[-1], times[1]
    frequency, power = LombScargle(times, values).autopower(
        minimum_frequency=1 / span, maximum_frequency=1 / (2 * step), normalization="psd"
    )
    power = power / np.var(values)
    threshold = -math.log(1 - confidence ** (1 / len(power)))
    periods = 1 / frequency
    hints = [i for i, p in enumerate(periods) if power[i] > threshold and 2 * step < p < span / 2]
    hints.sort(key=lambda i: -power[i])
    acf = fftconvolve(values, values[::-1])[len(values) - 1:]
    acf = acf / acf.max() * 100
    for i in hints:
        if not 2 <= i < len(periods) - 2:
            continue
        low = nearest((periods[i + 1] + periods[i + 2]) / 2, times)
        high = nearest((periods[i - 1] + periods[i - 2]) / 2, times)
        while high - low + 1 < 6:
            low, high = max(low - 1, 0), min(high + 1, len(times) - 1)
        if is_hill(times, acf, low, high):
            return float(times[low + acf[low:high + 1].argmax()])
    return None

loaded = np.load(sys.argv[1])
pieces = [slice(*ends) for ends in zip(loaded["offsets"][:-1], loaded["offsets"][1:])]
period_of(loaded["time_s"][pieces[0]], loaded["bytes_per_s"][pieces[0]])
wall, cpu = time.perf_counter(), time.process_time()
found = [period_of(loaded["time_s"][piece], loaded["bytes_per_s"][piece]) for piece in pieces]
taken = time.perf_counter() - wall, time.process_time() - cpu
print(json.dumps({"wall_s": taken[0], "cpu_s": taken[1], "periods": found}))
"""


def series(data: Path, rounds: int) -> Iterator[Figure]:
    """Time the detection on all CCR series, loaded already, beside the plain peer; the verdicts of both beside golden.

    Both have one thread and are measured from rates in memory to periods; the first series once before does not count.
    """
    with (data / "ccr-gpfs" / "golden.tsv").open() as file:
        golden = {row["file"]: float(row["stat_period"] or "nan") for row in csv.DictReader(file, delimiter="\t")}
    with tempfile.TemporaryDirectory() as scratch:
        loaded = Path(scratch) / "series.npz"
        _load(data / "ccr-gpfs", list(golden), loaded)
        pairs = [(_run([sys.executable, "-m", "bench.autoperiod"], loaded), _run([*_ASTROPY, "-c", _PLAIN], loaded))]
        pairs += [
            (_run([sys.executable, "-m", "bench.autoperiod"], loaded), _run([*_ASTROPY, "-c", _PLAIN], loaded))
            for _ in range(rounds)
        ]
    ours, peers = [pair[0] for pair in pairs[1:]], [pair[1] for pair in pairs[1:]]
    for what, name in (("cpu_s", "processor time"), ("wall_s", "wall time")):
        taken, peer = (statistics.median(run[what] for run in runs) for runs in (ours, peers))
        yield Figure(
            f"AUTOPERIOD on {len(golden)} CCR series / the same steps written plainly on astropy 8.0.2, {name}",
            f"{1000 * taken:.0f} ms",
            f"{peer:.2f} s",
            f"1/{peer / taken:.0f}",
            f"1/{_LEAST_RATIO}",
            peer / taken >= _LEAST_RATIO,
        )
    expected = list(golden.values())
    agreed, others = (_agreed(run["periods"], expected) for run in (ours[-1], peers[-1]))
    yield Figure(
        f"… series judged as the reference does, periods to {_LARGEST_ERROR:.0%}",
        f"{agreed} of {len(expected)}",
        f"{others} of {len(expected)}",
        "",
        f"{len(expected)}",
        agreed == len(expected),
    )


def _agreed(periods: Sequence[float | None], expected: Sequence[float]) -> int:
    found = np.array([np.nan if period is None else period for period in periods])
    return int(np.isclose(found, expected, rtol=_LARGEST_ERROR, atol=0, equal_nan=True).sum())


def _load(folder: Path, names: Sequence[str], into: Path) -> None:
    """Write the rates of all series, each at the middle of its interval, in seconds; trends are levels, in days."""
    times, values = zip(*(_read(folder / name) for name in names), strict=True)
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in times])])
    np.savez(into, time_s=np.concatenate(times), bytes_per_s=np.concatenate(values), offsets=offsets)


def _read(path: Path) -> tuple[Any, Any]:
    if path.name.startswith("trends"):
        rows = [line.split(",") for line in path.read_text().split()]
        days = np.array([date.fromisoformat(day).toordinal() for day, _ in rows], dtype=np.float64)
        return days, np.array([float(level) for _, level in rows])
    times, counter = np.loadtxt(path, unpack=True)
    return (times[1:] + times[:-1]) / 2, np.diff(counter) / np.diff(times)


def _run(command: list[str], loaded: Path) -> dict[str, Any]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | threads
    done = subprocess.run([*command, str(loaded)], env=environment, check=True, capture_output=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _measure(loaded: str) -> dict[str, Any]:
    arrays = np.load(loaded)
    time_s, bytes_per_s, offsets = arrays["time_s"], arrays["bytes_per_s"], arrays["offsets"]

    def periods(count: int) -> list[float | None]:
        """Return the periods of the first so many series."""
        end = int(offsets[count])
        held = Ragged(bytes_per_s[:end], offsets[: count + 1])
        found = detect(UnevenSignals.of_intervals(time_s[:end], np.zeros(end), held)).period_s
        return [None if np.isnan(period) else float(period) for period in found]

    periods(1)
    wall, cpu = time.perf_counter(), time.process_time()
    found = periods(len(offsets) - 1)
    return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu, "periods": found}


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1])))

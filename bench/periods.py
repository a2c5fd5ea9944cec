"""Periods: the command and the searches beside FTIO's, and what many signals take beside their transforms alone.

Each side runs in a process of its own with one thread, and is asked in turn; imports and what is made before are not
counted. Run as a module, this is our side.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from bench.figures import Figure
from bench.processes import cost_of, in_turn, iosig, median_s
from bench.tmio_traces import FTIO
from iosig.transforms.arrays import Reals

_HZ = 10.0
_PERIOD_S, _BURST_S, _BYTES_PER_S = 20.0, 1.5, 1e9
_DETECTED, _CORRELATED = 1_000_000, 100_000
_SIGNALS, _POINTS = 20_000, 4_096
#: bursts of the batch come by chance once in so many samples
_RARE = 60
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_PEER_PYTHON = ("uv", "run", "--quiet", "--no-project", "--python", "3.11", "--with", "ftio-hpc==0.0.9", "python")
_PEER = """
import json, sys, time
from argparse import Namespace
import numpy as np
from ftio.analysis.anomaly_detection import outlier_detection
from ftio.freq._dft import dft
from ftio.freq.autocorrelation import find_fd_autocorrelation
from ftio.freq.discretize import sample_data

hz, period, burst, rate = map(float, sys.argv[1:5])
args = Namespace(freq=hz, memory_limit=1.0, verbose=False, outlier="z-score", psd=True, tol=0.8, engine="no",
                 cepstrum=False, autocorrelation=True)

def steps(count):
    # The last point ends the signal: it has exactly so many samples.
    starts = np.arange(0.0, count / hz, period)
    times = np.append(np.column_stack([starts, starts + burst]).ravel(), count / hz)
    return np.append(np.tile([rate, 0.0], len(starts)), 0.0), times

def detect(rates, times):
    sampled, used_hz = sample_data(rates, times, args)
    frequencies = used_hz * np.arange(len(sampled)) / len(sampled)
    dominant, conf, text = outlier_detection(np.abs(dft(sampled)), frequencies, args)
    return [len(sampled), [float(frequencies[place]) for place in dominant]]

def correlate(sampled):
    found = find_fd_autocorrelation(args, sampled, hz, None)
    return [len(sampled), float(found["periodicity"])]

detected, correlated = int(sys.argv[5]), int(sys.argv[6])
long = steps(detected)
short = np.where(np.arange(correlated) % round(period * hz) < round(burst * hz), rate, 0.0)
known = {"detect": lambda: detect(*long), "correlate": lambda: correlate(short)}
print("ready", flush=True)
for name in map(str.strip, sys.stdin):
    began = time.perf_counter()
    found = known[name]()
    print(json.dumps([time.perf_counter() - began, found]), flush=True)
"""


class _Side:
    """A process that measures what it is asked for."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = [*command]

    def __enter__(self) -> Self:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment | _ONE_THREAD
        )
        while (line := self._line()) != "ready\n":
            if not line:
                raise RuntimeError(f"{self._command[0]} ended before it was ready")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline()

    def ask(self, name: str) -> tuple[float, Any]:
        """Return how many seconds something took, and what was found."""
        assert self._process.stdin
        print(name, file=self._process.stdin, flush=True)
        line = self._line()
        if not line:
            raise RuntimeError(f"{self._command[0]} failed on {name}")
        taken, found = json.loads(line)
        return taken, found


def _ours(topic: str) -> _Side:
    return _Side([sys.executable, "-m", "bench.periods", topic])


def _peer() -> _Side:
    numbers = (_HZ, _PERIOD_S, _BURST_S, _BYTES_PER_S, _DETECTED, _CORRELATED)
    return _Side([*_PEER_PYTHON, "-c", _PEER, *map(str, numbers)])


def _medians(asked: Sequence[tuple[_Side, str]], rounds: int) -> list[tuple[float, Any]]:
    """Ask in turn, after one round that does not count; return the median seconds and the last answer of each."""
    answers = [[side.ask(name) for side, name in asked] for _ in range(rounds + 1)]
    columns = list(zip(*answers[1:], strict=True))
    return [(statistics.median(taken for taken, _ in column), column[-1][1]) for column in columns]


# ---- the table


def command(data: Path, scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time `iosig period` on a trace of 29 s, the whole process, beside FTIO's command, which writes where it runs."""
    trace = str((data / "tmio" / "8.jsonl").absolute())
    ours, peers = in_turn(
        lambda: cost_of(iosig("period", trace, "--direction", "write", "--sampling-hz", f"{_HZ:g}")),
        lambda: cost_of([*FTIO, trace, "-e", "no", "-f", f"{_HZ:g}"], folder=scratch),
        rounds,
    )
    taken, peer = median_s(ours), median_s(peers)
    yield _compared("`iosig period` on a TMIO trace of 8 ranks / `ftio` on it", taken, peer, "", "", 4)
    taken, peer = (statistics.median(cost.cpu_s for cost in costs) for costs in (ours, peers))
    yield _compared("… processor time", taken, peer, "", "", None)


def detection(rounds: int) -> Iterator[Figure]:
    """Time the search in a million samples of a square wave, sampling included, and its autocorrelation."""
    with _ours("detection") as ours, _peer() as peer:
        asked = [(ours, "paper"), (peer, "detect"), (ours, "controlled"), (ours, "correlate"), (peer, "correlate")]
        paper, detect, controlled, correlate, correlated = _medians(asked, rounds)
    whole = f"sampling, spectrum and verdict of {_DETECTED:,} samples of a square wave / FTIO's"
    default = "… our default, with the false-alarm probability"
    for title, (taken, said), least in ((whole, paper, 10), (default, controlled, None)):
        yield _compared(title, taken, detect[0], _period_text(said), _frequencies_text(detect[1][1]), least)
    yield _compared(
        f"autocorrelation of {_CORRELATED:,} samples, with peaks and period / FTIO's",
        correlate[0],
        correlated[0],
        _period_text(correlate[1]),
        f"{correlated[1][1]:.4g} s",
        100,
    )


def batch(rounds: int) -> Iterator[Figure]:
    """Time the search in many signals at once, beside their Fourier transforms alone."""
    with _ours("batch") as ours:
        asked = ("transforms", "chunks", "paper", "correlate", "controlled", "windows")
        whole, chunks, *searches = _medians([(ours, name) for name in asked], rounds)
    floor = min(whole[0], chunks[0])
    (paper, paper_said), (correlate, correlate_said), (controlled, controlled_said), (windows, windows_said) = searches
    size = f"{_SIGNALS:,} signals of {_POINTS:,} samples ({_SIGNALS * _POINTS * 8 / 1e6:.0f} MB) in one batch"
    for title, taken, said, most in (
        (f"the paper's DFT of {size} / their rffts alone", paper, paper_said, 3),
        ("… autocorrelation, with peaks and period", correlate, correlate_said, None),
        ("… our default on whole signals, with the false-alarm probability", controlled, controlled_said, None),
        ("… both of these", correlate + controlled, None, 10),
        ("… our default in windows too", windows, windows_said, None),
    ):
        note = f" ({said[0] / _SIGNALS:.0%} periodic; {said[1] / 1e6:.0f} MB besides the batch)" if said else ""
        yield Figure(
            title,
            f"{taken:.2f} s{note}",
            f"{floor:.2f} s",
            f"{taken / floor:.1f}",
            f"{most}" if most else "",
            most is None or taken <= most * floor,
        )


def _compared(title: str, taken: float, peer: float, said: str, peer_said: str, least: int | None) -> Figure:
    notes = [f" ({text})" if text else "" for text in (said, peer_said)]
    return Figure(
        title,
        f"{_seconds_text(taken)}{notes[0]}",
        f"{_seconds_text(peer)}{notes[1]}",
        f"1/{peer / taken:.3g}",
        f"1/{least}" if least else "",
        least is None or peer >= least * taken,
    )


def _seconds_text(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def _period_text(frequency_hz: float | None) -> str:
    return f"{1 / frequency_hz:.4g} s" if frequency_hz else "no period"


def _frequencies_text(frequencies_hz: list[float]) -> str:
    return ", ".join(map(_period_text, frequencies_hz)) or "no period"


# ---- our side


def _detection_side() -> dict[str, Callable[[], object]]:
    from iosig.transforms.periods import autocorrelation, controlled, ftio
    from iosig.transforms.periods.answers import Detections
    from iosig.transforms.periods.even_signals import EvenSignals
    from iosig.transforms.throughput.even_values import Instants, at_instants
    from iosig.transforms.throughput.requests import Requests, step_function

    starts = np.arange(0.0, _DETECTED / _HZ, _PERIOD_S)
    volume = np.full(len(starts), _BYTES_PER_S * _BURST_S)
    steps = step_function(Requests.of_one(starts, starts + _BURST_S, volume))
    instants = Instants(np.zeros(1), np.array([_HZ]), np.array([_DETECTED]))
    short = EvenSignals.of_one(at_instants(steps, instants).values[:_CORRELATED], _HZ)

    def sampled() -> EvenSignals:
        return EvenSignals(at_instants(steps, instants).values[None, :], instants.sampling_hz, instants.started_s)

    def found(answer: Detections) -> float | None:
        return float(answer.frequency_hz[0]) if answer.is_periodic[0] else None

    return {
        "paper": lambda: found(ftio.detect(sampled())),
        "controlled": lambda: found(controlled.detect(sampled())),
        "correlate": lambda: found(autocorrelation.detect(short)),
    }


def _batch_side() -> dict[str, Callable[[], object]]:
    import scipy.fft

    from iosig.transforms.periods import autocorrelation, controlled, ftio
    from iosig.transforms.periods.answers import Detections
    from iosig.transforms.periods.even_signals import CHUNK_SAMPLES, EvenSignals

    values = _signals()
    sampled = EvenSignals(values, np.ones(len(values)), np.zeros(len(values)))
    rows = CHUNK_SAMPLES // _POINTS

    def in_chunks() -> None:
        for start in range(0, _SIGNALS, rows):
            scipy.fft.rfft(values[start : start + rows], axis=1)

    def whole() -> None:
        scipy.fft.rfft(values, axis=1)

    def searched(detect: Callable[[EvenSignals], Detections]) -> list[int]:
        before = _reset_peak()
        return [int(detect(sampled).is_periodic.sum()), _peak_bytes() - before]

    searches: dict[str, Callable[[EvenSignals], Detections]] = {
        "paper": ftio.detect,
        "correlate": autocorrelation.detect,
        "controlled": partial(controlled.detect, params=controlled.ControlledParams(window_levels=0)),
        "windows": controlled.detect,
    }
    measured: dict[str, Callable[[], object]] = {name: partial(searched, detect) for name, detect in searches.items()}
    return {"transforms": whole, "chunks": in_chunks, **measured}


def _signals() -> Reals:
    """Return signals (n, samples) of four kinds, mixed: white and red noise, bursts by chance, and periodic ones."""
    from scipy.signal import lfilter

    rng = np.random.default_rng(20240527)
    values = np.empty((_SIGNALS, _POINTS))
    for row in range(0, _SIGNALS, 4):
        noise = rng.standard_normal((2, _POINTS))
        values[row] = 1e8 * (5 + noise[0])
        values[row + 1] = 1e8 * (30 + lfilter([1.0], [1.0, -0.9], noise[1]))
        values[row + 2] = np.where(rng.random(_POINTS) < 1 / _RARE, _BYTES_PER_S, 0.0)
        period = rng.uniform(10, 400)
        values[row + 3] = np.where(np.arange(_POINTS) % period < 0.15 * period, _BYTES_PER_S, 1e8 * rng.random(_POINTS))
    return values


def _reset_peak() -> int:
    """Have the system forget the peak of memory, where it can; return what is in use now."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak_bytes()


def _peak_bytes() -> int:
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _answer(known: dict[str, Callable[[], object]]) -> None:
    print("ready", flush=True)
    for name in map(str.strip, sys.stdin):
        began = time.perf_counter()
        found = known[name]()
        print(json.dumps([time.perf_counter() - began, found]), flush=True)


if __name__ == "__main__":
    _answer({"detection": _detection_side, "batch": _batch_side}[sys.argv[1]]())

"""Benchmark period detection: command and detectors against FTIO's, and batches against their Fourier transforms."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import scipy.fft
from scipy.signal import lfilter

from bench.harness import (
    Comparison,
    Context,
    Cost,
    Row,
    alternate,
    benchmark,
    call_cost,
    compare_alternatives,
    iosig,
    process_cost,
    run_self_timed,
)
from bench.tmio import FTIO
from iosig.transforms.arrays import Reals
from iosig.transforms.periods import autocorrelation, ftio
from iosig.transforms.periods.interface.detections import Detections
from iosig.transforms.periods.interface.even_signals import CHUNK_SAMPLES, EvenSignals
from iosig.transforms.periods.null_model import detection
from iosig.transforms.periods.null_model.params import NullModelParams
from iosig.transforms.throughput.even_values import Instants, sample_at
from iosig.transforms.throughput.requests import Requests, step_function

_HZ, _PERIOD_S, _BURST_S, _BYTES_PER_S = 10.0, 20.0, 1.5, 1e9
_DETECTED, _CORRELATED = 1_000_000, 100_000
_SIGNALS, _POINTS = 4_000, 4_096
_FTIO_PYTHON = ("uv", "run", "--quiet", "--no-project", "--python", "3.11", "--with", "ftio-hpc==0.0.9", "python")
_FTIO_SIDE = """
import json, sys, time
from argparse import Namespace
import numpy as np
from ftio.analysis.anomaly_detection import outlier_detection
from ftio.freq._dft import dft
from ftio.freq.autocorrelation import find_fd_autocorrelation
from ftio.freq.discretize import sample_data

search, count, hz, period, burst, rate = sys.argv[1], int(sys.argv[2]), *map(float, sys.argv[3:])
args = Namespace(freq=hz, memory_limit=1.0, verbose=False, outlier="z-score", psd=True, tol=0.8, engine="no",
                 cepstrum=False, autocorrelation=True)
starts = np.arange(0.0, count / hz, period)
# The last point ends the signal: it has exactly `count` samples.
times = np.append(np.column_stack([starts, starts + burst]).ravel(), count / hz)
rates = np.append(np.tile([rate, 0.0], len(starts)), 0.0)
square = np.where(np.arange(count) % round(period * hz) < round(burst * hz), rate, 0.0)

def detect():
    sampled, used_hz = sample_data(rates, times, args)
    outlier_detection(np.abs(dft(sampled)), used_hz * np.arange(len(sampled)) / len(sampled), args)

call = detect if search == "dft" else lambda: find_fd_autocorrelation(args, square, hz, None)
for _ in range(2):
    began, used = time.perf_counter(), time.process_time()
    call()
    print(json.dumps([time.perf_counter() - began, time.process_time() - used]))
"""


@benchmark("period", is_of_data=True)
def command(context: Context) -> Iterator[Row]:
    """Run `iosig period` on a trace of 29 s, compared with FTIO's command."""
    trace = str((context.data / "tmio" / "8.jsonl").absolute())
    yield from compare_alternatives(
        Comparison("`iosig period` on a TMIO trace of 8 ranks / `ftio` on it", max_ratio=1 / 4),
        lambda: process_cost(iosig("period", trace, "--direction", "write", "--sampling-hz", f"{_HZ:g}")),
        lambda: process_cost([*FTIO, trace, "-e", "no", "-f", f"{_HZ:g}"], context.scratch),
        context.rounds,
        Comparison("… processor time", "cpu_s"),
    )


@benchmark("periods")
def searches(context: Context) -> Iterator[Row]:
    """Search a square wave, sampling included, compared with FTIO; one thread each, without imports."""

    def ours(search: str) -> Cost:
        return run_self_timed([sys.executable, "-m", "bench.periods", search])

    def peer(search: str, count: int) -> Cost:
        numbers = (count, _HZ, _PERIOD_S, _BURST_S, _BYTES_PER_S)
        return run_self_timed([*_FTIO_PYTHON, "-c", _FTIO_SIDE, search, *map(str, numbers)])

    whole = f"sampling, spectrum and verdict of {_DETECTED:,} samples of a square wave"
    for search, name, count, max_ratio in (
        ("dft", f"{whole} / FTIO's", _DETECTED, 1 / 10),
        ("null_tested", "… our default, with the false-alarm probability / FTIO's", _DETECTED, None),
        ("autocorrelation", f"autocorrelation of {_CORRELATED:,} samples / FTIO's", _CORRELATED, 1 / 100),
    ):
        peer_search = "dft" if search == "null_tested" else search
        yield from compare_alternatives(
            Comparison(name, max_ratio=max_ratio),
            partial(ours, search),
            partial(peer, peer_search, count),
            context.rounds,
        )


@benchmark("batch")
def batch(context: Context) -> Iterator[Row]:
    """Search thousands of signals at once, compared with their Fourier transforms alone."""
    values = _signals()
    signals = EvenSignals(values, np.ones(len(values)), np.zeros(len(values)))
    rows = CHUNK_SAMPLES // _POINTS

    def transforms() -> None:
        for start in range(0, _SIGNALS, rows):
            scipy.fft.rfft(values[start : start + rows], axis=1)

    whole = NullModelParams(window_levels=0)
    searched: tuple[tuple[str, Callable[[EvenSignals], Detections], float | None], ...] = (
        (f"the paper's DFT of {_SIGNALS:,} signals of {_POINTS:,} samples / their rffts alone", ftio.detect, 3),
        ("… autocorrelation, with peaks and period", autocorrelation.detect, None),
        ("… our default on whole signals", partial(detection.detect, params=whole), None),
        ("… our default in windows too", detection.detect, None),
    )
    calls: list[Callable[[], object]] = [transforms, *(partial(detect, signals) for _, detect, _ in searched)]
    floor, *costs = alternate([partial(call_cost, call) for call in calls], context.rounds)
    for (name, _, max_ratio), costs_of_call in zip(searched, costs, strict=True):
        yield Comparison(name, "cpu_s", max_ratio=max_ratio, count=_SIGNALS, unit="signals").row(costs_of_call, floor)


def _signals() -> Reals:
    """Return signals (n, samples) of four kinds, mixed: white and red noise, random bursts, and periodic ones."""
    rng = np.random.default_rng(20240527)
    values = np.empty((_SIGNALS, _POINTS))
    for row in range(0, _SIGNALS, 4):
        noise = rng.standard_normal((2, _POINTS))
        values[row] = 1e8 * (5 + noise[0])
        values[row + 1] = 1e8 * (30 + lfilter([1.0], [1.0, -0.9], noise[1]))
        values[row + 2] = np.where(rng.random(_POINTS) < 1 / 60, _BYTES_PER_S, 0.0)
        period = rng.uniform(10, 400)
        values[row + 3] = np.where(np.arange(_POINTS) % period < 0.15 * period, _BYTES_PER_S, 1e8 * rng.random(_POINTS))
    return values


def _our_side(search: str) -> Callable[[], Detections]:
    """Return a function that searches the square wave once."""
    starts = np.arange(0.0, _DETECTED / _HZ, _PERIOD_S)
    volume = np.full(len(starts), _BYTES_PER_S * _BURST_S)
    steps = step_function(Requests.from_arrays(starts, starts + _BURST_S, volume))
    instants = Instants(np.zeros(1), np.array([_HZ]), np.array([_DETECTED]))
    if search == "autocorrelation":
        short = EvenSignals.from_samples(sample_at(steps, instants).values[:_CORRELATED], _HZ)
        return lambda: autocorrelation.detect(short)
    detect: Callable[[EvenSignals], Detections] = {"dft": ftio.detect, "null_tested": detection.detect}[search]
    return lambda: detect(
        EvenSignals(sample_at(steps, instants).values[None, :], instants.sampling_hz, instants.start_s)
    )


if __name__ == "__main__":
    measured = _our_side(sys.argv[1])
    for _ in range(2):
        cost = call_cost(measured)
        print(json.dumps([cost.wall_s, cost.cpu_s]))

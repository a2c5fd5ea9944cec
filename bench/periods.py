"""Benchmark period detection: the command against FTIO's, and batches of signals against their Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import scipy.fft
from scipy.signal import lfilter

from bench.harness import (
    Comparison,
    Context,
    Row,
    alternate,
    benchmark,
    call_cost,
    compare_alternatives,
    iosig,
    process_cost,
)
from bench.tmio import FTIO
from iosig.transforms.arrays import Reals
from iosig.transforms.periods import autocorrelation, ftio
from iosig.transforms.periods.interface.detections import Detections
from iosig.transforms.periods.interface.even_signals import CHUNK_SAMPLES, EvenSignals
from iosig.transforms.periods.null_model import detection
from iosig.transforms.periods.null_model.params import NullModelParams

_HZ, _BYTES_PER_S = 10.0, 1e9
_SIGNALS, _POINTS = 4_000, 4_096


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

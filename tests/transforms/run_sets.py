"""Sample sets with known bursts, and invariants of every extracted signature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Ragged
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Outcome, Signature

Reals = npt.NDArray[np.float64]
#: Start and end in seconds since the start of the run, and bytes per second.
Burst = tuple[float, float, float]
HUGE = np.finfo(np.float64).max


def simulate_polls(bursts: Sequence[Burst], duration_s: float, interval_s: float = 2.0, phase_s: float = 0.0) -> Reals:
    """Simulate polls of bursts: mean rates of steps; the first step starts phase_s before the run."""
    edges = np.arange(int(np.ceil((duration_s + phase_s) / interval_s - 1e-9)) + 1) * interval_s - phase_s
    total = np.zeros(len(edges))
    for begin, end, rate in bursts:
        total += rate * np.clip(edges - begin, 0.0, end - begin)
    return np.diff(total) / interval_s


def make_sample_set(
    rows: Sequence[npt.ArrayLike],
    interval_s: float = 2.0,
    start_s: Sequence[float] | None = None,
    duration_s: Sequence[float] | None = None,
) -> SampleSet:
    """Make a sample set; by default, runs start and end at the edges of steps."""
    rates = [np.asarray(row, dtype=np.float64) for row in rows]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rates])]).astype(np.int64)
    started = np.zeros(len(rates)) if start_s is None else np.asarray(start_s, dtype=np.float64)
    whole = [len(row) * interval_s for row in rates]
    duration = np.asarray(whole if duration_s is None else duration_s, dtype=np.float64)
    return SampleSet(Ragged(np.concatenate([np.zeros(0), *rates]), offsets), interval_s, started, duration)


def scale_rates(one: SampleSet, factor: float) -> SampleSet:
    """Multiply all rates of a set."""
    samples = Ragged(one.samples.values * factor, one.samples.offsets)
    return SampleSet(samples, one.interval_s, one.start_s, one.duration_s)


def reorder_runs(one: SampleSet, order: Sequence[int]) -> SampleSet:
    """Reorder the runs of a set."""
    rates = one.rates
    picked = list(order)
    return make_sample_set(
        [rates[run] for run in picked],
        one.interval_s,
        one.start_s[picked].tolist(),
        one.duration_s[picked].tolist(),
    )


def true_rates(bursts: Sequence[Burst], duration_s: int) -> Reals:
    """Rates of bursts in each second."""
    return simulate_polls(bursts, duration_s, 1.0)


def find_faults(result: Signature) -> list[str]:
    """List the violated invariants of a signature."""
    curve, low, high, bursts = result.bytes_per_s, result.low_bytes_per_s, result.high_bytes_per_s, result.bursts
    wrong = {
        "outcome": result.outcome not in get_args(Outcome),
        "background": np.isinf(result.background_bytes_per_s) or result.background_bytes_per_s < 0,
        "lengths": not len(curve) == len(low) == len(high),
    }
    if result.outcome != "extracted":
        wrong |= {"points without an answer": len(curve) > 0, "bursts without an answer": len(bursts) > 0}
        return [name for name, is_so in wrong.items() if is_so]
    wrong |= {
        "no point": not len(curve),
        "curve": not np.isfinite(curve).all() or bool((curve < 0).any()),
        "no rate": not (curve > 0).any(),
    }
    if not np.isnan(low).all():
        is_in_order = (low >= 0) & (low <= curve) & (curve <= high) & (high <= HUGE)
        wrong["band"] = not is_in_order.all()
    return [name for name, is_so in wrong.items() if is_so] + find_burst_faults(result)


def find_burst_faults(result: Signature) -> list[str]:
    """List the violated invariants of a signature's bursts."""
    bursts, curve = result.bursts, result.bytes_per_s
    columns = (bursts.start_s, bursts.peak_s, bursts.end_s, bursts.volume_bytes, bursts.support_ratio)
    if {len(column) for column in columns} != {len(bursts)}:
        return ["columns of several lengths"]
    if not len(bursts):
        return []
    support = bursts.support_ratio
    with np.errstate(over="ignore"):
        is_too_much = bursts.volume_bytes.sum() > curve.sum() * (1 + 1e-9)
    wrong = {
        "burst without length": (bursts.end_s <= bursts.start_s).any(),
        "overlap": (bursts.start_s[1:] < bursts.end_s[:-1]).any(),
        "outside": bursts.start_s[0] < 0 or bursts.end_s[-1] > len(curve),
        "peak": ((bursts.peak_s < bursts.start_s) | (bursts.peak_s > bursts.end_s)).any(),
        "volume": np.isnan(bursts.volume_bytes).any() or not (bursts.volume_bytes > 0).all(),
        "more in bursts than in all": is_too_much,
        "support": not np.isnan(support).all() and not ((support >= 0) & (support <= 1)).all(),
    }
    return [name for name, is_so in wrong.items() if is_so]

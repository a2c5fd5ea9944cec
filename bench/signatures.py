"""Signatures at the scale of Spider: three months of one system's traffic, 80,815 jobs in 5,000 sample sets.

IOSI (Liu et al., FAST'14), section 6.3, names that many jobs in three months of logs. What is measured stands beside
cutting the same samples out of the series with NumPy, in the same process and in turn. Run as a module, this is that
process: it makes its site in memory, measures one topic, and prints what it found as JSON.

The comparison by samples and length of one set (Figure 19) is `iosig.studies.signatures.timing`.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.figures import Figure
from iosig.transforms.arrays import Ints, Reals

#: 90 days at 2 s, and the paper's number of jobs
TICKS, JOBS, SETS = 3_888_000, 80_815, 5_000
_INTERVAL_S = 2.0
_WORKERS = 2
_GB = 1e9
_PAPER_S = 72 * 60.0
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
#: beside what the same samples take to be cut
_LIMITS = {"iosi": 20, "warped": 60, "robust": 60}
_MOST_BYTES = 4e9
#: of all sets: for the growth by jobs, and by length
_SHARES = {
    "iosi": (1 / 8, 1 / 4, 1 / 2, 1.0),
    "warped": (1 / 64, 1 / 32, 1 / 16, 1 / 8),
    "robust": (1 / 64, 1 / 32, 1 / 16, 1 / 8),
}
_LENGTHS = (1, 2, 4, 8)
_LENGTH_SETS = {"iosi": 300, "warped": 150, "robust": 150}
#: an exponent of 1 is linear
_MOST_EXPONENT = 1.1
_LOF_SETS, _LOF_RUNS, _LOF_PEER_SETS, _LOF_MOST_S = 20_000, 10, 400, 0.25


# ---- the site


@dataclass(frozen=True, slots=True)
class Transfers:
    """The bursts of all runs (n), those of one run on end: whose each is, when it begins [s], how long it takes [s]."""

    job: Ints
    begin_s: Reals
    taken_s: Reals
    bytes_per_s: Reals


@dataclass(frozen=True, slots=True)
class Site:
    """A system's traffic and the runs of its applications.

    bytes_per_s (ticks): the mean rate in each 2 s. first, last (jobs): the ticks that a run touches, both included.
    started_s (jobs): the first one's left edge since the run's start. duration_s (jobs). sizes (sets): how many jobs.
    transfers: what the runs do.
    """

    bytes_per_s: Reals
    first: Ints
    last: Ints
    started_s: Reals
    duration_s: Reals
    sizes: Ints
    transfers: Transfers


def site(job_count: int = JOBS, set_count: int = SETS, length: float = 1.0, seed: int = 1) -> Site:
    """Draw a site; with fewer jobs that are as many times longer, its traffic is as dense.

    Sets have 5 runs, and what is left is shared out by log-normal weights (sigma 0.7): 5 to 145, 13 in the median.
    Durations of sets are log-normal with a median of 20 minutes (sigma 0.7; 2 minutes to 12 hours), 26 in the mean; a
    run takes longer by 1 % in the mean (exponential), and one of 20 stops early. Each set has bursts of its own:
    log-normal with medians of one in 300 s, 15 s long, 1.5 GB/s high (sigma 0.6), each a little late and stretched.
    That makes about 2 GB/s, as of a busy system, over a background of 0.1 GB/s with the texture of gamma noise.
    """
    rng = np.random.default_rng(seed)
    weights = rng.lognormal(0.0, 0.7, set_count)
    sizes = 5 + rng.multinomial(job_count - 5 * set_count, weights / weights.sum())
    owner = np.repeat(np.arange(set_count), sizes)
    alone_s = length * np.clip(rng.lognormal(np.log(1200.0), 0.7, set_count), 120.0, 43_200.0)
    pace = 1.0 + rng.exponential(0.01, job_count)
    is_stopped = rng.random(job_count) < 0.05
    duration_s = alone_s[owner] * np.where(is_stopped, rng.uniform(0.2, 0.9, job_count), pace)
    began_s = _INTERVAL_S + rng.random(job_count) * (TICKS * _INTERVAL_S - duration_s - 2 * _INTERVAL_S)
    transfers = _transfers(rng, owner, alone_s, pace, began_s, duration_s)
    rates = _traffic(transfers)
    rates += 0.1 * _GB * rng.gamma(4.0, 0.25, TICKS)
    first = np.floor(began_s / _INTERVAL_S).astype(np.int64)
    last = np.ceil((began_s + duration_s) / _INTERVAL_S).astype(np.int64) - 1
    started_s = first * _INTERVAL_S - began_s
    return Site(rates, first, last, started_s, duration_s, sizes.astype(np.int64), transfers)


def _transfers(
    rng: np.random.Generator, owner: Ints, alone_s: Reals, pace: Reals, began_s: Reals, duration_s: Reals
) -> Transfers:
    """Return all runs' bursts."""
    count = len(alone_s)
    period_s = np.minimum(np.clip(rng.lognormal(np.log(300.0), 0.6, count), 60.0, None), alone_s / 2)
    burst_s = np.minimum(np.clip(rng.lognormal(np.log(15.0), 0.6, count), 3.0, None), period_s / 2)
    volume = burst_s * rng.lognormal(np.log(1.5), 0.6, count) * _GB
    numbers = np.floor(duration_s / (period_s[owner] * pace)).astype(np.int64)
    job = np.repeat(np.arange(len(owner)), numbers)
    place = np.arange(len(job)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    own = owner[job]
    late_s = np.abs(rng.normal(0.0, 0.5, len(job)))
    begin_s = began_s[job] + (place + 0.5) * period_s[own] * pace[job] + late_s
    taken_s = burst_s[own] * (1.0 + rng.exponential(0.1, len(job)))
    return Transfers(job, begin_s, taken_s, volume[own] / taken_s)


def _traffic(of: Transfers) -> Reals:
    """Return the traffic of all runs' bursts (ticks)."""
    # a rate that changes within a tick changes that tick's mean by what is left of it, and the next one's by the rest
    change = np.zeros(TICKS + 1)
    for at, by in ((of.begin_s, of.bytes_per_s), (of.begin_s + of.taken_s, -of.bytes_per_s)):
        tick, rest = np.divmod(np.clip(at / _INTERVAL_S, 0.0, TICKS - 1e-6), 1.0)
        tick = tick.astype(np.int64)
        change += np.bincount(tick, by * (1.0 - rest), TICKS + 1) + np.bincount(tick + 1, by * rest, TICKS + 1)
    return np.maximum(np.cumsum(change)[:TICKS], 0.0)


# ---- the table


def scale(rounds: int) -> Iterator[Figure]:
    """Extract all signatures of all jobs, beside cutting their samples, and the memory of all processes together."""
    found = _side("scale", rounds)
    wall_s = found["wall_s"]
    cut_s = statistics.median(wall_s["cut"])
    cut = f"{cut_s:.2f} s{_spread(wall_s['cut'])}"
    steps = f"{found['step_count'] / 1e6:.0f} M steps"
    for method, limit in _LIMITS.items():
        taken = statistics.median(wall_s[method])
        name = f"`{method}` of {JOBS:,} jobs in {SETS:,} sets ({steps}), {_WORKERS} processes / cutting their samples"
        answered = f"{found['extracted'][method]:,} signatures"
        ours = f"{taken:.1f} s{_spread(wall_s[method])} ({answered}, {1000 * taken / SETS:.1f} ms a set)"
        ratio = taken / cut_s
        yield Figure(name, ours, cut, f"{ratio:.1f}", f"{limit}", ratio <= limit)
        cpu_s, cut_cpu_s = statistics.median(found["cpu_s"][method]), statistics.median(found["cpu_s"]["cut"])
        costs = (f"{cpu_s:.1f} s", f"{cut_cpu_s:.2f} s", f"{cpu_s / cut_cpu_s:.1f}")
        yield Figure("… processor time of all processes", *costs, "", True)
    taken = statistics.median(wall_s["iosi"])
    paper = f"{_PAPER_S / 60:.0f} min"
    yield Figure(
        "… IOSI, beside its paper's own figure", f"{taken:.1f} s", paper, f"1/{_PAPER_S / taken:.0f}", "", True
    )
    peak = found["peak_bytes"]
    yield Figure("… peak memory of all processes together", f"{peak / 1e9:.2f} GB", "", "", "4 GB", peak < _MOST_BYTES)


def growth() -> Iterator[Figure]:
    """Show how the processor time grows with the number of jobs, and with their length."""
    found = _side("growth", 1)
    for by, unit in (("jobs", "{:,} jobs"), ("lengths", "x {}")):
        for method in _LIMITS:
            rows = found[by][method]
            exponent = exponent_of([row[0] for row in rows], [row[1] for row in rows])
            told = ", ".join(f"{unit.format(row[0])}: {row[1]:.1f} s" for row in rows)
            name = f"`{method}` by {'number of jobs' if by == 'jobs' else 'length of the runs'}, processor time"
            yield Figure(
                f"{name}: exponent of its growth",
                told,
                "",
                f"{exponent:.2f}",
                f"{_MOST_EXPONENT}",
                exponent <= _MOST_EXPONENT,
            )


def outliers(rounds: int) -> Iterator[Figure]:
    """Time the search for outliers in many small sets, beside scikit-learn's factors set by set."""
    found = _side("outliers", rounds)
    taken, peer = statistics.median(found["ours_s"]), statistics.median(found["peer_s"])
    yield Figure(
        f"outliers in {_LOF_SETS:,} sets of {_LOF_RUNS} runs / scikit-learn, set by set ({_LOF_PEER_SETS} of them)",
        f"{taken:.2f} s{_spread(found['ours_s'])}",
        f"{peer:.1f} s",
        f"1/{peer / taken:.0f}",
        f"{_LOF_MOST_S} s",
        taken <= _LOF_MOST_S,
    )


def exponent_of(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return by what power of a size the time grows: the slope of a straight line through both logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _spread(seconds: Sequence[float]) -> str:
    return f" [{min(seconds):.3g} to {max(seconds):.3g}]" if len(seconds) > 1 else ""


def _side(topic: str, rounds: int) -> dict[str, Any]:
    """Measure a topic in a process of its own: what else is in memory does not count."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "bench.signatures", topic, str(rounds)]
    done = subprocess.run(command, env=environment | _ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# ---- the measuring process


def sample_sets(drawn: Site, set_count: int | None = None) -> Any:
    """Return the samples of the first sets."""
    from iosig.transforms.arrays import cut
    from iosig.transforms.signatures.sample_sets import SampleSets

    sizes = drawn.sizes[:set_count]
    jobs = slice(0, int(sizes.sum()))
    return SampleSets(
        samples=cut(drawn.bytes_per_s, drawn.first[jobs], drawn.last[jobs]),
        started_s=drawn.started_s[jobs],
        duration_s=drawn.duration_s[jobs],
        interval_s=np.full(len(sizes), _INTERVAL_S),
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
    )


def _scale(rounds: int) -> dict[str, Any]:
    """Cut and extract in turn; our own methods once, as they take longest."""
    from iosig.estimates.signatures.parallel import extract_in_chunks
    from iosig.transforms.arrays import cut
    from iosig.transforms.signatures.methods import SignatureParams

    drawn = site()
    sets = sample_sets(drawn)
    extracted = {}

    def extract(method: str) -> Cost:
        def extracting() -> None:
            answer = extract_in_chunks(sets, SignatureParams(), (method,), _WORKERS)[0]
            extracted[method] = Counter(one.outcome for one in answer.signatures)["extracted"]

        return _cost(extracting)

    def cutting() -> Cost:
        # the first one after a pause asks the system for memory: the second one is what cutting takes
        return [_cost(lambda: cut(drawn.bytes_per_s, drawn.first, drawn.last)) for _ in range(2)][1]

    costs: dict[str, list[Cost]] = {"cut": [], **{method: [] for method in _LIMITS}}
    with _peak_memory() as peak:
        for _ in range(rounds):
            costs["cut"].append(cutting())
            costs["iosi"].append(extract("iosi"))
        for method in ("warped", "robust"):
            costs["cut"].append(cutting())
            costs[method].append(extract(method))
        costs["cut"].append(cutting())
    return {
        "step_count": int(sets.samples.offsets[-1]),
        "wall_s": {name: [one.wall_s for one in known] for name, known in costs.items()},
        "cpu_s": {name: [one.cpu_s for one in known] for name, known in costs.items()},
        "extracted": extracted,
        "peak_bytes": peak(),
    }


def _growth(_: int) -> dict[str, Any]:
    """Measure in this process alone: processes take time to start, which would look like less than linear growth."""
    drawn = site()
    jobs = {
        method: [_grown(drawn, method, round(share * SETS), None) for share in shares]
        for method, shares in _SHARES.items()
    }
    del drawn
    lengths: dict[str, list[tuple[int, float]]] = {method: [] for method in _LIMITS}
    for length in _LENGTHS:
        longer = site(JOBS // length, SETS // length, float(length))
        for method, set_count in _LENGTH_SETS.items():
            lengths[method].append(_grown(longer, method, set_count, length))
    return {"jobs": jobs, "lengths": lengths}


def _grown(drawn: Site, method: str, set_count: int, size: int | None) -> tuple[int, float]:
    """Return a size, of the number of jobs if none is given, and the processor time."""
    from iosig.estimates.signatures.parallel import extract_in_chunks
    from iosig.transforms.signatures.methods import SignatureParams

    sets = sample_sets(drawn, set_count)
    # imports and what is kept from call to call
    extract_in_chunks(sample_sets(drawn, 2), SignatureParams(), (method,), 1)
    began = time.process_time()
    extract_in_chunks(sets, SignatureParams(), (method,), 1)
    return (len(sets.duration_s) if size is None else size), time.process_time() - began


def _outliers(rounds: int) -> dict[str, Any]:
    from sklearn.neighbors import LocalOutlierFactor

    from iosig.transforms.signatures import left_out

    rng = np.random.default_rng(7)
    duration_s = rng.lognormal(7.0, 0.05, _LOF_SETS * _LOF_RUNS)
    volume_bytes = rng.lognormal(25.0, 0.3, _LOF_SETS * _LOF_RUNS)
    offsets = np.arange(_LOF_SETS + 1, dtype=np.int64) * _LOF_RUNS
    points = np.stack([duration_s / duration_s.mean(), volume_bytes / volume_bytes.mean()], axis=1)

    def ours() -> None:
        left_out.are_outliers(duration_s, volume_bytes, offsets)

    def peer() -> None:
        for begin in offsets[:_LOF_PEER_SETS].tolist():
            LocalOutlierFactor(n_neighbors=5).fit(points[begin : begin + _LOF_RUNS])

    ours(), peer()
    pairs = [(_wall_s(ours), _wall_s(peer) * _LOF_SETS / _LOF_PEER_SETS) for _ in range(2 * rounds + 1)]
    return {"ours_s": [pair[0] for pair in pairs], "peer_s": [pair[1] for pair in pairs]}


@dataclass(frozen=True, slots=True)
class Cost:
    """What something took: wall seconds, and processor seconds of this process and of those that it has ended."""

    wall_s: float
    cpu_s: float


def _cost(measured: Callable[[], object]) -> Cost:
    began_s, wall_s = _cpu_s(), _wall_s(measured)
    return Cost(wall_s, _cpu_s() - began_s)


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _wall_s(measured: Callable[[], object]) -> float:
    began = time.perf_counter()
    measured()
    return time.perf_counter() - began


@contextmanager
def _peak_memory() -> Iterator[Callable[[], int]]:
    """Watch the resident memory of this process and its children, all added up: what they share counts twice."""
    peak = 0
    is_over = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not is_over.wait(0.05):
            peak = max(peak, sum(_resident_bytes(process) for process in _family()))

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield lambda: peak
    finally:
        is_over.set()
        watching.join()


def _family() -> list[int]:
    """Return this process and its children, which its threads have started."""
    found = [os.getpid()]
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, path.read_text().split())
    return found


def _resident_bytes(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


if __name__ == "__main__":
    print(json.dumps({"scale": _scale, "growth": _growth, "outliers": _outliers}[sys.argv[1]](int(sys.argv[2]))))

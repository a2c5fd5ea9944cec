"""How long methods take, by the number of samples and by their length: IOSI's Figure 19."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
import polars as pl

from iosig.studies.signatures.sites import SiteSetting, seed_of
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.synthetic.workload import Application, bursts

#: IOSI, section 6.3: about 2000 points a sample, 8 samples
SAMPLE_COUNTS = (2, 4, 6, 8, 10, 12)
POINT_COUNTS = (500, 1000, 2000, 3000, 4000)
_POINTS, _SAMPLES = 2000, 8
#: turns of each method, and how long one takes if a call is shorter; the median of all calls is kept
ROUNDS = 5
TURN_S = 0.05
#: of the runs that are drawn, enough come to their end
_DRAWN_RUNS = 24

SCHEMA = {"by": pl.String, "value": pl.Int64, "method": pl.String, "seconds": pl.Float64}


@dataclass(frozen=True, slots=True)
class Timed:
    """One method by itself: without a least number of samples, and without the search for outliers."""

    name: str
    extract: Callable[[SampleSet], Signature]


def methods() -> tuple[Timed, ...]:
    """Return the methods that are timed."""
    from iosig.transforms.signatures.iosi import extract_iosi
    from iosig.transforms.signatures.robust import extract_robust
    from iosig.transforms.signatures.time_warping import extract_dtw

    return (
        Timed("robust", extract_robust),
        Timed("iosi", lambda one: extract_iosi([one])[0]),
        Timed("dtw", extract_dtw),
    )


def timed(seed: int, chosen: Sequence[Timed] | None = None, rounds: int = ROUNDS) -> pl.DataFrame:
    """Return the median time of each method, by samples and by points: columns as `SCHEMA`.

    The methods take turns in one process: what slows the machine for a while slows all of them.
    """
    asked = methods() if chosen is None else chosen
    rows = [
        {"by": by, "value": value, "method": method, "seconds": seconds}
        for by, value, one in _sets(seed)
        for method, seconds in _measured(one, asked, rounds)
    ]
    return pl.DataFrame(rows, SCHEMA)


def _measured(one: SampleSet, asked: Sequence[Timed], rounds: int) -> Iterator[tuple[str, float]]:
    # the first call imports and warms up; the second one says how many fit into a turn
    turns = [_calls(method, one, 2)[1] for method in asked]
    times: dict[str, list[float]] = {method.name: [] for method in asked}
    for _ in range(rounds):
        for method, once_s in zip(asked, turns, strict=True):
            times[method.name] += _calls(method, one, max(1, int(TURN_S / once_s)))
    yield from ((name, median(found)) for name, found in times.items())


def _calls(method: Timed, one: SampleSet, count: int) -> list[float]:
    found = []
    for _ in range(count):
        began = perf_counter()
        method.extract(one)
        found.append(perf_counter() - began)
    return found


def _sets(seed: int) -> Iterator[tuple[str, int, SampleSet]]:
    """Yield the sets: by `samples` or `points`, the number of them, and the set."""
    longest = drawn_set(_POINTS, seed)
    for count in SAMPLE_COUNTS:
        yield "samples", count, _first(longest, count)
    for count in POINT_COUNTS:
        yield "points", count, _first(drawn_set(count, seed), _SAMPLES)


def drawn_set(duration_s: int, seed: int) -> SampleSet:
    """Return whole runs of an application with as many seconds, a burst every 250 s, on a calm site."""
    volumes = [64.0] * (duration_s // 250)
    application = Application(
        "timed", "ana", "prj101", 16, float(duration_s), bursts(100, 250, volumes, [2.7], "write"), _DRAWN_RUNS
    )
    days = max(1.0, 2.0 * _DRAWN_RUNS * duration_s / 86400.0)
    one = SiteSetting(days=days, applications=(application,)).drawn(seed_of(seed, 0)).sets.get_set(0)
    return one.select_runs(one.duration_s > 0.95 * duration_s)


def _first(one: SampleSet, count: int) -> SampleSet:
    return one.select_runs(np.arange(one.run_count) < count)


def growth(times: pl.DataFrame) -> dict[str, float]:
    """Return each method's exponent: by what power of the length its time grows."""
    by_points = times.filter(by="points")
    found = {}
    for name in by_points["method"].unique(maintain_order=True).to_list():
        rows = by_points.filter(method=name)
        found[name] = float(np.polyfit(np.log(rows["value"].to_numpy()), np.log(rows["seconds"].to_numpy()), 1)[0])
    return found

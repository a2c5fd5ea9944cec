"""Measure the processor time of the methods by number and length of samples, as in IOSI's Figure 19."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from statistics import median
from time import process_time

import numpy as np
import polars as pl

from iosig.studies.signatures.sites import SiteSetting, derive_seed
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.synthetic.workload import Application, bursts

#: numbers of samples and of points per sample; while one varies, the other is as in IOSI, section 6.3 (about 2000
#: points per sample, 8 samples)
SAMPLE_COUNTS = (2, 4, 6, 8, 10, 12)
POINT_COUNTS = (500, 1000, 2000, 3000, 4000)
_POINTS, _SAMPLES = 2000, 8
#: number of turns of each method, and minimum duration of a turn [s], which repeats shorter calls
ROUNDS = 5
TURN_S = 0.05
#: number of drawn runs, so that enough of them are complete
_DRAWN_RUNS = 24

SCHEMA = {"by": pl.String, "value": pl.Int64, "method": pl.String, "seconds": pl.Float64}


#: extracts the signature of any number of samples, without selecting outliers
Extract = Callable[[SampleSet], Signature]


def get_methods() -> dict[str, Extract]:
    """Return the methods compared in Figure 19, and `robust`, by name."""
    from iosig.transforms.signatures.iosi import IosiParams, extract_iosi
    from iosig.transforms.signatures.robust import extract_robust
    from iosig.transforms.signatures.time_warping import extract_dtw

    return {
        "robust": extract_robust,
        "iosi": lambda sample_set: extract_iosi([sample_set])[0],
        "iosi_filtered": lambda sample_set: extract_iosi([sample_set], IosiParams().add_filters())[0],
        "dtw": extract_dtw,
    }


def measure_times(seed: int, selected: Mapping[str, Extract] | None = None, rounds: int = ROUNDS) -> pl.DataFrame:
    """Measure the median processor time of each method by samples and points: columns as in `SCHEMA`.

    The methods alternate in one process, so that temporary load, which also slows processors, affects all of them.
    """
    methods = get_methods() if selected is None else selected
    rows = [
        {"by": by, "value": value, "method": method, "seconds": seconds}
        for by, value, samples in _iterate_samples(seed)
        for method, seconds in _measure(samples, methods, rounds)
    ]
    return pl.DataFrame(rows, SCHEMA)


def _measure(samples: SampleSet, methods: Mapping[str, Extract], rounds: int) -> Iterator[tuple[str, float]]:
    # the first call warms up; the second gives the number of calls per turn
    once_s = {name: _time_calls(extract, samples, 2)[1] for name, extract in methods.items()}
    times: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(rounds):
        for name, extract in methods.items():
            times[name] += _time_calls(extract, samples, max(1, int(TURN_S / once_s[name])))
    yield from ((name, median(durations_s)) for name, durations_s in times.items())


def _time_calls(extract: Extract, samples: SampleSet, count: int) -> list[float]:
    durations_s = []
    for _ in range(count):
        start_s = process_time()
        extract(samples)
        durations_s.append(process_time() - start_s)
    return durations_s


def _iterate_samples(seed: int) -> Iterator[tuple[str, int, SampleSet]]:
    """Yield `samples` or `points`, their number, and the sample set."""
    longest = draw_samples(_POINTS, seed)
    for count in SAMPLE_COUNTS:
        yield "samples", count, _take_runs(longest, count)
    for count in POINT_COUNTS:
        yield "points", count, _take_runs(draw_samples(count, seed), _SAMPLES)


def draw_samples(duration_s: int, seed: int) -> SampleSet:
    """Draw complete runs of an application of this duration, with a burst every 250 s, on a calm site."""
    volumes = [64.0] * (duration_s // 250)
    application = Application(
        "timed", "ana", "prj101", 16, float(duration_s), bursts(100, 250, volumes, [2.7], "write"), _DRAWN_RUNS
    )
    days = max(1.0, 2.0 * _DRAWN_RUNS * duration_s / 86400.0)
    samples = SiteSetting(days=days, applications=(application,)).draw(derive_seed(seed, 0)).sets.get_set(0)
    return samples.select_runs(samples.duration_s > 0.95 * duration_s)


def _take_runs(samples: SampleSet, count: int) -> SampleSet:
    return samples.select_runs(np.arange(samples.run_count) < count)


def fit_growth(times: pl.DataFrame) -> dict[str, float]:
    """Fit the exponent of each method's time as a power of the sample length."""
    by_points = times.filter(by="points")
    exponents = {}
    for name in by_points["method"].unique(maintain_order=True).to_list():
        rows = by_points.filter(method=name)
        exponents[name] = float(np.polyfit(np.log(rows["value"].to_numpy()), np.log(rows["seconds"].to_numpy()), 1)[0])
    return exponents

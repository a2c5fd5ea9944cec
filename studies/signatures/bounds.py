"""What is lost before any noise: runs do not compute equally long, and how long a run alone would is in no sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from iosig.studies.signatures.sites import STUDIED, seed_of
from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.similarity import correlation, cross_correlation
from iosig.transforms.synthetic.site import signature
from iosig.transforms.synthetic.workload import DAY_S, END, START, Application, Workload, make_plans

#: sets of runs that are drawn of each application
DRAWS = 100
#: what would be said if each run's computing were known exactly: its mean, or that of the shortest run
KNOWN = ("known, mean", "known, shortest")
SCHEMA = {
    "value": pl.Float64,
    "application": pl.String,
    "method": pl.String,
    "mean_cross_correlation": pl.Float64,
    "mean_correlation": pl.Float64,
}


def bounds(drifts: Sequence[float], seed: int, draws: int = DRAWS) -> pl.DataFrame:
    """Return how near signatures come to the truth that know all runs without noise: columns as `SCHEMA`.

    The mean of ten runs' computing is the best estimate of the application's own; the shortest run is what IOSI's
    duration correction takes (section 5.1).
    """
    rows = [row for drift in drifts for application in STUDIED for row in _rows(application, drift, seed, draws)]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def _rows(
    application: Application, drift: float, seed: int, draws: int
) -> Iterator[tuple[float, str, str, float, float]]:
    truth = signature(application, "write")
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in KNOWN}
    for number in range(draws):
        waits = drawn_waits(application, drift, seed_of(seed, number))
        for name, chosen in zip(KNOWN, (waits.mean(axis=0), waits[waits.sum(axis=1).argmin()]), strict=True):
            curve = signature(with_waits(application, chosen), "write")
            found[name].append((cross_correlation(curve, truth), correlation(curve, truth)))
    for name, values in found.items():
        across, as_they_lie = np.mean(values, axis=0)
        yield drift, application.name, name, float(across), float(as_they_lie)


def drawn_waits(application: Application, drift: float, seed: int) -> Reals:
    """Return the time that each of an application's whole runs computes before each burst, and after the last one."""
    workload = Workload(seed, DAY_S, 0.0, drift, 0.0, 0.0)
    runs = []
    for plan in make_plans([application], workload):
        ((_, pieces),) = plan.parts
        waits = np.zeros(len(application.bursts) + 1)
        for piece in pieces:
            if piece.burst != START:
                waits[-1 if piece.burst == END else piece.burst] += piece.wait_s
        runs.append(waits)
    return np.array(runs)


def with_waits(application: Application, waits_s: Reals) -> Application:
    """Return the application with other times of computing; its bursts are as they were."""
    moved, now = [], 0.0
    for wait, burst in zip(waits_s, application.bursts, strict=False):
        moved.append(replace(burst, offset_s=now + float(wait)))
        now = moved[-1].end_s
    return replace(application, bursts=tuple(moved), duration_s=now + float(waits_s[-1]))

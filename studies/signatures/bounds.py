"""Compute accuracy limits without noise, which are due to the variation of computing times between runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from iosig.studies.signatures.sites import STUDIED, derive_seed
from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.similarity import correlation, cross_correlation
from iosig.transforms.synthetic.site import signature
from iosig.transforms.synthetic.workload import DAY_S, END, START, Application, Workload, make_plans

#: number of random sets of runs per application
DRAWS = 100
#: estimators that know each run's computing times: the mean, or the shortest run
KNOWN = ("known, mean", "known, shortest")
SCHEMA = {
    "value": pl.Float64,
    "application": pl.String,
    "method": pl.String,
    "mean_cross_correlation": pl.Float64,
    "mean_correlation": pl.Float64,
}


def compute_bounds(drifts: Sequence[float], seed: int, draws: int = DRAWS) -> pl.DataFrame:
    """Score signatures from noise-free knowledge of all runs; columns as in `SCHEMA`.

    The mean computing time of ten runs is the best estimate of the application's computing time. IOSI's duration
    correction uses the shortest run (section 5.1).
    """
    rows = [row for drift in drifts for application in STUDIED for row in _rows(application, drift, seed, draws)]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def _rows(
    application: Application, drift: float, seed: int, draws: int
) -> Iterator[tuple[float, str, str, float, float]]:
    truth = signature(application, "write")
    scores: dict[str, list[tuple[float, float]]] = {name: [] for name in KNOWN}
    for number in range(draws):
        waits = draw_waits(application, drift, derive_seed(seed, number))
        for name, mean_waits in zip(KNOWN, (waits.mean(axis=0), waits[waits.sum(axis=1).argmin()]), strict=True):
            curve = signature(replace_waits(application, mean_waits), "write")
            scores[name].append((cross_correlation(curve, truth), correlation(curve, truth)))
    for name, values in scores.items():
        mean_cross_correlation, mean_correlation = np.mean(values, axis=0)
        yield drift, application.name, name, float(mean_cross_correlation), float(mean_correlation)


def draw_waits(application: Application, drift: float, seed: int) -> Reals:
    """Return the computing times of an application's complete runs, before each burst and after the last one."""
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


def replace_waits(application: Application, waits_s: Reals) -> Application:
    """Return the application with compute times `waits_s` and unchanged bursts."""
    shifted, now = [], 0.0
    for wait, burst in zip(waits_s, application.bursts, strict=False):
        shifted.append(replace(burst, offset_s=now + float(wait)))
        now = shifted[-1].end_s
    return replace(application, bursts=tuple(shifted), duration_s=now + float(waits_s[-1]))

"""Simulate workloads under every policy, and keep one row per run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product

import numpy as np
import polars as pl

from iosig.studies.scheduling.observed_periods import ObservedPeriods
from iosig.studies.scheduling.simulation import (
    BANDWIDTH_BYTES_PER_S,
    Clairvoyant,
    Fair,
    JobMix,
    MeanGap,
    Policy,
    Set10,
    WithError,
    compute_ideal_periods,
    draw_figure_17,
    draw_mixed_jobs,
    simulate,
    summarize_outcome,
)
from iosig.studies.study import SeedParams
from iosig.studies.work_items import ReportProgress, ignore_progress, map_work_items

#: jobs of a mixed workload
MIXED_JOBS = 40
#: duration of each of these jobs, extended to two periods if it would be shorter [s]
MIXED_S = 2000.0
#: independent random streams
_WORKLOAD, _ERROR = range(2)

#: makes a policy for a workload; errors are drawn from the generator
Maker = Callable[[JobMix, np.random.Generator], Policy]

#: policies by name, as FTIO's Figure 17 has them, and one more that needs no spectrum
POLICIES: dict[str, tuple[str, Maker]] = {
    "original": ("no scheduling: concurrent I/O shares the bandwidth fairly", lambda workload, generator: Fair()),
    "clairvoyant": (
        "Set-10, periods in isolation known in advance",
        lambda workload, generator: Set10(Clairvoyant(compute_ideal_periods(workload, BANDWIDTH_BYTES_PER_S))),
    ),
    "predicted": (
        "Set-10, periods predicted online by the transform of the observed rate",
        lambda workload, generator: Set10(ObservedPeriods()),
    ),
    "error": (
        "the same, each period 50 % too long or too short",
        lambda workload, generator: Set10(WithError(ObservedPeriods(), generator)),
    ),
    "mean gap": (
        "Set-10, the mean time between the starts of phases so far",
        lambda workload, generator: Set10(MeanGap()),
    ),
}
WORKLOADS = {
    "figure 17": "1 job with a period of 19.2 s, 15 with 384 s; I/O takes 6.25 % of each period alone",
    "mixed": f"{MIXED_JOBS} jobs with periods from 10 s to 10,000 s, 1 to 256 nodes; together all of the bandwidth",
}
#: number of draws of each workload, and seeds
StudyParams = SeedParams


@dataclass(frozen=True, slots=True)
class Results:
    """Measures per simulated run: workload, policy, seed, stretch, io_slowdown and utilization.

    Stretch and I/O slowdown are geometric means over jobs.
    """

    params: StudyParams
    runs: pl.DataFrame


def study(params: StudyParams, report_progress: ReportProgress = ignore_progress) -> Results:
    """Simulate every workload under every policy; the same seed gives the same results."""
    runs = [partial(_run, *combination) for combination in product(WORKLOADS, params.seeds, POLICIES)]
    return Results(params, pl.DataFrame(map_work_items(lambda run: run(), runs, 1, report_progress)))


def _run(workload: str, seed: int, policy: str) -> dict[str, object]:
    generator = np.random.default_rng([seed, _WORKLOAD])
    jobs = (
        draw_figure_17(generator)
        if workload == "figure 17"
        else draw_mixed_jobs(generator, MIXED_JOBS, duration_s=MIXED_S)
    )
    _, make_policy = POLICIES[policy]
    run_policy = make_policy(jobs, np.random.default_rng([seed, _ERROR]))
    outcome = simulate(jobs, BANDWIDTH_BYTES_PER_S, run_policy)
    return {"workload": workload, "policy": policy, "seed": seed, **asdict(summarize_outcome(outcome))}


def summary(results: Results) -> pl.DataFrame:
    """Compute medians by workload and policy, and relative to the original and the clairvoyant policy.

    Columns: workload, policy, stretch, io_slowdown, utilization (medians over seeds); stretch_over_clairvoyant and
    io_slowdown_over_original: medians of the ratios within each seed.
    """
    runs = results.runs
    keys = ["workload", "seed"]
    base = runs.filter(pl.col("policy") == "original").select(*keys, original="io_slowdown")
    best = runs.filter(pl.col("policy") == "clairvoyant").select(*keys, clairvoyant="stretch")
    return (
        runs.join(base, on=keys)
        .join(best, on=keys)
        .group_by("workload", "policy", maintain_order=True)
        .agg(
            pl.col("stretch", "io_slowdown", "utilization").median(),
            stretch_over_clairvoyant=(pl.col("stretch") / pl.col("clairvoyant")).median(),
            io_slowdown_over_original=(pl.col("io_slowdown") / pl.col("original")).median(),
        )
        .sort(
            pl.col("workload").replace_strict(list(WORKLOADS), range(len(WORKLOADS))),
            pl.col("policy").replace_strict(list(POLICIES), range(len(POLICIES))),
        )
    )

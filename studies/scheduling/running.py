"""Simulate workloads under every policy, and keep one row per run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np
import polars as pl

from iosig.studies.scheduling.simulation import (
    BANDWIDTH_BYTES_PER_S,
    Clairvoyant,
    Fair,
    JobMix,
    MeanGap,
    Policy,
    PredictedPeriods,
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
from iosig.transforms.predictions.predictor import OnlineParams

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
        "Set-10, periods of iosig's predictor with its defaults",
        lambda workload, generator: Set10(PredictedPeriods()),
    ),
    "dft": (
        "Set-10, periods of iosig's predictor with FTIO's method",
        lambda workload, generator: Set10(PredictedPeriods(OnlineParams(method="dft"))),
    ),
    "error": (
        "as `dft`, each period 50 % too long or too short",
        lambda workload, generator: Set10(WithError(PredictedPeriods(OnlineParams(method="dft")), generator)),
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
    runs = list(product(WORKLOADS, params.seeds, POLICIES))
    return Results(params, pl.DataFrame(map_work_items(_run, runs, params.worker_count, report_progress)))


def _run(item: tuple[str, int, str]) -> dict[str, object]:
    workload, seed, policy = item
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


#: the measures of a run
MEASURES = ("stretch", "io_slowdown", "utilization")


def summary(results: Results) -> pl.DataFrame:
    """Compute medians by workload and policy, and relative to the original and the clairvoyant policy.

    Columns: workload, policy, and of each measure its median over seeds, and the median of its ratios within each seed
    to that of two policies: `<measure>_over_original`, `<measure>_over_clairvoyant`.
    """
    ratios = [_divide_by(results.runs, policy) for policy in ("original", "clairvoyant")]
    medians = results.runs.group_by("workload", "policy", maintain_order=True).agg(pl.col(MEASURES).median())
    for frame in ratios:
        medians = medians.join(frame, on=["workload", "policy"])
    return medians.sort(
        pl.col("workload").replace_strict(list(WORKLOADS), range(len(WORKLOADS))),
        pl.col("policy").replace_strict(list(POLICIES), range(len(POLICIES))),
    )


def _divide_by(runs: pl.DataFrame, policy: str) -> pl.DataFrame:
    """Return the median ratio of each measure to that of a policy, by workload and policy."""
    reference = runs.filter(policy=policy).select("workload", "seed", *MEASURES)
    joined = runs.join(reference, on=["workload", "seed"], suffix="_reference")
    return joined.group_by("workload", "policy", maintain_order=True).agg(
        (pl.col(name) / pl.col(f"{name}_reference")).median().alias(f"{name}_over_{policy}") for name in MEASURES
    )


def measure(results: Results) -> dict[str, dict[str, float]]:
    """Measure what FTIO's section IV states, on its workload: named ratios by pair of policies, minus one."""
    runs = results.runs.filter(workload="figure 17")
    policies = ("predicted", "dft", "error")
    return {
        f"{policy}_over_{reference}": _divide_by(runs, reference)
        .filter(policy=policy)
        .select(pl.selectors.numeric() - 1.0)
        .rename(lambda name: name.partition("_over_")[0])
        .row(0, named=True)
        for policy in policies
        for reference in ("original", "clairvoyant", "dft")
        if policy != reference
    }

"""Compute the template variables and figures of the page `docs/scheduling-study.md`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from iosig.reports import panels, style
from iosig.reports.panels import picture
from iosig.studies.drawing import add_headline
from iosig.studies.pages import Draw
from iosig.studies.scheduling.running import POLICIES, WORKLOADS, Results, measure, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: title of each measure
_MEASURES = {
    "stretch": "Stretch (lower is better)",
    "io_slowdown": "I/O slowdown (lower is better)",
    "utilization": "Utilization (higher is better)",
}


def values(results: Results) -> dict[str, object]:
    """Compute the variables of the template `page.md`."""
    return {"params": results.params, "POLICIES": POLICIES, "WORKLOADS": WORKLOADS, "summary": summary(results)}


def measures(results: Results) -> Mapping[str, Mapping[str, object]]:
    """Measure what FTIO's section IV states, for the page that compares the papers."""
    return measure(results)


def figures(results: Results) -> dict[str, Draw]:
    """Map each figure name in `page.md` to its drawing function."""
    return {"runs": draw_runs(results.runs).write}


# ---- the figure, as FTIO's Figure 17


@picture(lambda runs: (11.0, 3.4 * runs["workload"].n_unique()))
def draw_runs(figure: Figure, runs: pl.DataFrame) -> None:
    """Box plots over the seeds by measure, workload and policy.

    runs: workload, policy, seed, stretch, io_slowdown, utilization.
    """
    workloads, policies = (panels.in_order(runs, column) for column in ("workload", "policy"))
    grid = figure.subplots(len(workloads), len(_MEASURES), squeeze=False)
    for row, workload in zip(grid, workloads, strict=True):
        of_workload = runs.filter(workload=workload)
        for axes, name in zip(row, _MEASURES, strict=True):
            values = [of_workload.filter(policy=policy)[name].to_numpy() for policy in policies]
            axes.boxplot(values, widths=0.6, medianprops={"color": style.VERMILION})
            axes.set_xticks(range(1, len(policies) + 1), policies, rotation=25, ha="right", fontsize=8)
        row[0].set_ylabel(workload)
    for axes, title in zip(grid[0], _MEASURES.values(), strict=True):
        axes.set_title(title)
    add_headline(figure, _describe_stretch(runs, workloads[0]))
    figure.tight_layout(rect=(0.0, 0.0, 1.0, 0.98))


def _describe_stretch(runs: pl.DataFrame, workload: str) -> str:
    """Describe the median stretch with original, predicted and known periods on a workload."""
    medians = runs.filter(pl.col("workload") == workload).group_by("policy").agg(pl.col("stretch").median())
    stretch = dict(medians.iter_rows())
    return (
        f"Workload {workload}: jobs take {stretch['original']:.2f} times as long as alone, "
        f"{stretch['predicted']:.2f} times with predicted periods, {stretch['clairvoyant']:.2f} times with known "
        "periods"
    )

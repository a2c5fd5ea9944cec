"""What the study of scheduling shows: the values of its page (`page.md`), and its figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from iosig.reports import panels, style
from iosig.reports.panels import picture
from iosig.studies.drawing import headline
from iosig.studies.pages import Draw
from iosig.studies.scheduling.running import POLICIES, WORKLOADS, Results, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: measures and what is better
_MEASURES = {
    "stretch": "Stretch (lower is better)",
    "io_slowdown": "I/O slowdown (lower is better)",
    "utilization": "Utilization (higher is better)",
}


def values(results: Results) -> dict[str, object]:
    """Return what the page is made of."""
    return {"params": results.params, "POLICIES": POLICIES, "WORKLOADS": WORKLOADS, "summary": summary(results)}


def figures(results: Results) -> dict[str, Draw]:
    """Return what draws each figure of the page."""
    return {"runs": draw_runs(results.runs).write}


# ---- the figure, as FTIO's Figure 17


@picture(lambda runs: (11.0, 3.4 * runs["workload"].n_unique()))
def draw_runs(figure: Figure, runs: pl.DataFrame) -> None:
    """Draw boxes over the seeds of each measure, workload and policy, in the order in which these come.

    runs: workload, policy, seed, stretch, io_slowdown, utilization.
    """
    workloads, policies = (panels.in_order(runs, column) for column in ("workload", "policy"))
    grid = figure.subplots(len(workloads), len(_MEASURES), squeeze=False)
    for row, workload in zip(grid, workloads, strict=True):
        of_workload = runs.filter(workload=workload)
        for axes, measure in zip(row, _MEASURES, strict=True):
            values = [of_workload.filter(policy=policy)[measure].to_numpy() for policy in policies]
            axes.boxplot(values, widths=0.6, medianprops={"color": style.VERMILION})
            axes.set_xticks(range(1, len(policies) + 1), policies, rotation=25, ha="right", fontsize=8)
        row[0].set_ylabel(workload)
    for axes, title in zip(grid[0], _MEASURES.values(), strict=True):
        axes.set_title(title)
    headline(figure, _finding(runs, workloads[0]))
    figure.tight_layout(rect=(0.0, 0.0, 1.0, 0.98))


def _finding(runs: pl.DataFrame, workload: str) -> str:
    """Return what predicted periods are worth on a workload, in the median of its draws."""
    found = runs.filter(pl.col("workload") == workload).group_by("policy").agg(pl.col("stretch").median())
    stretch = dict(found.iter_rows())
    return (
        f"Workload {workload}: jobs take {stretch['original']:.2f} times as long as alone, "
        f"{stretch['predicted']:.2f} times where their periods are predicted, {stretch['clairvoyant']:.2f} times where "
        "they are known"
    )

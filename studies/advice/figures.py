"""Figures of the advice study: contended bytes by policy, and their sensitivity to errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from iosig.reports import panels, style
from iosig.reports.panels import picture
from iosig.studies.drawing import add_headline, add_legend_below
from iosig.studies.pages import format_percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: column and title of each measure
_MEASURES = {
    "contended_ratio": "Contended bytes / own bytes",
    "io_slowdown": "I/O slowdown",
    "others_slowdown": "Others' I/O slowdown",
}
#: markers and colors of policies, distinguishable without color
_MARKS = (
    ("o", style.GRAY),
    ("s", style.INK),
    ("D", style.SKY),
    ("v", style.ORANGE),
    ("^", style.BLUE),
    ("*", style.VERMILION),
    ("P", style.GREEN),
)
#: upper limit of the axis of ratios to the rival; larger ratios are clipped
_MAX_RATIO_TO_RIVAL = 1.25
#: name of the policy that knows the future, which is an upper bound
_ORACLE = "oracle"


@picture((11.0, 3.6))
def draw_policies(figure: Figure, runs: pl.DataFrame) -> None:
    """Draw box plots of each measure by policy, with whiskers at 5 and 95 %, and dots at the mean.

    runs: policy, contended_ratio, io_slowdown, others_slowdown; one setting.
    """
    policies = panels.in_order(runs, "policy")
    for axes, (measure, title) in zip(figure.subplots(1, len(_MEASURES), sharey=True), _MEASURES.items(), strict=True):
        values = [runs.filter(pl.col("policy") == policy)[measure].to_numpy() for policy in policies]
        axes.boxplot(
            values,
            orientation="horizontal",
            widths=0.6,
            whis=(5, 95),
            showfliers=False,
            showmeans=True,
            medianprops={"color": style.VERMILION},
            meanprops={"marker": "o", "markerfacecolor": style.BLUE, "markeredgecolor": style.BLUE, "markersize": 4},
        )
        axes.set_title(title)
        axes.set_yticks(range(1, len(policies) + 1), policies)
    # the panels share the axis, so invert it once, with the first policy at the top
    axes.invert_yaxis()
    add_headline(figure, _describe_costs(runs))
    figure.tight_layout()


def _describe_costs(runs: pl.DataFrame) -> str:
    """Describe the policies with the lowest and highest fraction of contended bytes, without the oracle."""
    means = (
        runs.filter(~pl.col("policy").str.starts_with(_ORACLE)).group_by("policy").agg(pl.col("contended_ratio").mean())
    )
    ordered = means.sort("contended_ratio", "policy")
    (best, low), (worst, high) = ordered.row(0), ordered.row(-1)
    return f"Contended share of bytes: {format_percent(low)} with {best}, {format_percent(high)} with {worst}"


@picture(lambda compared, settings, policies: (11.0, 1.6 + 0.32 * len(settings)))
def draw_settings(figure: Figure, compared: pl.DataFrame, settings: Sequence[str], policies: Sequence[str]) -> None:
    """Plot each policy's contended bytes relative to the rival, and its wins minus losses, by setting.

    compared: setting, policy, to_rival, wins, losses.
    """
    left, right = figure.subplots(1, 2, sharey=True)
    for (mark, color), policy in zip(_MARKS, policies, strict=False):
        policy_rows = compared.filter(pl.col("policy") == policy)
        rows = {row["setting"]: row for row in policy_rows.iter_rows(named=True)}
        places = [place for place, setting in enumerate(settings) if setting in rows]
        chosen_rows = [rows[settings[place]] for place in places]
        marks = {"marker": mark, "color": color, "linestyle": "none", "label": policy, "clip_on": False}
        left.plot([min(row["to_rival"], _MAX_RATIO_TO_RIVAL) for row in chosen_rows], places, **marks)
        right.plot([row["wins"] - row["losses"] for row in chosen_rows], places, **marks)
    left.axvline(1.0, color=style.GRAY, linewidth=1)
    left.set_xlim(0.0, _MAX_RATIO_TO_RIVAL)
    left.set_title("Contended bytes relative to least loaded")
    right.axvline(0.0, color=style.GRAY, linewidth=1)
    right.set_title("Mixes won minus mixes lost against least loaded")
    left.set_yticks(range(len(settings)), settings)
    left.invert_yaxis()
    add_headline(figure, _describe_worst_case(compared, len(settings)))
    add_legend_below(figure, top=0.93)


def _describe_worst_case(compared: pl.DataFrame, setting_count: int) -> str:
    """Describe the worst setting of the policy with the best mean, without the oracle."""
    groups = compared.filter(~pl.col("policy").str.starts_with(_ORACLE)).group_by("policy")
    best = groups.agg(mean=pl.col("to_rival").mean(), worst=pl.col("to_rival").max(), count=pl.len())
    row = best.filter(pl.col("count") == setting_count).sort("mean", "policy").row(0, named=True)
    return (
        f"{row['policy']} has at most {row['worst']:.2f} times the contended bytes of the least loaded partition in "
        f"each of {setting_count} settings"
    )

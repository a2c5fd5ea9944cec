"""The figures of the study of advice: what each policy costs in contended bytes, and what errors do to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from iosig.reports import panels, style
from iosig.reports.panels import picture
from iosig.studies.drawing import headline, legend_below
from iosig.studies.pages import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: measures of a run by column, and how they are shown
_MEASURES = {
    "contended_ratio": "Contended / own bytes",
    "io_slowdown": "I/O slowdown",
    "others_slowdown": "Others' I/O slowdown",
}
#: marks of policies, which are told apart without colours too
_MARKS = (
    ("o", style.GREY),
    ("s", style.INK),
    ("D", style.SKY),
    ("v", style.ORANGE),
    ("^", style.BLUE),
    ("*", style.VERMILION),
    ("P", style.GREEN),
)
#: a policy whose mean is so many times the rival's, or more, is at the right edge of its panel
_MOST_TO_RIVAL = 1.25
#: knows what nobody can
_ORACLE = "oracle"


@picture((11.0, 3.6))
def draw_policies(figure: Figure, runs: pl.DataFrame) -> None:
    """Draw boxes over the mixes of each measure and policy, in the order in which these come; a dot is the mean.

    runs: policy, contended_ratio, io_slowdown, others_slowdown; of one setting.
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
    # of panels that share them, the first policy on top
    axes.invert_yaxis()
    headline(figure, _cheapest(runs))
    figure.tight_layout()


def _cheapest(runs: pl.DataFrame) -> str:
    """Return with which policies least and most of what is moved waits, leaving out the oracle."""
    means = (
        runs.filter(~pl.col("policy").str.starts_with(_ORACLE)).group_by("policy").agg(pl.col("contended_ratio").mean())
    )
    ordered = means.sort("contended_ratio", "policy")
    (least, low), (most, high) = ordered.row(0), ordered.row(-1)
    return f"Bytes that wait, of those that are moved: {percent(low)} by {least}, {percent(high)} by {most}"


@picture(lambda compared, settings, policies: (11.0, 1.6 + 0.32 * len(settings)))
def draw_settings(figure: Figure, compared: pl.DataFrame, settings: Sequence[str], policies: Sequence[str]) -> None:
    """Draw each policy's contended bytes over the rival's, and the mixes that it wins and loses, by setting.

    compared: setting, policy, to_rival, wins, losses.
    """
    left, right = figure.subplots(1, 2, sharey=True)
    for (mark, colour), policy in zip(_MARKS, policies, strict=False):
        of = compared.filter(pl.col("policy") == policy)
        rows = {row["setting"]: row for row in of.iter_rows(named=True)}
        places = [place for place, setting in enumerate(settings) if setting in rows]
        found = [rows[settings[place]] for place in places]
        marks = {"marker": mark, "color": colour, "linestyle": "none", "label": policy, "clip_on": False}
        left.plot([min(row["to_rival"], _MOST_TO_RIVAL) for row in found], places, **marks)
        right.plot([row["wins"] - row["losses"] for row in found], places, **marks)
    left.axvline(1.0, color=style.GREY, linewidth=1)
    left.set_xlim(0.0, _MOST_TO_RIVAL)
    left.set_title("Contended bytes / those of least loaded")
    right.axvline(0.0, color=style.GREY, linewidth=1)
    right.set_title("Mixes won less mixes lost to least loaded")
    left.set_yticks(range(len(settings)), settings)
    left.invert_yaxis()
    headline(figure, _worst(compared, len(settings)))
    legend_below(figure, top=0.93)


def _worst(compared: pl.DataFrame, setting_count: int) -> str:
    """Return how the policy that is best in the mean does where it does worst, but for the oracle."""
    found = compared.filter(~pl.col("policy").str.starts_with(_ORACLE)).group_by("policy")
    best = found.agg(mean=pl.col("to_rival").mean(), worst=pl.col("to_rival").max(), count=pl.len())
    row = best.filter(pl.col("count") == setting_count).sort("mean", "policy").row(0, named=True)
    return (
        f"{row['policy']} has {row['worst']:.2f} times the contended bytes of the least loaded partition, or less, in "
        f"each of {setting_count} settings"
    )

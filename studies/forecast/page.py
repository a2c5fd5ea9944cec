"""What the study of forecasts shows: the values of its page (`page.md`), and its figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from iosig.reports.panels import picture
from iosig.reports.style import GREY, HUES
from iosig.studies.drawing import MARKERS, headline, legend_below, row_of_panels
from iosig.studies.forecast.running import EVERY_S, Results, summed
from iosig.studies.forecast.told import HORIZON, PAST_DAYS, STEP_S
from iosig.studies.forecast.ways import WAYS
from iosig.studies.pages import Draw, by_name, percent
from iosig.studies.sites import FAMILIES, LEVELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OURS = "forecast"
_STEPS_PER_HOUR = 6
_NOMINAL = 0.8


def document(results: Results) -> dict[str, object]:
    """Return what JSON has of the results."""
    return {"sites": summed(results.steps, "way", "family", "level", "seed")}


def values(results: Results) -> dict[str, object]:
    """Return what the page is made of."""
    steps, ours = results.steps, results.steps.filter(way=_OURS)
    hours = steps.with_columns(hour=pl.col("step") // _STEPS_PER_HOUR + 1)
    held = [f"{percent(share)} ({level})" for level, share in summed(ours, "level").select("level", "held").rows()]
    return {
        **{"params": results.params, "WAYS": WAYS, "FAMILIES": FAMILIES, "LEVELS": LEVELS},
        **{"EVERY_S": EVERY_S, "HORIZON": HORIZON, "PAST_DAYS": PAST_DAYS, "STEP_S": STEP_S},
        "every": by_name(summed(steps, "way"), "way"),
        "first_hour": by_name(summed(steps.filter(pl.col("step") < _STEPS_PER_HOUR), "way"), "way"),
        "held_by_level": ", ".join(held),
        "ways": summed(steps, "level", "way"),
        "hours": summed(hours, "hour", "way").sort("hour", maintain_order=True),
        "families": summed(ours, "family", "level"),
        "instants": steps["at_s"].n_unique(),
    }


def figures(results: Results) -> dict[str, Draw]:
    """Return what draws each figure of the page."""
    return {"ranges": draw_ranges(summed(results.steps, "level", "way", "family", "seed")).write}


# ---- the figure


@picture((11.0, 4.2))
def draw_ranges(figure: Figure, sites: pl.DataFrame) -> None:
    """Draw each way of each level: how often what came was in the range, over how wide that is.

    sites: level, way, held, width; a mark is a site.
    """
    for axes, _, at_level in row_of_panels(figure, sites, "level"):
        for place, (name, rows) in enumerate(at_level.group_by("way", maintain_order=True)):
            marks = {"color": HUES[place], "ms": 5, "alpha": 0.85, "label": name[0]}
            axes.plot(rows["width"].to_numpy(), rows["held"].to_numpy(), MARKERS[place], **marks)
        axes.axhline(_NOMINAL, color=GREY, lw=0.8, ls="--")
        axes.set(ylim=(0, 1))
        axes.set_xlabel("width of the range, over the mean rate", fontsize=9)
    figure.axes[0].set_ylabel("in the range", fontsize=9)
    headline(figure, _finding(sites, sites["way"][0]))
    legend_below(figure)


def _finding(sites: pl.DataFrame, way: str) -> str:
    held = sites.filter(way=way).group_by("level", maintain_order=True).agg(pl.col("held").mean())
    shares = ", ".join(f"{100 * share:.0f} % ({level})" for level, share in held.iter_rows())
    return f"In the range of `{way}` meant to hold {100 * _NOMINAL:.0f} % came {shares}"

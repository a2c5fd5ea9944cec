"""Compute the template variables and figures of the page `docs/forecast-study.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from iosig.reports.panels import picture
from iosig.reports.style import GRAY, HUES
from iosig.studies.drawing import MARKERS, add_headline, add_legend_below, draw_panels
from iosig.studies.forecast.history import HORIZON, PAST_DAYS, STEP_S
from iosig.studies.forecast.running import INTERVAL_S, Results, summarize_steps
from iosig.studies.forecast.ways import WAYS
from iosig.studies.pages import Draw, index_rows
from iosig.studies.sites import FAMILIES, LEVELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OURS = "forecast"
_STEPS_PER_HOUR = 6
_NOMINAL = 0.8


def document(results: Results) -> dict[str, object]:
    """Return the results as the JSON document of `iosig study --json`."""
    return {"sites": summarize_steps(results.steps, "way", "family", "level", "seed")}


def values(results: Results) -> dict[str, object]:
    """Compute the variables of the template `page.md`."""
    steps, default_steps = results.steps, results.steps.filter(way=_OURS)
    hours = steps.with_columns(hour=pl.col("step") // _STEPS_PER_HOUR + 1)
    return {
        **{"params": results.params, "WAYS": WAYS, "FAMILIES": FAMILIES, "LEVELS": LEVELS},
        **{"INTERVAL_S": INTERVAL_S, "HORIZON": HORIZON, "PAST_DAYS": PAST_DAYS, "STEP_S": STEP_S},
        "every": index_rows(summarize_steps(steps, "way"), "way"),
        "first_hour": index_rows(summarize_steps(steps.filter(pl.col("step") < _STEPS_PER_HOUR), "way"), "way"),
        "levels": summarize_steps(default_steps, "level"),
        "ways": summarize_steps(steps, "level", "way"),
        "hours": summarize_steps(hours, "hour", "way").sort("hour", maintain_order=True),
        "families": summarize_steps(default_steps, "family", "level"),
        "instants": steps["at_s"].n_unique(),
    }


def figures(results: Results) -> dict[str, Draw]:
    """Map each figure name in `page.md` to its drawing function."""
    return {"ranges": draw_ranges(summarize_steps(results.steps, "level", "way", "family", "seed")).write}


# ---- the figure


@picture((11.0, 4.2))
def draw_ranges(figure: Figure, sites: pl.DataFrame) -> None:
    """Plot the coverage of the forecast interval against its width, by way and level.

    sites: level, way, held, width; one marker per site.
    """
    for axes, _, at_level in draw_panels(figure, sites, "level"):
        for place, (name, rows) in enumerate(at_level.group_by("way", maintain_order=True)):
            marks = {"color": HUES[place], "ms": 5, "alpha": 0.85, "label": name[0]}
            axes.plot(rows["width"].to_numpy(), rows["held"].to_numpy(), MARKERS[place], **marks)
        axes.axhline(_NOMINAL, color=GRAY, lw=0.8, ls="--")
        axes.set(ylim=(0, 1))
        axes.set_xlabel("width of the interval / mean rate", fontsize=9)
    figure.axes[0].set_ylabel("in the range", fontsize=9)
    add_headline(figure, _describe_coverage(sites, sites["way"][0]))
    add_legend_below(figure)


def _describe_coverage(sites: pl.DataFrame, way: str) -> str:
    coverage = sites.filter(way=way).group_by("level", maintain_order=True).agg(pl.col("held").mean())
    shares = ", ".join(f"{100 * share:.0f} % ({level})" for level, share in coverage.iter_rows())
    return f"Nominal interval of `{way}`: {100 * _NOMINAL:.0f} % came {shares}"

"""Compute the template variables and figures of the page `docs/attribution-study.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from iosig.reports import style
from iosig.reports.panels import picture
from iosig.studies.attribution import slowdowns
from iosig.studies.attribution.running import MIN_BYTES, MIN_BYTES_PER_S, Results
from iosig.studies.attribution.ways import LIKELY, WAYS
from iosig.studies.drawing import MARKERS, add_legend_below, draw_panels
from iosig.studies.pages import Draw
from iosig.studies.sites import DAYS, FAMILIES, LEVELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OURS = "attribution"
#: name of the family without interference
_FAIR = "fair"
_COLORS = (style.BLUE, style.SKY, style.GREEN, style.INK, style.PURPLE, style.ORANGE, style.VERMILION)


def document(results: Results) -> dict[str, object]:
    """Return the results as the JSON document of `iosig study --json`."""
    return {
        "sites": results.sites,
        "jobs": results.jobs,
        "slowed": slowdowns.summarize_slowdowns(results.bursts, "family", "level", "seed"),
    }


def values(results: Results) -> dict[str, object]:
    """Compute the variables of the template `page.md`."""
    scores = summarize_sites(results)
    by_family = slowdowns.summarize_slowdowns(results.bursts, "family")
    fair = by_family.filter(family=_FAIR)["slowed_count"].sum()
    return {
        **{"params": results.params, "WAYS": WAYS, "FAMILIES": FAMILIES, "LEVELS": LEVELS, "DAYS": DAYS},
        **{"LIKELY": LIKELY, "MIN_BYTES": MIN_BYTES, "MIN_BYTES_PER_S": MIN_BYTES_PER_S},
        **{"MIN_DELAY_S": slowdowns.MIN_DELAY_S, "CLEAR_DELAY_S": slowdowns.CLEAR_DELAY_S},
        "ways": scores,
        "minutes": ", ".join(f"{count:,}" for count in scores.filter(way=_OURS)["minute_count"]),
        "by_seed": _summarize_default(results, "seed"),
        "by_family": _summarize_default(results, "family"),
        "slowed": slowdowns.summarize_slowdowns(results.bursts.with_columns(all=pl.lit("all")), "all").row(
            0, named=True
        ),
        "hurt_by_level": slowdowns.summarize_slowdowns(results.bursts, "level"),
        "hurt_by_family": by_family,
        "fair_hurt_count": fair,
    }


def figures(results: Results) -> dict[str, Draw]:
    """Map each figure name in `page.md` to its drawing function."""
    return {"ways": draw_ways(summarize_sites(results, "family")).write}


def summarize_sites(results: Results, *names: str) -> pl.DataFrame:
    """Compute the scores by level, way and further keys: fractions explained and wrong, errors, and top-3 rates."""
    key = ["level", "way", *names]
    sums = pl.exclude("direction", *({"family", "seed"} - set(names)))
    sites = results.sites.select(*key, sums.exclude(key)).group_by(key, maintain_order=True).sum()
    attributed = pl.col("known_given_bytes") + pl.col("other_given_bytes")
    right = pl.col("known_right_bytes") + pl.col("other_right_bytes")
    error = (pl.col("given_bytes") / pl.col("moved_bytes") - 1).abs()
    errors = results.jobs.group_by(key).agg(error=error.median(), near=(error < 0.2).mean(), job_count=pl.len())
    return sites.select(
        *key,
        known=pl.col("known_bytes") / pl.col("measured_bytes"),
        logged=pl.col("job_bytes") / pl.col("measured_bytes"),
        explained=pl.col("known_right_bytes") / pl.col("known_bytes"),
        wrong=1 - right / attributed,
        known_top=pl.col("known_hits") / pl.col("known_asked"),
        top=pl.col("hits") / pl.col("asked"),
        minute_count=pl.col("asked").cast(pl.Int64),
    ).join(errors, on=key, how="left", maintain_order="left")


def _summarize_default(results: Results, name: str) -> pl.DataFrame:
    """Return the scores of the nightly attribution by level and another key, and the top-3 rate of `iosig who`."""
    rows = summarize_sites(results, name)
    likely = rows.filter(way=LIKELY).select("level", name, likely_top="top")
    return rows.filter(way=_OURS).join(likely, on=["level", name], how="left", maintain_order="left")


# ---- the figure


@picture((11.0, 3.9))
def draw_ways(figure: Figure, scores: pl.DataFrame) -> None:
    """Plot the fraction of known bytes explained against the fraction attributed wrongly, by way and level.

    scores: level, family, way, explained, wrong; one marker per family.
    """
    for axes, _, at_level in draw_panels(figure, scores, "level"):
        for place, (name, rows) in enumerate(at_level.group_by("way", maintain_order=True)):
            marks = {"color": _COLORS[place], "ms": 5, "alpha": 0.85, "label": name[0]}
            axes.plot(rows["wrong"].to_numpy(), rows["explained"].to_numpy(), MARKERS[place], **marks)
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set_xlabel("wrongly attributed share of attributed bytes", fontsize=9)
    figure.axes[0].set_ylabel("attributed share of known bytes", fontsize=9)
    add_legend_below(figure)

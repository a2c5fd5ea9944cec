"""What the study of attribution shows: the values of its page (`page.md`), and its figure."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from iosig.reports import style
from iosig.reports.panels import picture
from iosig.studies.attribution import hurting
from iosig.studies.attribution.running import LEAST_BYTES, LEAST_BYTES_PER_S, Results
from iosig.studies.attribution.ways import LIKELY, WAYS
from iosig.studies.drawing import MARKERS, legend_below, row_of_panels
from iosig.studies.pages import Draw, percent
from iosig.studies.sites import DAYS, FAMILIES, LEVELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OURS = "attribution"
#: the family in which other jobs cost nothing
_FAIR = "fair"
_COLOURS = (style.BLUE, style.SKY, style.GREEN, style.INK, style.PURPLE, style.ORANGE, style.VERMILION)


def document(results: Results) -> dict[str, object]:
    """Return what JSON has of the results."""
    return {
        "sites": results.sites,
        "jobs": results.jobs,
        "slowed": hurting.summed(results.bursts, "family", "level", "seed"),
    }


def values(results: Results) -> dict[str, object]:
    """Return what the page is made of."""
    ways = summed(results)
    by_family = hurting.summed(results.bursts, "family")
    fair = by_family.filter(family=_FAIR)["slowed_count"].sum()
    return {
        **{"params": results.params, "WAYS": WAYS, "FAMILIES": FAMILIES, "LEVELS": LEVELS, "DAYS": DAYS},
        **{"LIKELY": LIKELY, "LEAST_BYTES": LEAST_BYTES, "LEAST_BYTES_PER_S": LEAST_BYTES_PER_S},
        **{"HURT_S": hurting.HURT_S, "CLEAR_S": hurting.CLEAR_S},
        "ways": ways,
        "by_level": partial(_by_level, ways),
        "minutes": ", ".join(f"{count:,}" for count in ways.filter(way=_OURS)["minute_count"]),
        "by_seed": _ours(results, "seed"),
        "by_family": _ours(results, "family"),
        "slowed": hurting.summed(results.bursts.with_columns(all=pl.lit("all")), "all").row(0, named=True),
        "hurt_by_level": hurting.summed(results.bursts, "level"),
        "hurt_by_family": by_family,
        "fair_hurt_count": fair,
    }


def figures(results: Results) -> dict[str, Draw]:
    """Return what draws each figure of the page."""
    return {"ways": draw_ways(summed(results, "family")).write}


def summed(results: Results, *names: str) -> pl.DataFrame:
    """Return shares of all sites of each level and way, and of what else is named: explained, wrong, errors, tops."""
    key = ["level", "way", *names]
    sums = pl.exclude("direction", *({"family", "seed"} - set(names)))
    sites = results.sites.select(*key, sums.exclude(key)).group_by(key, maintain_order=True).sum()
    given = pl.col("known_given_bytes") + pl.col("other_given_bytes")
    right = pl.col("known_right_bytes") + pl.col("other_right_bytes")
    error = (pl.col("given_bytes") / pl.col("moved_bytes") - 1).abs()
    errors = results.jobs.group_by(key).agg(error=error.median(), near=(error < 0.2).mean(), job_count=pl.len())
    return sites.select(
        *key,
        known=pl.col("known_bytes") / pl.col("measured_bytes"),
        logged=pl.col("job_bytes") / pl.col("measured_bytes"),
        explained=pl.col("known_right_bytes") / pl.col("known_bytes"),
        wrong=1 - right / given,
        known_top=pl.col("known_hits") / pl.col("known_asked"),
        top=pl.col("hits") / pl.col("asked"),
        minute_count=pl.col("asked").cast(pl.Int64),
    ).join(errors, on=key, how="left", maintain_order="left")


def _ours(results: Results, name: str) -> pl.DataFrame:
    """Return what attribution comes to by level and a name, and whom `iosig who` has among the first three."""
    rows = summed(results, name)
    likely = rows.filter(way=LIKELY).select("level", name, likely_top="top")
    return rows.filter(way=_OURS).join(likely, on=["level", name], how="left", maintain_order="left")


def _by_level(ways: pl.DataFrame, column: str, way: str = _OURS) -> str:
    """Return a column of a way at each level, in percent."""
    return ", ".join(f"{percent(row[column])} ({row['level']})" for row in ways.filter(way=way).iter_rows(named=True))


# ---- the figure


@picture((11.0, 3.9))
def draw_ways(figure: Figure, ways: pl.DataFrame) -> None:
    """Draw each way of each level: the share of known bytes that it explains over that which it gives wrongly.

    ways: level, family, way, explained, wrong; a mark is a family's sites.
    """
    for axes, _, at_level in row_of_panels(figure, ways, "level"):
        for place, (name, rows) in enumerate(at_level.group_by("way", maintain_order=True)):
            marks = {"color": _COLOURS[place], "ms": 5, "alpha": 0.85, "label": name[0]}
            axes.plot(rows["wrong"].to_numpy(), rows["explained"].to_numpy(), MARKERS[place], **marks)
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set_xlabel("given wrongly, of all that is given", fontsize=9)
    figure.axes[0].set_ylabel("explained of known bytes", fontsize=9)
    legend_below(figure)

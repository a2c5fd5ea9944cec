"""What the study of unattributed traffic shows: the values of its page (`page.md`), and its figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.reports import panels, style
from iosig.reports.panels import picture
from iosig.studies.drawing import legend_below
from iosig.studies.pages import Draw, percent
from iosig.studies.unattributed.planted import DAYS, LEAST_APPEARANCES
from iosig.studies.unattributed.real import DECOYS
from iosig.studies.unattributed.running import ATTRIBUTED, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OURS = "rest by likely rates"
_COLOURS = (style.BLUE, style.ORANGE, style.GREEN)


def values(results: Results) -> dict[str, object]:
    """Return what the page is made of."""
    patterns, tops = counted(results), summed(results)
    alone, ours = (tops.filter(way=way).select("level", "top").rows() for way in ("signatures alone", _OURS))
    gib = {name: pl.col(name) / 2**30 for name in ("read_bytes", "written_bytes", "likely_bytes")}
    return {
        **{"params": results.params, "DAYS": DAYS, "LEAST_APPEARANCES": LEAST_APPEARANCES, "DECOYS": DECOYS},
        "patterns": patterns.filter(known=ATTRIBUTED),
        "known_patterns": patterns,
        "tops": tops,
        "top_alone": ", ".join(percent(top) for _, top in alone),
        "top_by_level": ", ".join(f"{percent(top)} ({level})" for level, top in ours),
        "runs": results.runs.with_columns(**gib) if results.runs.height else results.runs,
        "day": _day(results) if results.runs.height else None,
    }


def figures(results: Results) -> dict[str, Draw]:
    """Return what draws each figure of the page."""
    return {"tops": draw_tops(summed(results)).write}


def _day(results: Results) -> dict[str, float]:
    """Return what flowed on a real day, and how often the true run comes before decoys."""
    runs, days = results.runs, results.days
    asked = float(days["asked"].sum())
    return {
        "moved_tib": runs["day_bytes"][0] / 2**40,
        "own_tib": float(runs.select(pl.sum("read_bytes") + pl.sum("written_bytes")).item()) / 2**40,
        "likely_tib": float(runs["likely_bytes"].sum()) / 2**40,
        "first_ratio": float(days["first"].sum()) / asked,
        "top_ratio": float(days["top"].sum()) / asked,
        "minute_count": asked / days.height,
        "draw_count": days.height,
    }


def counted(results: Results) -> pl.DataFrame:
    """Return how many were planted and found, and what else was, by level and by what is known of others."""
    by = ("level", "known")
    planted, other = (results.patterns.filter(what=what) for what in ("planted", "other"))
    is_found = pl.col("outcome").is_in(["unattributed", "ambiguous"])
    is_train = pl.col("name").str.contains("train")
    found = planted.group_by(by, maintain_order=True).agg(
        train_count=is_train.sum(),
        found_train_count=(is_train & is_found).sum(),
        single_count=(~is_train).sum(),
        found_single_count=(~is_train & is_found).sum(),
        unsure_found_count=(pl.col("outcome") == "ambiguous").sum(),
        site_count=pl.struct("family", "seed").n_unique(),
    )
    beside = other.group_by(by).agg(
        false_count=(pl.col("outcome") == "unattributed").sum(),
        unsure_count=(pl.col("outcome") == "ambiguous").sum(),
        told_count=(pl.col("outcome") == "attributed").sum(),
        right_count=((pl.col("outcome") == "attributed") & pl.col("is_right")).sum(),
    )
    rows = found.join(beside, on=by, how="left", maintain_order="left")
    return rows.with_columns(pl.exclude(by).fill_null(0))


def summed(results: Results) -> pl.DataFrame:
    """Return the share of minutes in which the first three hold the job that moved most, by level and way."""
    sums = results.tops.group_by("level", "way", maintain_order=True).agg(pl.col("hits", "asked").sum())
    return sums.with_columns(top=pl.col("hits") / pl.col("asked"), minute_count=pl.col("asked").cast(pl.Int64))


@picture((7.0, 3.2))
def draw_tops(figure: Figure, tops: pl.DataFrame) -> None:
    """Draw bars of each level and way. tops: level, way, top."""
    axes = figure.subplots()
    levels, ways = (panels.in_order(tops, name) for name in ("level", "way"))
    width = 0.8 / len(ways)
    for number, (way, colour) in enumerate(zip(ways, _COLOURS, strict=True)):
        shares = [tops.filter(level=level, way=way)["top"].item() for level in levels]
        bars = axes.bar(np.arange(len(levels)) + (number - 1) * width, shares, width, color=colour, label=way)
        axes.bar_label(bars, [f"{100 * share:.0f} %" for share in shares], fontsize=8, padding=2)
    axes.set_xticks(range(len(levels)), levels)
    axes.set(ylim=(0, 1.1), yticks=(0, 0.5, 1))
    axes.set_ylabel("minutes in which the job\nthat moved most is named", fontsize=9)
    legend_below(figure, 0.1)

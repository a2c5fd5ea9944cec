"""Compute the template variables and figures of the page `docs/unattributed-study.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.reports import panels, style
from iosig.reports.panels import picture
from iosig.studies.drawing import add_legend_below
from iosig.studies.pages import Draw
from iosig.studies.unattributed.planted import DAYS, MIN_OCCURRENCES
from iosig.studies.unattributed.real import DECOYS
from iosig.studies.unattributed.running import ATTRIBUTED, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLORS = (style.BLUE, style.ORANGE, style.GREEN)


def values(results: Results) -> dict[str, object]:
    """Compute the variables of the template `page.md`."""
    patterns, tops = summarize_patterns(results), summarize_tops(results)
    gib = {name: pl.col(name) / 2**30 for name in ("read_bytes", "written_bytes", "likely_bytes")}
    return {
        **{"params": results.params, "DAYS": DAYS, "MIN_OCCURRENCES": MIN_OCCURRENCES, "DECOYS": DECOYS},
        "patterns": patterns.filter(known=ATTRIBUTED),
        "known_patterns": patterns,
        "tops": tops,
        "runs": results.runs.with_columns(**gib) if results.runs.height else results.runs,
        "day": _summarize_day(results) if results.runs.height else None,
    }


def figures(results: Results) -> dict[str, Draw]:
    """Map each figure name in `page.md` to its drawing function."""
    return {"tops": draw_tops(summarize_tops(results)).write}


def _summarize_day(results: Results) -> dict[str, float]:
    """Summarize the measured day: moved bytes, and the fraction of minutes in which the true run ranks first."""
    runs, days = results.runs, results.days
    minute_count = float(days["asked"].sum())
    return {
        "moved_tib": runs["day_bytes"][0] / 2**40,
        "own_tib": float(runs.select(pl.sum("read_bytes") + pl.sum("written_bytes")).item()) / 2**40,
        "likely_tib": float(runs["likely_bytes"].sum()) / 2**40,
        "first_ratio": float(days["first"].sum()) / minute_count,
        "top_ratio": float(days["top"].sum()) / minute_count,
        "minute_count": minute_count / days.height,
        "draw_count": days.height,
    }


def summarize_patterns(results: Results) -> pl.DataFrame:
    """Count planted and detected patterns, and other detections, by level and knowledge of the background."""
    by = ("level", "known")
    planted, other_rows = (results.patterns.filter(what=group) for group in ("planted", "other"))
    is_found = pl.col("outcome").is_in(["unattributed", "ambiguous"])
    is_train = pl.col("name").str.contains("train")
    planted_counts = planted.group_by(by, maintain_order=True).agg(
        train_count=is_train.sum(),
        found_train_count=(is_train & is_found).sum(),
        single_count=(~is_train).sum(),
        found_single_count=(~is_train & is_found).sum(),
        unsure_found_count=(pl.col("outcome") == "ambiguous").sum(),
        site_count=pl.struct("family", "seed").n_unique(),
    )
    other_counts = other_rows.group_by(by).agg(
        false_count=(pl.col("outcome") == "unattributed").sum(),
        unsure_count=(pl.col("outcome") == "ambiguous").sum(),
        told_count=(pl.col("outcome") == "attributed").sum(),
        right_count=((pl.col("outcome") == "attributed") & pl.col("is_right")).sum(),
    )
    rows = planted_counts.join(other_counts, on=by, how="left", maintain_order="left")
    return rows.with_columns(pl.exclude(by).fill_null(0))


def summarize_tops(results: Results) -> pl.DataFrame:
    """Compute the fraction of minutes with the top job among the first three, by level and way."""
    sums = results.tops.group_by("level", "way", maintain_order=True).agg(pl.col("hits", "asked").sum())
    return sums.with_columns(top=pl.col("hits") / pl.col("asked"), minute_count=pl.col("asked").cast(pl.Int64))


@picture((7.0, 3.2))
def draw_tops(figure: Figure, tops: pl.DataFrame) -> None:
    """Draw a bar chart of the top-3 rates by level and way.

    tops: level, way, top.
    """
    axes = figure.subplots()
    levels, ways = (panels.in_order(tops, name) for name in ("level", "way"))
    width = 0.8 / len(ways)
    for number, (way, color) in enumerate(zip(ways, _COLORS, strict=True)):
        shares = [tops.filter(level=level, way=way)["top"].item() for level in levels]
        bars = axes.bar(np.arange(len(levels)) + (number - 1) * width, shares, width, color=color, label=way)
        axes.bar_label(bars, [f"{100 * share:.0f} %" for share in shares], fontsize=8, padding=2)
    axes.set_xticks(range(len(levels)), levels)
    axes.set(ylim=(0, 1.1), yticks=(0, 0.5, 1))
    axes.set_ylabel("minutes in which the\ntop job is named", fontsize=9)
    add_legend_below(figure, 0.1)

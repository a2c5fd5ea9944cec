"""How often the job that moved most is among the first three, by way and level."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from reports import panels, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = (style.BLUE, style.ORANGE, style.GREEN)


def draw_tops(tops: pl.DataFrame, path: Path) -> None:
    """Draw bars of each level and way. tops: level, way, top."""
    panels.write((7.0, 3.2), lambda figure: _tops(figure, tops), path)


def _tops(figure: Figure, tops: pl.DataFrame) -> None:
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
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.legend(loc="lower center", ncols=len(ways), fontsize=9)
    figure.tight_layout(rect=(0.0, 0.1, 1.0, 1.0))

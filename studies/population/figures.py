"""Shares of runs by class: the truth beside what each way tells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.reports import panels, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = (style.INK, style.ORANGE, style.BLUE, style.GREEN)


def draw_shares(shares: pl.DataFrame, path: Path) -> None:
    """Draw bars of each class and way, a panel a level.

    shares: level, way, label, run_ratio; the truth is a way, too.
    """
    panels.write((11.0, 3.6), lambda figure: _shares(figure, shares), path)


def _shares(figure: Figure, shares: pl.DataFrame) -> None:
    levels, ways, labels = (panels.in_order(shares, name) for name in ("level", "way", "label"))
    every = figure.subplots(1, len(levels), sharey=True, squeeze=False)[0]
    for axes, level in zip(every, levels, strict=True):
        for number, way in enumerate(ways):
            own = dict(shares.filter(level=level, way=way).select("label", "run_ratio").iter_rows())
            _bars(axes, [own.get(label, 0.0) for label in labels], way, number, len(ways))
        axes.set_xticks(range(len(labels)), labels, rotation=35, ha="right", fontsize=8)
        axes.set_title(level)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    every[0].yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    every[0].set_ylabel("runs", fontsize=9)
    handles, names = every[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="lower center", ncols=len(ways), fontsize=9)
    figure.tight_layout(rect=(0.0, 0.08, 1.0, 1.0))


def _bars(axes: Axes, ratios: list[float], way: str, number: int, way_count: int) -> None:
    width = 0.8 / way_count
    places = np.arange(len(ratios)) + (number - (way_count - 1) / 2) * width
    axes.bar(places, ratios, width, color=_COLOURS[number], label=way)

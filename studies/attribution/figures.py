"""The figures of the study of attribution: what each way explains, and what it gives wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from iosig.reports import panels, style
from iosig.studies.drawing import MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = (style.BLUE, style.SKY, style.GREEN, style.INK, style.PURPLE, style.ORANGE, style.VERMILION)


def draw_ways(ways: pl.DataFrame, path: Path) -> None:
    """Draw each way of each level: the share of known bytes that it explains over that which it gives wrongly.

    ways: level, family, way, explained, wrong; a mark is a family's sites.
    """
    panels.write((11.0, 3.9), lambda figure: _ways(figure, ways), path)


def _ways(figure: Figure, ways: pl.DataFrame) -> None:
    levels, names = (panels.in_order(ways, column) for column in ("level", "way"))
    every = figure.subplots(1, len(levels), sharex=True, sharey=True)
    for axes, level in zip(every, levels, strict=True):
        for place, name in enumerate(names):
            _draw(axes, ways.filter(level=level, way=name), name, place)
        axes.set(title=level, xlim=(0, 1), ylim=(0, 1))
        axes.set_xlabel("given wrongly, of all that is given", fontsize=9)
    every[0].set_ylabel("explained of known bytes", fontsize=9)
    handles, labels = every[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels))
    figure.tight_layout(rect=(0.0, 0.08, 1.0, 1.0))


def _draw(axes: Axes, rows: pl.DataFrame, name: str, place: int) -> None:
    axes.plot(
        rows["wrong"].to_numpy(),
        rows["explained"].to_numpy(),
        MARKERS[place],
        color=_COLOURS[place],
        ms=5,
        alpha=0.85,
        label=name,
    )

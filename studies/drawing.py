"""Lay out the figures of studies: panels in a row, headlines and legends."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from iosig.reports import panels
from iosig.reports.style import FINDING_POINTS

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: average number of characters per inch in a headline
_CHARACTERS_PER_INCH = 8
#: markers of methods, distinguishable without color
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def draw_panels(
    figure: Figure, frame: pl.DataFrame, column: str, *, is_x_shared: bool = True
) -> Iterator[tuple[Axes, str, pl.DataFrame]]:
    """Yield one panel per value of a column, titled with the value, and the rows with this value."""
    values = panels.in_order(frame, column)
    every = figure.subplots(1, len(values), sharex=is_x_shared, sharey=True, squeeze=False)[0]
    for axes, value in zip(every, values, strict=True):
        axes.set_title(value)
        yield axes, value, frame.filter(**{column: value})


def add_headline(figure: Figure, text: str) -> None:
    """Add a left-aligned headline above all panels, wrapped to the width of the figure."""
    lines = textwrap.fill(text, int(figure.get_figwidth() * _CHARACTERS_PER_INCH))
    figure.suptitle(lines, x=0.01, ha="left", fontsize=FINDING_POINTS, fontweight="bold")


def add_legend_below(figure: Figure, bottom: float = 0.08, top: float = 1.0) -> None:
    """Place the legend of the first panel below all panels, which fill the figure from `bottom` to `top` (ratios)."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), columnspacing=1.2, handletextpad=0.4)
    figure.tight_layout(rect=(0.0, bottom, 1.0, top))

"""The figure of the study of joint signatures: distances to the truth, plain and joint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from iosig.reports import panels, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: columns of distances, with what they are called, their colours and marks
_MARKS = (
    ("plain", "best plain method", style.VERMILION, "s"),
    ("chosen", "found together", style.BLUE, "o"),
    ("oracle", "others' bytes known", style.GREEN, "|"),
)


def draw_distances(distances: pl.DataFrame, path: Path) -> None:
    """Draw the distances of each family and level.

    distances: family, level, plain, chosen, oracle.
    """
    panels.write((11.0, 3.9), lambda figure: _distances(figure, distances), path)


def _distances(figure: Figure, distances: pl.DataFrame) -> None:
    levels = panels.in_order(distances, "level")
    every = figure.subplots(1, len(levels), sharey=True)
    for axes, level in zip(every, levels, strict=True):
        _draw(axes, distances.filter(level=level), level)
    handles, labels = every[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels))
    figure.tight_layout(rect=(0.0, 0.08, 1.0, 1.0))


def _draw(axes: Axes, rows: pl.DataFrame, level: str) -> None:
    places = list(range(rows.height))[::-1]
    axes.hlines(places, rows["chosen"].to_numpy(), rows["plain"].to_numpy(), color=style.GREY, lw=1.5)
    for column, words, colour, mark in _MARKS:
        axes.plot(rows[column].to_numpy(), places, mark, color=colour, ms=10 if mark == "|" else 6, label=words)
    axes.set_yticks(places, rows["family"].to_list())
    axes.set(title=level, xlim=(0, None))
    axes.set_xlabel("distance to the truth (1 - correlation)", fontsize=9)

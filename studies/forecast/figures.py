"""The figures of the study of forecasts: how often ranges hold, and how wide they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from iosig.reports import panels
from iosig.reports.style import GREY, HUES
from iosig.studies.drawing import MARKERS, headline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WANTED = 0.8


def draw_ranges(sites: pl.DataFrame, path: Path) -> None:
    """Draw each way of each level: how often what came was in the range, over how wide that is.

    sites: level, way, held, width; a mark is a site.
    """
    panels.write((11.0, 4.2), lambda figure: _ranges(figure, sites), path)


def _ranges(figure: Figure, sites: pl.DataFrame) -> None:
    levels, names = (panels.in_order(sites, column) for column in ("level", "way"))
    every = figure.subplots(1, len(levels), sharex=True, sharey=True, squeeze=False)[0]
    for axes, level in zip(every, levels, strict=True):
        for place, name in enumerate(names):
            _draw(axes, sites.filter(level=level, way=name), name, place)
        axes.axhline(_WANTED, color=GREY, lw=0.8, ls="--")
        axes.set(title=level, ylim=(0, 1))
        axes.set_xlabel("width of the range, over the mean rate", fontsize=9)
    every[0].set_ylabel("in the range", fontsize=9)
    handles, labels = every[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels))
    headline(figure, _finding(sites.filter(way=names[0]), names[0]))
    figure.tight_layout(rect=(0.0, 0.08, 1.0, 1.0))


def _finding(sites: pl.DataFrame, name: str) -> str:
    held = sites.group_by("level", maintain_order=True).agg(pl.col("held").mean())
    shares = ", ".join(f"{100 * share:.0f} % ({level})" for level, share in held.iter_rows())
    return f"In the range of `{name}` meant to hold {100 * _WANTED:.0f} % came {shares}"


def _draw(axes: Axes, rows: pl.DataFrame, name: str, place: int) -> None:
    width, held = rows["width"].to_numpy(), rows["held"].to_numpy()
    axes.plot(width, held, MARKERS[place], color=HUES[place], ms=5, alpha=0.85, label=name)

"""What figures of studies share: PNGs, drawn without a display; the same tables make the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reports.style import DOTS_PER_INCH, in_force, name_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: marks of methods, which are told apart without colours too
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def figure_of(width_in: float, height_in: float, pads: dict[str, float] | None = None) -> Figure:
    """Return a figure whose panels make room for all that is written; pads: more room between them [inches]."""
    from matplotlib.figure import Figure

    name_colours(in_force())
    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    figure.get_layout_engine().set(**pads or {})  # type: ignore[union-attr]
    return figure


def save_study(figure: Figure, path: Path) -> None:
    """Save a figure as PNG, without its panels' upper and right sides."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    for axes in figure.axes:
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    FigureCanvasAgg(figure)
    # without the library's version: the same picture has the same bytes
    figure.savefig(path, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})


def legend_below(figure: Figure, axes: Axes) -> None:
    """Put the legend of one panel below all of them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), columnspacing=1.2, handletextpad=0.4)
    figure.tight_layout(rect=(0.0, 0.065, 1.0, 1.0))

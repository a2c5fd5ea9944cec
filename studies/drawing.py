"""What figures of studies share: PNGs in the style in force, drawn without a display; same tables make same bytes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

from iosig.reports.style import DOTS_PER_INCH, FINDING_POINTS, drawn_in, in_force

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Asked = ParamSpec("Asked")

#: of a headline
_CHARACTERS_AN_INCH = 8
#: marks of methods, which are told apart without colours too
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def styled(draw: Callable[Asked, None]) -> Callable[Asked, None]:
    """Have a figure be drawn in the style in force, whatever is in anybody's matplotlibrc."""

    @wraps(draw)
    def drawn(*args: Asked.args, **kwargs: Asked.kwargs) -> None:
        with drawn_in(in_force()):
            draw(*args, **kwargs)

    return drawn


def headline(figure: Figure, text: str) -> None:
    """Put over all panels what a figure shows, in lines that it is wide enough for."""
    lines = textwrap.fill(text, int(figure.get_figwidth() * _CHARACTERS_AN_INCH))
    figure.suptitle(lines, x=0.01, ha="left", fontsize=FINDING_POINTS, fontweight="bold")


def figure_of(width_in: float, height_in: float, pads: dict[str, float] | None = None) -> Figure:
    """Return a figure whose panels make room for all that is written; pads: more room between them [inches]."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    figure.get_layout_engine().set(**pads or {})  # type: ignore[union-attr]
    return figure


def save_study(figure: Figure, path: Path) -> None:
    """Save a figure as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    # without the library's version: the same picture has the same bytes
    figure.savefig(path, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})


def legend_below(figure: Figure, axes: Axes, top: float = 1.0) -> None:
    """Put the legend of one panel below all of them; top: where these end, as a share of the figure."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), columnspacing=1.2, handletextpad=0.4)
    figure.tight_layout(rect=(0.0, 0.065, 1.0, top))

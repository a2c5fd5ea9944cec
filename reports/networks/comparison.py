"""Draw two networks side by side on one scale of values, colors and times.

Sigovan et al. (IPDPS'13), section V, compare configurations in this way: Figures 7 and 8, 11 and 12 ("the scale is
identical"), 13 and 15. Equal positions on edges and equal colors have equal meanings in both runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iosig.reports import panels, style
from iosig.reports.networks.legend import Legend, pixel_axes
from iosig.reports.networks.picture import FigureData, describe_extent, draw_disc
from iosig.reports.networks.texts import quantity
from iosig.reports.networks.timeline import MAX_HOPS, draw_timelines
from iosig.reports.networks.view import NetworkView
from iosig.reports.style import SOFT
from iosig.reports.texts import base_name, format_count, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: width of a run's column, side of its circle, and margins [pixels]
_COLUMN, _DISC, _LEFT, _TOP = 980, 900, 40, 100
#: heights of findings, legend, timelines and margins [pixels]
_FINDINGS, _LEGEND, _TIMELINE, _BETWEEN, _FOOT = 250, 400, 110, 34, 66
_TIMELINE_LEFT = 100
_LINES = ("solid lines", "dashed lines")


def _timeline_top() -> int:
    return _TOP + _DISC + _FINDINGS + _LEGEND


def _timeline_count(views: Sequence[NetworkView]) -> int:
    return min(views[0].network.hop_count, MAX_HOPS)


def _size(views: Sequence[NetworkView]) -> tuple[float, float]:
    height = _timeline_top() + _timeline_count(views) * (_TIMELINE + _BETWEEN) + _FOOT
    return len(views) * _COLUMN / style.DOTS_PER_INCH, height / style.DOTS_PER_INCH


@panels.picture(_size)
def draw_comparison(figure: Figure, views: Sequence[NetworkView]) -> None:
    """Draw runs in columns, with a common legend; the views come from `share_scales`."""
    runs = [FigureData.from_view(view) for view in views]
    for column, (view, data) in enumerate(zip(views, runs, strict=True)):
        _draw_column(figure, column * _COLUMN, view, data, _LINES[column % len(_LINES)])
    _draw_legend(figure, views, runs)


def _draw_column(figure: Figure, left: int, view: NetworkView, data: FigureData, line: str) -> None:
    wide, high = figure.get_size_inches() * style.DOTS_PER_INCH
    x, width_ratio = (left + _LEFT) / wide, (_COLUMN - 2 * _LEFT) / wide
    title = figure.text(x, 1 - 46 / high, "", fontsize=14, fontweight="bold")
    panels.fit(figure, title, base_name(plain(view.title)), width_ratio)
    subject = figure.text(x, 1 - 80 / high, "", fontsize=10, color=SOFT)
    panels.fit(figure, subject, f"{describe_extent(view)}; {line} below", width_ratio)
    draw_disc(pixel_axes(figure, left + _LEFT, _TOP, _DISC, _DISC), view, _DISC, data)
    Legend(figure, left + _LEFT, _TOP + _DISC + 16, _DISC).findings(view)
    width = _COLUMN - _TIMELINE_LEFT - _LEFT
    tops = [_timeline_top() + hop * (_TIMELINE + _BETWEEN) for hop in range(_timeline_count([view]))]
    draw_timelines([pixel_axes(figure, left + _TIMELINE_LEFT, top, width, _TIMELINE) for top in tops], view)


def _draw_legend(figure: Figure, views: Sequence[NetworkView], runs: Sequence[FigureData]) -> None:
    """Draw the common colors on the left, and the common values on the right."""
    first, data = views[0], runs[0]
    top = _TOP + _DISC + _FINDINGS
    edge_texts = [
        " and ".join(format_count(len(run.hops[hop]), "edge") for run in runs) for hop in range(first.network.hop_count)
    ]
    if data.scale.slot_count:
        Legend(figure, _LEFT, top, _DISC // 2).colors(first, data.max_counts, edge_texts)
        Legend(figure, _COLUMN + _LEFT, top, _DISC).scale(first, data.scale, [run.hop_counts for run in runs])
    else:
        Legend(figure, _LEFT, top, _DISC).say(
            f"The {quantity(first.network, first.metric)} of all transfers is unknown."
        )

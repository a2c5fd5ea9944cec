"""Draw the rates of applications as stacked areas, and the legend of their colors above the panels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from iosig.reports.panels import Entry, area, draw_legend
from iosig.reports.style import GRAY, PALE
from iosig.reports.texts import plain
from iosig.transforms.arrays import Reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: rates per step (n) by name; names may repeat
Layers = Sequence[tuple[str, Reals]]
#: color of applications without an individual color
#: color of unattributed traffic
OTHERS, NOBODY = GRAY, PALE
NAME_CHARACTERS = 34
_COLUMNS, _ROW_IN, _TOP_IN = 4, 0.22, 0.83


def sum_rates(layers: Layers) -> dict[str, float]:
    """Return the sum of each application's rates, the highest first."""
    sums: dict[str, float] = {}
    for name, rates in layers:
        sums[name] = sums.get(name, 0.0) + float(rates.sum())
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


def sum_by_color(layers: Layers, colors: Mapping[str, str]) -> list[tuple[str, Reals]]:
    """Sum the rates by color, in the order of the colors; all other applications form the last layer."""
    sums: dict[str, Reals] = {}
    for name, rates in layers:
        color = colors.get(name, OTHERS)
        sums[color] = sums[color] + rates if color in sums else rates
    return [(color, sums[color]) for color in (*colors.values(), OTHERS) if color in sums]


def fill_steps(axes: Axes, edges: Reals, low: Reals, high: Reals, **style: Any) -> None:
    """Fill steps (n) between low and high, except NaN, as a collection; a single patch would be slow to draw."""
    places = np.repeat(edges, 2)[1:-1]
    axes.fill_between(places, np.repeat(low, 2), np.repeat(high, 2), **{"lw": 0, "edgecolor": "none", **style})


def fill_layers(axes: Axes, edges: Reals, layers: Iterable[tuple[str, Reals]], size: float) -> None:
    """Draw rates as stacked areas, one for each color; size: of the rates' unit."""
    below: Reals = np.zeros(len(edges) - 1)
    for color, rates in layers:
        fill_steps(axes, edges, below / size, (below + rates) / size, facecolor=color)
        below = below + rates


def make_legend_entries(colors: Mapping[str, str]) -> list[Entry]:
    """Return legend entries for applications."""
    return [area(plain(name, NAME_CHARACTERS), facecolor=color) for name, color in colors.items()]


def legend_in(entries: Sequence[Entry]) -> float:
    """Return the height of a legend in inches."""
    return _ROW_IN * -(-len(entries) // _COLUMNS)


def draw_legend_above(figure: Figure, entries: Sequence[Entry]) -> None:
    """Draw a legend below the headings."""
    draw_legend(figure, entries, (0.02, _TOP_IN), ncols=_COLUMNS, handlelength=1.8, columnspacing=1.6)

"""Draw the rates of applications as stacked areas, and the legend of their colours above the panels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from iosig.reports.panels import Entry, area, draw_legend
from iosig.reports.style import GREY, PALE
from iosig.reports.texts import plain
from iosig.transforms.arrays import Reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: rates per step (n) by name; names may repeat
Layers = Sequence[tuple[str, Reals]]
#: colour of applications without an individual colour
#: colour of unattributed traffic
OTHERS, NOBODY = GREY, PALE
NAME_CHARACTERS = 34
_COLUMNS, _ROW_IN, _TOP_IN = 4, 0.22, 0.83


def sum_rates(layers: Layers) -> dict[str, float]:
    """Return the sum of each application's rates, the highest first."""
    sums: dict[str, float] = {}
    for name, rates in layers:
        sums[name] = sums.get(name, 0.0) + float(rates.sum())
    return dict(sorted(sums.items(), key=lambda each: (-each[1], each[0])))


def sum_by_color(layers: Layers, colours: Mapping[str, str]) -> list[tuple[str, Reals]]:
    """Sum the rates by colour, in the order of the colours; all other applications form the last layer."""
    sums: dict[str, Reals] = {}
    for name, rates in layers:
        colour = colours.get(name, OTHERS)
        sums[colour] = sums[colour] + rates if colour in sums else rates
    return [(colour, sums[colour]) for colour in (*colours.values(), OTHERS) if colour in sums]


def fill_steps(axes: Axes, edges: Reals, low: Reals, high: Reals, **style: Any) -> None:
    """Fill steps (n) between low and high, except NaN, as a collection; a single patch would be slow to draw."""
    places = np.repeat(edges, 2)[1:-1]
    axes.fill_between(places, np.repeat(low, 2), np.repeat(high, 2), **{"lw": 0, "edgecolor": "none", **style})


def fill_layers(axes: Axes, edges: Reals, layers: Iterable[tuple[str, Reals]], size: float) -> None:
    """Draw rates as stacked areas, one for each colour; size: of the rates' unit."""
    below: Reals = np.zeros(len(edges) - 1)
    for colour, rates in layers:
        fill_steps(axes, edges, below / size, (below + rates) / size, facecolor=colour)
        below = below + rates


def make_legend_entries(colours: Mapping[str, str]) -> list[Entry]:
    """Return legend entries for applications."""
    return [area(plain(name, NAME_CHARACTERS), facecolor=colour) for name, colour in colours.items()]


def legend_in(entries: Sequence[Entry]) -> float:
    """Return the height of a legend in inches."""
    return _ROW_IN * -(-len(entries) // _COLUMNS)


def draw_legend_above(figure: Figure, entries: Sequence[Entry]) -> None:
    """Draw a legend below the headings."""
    draw_legend(figure, entries, (0.02, _TOP_IN), ncols=_COLUMNS, handlelength=1.8, columnspacing=1.6)

"""Draw the attribution of a file system's traffic: measured, attributed and unattributed bytes.

One panel per direction. Applications are stacked, the largest ones in individual colors. The line is the polled
traffic, and the area between the stack and the line is unattributed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from iosig.reports import layers, panels
from iosig.reports.panels import Entry, area, line
from iosig.reports.style import HUES, INK
from iosig.reports.texts import RATES, TIMES, Unit, choose_unit, plain, volume_text
from iosig.transforms.arrays import Reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_IN, _PANEL_IN = 12.0, 3.0
_TOP_IN, _BETWEEN_IN, _BOTTOM_IN = 0.95, 0.5, 0.62
_SIDES = (0.075, 0.975)
_DID = {"write": "wrote", "read": "read"}


@dataclass(frozen=True, slots=True)
class DrawnTraffic:
    """One direction in steps (n): polled rates, NaN where not polled, and the rates attributed to applications."""

    direction: str
    measured_bytes_per_s: Reals
    layers: tuple[tuple[str, Reals], ...]


@dataclass(frozen=True, slots=True)
class AttributionView:
    """Attribution data of one file system: start time, step length, totals and traffic by direction."""

    filesystem: str
    began: str
    step_s: float
    measured_bytes: float
    attributed_bytes: float
    traffic: tuple[DrawnTraffic, ...]

    @property
    def verdict(self) -> str:
        """The attributed fraction of the measured bytes, in one line."""
        share = self.attributed_bytes / self.measured_bytes if self.measured_bytes else 0.0
        explained, measured = volume_text(self.attributed_bytes), volume_text(self.measured_bytes)
        return f"{explained} of {measured} attributed ({share:.0%})"

    @property
    def finding(self) -> str:
        """The application with the most bytes and its fraction of all bytes, in one line."""
        sums = _sum_bytes(self)
        if not sums or not self.measured_bytes:
            return f"None of {volume_text(self.measured_bytes)} is attributed"
        name, rate = next(iter(sums.items()))
        share = rate * self.step_s / self.measured_bytes
        of_all = f"{'less than 1%' if share < 0.01 else f'{share:.0%}'} of {volume_text(self.measured_bytes)}"
        verb = _DID.get(self.traffic[0].direction, "moved") if len(self.traffic) == 1 else "moved"
        unattributed_ratio = max(1 - self.attributed_bytes / self.measured_bytes, 0.0)
        return f"{plain(name, layers.NAME_CHARACTERS)} {verb} most, {of_all}; {unattributed_ratio:.0%} unattributed"


def _size(view: AttributionView) -> tuple[float, float]:
    count = len(view.traffic)
    return _WIDTH_IN, _top_in(view) + count * _PANEL_IN + (count - 1) * _BETWEEN_IN + _BOTTOM_IN


@panels.picture(_size)
def draw(figure: Figure, view: AttributionView) -> None:
    """Draw a panel for each direction, below one legend."""
    names = (
        f"Traffic by application on {plain(view.filesystem, layers.NAME_CHARACTERS)}",
        f"from {view.began}",
        view.verdict,
    )
    panels.headings(figure, view.finding, names, INK)
    layers.draw_legend_above(figure, _legend(view))
    clock = choose_unit(view.step_s * len(view.traffic[0].measured_bytes_per_s), TIMES, "s")
    for number, traffic in enumerate(view.traffic):
        axes = panels.inch_axes(figure, _top_in(view) + number * (_PANEL_IN + _BETWEEN_IN), _PANEL_IN, _SIDES)
        _draw_traffic(axes, view, traffic, clock)
        axes.set_title(traffic.direction)
        axes.tick_params(labelbottom=number == len(view.traffic) - 1)
    axes.set_xlabel(f"time after {view.began} [{clock.name}]", fontsize=9)


def _top_in(view: AttributionView) -> float:
    return _TOP_IN + layers.legend_in(_legend(view)) + 0.3


def _sum_bytes(view: AttributionView) -> dict[str, float]:
    """Return each application's bytes summed over all directions."""
    return layers.sum_rates([layer for traffic in view.traffic for layer in traffic.layers])


def _colors(view: AttributionView) -> dict[str, str]:
    """Assign colors to the applications with the most bytes."""
    return dict(zip(_sum_bytes(view), HUES, strict=False))


def _legend(view: AttributionView) -> list[Entry]:
    colors = _colors(view)
    has_others = len(_sum_bytes(view)) > len(colors)
    return [
        line("measured", color=INK, lw=0.9),
        *layers.make_legend_entries(colors),
        *([area("other applications", facecolor=layers.OTHERS)] if has_others else []),
        area("unattributed", facecolor=layers.NOBODY),
    ]


def _draw_traffic(axes: Axes, view: AttributionView, traffic: DrawnTraffic, clock: Unit) -> None:
    """Draw stacked applications, the unattributed remainder above, and the measured traffic as a line."""
    count = len(traffic.measured_bytes_per_s)
    edges: Reals = np.arange(count + 1, dtype=np.float64) * (view.step_s / clock.size)
    measured = np.nan_to_num(traffic.measured_bytes_per_s)
    traffic_layers = layers.sum_by_color(traffic.layers, _colors(view))
    total: Reals = sum((rates for _, rates in traffic_layers), np.zeros(count))
    high = float(max(measured.max(initial=0.0), total.max(initial=0.0)))
    unit = choose_unit(high, RATES, "B/s")
    layers.fill_layers(axes, edges, [*traffic_layers, (layers.NOBODY, np.maximum(measured - total, 0.0))], unit.size)
    places, rates = np.repeat(edges, 2)[1:-1], np.repeat(traffic.measured_bytes_per_s / unit.size, 2)
    axes.plot(places, rates, color=INK, lw=0.7, zorder=3)
    axes.set_xlim(0.0, float(edges[-1]))
    axes.set_ylim(0.0, 1.08 * high / unit.size if high > 0 else 1.0)
    axes.set_ylabel(f"throughput [{unit.name}]")

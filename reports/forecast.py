"""Draw a load forecast: known load by application, load of unknown future jobs, and the total with its range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from iosig.reports import layers, panels
from iosig.reports.panels import Entry, area, line
from iosig.reports.style import HUES, INK, VERMILION
from iosig.reports.texts import RATES, TIMES, choose_unit, plain, rate_text
from iosig.transforms.arrays import Reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_IN, _PANEL_IN = 12.0, 3.8
_TOP_IN, _BOTTOM_IN, _NOTE_IN = 0.95, 0.62, 0.2
_X_MARGINS = (0.075, 0.975)
#: the capacity is drawn unless it exceeds this multiple of the highest forecast
_MAX_CAPACITY_RATIO = 1.6


@dataclass(frozen=True, slots=True)
class DrawnCollision:
    """One hour, given by its start, in which bursts of two applications coincide."""

    from_s: float
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class ForecastView:
    """Forecast of one file system: rates in steps (n) from a start time, as in `Forecast`.

    layers: the applications' parts of the expected rate. unknown_bytes_per_s: expected load of jobs not yet known.
    without_bytes_per_s: the forecast without the queried job; None without such a job.
    """

    filesystem: str
    at: str
    step_s: float
    expected_bytes_per_s: Reals
    low_bytes_per_s: Reals
    high_bytes_per_s: Reals
    unknown_bytes_per_s: Reals
    layers: tuple[tuple[str, Reals], ...]
    without_bytes_per_s: Reals | None
    capacity_bytes_per_s: float | None
    collisions: tuple[DrawnCollision, ...]

    @property
    def is_near_capacity(self) -> bool:
        """Whether the capacity is close enough to the forecast to be drawn."""
        max_capacity = _MAX_CAPACITY_RATIO * float(self.high_bytes_per_s.max(initial=0.0))
        return self.capacity_bytes_per_s is not None and self.capacity_bytes_per_s <= max_capacity

    @property
    def verdict(self) -> str:
        """The mean and peak of the forecast, in one line."""
        place = int(np.argmax(self.expected_bytes_per_s))
        mean, peak = float(self.expected_bytes_per_s.mean()), float(self.expected_bytes_per_s[place])
        after = choose_unit(max((place + 0.5) * self.step_s, 1.0), TIMES, "s")
        peak_time = f"{(place + 0.5) * self.step_s / after.size:.3g} {after.name}"
        return f"{rate_text(mean)} expected on average, {rate_text(peak)} in {peak_time}"


def _size(view: ForecastView) -> tuple[float, float]:
    return _WIDTH_IN, _top_in(view) + _PANEL_IN + _BOTTOM_IN + _NOTE_IN * len(view.collisions)


@panels.picture(_size)
def draw(figure: Figure, view: ForecastView) -> None:
    """Draw the forecast, with a note for each hour in which bursts coincide."""
    names = (f"Expected load of {plain(view.filesystem, layers.NAME_CHARACTERS)}", f"from {view.at}")
    panels.headings(figure, view.verdict, names, INK)
    layers.draw_legend_above(figure, _legend(view))
    _draw_rates(panels.inch_axes(figure, _top_in(view), _PANEL_IN, _X_MARGINS), view)
    clock = choose_unit(view.step_s * len(view.expected_bytes_per_s), TIMES, "s")
    for number, collision in enumerate(reversed(view.collisions)):
        first, second = (plain(name, layers.NAME_CHARACTERS) for name in (collision.first, collision.second))
        hours = f"{collision.from_s / clock.size:.3g} to {(collision.from_s + 3600) / clock.size:.3g} {clock.name}"
        place = (0.12 + _NOTE_IN * number) / figure.get_figheight()
        figure.text(_X_MARGINS[0], place, f"{hours}: bursts of {first} and {second} overlap", fontsize=8.5, color=INK)


def _top_in(view: ForecastView) -> float:
    return _TOP_IN + layers.legend_in(_legend(view)) + 0.3


def _colors(view: ForecastView) -> dict[str, str]:
    """Assign colors to the applications with the most bytes."""
    return dict(zip(_moving(view), HUES, strict=False))


def _moving(view: ForecastView) -> list[str]:
    return [name for name, rates in layers.sum_rates(view.layers).items() if rates > 0]


def _legend(view: ForecastView) -> list[Entry]:
    colors = _colors(view)
    return [
        line("expected", color=INK, lw=1.4),
        area("80 % within", facecolor="none", edgecolor=INK, hatch="////", lw=0.5),
        *layers.make_legend_entries(colors),
        *([area("other applications", facecolor=layers.OTHERS)] if len(_moving(view)) > len(colors) else []),
        area("unplanned", facecolor=layers.NOBODY),
        *([line("without the what-if run", color=INK, lw=1.0, ls=":")] if view.without_bytes_per_s is not None else []),
        *([line("capacity", color=VERMILION, lw=1.0, ls="--")] if view.is_near_capacity else []),
    ]


def _draw_rates(axes: Axes, view: ForecastView) -> None:
    """Draw the known load stacked by application, the unknown load on top, the range, and the expected line."""
    count = len(view.expected_bytes_per_s)
    clock = choose_unit(view.step_s * count, TIMES, "s")
    edges: Reals = np.arange(count + 1, dtype=np.float64) * (view.step_s / clock.size)
    places = np.repeat(edges, 2)[1:-1]
    high = float(view.high_bytes_per_s.max(initial=0.0))
    unit = choose_unit(high, RATES, "B/s")
    load_layers = [*layers.sum_by_color(view.layers, _colors(view)), (layers.NOBODY, view.unknown_bytes_per_s)]
    layers.fill_layers(axes, edges, load_layers, unit.size)
    low, top = view.low_bytes_per_s / unit.size, view.high_bytes_per_s / unit.size
    layers.fill_steps(
        axes, edges, low, top, facecolor="none", edgecolor=INK, hatch="////", lw=0.5, alpha=0.55, zorder=3
    )
    axes.plot(places, np.repeat(view.expected_bytes_per_s / unit.size, 2), color=INK, lw=1.4, zorder=4)
    if view.without_bytes_per_s is not None:
        rates = np.repeat(view.without_bytes_per_s / unit.size, 2)
        axes.plot(places, rates, color=INK, lw=1.0, ls=":", zorder=4)
    total: Reals = sum((rates for _, rates in load_layers), np.zeros(count))
    top_rate = 1.08 * max(high, float(total.max(initial=0.0)))
    if view.capacity_bytes_per_s is not None and view.is_near_capacity:
        axes.axhline(view.capacity_bytes_per_s / unit.size, color=VERMILION, lw=1.0, ls="--", zorder=4)
        top_rate = max(top_rate, 1.05 * view.capacity_bytes_per_s)
    axes.set_xlim(0.0, float(edges[-1]))
    axes.set_ylim(0.0, top_rate / unit.size if top_rate > 0 else 1.0)
    axes.set_ylabel(f"throughput [{unit.name}]")
    axes.set_xlabel(f"time after {view.at} [{clock.name}]")

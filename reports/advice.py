"""Draw the recommended start of an application: each file system's expected load, now and after the best delay.

IOSI (Liu et al., FAST'14, section 6.4) proposes to choose the partition with the lowest interference and to stagger
starts. Each row is a file system, the best one first. The left panels share a time axis and show the background, the
signatures of running jobs, the capacity, and the application on top. The right panels share one scale and show the
bytes expected to exceed the capacity, by delay of the start.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from iosig.reports import layers, panels
from iosig.reports.layers import fill_steps
from iosig.reports.panels import Entry, area, line
from iosig.reports.style import (
    BLUE,
    GREEN,
    GROUND,
    INK,
    NOTE_POINTS,
    ORANGE,
    PURPLE,
    SKY,
    SOFT,
    VERMILION,
)
from iosig.reports.texts import RATES, TIMES, VOLUMES, Unit, choose_unit, duration_text, plain, volume_text
from iosig.transforms.arrays import Reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_WIDTH_IN = 12.0
#: maximum height of a row [inches]
#: minimum height of a row [inches]
#: approximate height of all rows together [inches]
_MAX_ROW_IN, _MIN_ROW_IN, _ROWS_IN = 2.6, 0.95, 9.0
#: maximum number of file systems in a figure; only the best ones are drawn
MAX_ROWS = 12
#: colors of the applications with the most bytes; all others share one color
LAYER_COLORS = (GREEN, PURPLE, ORANGE, SKY)
_TOP_IN, _BETWEEN_IN, _BOTTOM_IN = 0.95, 0.62, 0.62
#: left and right edge of the load panel, as fractions of the figure's width
#: left and right edge of the delay panel
#: left and right edge of the load panel if no start is contended, so that it is the only panel of its row
_LOADS, _DELAYS, _ALONE = (0.075, 0.665), (0.745, 0.975), (0.075, 0.975)
#: minimum contended fraction of the application's bytes for which the delay panel is drawn
_MIN_CONTENDED_SHARE = 1e-3
#: characters per line of remarks, by whether the delay panel is drawn
#: maximum number of lines of remarks
#: line height of remarks [points]
_REMARK_LINE_CHARS, _MAX_REMARK_LINES, _REMARK_LINE_POINTS = {True: 105, False: 165}, 2, 11.0
_NAME_CHARACTERS, _REMARK_CHARACTERS = 60, 2000


@dataclass(frozen=True, slots=True)
class DrawnFilesystem:
    """Load and contention of one file system: mean rates per step (n) from now on, in bytes per second.

    layers: running jobs by application name; names may repeat. demand_now, demand_best: rates of the application if it
    starts now or after its best delay. expected_bytes_per_s: the expected load without it, averaged over the
    uncertainty; NaN if not requested. contended_bytes (k): by delay. remark: notes on the numbers, such as their age.
    """

    filesystem: str
    capacity_bytes_per_s: float
    background_bytes_per_s: float
    layers: tuple[tuple[str, Reals], ...]
    demand_now: Reals
    demand_best: Reals
    expected_bytes_per_s: Reals
    best_delay_s: float
    contended_bytes: Reals
    low_contended_bytes: float
    high_contended_bytes: float
    remark: str = ""


@dataclass(frozen=True, slots=True)
class AdviceView:
    """Data behind the figure: the application, the step length, delays (k), and file systems, best first."""

    application: str
    at: str
    step_s: float
    delays_s: Reals
    filesystems: tuple[DrawnFilesystem, ...]

    @property
    def has_contention(self) -> bool:
        """Whether a significant fraction of the application's bytes exceeds the capacity for some start time."""
        moved_bytes = max(float(row.demand_now.sum()) * self.step_s for row in self.filesystems)
        peak_bytes = max(max(float(row.contended_bytes.max()), row.high_contended_bytes) for row in self.filesystems)
        return peak_bytes > _MIN_CONTENDED_SHARE * moved_bytes

    @property
    def verdict(self) -> str:
        """Recommended file system, start delay and contended bytes in one line."""
        best = self.filesystems[0]
        place = int(np.argmin(np.abs(self.delays_s - best.best_delay_s)))
        wait = f"after {duration_text(best.best_delay_s)}" if best.best_delay_s > 0 else "at once"
        text = (
            f"{plain(best.filesystem, _NAME_CHARACTERS)}, {wait}: {volume_text(best.contended_bytes[place])} contended"
        )
        if best.best_delay_s > 0:
            text += f"; without delay {volume_text(best.contended_bytes[0])}"
        return text


# ---- layout


def _rows(view: AdviceView) -> Sequence[DrawnFilesystem]:
    return view.filesystems[:MAX_ROWS]


def _row_in(view: AdviceView) -> float:
    return min(_MAX_ROW_IN, max(_MIN_ROW_IN, _ROWS_IN / len(_rows(view)) - _between_in(view)))


def _between_in(view: AdviceView) -> float:
    """Return the space above each row in inches, for its title and the longest remark of any row."""
    return _BETWEEN_IN + _REMARK_LINE_POINTS / 72 * max(len(_remark_lines(view, row)) for row in _rows(view))


def _remark_lines(view: AdviceView, row: DrawnFilesystem) -> list[str]:
    """Wrap a row's remarks at words; remarks that do not fit end with a complete word."""
    letters = _REMARK_LINE_CHARS[view.has_contention]
    return textwrap.wrap(plain(row.remark, _REMARK_CHARACTERS), letters, max_lines=_MAX_REMARK_LINES, placeholder=" …")


def _legend_in(view: AdviceView) -> float:
    return layers.legend_in(_legend(view)) + 0.1


def _size(view: AdviceView) -> tuple[float, float]:
    count = len(_rows(view))
    rows = count * (_row_in(view) + _between_in(view))
    return _WIDTH_IN, _TOP_IN + _legend_in(view) + rows + _BOTTOM_IN - 0.3


@panels.picture(_size)
def draw(figure: Figure, view: AdviceView) -> None:
    """Draw a row for each file system, the best one first: its expected load, and the contended bytes by delay."""
    _headings(figure, view)
    rows, colors = _rows(view), _colors(view)
    layers.draw_legend_above(figure, _legend(view))
    time_unit = choose_unit(view.step_s * len(rows[0].demand_now), TIMES, "s")
    delay_unit = choose_unit(float(view.delays_s[-1]), TIMES, "s")
    volume_unit = choose_unit(max(float(row.contended_bytes.max()) for row in rows), VOLUMES, "B")
    peak_ratio = max(max(float(row.contended_bytes.max()), row.high_contended_bytes) for row in rows) / volume_unit.size
    sides = _LOADS if view.has_contention else _ALONE
    for number, row in enumerate(rows):
        top = _TOP_IN + _legend_in(view) - 0.3 + number * _row_in(view) + (number + 1) * _between_in(view)
        axes_by_label = {f"time from now [{time_unit.name}]": panels.inch_axes(figure, top, _row_in(view), sides)}
        loads = next(iter(axes_by_label.values()))
        _draw_loads(loads, view, row, colors, time_unit)
        _say_title(loads, view, row, number)
        if view.has_contention:
            delays = panels.inch_axes(figure, top, _row_in(view), _DELAYS)
            _draw_delays(delays, view, row, delay_unit, volume_unit)
            delays.set_ylim(0.0, 1.15 * peak_ratio if peak_ratio > 0 else 1.0)
            axes_by_label[f"delay of the start [{delay_unit.name}]"] = delays
        is_last = number == len(rows) - 1
        for name, axes in axes_by_label.items():
            axes.tick_params(labelbottom=is_last)
            axes.set_xlabel(name if is_last else "")


def _headings(figure: Figure, view: AdviceView) -> None:
    shown_count = len(_rows(view))
    shown_text = (
        f"the best {shown_count} of {len(view.filesystems)} are shown" if shown_count < len(view.filesystems) else ""
    )
    contention_text = "" if view.has_contention else "no contention at any start"
    names = (f"Where to run {plain(view.application, _NAME_CHARACTERS)}", view.at, contention_text, shown_text)
    panels.headings(figure, view.verdict, names, INK)


def _say_title(axes: Axes, view: AdviceView, row: DrawnFilesystem, number: int) -> None:
    """Write a row's rank and name, followed by notes on its numbers."""
    lines = _remark_lines(view, row)
    axes.set_title(f"{number + 1}  {plain(row.filesystem, _NAME_CHARACTERS)}", pad=6 + _REMARK_LINE_POINTS * len(lines))
    if lines:
        axes.annotate(
            "\n".join(lines), (0.0, 1.0), (0, 5), "axes fraction", "offset points", va="bottom", fontsize=NOTE_POINTS,
            color=SOFT,
        )  # fmt: skip


# ---- colors


def _colors(view: AdviceView) -> dict[str, str]:
    """Assign colors to the applications with the most bytes on all file systems together."""
    sums = layers.sum_rates([layer for row in _rows(view) for layer in row.layers])
    return dict(zip(sums, LAYER_COLORS, strict=False))


def _legend(view: AdviceView) -> list[Entry]:
    rows, colors = _rows(view), _colors(view)
    has_others = any(name not in colors for row in rows for name, _ in row.layers)
    has_delays = any(row.best_delay_s > 0 for row in rows)
    entries = [
        line("capacity", color=INK, lw=1.3, ls="--"),
        line("expected load without the application: mean of possible futures", color=INK, lw=0.9, ls=":"),
        area("background", facecolor=layers.NOBODY),
        *layers.make_legend_entries(colors),
        *([area("other known jobs", facecolor=layers.OTHERS)] if has_others else []),
        area("the application, best delay" if has_delays else "the application", facecolor=BLUE),
        area("contended", facecolor=GROUND, edgecolor=BLUE, hatch="//////", lw=0),
    ]
    if has_delays:
        entries += [
            area("the application, without delay", facecolor="none", edgecolor=VERMILION, lw=1.0),
            area("contended, without delay", facecolor=GROUND, edgecolor=VERMILION, hatch=r"\\\\\\", lw=0),
        ]
    return entries


# ---- expected load


def _draw_loads(axes: Axes, view: AdviceView, row: DrawnFilesystem, colors: dict[str, str], clock: Unit) -> None:
    """Draw the expected load of a file system as stacked layers, with the application on top, now and delayed."""
    edges: Reals = np.arange(len(row.demand_now) + 1, dtype=np.float64) * (view.step_s / clock.size)
    background: Reals = np.full(len(row.demand_now), row.background_bytes_per_s)
    load_layers = [(layers.NOBODY, background), *layers.sum_by_color(row.layers, colors)]
    load: Reals = np.sum([rates for _, rates in load_layers], axis=0)
    high = max(float((load + np.maximum(row.demand_now, row.demand_best)).max()), row.capacity_bytes_per_s)
    unit = choose_unit(high, RATES, "B/s")
    layers.fill_layers(axes, edges, load_layers, unit.size)
    _draw_application(axes, edges, load, row, unit.size)
    axes.plot((edges[:-1] + edges[1:]) / 2, row.expected_bytes_per_s / unit.size, color=INK, lw=0.9, ls=":", zorder=3)
    axes.axhline(row.capacity_bytes_per_s / unit.size, color=INK, lw=1.3, ls="--", zorder=3)
    axes.set_xlim(0.0, float(edges[-1]))
    axes.set_ylim(0.0, 1.08 * high / unit.size)
    axes.set_ylabel(f"load [{unit.name}]")


def _draw_application(axes: Axes, edges: Reals, load: Reals, row: DrawnFilesystem, size: float) -> None:
    """Draw the application on top of the load; the part above the capacity is hatched."""
    capacity: Reals = np.full(len(load), row.capacity_bytes_per_s)
    ceiling: Reals = np.maximum(load, capacity)
    now: Reals = load + row.demand_now
    best: Reals = load + row.demand_best
    fill_steps(axes, edges, load / size, np.minimum(best, ceiling) / size, facecolor=BLUE, alpha=0.85)
    _hatch(axes, edges, ceiling / size, np.maximum(best, ceiling) / size, BLUE, "//////")
    if row.best_delay_s > 0:
        _hatch(axes, edges, ceiling / size, np.maximum(now, ceiling) / size, VERMILION, r"\\\\\\")
        # Same thin outline over any background.
        outlined: Reals = np.where(row.demand_now > 0, now, np.nan)
        fill_steps(axes, edges, load / size, outlined / size, facecolor="none", edgecolor=VERMILION, lw=1.0)


def _hatch(axes: Axes, edges: Reals, low: Reals, high: Reals, color: str, hatch: str) -> None:
    if (high > low).any():
        visible: Reals = np.where(high > low, high, np.nan)
        fill_steps(axes, edges, low, visible, facecolor="none", edgecolor=color, hatch=hatch)


def _draw_delays(axes: Axes, view: AdviceView, row: DrawnFilesystem, clock: Unit, volume: Unit) -> None:
    """Draw the contended bytes by delay, and mark the best delay with its uncertainty range."""
    delays, contended = view.delays_s / clock.size, row.contended_bytes / volume.size
    place = int(np.argmin(np.abs(view.delays_s - row.best_delay_s)))
    axes.plot(delays, contended, color=INK, lw=1.1)
    axes.plot(delays[:1], contended[:1], "o", color=VERMILION if place else BLUE, ms=5, zorder=4, clip_on=False)
    low, high = row.low_contended_bytes / volume.size, row.high_contended_bytes / volume.size
    axes.plot([delays[place]] * 2, [low, high], color=BLUE, lw=2.2, alpha=0.5, solid_capstyle="butt", clip_on=False)
    axes.plot(delays[place], contended[place], "o", color=BLUE, ms=6, zorder=4, clip_on=False)
    wait = duration_text(row.best_delay_s) if row.best_delay_s > 0 else "at once"
    axes.set_title(f"{volume_text(row.contended_bytes[place])}, {wait}", fontsize=9, color=BLUE, fontweight="normal")
    axes.set_xlim(0.0, float(delays[-1]) if len(delays) > 1 else 1.0)
    axes.set_ylabel(f"contended bytes [{volume.name}]")

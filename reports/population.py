"""Draw a population: volumes, the groups with the most node hours, periods, and classes over time.

Modeled on Figures 2 to 5 of PEARC'18 (White et al., DOI 10.1145/3219104.3219121), and on Figure 2 of IOSI (Liu et al.,
FAST'14).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from iosig.reports import panels
from iosig.reports.style import BLUE, CLASS_HUES, DIRECTION_HUES, GRAY, GROUND, INK, SKY
from iosig.reports.texts import VOLUMES, choose_unit, format_count, plain, volume_text
from iosig.transforms.arrays import Reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE_IN = (12.0, 11.9)
_ROWS_IN, _HEIGHT_IN = (1.35, 4.05, 6.75, 9.55), 1.75
_LEFT, _RIGHT = (0.065, 0.475), (0.575, 0.975)
#: longest period drawn [min], as in the paper's figures
_MAX_PERIOD_MIN = 90
_NAME_CHARACTERS = 20


@dataclass(frozen=True, slots=True)
class PopulationView:
    """Aggregate data behind the population figure.

    volumes_bytes, node_hours, periods_s: values per run, by direction. names, hours: groups and their node hours, the
    largest first. days: labels of the time steps. day_counts: runs per time step, by direction and class. repeats: runs
    of each configuration by user, the user with the largest job first.
    """

    title: str
    run_count: int
    volumes_bytes: dict[str, Reals]
    node_hours: dict[str, Reals]
    periods_s: dict[str, Reals]
    groups: str
    names: tuple[str, ...]
    hours: tuple[float, ...]
    days: tuple[str, ...]
    day_counts: dict[str, dict[str, Reals]]
    repeats: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Summary of runs, bytes moved, and periodic runs in one line."""
        total_bytes = sum(float(volumes.sum()) for volumes in self.volumes_bytes.values())
        periodic = ", ".join(f"{len(self.periods_s[name]):,} {name}" for name in DIRECTION_HUES)
        return f"{format_count(self.run_count, 'run')} moved {volume_text(total_bytes)}; even and periodic: {periodic}"


@panels.picture(_SIZE_IN)
def draw(figure: Figure, view: PopulationView) -> None:
    """Draw runs and node hours by volume, groups, periods, the classes of both directions, and repeated runs."""
    panels.headings(figure, view.verdict, ("I/O of runs", plain(view.title, 60)), INK)
    first, second, third, fourth = _ROWS_IN
    _draw_volumes(panels.inch_axes(figure, first, _HEIGHT_IN, _LEFT), view, is_hours=False)
    _draw_volumes(panels.inch_axes(figure, first, _HEIGHT_IN, _RIGHT), view, is_hours=True)
    _draw_groups(panels.inch_axes(figure, second, _HEIGHT_IN, _LEFT), view)
    _draw_periods(panels.inch_axes(figure, second, _HEIGHT_IN, _RIGHT), view)
    for name, sides in zip(DIRECTION_HUES, (_LEFT, _RIGHT), strict=True):
        _draw_days(panels.inch_axes(figure, third, _HEIGHT_IN, sides), view, name)
    _draw_repeats(panels.inch_axes(figure, fourth, _HEIGHT_IN, (_LEFT[0], _RIGHT[1])), view)
    _legend(figure)


def _legend(figure: Figure) -> None:
    for hues, top_in in ((DIRECTION_HUES, _ROWS_IN[0] - 0.45), (CLASS_HUES, _ROWS_IN[2] + _HEIGHT_IN + 0.4)):
        entries = [panels.area(name, facecolor=color) for name, color in hues.items()]
        panels.draw_legend(figure, entries, (0.06, top_in), ncols=len(entries), handlelength=1.4, columnspacing=1.4)


def _draw_volumes(axes: Axes, view: PopulationView, *, is_hours: bool) -> None:
    """Draw the number of runs, or their node hours, in bins of moved bytes that double (Figure 2)."""
    positive = [volumes[volumes >= 1.0] for volumes in view.volumes_bytes.values()]
    powers = np.log2(np.concatenate([*positive, np.ones(1)]))
    low = int(np.floor(powers[powers > 0].min(initial=powers.max())))
    edges = np.arange(low, max(int(np.floor(powers.max())) + 2, low + 2))
    for place, (name, color) in enumerate(DIRECTION_HUES.items()):
        volumes = view.volumes_bytes[name]
        is_known = volumes >= 1.0
        weights = view.node_hours[name][is_known] if is_hours else None
        heights, _ = np.histogram(np.log2(volumes[is_known]), edges, weights=weights)
        axes.bar(edges[:-1] + 0.1 + 0.4 * place, heights, 0.4, align="edge", color=color)
    ticks = edges[:: -(-len(edges) // 8)]
    axes.set_xticks(ticks, [_volume_text(2.0**power) for power in ticks], fontsize=8)
    axes.set_ylabel("node hours" if is_hours else "runs", fontsize=9)
    axes.set_title("Node hours by volume" if is_hours else "Runs by volume", fontsize=10)
    _finish(axes)


def _volume_text(volume: float) -> str:
    unit = choose_unit(volume, VOLUMES, "B")
    return f"{volume / unit.size:.0f} {unit.name}"


def _draw_groups(axes: Axes, view: PopulationView) -> None:
    """Draw the groups with the most node hours among those with I/O (Figure 3)."""
    places = np.arange(len(view.names))
    axes.barh(places, view.hours, 0.7, color=GRAY)
    axes.set_yticks(places, [plain(name, _NAME_CHARACTERS) for name in view.names], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("node hours", fontsize=9)
    axes.set_title(f"{view.groups} with I/O, by node hours", fontsize=10)
    _finish(axes)


def _draw_periods(axes: Axes, view: PopulationView) -> None:
    """Draw the periods of runs that do their I/O evenly, up to an hour and a half (Figures 4 and 5)."""
    longest = max((float(periods.max(initial=0.0)) for periods in view.periods_s.values()), default=0.0) / 60
    end = min(max(longest * 1.05, 1.0), _MAX_PERIOD_MIN)
    edges = np.linspace(0.0, end, 46)
    beyond_count = 0
    for name, color in DIRECTION_HUES.items():
        minutes = view.periods_s[name] / 60
        beyond_count += int((minutes > end).sum())
        axes.hist(minutes, edges.tolist(), histtype="stepfilled", color=color, alpha=0.55, edgecolor=color)
    axes.set_xlim(0.0, end)
    axes.set_xlabel("period [min]", fontsize=9)
    axes.set_ylabel("runs", fontsize=9)
    beyond = f", {beyond_count:,} longer" if beyond_count else ""
    axes.set_title(f"Periods of runs with even I/O{beyond}", fontsize=10)
    _finish(axes)


def _draw_days(axes: Axes, view: PopulationView, direction: str) -> None:
    """Draw the number of one direction's runs per time step, stacked by class."""
    counts = view.day_counts[direction]
    places = np.arange(len(view.days))
    below: Reals = np.zeros(len(places))
    for name, color in CLASS_HUES.items():
        heights = counts.get(name, np.zeros(len(places)))
        axes.bar(places, heights, 0.85, bottom=below, color=color)
        below = below + heights
    step = max(len(places) // 6, 1)
    axes.set_xticks(places[::step], view.days[::step], fontsize=8)
    axes.set_ylabel("runs", fontsize=9)
    axes.set_title(f"Classes of {direction}s over time", fontsize=10)
    _finish(axes)


def _draw_repeats(axes: Axes, view: PopulationView) -> None:
    """Draw a bar per user with large jobs: the runs of each configuration, most frequent first (IOSI, Figure 2)."""
    axes.set_title("Runs of the users with the largest jobs, by identical configuration", fontsize=10)
    if not view.repeats:
        panels.say(axes, "no runs with user and node count")
        return
    for place, counts in enumerate(view.repeats.values()):
        left = np.cumsum((0, *counts[:-1]))
        colors = [BLUE if number % 2 == 0 else SKY for number in range(len(counts))]
        axes.barh(np.full(len(counts), place), counts, 0.7, left=left, color=colors, edgecolor=GROUND, linewidth=0.5)
    axes.set_yticks(np.arange(len(view.repeats)), [plain(name, _NAME_CHARACTERS) for name in view.repeats], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("runs", fontsize=9)
    _finish(axes)


def _finish(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axis = axes.xaxis if axes.yaxis_inverted() else axes.yaxis
    axis.set_major_locator(MaxNLocator(5, integer=True))
    axes.tick_params(labelsize=8, colors=INK)

"""Draw the population map: monthly volume against burstiness; size encodes runs, color the class.

Applications on the right fill the disks; those at the top cause contention. The axes are bytes per month and the
peak-to-average ratio of the signature, which is 1 for a constant rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from iosig.reports import panels
from iosig.reports.panels import line
from iosig.reports.style import CLASS_HUES, GROUND, INK, NOTE_POINTS, PALE, SOFT, WIDTH_IN
from iosig.reports.texts import format_count, plain, volume_text, volume_tick_text
from iosig.reports.wall.point_labels import name_points
from iosig.transforms.arrays import Reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE_IN, _TOP_IN, _PANEL_IN = (WIDTH_IN, 7.0), 1.35, 4.95
_SIDES = (0.08, 0.975)
#: diameter of the smallest mark [points]
#: diameter of the largest mark [points]
#: number of runs from which on a mark has the largest diameter
_SMALLEST, _LARGEST, _MANY_RUNS = 5.0, 24.0, 1000.0
#: number of applications that are named for their volume
#: number of applications that are named for their burstiness
#: maximum length of a name
_NAMED, _NAMED_BURSTY, _NAME_CHARACTERS = 10, 3, 30


@dataclass(frozen=True, slots=True)
class DrawnApplication:
    """Application with its bytes per month in all directions, and the burstiness of its main direction."""

    name: str
    month_bytes: float
    burstiness: float
    run_count: int
    label: str | None


@dataclass(frozen=True, slots=True)
class MapView:
    """Data behind the map: applications, the number of unknown ones, and the days behind monthly values."""

    title: str
    applications: Sequence[DrawnApplication]
    unknown_count: int
    day_count: float

    @property
    def finding(self) -> str:
        """Headline with the number of applications that move half of all bytes, and the largest one."""
        drawn = self._drawn
        if not drawn:
            return "No application has a signature with I/O"
        moved_bytes = np.array([application.month_bytes for application in drawn])
        shares = np.cumsum(moved_bytes) / moved_bytes.sum()
        top_count = int(np.searchsorted(shares, 0.5)) + 1
        top_user = f"most by {plain(drawn[0].name, _NAME_CHARACTERS)}, {volume_text(drawn[0].month_bytes)} a month"
        if len(drawn) == 1:
            return f"One application has I/O: {top_user}"
        verb = "moves" if top_count == 1 else "move"
        return f"{top_count} of {format_count(len(drawn), 'application')} {verb} half of all bytes; {top_user}"

    @property
    def _drawn(self) -> list[DrawnApplication]:
        """The applications that have a place on the map, in order of decreasing bytes."""
        drawable = [
            application
            for application in self.applications
            if application.month_bytes > 0 and np.isfinite(application.burstiness)
        ]
        return sorted(drawable, key=lambda application: (-application.month_bytes, application.name))


@panels.picture(_SIZE_IN)
def draw(figure: Figure, view: MapView) -> None:
    """Draw a mark for each application, and name those that move the most bytes or are the most bursty."""
    without = f"{format_count(view.unknown_count, 'application')} without a signature not shown" * (
        view.unknown_count > 0
    )
    since = f"a month as in the {view.day_count:.3g} days of runs"
    panels.headings(figure, view.finding, ("Population map", plain(view.title, 60), since, without), INK)
    axes = panels.inch_axes(figure, _TOP_IN, _PANEL_IN, _SIDES)
    applications = view._drawn
    if not applications:
        panels.say(axes, "no data")
        return
    _draw_points(axes, applications)
    _legend(figure, axes, applications)


def _draw_points(axes: Axes, applications: Sequence[DrawnApplication]) -> None:
    x, y = (
        np.array([getattr(application, name) for application in applications]) for name in ("month_bytes", "burstiness")
    )
    diameters = _diameters(np.array([application.run_count for application in applications], dtype=np.float64))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(float(x.min()) / 2, float(x.max()) * 2.5)
    axes.set_ylim(max(float(y.min()) / 1.5, 0.8), float(y.max()) * 1.8)
    _label_axes(axes)
    # Draw large marks first, so that they do not hide small ones.
    order = np.argsort(-diameters, kind="stable")
    colors = [CLASS_HUES.get(applications[place].label or "", PALE) for place in order]
    axes.scatter(
        x[order], y[order], s=np.square(diameters[order]), c=colors, alpha=0.75, edgecolors=GROUND, linewidths=0.8,
        zorder=3,
    )  # fmt: skip
    dots = axes.get_figure().dpi / 72  # type: ignore[union-attr]
    # name the applications with the most bytes first, then the most bursty ones
    first = np.concatenate([np.arange(len(x))[:_NAMED], np.argsort(-y, kind="stable")[:_NAMED_BURSTY]])
    unique_indices = np.sort(np.unique(first, return_index=True)[1])
    label_order = np.concatenate([first[unique_indices], np.setdiff1d(np.arange(len(x)), first)])
    names = [plain(applications[place].name, _NAME_CHARACTERS) for place in label_order[: len(unique_indices)]]
    name_points(axes, x[label_order], y[label_order], diameters[label_order] * dots / 2, names)


def _diameters(run_counts: Reals) -> Reals:
    """Return marker diameters [points]; areas grow with the square root of the run counts, which vary widely."""
    share = np.clip(np.maximum(run_counts, 1.0) / _MANY_RUNS, 0.0, 1.0) ** 0.25
    return np.maximum(_SMALLEST, _LARGEST * share)


def _label_axes(axes: Axes) -> None:
    panels.label_decades(axes.xaxis, 12, volume_tick_text)
    panels.label_decades(axes.yaxis, 12, "{:g}".format)
    axes.grid(zorder=0)
    axes.set_axisbelow(True)
    axes.set_xlabel("bytes a month")
    axes.set_ylabel("burstiness: peak rate over mean rate of a run")


def _legend(figure: Figure, axes: Axes, applications: Sequence[DrawnApplication]) -> None:
    """Draw the legend of the classes that occur and of marker sizes."""
    labels = {application.label for application in applications}
    marks = [
        line(name, ls="", marker="o", ms=8, mfc=color, mec=GROUND)
        for name, color in CLASS_HUES.items()
        if name in labels
    ]
    if labels - set(CLASS_HUES):
        marks.append(line("no class", ls="", marker="o", ms=8, mfc=PALE, mec=GROUND))
    for count in (1, 30, int(_MANY_RUNS)):
        size = float(_diameters(np.array([float(count)]))[0])
        label = f"{format_count(count, 'run')}{' or more' * (count >= _MANY_RUNS)}"
        marks.append(line(label, ls="", marker="o", ms=size, mfc="none", mec=SOFT))
    panels.draw_legend(
        figure, marks, (_SIDES[0] - 0.012, 1.08), loc="center left", ncols=len(marks), fontsize=NOTE_POINTS,
        handletextpad=0.4, columnspacing=1.3, handlelength=2.8,
    )  # fmt: skip

"""Draw the checkpoint clock: the period and volume of applications' bursts, and the pairs with coinciding bursts.

Both axes are logarithmic, so a constant mean rate is a rising line. Applications on one line load the file system
equally in the long run; those further to the right do so in rarer and larger bursts. A curve connects two applications
with concurrent runs, and is thicker the more of their bursts are expected to coincide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from iosig.reports import panels
from iosig.reports.style import FAINT, GROUND, HUES, INK, NOTE_POINTS, SOFT, VERMILION, WIDTH_IN
from iosig.reports.texts import format_count, plain, rate_text, volume_tick_text
from iosig.reports.wall.point_labels import name_points
from iosig.transforms.arrays import Reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE_IN, _TOP_IN, _PANEL_IN = (WIDTH_IN, 6.8), 1.35, 4.75
_SIDES = (0.08, 0.975)
#: red is reserved for coinciding bursts
_HUES = tuple(hue for hue in HUES if hue != VERMILION)
_MAX_NAMED, _MAX_NAME_CHARS = 14, 30
#: maximum number of pairs drawn
#: maximum number of pairs listed in the panel's corner
_MAX_MEETINGS, _MAX_LISTED_MEETINGS = 30, 5
_MARK_POINTS = 9.0
#: range of powers of ten for which rates are labeled
_POWERS = (-30, 31)


@dataclass(frozen=True, slots=True)
class DrawnRhythm:
    """An application's bursts on a file system: one every period_s, of bytes_per_period."""

    name: str
    filesystem: str
    period_s: float
    bytes_per_period: float


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two rhythms, given by index, and the expected number of coinciding bursts while both applications ran."""

    first: int
    second: int
    expected_count: float


@dataclass(frozen=True, slots=True)
class ClockView:
    """Data behind the checkpoint clock; when: the period of overlapping runs, in words."""

    title: str
    when: str
    rhythms: Sequence[DrawnRhythm]
    meetings: Sequence[Meeting]
    silent_count: int = 0

    @property
    def finding(self) -> str:
        """Headline with the pair that has the most coinciding bursts, if any."""
        if not self.rhythms:
            return "No application has a period"
        beat = format_count(len(self.rhythms), "application")
        if not self.meetings:
            return f"{beat} with a period; none of their bursts overlapped {self.when}"
        top_meeting = max(self.meetings, key=lambda meeting: meeting.expected_count)
        names = " and ".join(
            plain(self.rhythms[place].name, _MAX_NAME_CHARS) for place in (top_meeting.first, top_meeting.second)
        )
        return f"Bursts of {names} overlap most: {_times(top_meeting.expected_count)} {self.when}"


def _times(count: float) -> str:
    return f"about {format_count(round(count), 'time')}" if count >= 1 else "less than once"


@panels.picture(_SIZE_IN)
def draw(figure: Figure, view: ClockView) -> None:
    """Draw a mark for each rhythm and curves between pairs with coinciding bursts."""
    silent_note = f"{format_count(view.silent_count, 'application')} without a period not shown" * (
        view.silent_count > 0
    )
    subtitles = ("Checkpoint clock", plain(view.title, 60), f"red: bursts that overlap {view.when}", silent_note)
    panels.headings(figure, view.finding, subtitles, INK)
    axes = panels.inch_axes(figure, _TOP_IN, _PANEL_IN, _SIDES)
    if not view.rhythms:
        panels.say(axes, "no period detected")
        return
    x, y = (np.array([getattr(rhythm, name) for rhythm in view.rhythms]) for name in ("period_s", "bytes_per_period"))
    _label_axes(axes, x, y)
    _draw_rates(axes)
    meetings = sorted(view.meetings, key=lambda meeting: -meeting.expected_count)[:_MAX_MEETINGS]
    _draw_meetings(axes, x, y, meetings)
    _draw_marks(axes, view, x, y)
    dots = figure.dpi / 72
    meet = {place for meeting in meetings for place in (meeting.first, meeting.second)}
    order = sorted(range(len(x)), key=lambda place: (place not in meet, -y[place] / x[place], view.rhythms[place].name))
    names = [plain(view.rhythms[place].name, _MAX_NAME_CHARS) for place in order[:_MAX_NAMED]]
    name_points(axes, x[order], y[order], np.full(len(x), _MARK_POINTS * dots / 2), names)
    _tell_meetings(axes, view, meetings)


def _label_axes(axes: Axes, x: Reals, y: Reals) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(float(x.min()) / 2, float(x.max()) * 2.5)
    axes.set_ylim(float(y.min()) / 4, float(y.max()) * 4)
    panels.label_times(axes.xaxis, *axes.get_xlim())
    panels.label_decades(axes.yaxis, 8, volume_tick_text)
    axes.set_xlabel("period: from one burst to the next")
    axes.set_ylabel("bytes a burst")


def _draw_rates(axes: Axes) -> None:
    """Draw lines of constant mean rate, a decade apart, labeled at the panel's edge."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    first, last = (int(np.floor(np.log10(up) - np.log10(across))) for up, across in ((low, right), (high, left)))
    for power in range(max(first, _POWERS[0]), min(last + 2, _POWERS[1]), max(1, (last - first) // 12)):
        rate = 10.0**power
        axes.plot([left, right], [rate * left, rate * right], color=FAINT, lw=1.0, zorder=0.5)
        place = (right, rate * right) if rate * right < high else (high / rate, high)
        if left * 1.3 < place[0] and low * 1.3 < place[1]:
            inward = (-4, -3) if place[1] < high else (-6, -11)
            axes.annotate(
                rate_text(rate * (1 + 1e-9)), place, inward, textcoords="offset points", ha="right", va="top",
                fontsize=NOTE_POINTS - 0.5, color=SOFT, annotation_clip=True, zorder=0.6,
            )  # fmt: skip


def _draw_meetings(axes: Axes, x: Reals, y: Reals, meetings: Sequence[Meeting]) -> None:
    from matplotlib.patches import FancyArrowPatch

    max_count = max((meeting.expected_count for meeting in meetings), default=1.0)
    for meeting in meetings:
        ends = [(x[place], y[place]) for place in (meeting.first, meeting.second)]
        width = 0.8 + 3.2 * np.sqrt(meeting.expected_count / max_count)
        axes.add_patch(
            FancyArrowPatch(
                *ends, arrowstyle="-", connectionstyle="arc3,rad=0.18", color=VERMILION, lw=width, alpha=0.55, zorder=2
            )
        )


def _draw_marks(axes: Axes, view: ClockView, x: Reals, y: Reals) -> None:
    """Draw a mark for each rhythm, in its file system's color."""
    names = sorted({rhythm.filesystem for rhythm in view.rhythms})
    hues = {name: _HUES[place % len(_HUES)] for place, name in enumerate(names)}
    for name in names:
        chosen = np.array([rhythm.filesystem == name for rhythm in view.rhythms])
        axes.plot(
            x[chosen], y[chosen], "o", ms=_MARK_POINTS, color=hues[name], mec=GROUND, mew=0.8, zorder=3,
            label=plain(name, 24),
        )  # fmt: skip
    panels.legend_above(axes)


def _tell_meetings(axes: Axes, view: ClockView, meetings: Sequence[Meeting]) -> None:
    """List the pairs with the most coinciding bursts in the corner with the fewest marks."""
    lines = []
    for meeting in meetings[:_MAX_LISTED_MEETINGS]:
        names = " and ".join(plain(view.rhythms[place].name, 24) for place in (meeting.first, meeting.second))
        lines.append(f"{names}: {_times(meeting.expected_count)}")
    if lines:
        more = len(view.meetings) - len(lines)
        lines += [f"and {format_count(more, 'other pair')}"] * (more > 0)
        axes.text(
            0.996, 0.03, "\n".join(lines), transform=axes.transAxes, ha="right", va="bottom", fontsize=NOTE_POINTS,
            color=VERMILION, linespacing=1.5, zorder=5, bbox={"fc": GROUND, "ec": "none", "alpha": 0.95, "pad": 4},
        )  # fmt: skip

"""Draw the changes between two releases: volume, bursts and period of each signature, before and after.

Each row is an application in one direction: a ring for the old value, a disk for the new one, connected by a line. The
largest changes come first; new and removed signatures have one end only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from iosig.reports import panels
from iosig.reports.style import BLUE, FAINT, GROUND, INK, NOTE_POINTS, SOFT, VERMILION, WIDTH_IN
from iosig.reports.texts import duration_text, format_count, plain, volume_tick_text
from iosig.transforms.arrays import Reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TOP_IN, _ROW_IN, _MIN_ROWS, _FOOT_IN = 1.45, 0.27, 3, 0.62
_PANELS = ((0.24, 0.475), (0.5, 0.715), (0.74, 0.975))
#: maximum number of rows drawn
#: maximum length of a name
MAX_ROWS, _MAX_NAME_CHARS = 30, 34
#: minimum relative difference of a changed value
MIN_CHANGE_RATIO = 0.05


@dataclass(frozen=True, slots=True)
class Pair:
    """Old and new value of one quantity; NaN where missing."""

    before: float
    after: float

    @property
    def factor(self) -> float:
        """Ratio of the larger to the smaller value: 1 for no change, infinity if only one value exists."""
        values = [value for value in (self.before, self.after) if not math.isnan(value)]
        if len(values) < 2:
            return math.inf if values else 1.0
        low, high = sorted(values)
        return 1.0 if low == high else high / low if low > 0 else math.inf


@dataclass(frozen=True, slots=True)
class DrawnChange:
    """One signature in two releases: its bytes, bursts and period [s]."""

    name: str
    volume_bytes: Pair
    burst_count: Pair
    period_s: Pair

    @property
    def is_changed(self) -> bool:
        """Whether any of the three quantities differs significantly."""
        return max(quantity.factor for quantity in self.quantities) > 1 + MIN_CHANGE_RATIO

    @property
    def quantities(self) -> tuple[Pair, Pair, Pair]:
        """Volume, bursts and period."""
        return self.volume_bytes, self.burst_count, self.period_s

    @property
    def is_new(self) -> bool:
        """Whether only the later release has it."""
        return math.isnan(self.volume_bytes.before)

    @property
    def is_gone(self) -> bool:
        """Whether only the earlier release has it."""
        return math.isnan(self.volume_bytes.after)


@dataclass(frozen=True, slots=True)
class ChangesView:
    """Data behind the figure: two release names, all changed signatures, and the total number of signatures."""

    before: str
    after: str
    changes: Sequence[DrawnChange]
    signature_count: int

    @property
    def finding(self) -> str:
        """Headline with the number of changed signatures and the largest change."""
        changed = self.shown
        if not changed:
            return f"No change in {format_count(self.signature_count, 'signature')}"
        text = f"{len(changed)} of {format_count(self.signature_count, 'signature')} changed"
        first = changed[0]
        name = plain(first.name, _MAX_NAME_CHARS)
        if first.is_new or first.is_gone:
            return f"{text}: {name} is {'new' if first.is_new else 'gone'}"
        return f"{text}: largest in {name}, {_describe_largest_change(first)}"

    @property
    def shown(self) -> list[DrawnChange]:
        """Changed signatures by decreasing size of the change; new and removed ones come last."""
        changed = [change for change in self.changes if change.is_changed]
        return sorted(changed, key=lambda change: (change.is_new or change.is_gone, -_size(change), change.name))


def _size(change: DrawnChange) -> float:
    """Return the sum of a change's log ratios, each capped at a factor of 100."""
    return sum(math.log(min(quantity.factor, 100.0)) for quantity in change.quantities)


def _describe_largest_change(change: DrawnChange) -> str:
    """Describe a signature's largest change in words."""
    names = ("bytes", "bursts", "period")
    place = max(range(3), key=lambda number: min(change.quantities[number].factor, 1e9))
    quantity, name = change.quantities[place], names[place]
    if math.isnan(quantity.before) or quantity.before == 0:
        return f"now with a {name}" if name == "period" else f"{name} where there were none"
    if math.isnan(quantity.after) or quantity.after == 0:
        return f"without {'a period' if name == 'period' else name} now"
    ratio = quantity.after / quantity.before
    return f"{name} \u00d7 {ratio:.3g}"


# ---- layout


def _rows(view: ChangesView) -> list[DrawnChange]:
    return view.shown[:MAX_ROWS]


def _rows_in(view: ChangesView) -> float:
    return _ROW_IN * max(len(_rows(view)), _MIN_ROWS)


def _size_in(view: ChangesView) -> tuple[float, float]:
    return WIDTH_IN, _TOP_IN + _rows_in(view) + _FOOT_IN


@panels.picture(_size_in)
def draw(figure: Figure, view: ChangesView) -> None:
    """Draw a row for each changed signature, in panels for volume, bursts and period."""
    rows = _rows(view)
    more = f"the {len(rows)} largest of {len(view.shown)}" * (len(view.shown) > len(rows))
    between = f"{plain(view.before, 40)} (rings) to {plain(view.after, 40)} (disks)"
    panels.headings(figure, view.finding, ("What changed", between, more), INK)
    if not rows:
        panels.say(panels.inch_axes(figure, _TOP_IN, _rows_in(view), (0.08, 0.975)), "all signatures are unchanged")
        return
    for number, (title, label, text) in enumerate(_QUANTITIES):
        axes = panels.inch_axes(figure, _TOP_IN, _rows_in(view), _PANELS[number])
        axes.set_title(title)
        _draw_pairs(axes, [change.quantities[number] for change in rows], text)
        axes.set_xlabel(label)
        if not number:
            axes.set_yticks(range(len(rows)), [_row_text(change) for change in rows])
        axes.tick_params(axis="y", length=0, labelleft=not number)


def _row_text(change: DrawnChange) -> str:
    suffix = " (new)" if change.is_new else " (gone)" if change.is_gone else ""
    return plain(change.name, _MAX_NAME_CHARS) + suffix


#: title, axis label and tick format of each panel
_QUANTITIES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("Volume", "bytes a run", volume_tick_text),
    ("Bursts", "bursts a run", lambda value: f"{value:g}"),
    ("Period", "from one burst to the next", duration_text),
)


def _draw_pairs(axes: Axes, pairs: Sequence[Pair], text: Callable[[float], str]) -> None:
    """Draw one row per pair: increases in red, decreases in blue, unchanged values in gray."""
    before, after = (np.array([getattr(pair, name) for pair in pairs]) for name in ("before", "after"))
    rows = np.arange(len(pairs))
    positive = np.concatenate([before, after])
    positive = positive[np.isfinite(positive) & (positive > 0)]
    axes.set_ylim(len(pairs) - 0.4, -0.6)
    axes.set_yticks(rows, [""] * len(rows))
    axes.grid(axis="y", color=FAINT)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    if not len(positive):
        axes.set_xticks([])
        axes.text(0.5, 0.5, "none", transform=axes.transAxes, ha="center", va="center", color=SOFT)
        return
    _scale(axes, float(positive.min()), float(positive.max()), text)
    is_changed = np.array([pair.factor > 1 + MIN_CHANGE_RATIO for pair in pairs])
    is_more = np.nan_to_num(after) > np.nan_to_num(before)
    for chosen, color in ((~is_changed, SOFT), (is_changed & is_more, VERMILION), (is_changed & ~is_more, BLUE)):
        _draw_rows(axes, rows[chosen], before[chosen], after[chosen], color)


def _draw_rows(axes: Axes, rows: Reals, before: Reals, after: Reals, color: str) -> None:
    axes.hlines(rows, before, after, color=color, lw=2.4, alpha=0.6, zorder=2)
    axes.plot(before, rows, "o", ms=6.5, mfc=GROUND, mec=color, mew=1.5, ls="", zorder=3)
    axes.plot(after, rows, "o", ms=6.5, mfc=color, mec=color, mew=1.5, ls="", zorder=4)


def _scale(axes: Axes, low: float, high: float, text: Callable[[float], str]) -> None:
    """Use a logarithmic axis for a wide range of values, with readable labels."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    if high > 20 * low:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.6, high * 1.6)
        axes.xaxis.set_major_locator(LogLocator(numticks=4))
    else:
        axes.set_xlim(0, high * 1.12)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=high <= 10 and float(high).is_integer()))
    panels.label_values(axes.xaxis, lambda value: text(value) if value else "0")
    axes.tick_params(axis="x", labelsize=NOTE_POINTS)

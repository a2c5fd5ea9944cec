"""Draw the storage calendar: the traffic of a file system, one row per day and one column per minute, log-scaled.

Daily jobs appear as vertical lines, maintenance days as rows, and missing polls are hatched. Bars on the right show the
bytes of each day, and the panel below shows the mean of each hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from iosig.reports import panels
from iosig.reports.style import BLUE, FAINT, GRAY, INK, NOTE_POINTS, SOFT, WIDTH_IN, shades
from iosig.reports.texts import RATES, VOLUMES, choose_unit, format_count, plain, rate_text, volume_text
from iosig.transforms.arrays import Reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Locator

MINUTES = 1440
_TOP_IN, _BETWEEN_IN, _FOOT_IN, _HOURS_IN = 1.2, 0.62, 0.62, 0.7
#: height of a day's row [inches]
#: minimum height of all rows together [inches]
#: maximum height of all rows together [inches]
_ROW_IN, _MIN_ROWS_IN, _MAX_ROWS_IN = 0.22, 1.1, 4.6
_SIDES, _DAY_SIDES, _SCALE_SIDES = (0.1, 0.825), (0.84, 0.975), (0.6, 0.825)
_DID = {"write": "written", "read": "read"}
#: number of decades in the color scale; lower rates have the lowest color
_DECADES = 4.0
_MAX_NAME_CHARS = 40
#: minimum ratio of an hour's rate to the mean for the hour to be highlighted
_MIN_HOUR_RATIO = 1.3


@dataclass(frozen=True, slots=True)
class DayRates:
    """Mean rates of one direction per minute (days, 1440) [B/s], NaN where not polled.

    polled_bytes (days): bytes that the polls of each day cover; None if each minute was polled completely or not at
    all. In a half-polled minute, both the rate and the bytes are those of the polled half.
    """

    direction: str
    bytes_per_s: Reals
    polled_bytes: Reals | None = None

    @property
    def day_bytes(self) -> Reals:
        """Bytes of each day (n), counting polled time only."""
        return 60.0 * np.nansum(self.bytes_per_s, axis=1) if self.polled_bytes is None else self.polled_bytes

    @property
    def hour_bytes_per_s(self) -> Reals:
        """The mean rate in each hour of the day (24); NaN if that hour was never polled."""
        hours = self.bytes_per_s.reshape(-1, 24, 60).transpose(1, 0, 2).reshape(24, -1)
        is_known = np.isfinite(hours)
        counts = is_known.sum(axis=1)
        total = np.where(is_known, hours, 0.0).sum(axis=1)
        means: Reals = np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
        return means


@dataclass(frozen=True, slots=True)
class CalendarView:
    """Calendar data of one file system: consecutive days, and one or two directions."""

    filesystem: str
    days: Sequence[date]
    rates: Sequence[DayRates]

    @property
    def moved_bytes(self) -> float:
        """Total bytes of all days and directions."""
        return float(sum(day_rates.day_bytes.sum() for day_rates in self.rates))

    @property
    def missing_ratio(self) -> float:
        """The fraction of all minutes that were not polled."""
        missing = [np.isnan(day_rates.bytes_per_s).mean() for day_rates in self.rates]
        return float(np.mean(missing)) if missing else 1.0

    @property
    def finding(self) -> str:
        """Headline with the total traffic and the busiest hour."""
        name = plain(self.filesystem, _MAX_NAME_CHARS)
        if not self.moved_bytes > 0:
            return f"{name}: no traffic in {format_count(len(self.days), 'day')}"
        hours = np.nansum([day_rates.hour_bytes_per_s for day_rates in self.rates], axis=0)
        hour = int(np.argmax(hours))
        known_hours = hours[np.isfinite(np.mean([day_rates.hour_bytes_per_s for day_rates in self.rates], axis=0))]
        text = f"{name} moved {volume_text(self.moved_bytes)} in {format_count(len(self.days), 'day')}"
        ratio = hours[hour] / np.mean(known_hours) if len(known_hours) > 1 else 1.0
        if ratio < _MIN_HOUR_RATIO:
            return f"{text}, evenly over the hours"
        return f"{text}, most from {hour:02d} to {hour + 1:02d} h UTC, {ratio:.2g} times the mean"


# ---- layout


def _rows_in(view: CalendarView) -> float:
    return float(np.clip(_ROW_IN * len(view.days), _MIN_ROWS_IN, _MAX_ROWS_IN))


def _panel_in(view: CalendarView) -> float:
    return _rows_in(view) + 0.08 + _HOURS_IN


def _size(view: CalendarView) -> tuple[float, float]:
    count = max(len(view.rates), 1)
    return WIDTH_IN, _TOP_IN + count * _panel_in(view) + (count - 1) * _BETWEEN_IN + _FOOT_IN


@panels.picture(_size)
def draw(figure: Figure, view: CalendarView) -> None:
    """Draw the calendar of each direction: its minute heat map, the bytes per day, and the mean per hour."""
    span = f"{view.days[0]:%Y-%m-%d} to {view.days[-1]:%Y-%m-%d}" if view.days else "no day"
    subtitles = ("Storage calendar", span, f"{view.missing_ratio:.1%} of the minutes not polled (hatched)")
    panels.headings(figure, view.finding, subtitles, INK)
    high = max((float(np.nanmax(day_rates.bytes_per_s, initial=0.0)) for day_rates in view.rates), default=0.0)
    low = high / 10**_DECADES
    for number, day_rates in enumerate(view.rates):
        top = _TOP_IN + number * (_panel_in(view) + _BETWEEN_IN)
        axes = panels.inch_axes(figure, top, _rows_in(view), _SIDES)
        _draw_days(axes, view.days, day_rates, (low, high))
        _draw_day_sums(panels.inch_axes(figure, top, _rows_in(view), _DAY_SIDES), day_rates)
        hours = panels.inch_axes(figure, top + _rows_in(view) + 0.08, _HOURS_IN, _SIDES)
        _draw_hours(hours, day_rates, is_last=number == len(view.rates) - 1)
    if high > 0:
        _draw_scale(panels.inch_axes(figure, _TOP_IN - 0.24, 0.09, _SCALE_SIDES), low, high)


def _draw_days(axes: Axes, days: Sequence[date], day_rates: DayRates, ends: tuple[float, float]) -> None:
    """Draw a heat map row for each day, log-scaled; missing polls show the hatched background."""
    verb = _DID.get(day_rates.direction, "moved")
    axes.set_title(f"{verb.capitalize()}: {volume_text(float(day_rates.day_bytes.sum()))}")
    axes.patch.set(facecolor=FAINT, hatch="//////", edgecolor=GRAY, linewidth=0)
    image = _image(day_rates.bytes_per_s, *ends)
    axes.imshow(image, aspect="auto", extent=(0, 24, len(days), 0), interpolation="nearest", zorder=1)
    step = max(1, -(-len(days) // max(int(axes.get_window_extent().height / 22), 1)))
    shown_days = range(0, len(days), step)
    axes.set_yticks([place + 0.5 for place in shown_days], [f"{days[place]:%a %m-%d}" for place in shown_days])
    axes.set_xlim(0, 24)
    axes.set_xticks(range(0, 25, 3))
    axes.tick_params(labelbottom=False, length=2)
    axes.tick_params(axis="y", length=0)


def _image(bytes_per_s: Reals, low: float, high: float) -> Reals:
    """Return an RGBA image (days, minutes, 4), transparent for missing data."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.log(bytes_per_s / low) / np.log(high / low) if high > 0 else np.zeros_like(bytes_per_s)
    is_known = np.isfinite(bytes_per_s)
    levels = np.where(is_known, np.clip(np.nan_to_num(share, neginf=0.0), 0.0, 1.0), 0.0)
    table = shades(np.linspace(0.0, 1.0, 256))
    image = np.ones((*bytes_per_s.shape, 4))
    image[..., :3] = table[np.rint(255 * levels).astype(np.int64)]
    image[..., 3] = is_known
    return image


def _draw_day_sums(axes: Axes, day_rates: DayRates) -> None:
    """Draw the bytes of each day as bars next to its row."""
    sums = day_rates.day_bytes
    unit = choose_unit(float(sums.max(initial=0.0)), VOLUMES, "B")
    axes.barh(np.arange(len(sums)) + 0.5, sums / unit.size, 0.8, color=BLUE)
    axes.set_ylim(len(sums), 0)
    axes.set_yticks([])
    axes.set_xlim(0, None if sums.any() else 1)
    axes.xaxis.set_major_locator(_few_ticks())
    axes.tick_params(labelsize=NOTE_POINTS, length=2)
    axes.set_xlabel(f"a day [{unit.name}]", fontsize=NOTE_POINTS)


def _draw_hours(axes: Axes, day_rates: DayRates, *, is_last: bool) -> None:
    """Draw the mean rate in each hour of the day below that hour's columns."""
    means = day_rates.hour_bytes_per_s
    unit = choose_unit(float(np.nanmax(means, initial=0.0)), RATES, "B/s")
    axes.stairs(np.nan_to_num(means) / unit.size, np.arange(25), fill=True, color=BLUE, alpha=0.3)
    axes.stairs(means / unit.size, np.arange(25), baseline=None, color=BLUE, lw=1.2)
    axes.set_xlim(0, 24)
    axes.set_ylim(0, None if np.nan_to_num(means).any() else 1)
    axes.set_xticks(range(0, 25, 3), [f"{hour:02d}" for hour in range(0, 25, 3)])
    axes.yaxis.set_major_locator(_few_ticks())
    axes.tick_params(labelsize=NOTE_POINTS, length=2)
    axes.set_ylabel(f"mean\n[{unit.name}]", fontsize=NOTE_POINTS)
    if is_last:
        axes.set_xlabel("hour of the day [UTC]")


def _few_ticks() -> Locator:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(2)


def _draw_scale(axes: Axes, low: float, high: float) -> None:
    """Draw the color scale with its labels."""
    axes.imshow(shades(np.linspace(0.0, 1.0, 256))[None], aspect="auto", extent=(0, 1, 0, 1))
    axes.set(yticks=[], xticks=[])
    axes.spines[:].set_visible(False)
    for place, text, side in ((0.0, f"{rate_text(low)} or less ", "right"), (1.0, f" {rate_text(high)}", "left")):
        axes.text(place, 0.5, text, ha=side, va="center", fontsize=NOTE_POINTS, color=SOFT)

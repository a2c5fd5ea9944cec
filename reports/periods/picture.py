"""Draw the search for a period in one signal: the signal over time, its power spectrum and its autocorrelation.

The figure combines those of FTIO (Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS'24, section
II). For AUTOPERIOD, it is Figure 1 of White et al. (PEARC'18): the periodogram with its significance threshold, and the
circular autocorrelation with the hill of the period. A signal is drawn in full: where samples are closer than pixels,
each pixel column shows their minimum and maximum, so that no burst is lost. Missing data are gray.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from iosig.reports import panels, style
from iosig.reports.panels import PIXEL_COLUMNS, Columns
from iosig.reports.periods.view import Autocorrelation, Cosines, PeriodView
from iosig.reports.texts import (
    TIMES,
    Unit,
    choose_rate_unit,
    choose_unit,
    duration_text,
    exact_duration_text,
    plain,
    time_axis_text,
)
from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.periods.interface.even_signals import EvenSignals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_SIGNAL, _FOUND, _SUM, _CANDIDATE, _WINDOW = style.BLUE, style.VERMILION, style.PURPLE, style.ORANGE, style.GREEN
_GAP, _LINE = style.GRAY, style.INK
_FIGURE_INCHES = (11.0, 10.0)
_SIDES = (0.085, 0.975)
#: height of a lane in the comparison of methods [inches]
#: maximum difference between the logarithms of periods that count as equal
_LANE_IN, _MAX_LOG_DIFFERENCE = 0.34, 0.05
#: number of cycles above which the cosine is drawn only in an excerpt
_MAX_EXCERPT_CYCLES = 25
_EXCERPT_CYCLES = 8
_COSINE_POINTS = 2000
#: number of marks above which they are drawn smaller
_CROWD = 60
#: distance between the bars of segments, as a fraction of the panel's height
_LANE = 0.1
#: a threshold below this fraction of the highest line is drawn on a logarithmic axis only
_LOWEST_LINEAR = 0.02
#: minimum frequency with a drawable period
_MIN_HZ = 1e-300


# ---- time


@dataclass(frozen=True, slots=True)
class _Clock:
    """Conversion of timestamps to axis positions; timestamps far from 0 are shown relative to the signal's start."""

    unit: Unit
    sampling_hz: float
    start_s: float
    origin_s: float

    @classmethod
    def from_signals(cls, signals: EvenSignals) -> _Clock:
        hertz, started = float(signals.sampling_hz[0]), float(signals.start_s[0])
        # Use logarithms, because the duration itself may overflow a float.
        exponent = math.log10(max(signals.sample_count, 1)) - math.log10(hertz)
        duration = 10.0 ** max(-300.0, min(300.0, exponent))
        started = started if math.isfinite(started) else 0.0
        origin = 0.0 if abs(started) <= 10 * duration else started
        return cls(choose_unit(duration + abs(started - origin), TIMES, "s"), hertz, started, origin)

    def of_samples(self, places: npt.ArrayLike) -> Reals:
        """Return the axis positions of samples' left edges."""
        elapsed: Reals = np.asarray(places, dtype=np.float64) / self.unit.size / self.sampling_hz
        return elapsed + (self.start_s - self.origin_s) / self.unit.size

    def label(self, *, has_utc_clock: bool) -> str:
        """Return the time axis label with its unit and origin."""
        return time_axis_text(self.unit, self.origin_s, has_utc_clock=has_utc_clock)


def _excerpt(view: PeriodView) -> tuple[int, int] | None:
    """Return the range of a few cycles in which the period is strongest; None if the whole signal has few cycles."""
    count, (first, last) = view.signals.sample_count, view.window_samples
    if not view.is_periodic or last <= first:
        return None
    per_cycle = float(view.signals.sampling_hz[0]) / view.frequency_hz
    if not count > _MAX_EXCERPT_CYCLES * per_cycle:
        return None
    width = max(2, math.ceil(_EXCERPT_CYCLES * per_cycle))
    if width >= last - first:
        return first, last
    start = first + _plainest(view.signals.bytes_per_s[0, first:last], per_cycle, width)
    return start, start + width


def _plainest(values: Reals, per_cycle: float, width: int) -> int:
    """Return the first sample of the excerpt in which the period is strongest relative to everything else."""
    is_known = np.isfinite(values)
    normalized = np.where(is_known, values, 0.0)
    normalized = normalized / (np.abs(normalized).max() or 1.0)
    normalized = np.where(is_known, normalized - normalized.sum() / max(int(is_known.sum()), 1), 0.0)
    demodulated = normalized * np.exp(-2j * np.pi * (np.arange(len(values)) / per_cycle % 1.0))
    sums, energy = (np.concatenate([[0.0], np.cumsum(column)]) for column in (demodulated, np.square(normalized)))
    strength = np.abs(sums[width:] - sums[:-width]) ** 2
    norm = np.sqrt(np.maximum(energy[width:] - energy[:-width], 1e-12 * energy[-1]))
    return int(np.argmax(strength / np.where(norm > 0, norm, 1.0)))


# ---- panels


def _compute_size(views: Sequence[PeriodView]) -> tuple[float, float]:
    return _FIGURE_INCHES[0], _FIGURE_INCHES[1] + _LANE_IN * len(views) + 0.5


@panels.picture(_compute_size)
def draw_all(figure: Figure, views: Sequence[PeriodView]) -> None:
    """Draw one signal and the results of several methods; the panels below show the first method only."""
    main, height = views[0], float(figure.get_figheight())
    names = (plain(main.title), plain(main.direction), f"lower panels: {main.method}")
    panels.headings(figure, _agreement(views), names, _FOUND if any(view.is_periodic for view in views) else _LINE)
    panel_in = (height - 1.15 - _LANE_IN * len(views) - 3 * 0.75 - 0.6) / 3
    time = panels.inch_axes(figure, 1.15, panel_in, _SIDES)
    _draw_time(time, main, (0, main.signals.sample_count))
    _leave_room([time])
    time.tick_params(labelbottom=False)
    time.set_xlabel("")
    lanes = panels.inch_axes(figure, 1.2 + panel_in, _LANE_IN * len(views), _SIDES)
    _draw_lanes(lanes, views, time.get_xlim())
    top = 1.2 + panel_in + _LANE_IN * len(views) + 0.85
    _draw_spectrum(panels.inch_axes(figure, top, panel_in, _SIDES), main)
    _draw_autocorrelation(panels.inch_axes(figure, top + panel_in + 0.75, panel_in, _SIDES), main)


def _agreement(views: Sequence[PeriodView]) -> str:
    """Summarize how many methods agree on the most frequent period, and how many find none."""
    periods = np.array([1.0 / view.frequency_hz for view in views if view.is_periodic])
    if not len(periods):
        return f"No period by any of {len(views)} methods"
    is_similar = np.abs(np.log(periods[:, None] / periods)) < _MAX_LOG_DIFFERENCE
    best = int(np.argmax(is_similar.sum(axis=1)))
    none_count = len(views) - len(periods)
    other_count = len(periods) - int(is_similar[best].sum())
    count, period = int(is_similar[best].sum()), exact_duration_text(float(periods[best]))
    if count == 1 and other_count:
        first = next(plain(view.method) for view in views if view.is_periodic)
        parts = [f"{len(views)} methods disagree: {first} finds {period}"]
    else:
        parts = [f"{count} of {len(views)} methods {'finds' if count == 1 else 'find'} {period}"]
    parts += [f"{other_count} another period"] * (other_count > 0) + [f"{none_count} none"] * (none_count > 0)
    return ", ".join(parts)


def _draw_lanes(axes: Axes, views: Sequence[PeriodView], ends: tuple[float, float]) -> None:
    """Draw a lane for each method with its periods and result."""
    clock = _Clock.from_signals(views[0].signals)
    axes.set_xlim(*ends)
    axes.set_ylim(len(views), 0)
    for lane, view in enumerate(views):
        if view.is_periodic:
            view_clock, (first, last) = _Clock.from_signals(view.signals), view.window_samples
            best = view.cosines.select_drawable().select(slice(1))
            if len(best.frequency_hz) and last > first:
                at = _cycle_places(best, view_clock, (first, last))
                axes.plot(at, np.full(len(at), lane + 0.68), "|", color=_FOUND, ms=6, mew=1.2, ls="")
            axes.hlines(lane + 0.68, *view_clock.of_samples([first, last]), color=_FOUND, lw=0.8, alpha=0.6)
        text = "  ·  ".join([view.finding, *view.details])
        axes.text(
            0.004, lane + 0.28, text, transform=axes.get_yaxis_transform(), fontsize=style.NOTE_POINTS, va="center",
            color=_LINE if view.is_periodic else style.SOFT,
            bbox={"fc": style.GROUND, "ec": "none", "alpha": 0.75, "pad": 0.5},
        )  # fmt: skip
    axes.set_yticks(np.arange(len(views)) + 0.5, [plain(view.method, 18) for view in views], fontsize=style.NOTE_POINTS)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.set_xlabel(clock.label(has_utc_clock=views[0].has_utc_clock))


@panels.picture(_FIGURE_INCHES)
def draw(figure: Figure, view: PeriodView) -> None:
    """Draw a signal over time, its spectrum and its autocorrelation, with the result of one method."""
    excerpt = _excerpt(view)
    if excerpt:
        figure.set_size_inches(_FIGURE_INCHES[0], 4 / 3 * _FIGURE_INCHES[1])
    # Margins are in inches: they do not grow with the figure.
    height = float(figure.get_figheight())
    rows = figure.add_gridspec(
        4 if excerpt else 3, 1, left=_SIDES[0], right=_SIDES[1], top=1 - 1.15 / height, bottom=0.6 / height, hspace=0.46
    )
    names = (plain(name) for name in (view.title, view.direction, view.method))
    panels.headings(figure, view.finding, (*names, *view.details), _FOUND if view.is_periodic else _LINE)
    times = [figure.add_subplot(rows[row]) for row in range(2 if excerpt else 1)]
    _draw_time(times[0], view, (0, view.signals.sample_count), marked=excerpt)
    if excerpt:
        _draw_time(times[1], view, excerpt)
    _leave_room(times)
    _draw_spectrum(figure.add_subplot(rows[-2]), view)
    _draw_autocorrelation(figure.add_subplot(rows[-1]), view)


def _draw_time(
    axes: Axes, view: PeriodView, sample_range: tuple[int, int], marked: tuple[int, int] | None = None
) -> None:
    """Draw a range of samples with the detected period, or mark the excerpt that shows it."""
    clock, values = _Clock.from_signals(view.signals), view.signals.bytes_per_s[0]
    is_part = sample_range != (0, len(values))
    axes.set_title(f"Time behavior, excerpt of {_EXCERPT_CYCLES} periods" if is_part else "Time behavior")
    axes.set_xlabel(clock.label(has_utc_clock=view.has_utc_clock))
    if not len(values):
        return panels.say(axes, "no samples")
    peak = float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))
    unit = choose_rate_unit(peak, view.metric)
    columns = Columns.aggregate(values[sample_range[0] : sample_range[1]] / unit.size)
    edges = clock.of_samples(columns.edges + sample_range[0])
    _draw_gaps(axes, edges, columns.missing_ratio)
    _draw_window(axes, view, clock, sample_range)
    if not is_part:
        _draw_segments(axes, view, clock)
    _draw_signal(axes, edges, columns, label="" if is_part else "signal")
    if marked:
        middle, top = clock.of_samples(sum(marked) / 2), axes.get_xaxis_transform()
        axes.plot(middle, 0.98, "v", color=_LINE, ms=6, transform=top, ls="", label="shown below")
    elif view.is_periodic:
        _draw_cosines(axes, view, clock, sample_range, unit)
    axes.set_xlim(edges[0], edges[-1])
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.set_ylabel(f"throughput [{unit.name}]")
    panels.legend_above(axes)
    return None


def _leave_room(panels: list[Axes]) -> None:
    """Give all panels a common scale that includes 0, with space at the top."""
    ends = [end for axes in panels for end in (axes.dataLim.y0, axes.dataLim.y1) if math.isfinite(end)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    if low == high:
        low, high = 0.0, 1.0
    for axes in panels:
        axes.set_ylim(low - 0.03 * (high - low) * (low < 0), high + 0.1 * (high - low))


def _draw_signal(axes: Axes, edges: Reals, columns: Columns, label: str) -> None:
    if np.isnan(columns.highest).all():
        axes.text(0.5, 0.5, "no data", transform=axes.transAxes, ha="center", va="center", fontsize=11)
    elif columns.is_exact:
        axes.stairs(columns.highest, edges, fill=True, color=_SIGNAL, alpha=0.22, lw=0)
        axes.stairs(columns.highest, edges, baseline=None, color=_SIGNAL, lw=1.1, label=label)
    else:
        name = f"{label} (minimum to maximum per pixel)" if label else ""
        _draw_envelope(axes, edges, columns, name)


def _draw_envelope(axes: Axes, edges: Reals, columns: Columns, label: str) -> None:
    """Draw a line through the minimum and the maximum of each pixel column in turn."""
    middles = (edges[1:] + edges[:-1]) / 2
    values = np.column_stack([columns.lowest, columns.highest]).ravel()
    axes.plot(np.repeat(middles, 2), values, color=_SIGNAL, lw=0.9, label=label)


def _draw_gaps(axes: Axes, edges: Reals, missing_ratio: Reals) -> None:
    """Shade missing data; darker columns have more missing samples."""
    if not missing_ratio.any():
        return
    from matplotlib.colors import ListedColormap, to_rgb
    from matplotlib.patches import Rectangle

    strength = np.concatenate([[0.0], np.linspace(0.25, 0.75, 255)])
    shades = ListedColormap(np.column_stack([np.tile(to_rgb(_GAP), (256, 1)), strength]))
    axes.pcolormesh(
        edges, [0.0, 1.0], missing_ratio[None, :], cmap=shades, vmin=0.0, vmax=1.0,
        transform=axes.get_xaxis_transform(), zorder=0, linewidth=0, rasterized=True,
    )  # fmt: skip
    # an invisible rectangle for the legend, in which a mesh has no entry
    axes.add_artist(Rectangle((0, 0), 0, 0, color=_GAP, alpha=0.75, lw=0, label="not measured"))


def _draw_window(axes: Axes, view: PeriodView, clock: _Clock, sample_range: tuple[int, int]) -> None:
    """Shade the analyzed time if it is not the whole signal."""
    first, last = view.window_samples
    if view.is_whole or last <= first or (first <= sample_range[0] and last >= sample_range[1]):
        return
    places = clock.of_samples([first, last])
    label = "periodic here" if view.is_periodic else "judged"
    axes.axvspan(*places, color=_WINDOW, alpha=0.16, lw=0, zorder=0.5, label=label)
    for place in places:
        axes.axvline(place, color=_WINDOW, lw=1.2, ls=":")


def _draw_segments(axes: Axes, view: PeriodView, clock: _Clock) -> None:
    """Draw a bar for each of several segments, labeled with its period; overlapping bars are stacked."""
    segments = view.segments
    if segments is None or len(segments.is_main) < 2:
        return
    ends: list[float] = []
    for start, end, hertz, is_main in zip(
        *(column.tolist() for column in (segments.start_s, segments.end_s, segments.frequency_hz, segments.is_main)),
        strict=True,
    ):
        lane = next((place for place, until in enumerate(ends) if until <= start), len(ends))
        ends[lane : lane + 1] = [end]
        places = clock.of_samples(view.samples_between(start, end))
        height, color = 0.9 - _LANE * lane, _WINDOW if is_main else _CANDIDATE
        across = axes.get_xaxis_transform()
        axes.plot(places, [height, height], color=color, lw=3.0, solid_capstyle="butt", transform=across, zorder=3)
        axes.text(
            places.mean(), height, exact_duration_text(1.0 / hertz), transform=across, ha="center", va="center",
            fontsize=8, zorder=4, clip_on=True, bbox={"fc": style.GROUND, "ec": color, "lw": 0.7, "pad": 1.5},
        )  # fmt: skip


def _draw_cosines(axes: Axes, view: PeriodView, clock: _Clock, sample_range: tuple[int, int], unit: Unit) -> None:
    """Draw the detected cosine and the sum of all candidates within the window; mark the periods above."""
    window = view.window_samples
    first, last = max(sample_range[0], window[0]), min(sample_range[1], window[1])
    cosines = view.cosines.select_drawable()
    count = len(cosines.frequency_hz)
    if not count or last <= first:
        return
    places = np.linspace(first, last, _COSINE_POINTS)
    at = clock.of_samples(places)
    if count > 1:
        total = _drawn_cosine(cosines, places, clock.sampling_hz) / unit.size
        axes.plot(at, total, color=_SUM, lw=1.1, ls=(0, (4, 2)), label=f"all {count} candidates")
    best = cosines.select(slice(1))
    axes.plot(
        at, _drawn_cosine(best, places, clock.sampling_hz) / unit.size, color=_FOUND, lw=1.8, label="found cosine"
    )
    peaks = _cycle_places(best, clock, (first, last))
    axes.plot(
        peaks, np.full(len(peaks), 0.975), "|", color=_FOUND, ms=9, mew=1.4, ls="",
        transform=axes.get_xaxis_transform(), label="one period apart",
    )  # fmt: skip


def _drawn_cosine(cosines: Cosines, places: Reals, sampling_hz: float) -> Reals:
    """Clip the cosines' sum at 0, because rates are not negative."""
    values = cosines.at(places, sampling_hz)
    return np.where(values > 0, values, np.nan)


def _cycle_places(best: Cosines, clock: _Clock, within: tuple[int, int]) -> Reals:
    """Return the axis positions of the cosine's maxima, or of some maxima if there are very many."""
    per_cycle = clock.sampling_hz / float(best.frequency_hz[0])
    phase_cycles = -float(best.phase_rad[0]) / (2 * math.pi)
    first, last = math.ceil(within[0] / per_cycle - phase_cycles), math.floor(within[1] / per_cycle - phase_cycles)
    cycles = np.arange(first, last + 1, max(1, (last - first) // PIXEL_COLUMNS))
    return clock.of_samples((cycles + phase_cycles) * per_cycle)


# ---- spectrum


def _draw_spectrum(axes: Axes, view: PeriodView) -> None:
    """Draw the power at each period, the threshold, and the candidates, on a logarithmic axis."""
    spectrum = view.spectrum
    name = "Lomb-Scargle periodogram" if spectrum.is_periodogram else "Power spectrum"
    axes.set_title(name if view.is_whole else f"{name} of the shaded range")
    is_known = np.isfinite(spectrum.power) & (spectrum.frequency_hz > _MIN_HZ) & (spectrum.frequency_hz < 1 / _MIN_HZ)
    frequency, power = spectrum.frequency_hz[is_known], spectrum.power[is_known]
    axes.set_xlabel("period")
    if not len(power) or power.max() <= 0:
        return panels.say(axes, "no power except the mean")
    top = float(power.max())
    threshold = spectrum.threshold
    is_logarithmic = 0 < threshold < _LOWEST_LINEAR * top and not spectrum.is_periodogram
    floor = threshold / 100 if is_logarithmic else 0.0
    if spectrum.is_periodogram and len(power) <= PIXEL_COLUMNS:
        axes.plot(1 / frequency, np.maximum(power, floor), color=_SIGNAL, lw=1.2)
    else:
        _draw_lines(axes, frequency, power, floor)
    if math.isfinite(threshold) and threshold > 0:
        axes.axhline(threshold, color=_LINE, lw=1.1, ls="--", label=spectrum.threshold_name)
    _draw_candidates(axes, frequency, power, view)
    axes.set_xscale("log")
    axes.set_xlim(0.8 / frequency[-1], 1.25 / frequency[0])
    if floor:
        axes.set_yscale("log")
        axes.set_ylim(floor, 3 * top)
    else:
        axes.set_ylim(0, 1.12 * max(top, threshold if math.isfinite(threshold) and threshold < 3 * top else 0.0))
    panels.label_times(axes.xaxis, *axes.get_xlim(), max_count=12)
    if spectrum.is_periodogram:
        axes.set_ylabel("power [variance of noise]")
    else:
        panels.label_values(axes.yaxis, lambda value: f"{100 * value:.3g}")
        axes.set_ylabel("share of the power [%]")
    panels.legend_above(axes)
    return None


def _draw_lines(axes: Axes, frequency: Reals, power: Reals, floor: float) -> None:
    """Draw a line for each frequency at its period, or only the highest line of each pixel column."""
    count = len(frequency)
    if count <= PIXEL_COLUMNS:
        axes.vlines(1 / frequency, floor, np.maximum(power, floor), color=_SIGNAL, lw=max(0.8, min(2.0, 200 / count)))
        return
    edges = np.geomspace(frequency[0], frequency[-1], PIXEL_COLUMNS + 1)
    bounds = np.unique(np.concatenate([[0], np.searchsorted(frequency, edges[1:-1]), [count]]))
    columns = Columns.aggregate(power, bounds)
    # At the low end, frequencies are further apart than pixels, so each line is drawn separately.
    at = 1 / frequency[bounds[:-1] + (np.diff(bounds) - 1) // 2]
    axes.vlines(at, floor, np.maximum(columns.highest, floor), color=_SIGNAL, lw=0.9)


def _draw_candidates(axes: Axes, frequency: Reals, power: Reals, view: PeriodView) -> None:
    candidates_hz = view.spectrum.candidates_hz[
        np.isfinite(view.spectrum.candidates_hz) & (view.spectrum.candidates_hz > 0)
    ]
    _mark(axes, 1 / candidates_hz, power[_nearest(frequency, candidates_hz)], "v", "candidate")
    if view.is_periodic:
        place = 1.0 / view.frequency_hz
        axes.axvline(place, color=_FOUND, lw=1.4, zorder=0.8, label=f"found {duration_text(place)}")


def _mark(axes: Axes, places: Reals, values: Reals, sign: str, name: str) -> None:
    """Mark positions; many marks are drawn smaller."""
    if len(places):
        size, edge = (3.5, "none") if len(places) > _CROWD else (6.5, _LINE)
        label = f"{name}{'s' * (len(places) > 1)} ({len(places):,})"
        axes.plot(places, values, sign, color=_CANDIDATE, mec=edge, mew=0.7, ms=size, ls="", label=label)


def _nearest(ascending: Reals, targets: Reals) -> Ints:
    """Return, for each wanted value (k), the index of the nearest ascending value."""
    after = np.clip(np.searchsorted(ascending, targets), 1, max(len(ascending) - 1, 1))
    after = np.minimum(after, len(ascending) - 1)
    before = np.maximum(after - 1, 0)
    nearest: Ints = np.where(targets - ascending[before] <= ascending[after] - targets, before, after)
    return nearest


# ---- autocorrelation


def _draw_autocorrelation(axes: Axes, view: PeriodView) -> None:
    """Draw the autocorrelation, its peaks, and the detected period."""
    autocorrelation, has_hill = view.autocorrelation, len(view.autocorrelation.hill_lag_s) > 0
    axes.set_title("Autocorrelation" if view.is_whole else "Autocorrelation of the shaded range")
    axes.set_xlabel("lag")
    if (
        not len(autocorrelation.lag_s)
        or not np.isfinite(autocorrelation.coefficient).any()
        or not np.isfinite(autocorrelation.lag_s).all()
    ):
        return panels.say(axes, "no autocorrelation")
    # a hill is a small part of its period
    autocorrelation = _first_lags(autocorrelation, view, _EXCERPT_CYCLES if has_hill else _MAX_EXCERPT_CYCLES)
    unit = choose_unit(float(autocorrelation.lag_s[-1]), TIMES, "s")
    columns = Columns.aggregate(autocorrelation.coefficient)
    lags = autocorrelation.lag_s / unit.size
    axes.axhline(0.0, color=_LINE, lw=0.6)
    if columns.is_exact:
        axes.plot(lags, autocorrelation.coefficient, color=_SIGNAL, lw=1.2)
    else:
        _draw_envelope(axes, np.append(lags, lags[-1])[columns.edges], columns, "")
    _mark(axes, lags[autocorrelation.peaks], autocorrelation.coefficient[autocorrelation.peaks], "o", "peak")
    hill = zip(autocorrelation.hill_lag_s, autocorrelation.hill_coefficient, strict=True)
    for number, (line_s, values) in enumerate(hill):
        axes.plot(line_s / unit.size, values, color=_FOUND, lw=3.0, label="" if number else "hill of two lines")
    if view.is_periodic and 1.0 / view.frequency_hz <= autocorrelation.lag_s[-1]:
        period_s = 1.0 / view.frequency_hz
        axes.axvline(period_s / unit.size, color=_FOUND, lw=1.4, zorder=0.8, label=f"found {duration_text(period_s)}")
    low = float(np.nanmin(columns.lowest))
    axes.set_xlim(lags[0], lags[-1] if lags[-1] > lags[0] else lags[0] + 1.0)
    axes.set_ylim(min(-0.1, 1.1 * low), max(1.08, 1.08 * float(np.nanmax(columns.highest))))
    axes.set_xlabel(f"lag [{unit.name}]")
    axes.set_ylabel("coefficient")
    panels.legend_above(axes)
    return None


def _first_lags(autocorrelation: Autocorrelation, view: PeriodView, cycle_count: int) -> Autocorrelation:
    """Limit the autocorrelation to the first periods, so that single peaks stay visible."""
    if not view.is_periodic:
        return autocorrelation
    count = max(2, int(np.searchsorted(autocorrelation.lag_s, cycle_count / view.frequency_hz, side="right")))
    return replace(
        autocorrelation,
        lag_s=autocorrelation.lag_s[:count],
        coefficient=autocorrelation.coefficient[:count],
        peaks=autocorrelation.peaks[autocorrelation.peaks < count],
    )

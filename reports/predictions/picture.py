"""Draw one run's predictions over time, next to the measured throughput and the bursts that followed.

As Figure 15a of FTIO (Tarraf et al., DOI 10.1109/IPDPS57955.2024.00048, section III-B), with its windows at the bottom
and its phases at the top; the curves of periods, intervals, errors and states are additions. Where evaluations are
closer than a pixel, each pixel column shows their minimum and maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from iosig.reports import panels
from iosig.reports.panels import Columns, Picture
from iosig.reports.predictions.evaluations import MAX_EXACT_EVALUATIONS, Bins, PredictionView, Run
from iosig.reports.predictions.state_strips import RunClock, draw_strip, mask_implausible_times, text_inches
from iosig.reports.style import BLUE, FAINT, GRAY, GREEN, GROUND, INK, ORANGE, PURPLE, SKY, VERMILION
from iosig.reports.texts import RATES, TIMES, base_name, choose_unit, duration_text, format_count, plain, time_ticks
from iosig.transforms.arrays import Ints, Reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_IN, _LEFT, _RIGHT = 11.0, 0.095, 0.975
_TOP_IN, _BETWEEN_IN, _FOOT_IN = 1.15, 0.46, 0.6
_WIDE_IN = _WIDTH_IN * (_RIGHT - _LEFT)
#: maximum number of windows drawn
#: maximum number of changes drawn as lines
#: maximum number of gaps with labels
_MAX_WINDOWS, _MAX_CHANGES, _MAX_GAP_LABELS = 40, 25, 60
#: periods that span more than this factor are drawn on a logarithmic axis
#: opacity of a band at probabilities 0 and 1
_LOG_FACTOR, _OPACITY = 4.0, (0.1, 0.6)
_RUG_COLORS = {
    "tentative": VERMILION, "aperiodic": GRAY, "too_short": SKY, "no_io": BLUE, "no_data": INK, "too_many_gaps": ORANGE,
}  # fmt: skip
_SMALL = 8.5
#: if windows are shorter than this fraction of the run, only the windows of the last evaluations are drawn
#: number of these evaluations
_MIN_WINDOW_RATIO, _EXCERPT_EVALUATIONS = 0.03, 20
_ARROW = {"arrowstyle": "<->", "lw": 0.7, "color": INK, "shrinkA": 0, "shrinkB": 0}
_BURSTS = ("earliest", "start", "latest")


# ---- the picture


def draw(view: PredictionView) -> Picture:
    """Return the picture of one run's predictions."""
    run = Run.from_view(view)
    shown_panels = list(_panels(view, run))
    height = _TOP_IN + sum(panel.height_in + panel.space_in for panel in shown_panels) + _FOOT_IN
    return Picture((_WIDTH_IN, height), lambda figure: _compose(figure, view, run, shown_panels))


@dataclass(frozen=True, slots=True)
class _Panel:
    """Panel with height, space above, draw function, and whether its time axis is separate."""

    height_in: float
    space_in: float
    drawn: Callable[[Axes], None]
    is_excerpt: bool = False


def _panels(view: PredictionView, run: Run) -> Iterator[_Panel]:
    """Yield the panels that have data, from top to bottom."""
    space = 0.0
    if len(view.time_s) or len(run.onset_s):
        yield _Panel(2.1 if len(view.time_s) else 0.75, 0.0, partial(_draw_throughput, view, run))
        space = _BETWEEN_IN
    yield _Panel(3.1 if run.has_period.any() else 0.9, space, partial(_draw_periods, run))
    rows = _rug_rows(run)
    if rows:
        yield _Panel(0.17 * len(rows), 0.06, partial(_draw_rug, run, rows))
    yield _Panel(0.24, 0.06, partial(_draw_states, run))
    windows, errors = _Windows.select(run), _errors(run)
    height = max(0.7, min(2.6, 0.15 * len(windows.chosen)))
    if not windows.is_excerpt:
        yield _Panel(height, _BETWEEN_IN, partial(_draw_windows, run, windows))
    if np.isfinite(errors).any():
        yield _Panel(1.3, _BETWEEN_IN, partial(_draw_errors, run, errors))
    if windows.is_excerpt:
        yield _Panel(height, _FOOT_IN + 0.4, partial(_draw_windows, run, windows), True)


def _compose(figure: Figure, view: PredictionView, run: Run, shown_panels: list[_Panel]) -> None:
    top = _TOP_IN
    _headings(figure, view, run)
    ends = run.clock.at(run.ends_s).tolist()
    for place, panel in enumerate(shown_panels):
        axes = panels.inch_axes(figure, top + panel.space_in, panel.height_in, (_LEFT, _RIGHT))
        top += panel.space_in + panel.height_in
        axes.set_xlim(*ends)
        panel.drawn(axes)
        is_last = place == len(shown_panels) - 1 or shown_panels[place + 1].is_excerpt
        axes.tick_params(axis="x", labelbottom=is_last, length=3.5 if is_last else 0)
        axes.grid(axis="x", color=FAINT, lw=0.6)
        axes.set_axisbelow(True)
        axes.ticklabel_format(axis="x", useOffset=False)
        if not panel.is_excerpt:
            axes.set_xlabel(run.clock.label if is_last else "")


def _headings(figure: Figure, view: PredictionView, run: Run) -> None:
    last = view.predictions.sort("run_number", "evaluation").row(-1, named=True)
    names = (base_name(last["followed_id"]), last["direction"], last["method"], f"window: {last['window_strategy']}")
    runs = int(view.predictions["run_number"].n_unique())
    parts = (*(plain(str(name)) for name in names if name), *[f"the last of {runs} runs"] * (runs > 1), *_counts(run))
    panels.headings(figure, _finding(run), parts, VERMILION if run.has_period[-1] else INK)


def _finding(run: Run) -> str:
    """Summarize the last evaluation: the period, and the predicted time of the next burst."""
    last = {name: float(values[-1]) for name, values in run.numbers.items()}
    period = f"Period {duration_text(last['period_s'])}" if run.has_period[-1] else "No period"
    if math.isfinite(last["shortest_period_s"]) and math.isfinite(last["longest_period_s"]):
        shortest, longest = (duration_text(last[f"{name}_period_s"]) for name in ("shortest", "longest"))
        chance = f", {last['probability']:.0%}" if math.isfinite(last["probability"]) else ""
        period += f" ({shortest} to {longest}{chance})"
    elif not run.has_period[-1]:
        period += f" ({plain(str(run.texts['outcome'][-1]), 24).replace('_', ' ')})"
    burst = plain(str(run.texts["next_burst_outcome"][-1]), 24).replace("_", " ")
    if burst == "ended":
        return f"{period}; the run is over"
    wait_s = last["next_burst_start_s"] - run.at_s[-1]
    wait_text = f" in {duration_text(wait_s)}" if wait_s > 0 and burst == "expected" else ""
    return f"{period}; next burst {burst}{wait_text}"


def _counts(run: Run) -> list[str]:
    """Return the numbers of evaluations and of detected changes as text."""
    changes = int(np.sum(run.texts["change"] != ""))
    return [
        f"{format_count(len(run.at_s), 'evaluation')}, {np.sum(run.texts['outcome'] == 'periodic'):,} periodic",
        *[format_count(changes, "change")] * (changes > 0),
    ]


# ---- throughput and phases


def _draw_throughput(view: PredictionView, run: Run, axes: Axes) -> None:
    """Draw the throughput, the phases as bars above, and the time between onsets where it fits."""
    has_rate = len(view.time_s) > 0
    gaps = run.gaps_s[np.isfinite(run.gaps_s)]
    title = [format_count(len(run.onset_s), "phase")] if len(run.onset_s) else []
    if len(gaps):
        low, middle, high = (duration_text(float(value)) for value in np.quantile(gaps, (0, 0.5, 1)))
        title.append(f"{middle} apart (median; {low} to {high})" if len(gaps) > 1 else f"{middle} apart")
    axes.set_title(": ".join([*["Throughput"] * has_rate, *[", ".join(title)] * bool(title)]))
    if has_rate:
        _draw_rate(view, run, axes)
    else:
        axes.set(ylim=(0, 1), yticks=[])
        axes.spines["left"].set_visible(False)
    if len(run.onset_s):
        level, height = (0.8, 0.06) if has_rate else (0.2, 0.25)
        _draw_phases(view, run, axes, level, height)
        _write_gaps(run, axes, level + height)


def _draw_rate(view: PredictionView, run: Run, axes: Axes) -> None:
    values = np.where(np.isfinite(view.bytes_per_s), view.bytes_per_s, np.nan)
    peak = float(np.max(values, initial=0.0, where=np.isfinite(values)))
    unit = choose_unit(peak, RATES, "B/s")
    step = float(view.time_s[-1] - view.time_s[-2]) if len(view.time_s) > 1 else run.ends_s[1] - run.ends_s[0]
    edges = run.clock.at(np.append(view.time_s, view.time_s[-1] + step))
    columns = Columns.aggregate(values / unit.size)
    at, low = edges[columns.edges], None if columns.is_exact else columns.lowest
    axes.stairs(columns.highest, at, fill=True, color=BLUE, alpha=0.22, lw=0)
    axes.stairs(columns.highest, at, baseline=low, fill=low is not None, color=BLUE, lw=0.9)
    top = peak / unit.size or 1.0
    axes.set_ylim(0.0, top / 0.76)
    axes.set_yticks([tick for tick in axes.get_yticks() if 0 <= tick <= 1.02 * top])
    axes.set_ylabel(f"throughput\n[{unit.name}]")


def _draw_phases(view: PredictionView, run: Run, axes: Axes, level: float, high: float) -> None:
    """Draw phases as bars, merging those closer than a pixel."""
    # if only onsets are known, bars are as wide as their outlines
    onset = run.onset_s
    end = np.fmax(mask_implausible_times(view.end_s), onset) if len(view.end_s) else onset
    pixel = (run.ends_s[1] - run.ends_s[0]) / panels.PIXEL_COLUMNS
    starts = np.flatnonzero(np.append(True, onset[1:] - np.maximum.accumulate(end)[:-1] > pixel))
    left, right = run.clock.at(onset[starts]), run.clock.at(np.maximum.reduceat(end, starts))
    axes.broken_barh(
        list(zip(left, right - left, strict=True)), (level, high), transform=axes.get_xaxis_transform(), color=BLUE,
        lw=0.6 if len(view.end_s) else 1.6,
    )  # fmt: skip


def _write_gaps(run: Run, axes: Axes, level: float) -> None:
    """Write the time between onsets above the phases, where the text fits, with a line from onset to onset.

    If most labels do not fit, only those of long gaps are written, because an arbitrary subset would mislead.
    """
    gaps, blend = run.gaps_s, axes.get_xaxis_transform()
    inches = gaps / (run.ends_s[1] - run.ends_s[0]) * _WIDE_IN
    texts = {int(place): duration_text(float(gaps[place])) for place in np.flatnonzero(inches > 0.3)[:_MAX_GAP_LABELS]}
    texts = {place: text for place, text in texts.items() if text_inches(text, 8.0) < inches[place]}
    if 2 * len(texts) < len(gaps):
        texts = {place: text for place, text in texts.items() if gaps[place] > 1.5 * np.nanmedian(gaps)}
    for place, text in texts.items():
        left, right = run.clock.at(run.onset_s[place : place + 2])
        axes.annotate("", (right, level + 0.03), (left, level + 0.03), blend, blend, arrowprops=_ARROW)
        y = level + 0.055 if len(axes.get_yticks()) else level + 0.09
        axes.text((left + right) / 2, y, text, transform=blend, ha="center", va="bottom", fontsize=8.0, color=INK)


# ---- periods


def _draw_periods(run: Run, axes: Axes) -> None:
    """Draw the predicted period over the time of its evaluation, its interval, the detected gaps, and the changes."""
    axes.set_title("Predicted period")
    if not run.has_period.any():
        panels.say(axes, f"no period in {format_count(len(run.at_s), 'evaluation')}")
        return
    scale = _period_axis(run, axes)
    bins = Bins.from_times(run.at_s, run.ends_s)
    _draw_band(run, axes, bins, scale)
    _draw_gaps(run, axes, scale)
    _draw_curve(run, axes, bins, scale)
    _draw_changes(run, axes)
    panels.legend_above(axes)


def _period_axis(run: Run, axes: Axes) -> float:
    """Configure the period axis with space for labels at the top, and return its unit in seconds."""
    names = ("period_s", "shortest_period_s", "longest_period_s")
    values = np.concatenate([*(run.numbers[name] for name in names), run.gaps_s])
    values = values[np.isfinite(values) & (values > 0)]
    low, high = float(values.min()), float(values.max())
    if high <= _LOG_FACTOR * low:
        unit = choose_unit(high, TIMES, "s")
        pad = max(0.2 * (high - low), 0.1 * high)
        bottom, top = max(0.0, low - pad), high + pad
        axes.set_ylim(bottom / unit.size, (top + 0.12 * (top - bottom)) / unit.size)
        axes.set_ylabel(f"period [{unit.name}]")
        return unit.size
    decades = math.log10(high / low)
    axes.set_yscale("log")
    axes.set_ylim(low * 10 ** (-0.08 * decades), high * 10 ** (0.16 * decades))
    ticks = time_ticks(low / 1.1, high * 1.1)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}")
    if len(ticks) > 1:
        axes.set_yticks([tick[0] for tick in ticks], [tick[1] for tick in ticks])
        axes.set_yticks([], minor=True)
    axes.set_ylabel("period" if len(ticks) > 1 else "period [s]")
    return 1.0


def _draw_band(run: Run, axes: Axes, bins: Bins, scale: float) -> None:
    """Shade the interval of each evaluation until the next one, the darker the more probable."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgb

    low, high = bins.lowest(run.numbers["shortest_period_s"]), bins.highest(run.numbers["longest_period_s"])
    chance = np.nan_to_num(bins.highest(run.numbers["probability"])).clip(0, 1)
    edges = run.clock.at(np.append(bins.at_s, run.ends_s[1]))
    indices = np.flatnonzero(np.isfinite(low) & np.isfinite(high) & (low > 0))
    if not len(indices):
        return
    left, right, low, high = edges[indices], edges[indices + 1], low[indices] / scale, high[indices] / scale
    corners = np.stack([[left, low], [left, high], [right, high], [right, low]]).transpose(2, 0, 1)
    opacity = np.interp(chance[indices], (0.0, 1.0), _OPACITY)
    colors = np.column_stack([np.tile(to_rgb(ORANGE), (len(indices), 1)), opacity])
    label = "its interval (darker: more probable)"
    band = PolyCollection(list(corners), facecolors=colors, lw=0, zorder=1.2, label=label)
    axes.add_collection(band, autolim=False)


def _draw_curve(run: Run, axes: Axes, bins: Bins, scale: float) -> None:
    """Draw the predicted period: a step for each evaluation, or from the lowest to the highest of each column."""
    periods = run.numbers["period_s"] / scale
    low, high = bins.lowest(periods), bins.highest(periods)
    at, last = run.clock.at(bins.at_s), float(run.clock.at(run.ends_s[1]))
    if len(low) < len(periods):
        values = np.column_stack([low, high]).ravel()
        axes.plot(np.repeat(at, 2), values, color=VERMILION, lw=0.9, label="predicted (lowest to highest)")
        return
    axes.step(np.append(at, last), np.append(high, high[-1]), where="post", color=VERMILION, lw=1.4)
    size = 4.5 if len(at) <= 200 else 2.2
    is_tentative = run.texts["outcome"] == "tentative"
    style: dict[str, Any] = {"ls": "", "marker": "o", "ms": size, "color": VERMILION, "zorder": 3}
    for label, chosen, face in (("predicted", ~is_tentative, VERMILION), ("tentative", is_tentative, GROUND)):
        if (chosen & np.isfinite(periods)).any():
            axes.plot(at[chosen], periods[chosen], mfc=face, label=label, **style)


def _draw_gaps(run: Run, axes: Axes, scale: float) -> None:
    """Mark the time to the next phase that was detected at each phase's onset."""
    gaps = run.gaps_s
    if not np.isfinite(gaps).any():
        return
    bins = Bins.from_times(run.onset_s[:-1], run.ends_s)
    at, values = np.repeat(run.clock.at(bins.at_s), 2), np.column_stack([bins.lowest(gaps), bins.highest(gaps)])
    size, opacity = (5.0, 1.0) if len(at) <= 400 else (2.2, 0.55)
    style: dict[str, Any] = {"ls": "", "marker": "x", "ms": size, "mew": 0.9, "color": INK, "alpha": opacity}
    axes.plot(at, values.ravel() / scale, label="detected gap", zorder=2.6, **style)


def _draw_changes(run: Run, axes: Axes) -> None:
    """Mark detected changes and the time since each one began, with labels where they fit."""
    changed = np.flatnonzero(run.texts["change"] != "")
    if not len(changed):
        return
    at, began = run.clock.at(run.at_s[changed]), run.clock.at(run.numbers["change_s"][changed])
    blend, is_longer = axes.get_xaxis_transform(), run.texts["change"][changed] == "longer"
    low, high = run.clock.at(run.ends_s)
    inches = (at - low) / (high - low) * _WIDE_IN
    for chosen, marker in ((is_longer, "^"), (~is_longer, "v")):
        # Markers that would overlap are drawn once.
        places = at[chosen][np.unique(np.round(20 * inches[chosen]), return_index=True)[1]]
        axes.plot(places, np.full(len(places), 0.96), marker, color=PURPLE, ms=5, ls="", transform=blend)
    if len(changed) > _MAX_CHANGES:
        return
    free_inches = np.diff(inches, append=_WIDE_IN)
    for place, x in enumerate(at.tolist()):
        if began[place] < x:
            axes.axvspan(max(float(began[place]), float(low)), x, color=PURPLE, alpha=0.1, lw=0, zorder=0.8)
        axes.axvline(x, color=PURPLE, lw=1.1, ls="--", zorder=2)
        text = plain(str(run.texts["change"][changed[place]]), 24)
        if text_inches(text, _SMALL) + 0.15 < free_inches[place]:
            axes.annotate(text, (x, 0.96), (6, 0), blend, "offset points", va="center", fontsize=_SMALL, color=PURPLE)


def _rug_rows(run: Run) -> list[str]:
    """Return the outcomes drawn as rows of ticks: those without a period, and `tentative` if the curve is thinned."""
    drawn_outcomes = {"periodic"} if len(run.at_s) > MAX_EXACT_EVALUATIONS else {"periodic", "tentative"}
    outcomes = set(run.texts["outcome"].tolist()) - drawn_outcomes
    return [name for name in _RUG_COLORS if name in outcomes] + sorted(outcomes - set(_RUG_COLORS))[:3]


def _draw_rug(run: Run, rows: list[str], axes: Axes) -> None:
    """Draw a tick for each evaluation without a period, in a row for each outcome."""
    column = np.floor((run.at_s - run.ends_s[0]) / (run.ends_s[1] - run.ends_s[0]) * panels.PIXEL_COLUMNS)
    for row, name in enumerate(rows):
        chosen = np.flatnonzero(run.texts["outcome"] == name)
        chosen = chosen[np.unique(column[chosen], return_index=True)[1]]
        at, color = run.clock.at(run.at_s[chosen]), _RUG_COLORS.get(name, INK)
        axes.plot(at, np.full(len(at), len(rows) - row - 0.5), "|", color=color, ms=8, mew=1.1, ls="")
    axes.set(ylim=(0, len(rows)))
    axes.set_yticks(np.arange(len(rows))[::-1] + 0.5, [plain(name, 14) for name in rows])
    _hide_axes(axes)


def _draw_states(run: Run, axes: Axes) -> None:
    """Draw the automaton's states as a strip, each from its first observation to that of the next state."""
    draw_strip(axes, run.states.names, np.array(run.states.edges_s), run.clock, run.states.texts)
    axes.set_yticks([0.5], ["state"])
    _hide_axes(axes)


def _hide_axes(axes: Axes) -> None:
    axes.tick_params(axis="y", length=0, labelsize=7.5)
    axes.spines[["left", "bottom"]].set_visible(False)


# ---- windows and next bursts


@dataclass(frozen=True, slots=True, eq=False)
class _Windows:
    """Evaluations drawn with their windows, on the shared time axis or (the last ones) on a separate axis.

    Many windows are thinned to the last one before each of evenly spaced times, unless they are too short to be
    visible.
    """

    chosen: Ints
    ends_s: tuple[float, float]
    is_excerpt: bool

    @classmethod
    def select(cls, run: Run) -> _Windows:
        count = len(run.at_s)
        if count <= _MAX_WINDOWS:
            return cls(np.arange(count), run.ends_s, False)
        length = np.nan_to_num(run.at_s - run.numbers["window_start_s"])
        if np.median(length) >= _MIN_WINDOW_RATIO * (run.ends_s[1] - run.ends_s[0]):
            times = np.linspace(run.at_s[0], run.at_s[-1], _MAX_WINDOWS)
            return cls(np.unique(np.searchsorted(run.at_s, times, "right") - 1), run.ends_s, False)
        chosen = np.arange(count - _EXCERPT_EVALUATIONS, count)
        first, last = float(run.at_s[chosen[0]] - np.median(length[chosen])), float(run.at_s[-1])
        latest = float(np.nan_to_num(run.numbers["next_burst_latest_s"][-1]))
        last = max(last, min(latest, last + 0.25 * (last - first)))
        return cls(chosen, (first, last) if last > first else run.ends_s, True)


def _draw_windows(run: Run, windows: _Windows, axes: Axes) -> None:
    """Draw windows as lines, the last one in bold, with the predicted and actual next bursts behind each."""
    chosen, count = windows.chosen, len(run.at_s)
    clock = (
        RunClock.for_span(*windows.ends_s, has_utc_clock=run.clock.has_utc_clock) if windows.is_excerpt else run.clock
    )
    axes.set_xlim(*clock.at(windows.ends_s).tolist())
    count_text = f", {'the last ' * windows.is_excerpt}{len(chosen)} of {count:,}" if len(chosen) < count else ""
    axes.set_title(f"Windows and next bursts{count_text}")
    axes.set_xlabel(clock.label)
    rows = np.arange(len(chosen))
    right, start = clock.at(run.at_s[chosen]), clock.at(run.numbers["window_start_s"][chosen])
    left = np.fmin(start, right)
    for mask, color, label in ((run.has_period[chosen], GREEN, "window"), (~run.has_period[chosen], GRAY, "no period")):
        if mask.any():
            widths = np.where(rows[mask] == rows[-1], 4.0, 1.5)
            axes.hlines(rows[mask], left[mask], right[mask], color=color, lw=widths, label=label)
    axes.plot(right, rows, "|", color=INK, ms=4 if len(chosen) > 20 else 6, mew=1.0, ls="")
    early, likely, late = (clock.at(run.numbers[f"next_burst_{name}_s"][chosen]) for name in _BURSTS)
    if np.isfinite(likely).any():
        axes.hlines(rows, early, late, color=PURPLE, alpha=0.35, lw=3.0, label="next burst expected")
        axes.plot(likely, rows, ".", color=PURPLE, ms=4, ls="")
        axes.plot(clock.at(run.came()[0][chosen]), rows, "x", color=INK, ms=4.5, mew=0.9, ls="", label="detected")
    axes.set_ylim(len(chosen) - 0.3, -0.7)
    step = max(1, math.ceil(len(chosen) / 12))
    tick_rows = np.unique(np.append(rows[: max(1, len(rows) - step) : step], rows[-1]))
    axes.set_yticks(tick_rows, [f"{run.numbers['evaluation'][chosen[row]]:.0f}" for row in tick_rows], fontsize=7.5)
    axes.set_ylabel("evaluation", fontsize=_SMALL)
    panels.legend_above(axes)


def _errors(run: Run) -> Reals:
    """Return the errors of the predicted earliest, likely and latest next burst (3, n).

    Errors are positive for late predictions, and relative to the detected gap before the burst.
    """
    actual_s, gap = run.came()
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.stack([(run.numbers[f"next_burst_{name}_s"] - actual_s) / gap for name in _BURSTS])
    is_known = np.isfinite(errors).all(axis=0)
    return np.where(is_known, errors, np.nan)


def _draw_errors(run: Run, errors: Reals, axes: Axes) -> None:
    """Draw the prediction errors of the next burst from earliest to latest, in percent of the preceding gap."""
    indices = np.flatnonzero(np.isfinite(errors[1]))
    at, percent = run.at_s[indices], 100 * errors[:, indices]
    within = float(np.mean((percent[0] <= 1e-6) & (percent[2] >= -1e-6)))
    limit = float(min(100.0, max(10.0, 1.15 * np.abs(percent).max())))
    beyond = float(np.mean(np.abs(percent[1]) > limit))
    outside = f", {beyond:.1%} beyond the panel" if beyond >= 0.0005 else ""
    detected = f"{format_count(len(indices), 'burst')} detected"
    axes.set_title(f"Next burst: {within:.0%} of {detected} started within the predicted range{outside}")
    bins = Bins.from_times(at, run.ends_s)
    low, high = bins.lowest(percent[0]).clip(-limit, limit), bins.highest(percent[2]).clip(-limit, limit)
    x = run.clock.at(bins.at_s)
    axes.vlines(x, low, high, color=PURPLE, alpha=0.35, lw=3.0 if len(x) <= 200 else 1.2, label="its range")
    likely = np.concatenate([bins.lowest(percent[1]), bins.highest(percent[1])]).clip(-limit, limit)
    axes.plot(np.tile(x, 2), likely, ".", color=PURPLE, ms=4.5 if len(x) <= 200 else 1.6, ls="")
    axes.axhline(0, color=INK, lw=0.9)
    axes.set_ylim(-1.08 * limit, 1.08 * limit)
    axes.set_ylabel("early · late\n[% of the gap]", fontsize=_SMALL)

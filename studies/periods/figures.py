"""Figures of the period study: errors as in FTIO's Figure 8, deviations as in its Figure 9, false alarms, examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from iosig.reports.panels import Size, area, draw_legend, in_order, line, picture
from iosig.reports.style import BLUE, FAINT, GRAY, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION
from iosig.studies.drawing import MARKERS, add_headline
from iosig.studies.pages import format_percent
from iosig.studies.periods.scenarios import Experiment
from iosig.transforms.arrays import Reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_IN = 9.0
_COLORS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, INK)
#: errors are clipped to this range on the logarithmic axis
_MIN_ERROR = 1e-4
_MAX_ERROR = 10.0
_NOISE_WORDS = {"none": "no noise", "low": "low noise", "high": "high noise"}
_SUBJECTS = {
    "compute_time": "phases of all lengths (paper: Figure 8a)",
    "desynchronization": "late processes (paper: Figure 8b)",
    "variability": "varying compute phases (paper: Figure 8c)",
    "cut": "traces that start and end within a period (not in the paper)",
    "io_time": "traces from the first to the last request (FTIO's own window)",
}
_AXES = {
    "compute_time": "length of a compute phase, t_cpu [s]",
    "desynchronization": "mean delay of a process, φ [s] (without delays, an I/O phase takes 10.4 s)",
    "variability": "spread of the lengths of compute phases: their standard deviation over their mean",
    "cut": "length of a compute phase, t_cpu [s]",
    "io_time": "length of a compute phase, t_cpu [s]",
}
#: error limit and its label, as the paper states them
_LIMITS = {
    "compute_time": (0.01, "paper: all below 1 %"),
    "desynchronization": (0.11, "paper: means and medians up to 11 %"),
    "variability": (0.055, "paper: medians below 5.5 % up to a spread of 0.5"),
    "cut": (0.01, "1 %"),
    "io_time": (0.01, "1 %"),
}


#: padding between the common axis label and the tick labels
_PADS = {"w_pad": 0.1}


# ---- detection errors


def _errors_size(answers: pl.DataFrame, experiment: Experiment) -> Size:
    return _WIDTH_IN, max(3.2, 1.2 + 1.5 * answers.filter(experiment=experiment)["method"].n_unique())


@picture(_errors_size, is_constrained=True, pads=_PADS)
def draw_errors(figure: Figure, answers: pl.DataFrame, experiment: Experiment) -> None:
    """Draw box plots of detection errors by setting, one row of panels per method.

    answers: experiment, value, noise_level, method, error_ratio (NULL if no period detected).
    """
    experiment_rows = answers.filter(pl.col("experiment") == experiment)
    methods, values = in_order(experiment_rows, "method"), sorted(set(experiment_rows["value"]))
    levels = in_order(experiment_rows, "noise_level")
    rows = figure.subplots(len(methods), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, method in zip(rows, methods, strict=True):
        method_rows = experiment_rows.filter(pl.col("method") == method)
        _error_boxes(axes, method_rows, values, levels)
        axes.set_title(method, pad=14)
        limit, _ = _LIMITS[experiment]
        axes.axhline(limit, color=GRAY, linestyle="--", linewidth=1, zorder=0)
    _error_axes(rows[0])
    rows[-1].set_xticks(range(len(values)), [f"{value:g}" for value in values])
    rows[-1].set_xlim(-0.6, len(values) - 0.4)
    rows[-1].set_xlabel(_AXES[experiment])
    figure.supylabel("detection error, relative to the mean period")
    add_headline(figure, f"{_describe_best_method(experiment_rows)}: {_SUBJECTS[experiment]}")
    _error_legend(figure, levels, _LIMITS[experiment][1])


def _describe_best_method(answers: pl.DataFrame) -> str:
    """Describe the method with the smallest median error."""
    medians = (
        answers.drop_nulls("error_ratio")
        .group_by("method")
        .agg(pl.col("error_ratio").median())
        .sort("error_ratio", "method")
    )
    if medians.is_empty():
        return "No period was detected"
    method, error_ratio = medians.row(0)
    return f"{method} has the smallest median error, {format_percent(error_ratio)} in the median"


def _error_boxes(axes: Axes, answers: pl.DataFrame, values: Sequence[float], levels: Sequence[str]) -> None:
    """Draw a box per value and noise level; above it, write the fraction of traces in which a period was found."""
    width = 0.8 / len(levels)
    for number, level in enumerate(levels):
        offset = (number - (len(levels) - 1) / 2) * width
        for place, value in enumerate(values):
            errors = answers.filter((pl.col("value") == value) & (pl.col("noise_level") == level))["error_ratio"]
            detected_errors = errors.drop_nulls().to_numpy()
            if len(detected_errors):
                _box(
                    axes,
                    np.clip(detected_errors, _MIN_ERROR, _MAX_ERROR),
                    place + offset,
                    0.85 * width,
                    _COLORS[number],
                )
            share = f"{100 * len(detected_errors) / max(len(errors), 1):.0f}"
            axes.text(place + offset, 1.0, share, transform=axes.get_xaxis_transform(), **_SHARE_TEXT)


_SHARE_TEXT: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 6.5, "color": GRAY}


def _box(axes: Axes, values: Reals, place: float, width: float, color: str) -> None:
    """Draw a box plot: quartiles, median line, whiskers at 1.5 interquartile ranges, and outliers as dots."""
    line = {"color": color, "linewidth": 1}
    axes.boxplot(
        [values],
        positions=[place],
        widths=[width],
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": (color, 0.25), "edgecolor": color, "linewidth": 1},
        medianprops={"color": INK, "linewidth": 1.6},
        whiskerprops=line,
        capprops=line,
        flierprops={"marker": ".", "markersize": 3, "markerfacecolor": color, "markeredgewidth": 0, "alpha": 0.6},
    )


def _error_axes(axes: Axes) -> None:
    from matplotlib.ticker import NullLocator

    axes.set_yscale("log")
    axes.set_ylim(_MIN_ERROR * 0.8, _MAX_ERROR * 1.2)
    ticks = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
    axes.set_yticks(ticks, ["≤ 0.01 %", "0.1 %", "1 %", "10 %", "100 %", "≥ 1000 %"])
    axes.yaxis.set_minor_locator(NullLocator())


def _error_legend(figure: Figure, levels: Sequence[str], limit: str) -> None:
    marks = []
    if len(levels) > 1:
        pairs = zip(levels, _COLORS, strict=False)
        marks += [
            area(_NOISE_WORDS.get(level, level), facecolor=(color, 0.25), edgecolor=color) for level, color in pairs
        ]
    marks += [
        line("median", color=INK, linewidth=1.6),
        line(limit, color=GRAY, linestyle="--", linewidth=1),
        line("grey numbers: traces with a detected period [%]", color="none"),
    ]
    draw_legend(figure, marks, loc="outside lower center", ncols=len(marks))


# ---- deviations


def _deviations_size(answers: pl.DataFrame) -> Size:
    return _WIDTH_IN, 1.0 + 1.4 * answers.filter(experiment="variability")["method"].n_unique()


@picture(_deviations_size, is_constrained=True, pads=_PADS)
def draw_deviations(figure: Figure, answers: pl.DataFrame) -> None:
    """Draw box plots of sigma_vol and sigma_time over sigma / mu, one row per method, as in Figure 9.

    answers: experiment, value, method, sigma_vol, sigma_time (NULL if no period detected).
    """
    experiment_rows = answers.filter(pl.col("experiment") == "variability")
    methods, values = in_order(experiment_rows, "method"), sorted(set(experiment_rows["value"]))
    cells = figure.subplots(len(methods), 2, sharex=True, sharey=True, squeeze=False)
    for row, method in zip(cells, methods, strict=True):
        for axes, name, color in zip(row, ("sigma_vol", "sigma_time"), _COLORS, strict=False):
            for place, value in enumerate(values):
                deviations = experiment_rows.filter((pl.col("method") == method) & (pl.col("value") == value))[
                    name
                ].drop_nulls()
                if len(deviations):
                    _box(axes, deviations.to_numpy(), place, 0.7, color)
            axes.set_title(method)
    for axes, word in zip(cells[-1], ("of volume", "of time on I/O"), strict=True):
        _sparse_ticks(axes, values)
        axes.set_xlabel(f"{word}, by the spread of compute phases")
    figure.supylabel("standard deviation (no unit)")
    add_headline(figure, "Standard deviations of volume and of time on I/O (paper: Figure 9)")


def _sparse_ticks(axes: Axes, values: Sequence[float]) -> None:
    """Label every fourth value, so that the labels do not overlap."""
    places = range(0, len(values), 4 if len(values) > 12 else 1)
    axes.set_xticks(list(places), [f"{values[place]:g}" for place in places])
    axes.set_xlim(-0.7, len(values) - 0.3)


# ---- false alarms


@picture(lambda alarms: (_WIDTH_IN, 1.6 + 0.55 * alarms["noise"].n_unique()), is_constrained=True, pads=_PADS)
def draw_alarms(figure: Figure, alarms: pl.DataFrame) -> None:
    """Plot the false-alarm rate of each method on each noise, with its 95 % confidence interval.

    alarms: kind, noise, method, alarm_ratio, low_ratio, high_ratio. Points rather than bars, since the axis is
    logarithmic and bars would have to start at zero.
    """
    from matplotlib.ticker import NullLocator

    methods = in_order(alarms, "method")
    noises = alarms.select("kind", "noise").unique(maintain_order=True).rows()
    axes = figure.subplots()
    for number, method in enumerate(methods):
        rows = alarms.filter(pl.col("method") == method)
        by_noise = {row["noise"]: row for row in rows.iter_rows(named=True)}
        shift = (number - (len(methods) - 1) / 2) * 0.8 / len(methods)
        _alarm_points(axes, [by_noise[noise] for _, noise in noises], shift, number, method)
    axes.set_xscale("symlog", linthresh=0.01, linscale=1.0)
    axes.set_xlim(-0.0005, 1.05)
    ticks = (0.0, 0.005, 0.01, 0.03, 0.1, 0.3, 1.0)
    axes.set_xticks(ticks, [f"{100 * tick:g} %" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.axvline(0.01, color=GRAY, linestyle="--", linewidth=1, zorder=0, label="1 %")
    axes.set_yticks(range(len(noises)), [f"{kind}: {noise}" if kind != "bursts" else noise for kind, noise in noises])
    axes.set_ylim(len(noises) - 0.5, -0.5)
    for edge in range(1, len(noises)):
        axes.axhline(edge - 0.5, color=FAINT, linewidth=0.8, zorder=0)
    axes.set_xlabel("signals reported as periodic [%]: linear up to 1 %, logarithmic above")
    add_headline(figure, f"False alarms: {_describe_alarms(alarms)}")
    figure.legend(loc="outside lower center", ncols=len(methods) + 1)


def _describe_alarms(alarms: pl.DataFrame) -> str:
    """Describe the methods with the lowest and the highest maximum false-alarm rate."""
    highest = alarms.group_by("method").agg(pl.col("alarm_ratio").max()).sort("alarm_ratio", "method")
    (lowest_method, low), (highest_method, high) = highest.row(0), highest.row(-1)
    return f"{lowest_method} at most {format_percent(low)}, {highest_method} up to {format_percent(high)} of any noise"


def _alarm_points(axes: Axes, rows: Sequence[dict[str, Any]], shift: float, number: int, method: str) -> None:
    ratio, low, high = (np.array([row[name] for row in rows]) for name in ("alarm_ratio", "low_ratio", "high_ratio"))
    axes.errorbar(
        ratio,
        np.arange(len(rows)) + shift,
        xerr=np.maximum([ratio - low, high - ratio], 0.0),
        fmt=MARKERS[number % len(MARKERS)],
        color=_COLORS[number % len(_COLORS)],
        markersize=4.5,
        linewidth=1,
        capsize=2,
        label=method,
        clip_on=False,
    )


# ---- examples


@picture(lambda examples, hz: (_WIDTH_IN, 0.8 + 1.25 * len(examples)), is_constrained=True, pads=_PADS)
def draw_examples(figure: Figure, examples: Sequence[tuple[str, Reals]], sampling_hz: float) -> None:
    """Plot one trace per setting, as in Figure 7; examples: titles, and samples in bytes per second."""
    rows = figure.subplots(len(examples), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (title, samples) in zip(rows, examples, strict=True):
        edges = np.arange(len(samples) + 1) / sampling_hz
        axes.stairs(samples / 1e9, edges, fill=True, color=_COLORS[0], linewidth=0)
        axes.set_title(title)
    rows[-1].set_xlabel("time [s]")
    rows[-1].set_xlim(0, max(len(samples) for _, samples in examples) / sampling_hz)
    rows[-1].set_ylim(bottom=0)
    figure.supylabel("throughput [GB/s]")
    add_headline(figure, "Semi-synthetic traces (paper: Figure 7)")

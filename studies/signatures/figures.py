"""Draw figures of the signature study: accuracy as in IOSI's Figure 16, sensitivity as in 17 and 18, time as in 19."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.reports.panels import Size, in_order, picture
from iosig.reports.style import BLUE, FAINT, GRAY, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION
from iosig.studies.drawing import MARKERS, add_headline
from iosig.transforms.arrays import Reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_IN = 10.0
#: number of panels per row in the figure of expected correlation
_CALIBRATION_COLUMNS = 5
#: colors of lines; the first one stands out
_COLORS = (VERMILION, BLUE, SKY, ORANGE, GREEN, PURPLE, INK)
#: index of each method's marker and color, so that it looks the same in every figure
_PLACES = {
    name: place
    for place, name in enumerate(
        (
            "chosen",
            "robust",
            "iosi_filtered",
            "iosi_raw",
            "dtw",
            "mean",
            "median",
            "quantile",
            "elastic",
            "time_normalized",
            "iosi",
        )
    )
}
#: line styles of the bounds, which are not methods
_BOUNDS = {"known, mean": "--", "known, shortest": ":"}
#: maximum number of columns of a legend
_MAX_PER_ROW = 7
_METRICS = {
    "cross_correlation": "cross-correlation",
    "correlation": "correlation",
    "volume_ratio": "volume / true volume",
}
_SIMILARITIES = ("cross_correlation", "correlation")


# ---- accuracy


@picture((_WIDTH_IN, 9.5), is_constrained=True)
def draw_accuracy(figure: Figure, summed: pl.DataFrame, title: str) -> None:
    """Plot every metric of every method by application, one column per level: as Figure 16.

    summed: level, application, method; mean_*, low_* and high_* of each metric (points, and bars between quartiles);
    mean_missed_count and mean_false_count.
    """
    levels, applications = in_order(summed, "level"), in_order(summed, "application")
    methods = in_order(summed, "method")
    cells = figure.subplots(4, len(levels), sharex=True, sharey="row", squeeze=False)
    for column, level in enumerate(levels):
        at_level = summed.filter(pl.col("level") == level)
        for number, method in enumerate(methods):
            rows = {row["application"]: row for row in at_level.filter(method=method).iter_rows(named=True)}
            application_rows = [rows[name] for name in applications]
            place: Reals = np.arange(float(len(applications))) + (number - (len(methods) - 1) / 2) * 0.8 / len(methods)
            for axes, name in zip(cells[:, column], _METRICS, strict=False):
                mean, low, high = (_column(application_rows, f"{end}_{name}") for end in ("mean", "low", "high"))
                bars = [np.maximum(mean - low, 0.0), np.maximum(high - mean, 0.0)]
                _points(axes, place, mean, bars, method, is_labeled=axes is cells[0, 0])
            wrong_count = _column(application_rows, "mean_missed_count") + _column(application_rows, "mean_false_count")
            _points(cells[3, column], place, wrong_count, None, method)
        cells[0, column].set_title(level)
        cells[3, column].set_xticks(range(len(applications)), applications)
        cells[3, column].set_xlim(-0.5, len(applications) - 0.5)
    for axes, words in zip(cells[:, 0], [*_METRICS.values(), "bursts missed or false"], strict=True):
        axes.set_ylabel(words)
    _accuracy_axes(cells, len(applications))
    add_headline(figure, title)
    figure.legend(loc="outside lower center", ncols=_MAX_PER_ROW)


def _column(rows: Sequence[dict[str, Any]], name: str) -> Reals:
    return np.array([row[name] for row in rows], dtype=np.float64)


def _style(name: str, number: int = 0) -> dict[str, Any]:
    """Return marker and color of a method, or of line `number` for other names."""
    if name in _BOUNDS:
        return {"linestyle": _BOUNDS[name], "color": GRAY, "zorder": 1}
    place = _PLACES.get(name, number)
    marks = {"marker": MARKERS[place % len(MARKERS)], "color": _COLORS[place % len(_COLORS)], "markersize": 4}
    # markers are hollow when colors repeat
    return marks if place < len(MARKERS) else marks | {"markerfacecolor": "none"}


def _points(
    axes: Axes, place: Reals, mean: Reals, bars: Sequence[Reals] | None, method: str, *, is_labeled: bool = False
) -> None:
    axes.errorbar(
        place, mean, yerr=bars, linestyle="none", linewidth=1, label=method if is_labeled else None, **_style(method)
    )


def _accuracy_axes(cells: npt.NDArray[np.object_], count: int) -> None:
    from matplotlib.ticker import NullLocator

    for row in cells:
        for axes in row:
            for edge in range(1, count):
                axes.axvline(edge - 0.5, color=FAINT, linewidth=0.8, zorder=0)
            axes.grid(axis="y", color=FAINT, linewidth=0.8)
            axes.set_axisbelow(True)
    cells[0, 0].set_ylim(0, 1.02)
    cells[1, 0].set_ylim(min(0.0, cells[1, 0].get_ylim()[0]), 1.02)
    for axes in cells[2]:
        axes.axhline(1.0, color=GRAY, linestyle="--", linewidth=1, zorder=0)
    cells[2, 0].set_yscale("symlog", linthresh=2.0, linscale=2.0)
    cells[2, 0].set_yticks([0, 0.5, 1, 1.5, 2, 5, 10], ["0", "0.5", "1", "1.5", "2", "5", "10"])
    cells[3, 0].set_yscale("symlog", linthresh=1.0)
    cells[3, 0].set_yticks([0, 0.5, 1, 3, 10, 30, 100], ["0", "0.5", "1", "3", "10", "30", "100"])
    for axes in (cells[2, 0], cells[3, 0]):
        axes.yaxis.set_minor_locator(NullLocator())
    cells[2, 0].set_ylim(bottom=0)
    # leave room for markers at zero
    cells[3, 0].set_ylim(bottom=-0.1)


# ---- one parameter varied


@dataclass(frozen=True, slots=True)
class SweptParameter:
    """Experiment, axis label and default value of a swept parameter."""

    experiment: str
    words: str
    usual: float


@picture((_WIDTH_IN, 6.0), is_constrained=True)
def draw_sweeps(figure: Figure, summed: pl.DataFrame, sweeps: Sequence[SweptParameter], title: str) -> None:
    """Plot both similarities of one method against parameters, one line per application, as Figures 17 and 18.

    summed: experiment, value, application, mean_cross_correlation, mean_correlation.
    """
    cells = figure.subplots(2, len(sweeps), sharex="col", sharey="row", squeeze=False)
    for column, parameter in enumerate(sweeps):
        experiment_rows = summed.filter(pl.col("experiment") == parameter.experiment)
        for axes, name in zip(cells[:, column], _SIMILARITIES, strict=True):
            _lines(axes, experiment_rows, "application", f"mean_{name}", is_labeled=axes is cells[0, 0])
            axes.axvline(parameter.usual, color=GRAY, linestyle="--", linewidth=1, zorder=0)
        cells[1, column].set_xlabel(parameter.words)
        cells[1, column].set_xticks(sorted(set(experiment_rows["value"])))
    _similarity_axes(cells)
    add_headline(figure, title)
    figure.legend(loc="outside lower center", ncols=_MAX_PER_ROW)


@picture((_WIDTH_IN, 6.0), is_constrained=True)
def draw_drift(figure: Figure, summed: pl.DataFrame, title: str) -> None:
    """Plot both similarities against the drift, one column per application and one line per method.

    summed: value (relative standard deviation of computing times), application, method, mean_cross_correlation,
    mean_correlation.
    """
    applications = in_order(summed, "application")
    cells = figure.subplots(2, len(applications), sharex=True, sharey="row", squeeze=False)
    for column, application in enumerate(applications):
        application_rows = summed.filter(pl.col("application") == application)
        for axes, name in zip(cells[:, column], _SIMILARITIES, strict=True):
            _lines(axes, application_rows, "method", f"mean_{name}", is_labeled=axes is cells[0, 0])
        cells[0, column].set_title(application)
        values = sorted(set(summed["value"]))
        cells[1, column].set_xticks(values, [f"{100 * value:g}" for value in values])
    _similarity_axes(cells)
    cells[1, len(applications) // 2].set_xlabel("standard deviation of a run's computing [%]")
    add_headline(figure, title)
    figure.legend(loc="outside lower center", ncols=_MAX_PER_ROW)


def _lines(axes: Axes, rows: pl.DataFrame, key: str, column: str, *, is_labeled: bool) -> None:
    for number, name in enumerate(in_order(rows, key)):
        line = rows.filter(pl.col(key) == name).sort("value")
        axes.plot(
            line["value"].to_numpy(),
            line[column].to_numpy(),
            linewidth=1.2,
            label=name if is_labeled else None,
            **_style(name, number),
        )


def _similarity_axes(cells: npt.NDArray[np.object_]) -> None:
    for row, words in zip(cells, (_METRICS[name] for name in _SIMILARITIES), strict=True):
        row[0].set_ylabel(words)
        row[0].set_ylim(min(0.0, row[0].get_ylim()[0]), 1.02)
        for axes in row:
            axes.grid(color=FAINT, linewidth=0.8)
            axes.set_axisbelow(True)


# ---- time


@picture((_WIDTH_IN, 4.2), is_constrained=True)
def draw_times(figure: Figure, times: pl.DataFrame, title: str) -> None:
    """Plot the time for one set by number and length of samples, as Figure 19.

    times: by (`samples` or `points`), value, method, seconds.
    """
    from matplotlib.ticker import FuncFormatter, NullFormatter

    panels = figure.subplots(1, 2, sharey=True)
    words = {"samples": "samples of about 2,000 points", "points": "points in each of 8 samples (1 s each)"}
    for axes, (by, label) in zip(panels, words.items(), strict=True):
        _lines(axes, times.filter(by=by), "method", "seconds", is_labeled=by == "samples")
        axes.set_xlabel(label)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(color=FAINT, linewidth=0.8)
        axes.set_axisbelow(True)
    panels[0].set_ylabel("time for one set [s]")
    add_headline(figure, title)
    figure.legend(loc="outside lower center", ncols=_MAX_PER_ROW)


# ---- expected correlation


def _compute_calibration_size(predictions: pl.DataFrame, title: str) -> Size:
    return _WIDTH_IN, 2.2 * -(-predictions["family"].n_unique() // _CALIBRATION_COLUMNS) + 0.6


@picture(_compute_calibration_size, is_constrained=True)
def draw_expected_correlation(figure: Figure, predictions: pl.DataFrame, title: str) -> None:
    """Plot actual against predicted correlation, one panel per family: signatures as points, and means of ten bins.

    predictions: family, told, correlation (NULL: no signature).
    """
    families = in_order(predictions, "family")
    columns = _CALIBRATION_COLUMNS
    cells = figure.subplots(-(-len(families) // columns), columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, family in zip(cells, families, strict=False):
        rows = predictions.filter(family=family)
        expected = rows["told"].to_numpy()
        actual = rows["correlation"].fill_null(0.0).clip(0.0).to_numpy()
        axes.plot([0, 1], [0, 1], color=GRAY, linestyle="--", linewidth=1, zorder=1)
        axes.plot(expected, actual, ".", color=SKY, markersize=1.5, alpha=0.4, zorder=0, rasterized=True)
        bins = np.clip((expected * 10).astype(np.int64), 0, 9)
        means = [
            (expected[bins == number].mean(), actual[bins == number].mean())
            for number in range(10)
            if (bins == number).sum() > 4
        ]
        if means:
            axes.plot(*np.array(means).T, marker="o", color=VERMILION, markersize=4, linewidth=1.2)
        axes.set_title(family)
    for axes in cells[len(families) :]:
        axes.set_visible(False)
    figure.supxlabel("told")
    figure.supylabel("found")
    add_headline(figure, title)


# ---- examples


@dataclass(frozen=True, slots=True)
class Example:
    """An application's samples, truth and signatures, each with its name.

    curves: name, rates at even steps from the start of the run, and length of a step [s].
    """

    name: str
    curves: Sequence[tuple[str, Reals, float]]


@picture(lambda examples, title: (_WIDTH_IN, 1.0 + 1.05 * len(examples[0].curves)), is_constrained=True)
def draw_examples(figure: Figure, examples: Sequence[Example], title: str) -> None:
    """Plot samples, truth and signatures, one column per application: as Figures 12 to 15."""
    count = len(examples[0].curves)
    cells = figure.subplots(count, len(examples), sharex="col", sharey="col", squeeze=False)
    for column, example in enumerate(examples):
        highest = 0.0
        for axes, (name, curve, step_s) in zip(cells[:, column], example.curves, strict=True):
            color = {"sample": GRAY, "truth": INK}.get(name.split()[0], _COLORS[1])
            axes.stairs(
                curve / 1e9,
                np.arange(len(curve) + 1) * step_s,
                fill=True,
                facecolor=color,
                edgecolor=color,
                linewidth=0.5,
            )
            if not column:
                axes.set_ylabel(name, rotation=0, ha="right", va="center")
            if not name.startswith("sample"):
                highest = max(highest, float(curve.max(initial=0.0)) / 1e9)
        cells[0, column].set_title(example.name)
        # large peaks in a sample must not set the scale
        cells[0, column].set_ylim(0, 1.3 * highest or 1.0)
        cells[-1, column].set_xlabel("time [s]")
    figure.supylabel("GB/s")
    add_headline(figure, title)

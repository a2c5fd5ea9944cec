"""Draw the figures of the extrapolation study: sizes and times by rank count, and offsets in a shared file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.reports.panels import Size, area, draw_legend, in_order, picture
from iosig.reports.style import BLUE, GRAY, GREEN, GROUND, INK, ORANGE, PURPLE, SKY, VERMILION
from iosig.reports.texts import plain
from iosig.studies.drawing import add_headline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_IN = 9.0
_COLORS = (VERMILION, BLUE, GREEN, ORANGE, PURPLE, SKY)
_COLUMNS, _MAP_COLUMNS = 4, 3
_UNITS = {
    1e3: "1 kB",
    1e4: "10 kB",
    1e5: "100 kB",
    1e6: "1 MB",
    1e7: "10 MB",
    1e8: "100 MB",
    1e9: "1 GB",
    1e10: "10 GB",
}
#: maximum number of programs in the figure of sizes
_MAX_SIZES = 4


#: padding between the common axis label and the tick labels
_PADS = {"w_pad": 0.08, "h_pad": 0.06}


def _row_count(count: int, columns: int) -> int:
    return max(-(-count // columns), 1)


# ---- sizes


@picture((_WIDTH_IN, 5.0), is_constrained=True, pads=_PADS)
def draw_sizes(figure: Figure, traces: pl.DataFrame, sizes: pl.DataFrame, title: str) -> None:
    """Plot trace size by rank count: raw with a linear extrapolation, and compressed.

    traces: program, process_count, traced_bytes, compressed_bytes. sizes: program, process_count, compressed_bytes at
    extrapolated rank counts. The figure shows only programs that reach the largest rank count, evenly spaced between
    the largest and the smallest traces.
    """
    largest_programs = sizes.filter(pl.col("process_count") == sizes["process_count"].max())["program"]
    program_traces = traces.filter(pl.col("program").is_in(largest_programs.to_list()))
    largest = program_traces.group_by("program", maintain_order=True).agg(pl.col("traced_bytes").max())
    ordered = largest.sort("traced_bytes", descending=True, maintain_order=True)["program"]
    names = ordered.gather(np.unique(np.linspace(0, len(ordered) - 1, _MAX_SIZES).round().astype(int))).to_list()
    axes = figure.subplots()
    for color, name in zip(_COLORS, names, strict=False):
        _size_lines(axes, program_traces.filter(program=name), sizes.filter(program=name), color, _label(name))
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("ranks")
    axes.set_ylabel("bytes of the trace")
    low, high = axes.get_ylim()
    ticks = [size for size in _UNITS if low <= size <= high]
    axes.set_yticks(ticks, [_UNITS[size] for size in ticks])
    counts = [10.0**power for power in range(1, 7) if axes.get_xlim()[0] <= 10.0**power <= axes.get_xlim()[1]]
    axes.set_xticks(counts, [f"{count:,.0f}" for count in counts])
    axes.set_title(title)
    _size_legend(figure, axes)


def _size_lines(axes: Axes, traced: pl.DataFrame, extrapolated: pl.DataFrame, color: str, name: str) -> None:
    counts, raw = (traced[column].to_numpy().astype(float) for column in ("process_count", "traced_bytes"))
    axes.plot(counts, raw, "s", color=color, markersize=4)
    if len(counts) > 1 and not extrapolated.is_empty():
        slope, intercept = np.polyfit(counts, raw, 1)
        fit_counts = np.geomspace(counts[0], float(extrapolated["process_count"].max()), 50)  # type: ignore[arg-type]
        axes.plot(fit_counts, slope * fit_counts + intercept, "--", color=color, linewidth=1)
    sizes = pl.concat([traced.select("process_count", "compressed_bytes"), extrapolated.drop("program")]).sort(
        "process_count"
    )
    axes.plot(sizes["process_count"], sizes["compressed_bytes"], "-", color=color, linewidth=1.6, label=name)
    axes.plot(traced["process_count"], traced["compressed_bytes"], "o", color=color, markersize=4)
    axes.plot(extrapolated["process_count"], extrapolated["compressed_bytes"], "o", color=color, markerfacecolor=GROUND)


def _label(name: str) -> str:
    """Escape a program name for a legend; matplotlib hides labels that start with an underscore."""
    return plain(f" {name}" if name.startswith("_") else name)


def _size_legend(figure: Figure, axes: Axes) -> None:
    from matplotlib.lines import Line2D

    handles, _ = axes.get_legend_handles_labels()
    marks = [
        Line2D([], [], color=GRAY, marker="s", linestyle="none", markersize=4, label="as traced"),
        Line2D([], [], color=GRAY, linestyle="--", linewidth=1, label="linear continuation"),
        Line2D([], [], color=GRAY, marker="o", markersize=4, label="compressed, traced"),
        Line2D([], [], color=GRAY, marker="o", markerfacecolor=GROUND, label="compressed, extrapolated"),
    ]
    figure.legend(handles=[*handles, *marks], loc="outside lower center", ncols=4, fontsize=8.5)


# ---- times


def _times_size(_: pl.DataFrame, curves: pl.DataFrame, title: str) -> Size:
    return _WIDTH_IN, 0.9 + 1.75 * _row_count(curves["program"].n_unique(), _COLUMNS)


@picture(_times_size, is_constrained=True, pads=_PADS)
def draw_times(figure: Figure, checks: pl.DataFrame, curves: pl.DataFrame, title: str) -> None:
    """Plot traced and extrapolated mean end times by rank count, one panel per program.

    checks: program, process_count, traced_s. curves: program, process_count, extrapolated_s, from models that are
    fitted without a program's largest process_count.
    """
    names = in_order(curves, "program")
    rows = _row_count(len(names), _COLUMNS)
    cells = figure.subplots(rows, _COLUMNS, squeeze=False).ravel()
    for axes, name in zip(cells, names, strict=False):
        _time_panel(axes, checks.filter(program=name).sort("process_count"), curves.filter(program=name))
        axes.set_title(plain(name), fontsize=8.5)
    for number, axes in enumerate(cells):
        axes.set_visible(number < len(names))
        if number >= len(names) - _COLUMNS:
            axes.set_xlabel("ranks")
    figure.supylabel("mean end time of ranks [s]")
    add_headline(figure, title)
    handles, labels = cells[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(handles), fontsize=8.5)


def _time_panel(axes: Axes, traced: pl.DataFrame, curve: pl.DataFrame) -> None:
    fit_rows, held_out = traced.head(traced.height - 1), traced.tail(1)
    axes.plot(
        curve["process_count"], curve["extrapolated_s"], ".-", color=BLUE, linewidth=1.2, markersize=4, label="models"
    )
    axes.plot(
        fit_rows["process_count"],
        fit_rows["traced_s"],
        "o",
        color=INK,
        markersize=4.5,
        label="traced, used for the fit",
    )
    axes.plot(
        held_out["process_count"],
        held_out["traced_s"],
        "D",
        color=VERMILION,
        markerfacecolor=GROUND,
        markeredgewidth=1.6,
        label="traced, unseen",
    )
    axes.set_xscale("log")
    counts = sorted({traced["process_count"][0], traced["process_count"][-1], curve["process_count"].max()})
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    axes.set_xticks([], minor=True)
    highest = max(float(column.max() or 0) for column in (traced["traced_s"], curve["extrapolated_s"]))  # type: ignore[arg-type]
    axes.set_ylim(0, 1.15 * highest or 1)


# ---- maps


def _map_size(maps: pl.DataFrame, title: str) -> Size:
    count = maps["process_count"].n_unique()
    return _WIDTH_IN, 0.9 + 2.3 * _row_count(count, min(count, _MAP_COLUMNS))


@picture(_map_size, is_constrained=True, pads=_PADS)
def draw_map(figure: Figure, maps: pl.DataFrame, title: str) -> None:
    """Draw the offsets of each rank and iteration in a shared file, one panel per rank count.

    maps: process_count, is_traced, rank, iteration and offset for one field. Bars are as long as the smallest distance
    between two offsets.
    """
    counts = maps.select("process_count", "is_traced").unique(maintain_order=True).rows()
    columns = min(len(counts), _MAP_COLUMNS)
    rows = _row_count(len(counts), columns)
    cells = figure.subplots(rows, columns, squeeze=False).ravel()
    ends = [_map_panel(axes, maps.filter(process_count=count)) for axes, (count, _) in zip(cells, counts, strict=False)]
    for axes, (count, is_traced) in zip(cells, counts, strict=False):
        words = "traced" if is_traced else "extrapolated"
        color = INK if is_traced else VERMILION
        axes.set_title(f"{count:,} ranks, {words}", color=color)
        axes.set_xlim(0, max(ends))
        axes.set_ylim(count - 0.5, -0.5)
    for axes in cells[len(counts) :]:
        axes.set_visible(False)
    for axes in cells[max(len(counts) - columns, 0) : len(counts)]:
        axes.set_xlabel("offset in the file [B]")
    figure.supylabel("rank")
    add_headline(figure, title)
    _map_legend(figure, maps["iteration"].unique().sort().to_list())


def _map_panel(axes: Axes, offsets: pl.DataFrame) -> int:
    """Draw the offsets of one rank count and return the end of the last bar."""
    places = offsets["offset"].unique().sort()
    size = int(places.diff().drop_nulls().min() or 1)  # type: ignore[arg-type]
    for (iteration,), part in offsets.group_by("iteration", maintain_order=True):
        axes.barh(
            part["rank"], size, left=part["offset"], height=1.0, color=_COLORS[int(str(iteration)) % len(_COLORS)]
        )
    return int(places[-1]) + size


def _map_legend(figure: Figure, iterations: Sequence[int]) -> None:
    marks = [area(f"iteration {number}", color=_COLORS[number]) for number in iterations[: len(_COLORS)]]
    draw_legend(figure, marks, loc="outside lower center", ncols=len(marks))

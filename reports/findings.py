"""Describe the findings of a traced run in sentences, and draw its heat maps of bytes, with marginal sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from iosig.reports.panels import headings, inch_axes, picture
from iosig.reports.style import (
    DIRECTION_HUES,
    INK,
    NOTE_POINTS,
    SHADES,
    SOFT,
    WIDTH_IN,
)
from iosig.reports.texts import (
    RATES,
    TIMES,
    VOLUMES,
    choose_unit,
    duration_text,
    plain,
    printable,
    ratio_text,
    volume_text,
)
from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.findings.rank_times import RankTimes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path
    from matplotlib.ticker import MaxNLocator

_TOP_IN, _SUM_IN, _CELLS_IN, _GAP_IN, _BELOW_IN = 1.05, 0.75, 2.6, 0.1, 0.75
_SIDES, _EDGE = (0.085, 0.83), (0.845, 0.985)
#: dynamic range of a heat map's color scale below the strongest cell, in decades
_DECADES = 4.0


def fill_template(sentence: str, evidence: Iterable[Mapping[str, Any]]) -> str:
    """Fill the numbers into a finding's sentence template, formatted with readable units."""
    return sentence.format_map({number["name"]: number_text(number["value"], number["unit"]) for number in evidence})


def files_text(files: Sequence[Mapping[str, Any]]) -> str:
    """List the files of a finding with their values; names from logs are truncated."""
    texts = [
        f"{printable(file['path'], _PATH_CHARACTERS)} ({number_text(file['value'], file['unit'])}"
        f"{_NOUNS.get(file['unit'], '')})"
        for file in files
    ]
    return f"Mostly in {'; '.join(texts)}."


#: nouns that `files_text` appends to numbers in units for which `number_text` adds no name
_NOUNS = {"requests": " requests", "operations": " opens and stats"}
_PATH_CHARACTERS = 60


def number_text(value: float | None, unit: str) -> str:
    """Format a number from the evidence of a finding, with its unit."""
    if value is None:
        return "an unknown number"
    match unit:
        case "B":
            return volume_text(value)
        case "s":
            return duration_text(value)
        case "1":
            return f"{value:.0%}" if value >= 0.095 else ratio_text(value)
        case "rank":
            return f"{value:.0f}"
        case "times":
            return f"{value:.3g} times"
        case "operations/s":
            return f"{value:,.3g} a second"
        case _:
            return f"{value:,.0f}"


# ---- the heat map


@dataclass(frozen=True, slots=True)
class HeatView:
    """Heat maps of one traced run, one per direction; subject: the run's name; finding: the headline."""

    subject: str
    maps: Sequence[RankTimes]
    finding: str


def summarize_heat_maps(maps: Sequence[RankTimes]) -> str:
    """Summarize heat maps in one line: bytes moved and the fraction of active ranks."""
    if not maps:
        return "No heat map: the trace does not record bytes by rank and time."
    parts = []
    for heat_map in maps:
        ranks = int((heat_map.cell_bytes.sum(axis=1) > 0).sum())
        share = ranks / len(heat_map.cell_bytes)
        word = {"write": "written", "read": "read"}[heat_map.direction]
        ranks_text = "all ranks" if share == 1 else f"{share:.0%} of the rows of ranks"
        parts.append(f"{volume_text(float(heat_map.cell_bytes.sum()))} {word} by {ranks_text}")
    return f"{maps[0].module}: {', '.join(parts)}"


def _size(view: HeatView) -> tuple[float, float]:
    map_in = _SUM_IN + _CELLS_IN + _GAP_IN + _BELOW_IN
    return WIDTH_IN, _TOP_IN + max(len(view.maps), 1) * map_in + 0.1


@picture(_size)
def draw(figure: Figure, view: HeatView) -> None:
    """Draw a heat map for each direction, with sums over ranks above and sums over time to its right."""
    headings(figure, plain(view.finding), [plain(view.subject)], INK)
    until_s = max((float(heat_map.time_edges_s[-1]) for heat_map in view.maps), default=1.0)
    unit = choose_unit(until_s, TIMES, "s")
    for number, heat_map in enumerate(view.maps):
        top = _TOP_IN + number * (_SUM_IN + _CELLS_IN + _GAP_IN + _BELOW_IN)
        above = inch_axes(figure, top, _SUM_IN, _SIDES)
        cells = inch_axes(figure, top + _SUM_IN + _GAP_IN, _CELLS_IN, _SIDES)
        rank_sums = inch_axes(figure, top + _SUM_IN + _GAP_IN, _CELLS_IN, _EDGE)
        scale = inch_axes(figure, top + _SUM_IN - 0.32, 0.12, _EDGE)
        high = float(heat_map.cell_bytes.max())
        _draw_cells(cells, heat_map, high, unit.size)
        cells.set_xlabel(f"time since the run began [{unit.name}]")
        _draw_sums(above, heat_map, unit.size)
        for axes in (above, cells):
            # all directions have the same time axis
            axes.set_xlim(0, until_s / unit.size)
        _draw_ranks(rank_sums, heat_map)
        _draw_scale(scale, high)


def levels(cell_bytes: Reals, high: float) -> Reals:
    """Return the level of each cell, from 1 to the number of shades, on a log scale up to `high`; 0 for empty cells."""
    share = np.zeros_like(cell_bytes)
    is_active = cell_bytes > 0
    share[is_active] = 1 + np.log10(cell_bytes[is_active] / high) / _DECADES
    level = np.where(is_active, 1 + np.floor(np.clip(share, 0, 1) * (len(SHADES) - 1e-9)), 0)
    return np.clip(level, 0, len(SHADES))


def _draw_cells(axes: Axes, heat_map: RankTimes, high: float, unit_s: float) -> None:
    """Draw the cells as one path per shade, because thousands of separate squares would make a page large."""
    from matplotlib.patches import PathPatch

    level = levels(heat_map.cell_bytes, high)
    times, ranks = heat_map.time_edges_s / unit_s, heat_map.rank_edges.astype(np.float64)
    for number, color in enumerate(SHADES, start=1):
        row, first, stop = _stretches(level == number)
        if len(row):
            path = _boxes(times[first], ranks[row], times[stop], ranks[row + 1])
            axes.add_patch(PathPatch(path, facecolor=color, edgecolor=color, linewidth=0.25))
    axes.set(ylim=(ranks[-1], ranks[0]), ylabel="rank")
    axes.yaxis.set_major_locator(_whole_numbers())
    _bare(axes)


def _stretches(is_in: Bools) -> tuple[Ints, Ints, Ints]:
    """Return the stretches of adjacent cells within rows: row, first cell, and last cell + 1 of each."""
    padded = np.pad(is_in, ((0, 0), (1, 1))).astype(np.int8)
    turns = np.diff(padded, axis=1)
    row, first = np.nonzero(turns == 1)
    _, stop = np.nonzero(turns == -1)
    return row, first, stop


def _boxes(left: Reals, top: Reals, right: Reals, bottom: Reals) -> Path:
    """Return rectangles (n) as one path."""
    from matplotlib.path import Path

    corners = np.stack([left, top, right, top, right, bottom, left, bottom, left, top], axis=1).reshape(-1, 2)
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(left))
    return Path(corners, codes)


def _draw_sums(axes: Axes, heat_map: RankTimes, unit_s: float) -> None:
    """Draw the bytes over time, summed over all ranks."""
    rates = heat_map.time_bytes / np.diff(heat_map.time_edges_s)
    unit = choose_unit(float(rates.max()), RATES, "B/s")
    axes.stairs(rates / unit.size, heat_map.time_edges_s / unit_s, fill=True, color=DIRECTION_HUES[heat_map.direction])
    axes.set(ylim=(0, None), xticklabels=[], ylabel=f"[{unit.name}]")
    word = {"write": "Writes", "read": "Reads"}[heat_map.direction]
    source = {"heatmap": "the tracer's heat map", "requests": "single requests"}[heat_map.source]
    axes.set_title(f"{word} by {plain(heat_map.module)}, sum of all ranks; from {source}", pad=4)
    axes.locator_params(axis="y", nbins=3)
    _bare(axes)


def _draw_ranks(axes: Axes, heat_map: RankTimes) -> None:
    """Draw the bytes of each rank as a bar next to its row."""
    unit = choose_unit(float(heat_map.rank_bytes.max()), VOLUMES, "B")
    edges = heat_map.rank_edges.astype(np.float64)
    axes.stairs(
        heat_map.rank_bytes / unit.size,
        edges,
        orientation="horizontal",
        fill=True,
        color=DIRECTION_HUES[heat_map.direction],
    )
    axes.set(ylim=(edges[-1], edges[0]), xlim=(0, None), yticklabels=[], xlabel=f"a rank [{unit.name}]")
    axes.locator_params(axis="x", nbins=3)
    _bare(axes)


def _draw_scale(axes: Axes, high: float) -> None:
    """Draw the color scale, which maps shades to the bytes of a cell."""
    axes.set(xlim=(0, len(SHADES)), ylim=(0, 1), yticks=[], xticks=[0, len(SHADES)])
    for number, color in enumerate(SHADES):
        axes.axvspan(number, number + 1, facecolor=color, edgecolor=color, linewidth=0.25)
    low = high / 10**_DECADES
    for label, side in zip(axes.set_xticklabels([volume_text(low), volume_text(high)]), ("left", "right"), strict=True):
        label.set(ha=side, fontsize=NOTE_POINTS, color=SOFT)
    axes.tick_params(length=0, pad=2)
    axes.set_title("bytes a cell", fontsize=NOTE_POINTS, color=SOFT, fontweight="normal", pad=3)
    _bare(axes)


def _whole_numbers() -> MaxNLocator:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=6, integer=True)


def _bare(axes: Axes) -> None:
    axes.spines[:].set_visible(False)

"""Draw the intermediate results of IOSI for one application, from outlier elimination to the signature.

The panels follow Figures 7 to 11 of IOSI (Liu et al., FAST'14, sections 5.1 to 5.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from iosig.reports import panels
from iosig.reports.panels import Columns
from iosig.reports.signatures import REASONS, number_bursts, shade_bursts
from iosig.reports.style import BLUE, FAINT, GRAY, INK, ORANGE, SKY, SOFT, VERMILION
from iosig.reports.texts import (
    RATES,
    TIMES,
    VOLUMES,
    Unit,
    choose_unit,
    format_count,
    plain,
    rate_text,
    volume_text,
)
from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.iosi import IosiParams, IosiStages, SmoothedRun, smooth_run
from iosig.transforms.signatures.sample_sets import SampleSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_IN, _SIDES = 11.0, (0.085, 0.975)
#: space above the first panel, between panels, and below the last one [inches]
_TOP_IN, _BETWEEN_IN, _BOTTOM_IN = 1.15, 0.95, 0.6
#: heights of the rows of panels: runs, one sample, wavelets, single bursts, grid, signature [inches]
_RUNS_IN, _SAMPLE_IN, _WAVES_IN, _BURSTS_IN, _GRID_IN, _SIGNATURE_IN = 2.4, 1.6, 1.6, 1.6, 2.6, 1.3
#: levels of Figure 9
_LEVELS = (1, 2, 3)
#: number of single bursts that are drawn, and of common bursts in the segment of a sample
_MAX_BURSTS, _MAX_SEGMENT_BURSTS = 4, 3
#: maximum number of runs with a drawn factor, those with the highest factors
_MAX_FACTORS = 24
#: maximum number of lines of a grid
_MAX_GRID_LINES = 160
_JOB_CHARACTERS, _NAME_CHARACTERS = 14, 80


@dataclass(frozen=True)
class IosiView:
    """Intermediate results for the n runs of one application.

    sample_set: all runs. job_ids: n. run: index of the run whose sample is drawn; None without preprocessed samples.
    """

    application_id: str
    filesystem: str
    direction: str
    method: str
    job_ids: tuple[str, ...]
    sample_set: SampleSet
    params: IosiParams
    min_run_count: int
    stages: IosiStages
    run: int | None

    @property
    def row(self) -> int:
        """Row of the drawn run in the preprocessed samples."""
        return int(np.flatnonzero(self.stages.samples.run == self.run)[0])

    @cached_property
    def smoothed_runs(self) -> tuple[SmoothedRun, ...]:
        """The drawn run at each level of Figure 9 and at that of the method; empty without bursts."""
        if (segmented := self.stages.segmented) is None:
            return ()
        levels = sorted({*_LEVELS, self.params.level})
        return tuple(smooth_run(segmented, self.row, replace(self.params, level=level)) for level in levels)

    @property
    def best_grid(self) -> int | None:
        """Index of the grid that explains the most points; None without bursts."""
        return None if self.stages.clustered is None else int(self.stages.clustered.clusters.grid[0])

    @property
    def preprocessed_bytes(self) -> Reals:
        """Bytes of each run (n) after preprocessing; NaN for excluded runs."""
        moved = np.full(len(self.job_ids), np.nan)
        moved[self.stages.samples.run] = self.stages.samples.filled.sum(axis=1)
        return moved

    @property
    def finding(self) -> str:
        """Return the common bursts and their volume, or the reason why there are none."""
        signature, count = self.stages.signature, len(self.job_ids)
        if signature.outcome == "too_few_samples":
            return f"{REASONS[signature.outcome]} ({count} of {self.min_run_count} required)"
        if signature.outcome != "extracted":
            return REASONS[signature.outcome]
        bursts = format_count(len(signature.bursts), "common burst")
        return f"{bursts} of {volume_text(signature.volume_bytes)} in {self.used_text}"

    @property
    def used_text(self) -> str:
        """Return the number of runs that IOSI uses."""
        return f"{len(self.stages.samples.run)} of {format_count(len(self.job_ids), 'run')}"


# ---- layout


def _heights(view: IosiView) -> list[float]:
    """Return the heights of the rows of panels [inches]."""
    heights = [_RUNS_IN]
    if view.run is not None:
        heights.append(_SAMPLE_IN)
    if view.stages.segmented is not None:
        heights += [_WAVES_IN, _BURSTS_IN, _GRID_IN, _SIGNATURE_IN]
    return heights


def _size(view: IosiView) -> tuple[float, float]:
    heights = _heights(view)
    return _WIDTH_IN, _TOP_IN + sum(heights) + (len(heights) - 1) * _BETWEEN_IN + _BOTTOM_IN


@panels.picture(_size)
def draw(figure: Figure, view: IosiView) -> None:
    """Draw a row of panels for each step."""
    names = (plain(view.application_id, _NAME_CHARACTERS), view.direction, plain(view.filesystem), view.method)
    is_extracted = view.stages.signature.outcome == "extracted"
    panels.headings(figure, view.finding, (*names, view.used_text + " used"), INK if is_extracted else VERMILION)
    clock = choose_unit(_longest_s(view), TIMES, "s")
    draw_rows = (_draw_runs, _draw_sample, _draw_waves, _draw_bursts, _draw_grid, _draw_signature)
    top = _TOP_IN
    for draw_row, height in zip(draw_rows, _heights(view), strict=False):
        draw_row(figure, view, clock, top, height)
        top += height + _BETWEEN_IN


def _longest_s(view: IosiView) -> float:
    points = view.stages.samples.values.shape[1]
    return float(points) if points else float(np.nanmax(view.sample_set.duration_s, initial=1.0))


def _add_columns(figure: Figure, top: float, height: float, count: int, gap: float = 0.02) -> list[Axes]:
    """Add panels of equal width in a row; the first one has the label of the vertical axis."""
    left, right = _SIDES
    width = (right - left + gap) / count
    added = [
        panels.inch_axes(figure, top, height, (left + place * width, left + (place + 1) * width - gap))
        for place in range(count)
    ]
    for axes in added[1:]:
        axes.tick_params(axis="y", labelleft=False)
    return added


def _share_rates(row: Sequence[Axes], values: Iterable[Reals]) -> Unit:
    """Give panels the same vertical axis for rates, and return its unit."""
    high = max((float(np.nanmax(one, initial=0.0)) for one in values), default=0.0)
    unit = choose_unit(high, RATES, "B/s")
    for axes in row:
        axes.set_ylim(min(0.0, -0.04 * high / unit.size), 1.06 * high / unit.size or 1.0)
    row[0].set_ylabel(f"throughput [{unit.name}]")
    return unit


# ---- outlier elimination


def _draw_runs(figure: Figure, view: IosiView, clock: Unit, top: float, height: float) -> None:
    """Draw the runs by duration and volume, and the local outlier factor of each (Figure 7)."""
    left, right = _SIDES
    middle = left + 0.53 * (right - left)
    _draw_scatter(panels.inch_axes(figure, top, height, (left, middle)), view, clock)
    _draw_factors(panels.inch_axes(figure, top, height, (middle + 0.15, right)), view)


def _draw_scatter(axes: Axes, view: IosiView, clock: Unit) -> None:
    volume, duration = view.stages.volume_bytes, view.sample_set.duration_s / clock.size
    is_outlier = view.stages.scores.is_outlier
    unit = choose_unit(float(np.nanmax(volume, initial=0.0)), VOLUMES, "B")
    axes.scatter(duration[~is_outlier], volume[~is_outlier] / unit.size, color=BLUE, s=22, lw=0, label="used")
    if is_outlier.any():
        axes.scatter(
            duration[is_outlier], volume[is_outlier] / unit.size,
            facecolors="none", edgecolors=VERMILION, s=34, lw=1.3, label="excluded",
        )  # fmt: skip
    axes.margins(0.06, 0.1)
    axes.ticklabel_format(useOffset=False)
    axes.set_xlabel(f"duration [{clock.name}]")
    axes.set_ylabel(f"volume of the sample [{unit.name}]")
    axes.set_title("Runs (Figure 7)")
    panels.legend_above(axes)


def _draw_factors(axes: Axes, view: IosiView) -> None:
    """Draw the factors with the threshold, highest first."""
    factor, threshold = view.stages.scores.factor, float(view.stages.scores.threshold[0])
    axes.set_title("Local outlier factors")
    if not np.isfinite(factor).any():
        panels.say(axes, "no factors: too few runs" if view.params.has_preprocessing else "not computed")
        return
    order = np.argsort(-np.nan_to_num(factor, nan=-1.0), kind="stable")[:_MAX_FACTORS][::-1]
    places, is_outlier = np.arange(len(order)), view.stages.scores.is_outlier[order]
    axes.hlines(places, 0.0, factor[order], colors=FAINT, lw=1.0)
    for part, color in ((~is_outlier, BLUE), (is_outlier, VERMILION)):
        axes.scatter(factor[order][part], places[part], color=color, s=18, lw=0, zorder=2.5)
    axes.axvline(threshold, color=INK, lw=1.0, ls="--", label=f"threshold {threshold:.3g}")
    points = min(8.0, 0.8 * 72 * _RUNS_IN / len(order))
    axes.set_yticks(places, [plain(view.job_ids[run], _JOB_CHARACTERS) for run in order], fontsize=points)
    for label, is_out in zip(axes.get_yticklabels(), is_outlier, strict=True):
        label.set_color(VERMILION if is_out else INK)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.7, len(order) - 0.3)
    axes.set_xlim(0.0, 1.06 * max(float(np.nanmax(factor)), threshold))
    axes.set_xlabel("local outlier factor")
    panels.legend_above(axes)


# ---- noise reduction and wavelet transform


def _draw_sample(figure: Figure, view: IosiView, clock: Unit, top: float, height: float) -> None:
    """Draw one sample before and after preprocessing, with the background (Figure 8)."""
    if (run := view.run) is None:
        return
    before, after = _add_columns(figure, top, height, 2)
    rates, filled = view.sample_set.rates[run], view.stages.samples.filled[view.row]
    unit = _share_rates((before, after), (rates, filled))
    edges = view.sample_set.start_s[run] + view.sample_set.interval_s * np.arange(len(rates) + 1)
    _draw_curve(before, edges, rates, clock, unit)
    _draw_curve(after, np.arange(len(filled) + 1.0), filled, clock, unit)
    background = view.stages.samples.background_bytes_per_s
    if np.isfinite(background):
        label = f"background {rate_text(background)}"
        before.axhline(background / unit.size, color=ORANGE, lw=1.1, ls="--", label=label)
        panels.legend_above(before)
    before.set_title(f"Sample of {plain(view.job_ids[run], _JOB_CHARACTERS)} (Figure 8)")
    after.set_title(f"Preprocessed: {_removed_text(view, run)}")
    for axes in (before, after):
        axes.set_xlim(0.0, max(float(edges[-1]), len(filled)) / clock.size)
        axes.set_xlabel(f"time since the run's start [{clock.name}]")


def _removed_text(view: IosiView, run: int) -> str:
    """Return the volume of a sample before and after preprocessing."""
    before, after = float(view.stages.volume_bytes[run]), float(view.preprocessed_bytes[run])
    lost = f", {1 - after / before:.0%} less" if before > after else ""
    return f"{volume_text(after)} of {volume_text(before)}{lost}"


def _draw_curve(axes: Axes, edges_s: Reals, values: Reals, clock: Unit, unit: Unit, color: str = BLUE) -> None:
    places, shown = Columns.aggregate(values / unit.size).line(edges_s / clock.size)
    axes.fill_between(places, 0.0, shown, color=color, alpha=0.2, lw=0)
    axes.plot(places, shown, color=color, lw=0.8)


def _draw_waves(figure: Figure, view: IosiView, clock: Unit, top: float, height: float) -> None:
    """Draw a segment of the sample and its low-frequency component at each level (Figure 9)."""
    curves, values = view.smoothed_runs, view.stages.samples.filled[view.row]
    row = _add_columns(figure, top, height, 1 + len(curves))
    end = _segment_end(view.stages.signature.bursts, len(values))
    unit = _share_rates(row, [values[:end], *(one.bytes_per_s[:end] for one in curves)])
    edges = np.arange(end + 1.0)
    _draw_curve(row[0], edges, values[:end], clock, unit)
    row[0].set_title("Segment (Figure 9)")
    for axes, one in zip(row[1:], curves, strict=True):
        is_used = one.level == view.params.level
        _draw_curve(axes, edges, one.bytes_per_s[:end], clock, unit, BLUE if is_used else GRAY)
        axes.axhline(one.mean_crest_bytes_per_s / unit.size, color=ORANGE, lw=1.0, ls="--", label="mean crest")
        used = " (used)" if is_used else ""
        axes.set_title(f"Level {one.level}{used}: {format_count(one.burst_count, 'burst')}")
    for axes in row:
        axes.set_xlim(0.0, end / clock.size)
        axes.set_xlabel(f"time [{clock.name}]")


def _segment_end(bursts: Bursts, point_count: int) -> int:
    """Return the end of the segment with the first common bursts."""
    if len(bursts) <= _MAX_SEGMENT_BURSTS:
        return point_count
    return max(2, int((bursts.end_s[_MAX_SEGMENT_BURSTS - 1] + bursts.start_s[_MAX_SEGMENT_BURSTS]) / 2))


# ---- bursts as points


def _draw_bursts(figure: Figure, view: IosiView, clock: Unit, top: float, height: float) -> None:
    """Draw one common burst in several samples, before and after the wavelet transform (Figure 10)."""
    segmented, clustered = view.stages.segmented, view.stages.clustered
    assert segmented is not None
    assert clustered is not None
    bursts = segmented.bursts
    chosen = choose_example(clustered.clusters.owner, segmented.smoothed[bursts.run, bursts.peak])
    row = _add_columns(figure, top, height, max(len(chosen), 1))
    if not len(chosen):
        row[0].set_title("Bursts (Figure 10)")
        panels.say(row[0], "no common bursts")
        return
    low, high = int(bursts.first[chosen].min()), int(bursts.last[chosen].max())
    low, high = max(0, low - (high - low) // 4), min(segmented.relative.shape[1] - 1, high + (high - low) // 4)
    runs = bursts.run[chosen]
    before, after = (
        part[runs, low : high + 1] * segmented.maximum for part in (segmented.relative, segmented.smoothed)
    )
    unit, seconds = _share_rates(row, (before, after)), (np.arange(low, high + 1) + 0.5) / clock.size
    for place, (axes, burst) in enumerate(zip(row, chosen.tolist(), strict=True)):
        axes.plot(seconds, before[place] / unit.size, color=BLUE, lw=1.1)
        axes.plot(seconds, after[place] / unit.size, color=INK, lw=1.0, ls=":")
        peak = int(bursts.peak[burst])
        axes.plot([seconds[peak - low]], [after[place, peak - low] / unit.size], "o", color=VERMILION, ms=4.5)
        first, last = (edge[burst] / clock.size for edge in (bursts.first, bursts.last + 1))
        axes.axvspan(first, last, color=INK, alpha=0.07, lw=0)
        job = plain(view.job_ids[view.stages.samples.run[runs[place]]], _JOB_CHARACTERS)
        axes.set_title(job + " (Figure 10)" * (place == 0))
        axes.set_xlim(low / clock.size, (high + 1) / clock.size)
        point = f"crest at {peak / clock.size:.3g} {clock.name}, correlation {clustered.planes.correlation[burst]:.2f}"
        axes.set_xlabel(f"time [{clock.name}]\n{point}")


def choose_example(owner: Ints, height: Reals) -> Ints:
    """Choose bursts of the common burst that most samples have, the highest of equal ones, up to `_MAX_BURSTS`.

    owner: common burst of each burst, -1 for none. height: that of its crest.
    """
    is_common = owner >= 0
    if not is_common.any():
        return np.zeros(0, dtype=np.int64)
    totals = np.bincount(owner[is_common], height[is_common])
    best = np.lexsort((totals, np.bincount(owner[is_common])))[-1]
    return np.flatnonzero(owner == best)[:_MAX_BURSTS]


def _draw_grid(figure: Figure, view: IosiView, clock: Unit, top: float, height: float) -> None:
    """Draw the best grid with its dense units, their neighborhoods, and the points of all bursts (Figure 11)."""
    clustered, best = view.stages.clustered, view.best_grid
    assert clustered is not None
    assert best is not None
    axes = panels.inch_axes(figure, top, height, _SIDES)
    planes, clusters = clustered.planes, clustered.clusters
    width_s, unit_height = float(clustered.width_s[0, best]), float(clustered.height[0, best])
    span_s = float(planes.span_s[0])
    axes.set_xlim(0.0, span_s / clock.size)
    # space for points on the edge, and for the numbers of bursts
    axes.set_ylim(-0.03, 1.14)
    _draw_units(axes, view, width_s / clock.size, unit_height, span_s / clock.size)
    is_common = clusters.owner >= 0
    for part, label, color, size in (
        (~is_common, "other bursts", SOFT, 9),
        (is_common, "common bursts", BLUE, 16),
    ):
        axes.scatter(
            planes.time_s[part] / clock.size, planes.correlation[part], color=color, s=size, lw=0, label=label, zorder=3
        )
    explained = f"{clusters.explained_count[0, best]:,} of {format_count(len(planes.time_s), 'point')}"
    axes.set_title(f"Best of {clustered.width_s.shape[1]} grids (Figure 11)")
    axes.set_xlabel(
        f"time of the crest [{clock.name}]; units of {width_s:.3g} s x {unit_height:.2g} explain {explained}"
    )
    axes.set_yticks(np.linspace(0.0, 1.0, 5))
    axes.set_ylabel("correlation with\nthe average burst")
    number_bursts(axes, view.stages.signature.bursts, clock)
    panels.legend_above(axes)


def _draw_units(axes: Axes, view: IosiView, width: float, height: float, span: float) -> None:
    """Draw the lines of a grid, its dense units and their neighborhoods; width, span: in the unit of the axis."""
    dense = view.stages.dense_units
    assert dense is not None
    columns, rows = (max(1, int(np.ceil(length / size - 1e-9))) for length, size in ((span, width), (1.0, height)))
    is_dense, is_near = (np.zeros((columns + 2, rows + 2), dtype=np.bool_) for _ in range(2))
    is_dense[dense.column + 1, dense.row + 1] = True
    for shift in np.ndindex(3, 3):
        is_near[dense.column + shift[0], dense.row + shift[1]] = True
    for cells, label, alpha in ((is_dense, "dense units", 0.55), (is_near & ~is_dense, "their neighborhoods", 0.2)):
        _fill_cells(axes, cells[1:-1, 1:-1], (width, height), (span, 1.0), label, alpha)
    if columns <= _MAX_GRID_LINES:
        axes.vlines(width * np.arange(1, columns), 0.0, 1.0, colors=FAINT, lw=0.5, zorder=0.8)
    axes.hlines(np.append(height * np.arange(1, rows), 1.0), 0.0, span, colors=FAINT, lw=0.5, zorder=0.8)


def _fill_cells(
    axes: Axes, cells: Bools, sizes: tuple[float, float], spans: tuple[float, float], label: str, alpha: float
) -> None:
    """Fill the marked cells (columns, rows) of a grid; the last column and row end at the edge of the plane."""
    from matplotlib.collections import PolyCollection

    column, row = np.nonzero(cells)
    left, low = column * sizes[0], row * sizes[1]
    right, high = np.minimum(left + sizes[0], spans[0]), np.minimum(low + sizes[1], spans[1])
    corners = np.stack([[left, low], [left, high], [right, high], [right, low]]).transpose(2, 0, 1)
    axes.add_collection(PolyCollection(list(corners), facecolors=SKY, alpha=alpha, lw=0, zorder=0.6, label=label))


def _draw_signature(figure: Figure, view: IosiView, clock: Unit, top: float, height: float) -> None:
    """Draw the signature below the grid, with the same time axis (section 5.4)."""
    axes = panels.inch_axes(figure, top, height, _SIDES)
    signature, span_s = view.stages.signature, _longest_s(view)
    axes.set_title("Signature: mean of the common bursts")
    axes.set_xlim(0.0, span_s / clock.size)
    axes.set_xlabel(f"time since the run's start [{clock.name}]")
    if signature.outcome != "extracted":
        panels.say(axes, REASONS[signature.outcome])
        return
    unit = _share_rates([axes], [signature.bytes_per_s])
    shade_bursts(axes, signature.bursts, clock)
    _draw_curve(axes, np.arange(len(signature.bytes_per_s) + 1.0), signature.bytes_per_s, clock, unit)
